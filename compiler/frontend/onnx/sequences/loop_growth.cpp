// Loops over buffers in place of growing tensors, and over rows in place of growing sequences.
#include "compiler/frontend/onnx/sequences/loop_growth.h"

#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>

namespace firn::onnx {

namespace {

// --- Tensors that grow.

// A part of a loop's state, one of whose extents grows from step to step.
struct Growing {
  size_t state; // its number in the state
  int axis;
  int64_t growth;          // the most that a step adds
  std::vector<Dim> buffer; // the dims of the buffer
  // The most rows along the axis that a step may begin with.
  int64_t room() const { return buffer[static_cast<size_t>(axis)].value() - growth; }
};

// Rows that a step adds, and extents before and after it: with loops of kMaxSteps (loop.cpp) nothing
// overflows.
constexpr int64_t kMaxGrowth = int64_t{1} << 20;
constexpr int64_t kMaxExtent = int64_t{1} << 31;

// How part `number` of the state grows, if a first step makes `to` of `from`; nothing if it changes in
// another way. The growth of a step follows from the bounds, and is checked when the body is made for the
// buffer.
std::optional<Growing> growing_part(size_t number, const Type& from, const Type& to, int64_t steps) {
  if (!from.is_tensor() || !to.is_tensor() || from.dtype != to.dtype || from.rank() != to.rank())
    return std::nullopt;
  Growing part{number, -1, 0, from.dims};
  for (size_t d = 0; d < from.dims.size(); ++d) {
    if (from.dims[d] == to.dims[d] && !from.dims[d].counted) continue;
    int64_t max = from.dims[d].extent.upper_bound(), next = to.dims[d].extent.upper_bound();
    if (part.axis >= 0 || max > kMaxExtent || next > kMaxExtent || next - max > kMaxGrowth ||
        from.dims[d].extent.lower_bound() < 0 || to.dims[d].extent.lower_bound() < 0)
      return std::nullopt;
    part.axis = static_cast<int>(d);
    part.growth = std::max<int64_t>(0, next - max);
    part.buffer[d] = Dim(max + steps * part.growth);
  }
  if (part.axis < 0 || !is_sane_type(Type::tensor(from.dtype, part.buffer))) return std::nullopt;
  return part;
}

// The parts that a step changes; nothing if one of them does not grow.
std::optional<std::vector<Growing>> growing_parts(const Values& before, const std::vector<StateChange>& after,
                                                  int64_t steps) {
  std::vector<Growing> parts;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].type() == after[i].type && !after[i].restructured) continue;
    auto part = growing_part(i, before[i].type(), after[i].type, steps);
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
  }
  return parts;
}

// Whether a part of the state fits its buffer after a step.
bool check_growth(NodeContext& node, const Growing& part, const Type& from, const Type& to) {
  bool fits = to.rank() == from.rank();
  for (size_t d = 0; fits && d < to.dims.size(); ++d)
    fits = static_cast<int>(d) == part.axis
               ? to.dims[d].extent.upper_bound() <= from.dims[d].extent.upper_bound() + part.growth
               : to.dims[d] == from.dims[d];
  if (!fits)
    node.fail_unsupported("a step makes " + to.to_string() + " of " + from.to_string() +
                          ", and less of it at first");
  return fits;
}

// Puts the growing parts of a state into buffers, and appends their extents to it.
void hide(NodeContext& node, const std::vector<Growing>& parts, Values& state) {
  for (const Growing& part : parts) {
    Value whole = state[part.state];
    state[part.state] = bounded(node, whole, part.buffer);
    state.push_back(whole ? node.dim_size(whole, part.axis) : Value{});
  }
}

