// Plans as text.
#include "compiler/plan/kernel_plan.h"

#include "compiler/support/text_scanner.h"

#include <algorithm>
#include <optional>

namespace firn::plan {
namespace {

constexpr int kMaxTile = 64; // rows or vectors, in a plan written by hand

std::string pair_text(int64_t a, int64_t b) {
  return std::to_string(a) + "x" + std::to_string(b);
}
std::string flag(bool is_set, const char* name) {
  return is_set ? std::string(" ") + name : "";
}
// Nothing for the value that stands for no text.
std::string number(const char* name, int64_t value, int64_t none) {
  return value == none ? "" : std::string(" ") + name + " " + std::to_string(value);
}

std::string text_of(const TileShape& tile) {
  return " tile " + pair_text(tile.rows, tile.vectors) + number("splits", tile.accumulator_splits, 1) +
         number("interleave", tile.k_interleave, 1) + number("panel", tile.panel, 0);
}
std::string text_of(const MacInstruction& mac) {
  return mac == MacInstruction{} ? "" : " mac " + to_string(mac);
}
std::string text_of(const WindowTiling& tiling) {
  return " tile " + std::to_string(tiling.pixels) + " along " + std::to_string(tiling.along) +
         flag(tiling.unrolled, "unrolled") + flag(tiling.rolled, "rolled");
}

const char* name_of(ContractionPlan::Algorithm algorithm) {
  switch (algorithm) {
  case ContractionPlan::Algorithm::Direct: return "direct";
  case ContractionPlan::Algorithm::Polyphase: return "polyphase";
  case ContractionPlan::Algorithm::Planar: return "planar";
  }
  return "";
}
const char* name_of(AccumulatorSpace accumulators) {
  switch (accumulators) {
  case AccumulatorSpace::Registers: return "registers";
  case AccumulatorSpace::TileRegisters: return "tile_registers";
  case AccumulatorSpace::Scratch: return "scratch";
  }
  return "";
}
std::string text_of(const ContractionPlan& plan) {
  const Tiling& tiling = plan.tiling;
  std::string name = name_of(plan.algorithm);
  name += text_of(plan.mac);
  if (plan.accumulators != AccumulatorSpace::Registers)
    name += std::string(" accumulators ") + name_of(plan.accumulators);
  if (tiling.tile.rows == 0) return name;
  return name + text_of(tiling.tile) + (tiling.columns_outermost ? " columns outermost" : " rows outermost") +
         number("accumulator_tiles", tiling.accumulator_tiles, 1) + number("k_blocks", tiling.k_blocks, 1) +
         number("split_k", tiling.split_k, 1) + number("row_block", tiling.row_block, 0) +
         number("split_m", tiling.split_m, 1) + number("column_streams", tiling.tile.column_streams, 1) +
         flag(tiling.tile.whole_panels, "whole_panels") + flag(tiling.optimize_size, "optimize_size") +
         flag(plan.swap_operands, "swap_operands") + flag(plan.unpacked, "unpacked") +
         flag(plan.four_bits, "four_bits") + flag(plan.widened, "widened") +
         flag(plan.feature_map_copy == FeatureMapCopy::Rows, "packs_rows") +
         flag(plan.feature_map_copy == FeatureMapCopy::Windows, "packs_windows") +
         flag(plan.feature_map_copy == FeatureMapCopy::PaddedRows, "packs_padded_rows") +
         flag(tiling.interleaves_epilogue, "interleaved_epilogue") +
         flag(plan.rolled_epilogue, "rolled_epilogue") +
         flag(plan.bias_in_accumulators, "bias_in_accumulators");
}
std::string text_of(const WinogradPlan& plan) {
  std::string text = "winograd " + pair_text(plan.outputs_high, plan.outputs_wide);
  return plan.tile.rows == 0 ? text
                             : text + text_of(plan.tile) + number("batch", plan.batch, 0) +
                                   flag(plan.separate_transform, "separate_transform") +
                                   flag(plan.rolled_epilogue, "rolled_epilogue");
}
std::string text_of(const DepthwisePlan& plan) {
  return "depthwise" + text_of(plan.mac) + text_of(plan.tiling) +
         flag(plan.taps_in_registers, "taps_in_registers") + flag(plan.rolled_epilogue, "rolled_epilogue") +
         flag(plan.bias_in_accumulators, "bias_in_accumulators");
}
std::string text_of(const DepthwiseChainPlan& plan) {
  return "depthwise_chain rows " + std::to_string(plan.rows);
}
std::string text_of(const PoolingPlan& plan) {
  return "pooling" + text_of(plan.tiling);
}
std::string text_of(const RowPoolingPlan& plan) {
  return "row_pooling" + number("lanes", plan.lanes, 0);
}

std::string text_of(const AttentionPlan& plan) {
  std::string name = "attention" + text_of(plan.mac);
  if (plan.rows == 0) return name;
  return name + " tile " + pair_text(plan.rows, plan.vectors) + " unroll " + std::to_string(plan.unroll) +
         " block " + std::to_string(plan.block) + number("accumulators", plan.accumulators, 4) +
         flag(plan.packs_keys, "packs_keys") + flag(plan.packs_values, "packs_values") +
         flag(plan.skips_hidden, "skips_hidden") + flag(plan.fused_exponents, "fused_exponents");
}
std::string text_of(const RecurrentPlan& plan) {
  if (plan.rows == 0) return "recurrent";
  return "recurrent tile " + pair_text(plan.rows, plan.vectors) +
         number("accumulators", plan.accumulators, 1) +
         number("prefetch_distance", plan.prefetch_distance, 0) +
         flag(plan.alternate_direction, "alternate_direction") + flag(plan.rolled_cells, "rolled_cells") +
         number("items", plan.item_rows, 0) + flag(plan.cooperative, "cooperative");
}
std::string text_of(const RelayoutPlan& plan) {
  return "relayout" + number("squares", plan.lanes, 0);
}
// `copies`: those that stand for no text.
std::string text_of(const ElementCode& code, int64_t unroll) {
  const ElementCode none;
  return number("lanes", code.lanes, 0) + number("unroll", code.unroll, unroll) +
         number("accumulators", code.accumulators, none.accumulators) +
         number("partitions", code.partitions, none.partitions) +
         number("max_unrolled_window", code.max_unrolled_window, none.max_unrolled_window) +
         flag(code.strided, "strided");
}
std::string text_of(const ElementsPlan& plan) {
  return "elements" + text_of(plan.code, ElementCode().unroll) + flag(plan.in_blocks, "in_blocks");
}
std::string text_of(const RowsPlan& plan) {
  return "rows" + text_of(plan.code, kRowUnroll) + flag(plan.stores_exponentials, "stores_exponentials") +
         flag(plan.fast_exp, "fast_exp") + flag(plan.in_producer, "in_producer");
}

using Form = ResamplePlan::Form;
constexpr Form kForms[] = {Form::Vectors, Form::Shuffles, Form::Gathers};
const char* name_of(Form form) {
  switch (form) {
  case Form::Vectors: return "vectors";
  case Form::Shuffles: return "shuffles";
  case Form::Gathers: return "gathers";
  }
  return "";
}
std::string text_of(const ResamplePlan& plan) {
  if (plan.lanes == 0) return "resample";
  return std::string("resample ") + name_of(plan.form) + " lanes " + std::to_string(plan.lanes);
}
std::string text_of(const ScanPlan& plan) {
  return (plan.algorithm == ScanPlan::Algorithm::Scan ? "scan" : "arg_reduce") +
         number("lanes", plan.lanes, 0) + flag(plan.by_rows, "by_rows");
}
std::string text_of(const TopKPlan& plan) {
  if (plan.lanes == 0) return "top_k";
  return plan.selects ? "top_k selects lanes " + std::to_string(plan.lanes) : "top_k sorts";
}
std::string text_of(const TreesPlan& plan) {
  if (plan.rows == 0) return "trees";
  return "trees tile " + std::to_string(plan.rows) + "x" + std::to_string(plan.trees) + " block " +
         std::to_string(plan.block);
}
std::string text_of(const FixedPlan& plan) {
  return name_of(plan.algorithm);
}

using Fixed = FixedPlan::Algorithm;
constexpr Fixed kFixed[] = {
    Fixed::FusedSpatialSum, Fixed::Concatenate, Fixed::UpdateSlice, Fixed::ScatterElements,
    Fixed::ScatterND,       Fixed::Sort,        Fixed::Pack,        Fixed::PackElements,
    Fixed::Inline,          Fixed::NonZero,     Fixed::Text,        Fixed::Custom};

class PlanReader {
public:
  PlanReader(const std::string& name, std::string_view text) : in_(name, text) {}

