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
std::string text_of(const Product& product) {
  return product == Product{} ? "" : " product " + to_string(product);
}
std::string text_of(const WindowTiling& tiling) {
  return " tile " + std::to_string(tiling.pixels) + " along " + std::to_string(tiling.along) +
         flag(tiling.straight, "straight") + flag(tiling.rolled, "rolled");
}

const char* name_of(ContractionPlan::Algorithm algorithm) {
  switch (algorithm) {
  case ContractionPlan::Algorithm::Direct: return "direct";
  case ContractionPlan::Algorithm::Polyphase: return "polyphase";
  case ContractionPlan::Algorithm::Planar: return "planar";
  }
  return "";
}
const char* name_of(SumsIn sums) {
  switch (sums) {
  case SumsIn::Registers: return "registers";
  case SumsIn::TileRegisters: return "tile_registers";
  case SumsIn::Scratch: return "scratch";
  }
  return "";
}
std::string text_of(const ContractionPlan& plan) {
  const Tiling& tiling = plan.tiling;
  std::string name = name_of(plan.algorithm);
  name += text_of(plan.product);
  if (plan.sums != SumsIn::Registers) name += std::string(" sums ") + name_of(plan.sums);
  if (tiling.tile.rows == 0) return name;
  return name + text_of(tiling.tile) + (tiling.columns_outermost ? " columns outermost" : " rows outermost") +
         number("sum_tiles", tiling.sum_tiles, 1) + number("k_blocks", tiling.k_blocks, 1) +
         number("parts", tiling.parts, 1) + number("row_block", tiling.row_block, 0) +
         number("shares", tiling.shares, 1) + number("column_streams", tiling.tile.column_streams, 1) +
         flag(tiling.tile.whole_panels, "whole_panels") + flag(tiling.compact, "compact") +
         flag(plan.lhs_columns, "lhs_columns") + flag(plan.unpacked, "unpacked") +
         flag(plan.four_bits, "four_bits") + flag(plan.widened, "widened") +
         flag(plan.image_copy == ImageCopy::Rows, "packs_rows") +
         flag(plan.image_copy == ImageCopy::Windows, "packs_windows") +
         flag(plan.image_copy == ImageCopy::Lines, "packs_lines") +
         flag(tiling.interleaves_epilogue, "interleaved_epilogue") +
         flag(plan.looped_epilogue, "looped_epilogue") + flag(plan.bias_first, "bias_first");
}
std::string text_of(const WinogradPlan& plan) {
  std::string text = "winograd " + pair_text(plan.outputs_high, plan.outputs_wide);
  return plan.tile.rows == 0 ? text
                             : text + text_of(plan.tile) + number("batch", plan.batch, 0) +
                                   flag(plan.apart, "apart") + flag(plan.looped_epilogue, "looped_epilogue");
}
std::string text_of(const DepthwisePlan& plan) {
  return "depthwise" + text_of(plan.product) + text_of(plan.tiling) +
         flag(plan.taps_in_registers, "taps_in_registers") + flag(plan.looped_epilogue, "looped_epilogue") +
         flag(plan.bias_first, "bias_first");
}
std::string text_of(const DepthwiseChainPlan& plan) {
  return "depthwise_chain lines " + std::to_string(plan.lines);
}
std::string text_of(const PoolingPlan& plan) {
  return "pooling" + text_of(plan.tiling);
}
std::string text_of(const LinePoolingPlan& plan) {
  return "line_pooling" + number("lanes", plan.lanes, 0);
}

