// Lists and names in text.
#include "compiler/support/words.h"

#include <catch2/catch.hpp>

using namespace firn;

TEST_CASE("lists have one part more than separators", "[words]") {
  using Parts = std::vector<std::string>;
  CHECK(split("a,bc,d", ',') == Parts{"a", "bc", "d"});
  CHECK(split("", ',') == Parts{""});
  CHECK(split(",a,", ',') == Parts{"", "a", ""});
  CHECK(split("a,b", 'x') == Parts{"a,b"});
}

TEST_CASE("names that C takes", "[words]") {
  for (const char* name : {"f", "_", "median_filter2", "F"}) CHECK(is_c_identifier(name));
  for (const char* name : {"", "2f", "a b", "a.b", "a-b", "\xc3\xa4"}) CHECK_FALSE(is_c_identifier(name));
}
