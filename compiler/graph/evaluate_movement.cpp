// Ops that move elements without computing: reshape, broadcast, transpose, slice, pad, concatenate, ...
// Nearly all are one strided copy.
#include "compiler/graph/evaluate_elements.h"

#include <algorithm>

namespace firn::evaluation {

std::vector<StridedDim> collapse(const Dims& dims, const Dims& from_strides, const Dims& to_strides) {
  std::vector<StridedDim> loops;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    StridedDim next{dims[i], from_strides[i], to_strides[i]};
    if (!loops.empty() && loops.back().from == next.from * next.extent &&
        loops.back().to == next.to * next.extent)
      next.extent *= loops.back().extent, loops.pop_back();
    loops.push_back(next);
  }
  return loops;
}

Expected<LiteralRef> strided_view(const OpCall& call, const Literal& operand, Dims dims, int64_t offset,
                                  Dims strides) {
  auto result = call.allocate(operand.dtype(), dims);
  if (!result) return result.error();
  return with_storage(operand.dtype(), [&](auto storage) -> Expected<LiteralRef> {
    using T = decltype(storage);
    ElementReader<T> reader(operand);
    ElementWriter<T> writer(*result);
    if ((*result)->num_elements() != 0)
      copy_strided<T>(dims, reader.data() + offset, strides, writer.data(), row_major_strides(dims));
    return writer.finish();
  });
}

Expected<LiteralRef> transposed(const OpCall& call, const LiteralRef& operand, const Dims& permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return operand;
  Dims strides = row_major_strides(operand->dims()), dims, view;
  for (int64_t dim : permutation) {
    dims.push_back(operand->dims()[static_cast<size_t>(dim)]);
    view.push_back(strides[static_cast<size_t>(dim)]);
  }
  return strided_view(call, *operand, dims, 0, view);
}

namespace {

Expected<Values> wrap(Expected<LiteralRef> literal) {
  if (!literal) return literal.error();
  return one(*literal);
}

bool are_dims(const Dims& dims, const Literal& operand) {
  return std::all_of(dims.begin(), dims.end(), [&](int64_t dim) {
    return dim >= 0 && dim < static_cast<int64_t>(operand.dims().size());
  });
}

Expected<Values> broadcast_in_dim(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  auto dims = call.result_dims();
  if (!dims) return dims.error();
  Dims targets = call.ints("dims"), operand_strides = row_major_strides(operand.dims()),
       strides(dims->size(), 0);
  if (targets.size() != operand.dims().size()) return call.fail("dims does not list each dim of the operand");
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= static_cast<int64_t>(dims->size()))
      return call.fail("dims is out of range");
    auto target = static_cast<size_t>(targets[i]);
    if (operand.dims()[i] == (*dims)[target])
      strides[target] = operand_strides[i];
    else if (operand.dims()[i] != 1)
      return call.fail("cannot broadcast " + describe(operand) + " to dim " + std::to_string(target) +
                       " of extent " + std::to_string((*dims)[target]));
  }
  return wrap(strided_view(call, operand, *dims, 0, strides));
}

Expected<Values> concatenate(const OpCall& call) {
  if (call.num_operands() == 0) return call.fail("needs an operand");
  const Literal& first = call.tensor(0);
  auto dim = static_cast<size_t>(call.integer("dim"));
  if (dim >= first.dims().size()) return call.fail("dim is out of range");
  Dims dims = first.dims();
  dims[dim] = 0;
  for (int i = 0; i < call.num_operands(); ++i) {
    Dims wanted = first.dims(), found = call.tensor(i).dims();
    if (found.size() != wanted.size() || call.tensor(i).dtype() != first.dtype())
      return call.fail("operands " + describe(first) + " and " + describe(call.tensor(i)) + " do not fit");
    dims[dim] += found[dim];
    wanted[dim] = found[dim];
    if (found != wanted)
      return call.fail("operands " + describe(first) + " and " + describe(call.tensor(i)) + " do not fit");
  }
  auto result = call.allocate(first.dtype(), dims);
  if (!result) return result.error();
  return with_storage(first.dtype(), [&](auto storage) -> Expected<Values> {
    using T = decltype(storage);
    ElementWriter<T> writer(*result);
    Dims strides = row_major_strides(dims);
    int64_t at = 0;
    for (int i = 0; i < call.num_operands(); ++i) {
      const Dims& part = call.tensor(i).dims();
      ElementReader<T> reader(call.tensor(i));
      copy_strided<T>(part, reader.data(), row_major_strides(part), writer.data() + at * strides[dim],
                      strides);
      at += part[dim];
    }
    return one(writer.finish());
  });
}

