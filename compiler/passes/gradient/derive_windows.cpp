// Adjoints of windows and convolutions. A window that is slid back over the cotangent has the stride of the
// first one between its elements, and steps over what lay between the elements of the input.
#include "compiler/passes/gradient/adjoints.h"

#include "compiler/graph/composites.h"

#include <cmath>

namespace firn::gradient {
namespace {

// Whether zeros have to stand between the elements of a cotangent before a window slides over it: windows
// over varying extents do not step over places between elements.
bool needs_zeros(const WindowDim& window, const Dim& out) {
  return window.stride > 1 && !out.is_static();
}

// The window over a cotangent of extent `out` that gives the extent `in` of the input again. If the elements
// behind the last window vary in number, it gives as many more as there may be. Nothing if no window does.
std::optional<WindowDim> transposed(const WindowDim& window, const Dim& in, const Dim& out) {
  WindowDim back = window;
  back.stride = window.input_dilation;
  back.input_dilation = window.stride;
  back.pad_low = window.dilated_size() - 1 - window.pad_low;
  IntExpr covered = (out.extent - 1) * window.stride + 1;
  IntExpr wanted = (in.extent - 1) * window.input_dilation + window.dilated_size();
  IntExpr high = wanted - covered - back.pad_low;
  bool has_steps = window.stride == 1 || out.is_static() || out.extent.lower_bound() > 0;
  if (!has_steps || (!high.is_constant() && window.input_dilation != 1)) return std::nullopt;
  back.pad_high =
      high.is_constant() ? high.value() : window.dilated_size() - 1 - window.pad_high + window.stride - 1;
  if (!needs_zeros(window, out)) return back;
  back.pad_high -= window.stride - 1; // zeros behind the last element, too
  back.input_dilation = 1;
  return back;
}

// A window over a cotangent, and that with the zeros that it needs. Dims of the window are those from `first`
// on.
struct TransposedWindow {
  Window window;
  Value cotangent;
};

std::optional<TransposedWindow> transposed(GraphBuilder& b, Value dy, const Window& window,
                                           const std::vector<Dim>& in, size_t first) {
  TransposedWindow back{{}, dy};
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const Dim out = dy.type().dims[first + d];
    auto dim = transposed(window.dims[d], in[first + d], out);
    if (!dim) return std::nullopt;
    back.window.dims.push_back(*dim);
    if (!needs_zeros(window.dims[d], out)) continue;
    int64_t stride = window.dims[d].stride;
    auto at = static_cast<int64_t>(first + d);
    std::vector<Dim> dims = back.cotangent.type().dims, spaced = dims;
    dims.insert(dims.begin() + at + 1, Dim(1));
    Value elements = b.reshape(back.cotangent, dims);
    dims[first + d + 1] = Dim(stride - 1);
    Value zeros = b.broadcast_to(b.scalar(dy.dtype(), 0), dims);
    spaced[first + d] = Dim(out.extent * stride);
    back.cotangent = b.reshape(b.concatenate({elements, zeros}, static_cast<int>(at) + 1), spaced);
  }
  return back;
}

// The elements of what such windows give that stand for elements of the input.
Value without_surplus(GraphBuilder& b, Value dx, const std::vector<Dim>& in) {
  for (int d = 0; d < dx.rank(); ++d) dx = part(b, dx, d, 0, in[static_cast<size_t>(d)]);
  return dx;
}

// The first element of each window of x that `direction` prefers gets the cotangent of the window.
Value scatter_selected(GraphBuilder& b, Value x, Value source, const Window& window, const char* direction) {
  Type scalar = Type::tensor(x.dtype(), {});
  Instruction* made =
      b.make(Opcode::SelectAndScatter, {x, source, b.scalar(x.dtype(), 0)}, {{"window", window}});
  for (int part = 0; part < 2; ++part) {
    Region& region = made->add_region();
    Value lhs = region.add_parameter(scalar)->result(), rhs = region.add_parameter(scalar)->result();
    GraphBuilder inside(region);
    region.set_results(
        {part == 0 ? inside.compare(direction, lhs, rhs) : inside.binary(Opcode::Add, lhs, rhs)});
  }
  return made->result();
}

} // namespace