  Expected<KernelPlan> run() {
    std::optional<KernelPlan> plan = read_plan();
    if (!plan || (!in_.at_end() && !in_.fail("expected the end of the plan"))) return in_.error();
    return std::move(*plan);
  }

private:
  std::optional<KernelPlan> read_plan() {
    using Algorithm = ContractionPlan::Algorithm;
    for (Algorithm algorithm : {Algorithm::Direct, Algorithm::Polyphase, Algorithm::Planar})
      if (in_.accept(name_of(algorithm))) {
        ContractionPlan plan;
        plan.algorithm = algorithm;
        return read_as(plan);
      }
    if (in_.accept("winograd")) return read_as(WinogradPlan());
    if (in_.accept("depthwise")) return read_as(DepthwisePlan());
    if (in_.accept("depthwise_chain")) return read_as(DepthwiseChainPlan());
    if (in_.accept("pooling")) return read_as(PoolingPlan());
    if (in_.accept("row_pooling")) return read_as(RowPoolingPlan());
    if (in_.accept("attention")) return read_as(AttentionPlan());
    if (in_.accept("recurrent")) return read_as(RecurrentPlan());
    if (in_.accept("relayout")) return read_as(RelayoutPlan());
    if (in_.accept("elements")) return read_as(ElementsPlan());
    if (in_.accept("rows")) return read_as(RowsPlan());
    if (in_.accept("resample")) return read_as(ResamplePlan());
    if (in_.accept("scan")) return read_as(ScanPlan{ScanPlan::Algorithm::Scan});
    if (in_.accept("top_k")) return read_as(TopKPlan());
    if (in_.accept("trees")) return read_as(TreesPlan());
    if (in_.accept("arg_reduce")) return read_as(ScanPlan{ScanPlan::Algorithm::ArgReduce});
    for (Fixed algorithm : kFixed)
      if (in_.accept(name_of(algorithm))) return FixedPlan{algorithm};
    in_.fail("'" + std::string(in_.word()) + "' names no algorithm, wanted one of: " + all_names());
    return std::nullopt;
  }

