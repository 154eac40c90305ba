// reduce, arg_reduce and cumulative. A reduce whose region is one associative op folds in f64 (or i64) and
// rounds once; any other region runs as written, element after element in row-major order.
#include "compiler/graph/builder.h"
#include "compiler/graph/evaluate_elements.h"
#include "compiler/graph/evaluate_scalar_region.h"

#include <algorithm>
#include <cmath>

namespace firn::evaluation {

namespace {

// A reduction seen as a matrix: each row holds what is combined into one result element.
struct Rows {
  Dims kept_dims;
  Dims permutation; // kept dims, then reduced ones
  int64_t rows = 1, columns = 1;
};

Expected<Rows> arrange(const OpCall& call, const Literal& operand) {
  Dims reduced = call.ints("dims");
  auto rank = static_cast<int64_t>(operand.dims().size());
  Rows rows;
  for (int64_t dim : reduced)
    if (dim < 0 || dim >= rank) return call.fail("dims is out of range for " + describe(operand));
  for (int64_t dim = 0; dim < rank; ++dim)
    if (std::find(reduced.begin(), reduced.end(), dim) == reduced.end()) {
      rows.permutation.push_back(dim);
      rows.kept_dims.push_back(operand.dims()[static_cast<size_t>(dim)]);
    }
  std::sort(reduced.begin(), reduced.end());
  reduced.erase(std::unique(reduced.begin(), reduced.end()), reduced.end());
  for (int64_t dim : reduced) {
    rows.permutation.push_back(dim);
    rows.columns *= operand.dims()[static_cast<size_t>(dim)];
  }
  rows.rows = product(rows.kept_dims);
  return rows;
}

Expected<Values> reduce_simply(const OpCall& call, const Rows& rows, const LiteralRef& operand,
                               Opcode reducer) {
  DType dtype = operand->dtype();
  auto result = call.allocate(dtype, rows.kept_dims);
  if (!result) return result.error();
  WideElements initial = load_all(call.tensor(1)), accumulator(initial.domain, 1), row;
  for (int64_t i = 0; i < rows.rows; ++i) {
    accumulator.copy_element(0, initial, 0);
    load_elements(*operand, i * rows.columns, rows.columns, row);
    if (!fold(reducer, dtype, accumulator, 0, row, 0, rows.columns))
      return call.unsupported("cannot reduce " + std::string(dtype_name(dtype)));
    store_elements(accumulator, 1, **result, i);
  }
  return one(*result);
}

Expected<Values> reduce_by_region(const OpCall& call, const Rows& rows,
                                  const std::vector<LiteralRef>& operands) {
  size_t count = operands.size();
  auto region = ScalarRegion::create(call, 0);
  if (!region) return region.error();
  std::vector<WideElements> values, initial;
  std::vector<std::shared_ptr<Literal>> results;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(load_all(*operands[i]));
    initial.push_back(load_all(call.tensor(static_cast<int>(count + i))));
    auto result = call.allocate(operands[i]->dtype(), rows.kept_dims);
    if (!result) return result.error();
    results.push_back(*result);
  }
  for (int64_t row = 0; row < rows.rows; ++row) {
    std::vector<WideElements> accumulators = initial;
    for (int64_t column = 0; column < rows.columns; ++column) {
      for (size_t i = 0; i < count; ++i) {
        region->parameter(static_cast<int>(i)).copy_element(0, accumulators[i], 0);
        region->parameter(static_cast<int>(count + i))
            .copy_element(0, values[i], row * rows.columns + column);
      }
      if (Result ok = region->run(); !ok) return ok.error();
      for (size_t i = 0; i < count; ++i)
        accumulators[i].copy_element(0, region->result(static_cast<int>(i)), 0);
    }
    for (size_t i = 0; i < count; ++i) store_elements(accumulators[i], 1, *results[i], row);
  }
  return Values(results.begin(), results.end());
}

} // namespace

Expected<Values> evaluate_reduce(const OpCall& call) {
  int count = call.num_operands() / 2;
  if (count == 0 || call.num_operands() % 2 != 0)
    return call.fail("wants as many initial values as operands");
  auto rows = arrange(call, call.tensor(0));
  if (!rows) return rows.error();
  std::vector<LiteralRef> operands;
  for (int i = 0; i < count; ++i) {
    const Literal& initial = call.tensor(count + i);
    if (call.tensor(i).dims() != call.tensor(0).dims()) return call.fail("operands must have one shape");
    if (initial.num_elements() != 1 || initial.dtype() != call.tensor(i).dtype())
      return call.fail("initial value " + describe(initial) + " does not fit " + describe(call.tensor(i)));
    if (initial.dtype() == DType::String) return call.unsupported("cannot reduce strings");
    auto operand = transposed(call, call.literal(i), rows->permutation);
    if (!operand) return operand.error();
    operands.push_back(*operand);
  }
  if (count == 1)
    if (auto reducer = simple_reducer(call.instruction()))
      return reduce_simply(call, *rows, operands[0], *reducer);
  return reduce_by_region(call, *rows, operands);
}

