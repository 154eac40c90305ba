// Requests in streams ask for every line once.
#include "compiler/kernel/request_streams.h"

#include <catch2/catch.hpp>

#include <set>

using namespace firn;

TEST_CASE("requests in streams are for all lines", "[kernel]") {
  for (int64_t lines : {1, 63, 128, 255, 256, 768, 1001})
    for (int64_t each : {1, 2, 3, 4, 6, 8}) {
      INFO(lines << " lines, " << each << " at a time");
      std::set<int64_t> asked;
      int64_t requests = (lines + each - 1) / each * each;
      for (int64_t i = 0; i < requests; ++i) asked.insert(kernel::line_in_streams(i, each, lines).value());
      for (int64_t line = 0; line < lines; ++line) CHECK(asked.count(line) == 1);
    }
}

TEST_CASE("requests of one iteration take turns", "[kernel]") {
  CHECK(kernel::line_in_streams(0, 8, 768).value() == 0);
  CHECK(kernel::line_in_streams(1, 8, 768).value() == 192);
  CHECK(kernel::line_in_streams(4, 8, 768).value() == 1);
  CHECK(kernel::line_in_streams(1, 2, 768).value() == 384);
  CHECK(kernel::line_in_streams(1, 3, 768).value() == 1); // addresses would cost more
  CHECK(kernel::line_in_streams(1, 8, 100).value() == 1); // less than pages
}
