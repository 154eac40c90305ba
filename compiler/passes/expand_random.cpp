// expand-random: computes random numbers by plain integer instructions.
//
//   %r = rng_uniform %low, %high {seed = 7} : f32[2,3]
//     ->
//   %i = iota {dim = 0} : u64[6]
//   %z = (%i + 1) * golden + scramble(7), scrambled                       (SplitMix64)
//   %u = convert (shift_right %z, 40) * 2^-24                             (f64)
//   %r = reshape (convert (%low + %u * (%high - %low)))
//
// - Requires: static shapes where anything changes.
// - Establishes: no rng_uniform of a static shape is left.
// - Breaks: nothing. The numbers are those of the evaluator, bit for bit.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <cmath>

namespace firn {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u, kFirst = 0xbf58476d1ce4e5b9u, kSecond = 0x94d049bb133111ebu;

uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * kFirst;
  x = (x ^ (x >> 27)) * kSecond;
  return x ^ (x >> 31);
}

Value word(GraphBuilder& b, uint64_t bits) {
  return b.constant(Literal::of<int64_t>(DType::U64, {}, {static_cast<int64_t>(bits)}));
}

Value scramble(GraphBuilder& b, Value x) {
  auto mixed = [&](Value value, uint64_t shift) {
    return b.binary(Opcode::Xor, value, b.binary(Opcode::ShiftRight, value, word(b, shift)));
  };
  x = b.binary(Opcode::Multiply, mixed(x, 30), word(b, kFirst));
  x = b.binary(Opcode::Multiply, mixed(x, 27), word(b, kSecond));
  return mixed(x, 31);
}

Value expand(Instruction& random, const PassOptions&) {
  if (!random.is(Opcode::RngUniform) || !random.type().is_static()) return {};
  const Type& type = random.type();
  GraphBuilder b(*random.parent(), &random);
  uint64_t base = scramble(static_cast<uint64_t>(random.attributes().integer("seed", 0)));
  Type line = Type::tensor(DType::U64, {Dim(type.num_elements())});
  Value x = b.make_typed(Opcode::Iota, {}, {line}, {{"dim", int64_t{0}}})->result();
  x = b.binary(Opcode::Multiply, x, word(b, kGolden));
  x = scramble(b, b.binary(Opcode::Add, x, word(b, base + kGolden)));
  int bits = type.dtype == DType::F64 ? 53 : 24;
  x = b.binary(Opcode::ShiftRight, x, word(b, static_cast<uint64_t>(64 - bits)));
  // Below 2^53, where signed and unsigned are one.
  x = b.convert(b.convert(x, DType::I64), DType::F64);
  x = b.binary(Opcode::Multiply, x, b.scalar(DType::F64, std::ldexp(1.0, -bits)));
  Value low = b.convert(random.operand(0), DType::F64), high = b.convert(random.operand(1), DType::F64);
  x = b.binary(Opcode::Multiply, x, b.binary(Opcode::Subtract, high, low));
  x = b.convert(b.binary(Opcode::Add, low, x), type.dtype);
  return b.reshape(x, type.dims);
}

} // namespace

bool expand_random(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, expand);
}

} // namespace firn
