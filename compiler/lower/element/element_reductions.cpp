// Reductions inside the element emitter: the reduced dims become loops around the operands' elements. With
// lanes, every lane reduces for its own result; without, a sum over elements that lie together is made in
// vectors and their lanes are added at the end. The order of additions depends on shapes alone.
#include "compiler/lower/element/element_emitter.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/producers.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/machine_types.h"

#include <algorithm>

namespace firn::lower {
namespace {

// Whether one of the dims lies in blocks that are all full.
bool has_whole_blocks(const Type& type, const std::vector<int>& dims) {
  if (type.layout.blocks.size() != 1) return false;
  const Layout::Block& block = type.layout.blocks[0];
  return std::find(dims.begin(), dims.end(), block.dim) != dims.end() &&
         type.dim(block.dim) % block.size == 0;
}

bool has_one_element(const Type& type) {
  return std::all_of(type.dims.begin(), type.dims.end(), [](const Dim& dim) { return dim == Dim(1); });
}

const IntExpr& extent_of(Value value, int dim) {
  return value.type().dims[static_cast<size_t>(dim)].extent;
}

} // namespace

void ElementEmitter::each_of_rest(
    const IntExpr& first, const IntExpr& end,
    const std::function<Registers(const IntExpr& at, const Registers& carried)>& step,
    kernel::Register& carried) {
  if (!first.is_constant() || !end.is_constant()) {
    carried = builder_.loop_carried(first, end, 1, {carried}, step)[0];
    return;
  }
  for (int64_t at = first.value(); at < end.value(); ++at) carried = step(at, {carried})[0];
}

ElementEmitter::Registers ElementEmitter::initial_values(const Instruction& reduce) {
  Registers values;
  int count = reduce.num_operands() / 2;
  for (int i = 0; i < count; ++i) values.push_back(emit(reduce.operand(count + i), {}));
  return values;
}

ElementEmitter::Registers ElementEmitter::combine(const Instruction& reduce, const Registers& accumulators,
                                                  const Registers& elements, int lanes) {
  DType dtype = reduce.operand(0).dtype();
  if (std::optional<Opcode> op = simple_reducer(reduce)) {
    // Sums of narrow floats are kept in f32 until the end.
    KernelScalars scalars(builder_);
    DType computed = scalar_ops::is_narrow_float(dtype) ? DType::F32 : dtype;
    return {scalar_ops::binary(scalars, *op, computed, accumulators[0], elements[0])};
  }
  Lanes shape;
  shape.count = lanes;
  ElementEmitter inner(builder_, shape);
  const Region& region = reduce.region();
  for (size_t i = 0; i < accumulators.size(); ++i) {
    inner.bind(region.parameter(static_cast<int>(i)),
               [v = accumulators[i]](const Index&, const Lanes&) { return v; });
    inner.bind(region.parameter(static_cast<int>(i + accumulators.size())),
               [v = elements[i]](const Index&, const Lanes&) { return v; });
  }
  Registers results;
  for (Value result : region.results()) results.push_back(inner.emit(result, {}));
  return results;
}

kernel::Register ElementEmitter::combine_lanes(const Instruction& reduce, kernel::Register vector) {
  int lanes = builder_.type(vector).lanes;
  kernel::Register odd; // sum of lanes that found no partner
  while (lanes > 1) {
    int half = lanes / 2;
    auto part = [&](int first) {
      if (half == 1) return builder_.extract(vector, first);
      std::vector<int64_t> order;
      for (int i = 0; i < half; ++i) order.push_back(first + i);
      return builder_.shuffle(vector, vector, std::move(order));
    };
    if (lanes % 2 == 1) {
      kernel::Register last = builder_.extract(vector, lanes - 1);
      odd = odd ? combine(reduce, {odd}, {last}, 1)[0] : last;
    }
    vector = combine(reduce, {part(0)}, {part(half)}, half)[0];
    lanes = half;
  }
  return odd ? combine(reduce, {vector}, {odd}, 1)[0] : vector;
}

bool ElementEmitter::walks_as_one(Value value, const Type& like) const {
  auto past_if = [](bool holds) { return holds ? Walk::Past : Walk::Stop; };
  return walk_producers(value, [&](Value part, int) {
    const Instruction& instruction = *part.def;
    if (leaves_.count(key(part)))
      return past_if(part.type().dims == like.dims && part.type().layout.is_plain());
    if (instruction.is(Opcode::Constant)) return Walk::Past;
    if (instruction.is(Opcode::BroadcastInDim))
      return past_if(has_one_element(instruction.operand(0).type()));
    return is_elementwise(instruction.opcode()) ? Walk::Into : Walk::Stop;
  });
}

// Sums over `dims` (the innermost last; adjacent ones that walk as one are merged first) in vectors along the
// last.
kernel::Register ElementEmitter::reduce_in_vectors(const Instruction& reduce, const Index& from,
                                                   const std::vector<int>& dims) {
  Value operand = reduce.operand(0);
  DType dtype = operand.dtype();
  // The trailing reduced dims that are one stretch of memory.
  size_t merged = 1;
  if (walks_as_one(operand, operand.type()))
    while (merged < dims.size() && dims[dims.size() - merged - 1] + 1 == dims[dims.size() - merged]) ++merged;
  IntExpr extent = 1;
  for (size_t i = dims.size() - merged; i < dims.size(); ++i) extent = extent * extent_of(operand, dims[i]);

  int lanes = lanes_along(extent, code_.lanes);
  IntExpr vectors = floor_div(extent, lanes);
  // Several sums side by side hide the latency of the additions.
  int64_t chains = plan::accumulators_of(code_, reduce, plan::ReductionWalk::Vectors, vectors.upper_bound());
  LiteralRef identity = reducer_identity(*simple_reducer(reduce), dtype);
  kernel::MachineType type = value_type(dtype, lanes);
  kernel::Register start = kernel::is_float(type.scalar) ? builder_.constant(type, identity->get_double(0))
                                                         : builder_.constant_int(type, identity->get_int(0));
  SymbolRef symbol =
      std::make_shared<const Symbol>(Symbol{"r", 0, std::max<int64_t>(0, extent.upper_bound() - 1)});
  auto element = [&](Index at, const IntExpr& first, int count) {
    Lanes span{symbol, first, count};
    ElementEmitter inner = make_inner(span);
    inner.uniform_once_ = uniform_once_;
    IntExpr position = symbol->upper == 0 ? IntExpr(0) : IntExpr::symbol(symbol);
    for (size_t i = dims.size(); i-- > dims.size() - merged;) {
      size_t d = static_cast<size_t>(dims[i]);
      IntExpr size = at_least_one(extent_of(operand, dims[i]));
      at[d] = i == dims.size() - merged ? position : floor_mod(position, size);
      position = floor_div(position, size);
    }
    return inner.emit(operand, at);
  };
  // Sums one stretch of memory: whole vectors round robin into the sums, then the rest.
  auto stretch = [&](const Index& at, Registers accumulators) {
    IntExpr rounds = floor_div(vectors, chains);
    accumulators =
        builder_.loop_carried(0, rounds, 1, accumulators, [&](const IntExpr& v, const Registers& carried) {
          Registers next;
          for (int64_t c = 0; c < chains; ++c)
            next.push_back(combine(reduce, {carried[static_cast<size_t>(c)]},
                                   {element(at, (v * chains + c) * lanes, lanes)}, lanes)[0]);
          next.push_back(carried.back());
          return next;
        });
    each_of_rest(
        rounds * chains, vectors,
        [&](const IntExpr& v, const Registers& carried) {
          return combine(reduce, carried, {element(at, v * lanes, lanes)}, lanes);
        },
        accumulators[0]);
    auto add_lanes = [&](const IntExpr& first, int width) {
      kernel::Register tail = combine_lanes(reduce, element(at, first, width));
      return combine(reduce, {accumulators.back()}, {tail}, 1)[0];
    };
    if (extent.is_constant()) {
      auto rest = static_cast<int>(extent.value() % lanes);
      if (rest > 0) accumulators.back() = add_lanes(vectors * lanes, rest);
      return accumulators;
    }
    // The rest after whole vectors: half a vector, a quarter, and so on.
    for (int width = lanes / 2; width >= 1; width /= 2)
      accumulators.back() = builder_.loop_carried(
          floor_div(extent, 2 * width) * (2 * width), floor_div(extent, width) * width, width,
          {accumulators.back()}, [&](const IntExpr& first, const Registers& carried) {
            kernel::Register tail = combine_lanes(reduce, element(at, first, width));
            return combine(reduce, carried, {tail}, 1);
          })[0];
    return accumulators;
  };
  Registers accumulators(static_cast<size_t>(chains), start);
  accumulators.push_back(kernel::is_float(type.scalar)
                             ? builder_.constant(type.with_lanes(1), identity->get_double(0))
                             : builder_.constant_int(type.with_lanes(1), identity->get_int(0)));
  std::function<Registers(size_t, Index, Registers)> nest = [&](size_t at, Index index,
                                                                Registers carried) -> Registers {
    if (at == dims.size() - merged) return stretch(index, carried);
    return builder_.loop_carried(0, extent_of(operand, dims[at]), 1, carried,
                                 [&](const IntExpr& iv, const Registers& inner) {
                                   index[static_cast<size_t>(dims[at])] = iv;
                                   return nest(at + 1, index, inner);
                                 });
  };
  accumulators = nest(0, from, accumulators);
  for (int64_t c = 1; c < chains; ++c)
    accumulators[0] = combine(reduce, {accumulators[0]}, {accumulators[static_cast<size_t>(c)]}, lanes)[0];
  kernel::Register total = combine_lanes(reduce, accumulators[0]);
  return combine(reduce, {total}, {accumulators.back()}, 1)[0];
}

// Loops over `dims`, every lane for its own result. Simple reducers get several partial results, taken round
// robin along the innermost dim, to hide the latency of combining.
ElementEmitter::Registers ElementEmitter::reduce_in_loops(const Instruction& reduce, const Index& from,
                                                          const std::vector<int>& dims, Registers initial) {
  size_t count = initial.size();
  IntExpr innermost = dims.empty() ? IntExpr(1) : extent_of(reduce.operand(0), dims.back());
  bool splits = count == 1 && simple_reducer(reduce) && is_float(reduce.operand(0).dtype());
  int64_t chains =
      splits ? plan::accumulators_of(code_, reduce, plan::ReductionWalk::Elements, innermost.upper_bound())
             : 1;
  auto step = [&](Index here, const IntExpr& at, Registers carried, size_t chain) {
    if (!dims.empty()) here[static_cast<size_t>(dims.back())] = at;
    Registers elements, accumulators(carried.begin() + static_cast<std::ptrdiff_t>(chain * count),
                                     carried.begin() + static_cast<std::ptrdiff_t>((chain + 1) * count));
    for (size_t i = 0; i < count; ++i) elements.push_back(emit(reduce.operand(static_cast<int>(i)), here));
    Registers next = combine(reduce, accumulators, elements, lanes_.count);
    std::copy(next.begin(), next.end(), carried.begin() + static_cast<std::ptrdiff_t>(chain * count));
    return carried;
  };
  auto along_innermost = [&](const Index& here, Registers carried) {
    IntExpr rounds = floor_div(innermost, chains);
    carried = builder_.loop_carried(0, rounds, 1, carried, [&](const IntExpr& iv, Registers inner) {
      return in_inner_block([&] {
        for (int64_t c = 0; c < chains; ++c)
          inner = step(here, iv * chains + c, std::move(inner), static_cast<size_t>(c));
        return inner;
      });
    });
    if (!innermost.is_constant())
      return builder_.loop_carried(
          rounds * chains, innermost, 1, carried, [&](const IntExpr& iv, Registers inner) {
            return in_inner_block([&] { return step(here, iv, std::move(inner), 0); });
          });
    for (int64_t i = (rounds * chains).value(); i < innermost.value(); ++i)
      carried = step(here, i, std::move(carried), static_cast<size_t>(i - (rounds * chains).value()));
    return carried;
  };
  std::function<Registers(size_t, Index, Registers)> nest = [&](size_t at, Index here,
                                                                Registers carried) -> Registers {
    if (at + 1 >= dims.size()) return along_innermost(here, std::move(carried));
    return builder_.loop_carried(0, extent_of(reduce.operand(0), dims[at]), 1, carried,
                                 [&](const IntExpr& iv, const Registers& inner) {
                                   here[static_cast<size_t>(dims[at])] = iv;
                                   return in_inner_block([&] { return nest(at + 1, here, inner); });
                                 });
  };
  if (splits && chains > 1) {
    LiteralRef identity = reducer_identity(*simple_reducer(reduce), reduce.operand(0).dtype());
    kernel::MachineType type = value_type(reduce.operand(0).dtype(), lanes_.count);
    initial.resize(static_cast<size_t>(chains), builder_.constant(type, identity->get_double(0)));
  }
  Registers accumulators = nest(0, from, std::move(initial));
  for (size_t c = 1; c < static_cast<size_t>(chains); ++c)
    accumulators[0] = combine(reduce, {accumulators[0]}, {accumulators[c]}, lanes_.count)[0];
  accumulators.resize(count);
  return accumulators;
}

// Sums over `dims`, one of which lies in whole blocks that are vectors each. Along the innermost other dim
// the vectors go round robin into several sums.
kernel::Register ElementEmitter::reduce_in_blocks(const Instruction& reduce, const Index& from,
                                                  std::vector<int> dims) {
  Value operand = reduce.operand(0);
  const Layout::Block& block = operand.type().layout.blocks[0];
  int lanes = static_cast<int>(block.size);
  int64_t blocks = operand.dim(block.dim) / block.size;
  std::erase(dims, block.dim);
  IntExpr innermost = dims.empty() ? IntExpr(1) : extent_of(operand, dims.back());
  int64_t chains = plan::accumulators_of(code_, reduce, plan::ReductionWalk::Blocks, innermost.upper_bound());
  LiteralRef identity = reducer_identity(*simple_reducer(reduce), operand.dtype());
  kernel::MachineType type = value_type(operand.dtype(), lanes);
  Registers accumulators(static_cast<size_t>(chains),
                         kernel::is_float(type.scalar) ? builder_.constant(type, identity->get_double(0))
                                                       : builder_.constant_int(type, identity->get_int(0)));
  SymbolRef lane = std::make_shared<const Symbol>(Symbol{"r", 0, block.size - 1});
  auto add = [&](Index at, const IntExpr& position, kernel::Register sum) {
    if (!dims.empty()) at[static_cast<size_t>(dims.back())] = position;
    ElementEmitter inner = make_inner(Lanes{lane, 0, lanes});
    return combine(reduce, {sum}, {inner.emit(operand, at)}, lanes)[0];
  };
  auto along_innermost = [&](const Index& at, const Registers& carried) {
    IntExpr rounds = floor_div(innermost, chains);
    Registers next = builder_.loop_carried(0, rounds, 1, carried, [&](const IntExpr& iv, Registers in) {
      for (int64_t c = 0; c < chains; ++c) {
        kernel::Register& sum = in[static_cast<size_t>(c)];
        sum = add(at, iv * chains + c, sum);
      }
      return in;
    });
    each_of_rest(
        rounds * chains, innermost,
        [&](const IntExpr& i, const Registers& sum) { return Registers{add(at, i, sum[0])}; }, next[0]);
    return next;
  };
  std::function<Registers(size_t, Index, const Registers&)> nest =
      [&](size_t level, Index at, const Registers& carried) -> Registers {
    if (level + 1 >= dims.size()) return along_innermost(at, carried);
    return builder_.loop_carried(0, extent_of(operand, dims[level]), 1, carried,
                                 [&](const IntExpr& iv, const Registers& in) {
                                   at[static_cast<size_t>(dims[level])] = iv;
                                   return nest(level + 1, at, in);
                                 });
  };
  accumulators =
      builder_.loop_carried(0, blocks, 1, accumulators, [&](const IntExpr& iv, const Registers& in) {
        Index at = from;
        at[static_cast<size_t>(block.dim)] = iv * block.size + IntExpr::symbol(lane);
        return nest(0, at, in);
      });
  for (size_t c = 1; c < accumulators.size(); ++c)
    accumulators[0] = combine(reduce, {accumulators[0]}, {accumulators[c]}, lanes)[0];
  return combine_lanes(reduce, accumulators[0]);
}

ElementEmitter::Registers ElementEmitter::emit_reduce(const Instruction& reduce, const Index& index) {
  int count = reduce.num_operands() / 2;
  std::vector<int64_t> reduced = reduce.attributes().ints("dims");
  std::sort(reduced.begin(), reduced.end());
  Value operand = reduce.operand(0);
  if (uses_) uses_->reduces = true;
  Index from(operand.type().dims.size(), IntExpr(0));
  std::vector<int> dims;
  size_t kept = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!std::binary_search(reduced.begin(), reduced.end(), static_cast<int64_t>(d)))
      from[d] = index[kept++];
    else if (extent_of(operand, static_cast<int>(d)) != IntExpr(1))
      dims.push_back(static_cast<int>(d));
  }
  // Memory order makes the innermost loop walk along memory.
  std::vector<PhysicalDim> order = physical_dims_of(operand.type().at_bound());
  std::erase_if(order, [](const PhysicalDim& dim) { return dim.extent == 1; });
  Registers accumulators = initial_values(reduce);
  bool reduces_innermost = !order.empty() &&
                           std::find(dims.begin(), dims.end(), order.back().logical) != dims.end() &&
                           order.back().logical == (dims.empty() ? -1 : dims.back());
  if (lanes_.count == 1 && !uses_ && code_.lanes > 1 && count == 1 && reduces_innermost &&
      operand.type().layout.blocks.empty() && simple_reducer(reduce)) {
    Registers total = {reduce_in_vectors(reduce, from, dims)};
    accumulators = combine(reduce, accumulators, total, 1);
  } else if (lanes_.count == 1 && !uses_ && count == 1 && simple_reducer(reduce) &&
             has_whole_blocks(operand.type(), dims)) {
    accumulators = combine(reduce, accumulators, {reduce_in_blocks(reduce, from, dims)}, 1);
  } else {
    accumulators = reduce_in_loops(reduce, from, dims, std::move(accumulators));
  }
  KernelScalars scalars(builder_);
  for (int i = 0; i < count; ++i)
    accumulators[static_cast<size_t>(i)] =
        scalar_ops::rounded(scalars, reduce.operand(i).dtype(), accumulators[static_cast<size_t>(i)]);
  return accumulators;
}

