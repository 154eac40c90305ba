// Reading and writing at computed indices: gather, gather_elements, gather_nd, scatter_elements, scatter_nd.
// Indices count from the end when negative; those outside the operand are errors.
#include "compiler/graph/evaluate_elements.h"
#include "compiler/graph/evaluate_wide_elements.h"

namespace firn::evaluation {

namespace {

// An index in [0, extent), or nothing.
std::optional<int64_t> normalized(int64_t index, int64_t extent) {
  if (index < 0) index += extent;
  if (index < 0 || index >= extent) return {};
  return index;
}

Diagnostic out_of_range(const OpCall& call, int64_t index, int64_t axis) {
  return call.fail("index " + std::to_string(index) + " is out of range for dim " + std::to_string(axis) +
                   " of " + describe(call.tensor(0)));
}

// The runs of `run` elements that a gather reads or a scatter writes: where in the operand each begins.
struct Runs {
  std::vector<int64_t> offsets;
  int64_t run = 1;
  Dims result_dims; // dims of a gather's result
};

Expected<int64_t> checked_axis(const OpCall& call) {
  auto rank = static_cast<int64_t>(call.tensor(0).dims().size());
  int64_t axis = call.integer("axis", 0);
  if (axis < 0 || axis >= rank)
    return call.fail("axis " + std::to_string(axis) + " is out of range for " + describe(call.tensor(0)));
  return axis;
}

Expected<Runs> gather_runs(const OpCall& call) {
  const Literal &operand = call.tensor(0), &indices = call.tensor(1);
  auto axis = checked_axis(call);
  if (!axis) return axis.error();
  auto dim = static_cast<size_t>(*axis);
  const Dims& dims = operand.dims();
  Runs runs;
  runs.run = product(dims, dim + 1, dims.size());
  runs.result_dims.assign(dims.begin(), dims.begin() + *axis);
  runs.result_dims.insert(runs.result_dims.end(), indices.dims().begin(), indices.dims().end());
  runs.result_dims.insert(runs.result_dims.end(), dims.begin() + *axis + 1, dims.end());
  if (Result fits = call.check_size(operand.dtype(), runs.result_dims); !fits) return fits.error();
  std::vector<int64_t> positions = load_as<int64_t>(indices);
  for (int64_t& position : positions) {
    auto index = normalized(position, dims[dim]);
    if (!index) return out_of_range(call, position, *axis);
    position = *index;
  }
  if (runs.run == 0) return runs;
  int64_t outer = product(dims, 0, dim);
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t position : positions) runs.offsets.push_back((i * dims[dim] + position) * runs.run);
  return runs;
}

// gather_elements and scatter_elements: element i of `indices` replaces its coordinate along the axis.
Expected<Runs> element_runs(const OpCall& call) {
  const Literal &operand = call.tensor(0), &indices = call.tensor(1);
  auto axis = checked_axis(call);
  if (!axis) return axis.error();
  auto dim = static_cast<size_t>(*axis);
  size_t rank = operand.dims().size();
  if (indices.dims().size() != rank) return call.fail("indices must have the rank of " + describe(operand));
  for (size_t i = 0; i < rank; ++i)
    if (i != dim && indices.dims()[i] > operand.dims()[i])
      return call.fail("indices " + describe(indices) + " exceed " + describe(operand));
  std::vector<int64_t> positions = load_as<int64_t>(indices);
  Dims strides = row_major_strides(operand.dims()), index(rank, 0);
  Runs runs;
  runs.result_dims = indices.dims();
  for (int64_t position : positions) {
    auto along = normalized(position, operand.dims()[dim]);
    if (!along) return out_of_range(call, position, *axis);
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) offset += (i == dim ? *along : index[i]) * strides[i];
    runs.offsets.push_back(offset);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < indices.dims()[i]) break;
      index[i] = 0;
    }
  }
  return runs;
}

