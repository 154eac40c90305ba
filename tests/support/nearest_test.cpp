// The word that was meant: near ones are found, far ones are not.
#include "compiler/support/nearest.h"

#include <catch2/catch.hpp>

using namespace firn;

TEST_CASE("the nearest word is the one with the fewest edits") {
  const std::vector<std::string> verbs = {"compile", "run", "inspect", "bench", "verify", "ops", "opt"};
  CHECK(nearest_word("compil", verbs) == "compile");
  CHECK(nearest_word("Inspect", verbs) == "inspect");
  CHECK(nearest_word("vreify", verbs) == "verify"); // a swap is one edit
  CHECK(nearest_word("op", verbs) == "ops");        // of equally near ones the first
}

TEST_CASE("words that share too little suggest nothing") {
  CHECK(nearest_word("frobnicate", {"compile", "bench"}) == "");
  CHECK(nearest_word("", {"compile"}) == "");
  CHECK(nearest_word("x", {}) == "");
}
