// Importers of operators that move elements without computing: transposes, concatenation, splits, tiles.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/movement_operators.h"
#include "compiler/frontend/onnx/ops/parts.h"

#include <algorithm>

namespace firn::onnx {

// Position t of batch entry b reads length[b] - 1 - t while that is not negative.
Value reversed_sequences(NodeContext& node, Value x, Value lengths, int time, int batch) {
  if (!lengths || node.failed()) return {};
  const auto& dims = x.type().dims;
  lengths = node.broadcast_in_dim(node.convert(lengths, DType::I64), dims, {batch});
  Value step = node.iota(DType::I64, dims, time);
  Value mirrored = node.binary(Opcode::Subtract,
                               node.binary(Opcode::Subtract, lengths, node.scalar_int(DType::I64, 1)), step);
  Value index = node.select(node.compare("lt", step, lengths), mirrored, step);
  return node.op(Opcode::GatherElements, {x, index}, {{"axis", int64_t{time}}});
}

namespace {

size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

void import_transpose(NodeContext& node) {
  Value x = node.input(0);
  Ints reversed;
  for (int i = x.rank(); i-- > 0;) reversed.push_back(i);
  Ints permutation = node.ints_attribute("perm", reversed);
  auto axes = node.axes(permutation, x.rank());
  if (!axes) return;
  if (static_cast<int>(axes->size()) != x.rank())
    return node.fail("attribute 'perm' has " + std::to_string(axes->size()) + " entries, the input is " +
                     x.type().to_string());
  node.set_output(0, node.transpose(x, Ints(axes->begin(), axes->end())));
}

void import_concat(NodeContext& node) {
  Value first = node.input(0);
  if (node.opset() >= 4 && !node.has_attribute("axis"))
    return node.fail("attribute 'axis' is missing, wants an int");
  auto axis = node.axis(node.int_attribute("axis", 1), first.rank());
  if (!axis) return;
  Values parts;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!node.check_given(i)) return;
    parts.push_back(node.input(i));
  }
  node.set_output(0, concatenate_where_equal(node, std::move(parts), *axis));
}

// --- Split.

// The sizes of the parts as i64 scalars: those given, or equal ones, the last of which may be smaller since
// opset 18. Nothing after a failure.
std::optional<Values> part_sizes(NodeContext& node, int axis) {
  int64_t parts = node.num_outputs();
  if (node.has_input(1)) return scalars_of(node, 1, std::max<int64_t>(parts, kMaxRank * 2));
  Values sizes;
  if (node.has_attribute("split")) {
    for (int64_t size : node.ints_attribute("split")) sizes.push_back(node.scalar_int(DType::I64, size));
    return node.failed() ? std::nullopt : std::optional(sizes);
  }
  bool uneven = node.opset() >= 18;
  if (uneven) parts = node.int_attribute("num_outputs", parts);
  if (!node.check(parts > 0 && parts == node.num_outputs(),
                  "attribute 'num_outputs' is " + std::to_string(parts) + ", the node has " +
                      std::to_string(node.num_outputs()) + " outputs"))
    return std::nullopt;
  Value extent = node.dim_size(node.input(0), axis), start = node.scalar_int(DType::I64, 0);
  Value all = uneven ? add(node, extent, node.scalar_int(DType::I64, parts - 1)) : extent;
  Value size = divide(node, all, node.scalar_int(DType::I64, parts));
  for (int64_t i = 1; i <= parts; ++i) {
    Value end =
        uneven ? smaller(node, multiply(node, size, node.scalar_int(DType::I64, i)), extent) : Value{};
    sizes.push_back(uneven ? subtract(node, end, start) : size);
    start = end;
  }
  return node.failed() ? std::nullopt : std::optional(sizes);
}

