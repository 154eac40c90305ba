// See counted_sequence.h. Rows are moved by gathers, at indices computed from the position.
#include "compiler/frontend/onnx/sequences/counted_sequence.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/sequences/loop.h"

#include <algorithm>
#include <numeric>

namespace firn::onnx {

namespace {

Value pick(NodeContext& node, Value rows, Value numbers) {
  return node.op(Opcode::Gather, {rows, numbers}, {{"axis", int64_t{0}}});
}

// The position that an input gives, counted from the start; an i64 scalar.
Value position(NodeContext& node, Value rows, int input) {
  Value given = scalar_input(node, input, DType::I64);
  if (!given) return {};
  Value negative = node.compare("lt", given, node.scalar_int(DType::I64, 0));
  return node.select(negative, node.binary(Opcode::Add, given, node.dim_size(rows, 0)), given);
}

// x with dim `from` moved to place `to`, and the others in order.
Value move_dim(NodeContext& node, Value x, int from, int to) {
  if (!x || from == to) return x;
  Ints order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return node.transpose(x, std::move(order));
}

Dim plus_dim(const Dim& dim, int64_t more) {
  Dim sum(dim.extent + more);
  sum.counted = dim.counted;
  return sum;
}

} // namespace

Value counted_element(NodeContext& node, Value rows) {
  return pick(node, rows, position(node, rows, 1));
}

Value counted_insert(NodeContext& node, Value rows) {
  Value inserted = node.input(1);
  std::vector<Dim> dims = rows.type().dims;
  dims.erase(dims.begin());
  Type element = Type::tensor(rows.dtype(), dims);
  if (!(inserted.type() == element))
    return node.fail_unsupported(node.input_label(1) + " is " + inserted.type().to_string() +
                                 ", the sequence has " + element.to_string() +
                                 "; where a run decides its length, elements are of one type"),
           Value{};
  Value row = node.unsqueeze(inserted, 0), joined = node.concatenate({rows, row}, 0);
  if (!node.has_input(2)) return joined;
  if (node.constant_ints(node.input(2)) == Ints{0}) return node.concatenate({row, rows}, 0);
  Value at = position(node, rows, 2), here = node.iota(DType::I64, {plus_dim(rows.type().dims[0], 1)}, 0);
  if (!at) return {};
  Value before = node.binary(Opcode::Subtract, here, node.scalar_int(DType::I64, 1));
  Value behind = node.select(node.compare("eq", here, at), node.dim_size(rows, 0), before);
  return pick(node, joined, node.select(node.compare("lt", here, at), here, behind));
}

Value counted_erase(NodeContext& node, Value rows) {
  const Dim& length = rows.type().dims[0];
  if (!node.check(length.extent.upper_bound() > 0, node.input_label(0) + " is a sequence without elements"))
    return {};
  Value last = node.binary(Opcode::Subtract, node.dim_size(rows, 0), node.scalar_int(DType::I64, 1));
  Value at = node.has_input(1) ? position(node, rows, 1) : last;
  if (!at) return {};
  // Clamped to a row that exists, so that exactly one row is dropped.
  at = smaller(node, larger(node, at, node.scalar_int(DType::I64, 0)), last);
  Value kept = non_zero(node, node.compare("ne", node.iota(DType::I64, {length}, 0), at),
                        length.extent.upper_bound() - 1);
  return kept ? pick(node, rows, node.reshape(kept, {kept.type().dims[1]})) : Value{};
}

Value counted_concatenation(NodeContext& node, Value rows, int axis, bool new_axis) {
  Value moved = move_dim(node, rows, 0, axis);
  if (new_axis || !moved) return moved;
  std::vector<Dim> dims = moved.type().dims;
  auto at = static_cast<size_t>(axis);
  auto merged = node.product({dims[at], dims[at + 1]});
  if (!merged) return {};
  merged->counted = dims[at].counted || dims[at + 1].counted;
  dims.erase(dims.begin() + axis);
  dims[at] = *merged;
  return node.reshape(moved, std::move(dims));
}

Value counted_pieces(NodeContext& node, int axis, bool keep) {
  Value rows = move_dim(node, node.input(0), axis, 0);
  return keep && rows ? node.unsqueeze(rows, axis + 1) : rows;
}

void counted_map(NodeContext& node, const wire::GraphProto& body) {
  Values inputs = node.inputs();
  std::vector<bool> stepped(inputs.size());
  LoopForm form;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!node.check_given(static_cast<int>(i))) return;
    stepped[i] = is_container(inputs[i]);
    if (!stepped[i]) continue;
    auto element = common_element(inputs[i]);
    if (!element)
      return node.fail_unsupported(
          node.input_label(static_cast<int>(i)) +
          " has elements of several types, or none, beside a sequence whose length a "
          "run decides");
    inputs[i] = rows_of(node, inputs[i], *element);
    if (!inputs[i]) return;
  }
  form.bound = inputs[0].type().dims[0];
  if (form.bound->is_static()) form.trips = form.bound->value();
  form.trip_count = node.dim_size(inputs[0], 0);
  form.num_rows = body.output_size();
  form.body = [&](Value number, Value, const Values&) -> std::optional<Step> {
    Values arguments = inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (stepped[i]) arguments[i] = pick(node, inputs[i], number);
    auto results = node.failed() ? std::nullopt : node.import_subgraph(body, arguments);
    return results ? std::optional(Step{{}, {}, *results}) : std::nullopt;
  };
  auto results = make_loop(node, form);
  for (size_t i = 0; results && i < results->rows.size(); ++i)
    node.set_output(static_cast<int>(i), make_counted_sequence(node, results->rows[i]));
}

} // namespace firn::onnx
