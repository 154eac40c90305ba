// Plans read back what they print, and say where they cannot be read.
#include "compiler/plan/kernel_plan.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::plan;

namespace {

std::string printed(const std::string& text) {
  auto plan = parse_kernel_plan("plan", text);
  return plan ? to_string(*plan) : plan.error().message;
}

} // namespace

TEST_CASE("plans print as they are read", "[plan]") {
  for (const char* text : {"depthwise tile 7 along 1", "depthwise tile 14 along 0 straight",
                           "depthwise tile 6 along 2 straight taps_in_registers",
                           "pooling tile 8 along 1 straight", "pooling tile 1 along 0"})
    CHECK(printed(text) == text);
}

TEST_CASE("a plan that is none names the place", "[plan]") {
  CHECK(printed("depthwise tile") == "plan:1:15: expected an integer");
  CHECK(printed("depthwise along 1") == "plan:1:11: expected 'tile'");
  CHECK(printed("pooling tile 3 along 1 taps_in_registers") == "plan:1:24: expected the end of the plan");
  CHECK(printed("guess tile 3").find("wanted one of: depthwise, pooling") != std::string::npos);
  CHECK(printed("").find("wanted one of: depthwise, pooling") != std::string::npos);
}
