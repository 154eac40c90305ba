// Dots and convolutions inside the element emitter, as plain loops around one multiply-add, for those that
// the register-tile emitter declines (integers, f64, odd groups). Vectors run along the result's innermost
// dim if strides permit.
#include "compiler/lower/element/element_emitter.h"

#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/machine_types.h"

#include <algorithm>

namespace firn::lower {

using kernel::OpKind;

namespace {

// Narrow floats are summed in f32.
DType sum_dtype(DType result) {
  return scalar_ops::is_narrow_float(result) ? DType::F32 : result;
}

bool contains(const std::vector<int64_t>& dims, size_t dim) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) != dims.end();
}

} // namespace

kernel::Register ElementEmitter::multiply_add(Value lhs, const Index& at_lhs, Value rhs, const Index& at_rhs,
                                              DType dtype, kernel::Register sum) {
  KernelScalars scalars(builder_);
  kernel::Register a = scalar_ops::convert(scalars, lhs.dtype(), dtype, emit(lhs, at_lhs), false);
  kernel::Register c = scalar_ops::convert(scalars, rhs.dtype(), dtype, emit(rhs, at_rhs), false);
  if (is_float(dtype)) return builder_.fma(a, c, sum);
  if (dtype == DType::Bool) return scalars.ior(sum, scalars.iand(a, c));
  return scalars.iadd(sum, scalars.imul(a, c));
}

kernel::Register ElementEmitter::dot_in_vectors(const Instruction& dot, const Index& at_lhs,
                                                const Index& at_rhs, DType dtype, kernel::Register sum) {
  Value lhs = dot.operand(0), rhs = dot.operand(1);
  const IntExpr& extent = lhs.type().dims.back().extent;
  int lanes = lanes_along(extent, code_.lanes);
  IntExpr vectors = floor_div(extent, lanes);
  // Several sums side by side hide the latency of the additions.
  int64_t chains = plan::accumulators_of(code_, dot, plan::ReductionWalk::Vectors, vectors.upper_bound());
  auto symbol =
      std::make_shared<const Symbol>(Symbol{"k", 0, std::max<int64_t>(0, extent.upper_bound() - 1)});
  auto add = [&](const IntExpr& first, int count, kernel::Register to) {
    ElementEmitter inner = make_inner(Lanes{count > 1 ? symbol : nullptr, first, count});
    Index l = at_lhs, r = at_rhs;
    l.back() = r.back() = count > 1 ? IntExpr::symbol(symbol) : first;
    return inner.multiply_add(lhs, l, rhs, r, dtype, to);
  };
  Registers accumulators(static_cast<size_t>(chains), builder_.constant(value_type(dtype, lanes), 0));
  IntExpr rounds = floor_div(vectors, chains);
  accumulators = builder_.loop_carried(0, rounds, 1, accumulators, [&](const IntExpr& v, Registers carried) {
    for (int64_t c = 0; c < chains; ++c) {
      kernel::Register& chain = carried[static_cast<size_t>(c)];
      chain = add((v * chains + c) * lanes, lanes, chain);
    }
    return carried;
  });
  each_of_rest(
      rounds * chains, vectors,
      [&](const IntExpr& v, const Registers& in) { return Registers{add(v * lanes, lanes, in[0])}; },
      accumulators[0]);
  for (size_t c = 1; c < accumulators.size(); ++c)
    accumulators[0] = builder_.binary(OpKind::FAdd, accumulators[0], accumulators[c]);
  sum = builder_.binary(OpKind::FAdd, sum, builder_.reduce(OpKind::ReduceFAdd, accumulators[0]));
  return builder_.loop_carried(vectors * lanes, extent, 1, {sum}, [&](const IntExpr& k, const Registers& in) {
    return Registers{add(k, 1, in[0])};
  })[0];
}

