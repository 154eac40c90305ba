// Importers of operators that read or write at computed places: Gather, Scatter, OneHot, NonZero, TopK, Where
// and kin.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/dims/value_range.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>

namespace firn::onnx {

namespace {

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

void import_gather(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", 0), x.rank());
  if (axis) node.set_output(0, node.op(Opcode::Gather, {x, node.input(1)}, {{"axis", int64_t{*axis}}}));
}

// Indices of elements of input 0, no more than that has in every dim but the axis. Extents that may be larger
// are replaced by ones that are not, and a run in which they are larger ends.
Value element_indices(NodeContext& node, Value indices, int axis) {
  Value x = node.input(0);
  if (!indices ||
      !node.check(indices.rank() == x.rank(), node.input_label(1) + " is " + indices.type().to_string() +
                                                  ", wants the rank of " + x.type().to_string()))
    return {};
  std::vector<Dim> dims = indices.type().dims;
  for (int i = 0; i < x.rank(); ++i) {
    const IntExpr &extent = x.type().dims[at(i)].extent, &wanted = dims[at(i)].extent;
    if (i == axis || (extent - wanted).lower_bound() >= 0) continue;
    if (!node.check((extent - wanted).upper_bound() >= 0, node.input_label(1) + " is " +
                                                              indices.type().to_string() +
                                                              ", which exceeds " + x.type().to_string()))
      return {};
    dims[at(i)] = ImportState::with_counts({Dim(min(extent, wanted))})[0];
  }
  return with_extents(node, indices, dims);
}

void import_gather_elements(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", 0), x.rank());
  Value indices = axis ? element_indices(node, node.input(1), *axis) : Value{};
  Value y = indices ? node.op(Opcode::GatherElements, {x, indices}, {{"axis", int64_t{*axis}}}) : Value{};
  node.set_output(0, with_extents(node, y, node.input(1).type().dims));
}

// GatherND with coordinates of no dims: each of them gives the whole slice behind the batch dims.
Value gather_wholes(NodeContext& node, Value x, Value indices, int64_t batch) {
  std::vector<Dim> dims(indices.type().dims.begin(), indices.type().dims.end() - 1), aligned = dims;
  std::fill(aligned.begin() + batch, aligned.end(), Dim(1));
  for (int64_t i = batch; i < x.rank(); ++i)
    for (std::vector<Dim>* each : {&dims, &aligned}) each->push_back(x.type().dims[at(i)]);
  return node.broadcast_to(node.reshape(x, aligned), dims);
}

void import_gather_nd(NodeContext& node) {
  int64_t batch = node.int_attribute("batch_dims", 0);
  if (node.failed()) return;
  Value x = node.input(0), indices = node.input(1);
  bool is_whole = indices.rank() > 0 && indices.type().dims.back() == Dim(0);
  if (!node.check(batch >= 0 && batch < indices.rank() && batch < std::max(1, x.rank() + (is_whole ? 1 : 0)),
                  "batch_dims " + std::to_string(batch) + " is out of range"))
    return;
  for (int i = 0; i < batch; ++i) {
    meet(node, x, i, indices, i);
    if (node.failed() || !node.check(x.type().dims[at(i)] == indices.type().dims[at(i)],
                                     "batch dims of " + x.type().to_string() + " and " +
                                         indices.type().to_string() + " differ"))
      return;
  }
  node.set_output(0, is_whole ? gather_wholes(node, x, indices, batch)
                              : node.op(Opcode::GatherND, {x, indices}, {{"batch_dims", batch}}));
}

// The graph op's word for ONNX's `reduction`.
Word reduction_word(NodeContext& node) {
  std::string name = node.choice_attribute("reduction", "none", {"none", "add", "mul", "min", "max"});
  return Word{name == "mul" ? "multiply" : name == "min" ? "minimum" : name == "max" ? "maximum" : name};
}

// Sums and products of narrow floats are rounded when all updates are in.
Value scatter(NodeContext& node, Opcode opcode, Value x, Value indices, Value updates,
              Attributes attributes) {
  Word reduction = reduction_word(node);
  bool accumulates = reduction.text == "add" || reduction.text == "multiply";
  attributes.set("reduction", reduction);
  Value y = node.op(
      opcode, {accumulates ? node.widened(x) : x, indices, accumulates ? node.widened(updates) : updates},
      attributes);
  return node.convert(y, x.dtype());
}

void import_scatter_elements(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", 0), x.rank());
  Value indices = axis ? element_indices(node, node.input(1), *axis) : Value{};
  if (!indices) return;
  Value updates = input_with_extents(node, 2, indices.type().dims);
  node.set_output(0, scatter(node, Opcode::ScatterElements, x, indices, updates, {{"axis", int64_t{*axis}}}));
}

void import_scatter_nd(NodeContext& node) {
  Value x = node.input(0), indices = node.input(1);
  if (!node.check_rank_at_least(1, 1)) return;
  auto depth = node.static_dim(1, indices.rank() - 1);
  if (!depth) return;
  if (!node.check(*depth <= x.rank(), node.input_label(1) + " is " + indices.type().to_string() +
                                          ", too deep for " + x.type().to_string()))
    return;
  std::vector<Dim> wanted(indices.type().dims.begin(), indices.type().dims.end() - 1);
  wanted.insert(wanted.end(), x.type().dims.begin() + *depth, x.type().dims.end());
  Value updates = input_with_extents(node, 2, wanted);
  if (*depth > 0) return node.set_output(0, scatter(node, Opcode::ScatterND, x, indices, updates, {}));
  // Coordinates of no dims name the whole tensor: a dim of 1 in front makes that its only slice.
  std::vector<Dim> zeros(indices.type().dims.begin(), indices.type().dims.end() - 1);
  zeros.emplace_back(1);
  Value whole =
      scatter(node, Opcode::ScatterND, node.unsqueeze(x, 0), node.splat(DType::I64, zeros, 0), updates, {});
  node.set_output(0, node.reshape(whole, x.type().dims));
}

// Writes rows of the update at write_indices[batch] along the sequence axis, around the end if circular.
void import_tensor_scatter(NodeContext& node) {
  Value past = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", -2), past.rank());
  bool circular = node.choice_attribute("mode", "linear", {"linear", "circular"}) == "circular";
  if (!axis || node.failed() || !node.check(*axis > 0, "axis 0 is the batch")) return;
  Value update = element_indices(node, node.input(1), *axis);
  if (!update) return;
  const std::vector<Dim> dims = update.type().dims;
  Value position = node.iota(DType::I64, dims, *axis);
  if (node.has_input(2)) {
    Value start = node.convert(input_with_extents(node, 2, {dims[0]}), DType::I64);
    start = node.broadcast_in_dim(start, dims, {0});
    position = node.binary(Opcode::Add, position, start);
  }
  if (circular) {
    auto extent = node.static_dim(0, *axis);
    if (!extent || !node.check(*extent > 0, "the cache is empty")) return;
    position = node.binary(Opcode::Remainder, position, node.scalar_int(DType::I64, *extent));
  }
  node.set_output(0, node.op(Opcode::ScatterElements, {past, position, update},
                             {{"axis", int64_t{*axis}}, {"reduction", Word{"none"}}}));
}

void import_where(NodeContext& node) {
  node.set_output(0, node.select(node.input(0), node.input(1), node.input(2)));
}

// The number of classes, given in any numeric type.
std::optional<Dim> one_hot_depth(NodeContext& node) {
  if (node.constant(node.input(1))) {
    auto depths = node.required_constant_doubles(1);
    if (!depths) return std::nullopt;
    double depth = depths->front();
    if (!node.check(depth >= 0 && depth <= 2147483648.0,
                    "depth " + std::to_string(depth) + " is out of range"))
      return std::nullopt;
    return Dim(static_cast<int64_t>(depth));
  }
  return run_dim(node, 1, 0, scalar_input(node, 1, DType::I64));
}

void import_one_hot(NodeContext& node) {
  Value indices = node.input(0), values = node.input(2);
  if (!node.check_scalar(1)) return;
  auto depth = one_hot_depth(node);
  if (!depth) return;
  if (!node.check_dims(2, {2})) return;
  auto axis = node.axis(node.int_attribute("axis", -1), indices.rank() + 1);
  if (!axis) return;
  std::vector<Dim> dims = indices.type().dims;
  dims.insert(dims.begin() + *axis, *depth);
  Value index = node.convert(indices, DType::I64);
  // u64 indices beyond i64 are negative here, and must not wrap to a valid index.
  if (indices.dtype() != DType::U64) {
    Value wrapped = add(node, index, extent_value(node, *depth));
    index = node.select(node.compare("lt", index, node.scalar_int(DType::I64, 0)), wrapped, index);
  }
  Ints map;
  for (int i = 0; i < indices.rank(); ++i) map.push_back(i < *axis ? i : i + 1);
  Value hot = node.compare("eq", node.iota(DType::I64, dims, *axis), node.broadcast_in_dim(index, dims, map));
  Value off = node.reshape(node.slice_dim(values, 0, 0, 1), {}),
        on = node.reshape(node.slice_dim(values, 0, 1, 2), {});
  node.set_output(0, node.select(hot, on, off));
}

// --- NonZero and Compress.

void import_non_zero(NodeContext& node) {
  node.set_output(0, non_zero(node, node.input(0)));
}

void import_compress(NodeContext& node) {
  Value x = node.input(0), condition = node.input(1);
  if (!node.check_rank(1, 1)) return;
  auto elements = node.product(x.type().dims);
  if (!elements) return;
  int axis = 0;
  if (node.has_attribute("axis")) {
    auto given = node.axis(node.int_attribute("axis", 0), x.rank());
    if (!given) return;
    axis = *given;
  } else {
    x = node.reshape(x, {*elements});
    if (!x) return;
  }
  const Dim &extent = x.type().dims[at(axis)], &length = condition.type().dims[0];
  if (!node.check(!extent.is_static() || !length.is_static() || length.value() <= extent.value(),
                  node.input_label(1) + " is longer than the axis"))
    return;
  if ((extent.extent - length.extent).lower_bound() < 0) { // conditions beyond the axis do not count
    Value place = node.iota(DType::I64, {length}, 0);
    condition = both(node, condition, node.compare("lt", place, node.dim_size(x, axis)));
  }
  node.set_output(0, compress(node, x, axis, condition));
}

// --- TopK, Trilu.

// The first `max` elements of dim `axis` in order, or all if there are fewer.
Instruction* top_k(NodeContext& node, int axis, int64_t max) {
  Value x = node.input(0);
  bool largest = node.flag_attribute("largest", true);
  const Dim& extent = x.type().dims[at(axis)];
  if (!node.check(max >= 0 && max <= extent.extent.upper_bound(), "k is " + std::to_string(max) + ", dim " +
                                                                      std::to_string(axis) + " of " +
                                                                      x.type().to_string() + " has fewer"))
    return nullptr;
  return node.make(Opcode::TopK, {x}, {{"dim", int64_t{axis}}, {"k", max}, {"largest", largest}});
}

std::optional<int> top_k_axis(NodeContext& node) {
  return node.axis(node.int_attribute("axis", -1), node.input(0).rank());
}

void set_top_k(NodeContext& node, Instruction* made) {
  for (int i = 0; made && i < 2; ++i) node.set_output(i, made->result(i));
}

void import_top_k_1(NodeContext& node) {
  int64_t k = node.required_int("k");
  auto axis = top_k_axis(node);
  if (axis && !node.failed()) set_top_k(node, top_k(node, *axis, k));
}

void import_top_k(NodeContext& node) {
  auto axis = top_k_axis(node);
  if (!axis || !node.check_scalar(1)) return;
  if (auto k = node.constant_ints(node.input(1))) return set_top_k(node, top_k(node, *axis, (*k)[0]));
  Value count = node.convert(node.reshape(node.input(1), {}), DType::I64);
  auto known = node.known_ints(count);
  const IntExpr extent = node.input(0).type().dims[at(*axis)].extent;
  auto max = max_of(node, count);
  if (!max) max = extent.upper_bound();
  Instruction* made = top_k(node, *axis, std::min(*max, extent.upper_bound()));
  if (!made) return;
  const Dim kept = made->type().dims[at(*axis)];
  if (known && !kept.counted && (*known)[0].lower_bound() >= 0) {
    for (int i = 0; i < 2; ++i)
      node.set_output(i, node.slice_symbolic(made->result(i), *axis, 0, min((*known)[0], kept.extent)));
    return;
  }
  // A run ends if k is negative, or more than there are elements or room.
  Value there = smaller(node, node.dim_size(node.input(0), *axis), node.scalar_int(DType::I64, *max));
  count = within_bounds(node, node.scalar_int(DType::I64, 0), count, there);
  Value places = first_rows(node, node.iota(DType::I64, {kept}, 0), 0, count);
  for (int i = 0; places && i < 2; ++i)
    node.set_output(i, node.op(Opcode::Gather, {made->result(i), places}, {{"axis", int64_t{*axis}}}));
}

// Keeps elements on and above (or below) the diagonal number k.
void import_trilu(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank_at_least(0, 2)) return;
  bool upper = node.flag_attribute("upper", true);
  Value k = node.scalar_int(DType::I64, 0);
  if (node.has_input(1)) {
    if (!node.check_scalar(1)) return;
    k = node.reshape(node.input(1), {});
  }
  std::vector<Dim> dims(x.type().dims.end() - 2, x.type().dims.end());
  Value row = node.iota(DType::I64, dims, 0), column = node.iota(DType::I64, dims, 1);
  Value keep = node.compare(upper ? "ge" : "le", column, node.binary(Opcode::Add, row, k));
  node.set_output(0, node.select(keep, x, node.scalar(x.dtype(), 0)));
}

constexpr OperatorRow kRows[] = {
    {"", "Compress", 9, kLatest, 2, 2, 1, 1, "any bool", import_compress, "slices where a condition holds"},
    {"", "Gather", 1, kLatest, 2, 2, 1, 1, "any index~int", import_gather, "slices at indices"},
    {"", "GatherElements", 11, kLatest, 2, 2, 1, 1, "any index~int", import_gather_elements,
     "elements at indices along an axis"},
    {"", "GatherND", 11, kLatest, 2, 2, 1, 1, "any i64~int", import_gather_nd, "slices at coordinates"},
    {"", "NonZero", 9, kLatest, 1, 1, 1, 1, "num|bool", import_non_zero,
     "coordinates of elements that are not zero"},
    {"", "OneHot", 9, kLatest, 3, 3, 1, 1, "num num any", import_one_hot,
     "vectors with one element set; depth constant"},
    {"", "Scatter", 9, kLatest, 3, 3, 1, 1, "T=any index~int T", import_scatter_elements,
     "former name of ScatterElements"},
    {"", "ScatterElements", 11, kLatest, 3, 3, 1, 1, "T=any index~int T", import_scatter_elements,
     "replaces or combines elements at indices"},
    {"", "ScatterND", 11, kLatest, 3, 3, 1, 1, "T=any i64~int T", import_scatter_nd,
     "replaces or combines slices at coordinates"},
    {"", "TensorScatter", 24, kLatest, 2, 3, 1, 1, "T=any T i64", import_tensor_scatter,
     "writes rows into a cache"},
    {"", "TopK", 1, 9, 1, 1, 2, 2, "num", import_top_k_1,
     "largest elements and their indices; k by attribute"},
    {"", "TopK", 10, kLatest, 2, 2, 1, 2, "num i64~int", import_top_k,
     "largest or smallest elements and their indices"},
    {"", "Trilu", 14, kLatest, 1, 2, 1, 1, "num|bool i64", import_trilu, "upper or lower triangle"},
    {"", "Where", 9, kLatest, 3, 3, 1, 1, "bool T=any T", import_where,
     "elements of one or the other tensor"},
};

} // namespace

std::span<const OperatorRow> gather_operators() {
  return kRows;
}

} // namespace firn::onnx
