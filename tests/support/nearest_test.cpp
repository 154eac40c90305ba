// The words that were meant: near ones are found, far ones are not.
#include "compiler/support/nearest.h"

#include <catch2/catch.hpp>

using namespace firn;

TEST_CASE("the nearest words are those with the fewest edits") {
  const std::vector<std::string> verbs = {"compile", "run", "inspect", "bench", "verify", "ops", "opt"};
  CHECK(nearest_words("compil", verbs) == "'compile'");
  CHECK(nearest_words("Inspect", verbs) == "'inspect'");
  CHECK(nearest_words("vreify", verbs) == "'verify'"); // a swap is one edit
  CHECK(nearest_words("op", verbs) == "'ops' or 'opt'");
}

TEST_CASE("no more than three words are given, and none farther than the nearest") {
  const std::vector<std::string> cpus = {"native", "znver1", "znver2", "znver3", "znver4", "znver10"};
  CHECK(nearest_words("znver9", cpus) == "'znver1', 'znver2' or 'znver3'");
  CHECK(nearest_words("znver100", cpus) == "'znver10'");
}

TEST_CASE("words that begin as the one written are nearest") {
  const std::vector<std::string> features = {"sse", "sse4.1", "sse4.2", "sse4a", "ssse3"};
  CHECK(nearest_words("sse4", features) == "'sse4.1', 'sse4.2' or 'sse4a'");
  CHECK(nearest_words("ss", features) == "'sse'"); // two letters begin too many
}

TEST_CASE("words that share too little suggest nothing") {
  CHECK(nearest_words("frobnicate", {"compile", "bench"}) == "");
  CHECK(nearest_words("", {"compile"}) == "");
  CHECK(nearest_words("x", {}) == "");
  CHECK(nearest_words(std::string(200, 'x'), {std::string(200, 'x')}) == "");
}