namespace {

// The direction by which a window over pairs keeps the pair with the better first element, as
// derive_select_and_scatter writes it. Nothing for other windows.
std::optional<std::string> pair_selection(const Instruction& window) {
  const Region& region = window.region();
  if (window.num_operands() != 4 || region.instructions().size() != 7) return std::nullopt;
  const Instruction* compare = nullptr;
  for (int i = 0; i < 2; ++i) {
    const Instruction& select = *region.results()[static_cast<size_t>(i)].def;
    bool keeps_one = select.is(Opcode::Select) && select.operand(1) == region.parameter(i) &&
                     select.operand(2) == region.parameter(2 + i);
    if (!keeps_one) return std::nullopt;
    compare = select.operand(0).def;
  }
  bool is_first = compare->is(Opcode::Compare) && compare->operand(0) == region.parameter(0) &&
                  compare->operand(1) == region.parameter(2);
  return is_first ? std::optional(compare->word("direction")) : std::nullopt;
}

// The direction by which a window over values and their positions keeps the better value, and the one of the
// lower position among equal ones. Nothing for other windows.
std::optional<std::string> selection_with_position(const Instruction& window) {
  const Region& region = window.region();
  if (window.num_operands() != 4 || !is_integer(window.operand(1).dtype())) return std::nullopt;
  Value value = region.parameter(0), other = region.parameter(2);
  const Instruction& select = *region.results()[0].def;
  bool takes_one = select.is(Opcode::Select) && select.operand(1) == other && select.operand(2) == value &&
                   select.operand(0).def->is(Opcode::Or);
  if (!takes_one) return std::nullopt;
  const Instruction& either = *select.operand(0).def;
  auto compares = [&](Value condition, std::string_view direction, int lhs) {
    const Instruction& def = *condition.def;
    return def.is(Opcode::Compare) && def.word("direction") == direction &&
           def.operand(0) == region.parameter(lhs) && def.operand(1) == region.parameter(lhs - 2);
  };
  const Instruction& earlier = *either.operand(1).def;
  bool is_first = earlier.is(Opcode::And) && compares(earlier.operand(0), "eq", 2) &&
                  compares(earlier.operand(1), "lt", 3);
  if (!is_first) return std::nullopt;
  if (compares(either.operand(0), "gt", 2)) return "ge";
  return compares(either.operand(0), "lt", 2) ? std::optional<std::string>("le") : std::nullopt;
}

} // namespace

void derive_reduce_window(VectorJacobian& v) {
  if (auto direction = selection_with_position(v.primal)) {
    if (v.dy()) v.give(0, scatter_selected(v.b, v.x(), v.dy(), v.attributes().window(), direction->c_str()));
    return;
  }
  if (auto direction = pair_selection(v.primal)) {
    for (int i = 0; i < 2; ++i)
      if (v.dy(i) && v.wants(i))
        v.give(i, scatter_selected(v.b, v.x(), v.dy(i), v.attributes().window(), direction->c_str()));
    return;
  }
  auto reducer = simple_reducer(v.primal);
  if (!reducer || v.primal.num_operands() != 2) return v.refuse("it reduces by more than one op");
  if (v.wants(1)) return v.refuse("its initial value depends on what the gradient is taken by");
  if (is_empty(v.x().type()) || is_empty(v.y().type())) return;
  const Window& window = v.attributes().window();
  if (*reducer == Opcode::Maximum || *reducer == Opcode::Minimum)
    return v.give(0, scatter_selected(v.b, v.x(), v.dy(), window, *reducer == Opcode::Maximum ? "ge" : "le"));
  if (*reducer != Opcode::Add) return v.refuse("it reduces by " + std::string(opcode_name(*reducer)));
  auto back = transposed(v.b, v.dy(), window, v.x().type().dims, 0);
  if (!back) return v.refuse("the padding of its transposed window varies");
  Value dx = v.b.reduce_window(Opcode::Add, back->cotangent, back->window);
  v.give(0, without_surplus(v.b, dx, v.x().type().dims));
}