  static std::string all_names() {
    std::string names = "arg_reduce, attention, depthwise, depthwise_chain, direct, elements, row_pooling, "
                        "planar, polyphase, pooling, "
                        "recurrent, relayout, resample, rows, scan, top_k, trees, winograd";
    for (Fixed algorithm : kFixed) names += std::string(", ") + name_of(algorithm);
    return names;
  }

  template <class Plan> std::optional<KernelPlan> read_as(Plan plan) {
    if (!read(plan)) return std::nullopt;
    return plan;
  }

  // "tile 7"
  bool read(const char* name, int64_t& value) {
    if (!in_.expect(name)) return false;
    return in_.integer(value) || in_.fail("expected an integer");
  }

  // "14x2"; both at least 1 and at most `limit`.
  bool read_pair(long limit, int& first, int& second) {
    std::string word(in_.word_with(""));
    size_t cross = word.find('x');
    char* end = nullptr;
    long a = std::strtol(word.c_str(), &end, 10), b = 0;
    if (cross != std::string::npos && end == word.c_str() + cross)
      b = std::strtol(word.c_str() + cross + 1, &end, 10);
    if (cross == std::string::npos || *end || a < 1 || b < 1 || a > limit || b > limit)
      return in_.fail("wanted two sizes from 1 to " + std::to_string(limit) + " such as 4x2, found '" + word +
                      "'");
    first = static_cast<int>(a);
    second = static_cast<int>(b);
    return true;
  }