kernel::Register ElementEmitter::emit_dot(const Instruction& dot, const Index& index) {
  Value lhs = dot.operand(0), rhs = dot.operand(1);
  const Attributes& attributes = dot.attributes();
  const auto &lhs_batch = attributes.ints("lhs_batch"), &rhs_batch = attributes.ints("rhs_batch");
  const auto &lhs_contract = attributes.ints("lhs_contract"), &rhs_contract = attributes.ints("rhs_contract");
  if (uses_) uses_->reduces = true;
  Index at_lhs(lhs.type().dims.size(), IntExpr(0)), at_rhs(rhs.type().dims.size(), IntExpr(0));
  size_t next = 0;
  for (size_t i = 0; i < lhs_batch.size(); ++i, ++next) {
    at_lhs[static_cast<size_t>(lhs_batch[i])] = index[next];
    at_rhs[static_cast<size_t>(rhs_batch[i])] = index[next];
  }
  for (size_t d = 0; d < at_lhs.size(); ++d)
    if (!contains(lhs_batch, d) && !contains(lhs_contract, d)) at_lhs[d] = index[next++];
  for (size_t d = 0; d < at_rhs.size(); ++d)
    if (!contains(rhs_batch, d) && !contains(rhs_contract, d)) at_rhs[d] = index[next++];

  DType dtype = sum_dtype(dot.type().dtype);
  kernel::MachineType type = value_type(dtype, lanes_.count);
  kernel::Register zero =
      kernel::is_float(type.scalar) ? builder_.constant(type, 0) : builder_.constant_int(type, 0);
  auto ends_in_last = [](Value operand, const std::vector<int64_t>& contract) {
    return !contract.empty() && contract.back() == operand.rank() - 1 && operand.type().layout.is_plain();
  };
  bool in_vectors = lanes_.count == 1 && !uses_ && code_.lanes > 1 && is_float(dtype) &&
                    ends_in_last(lhs, lhs_contract) && ends_in_last(rhs, rhs_contract);
  std::function<Registers(size_t, Registers)> nest = [&](size_t at, Registers accumulators) -> Registers {
    if (at == lhs_contract.size()) return {multiply_add(lhs, at_lhs, rhs, at_rhs, dtype, accumulators[0])};
    if (in_vectors && at + 1 == lhs_contract.size())
      return {dot_in_vectors(dot, at_lhs, at_rhs, dtype, accumulators[0])};
    size_t l = static_cast<size_t>(lhs_contract[at]), r = static_cast<size_t>(rhs_contract[at]);
    const IntExpr& extent = lhs.type().dims[l].extent;
    return builder_.loop_carried(0, extent, 1, accumulators, [&](const IntExpr& iv, const Registers& inner) {
      at_lhs[l] = iv;
      at_rhs[r] = iv;
      return in_inner_block([&] { return nest(at + 1, inner); });
    });
  };
  kernel::Register sum = nest(0, {zero})[0];
  KernelScalars scalars(builder_);
  return scalar_ops::rounded(scalars, dot.type().dtype, sum);
}

kernel::Register ElementEmitter::emit_convolution(const Instruction& convolution, const Index& index) {
  Value input = convolution.operand(0), filter = convolution.operand(1);
  const Window& window = convolution.attributes().window();
  int64_t groups = convolution.attributes().integer("groups", 1);
  int64_t per_group = filter.dim(1), outputs = filter.dim(0) / groups;
  if (uses_) uses_->reduces = true;
  // Per spatial dim: filter element first + step * j and input position base + dilation * j, for j in [lower,
  // upper).
  struct Walk {
    IntExpr first, base, lower, upper;
    int64_t step, dilation;
  };
  std::vector<Walk> walks;
  bool uniform = true;
  for (size_t s = 0; s < window.dims.size(); ++s) {
    const WindowDim& dim = window.dims[s];
    const IntExpr& extent = input.type().dims[s + 2].extent;
    IntExpr start = index[s + 2] * dim.stride - dim.pad_low;
    // If there are holes between input elements, only every input_dilation-th filter element meets one.
    IntExpr first = floor_mod(start * -1, dim.input_dilation);
    Walk walk{first,
              floor_div(start + first, dim.input_dilation),
              0,
              ceil_div(IntExpr(dim.size) - first, dim.input_dilation),
              dim.input_dilation,
              dim.dilation};
    int64_t reach = (dim.size - 1) * dim.dilation;
    bool inside =
        dim.input_dilation == 1 && start.lower_bound() >= 0 && (start + reach - extent).upper_bound() < 0;
    if (!inside) {
      split_point(start, 0, true);
      if (extent.is_constant()) split_point(start, extent.value() - reach, true);
      use(index[s + 2]);
      uniform &= is_uniform(index[s + 2]);
      walk.lower = max(0, ceil_div(walk.base * -1, dim.dilation));
      walk.upper = min(walk.upper, floor_div(extent - 1 - walk.base, dim.dilation) + 1);
    }
    walks.push_back(walk);
  }
  if (!uniform) return lane_by_lane(result_of(convolution), index);
  Index at_input(window.dims.size() + 2, IntExpr(0)), at_filter = at_input;
  at_input[0] = index[0];
  at_filter[0] = index[1];
  IntExpr first_channel = groups == 1 ? IntExpr(0) : floor_div(index[1], outputs) * per_group;

  DType dtype = sum_dtype(convolution.type().dtype);
  kernel::MachineType type = value_type(dtype, lanes_.count);
  kernel::Register zero =
      kernel::is_float(type.scalar) ? builder_.constant(type, 0) : builder_.constant_int(type, 0);
  std::function<Registers(size_t, Registers)> nest = [&](size_t at, Registers accumulators) -> Registers {
    if (at == walks.size()) return {multiply_add(input, at_input, filter, at_filter, dtype, accumulators[0])};
    const Walk& walk = walks[at];
    return builder_.loop_carried(walk.lower, walk.upper, 1, accumulators,
                                 [&](const IntExpr& j, const Registers& inner) {
                                   at_filter[at + 2] = walk.first + j * walk.step;
                                   at_input[at + 2] = walk.base + j * walk.dilation;
                                   return in_inner_block([&] { return nest(at + 1, inner); });
                                 });
  };
  Registers accumulators =
      builder_.loop_carried(0, per_group, 1, {zero}, [&](const IntExpr& c, const Registers& inner) {
        at_filter[1] = c;
        at_input[1] = first_channel + c;
        return in_inner_block([&] { return nest(0, inner); });
      });
  KernelScalars scalars(builder_);
  return scalar_ops::rounded(scalars, convolution.type().dtype, accumulators[0]);
}

} // namespace firn::lower
