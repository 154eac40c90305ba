// expand-random: computes random numbers by plain integer instructions.
//
//   %r = rng_uniform %low, %high {seed = 7} : f32[2,3]
//     ->
//   %i = iota {dim = 0} : u64[6]
//   %z = (%i + 1) * golden + scramble(7), scrambled                       (SplitMix64)
//   %u = convert (shift_right %z, 40) * 2^-24                             (f64)
//   %r = reshape (convert (%low + %u * (%high - %low)))
//
// - Requires: shapes that types say where anything changes.
// - Establishes: no rng_uniform without an operand for its shape is left.
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

// The row-major number of each element: along one line where the shape is static.
Value positions(GraphBuilder& b, const Type& type) {
  auto along = [&](const std::vector<Dim>& dims, size_t dim) {
    return b
        .make_typed(Opcode::Iota, {}, {Type::tensor(DType::U64, dims)}, {{"dim", static_cast<int64_t>(dim)}})
        ->result();
  };
  if (type.is_static()) return along({Dim(type.num_elements())}, 0);
  Value position = along(type.dims, 0);
  for (size_t i = 1; i < type.dims.size(); ++i) {
    Instruction* size = b.make_typed(Opcode::DimSize, {position}, {Type::tensor(DType::I64, {})},
                                     {{"dim", static_cast<int64_t>(i)}});
    Value extent = b.convert(size->result(), DType::U64);
    position = b.binary(Opcode::Multiply, position, extent);
    position = b.binary(Opcode::Add, position, along(type.dims, i));
  }
  return position;
}

Value expand(Instruction& random, const PassOptions&) {
  const Type& type = random.type();
  if (!random.is(Opcode::RngUniform) || (!type.is_static() && random.num_operands() > 2)) return {};
  GraphBuilder b(*random.parent(), &random);
  uint64_t base = scramble(static_cast<uint64_t>(random.attributes().integer("seed", 0)));
  Value x = positions(b, type);
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
  return type.is_static() ? b.reshape(x, type.dims) : x;
}

} // namespace

bool expand_random(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, expand);
}

} // namespace firn
