// The epilogue of a contraction: the bias from which sums start, the code behind them, and their store.
#include "compiler/lower/contraction/contraction_fusion.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/kernel_maker.h"

#include <algorithm>

namespace firn::lower {

using kernel::Builder;

Index TensorPart::within(const Index& index) const {
  Index relative = index;
  for (size_t i = 0; i < relative.size(); ++i) relative[i] = relative[i] - first[i];
  return relative;
}

ContractionBinding make_binding(const Instruction& instruction, const plan::KernelRoot& root) {
  ContractionBinding binding;
  binding.result_type = instruction.type();
  binding.sum_dtype = root.op->type().dtype;
  return binding;
}

namespace {

// The lanes of a vector from `index[lane_dim]` on: that index becomes a symbol of its own.
Lanes make_lanes(Index& index, int lane_dim, int count) {
  if (count == 1) return {};
  IntExpr first = index[static_cast<size_t>(lane_dim)];
  auto symbol =
      std::make_shared<Symbol>(Symbol{"lane", first.lower_bound(), first.upper_bound() + count - 1});
  index[static_cast<size_t>(lane_dim)] = IntExpr::symbol(symbol);
  return {symbol, first, count};
}

// The addition from which sums may start if it comes first in the epilogue: of a value per channel to a
// convolution, of any operand to a dot's integers. Null if there is none.
const Instruction* find_bias(const Instruction& contraction) {
  const bool is_dot = contraction.is(Opcode::Dot);
  if (!(contraction.is(Opcode::Convolution) || is_dot) || contraction.users().size() != 1 ||
      contraction.num_uses(0) != 1)
    return nullptr;
  const Instruction& user = *contraction.users()[0];
  if (!user.is(Opcode::Add)) return nullptr;
  const Instruction& bias = *user.operand(user.operand(0).def == &contraction ? 1 : 0).def;
  if (is_dot) {
    const Instruction& leaf = bias.is(Opcode::BroadcastInDim) ? *bias.operand(0).def : bias;
    return leaf.is(Opcode::Parameter) || leaf.is(Opcode::Constant) ? &user : nullptr;
  }
  bool per_channel =
      bias.is(Opcode::BroadcastInDim) && bias.operand(0).type().rank() == 1 &&
      bias.attributes().ints("dims") == std::vector<int64_t>{1} &&
      (bias.operand(0).def->is(Opcode::Parameter) || bias.operand(0).def->is(Opcode::Constant));
  return per_channel ? &user : nullptr;
}

} // namespace

void bind_epilogue(KernelMaker& maker, const Instruction& instruction, const plan::KernelRoot& root,
                   ContractionBinding& binding, Bias bias) {
  if (!instruction.is(Opcode::Fusion)) return;
  auto leaves = std::make_shared<RegionLeaves>(maker, instruction,
                                               [&](const Instruction& user) { return &user == root.op; });
  const Region& region = instruction.region();
  Value sum = result_of(*root.op);
  auto bind_leaves = [leaves](Builder& b, ElementEmitter& emitter, int valid) {
    for (const RegionLeaves::Entry& entry : leaves->entries())
      emitter.bind(entry.value, [&b, entry, valid](const Index& at, const Lanes& along) {
        return load_valid_lanes(b, entry.buffer, entry.type, at, along, valid);
      });
  };
  bool is_exact = binding.sum_dtype == DType::F32 || binding.sum_dtype == DType::I32;
  bool in_accumulators = bias == Bias::InAccumulators && !binding.polyphase && is_exact;
  if (const Instruction* addition = in_accumulators ? find_bias(*root.op) : nullptr) {
    Value added = addition->operand(addition->operand(0) == sum ? 1 : 0);
    sum = result_of(*addition);
    binding.initial = [bind_leaves, added](Builder& b, Index index, int lane_dim, int count) {
      ElementEmitter emitter(b, make_lanes(index, lane_dim, count));
      bind_leaves(b, emitter, count);
      return emitter.emit(added, index);
    };
  }
  binding.epilogue = [bind_leaves, sum, &region](Builder& b, const Index& index, const Lanes& lanes,
                                                 int valid, kernel::Register accumulators) {
    ElementEmitter emitter(b, lanes);
    bind_leaves(b, emitter, valid);
    emitter.bind(sum, [accumulators](const Index&, const Lanes&) { return accumulators; });
    return emitter.emit(region.results()[0], index);
  };
}

kernel::Register initial_of_channels(Builder& b, const ContractionBinding& binding, const IntExpr& channel,
                                     int lanes) {
  if (!binding.initial) return {};
  Index index(static_cast<size_t>(binding.result_type.rank()), IntExpr(0));
  index[1] = channel;
  return binding.initial(b, std::move(index), 1, lanes);
}

void bind_result(KernelMaker& maker, const Instruction& instruction, const plan::KernelRoot& root,
                 ContractionBinding& binding, Bias bias) {
  bind_epilogue(maker, instruction, root, binding, bias);
  if (binding.totals && binding.totals->replace_result) return;
  binding.result = maker.write(result_of(instruction));
}

namespace {

// Runs the epilogue for an index in the result's own dims.
kernel::Register finish_result_lanes(Builder& b, const ContractionBinding& binding, Index index, int lane_dim,
                                     int count, int valid, kernel::Register accumulators) {
  Lanes lanes = make_lanes(index, lane_dim, count);
  if (binding.sum_dtype == DType::F16 || binding.sum_dtype == DType::BF16) {
    kernel::Scalar narrow = memory_scalar(binding.sum_dtype);
    accumulators = b.cast(kernel::OpKind::FExt, b.cast(kernel::OpKind::FTruncTo, accumulators, narrow),
                          kernel::Scalar::F32);
  }
  kernel::Register value =
      binding.epilogue ? binding.epilogue(b, index, lanes, valid, accumulators) : accumulators;
  if (binding.result < 0) return value;
  if (binding.result_part) index = binding.result_part->within(index);
  const Type& type = binding.result_part ? binding.result_part->type : binding.result_type;
  // Unused lanes of a block may be written; beyond a plain row, or a group of channels, other elements begin.
  bool whole = valid >= count || (!type.layout.blocks.empty() && !binding.shares_vectors);
  if (whole) store_element(b, binding.result, type, index, lanes, value);
  for (int lane = 0; lane < valid && !whole; ++lane) {
    Index at = index;
    at[static_cast<size_t>(lane_dim)] = lanes.first + lane;
    store_element(b, binding.result, type, at, Lanes{}, b.extract(value, lane));
  }
  return value;
}

} // namespace

namespace {

// Runs `store` if a phase's place is inside the result.
void store_inside(Builder& b, const ConvolutionPhases& phases, const Index& result_index,
                  const std::function<void()>& store) {
  kernel::Register inside;
  for (size_t d = 0; d < phases.dims.size(); ++d) {
    const IntExpr& at = result_index[d + 2];
    int64_t extent = phases.dims[d].extent;
    if (at.lower_bound() >= 0 && at.upper_bound() < extent) continue;
    if (at.upper_bound() < 0 || at.lower_bound() >= extent) return;
    // An unsigned comparison tests both ends.
    kernel::Register here = b.compare(kernel::OpKind::UCmp, kernel::Predicate::Lt, b.index(at),
                                      b.constant_int({kernel::Scalar::Index, 1}, extent));
    inside = inside ? b.binary(kernel::OpKind::And, inside, here) : here;
  }
  if (!inside) return store();
  b.if_then_else(
      inside,
      [&] {
        store();
        return std::vector<kernel::Register>{};
      },
      [] { return std::vector<kernel::Register>{}; });
}

} // namespace

kernel::Register finish_lanes(Builder& b, const ContractionBinding& binding, Index index, int lane_dim,
                              int count, int valid, kernel::Register accumulators) {
  if (!binding.polyphase)
    return finish_result_lanes(b, binding, std::move(index), lane_dim, count, valid, accumulators);
  Index at = binding.polyphase->result_index(index);
  store_inside(b, binding.polyphase->phases(), at,
               [&] { finish_result_lanes(b, binding, at, lane_dim, count, valid, accumulators); });
  return {};
}

} // namespace firn::lower