Expected<Values> slice(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  size_t rank = operand.dims().size();
  Dims starts = call.ints("starts"), limits = call.ints("limits"), steps = call.ints("strides");
  if (steps.empty()) steps.assign(rank, 1);
  if (starts.size() != rank || limits.size() != rank || steps.size() != rank)
    return call.fail("starts, limits and strides must list each dim of " + describe(operand));
  Dims dims(rank), strides = row_major_strides(operand.dims());
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    bool whole = starts[i] == 0 && limits[i] == -1 && steps[i] == 1;
    int64_t limit = whole ? operand.dims()[i] : limits[i];
    if (starts[i] < 0 || limit > operand.dims()[i] || steps[i] <= 0)
      return call.fail("[" + std::to_string(starts[i]) + ", " + std::to_string(limits[i]) + ") by " +
                       std::to_string(steps[i]) + " is out of range for dim " + std::to_string(i) + " of " +
                       describe(operand));
    dims[i] = starts[i] < limit ? (limit - starts[i] - 1) / steps[i] + 1 : 0;
    if (dims[i] != 0) offset += starts[i] * strides[i];
    strides[i] *= steps[i];
  }
  return wrap(strided_view(call, operand, dims, offset, strides));
}

Expected<Values> symbolic_slice(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  auto dims = call.result_dims();
  if (!dims) return dims.error();
  auto starts = call.extents(call.attributes().type("starts"));
  if (!starts) return starts.error();
  Dims strides = row_major_strides(operand.dims());
  int64_t offset = 0;
  for (size_t i = 0; i < dims->size(); ++i) {
    if ((*starts)[i] + (*dims)[i] > operand.dims()[i])
      return call.fail("the range from " + std::to_string((*starts)[i]) + " of size " +
                       std::to_string((*dims)[i]) + " does not lie within dim " + std::to_string(i) + " of " +
                       describe(operand));
    if ((*dims)[i] != 0) offset += (*starts)[i] * strides[i];
  }
  return wrap(strided_view(call, operand, *dims, offset, strides));
}

Expected<Values> reverse(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  Dims strides = row_major_strides(operand.dims()), dims = call.ints("dims");
  if (!are_dims(dims, operand)) return call.fail("dims is out of range");
  int64_t offset = 0;
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  for (int64_t dim : dims) {
    auto i = static_cast<size_t>(dim);
    offset += (operand.dims()[i] - 1) * strides[i];
    strides[i] = -strides[i];
  }
  return wrap(strided_view(call, operand, operand.dims(), offset, strides));
}

