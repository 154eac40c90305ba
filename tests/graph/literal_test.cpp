// Storage of constants: element access, sharing, hashes.
#include "compiler/graph/literal.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace firn {
namespace {

TEST_CASE("mapped literals refer to the file's bytes") {
  std::string bytes(64, '\0');
  float values[] = {1.5f, -2.0f, 3.0f};
  std::memcpy(bytes.data() + 16, values, sizeof values);
  auto file = MappedFile::from_bytes("weights", bytes);
  LiteralRef literal = Literal::mapped(DType::F32, {3}, file, 16);
  CHECK(static_cast<const void*>(literal->bytes().data()) == file->bytes().data() + 16);
  CHECK(literal->get_double(1) == -2.0);
  LiteralRef reshaped = Literal::reshaped(literal, {1, 3});
  CHECK(reshaped->bytes().data() == literal->bytes().data());
  CHECK(reshaped->dims() == std::vector<int64_t>{1, 3});
  CHECK(reshaped->hash() != literal->hash());
}

TEST_CASE("literals keep their file alive") {
  LiteralRef literal = Literal::mapped(DType::U8, {3}, MappedFile::from_bytes("abc", "abc"), 0);
  CHECK(literal->get_int(2) == 'c');
}

TEST_CASE("elements narrower than a byte pack low bits first") {
  LiteralRef nibbles = Literal::of(DType::I4, {3}, std::vector<int64_t>{-8, 7, -1});
  REQUIRE(nibbles->bytes().size() == 2);
  CHECK(nibbles->bytes()[0] == std::byte{0x78});
  CHECK(nibbles->bytes()[1] == std::byte{0x0f});
  CHECK(nibbles->to_ints() == std::vector<int64_t>{-8, 7, -1});
  LiteralRef pairs = Literal::of(DType::U2, {5}, std::vector<int64_t>{0, 1, 2, 3, 2});
  CHECK(pairs->bytes()[0] == std::byte{0xe4});
  CHECK(pairs->to_ints() == std::vector<int64_t>{0, 1, 2, 3, 2});
  LiteralRef floats = Literal::of(DType::F4E2M1, {3}, std::vector<double>{0.5, -6, 1.5});
  CHECK(floats->get_double(0) == 0.5);
  CHECK(floats->get_double(1) == -6);
  CHECK(floats->get_double(2) == 1.5);
}

TEST_CASE("splats repeat one element, with no stray bits") {
  for (int i = 0; i < static_cast<int>(DType::String); ++i) {
    auto dtype = static_cast<DType>(i);
    INFO(dtype_name(dtype));
    for (int64_t count : {0, 1, 3, 7}) {
      LiteralRef splat = Literal::splat(dtype, {count}, 1);
      CHECK(splat->is_splat());
      LiteralRef listed = Literal::of(dtype, {count}, std::vector<double>(static_cast<size_t>(count), 1.0));
      CHECK(splat->hash() == listed->hash());
      for (int64_t at = 0; at < count; ++at) CHECK(splat->get_double(at) == 1);
    }
  }
}

TEST_CASE("is_splat compares all elements") {
  CHECK_FALSE(Literal::of_i64({1, 1, 2})->is_splat());
  CHECK_FALSE(Literal::of(DType::I4, {3}, std::vector<int64_t>{1, 1, 2})->is_splat());
  CHECK_FALSE(Literal::of(DType::F32, {2}, std::vector<double>{0.0, -0.0})->is_splat());
  CHECK(Literal::strings({2}, {"a", "a"})->is_splat());
  CHECK_FALSE(Literal::strings({2}, {"a", "b"})->is_splat());
}

TEST_CASE("integers wrap and floats truncate into integer literals") {
  Literal bytes(DType::U8, {3});
  bytes.set_int(0, 257);
  bytes.set_double(1, 3.9);
  bytes.set_double(2, -1.5);
  CHECK(bytes.get_int(0) == 1);
  CHECK(bytes.get_int(1) == 3);
  CHECK(bytes.get_int(2) == 255);
  Literal wide(DType::U64, {2});
  wide.set_double(0, 18446744073709549568.0);
  wide.set_int(1, -1);
  CHECK(wide.get_double(0) == 18446744073709549568.0);
  CHECK(wide.get_double(1) == 18446744073709551615.0);
}

TEST_CASE("hashes tell dtype, dims and bytes apart") {
  auto hash = [](DType dtype, std::vector<int64_t> dims, std::vector<int64_t> values) {
    return Literal::of(dtype, std::move(dims), values)->hash();
  };
  std::string base = hash(DType::I32, {2}, {1, 2});
  CHECK(base.size() == 16);
  CHECK(base == hash(DType::I32, {2}, {1, 2}));
  CHECK(base != hash(DType::U32, {2}, {1, 2}));
  CHECK(base != hash(DType::I32, {1, 2}, {1, 2}));
  CHECK(base != hash(DType::I32, {2}, {2, 1}));
  CHECK(Literal::strings({2}, {"ab", "c"})->hash() != Literal::strings({2}, {"a", "bc"})->hash());
}

TEST_CASE("opaque literals have a type and a hash") {
  LiteralRef literal = Literal::opaque(DType::F16, {3, 4}, "feed");
  CHECK(literal->is_opaque());
  CHECK(literal->hash() == "feed");
  CHECK(literal->num_elements() == 12);
  CHECK_FALSE(literal->is_splat());
  CHECK(Literal::reshaped(literal, {12})->is_opaque());
}

} // namespace
} // namespace firn