namespace {

bool is_nan(const WideElements& wide, size_t index) {
  return wide.domain == Domain::Real && std::isnan(wide.real[index]);
}

bool element_less(DType dtype, const WideElements& wide, size_t a, size_t b) {
  if (wide.domain == Domain::Real) return wide.real[a] < wide.real[b];
  return less(dtype, wide.integer[a], wide.integer[b]);
}

// Whether element `candidate`, which comes later, replaces `best`.
bool replaces(DType dtype, const WideElements& wide, size_t candidate, size_t best, bool maximum,
              bool select_last) {
  bool new_nan = is_nan(wide, candidate), old_nan = is_nan(wide, best);
  if (new_nan || old_nan) return new_nan && (!old_nan || select_last);
  bool better =
      maximum ? element_less(dtype, wide, best, candidate) : element_less(dtype, wide, candidate, best);
  bool worse =
      maximum ? element_less(dtype, wide, candidate, best) : element_less(dtype, wide, best, candidate);
  return better || (select_last && !worse);
}

} // namespace

// The index is 0 if there are no elements.
Expected<Values> evaluate_arg_reduce(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  auto dim = static_cast<size_t>(call.integer("dim"));
  if (dim >= operand.dims().size()) return call.fail("dim is out of range for " + describe(operand));
  WideElements wide;
  if (domain_of(operand.dtype()) > Domain::Integer)
    return call.unsupported("has no meaning for " + describe(operand));
  wide = load_all(operand);
  bool maximum = call.attributes().word("kind", "max") == "max", last = call.flag("select_last");
  Dims dims = operand.dims();
  int64_t extent = dims[dim], inner = product(dims, dim + 1, dims.size()), outer = product(dims, 0, dim);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  auto result = call.allocate(DType::I64, dims);
  if (!result) return result.error();
  for (int64_t i = 0; i < outer * inner; ++i) {
    int64_t start = i / inner * extent * inner + i % inner, best = 0;
    for (int64_t k = 1; k < extent; ++k)
      if (replaces(operand.dtype(), wide, static_cast<size_t>(start + k * inner),
                   static_cast<size_t>(start + best * inner), maximum, last))
        best = k;
    (*result)->set_int(i, best);
  }
  return one(*result);
}

// The running value stays in f64 (or i64); each element is rounded from it.
Expected<Values> evaluate_cumulative(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  auto dim = static_cast<size_t>(call.integer("dim"));
  if (dim >= operand.dims().size()) return call.fail("dim is out of range for " + describe(operand));
  if (operand.dtype() == DType::String) return call.unsupported("has no meaning for strings");
  auto reducer = parse_opcode(call.attributes().word("reducer", "add"));
  if (!reducer) return call.fail("unknown reducer");
  LiteralRef identity = reducer_identity(*reducer, operand.dtype());
  if (!identity) return call.unsupported("the reducer has no identity");
  bool exclusive = call.flag("exclusive"), backwards = call.flag("reverse");
  auto result = call.allocate(operand.dtype(), operand.dims());
  if (!result) return result.error();
  WideElements values = load_all(operand), initial = load_all(*identity), running(initial.domain, 1);
  WideElements out(initial.domain, operand.num_elements());
  const Dims& dims = operand.dims();
  int64_t extent = dims[dim], inner = product(dims, dim + 1, dims.size()), outer = product(dims, 0, dim);
  for (int64_t i = 0; i < outer * inner; ++i) {
    int64_t start = i / inner * extent * inner + i % inner;
    running.copy_element(0, initial, 0);
    for (int64_t k = 0; k < extent; ++k) {
      int64_t at = start + (backwards ? extent - 1 - k : k) * inner;
      if (exclusive) out.copy_element(at, running, 0);
      if (!fold(*reducer, operand.dtype(), running, 0, values, at, 1))
        return call.unsupported("cannot reduce " + std::string(dtype_name(operand.dtype())));
      if (!exclusive) out.copy_element(at, running, 0);
    }
  }
  store_all(out, **result);
  return one(*result);
}

} // namespace firn::evaluation
