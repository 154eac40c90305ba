// Code for elements of elementwise and data-moving graph ops, computed where they are needed.
#include "compiler/lower/element/element_emitter.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/graph/magnitude_bound.h"
#include "compiler/lower/element/element_forms.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/kernel_maker.h"

#include <algorithm>

namespace firn::lower {

using kernel::OpKind;
using kernel::Scalar;

constexpr int32_t kWrongBranch = kernel::kOutOfRange | 5 << 8; // FIRN_STATUS_OUT_OF_RANGE with its detail

bool ElementEmitter::is_uniform(const IntExpr& expression) const {
  return lanes_.count == 1 || !expression.mentions(*lanes_.symbol);
}

kernel::Register ElementEmitter::emit(Value value, const Index& index) {
  std::vector<Cached>& known = cache_[key(value)];
  for (const Cached& cached : known)
    if (cached.index == index) return cached.value;
  auto leaf = leaves_.find(key(value));
  const Instruction& instruction = *value.def;
  if (leaf == leaves_.end() && (instruction.is(Opcode::Reduce) || instruction.is(Opcode::ReduceWindow))) {
    Registers values = instruction.is(Opcode::Reduce) ? emit_reduce(instruction, index)
                                                      : emit_reduce_window(instruction, index);
    for (int i = 0; i < instruction.num_results(); ++i)
      cache_[{value.def, i}].push_back({index, values[static_cast<size_t>(i)]});
    return values[static_cast<size_t>(value.index)];
  }
  kernel::Register result = leaf != leaves_.end() ? leaf->second(index, lanes_) : emit_uncached(value, index);
  cache_[key(value)].push_back({index, result});
  return result;
}

kernel::Register ElementEmitter::emit_uncached(Value value, const Index& index) {
  const Instruction& instruction = *value.def;
  const Attributes& attributes = instruction.attributes();
  if (is_elementwise(instruction.opcode())) return emit_elementwise(instruction, index);
  Index from = index;
  switch (instruction.opcode()) {
  case Opcode::Constant: return emit_constant(instruction, index);
  case Opcode::Iota: return emit_iota(instruction, index);
  case Opcode::Pad: return emit_pad(instruction, index);
  case Opcode::Concatenate: return emit_concatenate(instruction, index);
  case Opcode::Gather: return emit_gather(instruction, index);
  case Opcode::GatherElements: return emit_gather_elements(instruction, index);
  case Opcode::GatherND: return emit_gather_nd(instruction, index);
  case Opcode::DynamicSlice: return emit_dynamic_slice(instruction, index);
  case Opcode::BitcastConvert: return emit_bitcast(instruction, index);
  case Opcode::Composite:
  case Opcode::Fusion: return emit_region(instruction, value.index, index);
  case Opcode::Copy: return emit(instruction.operand(0), index);
  case Opcode::Dot: return emit_dot(instruction, index);
  case Opcode::Convolution: return emit_convolution(instruction, index);
  case Opcode::Parameter: {
    // An unbound parameter of a nested region stands for an operand of its owner.
    const Region& region = *instruction.parent();
    const auto& parameters = region.parameters();
    auto at = std::find(parameters.begin(), parameters.end(), &instruction);
    FIRN_CHECK(region.owner(), "unbound parameter in a fused region");
    return emit(region.owner()->operand(static_cast<int>(at - parameters.begin())), index);
  }
  case Opcode::BroadcastInDim: {
    const std::vector<int64_t>& dims = attributes.ints("dims");
    from.clear();
    for (size_t i = 0; i < dims.size(); ++i)
      from.push_back(instruction.operand(0).type().dims[i] == Dim(1) ? IntExpr(0)
                                                                     : index[static_cast<size_t>(dims[i])]);
    return emit_broadcast(instruction.operand(0), from);
  }
  case Opcode::Transpose: {
    const std::vector<int64_t>& permutation = attributes.ints("permutation");
    for (size_t i = 0; i < permutation.size(); ++i) from[static_cast<size_t>(permutation[i])] = index[i];
    return emit(instruction.operand(0), from);
  }
  case Opcode::Slice:
    for (size_t i = 0; i < from.size(); ++i)
      from[i] = index[i] * attributes.ints("strides")[i] + attributes.ints("starts")[i];
    return emit(instruction.operand(0), from);
  case Opcode::SymbolicSlice: {
    const Type& starts = attributes.type("starts");
    for (size_t i = 0; i < from.size(); ++i) from[i] = index[i] + starts.dims[i].extent;
    return emit(instruction.operand(0), from);
  }
  case Opcode::DimSize: {
    const std::vector<Dim>& dims = instruction.operand(0).type().dims;
    return index_lanes(builder_, dims[static_cast<size_t>(attributes.integer("dim"))].extent,
                       Lanes{nullptr, 0, lanes_.count});
  }
  case Opcode::Reverse:
    for (int64_t dim : attributes.ints("dims")) {
      size_t d = static_cast<size_t>(dim);
      from[d] = instruction.type().dims[d].extent - 1 - index[d];
    }
    return emit(instruction.operand(0), from);
  case Opcode::Reshape: {
    // Through the row-major position; dims that both shapes share at the front and at the back pass
    // unchanged.
    std::vector<Dim> to_dims = instruction.type().dims, from_dims = instruction.operand(0).type().dims;
    size_t front = 0, back = 0;
    size_t shared = std::min(to_dims.size(), from_dims.size());
    while (front < shared && to_dims[front] == from_dims[front]) ++front;
    while (back < shared - front &&
           to_dims[to_dims.size() - 1 - back] == from_dims[from_dims.size() - 1 - back])
      ++back;
    IntExpr position = 0;
    for (size_t i = front; i < to_dims.size() - back; ++i) position = position * to_dims[i].extent + index[i];
    from.assign(from_dims.size(), IntExpr(0));
    for (size_t i = 0; i < front; ++i) from[i] = index[i];
    for (size_t i = 0; i < back; ++i) from[from.size() - 1 - i] = index[index.size() - 1 - i];
    for (size_t i = from_dims.size() - back; i-- > front;) {
      IntExpr extent = at_least_one(from_dims[i].extent);
      from[i] = i == front ? position : floor_mod(position, extent);
      position = floor_div(position, extent);
    }
    return emit(instruction.operand(0), from);
  }
  default: FIRN_UNREACHABLE("no element code for " + std::string(opcode_name(instruction.opcode())));
  }
}

kernel::Register ElementEmitter::emit_broadcast(Value operand, const Index& from) {
  bool once = uniform_once_ && lanes_.count > 1 && is_elementwise(operand.def->opcode()) &&
              !leaves_.count(key(operand)) &&
              std::all_of(from.begin(), from.end(), [&](const IntExpr& at) { return is_uniform(at); });
  if (!once) return emit(operand, from);
  ElementEmitter scalar = make_inner({});
  scalar.uses_ = uses_;
  return builder_.splat(scalar.emit(operand, from), lanes_.count);
}

// (x * factor) * (1 + erf(x * scale)), which is gelu. The products with numbers cost nothing then.
kernel::Register ElementEmitter::emit_gate(const Instruction& product, const Index& index) {
  if (!product.is(Opcode::Multiply) || product.type().dtype != DType::F32) return {};
  for (int i : {0, 1}) {
    Value gated = product.operand(i), sum = product.operand(1 - i), erf = erf_beside_one(*sum.def);
    if (!erf || leaves_.count(key(gated)) || leaves_.count(key(sum)) || leaves_.count(key(erf))) continue;
    auto [x, scale] = scaled_value(erf.def->operand(0));
    auto [gate, factor] = scaled_value(gated);
    if (!x || !(x == gate) || leaves_.count(key(erf.def->operand(0)))) continue;
    KernelScalars scalars(builder_);
    kernel::Register value = emit(x, index);
    return scalars.mul(value, scalar_ops::math::one_plus_erf_short(scalars, value, scale, factor));
  }
  return {};
}

kernel::Register ElementEmitter::emit_narrow(const Instruction& instruction, const Index& index) {
  const Attributes& attributes = instruction.attributes();
  const int64_t zero = attributes.integer("zero", 0);
  // Two limits and their constants, a rounding, a conversion and a truncation; a sum with a constant.
  if (uses_) uses_->operations += zero == 0 ? 6 : 8;
  const bool is_bounded = magnitude_bound(instruction.operand(0)) <= kernel::kMaxBounded;
  return builder_.narrow(emit(instruction.operand(0), index), value_type(instruction.type().dtype).scalar,
                         attributes.integer("low"), attributes.integer("high"), zero, is_bounded);
}

kernel::Register ElementEmitter::emit_elementwise(const Instruction& instruction, const Index& index) {
  KernelScalars scalars(builder_);
  if (kernel::Register gate = emit_gate(instruction, index)) return gate;
  if (Value erf = erf_beside_one(instruction); erf && !leaves_.count(key(erf)))
    return scalar_ops::math::one_plus_erf(scalars, emit(erf.def->operand(0), index));
  auto is_leaf = [this](Value value) { return leaves_.count(key(value)) > 0; };
  if (instruction.is(Opcode::Narrow)) return emit_narrow(instruction, index);
  if (auto again = requantised_form(instruction, is_leaf)) return again->emit(scalars, emit(again->x, index));
  std::vector<kernel::Register> x;
  for (Value operand : instruction.operands()) x.push_back(emit(operand, index));
  DType dtype = instruction.operand(0).dtype();
  switch (instruction.opcode()) {
  case Opcode::Convert:
    return scalar_ops::convert(scalars, dtype, instruction.type().dtype, x[0],
                               instruction.attributes().flag("saturate"));
  case Opcode::Compare:
    return scalar_ops::compare(scalars, instruction.attributes().word("direction"), dtype, x[0], x[1]);
  case Opcode::Select: return builder_.select(x[0], x[1], x[2]);
  case Opcode::MultiplyAdd: return scalar_ops::rounded(scalars, dtype, scalars.fma(x[0], x[1], x[2]));
  case Opcode::Clamp:
    if (is_checked_clamp(instruction) && builder_.status() >= 0) {
      auto beyond = [&](kernel::Predicate predicate, kernel::Register bound) {
        return builder_.compare(OpKind::SCmp, predicate, x[1], bound);
      };
      builder_.fail_if(builder_.binary(OpKind::Or, beyond(kernel::Predicate::Lt, x[0]),
                                       beyond(kernel::Predicate::Gt, x[2])),
                       instruction.attributes().flag("branch") ? kWrongBranch : kernel::kOutOfRange);
    }
    return scalar_ops::clamp(scalars, dtype, x[0], x[1], x[2]);
  default: break;
  }
  if (x.size() == 1) return scalar_ops::unary(scalars, instruction.opcode(), dtype, x[0]);
  return scalar_ops::binary(scalars, instruction.opcode(), dtype, x[0], x[1]);
}

kernel::Register ElementEmitter::emit_constant(const Instruction& instruction, const Index&) {
  const Literal& literal = *instruction.literal();
  FIRN_CHECK(literal.num_elements() > 0 && plan::is_immediate(literal),
             "constant of many values needs a leaf");
  kernel::MachineType type = value_type(literal.dtype(), lanes_.count);
  if (is_small_float(literal.dtype())) {
    int mask = (1 << bit_width(literal.dtype())) - 1;
    return builder_.constant_int(type, static_cast<int>(literal.bytes()[0]) & mask);
  }
  if (kernel::is_float(type.scalar)) return builder_.constant(type, literal.get_double(0));
  return builder_.constant_int(type, literal.get_int(0));
}

kernel::Register ElementEmitter::emit_iota(const Instruction& instruction, const Index& index) {
  const IntExpr& at = index[static_cast<size_t>(instruction.attributes().integer("dim"))];
  if (uses_) uses_->offsets.push_back(at);
  KernelScalars scalars(builder_);
  return scalar_ops::convert(scalars, DType::I64, instruction.type().dtype, index_lanes(builder_, at, lanes_),
                             false);
}

kernel::Register ElementEmitter::emit_bitcast(const Instruction& instruction, const Index& index) {
  DType from = instruction.operand(0).dtype(), to = instruction.type().dtype;
  kernel::Register value = emit(instruction.operand(0), index);
  if (scalar_ops::is_narrow_float(from)) value = builder_.cast(OpKind::FTruncTo, value, memory_scalar(from));
  if (from == DType::Bool) value = builder_.cast(OpKind::ZExt, value, Scalar::I8);
  if (memory_scalar(from) != memory_scalar(to))
    value = builder_.cast(OpKind::Bitcast, value, memory_scalar(to));
  if (scalar_ops::is_narrow_float(to)) value = builder_.cast(OpKind::FExt, value, Scalar::F32);
  if (to == DType::Bool)
    value = builder_.compare(OpKind::UCmp, kernel::Predicate::Ne, value,
                             builder_.constant_int(builder_.type(value), 0));
  return value;
}

kernel::Register ElementEmitter::emit_region(const Instruction& instruction, int result, const Index& index) {
  return emit(instruction.region().results()[static_cast<size_t>(result)], index);
}

kernel::Register ElementEmitter::choose(kernel::Register condition,
                                        const std::function<kernel::Register()>& on_true,
                                        const std::function<kernel::Register()>& on_false) {
  auto branch = [this](const std::function<kernel::Register()>& make) {
    return [this, &make]() { return in_inner_block([&] { return Registers{make()}; }); };
  };
  return builder_.if_then_else(condition, branch(on_true), branch(on_false))[0];
}

kernel::Register ElementEmitter::lane_by_lane(Value value, const Index& index) {
  kernel::Register vector;
  for (int lane = 0; lane < lanes_.count; ++lane) {
    ElementEmitter single = make_inner({});
    Lanes at{lanes_.symbol, lanes_.first + lane, 1};
    Index here;
    for (const IntExpr& expression : index) here.push_back(at.at_first(expression));
    kernel::Register element = single.emit(value, here);
    vector = lane == 0 ? builder_.splat(element, lanes_.count) : builder_.insert(vector, element, lane);
  }
  return vector;
}

kernel::Register ElementEmitter::emit_pad(const Instruction& pad, const Index& index) {
  const Attributes& attributes = pad.attributes();
  Index from = index;
  kernel::Register inside;
  bool uniform = true;
  auto require = [&](bool known, size_t dim, kernel::Predicate predicate, const IntExpr& lhs,
                     const IntExpr& rhs) {
    if (known) return;
    use(index[dim]);
    uniform &= is_uniform(index[dim]);
    if (!uniform) return;
    kernel::Register holds =
        builder_.compare(OpKind::SCmp, predicate, builder_.index(lhs), builder_.index(rhs));
    inside = inside ? builder_.binary(OpKind::And, inside, holds) : holds;
  };
  for (size_t d = 0; d < index.size(); ++d) {
    int64_t low = attributes.ints("low")[d], period = attributes.ints("interior")[d] + 1;
    IntExpr span = (pad.operand(0).type().dims[d].extent - 1) * period + 1, shifted = index[d] - low;
    if (shifted.upper_bound() < 0 || (shifted - span).lower_bound() >= 0) return emit(pad.operand(1), {});
    bool above = shifted.lower_bound() >= 0, below = (shifted - span).upper_bound() < 0;
    if (!above) split_point(index[d], low, false);
    if (!below && span.is_constant()) split_point(index[d], low + span.value(), false);
    require(above, d, kernel::Predicate::Ge, shifted, 0);
    require(period == 1, d, kernel::Predicate::Eq, floor_mod(shifted, period), 0);
    require(below, d, kernel::Predicate::Lt, shifted, span);
    from[d] = floor_div(shifted, period);
  }
  if (!uniform) return lane_by_lane(result_of(pad), index);
  if (!inside) return emit(pad.operand(0), from);
  return choose(
      inside, [&] { return emit(pad.operand(0), from); }, [&] { return emit(pad.operand(1), {}); });
}

kernel::Register ElementEmitter::emit_concatenate(const Instruction& concatenate, const Index& index) {
  size_t dim = static_cast<size_t>(concatenate.attributes().integer("dim"));
  const IntExpr& at = index[dim];
  using From = std::function<kernel::Register(int, const IntExpr&)>;
  From from = [&](int operand, const IntExpr& start) -> kernel::Register {
    Value part = concatenate.operand(operand);
    IntExpr end = start + part.type().dims[dim].extent;
    Index inner = index;
    inner[dim] = at - start;
    if ((at - end).upper_bound() < 0 || operand + 1 == concatenate.num_operands()) return emit(part, inner);
    if ((at - end).lower_bound() >= 0) return from(operand + 1, end);
    if (end.is_constant()) split_point(at, end.value(), false);
    use(at);
    if (!is_uniform(at)) return lane_by_lane(result_of(concatenate), index);
    kernel::Register here =
        builder_.compare(OpKind::SCmp, kernel::Predicate::Lt, builder_.index(at), builder_.index(end));
    return choose(
        here, [&] { return emit(part, inner); }, [&] { return from(operand + 1, end); });
  };
  return from(0, 0);
}

// Leaves in memory.

RegionLeaves::RegionLeaves(KernelMaker& maker, const Instruction& instruction,
                           const std::function<bool(const Instruction&)>& computed_separately)
    : builder_(&maker.builder()) {
  const Region& region = instruction.region();
  for (int i = 0; i < instruction.num_operands(); ++i) {
    Value operand = instruction.operand(i);
    const Instruction& parameter = *region.parameters()[static_cast<size_t>(i)];
    bool needed = std::any_of(parameter.users().begin(), parameter.users().end(),
                              [&](const Instruction* user) { return !computed_separately(*user); });
    bool is_result = std::any_of(region.results().begin(), region.results().end(),
                                 [&](Value result) { return result.def == &parameter; });
    if (needed || is_result) entries_.push_back({region.parameter(i), operand.type(), maker.read(operand)});
  }
  add_constants(maker, region);
}

RegionLeaves RegionLeaves::of_operands(KernelMaker& maker, const Instruction& instruction) {
  RegionLeaves leaves(maker);
  for (Value operand : instruction.operands()) {
    bool splat = operand.def->is(Opcode::Constant) && operand.def->literal()->num_elements() > 0 &&
                 plan::is_immediate(*operand.def->literal());
    if (!splat) leaves.entries_.push_back({operand, operand.type(), maker.read(operand)});
  }
  return leaves;
}

void RegionLeaves::add_constants(KernelMaker& maker, const Region& region) {
  for (const auto& inner : region.instructions()) {
    if (inner->is(Opcode::Constant) && inner->has_uses() && inner->literal()->num_elements() > 0 &&
        !plan::is_immediate(*inner->literal()))
      entries_.push_back({inner->result(), inner->type(), maker.read(inner->result())});
    for (int i = 0; i < inner->num_regions(); ++i) add_constants(maker, inner->region(i));
  }
}

namespace {

constexpr int64_t kByteValues = 256;

bool is_byte_table(const Type& type) {
  return type.rank() == 1 && type.is_static() && type.dim(0) == kByteValues && type.layout.is_plain() &&
         bit_width(type.dtype) == 8 && is_integer(type.dtype);
}

} // namespace

void RegionLeaves::bind_to(ElementEmitter& emitter) const {
  for (const Entry& entry : entries_) {
    if (is_byte_table(entry.type))
      emitter.bind_table(entry.value, [builder = builder_, entry](kernel::Register bytes) {
        kernel::Register offsets = builder->cast(OpKind::ZExt, bytes, kernel::Scalar::I32);
        return builder->gather(builder->type(bytes), entry.buffer, 0, offsets);
      });
    emitter.bind_memory(entry.value, entry.type, entry.buffer);
    emitter.bind(entry.value, [builder = builder_, entry](const Index& index, const Lanes& lanes) {
      return load_element(*builder, entry.buffer, entry.type, index, lanes);
    });
  }
}

void RegionLeaves::bind_recording(kernel::Builder& builder, ElementEmitter& emitter,
                                  std::vector<IntExpr>* record) const {
  for (const Entry& entry : entries_) {
    if (is_byte_table(entry.type))
      emitter.bind_table(entry.value, [&builder](kernel::Register bytes) {
        return builder.emit(OpKind::Constant, {}, builder.type(bytes));
      });
    emitter.bind_memory(entry.value, entry.type, entry.buffer);
    emitter.bind(entry.value, [&builder, record, entry](const Index& index, const Lanes& lanes) {
      record->push_back(entry.type.offset_of(index));
      // No constant, so that what it feeds does not fold away.
      kernel::MachineType type = value_type(entry.type.dtype, lanes.count);
      return builder.emit(OpKind::Constant, {}, type);
    });
  }
}

void RegionLeaves::remove(Value value) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.value == value; });
}

} // namespace firn::lower