  bool read_choice(const char* name, std::initializer_list<int> allowed, const char* wanted, int& value) {
    if (!in_.accept(name)) return true;
    int64_t found = 0;
    if (!in_.integer(found) || std::find(allowed.begin(), allowed.end(), found) == allowed.end())
      return in_.fail(wanted);
    value = static_cast<int>(found);
    return true;
  }

  // Behind "tile".
  bool read(TileShape& tile) {
    return read_pair(kMaxTile, tile.rows, tile.vectors) &&
           read_choice("splits", {1, 2, 4, 8}, "splits are 1, 2, 4 or 8", tile.accumulator_splits) &&
           read_choice("interleave", {1, 2, 4}, "steps are interleaved by 1, 2 or 4", tile.k_interleave) &&
           read_panel(tile);
  }
  bool read_panel(TileShape& tile) {
    int64_t panel = 0;
    if (!in_.accept("panel")) return true;
    bool fits = in_.integer(panel) && panel > tile.vectors && panel <= kMaxTile && panel % tile.vectors == 0;
    tile.panel = static_cast<int>(panel);
    return fits ||
           in_.fail("a panel has a multiple of the tile's vectors, up to " + std::to_string(kMaxTile));
  }

  bool read_count(const char* name, const char* wanted, int64_t& value) {
    if (!in_.accept(name)) return true;
    return (in_.integer(value) && value >= 1) || in_.fail(wanted);
  }

  bool read(DType& dtype) {
    std::string word(in_.word_with(""));
    auto found = parse_dtype(word);
    if (found) dtype = *found;
    return found || in_.fail("'" + word + "' is no element type");
  }

  bool read(MacInstruction& mac) {
    // Names before those that they begin with.
    static constexpr MacKind kinds[] = {MacKind::Fma, MacKind::Dot2, MacKind::Dot4Narrow, MacKind::Dot4,
                                        MacKind::TileMatrix};
    for (MacKind kind : kinds)
      if (in_.accept(name_of(kind))) {
        mac.kind = kind;
        return read(mac.lhs) && read(mac.rhs) && read(mac.accumulator);
      }
    return in_.fail("a multiply-add is one of fma, dot2, dot4, dot4_narrow, tile_matrix");
  }

  bool read(AccumulatorSpace& accumulators) {
    for (AccumulatorSpace place :
         {AccumulatorSpace::Registers, AccumulatorSpace::TileRegisters, AccumulatorSpace::Scratch})
      if (in_.accept(name_of(place))) {
        accumulators = place;
        return true;
      }
    return in_.fail("sums live in registers, tile_registers or scratch");
  }