// gather_nd and scatter_nd: the last dim of `indices` holds coordinates of leading operand dims after
// batch_dims.
Expected<Runs> tuple_runs(const OpCall& call) {
  const Literal &operand = call.tensor(0), &indices = call.tensor(1);
  const Dims &dims = operand.dims(), &index_dims = indices.dims();
  int64_t signed_batch = call.integer("batch_dims", 0);
  if (signed_batch < 0 || index_dims.empty() || signed_batch >= static_cast<int64_t>(index_dims.size()))
    return call.fail("indices " + describe(indices) + " do not hold tuples");
  auto batch = static_cast<size_t>(signed_batch);
  if (index_dims.back() + signed_batch > static_cast<int64_t>(dims.size()))
    return call.fail("index tuples of " + describe(indices) + " are longer than the rank of " +
                     describe(operand));
  for (size_t i = 0; i < batch; ++i)
    if (dims[i] != index_dims[i]) return call.fail("batch dims of operand and indices differ");
  size_t fixed = batch + static_cast<size_t>(index_dims.back());
  Runs runs;
  runs.run = product(dims, fixed, dims.size());
  runs.result_dims.assign(index_dims.begin(), index_dims.end() - 1);
  runs.result_dims.insert(runs.result_dims.end(), dims.begin() + static_cast<int64_t>(fixed), dims.end());
  std::vector<int64_t> positions = load_as<int64_t>(indices);
  int64_t count = product(index_dims, 0, index_dims.size() - 1);
  int64_t per_batch = std::max<int64_t>(1, product(index_dims, batch, index_dims.size() - 1));
  if (Result fits = call.check_size(DType::I64, {count}); !fits) return fits.error();
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = i / per_batch;
    for (size_t dim = batch; dim < fixed; ++dim, ++at) {
      auto index = normalized(positions[at], dims[dim]);
      if (!index) return out_of_range(call, positions[at], static_cast<int64_t>(dim));
      offset = offset * dims[dim] + *index;
    }
    runs.offsets.push_back(offset * runs.run);
  }
  return runs;
}

Expected<Runs> find_runs(const OpCall& call) {
  const Literal& indices = call.tensor(1);
  if (!is_integer(indices.dtype()))
    return call.fail("indices must be integers, they are " + describe(indices));
  switch (call.opcode()) {
  case Opcode::Gather: return gather_runs(call);
  case Opcode::GatherND:
  case Opcode::ScatterND: return tuple_runs(call);
  default: return element_runs(call);
  }
}

Opcode reduction_opcode(const std::string& word) {
  return word == "add"        ? Opcode::Add
         : word == "multiply" ? Opcode::Multiply
         : word == "maximum"  ? Opcode::Maximum
                              : Opcode::Minimum;
}

Expected<Values> scatter_reduced(const OpCall& call, const Runs& runs, Opcode reducer) {
  const Literal& operand = call.tensor(0);
  auto result = call.allocate(operand.dtype(), operand.dims());
  if (!result) return result.error();
  if (operand.dtype() == DType::String) return call.unsupported("strings are not reduced");
  WideElements target = load_all(operand), updates = load_all(call.tensor(2));
  int64_t update = 0;
  for (int64_t offset : runs.offsets)
    for (int64_t i = 0; i < runs.run; ++i, ++update)
      if (!fold(reducer, operand.dtype(), target, offset + i, updates, update, 1))
        return call.unsupported("cannot reduce " + std::string(dtype_name(operand.dtype())));
  store_all(target, **result);
  return one(*result);
}

} // namespace

Expected<Values> evaluate_gather(const OpCall& call) {
  auto runs = find_runs(call);
  if (!runs) return runs.error();
  const Literal& operand = call.tensor(0);
  auto result = call.allocate(operand.dtype(), runs->result_dims);
  if (!result) return result.error();
  return with_storage(operand.dtype(), [&](auto storage) -> Expected<Values> {
    using T = decltype(storage);
    ElementReader<T> reader(operand);
    ElementWriter<T> writer(*result);
    T* to = writer.data();
    if ((*result)->num_elements() != 0)
      for (int64_t offset : runs->offsets) to = std::copy_n(reader.data() + offset, runs->run, to);
    return one(writer.finish());
  });
}

// Later updates win where indices repeat and nothing is reduced.
Expected<Values> evaluate_scatter(const OpCall& call) {
  auto runs = find_runs(call);
  if (!runs) return runs.error();
  const Literal &operand = call.tensor(0), &updates = call.tensor(2);
  if (updates.dims() != runs->result_dims || updates.dtype() != operand.dtype())
    return call.fail("updates are " + describe(updates) + ", the indices want " +
                     Type::tensor_of(operand.dtype(), runs->result_dims).to_string());
  std::string reduction = call.attributes().word("reduction", "none");
  if (reduction != "none") return scatter_reduced(call, *runs, reduction_opcode(reduction));
  auto result = call.allocate(operand.dtype(), operand.dims());
  if (!result) return result.error();
  return with_storage(operand.dtype(), [&](auto storage) -> Expected<Values> {
    using T = decltype(storage);
    ElementReader<T> old(operand), reader(updates);
    ElementWriter<T> writer(*result);
    std::copy_n(old.data(), operand.num_elements(), writer.data());
    const T* from = reader.data();
    if (updates.num_elements() != 0)
      for (int64_t offset : runs->offsets) {
        std::copy_n(from, runs->run, writer.data() + offset);
        from += runs->run;
      }
    return one(writer.finish());
  });
}

} // namespace firn::evaluation