// The element of the cotangent at the place that each window selects: the pair (x, cotangent) is reduced by
// what the selection prefers.
void derive_select_and_scatter(VectorJacobian& v) {
  if (v.wants(2)) return v.refuse("its initial value depends on what the gradient is taken by");
  if (!v.wants(1)) return; // which elements are selected does not vary
  const Region &select = v.primal.region(0), &combine = v.primal.region(1);
  const Instruction& compare = *select.results()[0].def;
  bool is_plain = select.instructions().size() == 3 && compare.is(Opcode::Compare) &&
                  compare.operand(0) == select.parameter(0) && combine.instructions().size() == 3 &&
                  combine.results()[0].def->is(Opcode::Add);
  if (!is_plain) return v.refuse("it selects by more than one comparison, or does not add");
  std::string direction = compare.word("direction");
  bool upwards = direction == "ge" || direction == "gt";
  DType dtype = v.x().dtype();
  Value worst = v.b.scalar(dtype, upwards ? -INFINITY : INFINITY), zero = v.b.scalar(dtype, 0);
  Type type = Type::tensor(dtype, v.x(1).type().dims);
  Instruction* made = v.b.make_typed(Opcode::ReduceWindow, {v.x(), v.dy(), worst, zero}, {type, type},
                                     {{"window", v.attributes().window()}});
  Region& region = made->add_region();
  std::vector<Value> sides;
  for (int i = 0; i < 4; ++i) sides.push_back(region.add_parameter(Type::tensor(dtype, {}))->result());
  GraphBuilder inside(region);
  Value stays = inside.compare(direction, sides[0], sides[2]);
  region.set_results({inside.select(stays, sides[0], sides[2]), inside.select(stays, sides[1], sides[3])});
  v.give(1, made->result(1));
}

