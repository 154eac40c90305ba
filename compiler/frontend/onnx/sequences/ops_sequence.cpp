// Importers of operators on sequences and optionals, whose elements are known while the model is read
// (containers.h), or are the rows of a tensor (counted_sequence.h). A position that only a run knows picks
// from elements of one type, stacked.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/containers.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/parts.h"
#include "compiler/frontend/onnx/sequences/counted_sequence.h"

#include <algorithm>
#include <numeric>

namespace firn::onnx {

namespace {

using Kind = Type::Kind;

bool check_kind(NodeContext& node, int input, Kind kind, const char* wanted) {
  const Type& type = node.input(input).type();
  return node.check(type.kind == kind,
                    node.input_label(input) + " is " + type.to_string() + ", wants " + wanted);
}

bool check_sequence(NodeContext& node, int input) {
  return check_kind(node, input, Kind::Sequence, "a sequence") &&
         node.check(!is_map(node.input(input)), node.input_label(input) +
                                                    " is a map, or a sequence of maps, " +
                                                    "wants a sequence of tensors");
}

const Type& element_type(Value sequence) {
  return *sequence.type().element;
}

// --- Positions.

struct Position {
  std::optional<int64_t> known; // in [0, limit)
  Value computed;               // otherwise: an i64 scalar, not negative unless out of range
};

// The position that an input gives in a sequence of `length` elements, counted from the end if it is
// negative. Nothing after a failure.
std::optional<Position> read_position(NodeContext& node, int input, int64_t length, int64_t limit) {
  Value given = scalar_input(node, input, DType::I64);
  if (!given) return std::nullopt;
  if (auto known = node.constant_ints(given)) {
    int64_t found = (*known)[0], position = found < 0 ? found + length : found;
    if (!node.check(position >= 0 && position < limit, "position " + std::to_string(found) +
                                                           " is out of range for a sequence of " +
                                                           std::to_string(length)))
      return std::nullopt;
    return Position{position, {}};
  }
  Value negative = node.compare("lt", given, node.scalar_int(DType::I64, 0));
  Value wrapped = node.select(negative, plus(node, given, static_cast<double>(length)), given);
  return Position{{}, wrapped};
}

// Elements of one type as the rows of a tensor, so that a run can pick one by its position, which is input
// `position` of the node.
Value stacked(NodeContext& node, const Values& elements, int position) {
  Values rows;
  for (Value element : elements) {
    if (!(element.type() == elements[0].type())) {
      node.fail_unknown({node.input(position)},
                        node.input_label(position) + " must be constant, as elements of the sequence are " +
                            elements[0].type().to_string() + " and " + element.type().to_string());
      return {};
    }
    rows.push_back(node.unsqueeze(element, 0));
  }
  return node.concatenate(rows, 0);
}

Value pick(NodeContext& node, Value rows, Value number) {
  return node.op(Opcode::Gather, {rows, number}, {{"axis", int64_t{0}}});
}

// --- Making and reading sequences.

void import_sequence_construct(NodeContext& node) {
  node.set_output(0, make_sequence(node, node.inputs(), node.input(0).type()));
}

void import_sequence_empty(NodeContext& node) {
  DType dtype = node.dtype_attribute("dtype").value_or(DType::F32);
  node.set_output(0, make_sequence(node, {}, Type::tensor(dtype, {})));
}

void import_sequence_length(NodeContext& node) {
  if (!check_sequence(node, 0)) return;
  Value sequence = node.input(0);
  if (is_counted(sequence)) return node.set_output(0, node.dim_size(elements_of(sequence)[0], 0));
  node.set_output(0, node.scalar_int(DType::I64, static_cast<int64_t>(elements_of(sequence).size())));
}

void import_sequence_at(NodeContext& node) {
  if (!check_sequence(node, 0)) return;
  Values elements = elements_of(node.input(0));
  if (is_counted(node.input(0))) return node.set_output(0, counted_element(node, elements[0]));
  auto length = static_cast<int64_t>(elements.size());
  if (!node.check(length > 0, node.input_label(0) + " is a sequence without elements")) return;
  auto position = read_position(node, 1, length, length);
  if (!position) return;
  node.set_output(0, position->known ? elements[static_cast<size_t>(*position->known)]
                                     : pick(node, stacked(node, elements, 1), position->computed));
}

void import_sequence_insert(NodeContext& node) {
  if (!check_sequence(node, 0)) return;
  Value inserted = node.input(1);
  const Type& element = element_type(node.input(0));
  if (!node.check(inserted.type().is_tensor() && inserted.dtype() == element.dtype,
                  node.input_label(1) + " is " + inserted.type().to_string() + ", the sequence has " +
                      element.to_string()))
    return;
  Values elements = elements_of(node.input(0));
  if (is_counted(node.input(0)))
    return node.set_output(0, make_counted_sequence(node, counted_insert(node, elements[0])));
  auto length = static_cast<int64_t>(elements.size());
  std::optional<Position> position = Position{length, {}};
  if (node.has_input(2)) position = read_position(node, 2, length, length + 1);
  if (!position) return;
  if (position->known) {
    elements.insert(elements.begin() + *position->known, inserted);
    return node.set_output(0, make_sequence(node, std::move(elements), element));
  }
  elements.push_back(inserted);
  Value rows = stacked(node, elements, 2), last = node.scalar_int(DType::I64, length);
  for (int64_t i = 0; i <= length; ++i) {
    Value here = node.scalar_int(DType::I64, i),
          before = node.scalar_int(DType::I64, std::max<int64_t>(i - 1, 0));
    Value behind = node.select(node.compare("eq", here, position->computed), last, before);
    elements[static_cast<size_t>(i)] =
        pick(node, rows, node.select(node.compare("lt", here, position->computed), here, behind));
  }
  node.set_output(0, make_sequence(node, std::move(elements), element));
}

void import_sequence_erase(NodeContext& node) {
  if (!check_sequence(node, 0)) return;
  Values elements = elements_of(node.input(0));
  if (is_counted(node.input(0)))
    return node.set_output(0, make_counted_sequence(node, counted_erase(node, elements[0])));
  auto length = static_cast<int64_t>(elements.size());
  if (!node.check(length > 0, node.input_label(0) + " is a sequence without elements")) return;
  std::optional<Position> position = Position{length - 1, {}};
  if (node.has_input(1)) position = read_position(node, 1, length, length);
  if (!position) return;
  if (position->known) {
    elements.erase(elements.begin() + *position->known);
  } else {
    Value rows = stacked(node, elements, 1);
    elements.pop_back();
    for (int64_t i = 0; i + 1 < length; ++i) {
      Value here = node.scalar_int(DType::I64, i), next = node.scalar_int(DType::I64, i + 1);
      elements[static_cast<size_t>(i)] =
          pick(node, rows, node.select(node.compare("lt", here, position->computed), here, next));
    }
  }
  node.set_output(0, make_sequence(node, std::move(elements), element_type(node.input(0))));
}

// --- Tensors to sequences and back.

// The extents of the pieces that input 1 splits an axis of `extent` into; nothing after a failure.
std::optional<Ints> read_pieces(NodeContext& node, int64_t extent) {
  auto given = node.required_constant_ints(1);
  if (!given) return std::nullopt;
  Ints pieces;
  int64_t total = 0;
  if (node.input(1).rank() == 0) {
    int64_t size = (*given)[0];
    if (!node.check(size > 0, "it splits into pieces of " + std::to_string(size)) ||
        !node.check(extent / size < kMaxLength, "it splits into too many pieces"))
      return std::nullopt;
    for (; total < extent; total += pieces.back()) pieces.push_back(std::min(size, extent - total));
    return pieces;
  }
  for (int64_t size : *given) {
    if (!node.check(size >= 0 && size <= extent - total,
                    node.input_label(1) + " does not add up to " + std::to_string(extent)))
      return std::nullopt;
    pieces.push_back(size);
    total += size;
  }
  if (!node.check(total == extent, node.input_label(1) + " adds up to " + std::to_string(total) +
                                       ", the axis has " + std::to_string(extent)))
    return std::nullopt;
  return pieces;
}

// The pieces of a varying dim as the rows of a tensor, if input 1 is one size that divides the dim in every
// run; else nothing.
std::optional<Value> equal_pieces(NodeContext& node, int axis) {
  Value x = node.input(0);
  std::vector<Dim> dims = x.type().dims;
  const Dim extent = dims[static_cast<size_t>(axis)];
  auto size = node.has_input(1) ? node.constant_ints(node.input(1)) : std::nullopt;
  if (extent.is_static() || !size || size->size() != 1 || (*size)[0] < 1 || !is_safe_dim((*size)[0]) ||
      !(floor_mod(extent.extent, (*size)[0]) == IntExpr(0)))
    return std::nullopt;
  dims[static_cast<size_t>(axis)] = Dim(floor_div(extent.extent, (*size)[0]));
  dims.insert(dims.begin() + axis + 1, Dim((*size)[0]));
  Ints order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
  return node.transpose(node.reshape(x, std::move(dims)), std::move(order));
}

void import_split_to_sequence(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", 0), x.rank());
  bool keep = node.has_input(1) || node.flag_attribute("keepdims", true);
  if (!axis || node.failed()) return;
  bool one_by_one =
      !node.has_input(1) || (node.input(1).rank() == 0 && node.constant_ints(node.input(1)) == Ints{1});
  if (one_by_one && !x.type().dims[static_cast<size_t>(*axis)].is_static())
    return node.set_output(0, make_counted_sequence(node, counted_pieces(node, *axis, keep)));
  if (node.has_input(1) && node.input(1).rank() == 1 &&
      (!x.type().dims[static_cast<size_t>(*axis)].is_static() || !node.constant_ints(node.input(1)))) {
    auto sizes = scalars_of(node, 1, kMaxLength);
    Values parts = sizes ? parts_of(node, *axis, *sizes) : Values{};
    if (!node.failed())
      node.set_output(0, make_sequence(node, std::move(parts), Type::tensor(x.dtype(), {})));
    return;
  }
  if (auto rows = equal_pieces(node, *axis)) return node.set_output(0, make_counted_sequence(node, *rows));
  auto extent = node.static_dim(0, *axis);
  if (!extent) return;
  if (!node.has_input(1) && !node.check(*extent <= kMaxLength, "it splits into too many pieces")) return;
  auto pieces = node.has_input(1) ? read_pieces(node, *extent) : Ints(static_cast<size_t>(*extent), 1);
  if (!pieces) return;
  Values elements;
  int64_t start = 0;
  for (int64_t size : *pieces) {
    Value piece = node.slice_dim(x, *axis, start, start + size);
    elements.push_back(keep ? piece : node.squeeze(piece, *axis));
    start += size;
  }
  node.set_output(0, make_sequence(node, std::move(elements), Type::tensor(x.dtype(), {})));
}

void import_concat_from_sequence(NodeContext& node) {
  if (!check_sequence(node, 0)) return;
  Values elements = elements_of(node.input(0));
  if (!node.check(!elements.empty(), node.input_label(0) + " is a sequence without elements")) return;
  bool new_axis = node.flag_attribute("new_axis", false), counted = is_counted(node.input(0));
  int rank = elements[0].rank() - counted;
  auto axis = node.axis(node.required_int("axis"), rank + new_axis);
  if (!axis) return;
  if (counted) return node.set_output(0, counted_concatenation(node, elements[0], *axis, new_axis));
  if (new_axis)
    for (Value& element : elements) {
      if (!node.check(element.rank() == rank, "the elements differ in rank")) return;
      element = node.unsqueeze(element, *axis);
    }
  node.set_output(0, concatenate_where_equal(node, std::move(elements), *axis));
}

// --- A subgraph for every element.

void import_sequence_map(NodeContext& node) {
  const wire::GraphProto* body = node.graph_attribute("body");
  if (!body || !check_sequence(node, 0)) return;
  if (std::any_of(node.inputs().begin(), node.inputs().end(), is_counted)) return counted_map(node, *body);
  size_t length = elements_of(node.input(0)).size();
  for (int i = 1; i < node.num_inputs(); ++i) {
    if (!node.check_given(i)) return;
    if (is_container(node.input(i)) &&
        (!check_sequence(node, i) ||
         !node.check(elements_of(node.input(i)).size() == length, "its sequences differ in length")))
      return;
  }
  std::vector<Values> outputs(static_cast<size_t>(body->output_size()));
  for (size_t step = 0; step < length; ++step) {
    Values arguments;
    for (Value input : node.inputs())
      arguments.push_back(is_container(input) ? elements_of(input)[step] : input);
    auto results = node.import_subgraph(*body, arguments);
    if (!results) return;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!node.check(!is_container((*results)[i]), "its body gives what is no tensor")) return;
      outputs[i].push_back((*results)[i]);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto element = declared_type(body->output(static_cast<int>(i)).type());
    if (!element || !element->is_tensor()) element = Type::tensor(DType::F32, {});
    node.set_output(static_cast<int>(i), make_sequence(node, std::move(outputs[i]), *element));
  }
}

// --- Optionals.

void import_optional(NodeContext& node) {
  if (node.has_input(0)) return node.set_output(0, make_optional(node, node.input(0), node.input(0).type()));
  auto element = node.type_attribute("type");
  if (element) node.set_output(0, make_optional(node, {}, *element));
}

void import_optional_has_element(NodeContext& node) {
  Value x = node.input(0);
  bool has = x && (x.type().kind != Kind::Optional || !elements_of(x).empty());
  node.set_output(0, node.constant(Literal::scalar(DType::Bool, has)));
}

void import_optional_get_element(NodeContext& node) {
  Value x = node.input(0);
  if (x.type().kind != Kind::Optional) return node.set_output(0, x);
  if (node.check(!elements_of(x).empty(), node.input_label(0) + " is an optional without an element"))
    node.set_output(0, elements_of(x)[0]);
}

constexpr OperatorRow kRows[] = {
    {"", "ConcatFromSequence", 11, kLatest, 1, 1, 1, 1, "value", import_concat_from_sequence,
     "the elements of a sequence as one tensor"},
    {"", "Optional", 15, kLatest, 0, 1, 1, 1, "value", import_optional, "a value, or none of a type"},
    {"", "OptionalGetElement", 15, kLatest, 1, 1, 1, 1, "value", import_optional_get_element,
     "what an optional holds"},
    {"", "OptionalHasElement", 15, kLatest, 0, 1, 1, 1, "value", import_optional_has_element,
     "whether an optional holds something, which is known while the model is read"},
    {"", "SequenceAt", 11, kLatest, 2, 2, 1, 1, "value index", import_sequence_at,
     "an element of a sequence; elements of one type unless the position is constant"},
    {"", "SequenceConstruct", 11, kLatest, 1, kVariadic, 1, 1, "T=any T", import_sequence_construct,
     "a sequence of tensors"},
    {"", "SequenceEmpty", 11, kLatest, 0, 0, 1, 1, "", import_sequence_empty, "a sequence without elements"},
    {"", "SequenceErase", 11, kLatest, 1, 2, 1, 1, "value index", import_sequence_erase,
     "a sequence without one of its elements"},
    {"", "SequenceInsert", 11, kLatest, 2, 3, 1, 1, "value any index", import_sequence_insert,
     "a sequence with one more element"},
    {"", "SequenceLength", 11, kLatest, 1, 1, 1, 1, "value", import_sequence_length,
     "how many elements a sequence has"},
    {"", "SequenceMap", 17, kLatest, 1, kVariadic, 1, kVariadic, "value", import_sequence_map,
     "a subgraph over the elements of sequences, written out where their number is known"},
    {"", "SplitToSequence", 11, kLatest, 1, 2, 1, 1, "any index~int", import_split_to_sequence,
     "pieces of a tensor; of equal sizes where their number varies"},
};

} // namespace

std::span<const OperatorRow> sequence_operators() {
  return kRows;
}

} // namespace firn::onnx