ElementEmitter::Registers ElementEmitter::emit_reduce_window(const Instruction& reduce, const Index& index) {
  int count = reduce.num_operands() / 2;
  const Window& window = reduce.attributes().window();
  Value operand = reduce.operand(0);
  struct Walk {
    size_t dim;
    IntExpr start, lower, upper; // first position, range of window elements within the operand
    int64_t dilation;
    int64_t unroll;
  };
  std::vector<Walk> walks;
  Index from(index.size(), IntExpr(0));
  bool uniform = true;
  int64_t unrolled = 1;
  for (size_t d = index.size(); d-- > 0;) {
    const WindowDim& dim = window.dims[d];
    const IntExpr& extent = extent_of(operand, static_cast<int>(d));
    int64_t reach = (dim.size - 1) * dim.dilation;
    IntExpr start = index[d] * dim.stride - dim.pad_low;
    // Between elements that lie apart, a window has positions without one.
    IntExpr skipped = floor_mod(start * -1, dim.input_dilation);
    Walk walk{d,
              floor_div(start + skipped, dim.input_dilation),
              0,
              ceil_div(IntExpr(dim.size) - skipped, dim.input_dilation),
              dim.dilation,
              1};
    bool inside =
        dim.input_dilation == 1 && start.lower_bound() >= 0 && (start + reach - extent).upper_bound() < 0;
    if (!inside) {
      split_point(start, 0, true);
      if (extent.is_constant()) split_point(start, extent.value() - reach, true);
      use(index[d]);
      uniform &= is_uniform(index[d]);
      walk.lower = max(0, ceil_div(walk.start * -1, dim.dilation));
      walk.upper = min(walk.upper, floor_div(extent - 1 - walk.start, dim.dilation) + 1);
    } else if (unrolled * dim.size <= code_.max_unrolled_window) {
      walk.unroll = dim.size;
      unrolled *= dim.size;
    }
    from[d] = walk.start;
    if (dim.size > 1 || !inside) walks.push_back(walk);
  }
  if (!uniform) {
    Registers lanes;
    for (int i = 0; i < count; ++i) lanes.push_back(lane_by_lane(result_of(reduce, i), index));
    return lanes;
  }
  std::reverse(walks.begin(), walks.end());
  std::function<Registers(size_t, Index, Registers)> nest = [&](size_t at, Index here,
                                                                Registers carried) -> Registers {
    if (at == walks.size()) {
      Registers elements;
      for (int i = 0; i < count; ++i) elements.push_back(emit(reduce.operand(i), here));
      return combine(reduce, carried, elements, lanes_.count);
    }
    const Walk& walk = walks[at];
    return builder_.loop_carried(
        walk.lower, walk.upper, 1, carried,
        [&](const IntExpr& iv, const Registers& inner) {
          here[walk.dim] = walk.start + iv * walk.dilation;
          return in_inner_block([&] { return nest(at + 1, here, inner); });
        },
        walk.unroll);
  };
  Registers accumulators = nest(0, from, initial_values(reduce));
  KernelScalars scalars(builder_);
  for (int i = 0; i < count; ++i)
    accumulators[static_cast<size_t>(i)] =
        scalar_ops::rounded(scalars, reduce.operand(i).dtype(), accumulators[static_cast<size_t>(i)]);
  return accumulators;
}

} // namespace firn::lower