void import_split(NodeContext& node) {
  auto axis = node.axis(node.int_attribute("axis", 0), node.input(0).rank());
  auto sizes = axis ? part_sizes(node, *axis) : std::nullopt;
  if (!sizes || !node.check(static_cast<int>(sizes->size()) == node.num_outputs(),
                            std::to_string(sizes->size()) + " split sizes for " +
                                std::to_string(node.num_outputs()) + " outputs"))
    return;
  Values parts = parts_of(node, *axis, *sizes);
  for (size_t i = 0; i < parts.size(); ++i)
    if (node.has_output(static_cast<int>(i))) node.set_output(static_cast<int>(i), parts[i]);
}

// --- Tile.

void tile_by(NodeContext& node, const std::vector<IntExpr>& repeats) {
  Value x = node.input(0);
  if (!node.check(static_cast<int>(repeats.size()) == x.rank(),
                  "has " + std::to_string(repeats.size()) + " repeats for " + x.type().to_string()))
    return;
  std::vector<Dim> split, tiled, result;
  Ints map;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const Dim& dim = x.type().dims[i];
    if (!node.check(repeats[i].lower_bound() >= 0 && repeats[i].upper_bound() <= int64_t{1} << 31 &&
                        is_safe_dim(repeats[i]),
                    "repeat " + repeats[i].to_string() + " is out of range"))
      return;
    if (!(repeats[i] == IntExpr(1))) tiled.emplace_back(repeats[i]);
    map.push_back(static_cast<int64_t>(tiled.size()));
    tiled.push_back(dim);
    auto extent = node.product({dim, Dim(repeats[i])});
    if (!extent) return;
    result.push_back(*extent);
  }
  node.set_output(0, node.reshape(node.broadcast_in_dim(x, tiled, map), result));
}

void import_tile_1(NodeContext& node) {
  Value x = node.input(0);
  auto tiles = node.required_constant_ints(1), axis = node.required_constant_ints(2);
  if (!tiles || !axis ||
      !node.check(tiles->size() == 1 && axis->size() == 1, "wants scalar 'tiles' and 'axis'"))
    return;
  auto dim = node.axis((*axis)[0], x.rank());
  if (!dim) return;
  std::vector<IntExpr> repeats(at(x.rank()), IntExpr(1));
  repeats[at(*dim)] = (*tiles)[0];
  tile_by(node, repeats);
}

// Tile with repeats that a run computes: gathers rows at their positions modulo the extent.
void tile_by_value(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_dims(1, {x.rank()})) return;
  for (int i = 0; i < x.rank() && x; ++i) {
    Value repeat = node.convert(node.reshape(node.slice_dim(node.input(1), 0, i, i + 1), {}), DType::I64);
    if (!repeat || node.constant_ints(repeat) == Ints{1}) continue;
    auto max = bound_of(node, 1, at(i), repeat);
    if (!max) return;
    repeat = within_bound(node, repeat, *max);
    auto room = node.product({x.type().dims[at(i)], Dim(*max)});
    if (!room) return;
    Value extent = node.dim_size(x, i), number = node.iota(DType::I64, {*room}, 0);
    Value places =
        node.binary(Opcode::Remainder, number, larger(node, extent, node.scalar_int(DType::I64, 1)));
    places = first_rows(node, places, 0, multiply(node, repeat, extent));
    x = node.op(Opcode::Gather, {x, places}, {{"axis", int64_t{i}}});
  }
  node.set_output(0, x);
}

void import_tile(NodeContext& node) {
  if (!node.check_vector(1)) return;
  if (auto repeats = node.known_ints(node.input(1))) return tile_by(node, *repeats);
  tile_by_value(node);
}

// --- Depth and space.

