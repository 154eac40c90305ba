// Symbols from expressions whose values are known.
#include "compiler/support/bind_symbols.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

const SymbolRef past = std::make_shared<Symbol>(Symbol{"past", 0, 9}),
                seq = std::make_shared<Symbol>(Symbol{"seq", 1, 4});
const IntExpr p = IntExpr::symbol(past), s = IntExpr::symbol(seq);

std::string wrong(std::vector<KnownExtent> extents) {
  SymbolTable symbols;
  Result bound = bind_symbols(std::move(extents), symbols);
  return bound ? "" : bound.error().message;
}

} // namespace

TEST_CASE("expressions decide their symbols, in any order") {
  SymbolTable symbols;
  REQUIRE(bind_symbols({{"a", p + s, 7}, {"b", 3 * s + 1, 10}}, symbols));
  CHECK(symbols.at(past.get()) == 4);
  CHECK(symbols.at(seq.get()) == 3);
  CHECK(resolve(p * s + floor_div(p, 3), symbols) == 13);
}

TEST_CASE("what no expression decides stays open") {
  SymbolTable symbols;
  REQUIRE(bind_symbols({{"a", p * s, 6}, {"b", floor_div(p, 2), 3}}, symbols));
  CHECK(symbols.empty());
  CHECK_FALSE(resolve(p + 1, symbols));
}

TEST_CASE("values that do not fit are errors") {
  CHECK(wrong({{"a", s, 3}, {"b", s, 2}}) == "b is 2, wanted seq = 3");
  CHECK(wrong({{"a", s, 5}}) == "a is 5, seq = 5 is outside 1..4");
  CHECK(wrong({{"a", s - 1, -1}}) == "a is -1, seq = 0 is outside 1..4");
  CHECK(wrong({{"a", 2 * s, 5}}) == "a is 5, wanted 2*seq");
  CHECK(wrong({{"a", p + s, 5}, {"b", s, 2}, {"c", p, 4}}) == "a is 5, wanted past + seq = 6");
  CHECK(wrong({{"a", IntExpr(4), 5}}) == "a is 5, wanted 4");
}
