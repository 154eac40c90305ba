// Whether a machine can run code: what it lacks is named.
#include "compiler/driver/runs_here.h"

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

using namespace firn;

namespace {

Machine machine(const char* triple, const char* cpu) {
  auto found = find_target(triple, cpu, "");
  REQUIRE(found);
  return *found;
}

} // namespace

TEST_CASE("code for fewer features runs, code for more names what is missing and the way out") {
  auto v2 = machine("x86_64-linux-gnu", "x86-64-v2"), v3 = machine("x86_64-linux-gnu", "x86-64-v3");
  CHECK(driver::lacks_for(v2, v3) == "");
  CHECK(driver::lacks_for(v3, v3) == "");
  std::string lacking = driver::lacks_for(v3, v2);
  CHECK(lacking.find("code for x86-64-v3 does not run on this machine, which lacks ") == 0);
  CHECK(lacking.find("avx2") != std::string::npos);
  CHECK(lacking.find("; -mcpu=native makes code for this machine") != std::string::npos);
}

TEST_CASE("other architectures and systems do not run here, other vendors do") {
  auto here = machine("x86_64-pc-linux-gnu", "x86-64-v3");
  CHECK(driver::lacks_for(machine("x86_64-unknown-linux-gnu", "x86-64-v3"), here) == "");
  CHECK(driver::lacks_for(machine("aarch64-linux-gnu", ""), here).find("does not run on this machine") !=
        std::string::npos);
  CHECK(driver::lacks_for(machine("x86_64-pc-windows-msvc", "x86-64-v3"), here) != "");
}
