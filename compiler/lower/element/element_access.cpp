// Loads and stores of elements: contiguous lanes as vectors, equal ones by a splat, others one by one.
#include "compiler/lower/element/element_access.h"

#include "compiler/lower/element/element_emitter.h"
#include "compiler/lower/machine_types.h"

namespace firn::lower {

using kernel::Builder;
using kernel::OpKind;
using kernel::Scalar;

IntExpr Lanes::at_first(const IntExpr& expression) const {
  if (!symbol) return expression;
  return expression.substitute([&](const Symbol& s) -> std::optional<IntExpr> {
    if (&s == symbol.get()) return first;
    return std::nullopt;
  });
}

std::optional<int64_t> Lanes::step(const IntExpr& expression) const {
  if (!symbol) return 0;
  if (auto linear = expression.linear_coefficient(*symbol)) return linear;
  // Divisions by the size of a block vanish if the lanes are known to lie inside one.
  auto lane = std::make_shared<Symbol>(Symbol{"lane", 0, count - 1});
  IntExpr moved = expression.substitute([&](const Symbol& s) -> std::optional<IntExpr> {
    if (&s == symbol.get()) return first + IntExpr::symbol(lane);
    return std::nullopt;
  });
  return moved.linear_coefficient(*lane);
}

namespace {

Lanes lane_of(const Lanes& lanes, int lane) {
  return {lanes.symbol, lanes.first + lane, 1};
}

kernel::Register reversed(Builder& builder, kernel::Register vector) {
  std::vector<int64_t> order;
  for (int i = builder.type(vector).lanes; i-- > 0;) order.push_back(i);
  return builder.shuffle(vector, vector, std::move(order));
}

kernel::Register load_raw(Builder& builder, int buffer, Scalar scalar, const IntExpr& offset,
                          const Lanes& lanes) {
  if (lanes.count == 1) return builder.load({scalar, 1}, buffer, lanes.at_first(offset));
  std::optional<int64_t> step = lanes.step(offset);
  kernel::MachineType type{scalar, lanes.count};
  if (step == 0) return builder.splat(builder.load({scalar, 1}, buffer, lanes.at_first(offset)), lanes.count);
  if (step == 1) return builder.load(type, buffer, lanes.at_first(offset));
  if (step == -1)
    return reversed(builder, builder.load(type, buffer, lanes.at_first(offset) - (lanes.count - 1)));
  kernel::Register vector;
  for (int i = 0; i < lanes.count; ++i) {
    kernel::Register element = builder.load({scalar, 1}, buffer, lane_of(lanes, i).at_first(offset));
    vector = i == 0 ? builder.splat(element, lanes.count) : builder.insert(vector, element, i);
  }
  return vector;
}

void store_raw(Builder& builder, int buffer, const IntExpr& offset, const Lanes& lanes,
               kernel::Register value) {
  if (lanes.count == 1) return builder.store(value, buffer, lanes.at_first(offset));
  std::optional<int64_t> step = lanes.step(offset);
  if (step == 1) return builder.store(value, buffer, lanes.at_first(offset));
  if (step == -1)
    return builder.store(reversed(builder, value), buffer, lanes.at_first(offset) - (lanes.count - 1));
  for (int i = 0; i < lanes.count; ++i)
    builder.store(builder.extract(value, i), buffer, lane_of(lanes, i).at_first(offset));
}

// Elements below a byte lie one behind the other, low bits first. A byte that holds several is read once if
// lanes are known to begin with its first element, else once for each of them.
class PackedLoad {
public:
  PackedLoad(Builder& builder, int buffer, DType dtype)
      : b_(builder), buffer_(buffer), dtype_(dtype), bits_(bit_width(dtype)), per_byte_(8 / bits_) {}

  kernel::Register load(const IntExpr& offset, const Lanes& lanes) const {
    IntExpr first = lanes.at_first(offset);
    if (lanes.count == 1) return element(first);
    std::optional<int64_t> step = lanes.step(offset);
    if (step == 0) return b_.splat(element(first), lanes.count);
    if (step == 1 && lanes.count > per_byte_ && floor_mod(first, per_byte_) == IntExpr(0))
      return whole_bytes(floor_div(first, per_byte_), lanes.count);
    kernel::Register vector;
    for (int i = 0; i < lanes.count; ++i) {
      kernel::Register single = element(lane_of(lanes, i).at_first(offset));
      vector = i == 0 ? b_.splat(single, lanes.count) : b_.insert(vector, single, i);
    }
    return vector;
  }

private:
  // Converts the lowest bits to a value of the dtype.
  kernel::Register extended(kernel::Register low) const {
    kernel::MachineType type = b_.type(low);
    if (!is_signed(dtype_)) return b_.binary(OpKind::And, low, b_.constant_int(type, (1 << bits_) - 1));
    kernel::Register spare = b_.constant_int(type, 8 - bits_);
    return b_.binary(OpKind::AShr, b_.binary(OpKind::Shl, low, spare), spare);
  }