  bool read(ContractionPlan& plan) {
    Tiling& tiling = plan.tiling;
    tiling.tile.rows = 0;
    if (in_.accept("mac") && !read(plan.mac)) return false;
    if (in_.accept("accumulators") && !read(plan.accumulators)) return false;
    if (!in_.accept("tile")) return true;
    if (!read(tiling.tile)) return false;
    tiling.columns_outermost = !in_.accept("rows");
    bool has_order = !tiling.columns_outermost || in_.accept("columns");
    int64_t split_k = 1, accumulator_tiles = 1, k_blocks = 1, streams = 1;
    if ((has_order && !in_.expect("outermost")) ||
        !read_count("accumulator_tiles", "at least one tile has sums", accumulator_tiles) ||
        !read_count("k_blocks", "there is at least one block", k_blocks) ||
        !read_count("split_k", "there is at least one part", split_k) ||
        !read_count("row_block", "a block has at least one row", tiling.row_block) ||
        !read_count("split_m", "there is at least one share", tiling.split_m) ||
        !read_count("column_streams", "there is at least one stream", streams))
      return false;
    if (streams > kMaxTile) return in_.fail("streams are up to " + std::to_string(kMaxTile));
    tiling.tile.column_streams = static_cast<int>(streams);
    tiling.tile.whole_panels = in_.accept("whole_panels");
    if (std::max({split_k, accumulator_tiles, k_blocks}) > INT32_MAX)
      return in_.fail("there are not so many steps");
    tiling.split_k = static_cast<int>(split_k);
    tiling.accumulator_tiles = static_cast<int>(accumulator_tiles);
    tiling.k_blocks = static_cast<int>(k_blocks);
    tiling.optimize_size = in_.accept("optimize_size");
    plan.swap_operands = in_.accept("swap_operands");
    plan.unpacked = in_.accept("unpacked");
    plan.four_bits = in_.accept("four_bits");
    plan.widened = in_.accept("widened");
    if (in_.accept("packs_rows")) plan.feature_map_copy = FeatureMapCopy::Rows;
    if (in_.accept("packs_windows")) plan.feature_map_copy = FeatureMapCopy::Windows;
    if (in_.accept("packs_padded_rows")) plan.feature_map_copy = FeatureMapCopy::PaddedRows;
    tiling.interleaves_epilogue = in_.accept("interleaved_epilogue");
    plan.rolled_epilogue = in_.accept("rolled_epilogue");
    plan.bias_in_accumulators = in_.accept("bias_in_accumulators");
    return true;
  }

  bool read(WinogradPlan& plan) {
    if (!read_pair(4, plan.outputs_high, plan.outputs_wide)) return false;
    if (!in_.accept("tile")) return true;
    if (!read(plan.tile)) return false;
    if (!in_.expect("batch")) return false;
    if (!in_.integer(plan.batch) || plan.batch < 1) return in_.fail("a batch has at least one tile");
    plan.separate_transform = in_.accept("separate_transform");
    plan.rolled_epilogue = in_.accept("rolled_epilogue");
    return true;
  }

  bool read(WindowTiling& tiling) {
    if (!read("tile", tiling.pixels) || !read("along", tiling.along)) return false;
    tiling.unrolled = in_.accept("unrolled");
    tiling.rolled = !tiling.unrolled && in_.accept("rolled");
    return true;
  }
  bool read(DepthwisePlan& plan) {
    if (in_.accept("mac") && !read(plan.mac)) return false;
    if (!read(plan.tiling)) return false;
    plan.taps_in_registers = in_.accept("taps_in_registers");
    plan.rolled_epilogue = in_.accept("rolled_epilogue");
    plan.bias_in_accumulators = in_.accept("bias_in_accumulators");
    return true;
  }
  bool read(DepthwiseChainPlan& plan) { return read("rows", plan.rows); }
  bool read(PoolingPlan& plan) { return read(plan.tiling); }
  bool read(RowPoolingPlan& plan) { return read_lanes(plan.lanes); }
  bool read(AttentionPlan& plan) {
    if (in_.accept("mac") && !read(plan.mac)) return false;
    if (!in_.accept("tile")) return true;
    if (!read_pair(kMaxTile, plan.rows, plan.vectors)) return false;
    int64_t unroll = 0;
    if (!read("unroll", unroll) || !read("block", plan.block)) return false;
    if (unroll != 1 && unroll != 2 && unroll != 4 && unroll != 8) return in_.fail("steps are 1, 2, 4 or 8");
    plan.unroll = static_cast<int>(unroll);
    if (!read_accumulators(plan.accumulators)) return false;
    plan.packs_keys = in_.accept("packs_keys");
    plan.packs_values = in_.accept("packs_values");
    plan.skips_hidden = in_.accept("skips_hidden");
    plan.fused_exponents = in_.accept("fused_exponents");
    return true;
  }
  bool read(RecurrentPlan& plan) {
    if (!in_.accept("tile")) return true;
    if (!read_pair(kMaxTile, plan.rows, plan.vectors) ||
        !read_count("accumulators", "there is at least one sum", plan.accumulators) ||
        !read_count("prefetch_distance", "weights are asked for before they are read",
                    plan.prefetch_distance))
      return false;
    plan.alternate_direction = in_.accept("alternate_direction");
    plan.rolled_cells = in_.accept("rolled_cells");
    if (!read_count("items", "an item has rows", plan.item_rows)) return false;
    plan.cooperative = in_.accept("cooperative");
    return true;
  }
  bool read(RelayoutPlan& plan) { return read_count("squares", "a square has elements", plan.lanes); }