std::string text_of(const AttentionPlan& plan) {
  std::string name = "attention" + text_of(plan.product);
  if (plan.rows == 0) return name;
  return name + " tile " + pair_text(plan.rows, plan.vectors) + " steps " + std::to_string(plan.steps) +
         " block " + std::to_string(plan.block) + number("accumulators", plan.accumulators, 4) +
         flag(plan.packs_keys, "packs_keys") + flag(plan.packs_values, "packs_values") +
         flag(plan.skips_hidden, "skips_hidden") + flag(plan.fused_exponents, "fused_exponents");
}
std::string text_of(const RecurrentPlan& plan) {
  if (plan.rows == 0) return "recurrent";
  return "recurrent tile " + pair_text(plan.rows, plan.vectors) + number("sums", plan.sums, 1) +
         number("fetch_ahead", plan.fetch_ahead, 0) + flag(plan.turns, "turns") +
         flag(plan.looped_cells, "looped_cells") + number("items", plan.item_rows, 0) +
         flag(plan.together, "together");
}
std::string text_of(const RelayoutPlan& plan) {
  return "relayout" + number("squares", plan.lanes, 0);
}
// `copies`: those that stand for no text.
std::string text_of(const ElementCode& code, int64_t copies) {
  const ElementCode none;
  return number("lanes", code.lanes, 0) + number("copies", code.copies, copies) +
         number("accumulators", code.accumulators, none.accumulators) +
         number("boxes", code.boxes, none.boxes) +
         number("window", code.straight_window, none.straight_window) + flag(code.strided, "strided");
}
std::string text_of(const ElementsPlan& plan) {
  return "elements" + text_of(plan.code, ElementCode().copies) + flag(plan.in_blocks, "in_blocks");
}
std::string text_of(const RowsPlan& plan) {
  return "rows" + text_of(plan.code, kRowCopies) + flag(plan.keeps_terms, "keeps_terms") +
         flag(plan.short_terms, "short_terms") + flag(plan.in_producer, "in_producer");
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
std::string text_of(const PlainPlan& plan) {
  return name_of(plan.algorithm);
}

using Plain = PlainPlan::Algorithm;
constexpr Plain kPlain[] = {
    Plain::FusedSpatialSum, Plain::Concatenate, Plain::UpdateSlice, Plain::ScatterElements,
    Plain::ScatterND,       Plain::Sort,        Plain::Pack,        Plain::PackElements,
    Plain::Members,         Plain::NonZero,     Plain::Text,        Plain::Custom};

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
    if (in_.accept("line_pooling")) return read_as(LinePoolingPlan());
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
    for (Plain algorithm : kPlain)
      if (in_.accept(name_of(algorithm))) return PlainPlan{algorithm};
    in_.fail("'" + std::string(in_.word()) + "' names no algorithm, wanted one of: " + all_names());
    return std::nullopt;
  }

  static std::string all_names() {
    std::string names = "arg_reduce, attention, depthwise, depthwise_chain, direct, elements, line_pooling, "
                        "planar, polyphase, pooling, "
                        "recurrent, relayout, resample, rows, scan, top_k, trees, winograd";
    for (Plain algorithm : kPlain) names += std::string(", ") + name_of(algorithm);
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

  bool read(Product& product) {
    // Names before those that they begin with.
    static constexpr ProductKind kinds[] = {ProductKind::Fma, ProductKind::Dot2, ProductKind::Dot4Narrow,
                                            ProductKind::Dot4, ProductKind::TileMatrix};
    for (ProductKind kind : kinds)
      if (in_.accept(name_of(kind))) {
        product.kind = kind;
        return read(product.lhs) && read(product.rhs) && read(product.accumulator);
      }
    return in_.fail("a product is one of fma, dot2, dot4, dot4_narrow, tile_matrix");
  }

  bool read(SumsIn& sums) {
    for (SumsIn place : {SumsIn::Registers, SumsIn::TileRegisters, SumsIn::Scratch})
      if (in_.accept(name_of(place))) {
        sums = place;
        return true;
      }
    return in_.fail("sums live in registers, tile_registers or scratch");
  }

  bool read(ContractionPlan& plan) {
    Tiling& tiling = plan.tiling;
    tiling.tile.rows = 0;
    if (in_.accept("product") && !read(plan.product)) return false;
    if (in_.accept("sums") && !read(plan.sums)) return false;
    if (!in_.accept("tile")) return true;
    if (!read(tiling.tile)) return false;
    tiling.columns_outermost = !in_.accept("rows");
    bool has_order = !tiling.columns_outermost || in_.accept("columns");
    int64_t parts = 1, sum_tiles = 1, k_blocks = 1, streams = 1;
    if ((has_order && !in_.expect("outermost")) ||
        !read_count("sum_tiles", "at least one tile has sums", sum_tiles) ||
        !read_count("k_blocks", "there is at least one block", k_blocks) ||
        !read_count("parts", "there is at least one part", parts) ||
        !read_count("row_block", "a block has at least one row", tiling.row_block) ||
        !read_count("shares", "there is at least one share", tiling.shares) ||
        !read_count("column_streams", "there is at least one stream", streams))
      return false;
    if (streams > kMaxTile) return in_.fail("streams are up to " + std::to_string(kMaxTile));
    tiling.tile.column_streams = static_cast<int>(streams);
    tiling.tile.whole_panels = in_.accept("whole_panels");
    if (std::max({parts, sum_tiles, k_blocks}) > INT32_MAX) return in_.fail("there are not so many steps");
    tiling.parts = static_cast<int>(parts);
    tiling.sum_tiles = static_cast<int>(sum_tiles);
    tiling.k_blocks = static_cast<int>(k_blocks);
    tiling.compact = in_.accept("compact");
    plan.lhs_columns = in_.accept("lhs_columns");
    plan.unpacked = in_.accept("unpacked");
    plan.four_bits = in_.accept("four_bits");
    plan.widened = in_.accept("widened");
    if (in_.accept("packs_rows")) plan.image_copy = ImageCopy::Rows;
    if (in_.accept("packs_windows")) plan.image_copy = ImageCopy::Windows;
    if (in_.accept("packs_lines")) plan.image_copy = ImageCopy::Lines;
    tiling.interleaves_epilogue = in_.accept("interleaved_epilogue");
    plan.looped_epilogue = in_.accept("looped_epilogue");
    plan.bias_first = in_.accept("bias_first");
    return true;
  }

  bool read(WinogradPlan& plan) {
    if (!read_pair(4, plan.outputs_high, plan.outputs_wide)) return false;
    if (!in_.accept("tile")) return true;
    if (!read(plan.tile)) return false;
    if (!in_.expect("batch")) return false;
    if (!in_.integer(plan.batch) || plan.batch < 1) return in_.fail("a batch has at least one tile");
    plan.apart = in_.accept("apart");
    plan.looped_epilogue = in_.accept("looped_epilogue");
    return true;
  }

  bool read(WindowTiling& tiling) {
    if (!read("tile", tiling.pixels) || !read("along", tiling.along)) return false;
    tiling.straight = in_.accept("straight");
    tiling.rolled = !tiling.straight && in_.accept("rolled");
    return true;
  }
  bool read(DepthwisePlan& plan) {
    if (in_.accept("product") && !read(plan.product)) return false;
    if (!read(plan.tiling)) return false;
    plan.taps_in_registers = in_.accept("taps_in_registers");
    plan.looped_epilogue = in_.accept("looped_epilogue");
    plan.bias_first = in_.accept("bias_first");
    return true;
  }
  bool read(DepthwiseChainPlan& plan) { return read("lines", plan.lines); }
  bool read(PoolingPlan& plan) { return read(plan.tiling); }
  bool read(LinePoolingPlan& plan) { return read_lanes(plan.lanes); }
  bool read(AttentionPlan& plan) {
    if (in_.accept("product") && !read(plan.product)) return false;
    if (!in_.accept("tile")) return true;
    if (!read_pair(kMaxTile, plan.rows, plan.vectors)) return false;
    int64_t steps = 0;
    if (!read("steps", steps) || !read("block", plan.block)) return false;
    if (steps != 1 && steps != 2 && steps != 4 && steps != 8) return in_.fail("steps are 1, 2, 4 or 8");
    plan.steps = static_cast<int>(steps);
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
        !read_count("sums", "there is at least one sum", plan.sums) ||
        !read_count("fetch_ahead", "weights are asked for before they are read", plan.fetch_ahead))
      return false;
    plan.turns = in_.accept("turns");
    plan.looped_cells = in_.accept("looped_cells");
    if (!read_count("items", "an item has rows", plan.item_rows)) return false;
    plan.together = in_.accept("together");
    return true;
  }
  bool read(RelayoutPlan& plan) { return read_count("squares", "a square has elements", plan.lanes); }

  bool read(ElementCode& code) {
    return read_lanes(code.lanes) && read_count("copies", "there is at least one copy", code.copies) &&
           (code.copies <= kMaxTile ||
            in_.fail("there are at most " + std::to_string(kMaxTile) + " copies")) &&
           read_accumulators(code.accumulators) &&
           read_count("boxes", "there is at least one box", code.boxes) &&
           read_count("window", "a window has at least one element", code.straight_window) &&
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
    plan.keeps_terms = in_.accept("keeps_terms");
    plan.short_terms = in_.accept("short_terms");
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

const char* name_of(PlainPlan::Algorithm algorithm) {
  switch (algorithm) {
  case Plain::FusedSpatialSum: return "fused_spatial_sum";
  case Plain::Concatenate: return "concatenate";
  case Plain::UpdateSlice: return "update_slice";
  case Plain::ScatterElements: return "scatter_elements";
  case Plain::ScatterND: return "scatter_nd";
  case Plain::NonZero: return "non_zero";
  case Plain::Sort: return "sort";
  case Plain::Text: return "text";
  case Plain::Custom: return "custom";
  case Plain::Pack: return "pack";
  case Plain::PackElements: return "pack_elements";
  case Plain::Members: return "members";
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