  kernel::Register element(const IntExpr& at) const {
    kernel::Register byte = b_.load({Scalar::I8, 1}, buffer_, floor_div(at, per_byte_));
    kernel::Register shift =
        b_.cast(OpKind::IndexCast, b_.index(floor_mod(at, per_byte_) * bits_), Scalar::I8);
    return extended(b_.binary(OpKind::LShr, byte, shift));
  }

  // Takes lane i of all bytes, for every i, and then puts them in order.
  kernel::Register whole_bytes(const IntExpr& at, int lanes) const {
    int count = (lanes + per_byte_ - 1) / per_byte_;
    kernel::Register bytes = b_.load({Scalar::I8, count}, buffer_, at);
    std::vector<kernel::Register> parts;
    for (int i = 0; i < per_byte_; ++i)
      parts.push_back(extended(b_.binary(OpKind::LShr, bytes, b_.constant_int(b_.type(bytes), i * bits_))));
    for (int run = 1; parts.size() > 1; run *= 2) {
      std::vector<kernel::Register> joined;
      for (size_t i = 0; i < parts.size(); i += 2) joined.push_back(alternating(parts[i], parts[i + 1], run));
      parts = std::move(joined);
    }
    if (b_.type(parts[0]).lanes == lanes) return parts[0];
    std::vector<int64_t> kept;
    for (int i = 0; i < lanes; ++i) kept.push_back(i);
    return b_.shuffle(parts[0], parts[0], std::move(kept));
  }

  // Takes `run` lanes of one register, then as many of the other, and so on.
  kernel::Register alternating(kernel::Register a, kernel::Register b, int run) const {
    int lanes = b_.type(a).lanes;
    std::vector<int64_t> order;
    for (int i = 0; i < 2 * lanes; ++i)
      order.push_back(i / (2 * run) * run + i % run + (i / run % 2) * lanes);
    return b_.shuffle(a, b, std::move(order));
  }