  bool read(ElementCode& code) {
    return read_lanes(code.lanes) && read_count("unroll", "there is at least one copy", code.unroll) &&
           (code.unroll <= kMaxTile ||
            in_.fail("a body is unrolled at most " + std::to_string(kMaxTile) + " times")) &&
           read_accumulators(code.accumulators) &&
           read_count("partitions", "there is at least one box", code.partitions) &&
           read_count("max_unrolled_window", "a window has at least one element", code.max_unrolled_window) &&
           read_strided(code);
  }
  bool read_strided(ElementCode& code) {
    code.strided = in_.accept("strided");
    return true;
  }
  bool read(ElementsPlan& plan) {
    if (!read(plan.code)) return false;
    plan.in_blocks = in_.accept("in_blocks");
    return true;
  }
  bool read(RowsPlan& plan) {
    if (!read(plan.code)) return false;
    plan.stores_exponentials = in_.accept("stores_exponentials");
    plan.fast_exp = in_.accept("fast_exp");
    plan.in_producer = in_.accept("in_producer");
    return true;
  }
  bool read(ResamplePlan& plan) {
    for (Form form : kForms)
      if (in_.accept(name_of(form))) {
        plan.form = form;
        return (read_lanes(plan.lanes) && plan.lanes > 0) || in_.fail("expected 'lanes'");
      }
    return true;
  }
  bool read(ScanPlan& plan) {
    if (!read_lanes(plan.lanes)) return false;
    plan.by_rows = plan.algorithm == ScanPlan::Algorithm::Scan && in_.accept("by_rows");
    return true;
  }
  bool read(TopKPlan& plan) {
    if (in_.accept("sorts")) plan.lanes = 1;
    plan.selects = plan.lanes == 0 && in_.accept("selects");
    return !plan.selects || (read_lanes(plan.lanes) && plan.lanes > 0) || in_.fail("expected 'lanes'");
  }
  bool read(TreesPlan& plan) {
    if (!in_.accept("tile")) return true;
    int rows = 0, trees = 0;
    if (!read_pair(kMaxTile, rows, trees) || !read("block", plan.block)) return false;
    plan.rows = rows;
    plan.trees = trees;
    return plan.block > 0 || in_.fail("a block has at least one row");
  }

  bool read_lanes(int64_t& value) { return read_count("lanes", "a vector has at least one lane", value); }
  bool read_accumulators(int64_t& value) {
    return read_count("accumulators", "there is at least one accumulator", value) &&
           (value <= kMaxTile || in_.fail("there are at most " + std::to_string(kMaxTile) + " accumulators"));
  }

  TextScanner in_;
};

} // namespace

const char* name_of(FixedPlan::Algorithm algorithm) {
  switch (algorithm) {
  case Fixed::FusedSpatialSum: return "fused_spatial_sum";
  case Fixed::Concatenate: return "concatenate";
  case Fixed::UpdateSlice: return "update_slice";
  case Fixed::ScatterElements: return "scatter_elements";
  case Fixed::ScatterND: return "scatter_nd";
  case Fixed::NonZero: return "non_zero";
  case Fixed::Sort: return "sort";
  case Fixed::Text: return "text";
  case Fixed::Custom: return "custom";
  case Fixed::Pack: return "pack";
  case Fixed::PackElements: return "pack_elements";
  case Fixed::Inline: return "inline";
  }
  return "";
}

std::string to_string(const KernelPlan& plan) {
  return std::visit([](const auto& of_family) { return text_of(of_family); }, plan);
}

Expected<KernelPlan> parse_kernel_plan(const std::string& name, std::string_view text) {
  return PlanReader(name, text).run();
}

} // namespace firn::plan