namespace {

// A filter [O, C/g, spatial] as that of the transposed convolution: [C, O/g, spatial], turned around.
Value transposed_filter(GraphBuilder& b, Value filter, int64_t groups) {
  const std::vector<Dim> dims = filter.type().dims;
  int64_t outputs = dims[0].value() / groups, inputs = dims[1].value();
  std::vector<Dim> split{Dim(groups), Dim(outputs), Dim(inputs)}, joined{Dim(groups * inputs), Dim(outputs)};
  split.insert(split.end(), dims.begin() + 2, dims.end());
  joined.insert(joined.end(), dims.begin() + 2, dims.end());
  std::vector<int64_t> order = numbers_below(static_cast<int64_t>(split.size()));
  std::swap(order[1], order[2]);
  Value swapped = b.reshape(b.transpose(b.reshape(filter, split), order), joined);
  return b.op(Opcode::Reverse, {swapped}, {{"dims", numbers_below(filter.rank(), 2)}});
}

// A convolution along dims of which some have zeros between their elements and one tap: these are put between
// the results, so that none are multiplied.
Value dilated_convolution(GraphBuilder& b, Value x, Value filter, Window window, int64_t groups) {
  std::vector<int64_t> low(2, 0), high(2, 0), interior(2, 0);
  for (WindowDim& dim : window.dims) {
    bool is_moved = dim.size == 1 && dim.stride == 1 && dim.input_dilation > 1;
    low.push_back(is_moved ? dim.pad_low : 0);
    high.push_back(is_moved ? dim.pad_high : 0);
    interior.push_back(is_moved ? dim.input_dilation - 1 : 0);
    if (is_moved) dim = WindowDim{};
  }
  Value y = b.op(Opcode::Convolution, {x, filter}, {{"window", window}, {"groups", groups}});
  if (interior == std::vector<int64_t>(interior.size(), 0)) return y;
  return b.op(Opcode::Pad, {y, b.scalar(y.dtype(), 0)},
              {{"low", low}, {"high", high}, {"interior", interior}});
}

Value input_gradient(VectorJacobian& v, const TransposedWindow& back, int64_t groups) {
  Value filter = transposed_filter(v.b, v.b.convert(v.x(1), v.dy().dtype()), groups);
  Value dx = dilated_convolution(v.b, back.cotangent, filter, back.window, groups);
  return v.b.convert(without_surplus(v.b, dx, v.x(0).type().dims), v.x(0).dtype());
}

// An image [N, g*C, spatial] as [C, g*N, spatial]. Without groups that is one transpose, which layouts may
// read through.
Value images_as_channels(GraphBuilder& b, Value x, int64_t groups) {
  const std::vector<Dim> dims = x.type().dims;
  if (groups == 1) {
    std::vector<int64_t> swap = numbers_below(x.rank());
    std::swap(swap[0], swap[1]);
    return b.transpose(x, swap);
  }
  int64_t channels = dims[1].value() / groups, images = dims[0].value();
  std::vector<Dim> split{Dim(images), Dim(groups), Dim(channels)};
  std::vector<Dim> joined{Dim(channels), Dim(groups * images)};
  split.insert(split.end(), dims.begin() + 2, dims.end());
  joined.insert(joined.end(), dims.begin() + 2, dims.end());
  std::vector<int64_t> order = numbers_below(static_cast<int64_t>(split.size()));
  std::swap(order[0], order[2]);
  return b.reshape(b.transpose(b.reshape(x, split), order), joined);
}

// Images are channels here: x as [C/g, g*N, spatial] under filters dy [O, N, spatial]; the positions of the
// result are the taps of the filter.
Value filter_gradient(VectorJacobian& v, const Window& window, int64_t groups) {
  const std::vector<Dim>&in = v.x(0).type().dims, &out = v.dy().type().dims;
  Value x = images_as_channels(v.b, v.b.convert(v.x(0), v.dy().dtype()), groups);
  std::vector<int64_t> swap = numbers_below(v.dy().rank());
  std::swap(swap[0], swap[1]);
  Window taps;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const WindowDim& dim = window.dims[d];
    WindowDim tap{.size = out[d + 2].value(), .stride = dim.dilation, .pad_low = dim.pad_low};
    tap.dilation = dim.stride;
    tap.input_dilation = dim.input_dilation;
    int64_t covered = (in[d + 2].value() - 1) * dim.input_dilation + 1 + dim.pad_low;
    tap.pad_high = tap.dilated_size() + (dim.size - 1) * dim.dilation - covered;
    taps.dims.push_back(tap);
  }
  Value dw =
      v.b.op(Opcode::Convolution, {x, v.b.transpose(v.dy(), swap)}, {{"window", taps}, {"groups", groups}});
  return v.b.convert(v.b.transpose(dw, swap), v.x(1).dtype());
}

// The positions of x under one tap of the filter, if they vary in number: windows of one element.
Value under_tap_of_many(GraphBuilder& b, Value x, const Window& window, const std::vector<int64_t>& tap) {
  Window elements;
  elements.dims.resize(2);
  for (size_t d = 0; d < tap.size(); ++d) {
    const WindowDim& dim = window.dims[d];
    WindowDim element{.size = 1, .stride = dim.stride};
    element.pad_low = dim.pad_low - tap[d] * dim.dilation;
    element.pad_high = dim.pad_high - (dim.size - 1 - tap[d]) * dim.dilation;
    element.input_dilation = dim.input_dilation;
    elements.dims.push_back(element);
  }
  return b.reduce_window(Opcode::Add, x, elements);
}