void import_depth_to_space(NodeContext& node) {
  if (!node.check_rank(0, 4)) return;
  auto channels = node.static_dim(0, 1);
  int64_t block = node.required_int("blocksize");
  bool dcr = node.choice_attribute("mode", "DCR", {"DCR", "CRD"}) == "DCR";
  if (!channels || node.failed()) return;
  if (!node.check(block > 0 && block < 65536 && *channels % (block * block) == 0,
                  "blocksize " + std::to_string(block) + " does not divide " + std::to_string(*channels) +
                      " channels"))
    return;
  const std::vector<Dim> dims = node.input(0).type().dims;
  const Dim n = dims[0], h = dims[2], w = dims[3], depth(*channels / (block * block)), by(block);
  auto height = node.product({h, by}), width = node.product({w, by});
  if (!height || !width) return;
  std::vector<Dim> split =
      dcr ? std::vector<Dim>{n, by, by, depth, h, w} : std::vector<Dim>{n, depth, by, by, h, w};
  Value x = node.reshape(node.input(0), std::move(split));
  x = node.transpose(x, dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  node.set_output(0, node.reshape(x, {n, depth, *height, *width}));
}

void import_space_to_depth(NodeContext& node) {
  if (!node.check_rank(0, 4)) return;
  auto channels = node.static_dim(0, 1);
  int64_t block = node.required_int("blocksize");
  bool crd = node.choice_attribute("mode", "DCR", {"DCR", "CRD"}) == "CRD";
  if (!channels || node.failed()) return;
  std::vector<Dim> dims = node.input(0).type().dims;
  const Dim n = dims[0], c = dims[1], by(block);
  bool fits = block > 0 && block < 65536;
  for (size_t i = 2; i < 4; ++i) fits = fits && (!dims[i].is_static() || dims[i].value() % block == 0);
  if (!node.check(fits, "blocksize " + std::to_string(block) + " does not divide " +
                            node.input(0).type().to_string()))
    return;
  const IntExpr h = floor_div(dims[2].extent, block), w = floor_div(dims[3].extent, block);
  dims = ImportState::with_counts({n, c, Dim(h * block), Dim(w * block)});
  Value x = with_extents(node, node.input(0), dims);
  x = node.reshape(x, {n, c, Dim(h), by, Dim(w), by});
  x = node.transpose(x, crd ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  node.set_output(0, node.reshape(x, {n, Dim(*channels * block * block), Dim(h), Dim(w)}));
}

// --- ReverseSequence

void import_reverse_sequence(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check_rank_at_least(0, 2) || !node.check_rank(1, 1)) return;
  auto time = node.axis(node.int_attribute("time_axis", 0), x.rank()),
       batch = node.axis(node.int_attribute("batch_axis", 1), x.rank());
  if (!time || !batch ||
      !node.check(*time != *batch, "time_axis and batch_axis are both " + std::to_string(*time)))
    return;
  Value lengths = input_with_extents(node, 1, {x.type().dims[at(*batch)]});
  node.set_output(0, reversed_sequences(node, x, lengths, *time, *batch));
}

constexpr OperatorRow kRows[] = {
    {"", "Concat", 1, kLatest, 1, kVariadic, 1, 1, "T=any", import_concat, "joins tensors along an axis"},
    {"", "DepthToSpace", 1, kLatest, 1, 1, 1, 1, "any", import_depth_to_space,
     "moves blocks of channels into the image"},
    {"", "ReverseSequence", 10, kLatest, 2, 2, 1, 1, "any index", import_reverse_sequence,
     "reverses the start of each batch entry"},
    {"", "SpaceToDepth", 1, kLatest, 1, 1, 1, 1, "any", import_space_to_depth,
     "moves blocks of the image into channels"},
    {"", "Split", 1, kLatest, 1, 2, 1, kVariadic, "any i64~int", import_split, "cuts a tensor along an axis"},
    {"", "Tile", 1, 5, 3, 3, 1, 1, "any any any", import_tile_1, "repeats a tensor along one axis"},
    {"", "Tile", 6, kLatest, 2, 2, 1, 1, "any i64~int", import_tile, "repeats a tensor along every axis"},
    {"", "Transpose", 1, kLatest, 1, 1, 1, 1, "any", import_transpose, "permutes dims"},
};

} // namespace

std::span<const OperatorRow> movement_operators() {
  return kRows;
}

} // namespace firn::onnx
