// sort and top_k. The merge sort is written out because a comparator from a model may be inconsistent, which
// the standard library's algorithms do not survive.
#include "compiler/graph/evaluate_elements.h"
#include "compiler/graph/evaluate_scalar_region.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firn::evaluation {

namespace {

// Sorts stably; before(a, b) says that a must come before b.
template <class Before> void merge_sort(std::vector<int64_t>& order, Before before) {
  std::vector<int64_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t start = 0; start < order.size(); start += 2 * width) {
      size_t middle = std::min(start + width, order.size()), end = std::min(start + 2 * width, order.size());
      size_t left = start, right = middle;
      for (size_t out = start; out < end; ++out) {
        bool take_right = right < end && (left >= middle || before(order[right], order[left]));
        merged[out] = take_right ? order[right++] : order[left++];
      }
    }
    order.swap(merged);
  }
}

// A literal whose elements are those of `operand` at the given flat positions.
LiteralRef permuted(const Literal& operand, std::shared_ptr<Literal> result,
                    const std::vector<int64_t>& positions) {
  return with_storage(operand.dtype(), [&](auto storage) -> LiteralRef {
    using T = decltype(storage);
    ElementReader<T> reader(operand);
    ElementWriter<T> writer(std::move(result));
    for (size_t i = 0; i < positions.size(); ++i) writer.data()[i] = reader.data()[positions[i]];
    return writer.finish();
  });
}

// The lines of elements along one dim.
struct Lines {
  int64_t extent, inner, count;
  Lines(const Dims& dims, size_t dim)
      : extent(dims[dim]), inner(product(dims, dim + 1, dims.size())), count(product(dims, 0, dim) * inner) {}
  int64_t start(int64_t line) const { return line / inner * extent * inner + line % inner; }
};

} // namespace

Expected<Values> evaluate_sort(const OpCall& call) {
  if (call.num_operands() == 0) return call.fail("needs an operand");
  const Dims& dims = call.tensor(0).dims();
  auto dim = static_cast<size_t>(call.integer("dim"));
  if (dim >= dims.size()) return call.fail("dim is out of range for " + describe(call.tensor(0)));
  auto region = ScalarRegion::create(call, 0);
  if (!region) return region.error();
  std::vector<WideElements> values;
  for (int i = 0; i < call.num_operands(); ++i) {
    if (call.tensor(i).dims() != dims) return call.fail("operands must have one shape");
    if (call.tensor(i).dtype() == DType::String) return call.unsupported("cannot sort strings");
    values.push_back(load_all(call.tensor(i)));
  }
  Result status;
  auto before = [&](int64_t a, int64_t b) {
    for (size_t i = 0; i < values.size(); ++i) {
      region->parameter(static_cast<int>(2 * i)).copy_element(0, values[i], a);
      region->parameter(static_cast<int>(2 * i + 1)).copy_element(0, values[i], b);
    }
    if (Result ok = region->run(); !ok) status = ok;
    return region->result().integer[0] != 0;
  };
  std::vector<int64_t> positions(static_cast<size_t>(product(dims))), order;
  Lines lines(dims, dim);
  for (int64_t line = 0; line < lines.count && lines.extent != 0; ++line) {
    order.clear();
    for (int64_t i = 0; i < lines.extent; ++i) order.push_back(lines.start(line) + i * lines.inner);
    merge_sort(order, before);
    if (!status) return status.error();
    for (int64_t i = 0; i < lines.extent; ++i)
      positions[static_cast<size_t>(lines.start(line) + i * lines.inner)] = order[static_cast<size_t>(i)];
  }
  Values results;
  for (int i = 0; i < call.num_operands(); ++i) {
    auto result = call.allocate(call.tensor(i).dtype(), dims);
    if (!result) return result.error();
    results.emplace_back(permuted(call.tensor(i), *result, positions));
  }
  return results;
}

// NaN counts as larger than every number.
Expected<Values> evaluate_top_k(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  DType dtype = operand.dtype();
  auto dim = static_cast<size_t>(call.integer("dim"));
  bool largest = call.attributes().flag("largest", true);
  if (dim >= operand.dims().size()) return call.fail("dim is out of range for " + describe(operand));
  int64_t k = std::min(call.integer("k"), operand.dims()[dim]);
  if (k < 0) return call.fail("k is " + std::to_string(k));
  if (domain_of(dtype) > Domain::Integer) return call.unsupported("has no meaning for " + describe(operand));
  WideElements wide = load_all(operand);
  auto smaller = [&](int64_t a, int64_t b) {
    if (wide.domain == Domain::Integer)
      return less(dtype, wide.integer[static_cast<size_t>(a)], wide.integer[static_cast<size_t>(b)]);
    double x = wide.real[static_cast<size_t>(a)], y = wide.real[static_cast<size_t>(b)];
    return std::isnan(y) ? !std::isnan(x) : x < y;
  };
  auto before = [&](int64_t a, int64_t b) {
    if (largest ? smaller(b, a) : smaller(a, b)) return true;
    if (largest ? smaller(a, b) : smaller(b, a)) return false;
    return a < b;
  };
  Dims dims = operand.dims();
  dims[dim] = k;
  auto result = call.allocate(dtype, dims), indices = call.allocate(DType::I64, dims);
  if (!result) return result.error();
  if (!indices) return indices.error();
  Lines from(operand.dims(), dim), to(dims, dim);
  std::vector<int64_t> positions(static_cast<size_t>(product(dims))), order;
  for (int64_t line = 0; line < from.count && k != 0; ++line) {
    order.clear();
    for (int64_t i = 0; i < from.extent; ++i) order.push_back(from.start(line) + i * from.inner);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
    for (int64_t i = 0; i < k; ++i) {
      int64_t at = to.start(line) + i * to.inner, source = order[static_cast<size_t>(i)];
      positions[static_cast<size_t>(at)] = source;
      (*indices)->set_int(at, (source - from.start(line)) / from.inner);
    }
  }
  return Values{permuted(operand, *result, positions), *indices};
}

} // namespace firn::evaluation
