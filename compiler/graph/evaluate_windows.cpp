// reduce_window and select_and_scatter: a window slides over the operand; positions in the padding or between
// dilated input elements hold the initial value.
#include "compiler/graph/builder.h"
#include "compiler/graph/evaluate_scalar_region.h"

namespace firn::evaluation {

namespace {

// Visits the elements under a window. Dims in which the window is a single element with unit stride cost
// nothing.
class WindowWalk {
public:
  static Expected<WindowWalk> create(const OpCall& call, const Dims& operand) {
    WindowWalk walk;
    const Attribute* attribute = call.attributes().find("window");
    const auto* window = attribute ? std::get_if<Window>(attribute) : nullptr;
    if (!window || window->dims.size() != operand.size())
      return call.fail("the window must have the operand's rank");
    constexpr int64_t limit = int64_t{1} << 31;
    for (const WindowDim& dim : window->dims)
      if (dim.size < 1 || dim.stride < 1 || dim.dilation < 1 || dim.input_dilation < 1 || dim.size > limit ||
          dim.stride > limit || dim.dilation > limit || dim.input_dilation > limit ||
          std::abs(dim.pad_low) > limit || std::abs(dim.pad_high) > limit)
        return call.fail("the window is out of range");
    walk.strides_ = row_major_strides(operand);
    walk.operand_ = operand;
    walk.window_ = *window;
    int64_t taps = 1;
    for (size_t i = 0; i < operand.size(); ++i) {
      walk.result_dims.push_back(window->dims[i].output_size(operand[i]));
      const WindowDim& dim = window->dims[i];
      bool trivial = dim.size == 1 && dim.pad_low == 0 && dim.pad_high == 0 && dim.input_dilation == 1;
      (trivial ? walk.plain_ : walk.active_).push_back(i);
      taps = taps > limit / dim.size ? limit : taps * dim.size;
    }
    if (taps >= limit) return call.fail("the window has too many elements");
    double positions = 1;
    for (int64_t extent : walk.result_dims) positions *= static_cast<double>(extent);
    if (Result ok = call.spend(positions * static_cast<double>(taps)); !ok) return ok.error();
    return walk;
  }

  // f(flat operand index) for each element under the window at `position`, -1 for padding, in row-major
  // order.
  template <class F> void visit(const Dims& position, F f) const {
    int64_t base = 0;
    for (size_t dim : plain_) base += position[dim] * window_.dims[dim].stride * strides_[dim];
    visit_dim(0, base, position, f);
  }

  Dims result_dims;

private:
  template <class F> void visit_dim(size_t level, int64_t offset, const Dims& position, F& f) const {
    if (level == active_.size()) return f(offset);
    size_t dim = active_[level];
    const WindowDim& window = window_.dims[dim];
    int64_t at = position[dim] * window.stride - window.pad_low;
    for (int64_t k = 0; k < window.size; ++k, at += window.dilation) {
      bool inside = offset >= 0 && at >= 0 && at % window.input_dilation == 0 &&
                    at / window.input_dilation < operand_[dim];
      visit_dim(level + 1, inside ? offset + at / window.input_dilation * strides_[dim] : -1, position, f);
    }
  }

  Dims operand_, strides_;
  Window window_;
  std::vector<size_t> plain_, active_;
};

// Advances a row-major multi-index.
void advance(Dims& index, const Dims& dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i]) return;
    index[i] = 0;
  }
}

Expected<Values> pool_simply(const OpCall& call, const WindowWalk& walk, Opcode reducer) {
  const Literal& operand = call.tensor(0);
  DType dtype = operand.dtype();
  auto result = call.allocate(dtype, walk.result_dims);
  if (!result) return result.error();
  WideElements values = load_all(operand), initial = load_all(call.tensor(1));
  WideElements out(initial.domain, (*result)->num_elements());
  bool known = true;
  Dims position(walk.result_dims.size(), 0);
  for (int64_t i = 0; i < (*result)->num_elements(); ++i, advance(position, walk.result_dims)) {
    out.copy_element(i, initial, 0);
    walk.visit(position, [&](int64_t at) {
      known &=
          at < 0 ? fold(reducer, dtype, out, i, initial, 0, 1) : fold(reducer, dtype, out, i, values, at, 1);
    });
  }
  if (!known) return call.unsupported("cannot reduce " + std::string(dtype_name(dtype)));
  store_all(out, **result);
  return one(*result);
}