// The positions of x under one tap of the filter: [N, C, positions].
Value under_tap(GraphBuilder& b, Value padded, const Window& window, const std::vector<int64_t>& tap,
                const std::vector<Dim>& out) {
  std::vector<int64_t> starts(2, 0), limits, strides(2, 1);
  for (size_t d = 0; d < 2; ++d) {
    const Dim& dim = padded.type().dims[d];
    limits.push_back(dim.is_static() ? dim.value() : -1);
  }
  for (size_t d = 0; d < tap.size(); ++d) {
    const WindowDim& dim = window.dims[d];
    starts.push_back(tap[d] * dim.dilation);
    strides.push_back(dim.stride);
    limits.push_back(starts.back() + (out[d + 2].value() - 1) * dim.stride + 1);
  }
  return b.slice(padded, starts, limits, strides);
}

// A product per tap of the filter, for numbers of images or positions that vary.
Value filter_gradient_by_taps(VectorJacobian& v, const Window& window, int64_t groups) {
  const std::vector<Dim>&in = v.x(0).type().dims, &out = v.dy().type().dims;
  std::vector<int64_t> low(2, 0), high(2, 0), interior(2, 0), tap(window.dims.size(), 0);
  for (const WindowDim& dim : window.dims) {
    low.push_back(dim.pad_low);
    high.push_back(dim.pad_high);
    interior.push_back(dim.input_dilation - 1);
  }
  Value x = v.b.convert(v.x(0), v.dy().dtype());
  bool is_fixed = std::all_of(in.begin() + 2, in.end(), [](const Dim& dim) { return dim.is_static(); });
  Value padded = !is_fixed ? x
                           : v.b.op(Opcode::Pad, {x, v.b.scalar(x.dtype(), 0)},
                                    {{"low", low}, {"high", high}, {"interior", interior}});
  auto grouped = [&](Value value) {
    std::vector<Dim> dims = value.type().dims;
    dims[1] = Dim(dims[1].value() / groups);
    dims.insert(dims.begin() + 1, Dim(groups));
    return v.b.reshape(value, dims); // [N, g, channels, positions]
  };
  Value dy = grouped(v.dy());
  std::vector<int64_t> contract{0}, batch{1};
  for (int64_t d = 3; d < dy.rank(); ++d) contract.push_back(d);
  std::vector<Value> products;
  int64_t taps = 1;
  for (const WindowDim& dim : window.dims) taps *= dim.size;
  for (int64_t number = 0; number < taps; ++number) {
    for (int64_t d = static_cast<int64_t>(tap.size()) - 1, rest = number; d >= 0; --d) {
      tap[static_cast<size_t>(d)] = rest % window.dims[static_cast<size_t>(d)].size;
      rest /= window.dims[static_cast<size_t>(d)].size;
    }
    Value product = v.b.op(
        Opcode::Dot,
        {dy, grouped(is_fixed ? under_tap(v.b, padded, window, tap, out)
                              : under_tap_of_many(v.b, x, window, tap))},
        {{"lhs_batch", batch}, {"lhs_contract", contract}, {"rhs_batch", batch}, {"rhs_contract", contract}});
    Dim outputs = out[1], inputs(in[1].value() / groups);
    products.push_back(v.b.reshape(product, {outputs, inputs, Dim(1)}));
  }
  return v.b.convert(v.b.reshape(v.b.concatenate(products, 2), v.x(1).type().dims), v.x(1).dtype());
}

} // namespace

void derive_convolution(VectorJacobian& v) {
  if (is_empty(v.x(0).type()) || is_empty(v.x(1).type()) || is_empty(v.y().type())) return;
  const Window& window = v.attributes().window();
  int64_t groups = v.attributes().integer("groups", 1);
  if (v.wants(0)) {
    auto back = transposed(v.b, v.dy(), window, v.x().type().dims, 2);
    if (!back) return v.refuse("the padding of its transposed window varies");
    v.give(0, input_gradient(v, *back, groups));
  }
  if (!v.wants(1)) return;
  bool is_fixed = v.x().type().is_static() && v.y().type().is_static();
  v.give(1, is_fixed ? filter_gradient(v, window, groups) : filter_gradient_by_taps(v, window, groups));
}

} // namespace firn::gradient
