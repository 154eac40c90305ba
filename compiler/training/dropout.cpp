// See dropout.h. The key of a dropout is a scrambled counter of 64 bits (SplitMix64), which a step computes
// once; its halves enter two rounds of a mix of 32 bits (the lowbias32 of Wellons) for every element, which
// vectors of every CPU have instructions for.
#include "compiler/training/dropout.h"

#include "compiler/training/training_forms.h"

#include <cmath>

namespace firn::training {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u, kFirst = 0xbf58476d1ce4e5b9u, kSecond = 0x94d049bb133111ebu;
constexpr uint32_t kFirstMix = 0x7feb352du, kSecondMix = 0x846ca68bu;

uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * kFirst;
  x = (x ^ (x >> 27)) * kSecond;
  return x ^ (x >> 31);
}

uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * kFirstMix;
  x = (x ^ (x >> 15)) * kSecondMix;
  return x ^ (x >> 16);
}

uint64_t stream_key(int64_t seed, uint64_t stream) {
  return scramble(scramble(static_cast<uint64_t>(seed) + kGolden) + (stream + 1) * kGolden);
}

class Dropouts {
public:
  explicit Dropouts(const Drops& drops) : drops_(drops) {}

  void write(Region& region) {
    for (Instruction* instruction : region.snapshot()) {
      if (is_dropout(*instruction)) {
        replace(*instruction);
        continue;
      }
      for (int i = 0; i < instruction->num_regions(); ++i) write(instruction->region(i));
    }
  }

private:
  static Value word(GraphBuilder& b, DType dtype, uint64_t bits) {
    return b.constant(Literal::of<int64_t>(dtype, {}, {static_cast<int64_t>(bits)}));
  }

  // (x ^ (x >> shift)) * factor
  static Value round(GraphBuilder& b, Value x, int shift, uint64_t factor) {
    x = b.binary(Opcode::Xor, x,
                 b.binary(Opcode::ShiftRight, x, word(b, x.dtype(), static_cast<uint64_t>(shift))));
    return factor == 1 ? x : b.binary(Opcode::Multiply, x, word(b, x.dtype(), factor));
  }

  static Value mix(GraphBuilder& b, Value x) {
    return round(b, round(b, round(b, x, 16, kFirstMix), 15, kSecondMix), 16, 1);
  }

  // The key of this dropout in this step, u64.
  Value key(GraphBuilder& b, uint64_t number) const {
    Value counter =
        b.binary(Opcode::Multiply, b.convert(drops_.step_count, DType::U64), word(b, DType::U64, kGolden));
    counter = b.binary(Opcode::Add, counter, word(b, DType::U64, stream_key(drops_.seed, number)));
    return round(b, round(b, round(b, counter, 30, kFirst), 27, kSecond), 31, 1);
  }

  static Value extent(GraphBuilder& b, Value x, size_t dim) {
    return b.convert(b.op(Opcode::DimSize, {x}, {{"dim", static_cast<int64_t>(dim)}}), DType::U32);
  }

  static Value along(GraphBuilder& b, Value x, size_t dim) {
    Type type = Type::tensor(DType::U32, x.type().dims);
    return b.make_typed(Opcode::Iota, {}, {std::move(type)}, {{"dim", static_cast<int64_t>(dim)}})->result();
  }

  size_t row_dim(const Type& type) const {
    for (size_t i = 0; drops_.batch && i < type.dims.size(); ++i)
      if (type.dims[i].extent.mentions(*drops_.batch)) return i;
    return 0;
  }

  // The row times the elements of a row, and the place in the row.
  Value position(GraphBuilder& b, Value x) const {
    if (x.rank() == 0) return word(b, DType::U32, 0);
    const size_t rows = row_dim(x.type());
    Value number = along(b, x, rows);
    if (drops_.slice && drops_.batch && x.type().dims[rows].extent.mentions(*drops_.batch))
      number = b.binary(Opcode::Add, number,
                        b.binary(Opcode::Multiply, b.convert(drops_.slice, DType::U32), extent(b, x, rows)));
    for (size_t i = 0; i < x.type().dims.size(); ++i) {
      if (i == rows) continue;
      number = b.binary(Opcode::Multiply, number, extent(b, x, i));
      number = b.binary(Opcode::Add, number, along(b, x, i));
    }
    return number;
  }

  void replace(Instruction& dropout) {
    Region& region = *dropout.parent();
    GraphBuilder b(region, &dropout);
    Value x = dropout.operand(0), y = x, keeps;
    const double ratio = dropout.attributes().number("ratio", 0);
    const uint64_t number = count_++;
    if (ratio <= 0) {
      keeps = b.convert(b.splat_like(x, 1), DType::Bool);
    } else {
      Value high =
          b.convert(b.binary(Opcode::ShiftRight, key(b, number), word(b, DType::U64, 32)), DType::U32);
      Value bits = mix(b, b.binary(Opcode::Xor, position(b, x), b.convert(key(b, number), DType::U32)));
      bits = mix(b, b.binary(Opcode::Xor, bits, high));
      const double below = std::min(std::floor(ratio * 0x1p32), 0x1p32 - 1);
      keeps = b.compare("ge", bits, word(b, DType::U32, static_cast<uint64_t>(below)));
      if (ratio >= 1) keeps = b.convert(b.splat_like(x, 0), DType::Bool);
      Value scale = b.scalar(x.dtype(), ratio < 1 ? 1 / (1 - ratio) : 0);
      y = b.select(keeps, b.binary(Opcode::Multiply, x, scale), b.scalar(x.dtype(), 0));
    }
    region.replace_uses(dropout.result(0), y);
    if (dropout.num_results() > 1)
      region.replace_uses(dropout.result(1), b.convert(keeps, dropout.type(1).dtype));
    region.erase(&dropout);
  }

  const Drops& drops_;
  uint64_t count_ = 0;
};

} // namespace

bool has_dropouts(const Region& region) {
  for (const auto& instruction : region.instructions()) {
    if (is_dropout(*instruction) && instruction->attributes().number("ratio", 0) > 0) return true;
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (has_dropouts(instruction->region(i))) return true;
  }
  return false;
}

void write_dropouts(Region& region, const Drops& drops) {
  Dropouts(drops).write(region);
}

double drawn_number(int64_t seed, uint64_t stream, int64_t index) {
  const uint64_t key = stream_key(seed, stream);
  const uint32_t bits =
      mix(mix(static_cast<uint32_t>(index) ^ static_cast<uint32_t>(key)) ^ static_cast<uint32_t>(key >> 32));
  return (static_cast<double>(bits) + 0.5) * 0x1p-32;
}

} // namespace firn::training