Expected<Values> pool_by_region(const OpCall& call, const WindowWalk& walk, int count) {
  auto region = ScalarRegion::create(call, 0);
  if (!region) return region.error();
  std::vector<WideElements> values, initial;
  std::vector<std::shared_ptr<Literal>> results;
  for (int i = 0; i < count; ++i) {
    values.push_back(load_all(call.tensor(i)));
    initial.push_back(load_all(call.tensor(count + i)));
    auto result = call.allocate(call.tensor(i).dtype(), walk.result_dims);
    if (!result) return result.error();
    results.push_back(*result);
  }
  Dims position(walk.result_dims.size(), 0);
  Result status;
  for (int64_t row = 0; row < results[0]->num_elements(); ++row, advance(position, walk.result_dims)) {
    std::vector<WideElements> accumulators = initial;
    walk.visit(position, [&](int64_t at) {
      if (!status) return;
      for (int i = 0; i < count; ++i) {
        auto index = static_cast<size_t>(i);
        region->parameter(i).copy_element(0, accumulators[index], 0);
        region->parameter(count + i).copy_element(0, at < 0 ? initial[index] : values[index],
                                                  at < 0 ? 0 : at);
      }
      status = region->run();
      for (int i = 0; i < count; ++i)
        accumulators[static_cast<size_t>(i)].copy_element(0, region->result(i), 0);
    });
    if (!status) return status.error();
    for (size_t i = 0; i < results.size(); ++i) store_elements(accumulators[i], 1, *results[i], row);
  }
  return Values(results.begin(), results.end());
}

} // namespace

Expected<Values> evaluate_reduce_window(const OpCall& call) {
  int count = call.num_operands() / 2;
  if (count == 0 || call.num_operands() % 2 != 0)
    return call.fail("wants as many initial values as operands");
  for (int i = 0; i < count; ++i) {
    const Literal& initial = call.tensor(count + i);
    if (call.tensor(i).dims() != call.tensor(0).dims()) return call.fail("operands must have one shape");
    if (initial.num_elements() != 1 || initial.dtype() != call.tensor(i).dtype())
      return call.fail("initial value " + describe(initial) + " does not fit " + describe(call.tensor(i)));
    if (initial.dtype() == DType::String) return call.unsupported("cannot reduce strings");
  }
  auto walk = WindowWalk::create(call, call.tensor(0).dims());
  if (!walk) return walk.error();
  if (count == 1)
    if (auto reducer = simple_reducer(call.instruction())) return pool_simply(call, *walk, *reducer);
  return pool_by_region(call, *walk, count);
}

// Region 0 selects: of two operand elements, whether the first stays chosen. Region 1 combines what the
// source adds to a chosen element with what is there, beginning with the initial value. Padding is never
// chosen.
Expected<Values> evaluate_select_and_scatter(const OpCall& call) {
  const Literal &operand = call.tensor(0), &source = call.tensor(1);
  if (operand.dtype() == DType::String) return call.unsupported("has no meaning for strings");
  auto walk = WindowWalk::create(call, operand.dims());
  if (!walk) return walk.error();
  if (source.dims() != walk->result_dims || source.dtype() != call.tensor(2).dtype() ||
      call.tensor(2).num_elements() != 1)
    return call.fail("source is " + describe(source) + ", the window wants " +
                     Type::tensor_of(source.dtype(), walk->result_dims).to_string());
  auto select = ScalarRegion::create(call, 0), combine = ScalarRegion::create(call, 1);
  if (!select) return select.error();
  if (!combine) return combine.error();
  auto result = call.allocate(source.dtype(), operand.dims());
  if (!result) return result.error();
  WideElements values = load_all(operand), sources = load_all(source), initial = load_all(call.tensor(2));
  WideElements out(initial.domain, operand.num_elements());
  for (int64_t i = 0; i < operand.num_elements(); ++i) out.copy_element(i, initial, 0);
  Dims position(walk->result_dims.size(), 0);
  Result status;
  for (int64_t i = 0; i < source.num_elements(); ++i, advance(position, walk->result_dims)) {
    int64_t chosen = -1;
    walk->visit(position, [&](int64_t at) {
      if (at < 0 || !status) return;
      if (chosen < 0) return void(chosen = at);
      select->parameter(0).copy_element(0, values, chosen);
      select->parameter(1).copy_element(0, values, at);
      status = select->run();
      if (select->result().integer[0] == 0) chosen = at;
    });
    if (!status) return status.error();
    if (chosen < 0) continue;
    combine->parameter(0).copy_element(0, out, chosen);
    combine->parameter(1).copy_element(0, sources, i);
    if (Result ok = combine->run(); !ok) return ok.error();
    out.copy_element(chosen, combine->result(), 0);
  }
  store_all(out, **result);
  return one(*result);
}

} // namespace firn::evaluation