  Builder& b_;
  int buffer_;
  DType dtype_;
  int bits_, per_byte_;
};

// Converts raw elements from memory to the type that code computes with.
kernel::Register computed_with(Builder& builder, DType dtype, kernel::Register raw) {
  if (dtype == DType::Bool)
    return builder.compare(OpKind::UCmp, kernel::Predicate::Ne, raw,
                           builder.constant_int(builder.type(raw), 0));
  if (dtype == DType::F16 || dtype == DType::BF16) return builder.cast(OpKind::FExt, raw, Scalar::F32);
  return raw;
}

} // namespace

kernel::Register load_at(Builder& builder, int buffer, DType dtype, const IntExpr& offset,
                         const Lanes& lanes) {
  if (is_sub_byte(dtype)) return PackedLoad(builder, buffer, dtype).load(offset, lanes);
  return computed_with(builder, dtype, load_raw(builder, buffer, memory_scalar(dtype), offset, lanes));
}

kernel::Register gather_at(Builder& builder, int buffer, DType dtype, const IntExpr& offset,
                           kernel::Register places) {
  FIRN_CHECK(!is_sub_byte(dtype), "elements of less than a byte, gathered");
  kernel::MachineType type{memory_scalar(dtype), builder.type(places).lanes};
  return computed_with(builder, dtype, builder.gather(type, buffer, offset, places));
}

void store_at(Builder& builder, int buffer, DType dtype, const IntExpr& offset, const Lanes& lanes,
              kernel::Register value) {
  FIRN_CHECK(!is_sub_byte(dtype), "a store of less than a byte");
  if (dtype == DType::Bool) value = builder.cast(OpKind::ZExt, value, Scalar::I8);
  if (dtype == DType::F16 || dtype == DType::BF16)
    value = builder.cast(OpKind::FTruncTo, value, memory_scalar(dtype));
  store_raw(builder, buffer, offset, lanes, value);
}

kernel::Register load_element(Builder& builder, int buffer, const Type& type, const Index& index,
                              const Lanes& lanes) {
  return load_at(builder, buffer, type.dtype, type.offset_of(index), lanes);
}

void store_element(Builder& builder, int buffer, const Type& type, const Index& index, const Lanes& lanes,
                   kernel::Register value) {
  store_at(builder, buffer, type.dtype, type.offset_of(index), lanes, value);
}

namespace {

IntExpr elements_of(const Type& type) {
  IntExpr count = 1;
  for (const IntExpr& extent : type.physical_extents()) count = count * extent;
  return count;
}

// The index of lane `lane`, moved into the tensor if it may lie outside: a lane behind the last channel does,
// and its value is unused.
Index index_inside(const Type& type, const Index& index, const Lanes& lanes, int lane) {
  Lanes at{lanes.symbol, lanes.first + lane, 1};
  Index inside;
  for (size_t d = 0; d < index.size(); ++d) {
    IntExpr position = at.at_first(index[d]);
    IntExpr last = type.dims[d].extent - 1;
    if (position.lower_bound() < 0) position = max(position, 0);
    if ((position - last).upper_bound() > 0) position = min(position, last);
    inside.push_back(position);
  }
  return inside;
}

} // namespace

kernel::Register load_valid_lanes(Builder& b, int buffer, const Type& type, const Index& index,
                                  const Lanes& lanes, int valid) {
  IntExpr offset = type.offset_of(index), first = lanes.at_first(offset);
  auto step = lanes.step(offset);
  if (lanes.count == 1 || (step && *step == 0))
    return load_element(b, buffer, type, index_inside(type, index, lanes, 0), lanes);
  // Expressions over extents that vary do not show the limit that `valid` gives.
  if (valid >= lanes.count && !type.is_static()) return load_element(b, buffer, type, index, lanes);
  if (step && *step == 1) {
    IntExpr size = type.is_static() ? IntExpr(b.kernel().buffer(buffer).size) : elements_of(type);
    // A block has memory for all its lanes.
    if (!type.layout.blocks.empty() || (first + lanes.count - size).upper_bound() <= 0)
      return load_element(b, buffer, type, index, lanes);
    if (kernel::is_float(memory_scalar(type.dtype))) {
      kernel::MachineType narrow{memory_scalar(type.dtype), lanes.count};
      kernel::Register part = b.load_masked(narrow, buffer, first, b.lane_mask(lanes.count, size - first));
      kernel::MachineType wide = value_type(type.dtype, lanes.count);
      return narrow == wide ? part : b.cast(kernel::OpKind::FExt, part, wide.scalar);
    }
  }
  // Loads one element at a time: partial vectors are at the edge of a tensor only.
  kernel::Register vector = b.constant(value_type(type.dtype, lanes.count), 0);
  for (int lane = 0; lane < valid; ++lane)
    vector = b.insert(vector, load_element(b, buffer, type, index_inside(type, index, lanes, lane), Lanes{}),
                      lane);
  return vector;
}

kernel::Register load_channels(Builder& b, int buffer, const Type& type, const Index& index, int count) {
  auto lane = std::make_shared<Symbol>(Symbol{"lane", 0, count - 1});
  IntExpr offset = type.offset_of(index) + IntExpr::symbol(lane);
  return load_at(b, buffer, type.dtype, offset, Lanes{lane, 0, count});
}

kernel::Register index_lanes(Builder& builder, const IntExpr& expression, const Lanes& lanes) {
  auto scalar = [&](const Lanes& lane) {
    return builder.cast(OpKind::IndexCast, builder.index(lane.at_first(expression)), Scalar::I64);
  };
  if (lanes.count == 1) return scalar(lanes);
  kernel::MachineType type{Scalar::I64, lanes.count};
  if (std::optional<int64_t> step = lanes.step(expression)) {
    std::vector<int64_t> lane_offsets;
    for (int i = 0; i < lanes.count; ++i) lane_offsets.push_back(i * *step);
    return builder.binary(OpKind::IAdd, builder.splat(scalar(lanes), lanes.count),
                          builder.constant_lanes(type, std::move(lane_offsets)));
  }
  kernel::Register vector;
  for (int i = 0; i < lanes.count; ++i) {
    kernel::Register element = scalar(lane_of(lanes, i));
    vector = i == 0 ? builder.splat(element, lanes.count) : builder.insert(vector, element, i);
  }
  return vector;
}

kernel::Register integer(Builder& builder, kernel::MachineType type, const IntExpr& expression) {
  if (expression.is_constant()) return builder.constant_int(type, expression.value());
  return builder.splat(builder.cast(OpKind::IndexCast, builder.index(expression), type.scalar), type.lanes);
}

IntExpr checked_index(Builder& builder, kernel::Register value, int64_t lower, const IntExpr& upper) {
  if (builder.status() >= 0) {
    kernel::MachineType type = builder.type(value);
    auto beyond = [&](kernel::Predicate predicate, const IntExpr& bound) {
      return builder.compare(OpKind::SCmp, predicate, value, integer(builder, type, bound));
    };
    kernel::Register wrong = builder.binary(OpKind::Or, beyond(kernel::Predicate::Lt, lower),
                                            beyond(kernel::Predicate::Gt, upper));
    builder.fail_if(wrong, kernel::kOutOfRange);
  }
  return clamped_symbol(builder, value, lower, upper);
}

IntExpr clamped_symbol(Builder& builder, kernel::Register value, int64_t lower, const IntExpr& upper) {
  IntExpr last = max(upper, lower);
  double known;
  if (builder.constant_value(value, known)) return min(std::max(static_cast<int64_t>(known), lower), last);
  kernel::MachineType type = builder.type(value);
  value = builder.binary(OpKind::SMax, value, integer(builder, type, lower));
  value = builder.binary(OpKind::SMin, value, integer(builder, type, last));
  return builder.symbolic(builder.cast(OpKind::IndexCast, value, Scalar::Index), lower, last.upper_bound());
}

} // namespace firn::lower
