// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/contraction/plan.h"

namespace firn::plan {
namespace {

using Presence = Field::Presence;

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

// The fields that follow from the tile and the CPU.
Fields derived_fields(Tiling& t) {
  Fields fields = {
      number("lanes", t.tile.lanes, at_least(1), "lanes of a vector of accumulators, those of the CPU")
          .with(Presence::Always),
      number("unroll", t.unroll, between(1, kMaxTile),
             "steps of the innermost loop of the reduction per iteration"),
      number("epilogue_unroll", t.epilogue_unroll, between(1, kMaxTile),
             "rows that a rolled epilogue takes at a time"),
      number("max_unrolled_stores", t.max_unrolled_stores, between(0, kMaxTile),
             "vectors of accumulators up to which a rolled epilogue is straight code"),
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
      flag("widened_rows", plan.widens_rows, "bytes of a tile's rows are widened once for all columns"),
      choice("copy", plan.feature_map_copy, {"", "packs_rows", "packs_windows", "packs_padded_rows"}, false,
             "the form in which a convolution's input is copied first"),
      flag("interleaved_epilogue", t.interleaves_epilogue, "a tile's epilogue is among the next one's steps"),
      rolled_epilogue_field(plan.rolled_epilogue),
      bias_in_accumulators_field(plan.bias_in_accumulators)};
}

} // namespace

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

Fields ContractionPlan::fields() {
  Fields fields = {mac_field(mac),
                   choice("accumulators", accumulators, {"registers", "tile_registers", "scratch"},
                          /*leads=*/true, "where sums are while a reduction runs")};
  append(fields, tile_fields(tiling.tile));
  append(fields, loop_fields(*this));
  append(fields, derived_fields(tiling));
  return fields;
}

} // namespace firn::plan
