// Types: text, sizes, layouts and addresses.
#include "compiler/graph/type.h"

#include "compiler/graph/parse_type.h"
#include "compiler/support/text_scanner.h"

#include <catch2/catch.hpp>

namespace firn {
namespace {

IntExpr in(std::string name, int64_t lower, int64_t upper) {
  return IntExpr::symbol(std::make_shared<Symbol>(Symbol{std::move(name), lower, upper}));
}

TEST_CASE("types print and read back") {
  Module module("m");
  module.symbols = {std::make_shared<Symbol>(Symbol{"n", 0, 9}),
                    std::make_shared<Symbol>(Symbol{"past length", 0, 9})};
  for (const char* text : {"f32[]", "f32[1,16,28,28]", "f32[1,16,28,28]{0,1,2,3:1x16}", "f32[n,3*n + 1]",
                           "i64[<=n]", "string<8>[2]", "sequence<f32[2]; 8>", "optional<sequence<i4[n]; 3>>",
                           "f32[\"past length\" + 1]", "bool[2,2]{1,0;8,1}", "u8[4]{:0x2}",
                           "f16[min(n, \"past length\" + 1)]", "f32[(n + 1) floordiv 2]", "f32[n*n]"}) {
    TextScanner scanner("type", text);
    Type type = parse_type(scanner, module);
    INFO(text);
    REQUIRE_FALSE(scanner.failed());
    CHECK(type.to_string() == text);
    CHECK(type == type);
  }
}

TEST_CASE("types differ by any part") {
  Type type = Type::tensor_of(DType::F32, {2, 3});
  CHECK(type != Type::tensor_of(DType::F16, {2, 3}));
  CHECK(type != Type::tensor_of(DType::F32, {3, 2}));
  CHECK(type != Type::tensor(DType::F32, {2, 3}, Layout{{1, 0}, {}, {}}));
  CHECK(Type::sequence(type, 3) != Type::sequence(type, 4));
  CHECK(Type::optional(type) != Type::sequence(type, 0));
  Type counted = Type::tensor(DType::F32, {Dim(in("n", 0, 4))}), plain = counted;
  counted.dims[0].counted = true;
  CHECK(counted != plain);
}

TEST_CASE("sizes count elements, bytes and unused lanes") {
  Type type = Type::tensor(DType::F32, {1, 40, 7, 7}, Layout{{0, 1, 2, 3}, {{1, 16}}, {}});
  CHECK(type.num_elements() == 1960);
  CHECK(type.byte_size() == 7840);
  CHECK(type.physical_dims() == std::vector<int64_t>{1, 3, 7, 7, 16});
  CHECK(type.physical_byte_size() == 3 * 49 * 16 * 4);
  CHECK(Type::tensor_of(DType::I4, {3, 3}).byte_size() == 5);
  CHECK(Type::tensor_of(DType::F32, {0, 4}).byte_size() == 0);
  Type view = Type::tensor(DType::F32, {2, 3}, Layout{{}, {}, {10, 1}});
  CHECK(view.physical_byte_size() == 13 * 4);
}

TEST_CASE("element counts are checked") {
  CHECK(checked_num_elements({2, 3, 4}) == 24);
  CHECK(checked_num_elements({}) == 1);
  CHECK(checked_num_elements({INT64_MAX, 0, INT64_MAX}) == 0);
  CHECK_FALSE(checked_num_elements({-1, 0}));
  CHECK_FALSE(checked_num_elements({INT64_MAX}));
  CHECK_FALSE(checked_num_elements({int64_t(1) << 30, int64_t(1) << 30}));
}

// Every element of a layout has an address of its own within the physical size.
void check_addresses(const Type& type) {
  std::vector<int64_t> dims = type.static_dims(), index(dims.size());
  std::vector<bool> used(type.physical_byte_size() / 4);
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    auto offset =
        static_cast<size_t>(type.offset_of(std::vector<IntExpr>(index.begin(), index.end())).value());
    REQUIRE(offset < used.size());
    REQUIRE_FALSE(used[offset]);
    used[offset] = true;
  }
}

TEST_CASE("layouts give every element its own address") {
  check_addresses(Type::tensor_of(DType::F32, {2, 3, 4}));
  check_addresses(Type::tensor(DType::F32, {2, 3, 4}, Layout{{2, 0, 1}, {}, {}}));
  check_addresses(Type::tensor(DType::F32, {2, 10, 3}, Layout{{0, 1, 2}, {{1, 4}}, {}}));
  check_addresses(Type::tensor(DType::F32, {6, 10}, Layout{{1, 0}, {{1, 4}, {0, 2}}, {}}));
  check_addresses(Type::tensor(DType::F32, {2, 3}, Layout{{}, {}, {7, 2}}));
}

TEST_CASE("addresses in a blocked layout simplify") {
  Type type = Type::tensor(DType::F32, {1, 32, 7, 7}, Layout{{0, 1, 2, 3}, {{1, 16}}, {}});
  IntExpr block = in("block", 0, 1), lane = in("lane", 0, 15), y = in("y", 0, 6), x = in("x", 0, 6);
  CHECK(type.offset_of({0, block * 16 + lane, y, x}) == block * (49 * 16) + y * (7 * 16) + x * 16 + lane);
}

} // namespace
} // namespace firn
