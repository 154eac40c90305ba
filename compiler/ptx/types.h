// The types that PTX's instructions and variables name: sizes, kinds, and the words for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace firn::ptx {

enum class Type : uint8_t {
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
  Pred
};

// The type that a word names, without its dot ("u32").
std::optional<Type> type_named(std::string_view word);
std::string_view name_of(Type type);

int size_of(Type type); // bytes in memory and registers; 1 for predicates
bool is_signed(Type type);
bool is_integer(Type type); // u and s; untyped bits are not
bool is_bits(Type type);
bool is_float(Type type); // one number: f16, bf16, tf32, f32, f64

// The spaces that a variable or an access names. Generic addresses lie in one of the others.
enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const, Register };

} // namespace firn::ptx
