// Names, sizes and kinds of PTX's types, from one table.
#include "compiler/ptx/types.h"

#include <cstddef>
#include <iterator>

namespace firn::ptx {
namespace {

enum class Kind : uint8_t { Bits, Unsigned, Signed, Float, Pair, Pred };

struct Row {
  Type type;
  std::string_view word;
  uint8_t size;
  Kind kind;
};

constexpr Row kTypes[] = {
    {Type::B8, "b8", 1, Kind::Bits},         {Type::B16, "b16", 2, Kind::Bits},
    {Type::B32, "b32", 4, Kind::Bits},       {Type::B64, "b64", 8, Kind::Bits},
    {Type::U8, "u8", 1, Kind::Unsigned},     {Type::U16, "u16", 2, Kind::Unsigned},
    {Type::U32, "u32", 4, Kind::Unsigned},   {Type::U64, "u64", 8, Kind::Unsigned},
    {Type::S8, "s8", 1, Kind::Signed},       {Type::S16, "s16", 2, Kind::Signed},
    {Type::S32, "s32", 4, Kind::Signed},     {Type::S64, "s64", 8, Kind::Signed},
    {Type::F16, "f16", 2, Kind::Float},      {Type::F16x2, "f16x2", 4, Kind::Pair},
    {Type::BF16, "bf16", 2, Kind::Float},    {Type::BF16x2, "bf16x2", 4, Kind::Pair},
    {Type::TF32, "tf32", 4, Kind::Float},    {Type::F32, "f32", 4, Kind::Float},
    {Type::F64, "f64", 8, Kind::Float},      {Type::E4M3, "e4m3", 1, Kind::Float},
    {Type::E5M2, "e5m2", 1, Kind::Float},    {Type::E4M3x2, "e4m3x2", 2, Kind::Pair},
    {Type::E5M2x2, "e5m2x2", 2, Kind::Pair}, {Type::Pred, "pred", 1, Kind::Pred},
};

const Row& row(Type type) {
  return kTypes[static_cast<size_t>(type)];
}

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].type != static_cast<Type>(i)) return false;
  return true;
}
static_assert(rows_are_in_order());

} // namespace

std::optional<Type> type_named(std::string_view word) {
  for (const Row& row : kTypes)
    if (row.word == word) return row.type;
  return std::nullopt;
}

std::string_view name_of(Type type) {
  return row(type).word;
}
int size_of(Type type) {
  return row(type).size;
}
bool is_signed(Type type) {
  return row(type).kind == Kind::Signed;
}
bool is_integer(Type type) {
  return row(type).kind == Kind::Signed || row(type).kind == Kind::Unsigned;
}
bool is_bits(Type type) {
  return row(type).kind == Kind::Bits;
}
bool is_float(Type type) {
  return row(type).kind == Kind::Float;
}

} // namespace firn::ptx