std::optional<LoopResults> make_over_buffers(NodeContext& node, const LoopForm& form,
                                             const std::vector<Growing>& parts, Dim bound) {
  LoopForm inner = form;
  inner.bound = bound;
  inner.prefers_steps = false;
  const size_t states = form.state.size();
  hide(node, parts, inner.state);
  if (node.failed()) return std::nullopt;
  inner.body = [&](Value index, Value go_on, const Values& state) -> std::optional<Step> {
    Values shown(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(states));
    for (size_t p = 0; p < parts.size(); ++p) {
      Value& whole = shown[parts[p].state];
      // The rest of the buffer stays free for what this step adds.
      whole = node.slice_dim(whole, parts[p].axis, 0, parts[p].room());
      whole = first_rows(node, whole, parts[p].axis, state[states + p]);
    }
    if (node.failed()) return std::nullopt;
    auto step = form.body(index, go_on, shown);
    if (!step) return std::nullopt;
    for (const Growing& part : parts)
      if (!check_growth(node, part, shown[part.state].type(), step->state[part.state].type()))
        return std::nullopt;
    hide(node, parts, step->state);
    return node.failed() ? std::nullopt : step;
  };
  auto results = make_loop(node, inner);
  for (size_t p = 0; results && p < parts.size(); ++p) {
    Value& whole = results->state[parts[p].state];
    whole = first_rows(node, whole, parts[p].axis, results->state[states + p]);
  }
  if (results) results->state.resize(states);
  return results;
}

// --- Sequences that grow.

// The element types of those parts of the state that are sequences to be made rows. Nothing if a part that
// changes its length has elements of several types, or with extents that data decide.
std::optional<std::vector<std::optional<Type>>> row_types(const Values& before,
                                                          const std::vector<StateChange>& after) {
  std::vector<std::optional<Type>> elements(before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    if (!after[i].restructured) continue;
    if (before[i].type().kind != Type::Kind::Sequence || after[i].type.kind != Type::Kind::Sequence)
      return std::nullopt;
    bool empty = !is_counted(before[i]) && elements_of(before[i]).empty();
    elements[i] = empty ? *after[i].type.element : common_element(before[i]);
    if (!elements[i] || !(*elements[i] == *after[i].type.element) || !elements[i]->is_tensor() ||
        elements[i]->dtype == DType::String)
      return std::nullopt;
    for (const Dim& dim : elements[i]->dims)
      if (dim.counted || dim.extent.upper_bound() > kMaxExtent) return std::nullopt;
  }
  return elements;
}

std::optional<LoopResults> make_over_rows(NodeContext& node, const LoopForm& form,
                                          const std::vector<std::optional<Type>>& elements, Dim bound) {
  LoopForm inner = form;
  inner.bound = bound;
  inner.prefers_steps = false;
  auto stack = [&](Values& state) {
    for (size_t i = 0; i < state.size(); ++i) {
      if (!elements[i]) continue;
      auto common = common_element(state[i]);
      if (common ? node.check(*common == *elements[i], "a sequence that the loop makes longer has " +
                                                           elements[i]->to_string() + " and " +
                                                           common->to_string())
                 : node.check(!is_counted(state[i]) && elements_of(state[i]).empty(),
                              "a sequence that the loop makes longer has elements of several types"))
        state[i] = rows_of(node, state[i], *elements[i]);
    }
  };
  auto unstack = [&](Values& state) {
    for (size_t i = 0; i < state.size(); ++i)
      if (elements[i]) state[i] = make_counted_sequence(node, state[i]);
  };
  stack(inner.state);
  inner.body = [&](Value index, Value go_on, const Values& state) -> std::optional<Step> {
    Values shown = state;
    unstack(shown);
    if (node.failed()) return std::nullopt;
    auto step = form.body(index, go_on, shown);
    if (step) stack(step->state);
    return node.failed() ? std::nullopt : step;
  };
  auto results = node.failed() ? std::nullopt : make_loop(node, inner);
  if (results) unstack(results->state);
  return results;
}

} // namespace

std::optional<LoopResults> make_growing(NodeContext& node, const LoopForm& form,
                                        const std::vector<StateChange>& changes, Dim bound) {
  bool has_sequences = std::any_of(changes.begin(), changes.end(),
                                   [](const StateChange& change) { return change.restructured; });
  if (has_sequences) {
    auto elements = row_types(form.state, changes);
    return elements ? make_over_rows(node, form, *elements, bound) : std::nullopt;
  }
  auto parts = growing_parts(form.state, changes, bound.extent.upper_bound());
  if (!parts || parts->empty()) return std::nullopt;
  return make_over_buffers(node, form, *parts, bound);
}

} // namespace firn::onnx