Expected<Values> transpose(const OpCall& call) {
  Dims permutation = call.ints("permutation"), sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == call.tensor(0).dims().size();
  for (size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == static_cast<int64_t>(i);
  if (!valid) return call.fail("permutation does not permute the dims of " + describe(call.tensor(0)));
  return wrap(transposed(call, call.literal(0), permutation));
}

// One dim of a pad: where the kept operand elements [first, first + count) go.
struct PadDim {
  int64_t first = 0, count = 0, position = 0, extent = 0;
};
PadDim pad_dim(int64_t operand, int64_t low, int64_t high, int64_t interior) {
  PadDim dim;
  int64_t step = interior + 1;
  dim.extent = std::max<int64_t>(0, (operand == 0 ? 0 : (operand - 1) * step + 1) + low + high);
  dim.first = low < 0 ? (-low + step - 1) / step : 0;
  dim.position = low + dim.first * step;
  if (dim.first < operand && dim.position < dim.extent)
    dim.count = std::min(operand - dim.first, (dim.extent - dim.position - 1) / step + 1);
  return dim;
}

Expected<Values> pad_with(const OpCall& call, const Dims& low, const Dims& high, Dims interior) {
  const Literal& operand = call.tensor(0);
  size_t rank = operand.dims().size();
  if (interior.empty()) interior.assign(rank, 0);
  if (low.size() != rank || high.size() != rank || interior.size() != rank)
    return call.fail("low, high and interior must list each dim of " + describe(operand));
  if (call.tensor(1).num_elements() != 1) return call.fail("the padding must be a scalar");
  constexpr int64_t limit = int64_t{1} << 40;
  Dims dims(rank), kept(rank), from = row_major_strides(operand.dims());
  std::vector<PadDim> pads(rank);
  int64_t from_offset = 0, to_offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (std::abs(low[i]) > limit || std::abs(high[i]) > limit || interior[i] < 0 ||
        interior[i] > limit / std::max<int64_t>(1, operand.dims()[i]))
      return call.fail("padding of dim " + std::to_string(i) + " is out of range");
    pads[i] = pad_dim(operand.dims()[i], low[i], high[i], interior[i]);
    dims[i] = pads[i].extent;
    kept[i] = pads[i].count;
  }
  auto result = call.allocate(operand.dtype(), dims);
  if (!result) return result.error();
  Dims to = row_major_strides(dims);
  for (size_t i = 0; i < rank; ++i) {
    from_offset += pads[i].first * from[i];
    to_offset += pads[i].position * to[i];
    to[i] *= interior[i] + 1;
  }
  return with_storage(operand.dtype(), [&](auto storage) -> Expected<Values> {
    using T = decltype(storage);
    ElementReader<T> reader(operand), value(call.tensor(1));
    ElementWriter<T> writer(*result);
    std::fill_n(writer.data(), (*result)->num_elements(), *value.data());
    if (product(kept) != 0)
      copy_strided<T>(kept, reader.data() + from_offset, from, writer.data() + to_offset, to);
    return one(writer.finish());
  });
}

// The start operands, from `first` on, clamped so that `sizes` fit.
Expected<Dims> clamped_starts(const OpCall& call, int first, const Dims& sizes) {
  const Literal& operand = call.tensor(0);
  size_t rank = operand.dims().size();
  if (sizes.size() != rank || call.num_operands() != first + static_cast<int>(rank))
    return call.fail("wants one start and one size per dim of " + describe(operand));
  Dims starts;
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0 || sizes[i] > operand.dims()[i])
      return call.fail("a window of extent " + std::to_string(sizes[i]) + " does not fit dim " +
                       std::to_string(i) + " of " + describe(operand));
    const Literal& start = call.tensor(first + static_cast<int>(i));
    if (start.num_elements() != 1) return call.fail("starts must be scalars");
    starts.push_back(std::clamp<int64_t>(start.get_int(0), 0, operand.dims()[i] - sizes[i]));
  }
  return starts;
}

Expected<Values> dynamic_slice(const OpCall& call) {
  Dims sizes = call.ints("sizes"), strides = row_major_strides(call.tensor(0).dims());
  auto starts = clamped_starts(call, 1, sizes);
  if (!starts) return starts.error();
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) offset += (*starts)[i] * strides[i];
  return wrap(strided_view(call, call.tensor(0), sizes, offset, strides));
}

Expected<Values> dynamic_update_slice(const OpCall& call) {
  const Literal &operand = call.tensor(0), &update = call.tensor(1);
  auto starts = clamped_starts(call, 2, update.dims());
  if (!starts) return starts.error();
  Dims strides = row_major_strides(operand.dims());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) offset += (*starts)[i] * strides[i];
  auto result = call.allocate(operand.dtype(), operand.dims());
  if (!result) return result.error();
  return with_storage(operand.dtype(), [&](auto storage) -> Expected<Values> {
    using T = decltype(storage);
    ElementReader<T> old(operand), reader(update);
    ElementWriter<T> writer(*result);
    std::copy_n(old.data(), operand.num_elements(), writer.data());
    if (update.num_elements() != 0)
      copy_strided<T>(update.dims(), reader.data(), row_major_strides(update.dims()), writer.data() + offset,
                      strides);
    return one(writer.finish());
  });
}

