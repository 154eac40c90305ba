// The fields of every plan: what stands in texts, in this order, and what it means.
#include "compiler/plan/kernel_plan.h"

namespace firn::plan {
namespace {

using Presence = Field::Presence;

const char kRolledEpilogue[] = "the epilogue is a loop over accumulators in memory: fewer bytes of code";
const char kBias[] = "accumulators start from the bias of their channel";
const char kCode[] = "the type of factors and sums, and how many steps of the reduction are one product";

Field lanes_field(int64_t& lanes) {
  return number("lanes", lanes, at_least(1), "lanes of a vector");
}
Field accumulators_field(int64_t& accumulators, const std::string& help) {
  return number("accumulators", accumulators, between(1, kMaxTile), help);
}

void append(Fields& fields, const Fields& others) {
  fields.insert(fields.end(), others.begin(), others.end());
}

Field panel_field(TileShape& tile) {
  Field field = number("panel", tile.panel, between(2, kMaxTile),
                       "vectors of a panel of packed columns, a multiple of the tile's, which takes a part");
  field.read = [read = field.read, &tile](TextScanner& in) {
    Field::Reading reading = read(in);
    bool fits =
        reading != Field::Reading::Done || (tile.panel > tile.vectors && tile.panel % tile.vectors == 0);
    return fits || !in.fail("'panel' takes a multiple of the tile's vectors") ? reading
                                                                              : Field::Reading::Failed;
  };
  return field;
}

Fields tile_fields(TileShape& tile) {
  return {sizes("tile", "ROWSxVECTORS", tile.rows, tile.vectors, kMaxTile,
                "the accumulators of a register tile, vectors of columns")
              .with(Presence::Opens),
          number("splits", tile.accumulator_splits, one_of({1, 2, 4, 8}),
                 "partial sums of each accumulator, side by side"),
          number("interleave", tile.k_interleave, one_of({1, 2, 4}),
                 "steps of the reduction in a register of the last, narrower column group"),
          panel_field(tile)};
}

// The fields that follow from the tile and the CPU.
Fields derived_fields(Tiling& t) {
  Fields fields = {
      number("lanes", t.tile.lanes, at_least(1), "lanes of a vector of accumulators, those of the CPU")
          .with(Presence::Always),
      number("unroll", t.unroll, between(1, kMaxTile),
             "steps of the innermost loop of the reduction per iteration"),
      number("epilogue_unroll", t.epilogue_unroll, between(1, kMaxTile),
             "rows that a rolled epilogue takes at a time"),
      flag("rolled_runs", t.rolls_runs,
           "runs of window positions that the same rows take are loops, if short"),
      flag("rolled_long_runs", t.rolls_long_runs, "they are loops whatever they hold"),
      flag("rolled_k", t.rolls_k, "the steps of an iteration are a loop: one step's operands in registers"),
      flag("prefetch_vectors", t.streams_vectors, "packed columns are asked for ahead of time"),
      flag("prefetch_scalars", t.streams_scalars, "a convolution's input is asked for ahead of time"),
      flag("lookup_words", t.looks_up_words, "steps of words of integers come as floats from a table"),
      number_list(
          "rest_splits", t.rest_splits, one_of({1, 2, 4, 8}),
          "partial sums of tiles of 0, 1, 2, ... rows, one number for each that whole tiles may leave"),
      number("rest_rows", t.rest_rows, one_of({1, 2, 4, 8, 16, 32}),
             "the most rows of a tile of what whole tiles leave of rows that vary")};
  for (Field& field : fields) field.is_derived = true;
  return fields;
}

Fields window_fields(WindowTiling& tiling) {
  WordChoice code{{"", "unrolled", "rolled"},
                  [&tiling] { return tiling.unrolled ? 1
                                     : tiling.rolled ? 2
                                                     : 0; },
                  [&tiling](int index) { tiling.unrolled = index == 1, tiling.rolled = index == 2; }};
  return {number("tile", tiling.pixels, at_least(1), "positions of the result that are computed together")
              .with(Presence::Required),
          number("along", tiling.along, at_least(0), "the spatial dim along which they lie")
              .with(Presence::Required),
          choice("walk", code, "positions inside have straight code; or the window along the dim is a loop")};
}

Fields code_fields(ElementCode& code) {
  return {lanes_field(code.lanes),
          number("unroll", code.unroll, between(1, kMaxTile), "short bodies per iteration"),
          accumulators_field(code.accumulators, "at most, of a long reduction of quick elements"),
          number("partitions", code.partitions, at_least(1),
                 "into which loops are cut at most where padding makes elements differ"),
          number("max_unrolled_window", code.max_unrolled_window, at_least(1),
                 "elements of a window up to which its loops are unrolled"),
          flag("strided", code.strided, "lanes run across results though what these reduce lies apart")};
}

// The loops around tiles, and the forms of the operands.
Fields loop_fields(ContractionPlan& plan) {
  Tiling& t = plan.tiling;
  WordChoice order{{"columns outermost", "rows outermost"},
                   [&t] { return t.columns_outermost ? 0 : 1; },
                   [&t](int index) { t.columns_outermost = index == 0; }};
  return {
      choice("order", order, "which loop over tiles has the other inside").with(Presence::Always),
      number("accumulator_tiles", t.accumulator_tiles, at_least(1),
             "tiles, sums in memory, that take a block of the reduction before the next"),
      number("k_blocks", t.k_blocks, at_least(1), "those blocks"),
      number("split_k", t.split_k, at_least(1), "parts of the reduction, one after the other over all tiles"),
      number("row_block", t.row_block, at_least(1), "rows that pass all columns before the next ones do"),
      number("split_m", t.split_m, at_least(1), "items for threads into which a column group's rows are cut"),
      number("column_streams", t.tile.column_streams, between(1, kMaxTile),
             "column groups side by side, from as many places of memory"),
      flag("whole_panels", t.tile.whole_panels, "the last panel is as wide as the others"),
      flag("optimize_size", t.optimize_size, "small code before speed"),
      flag("swap_operands", plan.swap_operands, "a dot's left operand has the columns"),
      flag("unpacked", plan.unpacked, "a dot's columns are read where they lie"),
      flag("four_bits", plan.four_bits, "constant columns of small bytes lie in four bits"),
      flag("widened", plan.widened, "columns are widened once for all rows, by the group"),
      choice("copy", plan.feature_map_copy, {"", "packs_rows", "packs_windows", "packs_padded_rows"}, false,
             "the form in which a convolution's input is copied first"),
      flag("interleaved_epilogue", t.interleaves_epilogue, "a tile's epilogue is among the next one's steps"),
      flag("rolled_epilogue", plan.rolled_epilogue, kRolledEpilogue),
      flag("bias_in_accumulators", plan.bias_in_accumulators, kBias)};
}

} // namespace

Fields ContractionPlan::fields() {
  Fields fields = {mac_field(mac, kCode),
                   choice("accumulators", accumulators, {"registers", "tile_registers", "scratch"},
                          /*leads=*/true, "where sums are while a reduction runs")};
  append(fields, tile_fields(tiling.tile));
  append(fields, loop_fields(*this));
  append(fields, derived_fields(tiling));
  return fields;
}

Fields WinogradPlan::fields() {
  Fields fields = {sizes("", "HIGHxWIDE", outputs_high, outputs_wide, 4, "results of a transform")
                       .with(Presence::Required)};
  append(fields, tile_fields(tile));
  append(fields,
         {number("batch", batch, at_least(1), "tiles of the image that are transformed at a time")
              .with(Presence::Required),
          flag("separate_transform", separate_transform, "inputs are transformed by their own kernel"),
          flag("rolled_epilogue", rolled_epilogue, kRolledEpilogue)});
  return fields;
}

Fields DepthwisePlan::fields() {
  Fields fields = {mac_field(mac, kCode)};
  append(fields, window_fields(tiling));
  append(fields, {flag("taps_in_registers", taps_in_registers, "the filter stays there; needs 'unrolled'"),
                  flag("rolled_epilogue", rolled_epilogue, kRolledEpilogue),
                  flag("bias_in_accumulators", bias_in_accumulators, kBias)});
  return fields;
}

Fields DepthwiseChainPlan::fields() {
  return {number("rows", rows, at_least(1), "rows of the result that a strip has").with(Presence::Required)};
}

Fields PoolingPlan::fields() {
  return window_fields(tiling);
}

Fields RowPoolingPlan::fields() {
  return {lanes_field(lanes)};
}

Fields AttentionPlan::fields() {
  return {
      mac_field(mac, kCode),
      sizes("tile", "ROWSxVECTORS", rows, vectors, kMaxTile,
            "queries, and vectors of keys, of a register tile")
          .with(Presence::Opens),
      number("unroll", unroll, one_of({1, 2, 4, 8}), "steps of a product per iteration")
          .with(Presence::Required),
      number("block", block, at_least(1), "keys whose scores are there at a time").with(Presence::Required),
      accumulators_field(accumulators, "of a row's maximum, and of its sum of weights"),
      flag("packs_keys", packs_keys, "keys are copied into lanes first"),
      flag("packs_values", packs_values, "values are copied into lanes first"),
      flag("skips_hidden", skips_hidden, "keys that a constant mask hides from a tile are left out"),
      flag("fused_exponents", fused_exponents, "weights are powers of two, the maximum subtracted with it")};
}

Fields RecurrentPlan::fields() {
  return {sizes("tile", "ROWSxVECTORS", rows, vectors, kMaxTile,
                "entries of the batch, and vectors of hidden units, of a tile")
              .with(Presence::Opens),
          number("accumulators", accumulators, at_least(1),
                 "side by side at least: smaller tiles split the reduction for it"),
          number("prefetch_distance", prefetch_distance, at_least(1),
                 "bytes ahead at which weights are asked for"),
          flag("alternate_direction", alternate_direction, "every other step reads the weights backwards"),
          flag("rolled_cells", rolled_cells, "the cells of a tile are a loop over sums in memory"),
          number("items", item_rows, at_least(1), "entries of the batch that are an item for threads"),
          flag("cooperative", cooperative, "items are blocks of units, whose threads wait for each other")};
}

Fields RelayoutPlan::fields() {
  return {number("squares", lanes, at_least(1), "elements high and wide that pass through registers")};
}

Fields ElementsPlan::fields() {
  Fields fields = code_fields(code);
  fields.push_back(flag("in_blocks", in_blocks, "results are walked in the blocks that an operand lies in"));
  return fields;
}

Fields RowsPlan::fields() {
  Fields fields = code_fields(code);
  append(fields, {flag("stores_exponentials", stores_exponentials, "exponentials are computed once and kept"),
                  flag("fast_exp", fast_exp, "they are as exact as weights beside a whole one need"),
                  flag("in_producer", in_producer, "the dot before takes the rows while they are near")});
  return fields;
}

Fields ResamplePlan::fields() {
  WordChoice forms{{"vectors", "shuffles", "gathers"},
                   [this] { return lanes == 0 ? -1 : static_cast<int>(form); },
                   [this](int index) { form = static_cast<Form>(index); }};
  return {choice("form", forms, "how neighbours along a row become vectors").with(Presence::Opens),
          lanes_field(lanes).with(Presence::Required)};
}

Fields ScanPlan::fields() {
  Fields fields = {lanes_field(lanes)};
  if (algorithm == Algorithm::Scan)
    fields.push_back(flag("by_rows", by_rows, "all elements across are walked at each step"));
  return fields;
}

Fields TopKPlan::fields() {
  WordChoice ways{{"sorts", "selects"},
                  [this] { return lanes == 0 ? -1 : static_cast<int>(selects); },
                  [this](int index) { selects = index == 1, lanes = selects ? 0 : 1; }};
  return {choice("way", ways, "whether the row is sorted, or the k-th element found by bisection")
              .with(Presence::Opens),
          lanes_field(lanes).with(Presence::Required).where([this] { return selects; })};
}

Fields TreesPlan::fields() {
  return {sizes("tile", "ROWSxTREES", rows, trees, kMaxTile, "walks down trees that are side by side")
              .with(Presence::Opens),
          number("block", block, at_least(1), "rows of an item for threads").with(Presence::Required)};
}

} // namespace firn::plan