Expected<Values> reshape_to(const OpCall& call, const Dims& dims) {
  const Literal& operand = call.tensor(0);
  auto count = checked_num_elements(dims);
  if (!count || *count != operand.num_elements())
    return call.fail("cannot reshape " + describe(operand) + " to [" + [&] {
      std::string text;
      for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
      return text;
    }() + "]");
  return one(Literal::reshaped(call.literal(0), dims));
}

// Narrower results gain a last dim, wider ones lose it.
Expected<Values> bitcast_convert(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  int from = bit_width(operand.dtype()), to = bit_width(call.result_dtype());
  if (from == 0 || to == 0) return call.fail("strings have no bits");
  Dims dims = operand.dims();
  if (to < from) dims.push_back(from / to);
  if (to > from) {
    if (dims.empty() || dims.back() != to / from)
      return call.fail("the last dim must be " + std::to_string(to / from));
    dims.pop_back();
  }
  auto result = call.allocate(call.result_dtype(), dims);
  if (!result) return result.error();
  auto bytes = operand.bytes();
  if ((*result)->mutable_bytes().size() != bytes.size())
    return call.fail("sizes of operand and result differ");
  if (!bytes.empty()) std::memcpy((*result)->mutable_bytes().data(), bytes.data(), bytes.size());
  return one(*result);
}

Expected<Values> dynamic_broadcast(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  Dims dims = call.tensor(1).to_ints(), operand_dims = operand.dims();
  while (dims.size() < operand_dims.size()) dims.insert(dims.begin(), 1);
  while (operand_dims.size() < dims.size()) operand_dims.insert(operand_dims.begin(), 1);
  Dims strides = row_major_strides(operand_dims);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (operand_dims[i] == 1) strides[i] = 0;
    if (dims[i] == 1) dims[i] = operand_dims[i];
    if (dims[i] < 0 || (dims[i] != operand_dims[i] && operand_dims[i] != 1))
      return call.fail("cannot broadcast " + describe(operand) + " to extent " + std::to_string(dims[i]) +
                       " of dim " + std::to_string(i));
  }
  return wrap(strided_view(call, operand, dims, 0, strides));
}

} // namespace

Expected<Values> evaluate_movement(const OpCall& call) {
  switch (call.opcode()) {
  case Opcode::BitcastConvert: return bitcast_convert(call);
  case Opcode::BroadcastInDim: return broadcast_in_dim(call);
  case Opcode::Concatenate: return concatenate(call);
  case Opcode::Copy: return one(call.literal(0));
  case Opcode::DynamicBroadcast: return dynamic_broadcast(call);
  case Opcode::DynamicPad:
    if (call.num_operands() != 4) return call.fail("wants operand, scalar, low and high");
    return pad_with(call, call.tensor(2).to_ints(), call.tensor(3).to_ints(), {});
  case Opcode::DynamicReshape: return reshape_to(call, call.tensor(1).to_ints());
  case Opcode::DynamicSlice: return dynamic_slice(call);
  case Opcode::DynamicUpdateSlice: return dynamic_update_slice(call);
  case Opcode::Pad: return pad_with(call, call.ints("low"), call.ints("high"), call.ints("interior"));
  case Opcode::Reshape: {
    auto dims = call.result_dims();
    if (!dims) return dims.error();
    return reshape_to(call, *dims);
  }
  case Opcode::Reverse: return reverse(call);
  case Opcode::Slice: return slice(call);
  case Opcode::SymbolicSlice: return symbolic_slice(call);
  case Opcode::Transpose: return transpose(call);
  default: return call.unsupported("is not evaluated");
  }
}

} // namespace firn::evaluation
