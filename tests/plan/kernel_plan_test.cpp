// Plans read back what they print, and say where they cannot be read.
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/kernel_plan.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::plan;

namespace {

std::string printed(const std::string& text) {
  auto plan = parse_plan_request("plan", text);
  return plan ? to_string(*plan) : plan.error().message;
}

} // namespace

TEST_CASE("plans print as they are read", "[plan]") {
  for (const char* text :
       {"direct",
        "direct tile 14x2 columns outermost",
        "direct tile 4x3 splits 2 interleave 4 rows outermost",
        "direct tile 6x4 columns outermost split_k 3 row_block 48",
        "direct tile 4x2 columns outermost split_m 5",
        "direct tile 1x4 panel 8 columns outermost whole_panels",
        "direct tile 1x2 columns outermost column_streams 2 whole_panels optimize_size",
        "direct tile 8x1 columns outermost optimize_size swap_operands unpacked rolled_epilogue",
        "direct mac dot4 u8 i8 i32",
        "direct mac dot2 bf16 bf16 f32 tile 14x2 columns outermost",
        "direct mac fma f32 i4 f32 tile 8x3 columns outermost widened",
        "direct mac dot4 u8 i8 i32 tile 8x3 columns outermost four_bits widened",
        "direct mac fma i16 u8 i32 tile 1x1 rows outermost",
        "direct mac dot4 i8 i8 i32 tile 2x2 rows outermost widened_rows",
        "direct mac tile_matrix u8 i8 i32 accumulators tile_registers",
        "direct tile 32x2 columns outermost accumulator_tiles 4 k_blocks 3 split_k 2 row_block 64",
        "direct tile 16x3 columns outermost interleaved_epilogue rolled_epilogue",
        "direct tile 4x3 columns outermost lanes 16 unroll 3 epilogue_unroll 2 rolled_runs rolled_long_runs",
        "direct tile 4x3 columns outermost lanes 4 rolled_k prefetch_vectors prefetch_scalars lookup_words",
        "direct tile 3x1 rows outermost rest_splits 1,4,2 rest_rows 2",
        "direct tile 4x3 columns outermost lanes 4 max_unrolled_stores 0",
        "direct mac fma f32 f32 f32 accumulators registers tile 4x2 splits 1",
        "polyphase tile 4x2 columns outermost bias_in_accumulators",
        "planar tile 3x4 columns outermost",
        "winograd 4x2",
        "winograd 4x4 tile 14x2 splits 2 batch 56 rolled_epilogue",
        "winograd 2x2 tile 8x3 batch 16 separate_transform",
        "winograd 4x4 tile 14x2 batch 56 live_vectors 12",
        "depthwise_chain rows 3",
        "line_buffer rows 3",
        "line_buffer rows 12 lanes 1 unroll 2",
        "attention",
        "attention tile 12x2 unroll 4 block 64 packs_keys packs_values",
        "attention tile 4x1 unroll 2 block 8 accumulators 2 packs_keys skips_hidden",
        "attention tile 4x1 unroll 2 block 8 skips_hidden fused_exponents",
        "attention mac tile_matrix bf16 bf16 f32",
        "attention mac dot2 bf16 bf16 f32 tile 6x4 unroll 8 block 224 packs_keys packs_values",
        "attention mac tile_matrix bf16 bf16 f32 tile 29x2 unroll 1 block 224",
        "recurrent",
        "recurrent tile 2x3",
        "recurrent tile 2x3 accumulators 8 prefetch_distance 4096 alternate_direction rolled_cells",
        "recurrent tile 1x4 alternate_direction",
        "relayout squares 8",
        "rows",
        "rows in_producer",
        "rows lanes 4 stores_exponentials fast_exp in_producer",
        "row_pooling",
        "row_pooling lanes 8",
        "row_pooling lanes 8 max_unrolled_window 3",
        "rows lanes 8 unroll 4 accumulators 2 stores_exponentials in_producer",
        "elements",
        "elements lanes 4",
        "elements lanes 4 max_unrolled_window 9 strided in_blocks",
        "elements lanes 16 unroll 2 accumulators 1 partitions 3 max_unrolled_window 9 in_blocks",
        "relayout",
        "resample",
        "resample vectors lanes 8",
        "resample shuffles lanes 4",
        "resample gathers lanes 16",
        "trees",
        "trees tile 4x2 block 64",
        "trees tile 4x2 block 64 unchecked_steps 0 steps_per_check 2",
        "trees tile 4x2 block 64 lanes 8",
        "trees tile 1x1 block 1 packed",
        "fused_spatial_sum",
        "fused_spatial_sum accumulators 2",
        "inline",
        "concatenate",
        "concatenate lanes 8 unroll 2 partitions 3",
        "update_slice",
        "update_slice lanes 4",
        "scatter_elements",
        "scatter_nd",
        "scatter_nd lanes 2 unroll 1",
        "select_and_scatter lanes 4",
        "pack",
        "pack lanes 8 in_f64",
        "non_zero",
        "arg_reduce",
        "arg_reduce lanes 4",
        "scan",
        "scan lanes 8",
        "scan lanes 8 by_rows",
        "sort",
        "top_k",
        "top_k sorts",
        "top_k selects lanes 16",
        "top_k selects lanes 8 held 64 vectors 4",
        "pack_elements",
        "pack_elements lanes 16",
        "depthwise tile 7 along 1 rolled_epilogue bias_in_accumulators",
        "depthwise tile 7 along 1",
        "depthwise mac dot4 u8 i8 i32 tile 7 along 1 unrolled",
        "depthwise tile 14 along 0 unrolled",
        "depthwise tile 6 along 2 unrolled taps_in_registers",
        "pooling tile 8 along 1 unrolled",
        "pooling tile 1 along 0",
        "pooling tile 1 along 0 rolled items 4"})
    CHECK(printed(text) == text);
}

TEST_CASE("a plan that is none names the place", "[plan]") {
  CHECK(printed("direct mac dot3 u8 i8 i32").find("one of fma, dot2, dot4") != std::string::npos);
  CHECK(printed("direct mac dot4 u8 s8 i32").find("'s8' is no element type") != std::string::npos);
  CHECK(printed("direct accumulators elsewhere")
            .find("'accumulators' takes registers, tile_registers or scratch") != std::string::npos);
  CHECK(printed("depthwise tile") == "plan:1:15: 'tile' takes 1 or more");
  CHECK(printed("depthwise along 1") == "plan:1:11: expected 'tile'");
  CHECK(printed("pooling tile 3 along 1 taps_in_registers") == "plan:1:24: expected the end of the plan");
  CHECK(printed("direct tile 0x2").find("wanted two sizes from 1 to 64") != std::string::npos);
  CHECK(printed("direct tile 65x2").find("wanted two sizes from 1 to 64") != std::string::npos);
  CHECK(printed("direct tile 4x2 split_k 0").find("'split_k' takes 1 or more") != std::string::npos);
  CHECK(printed("direct tile 4x2 columns").find("expected 'outermost'") != std::string::npos);
  CHECK(printed("attention tile 2x2 unroll 3 block 8").find("'unroll' takes 1, 2, 4 or 8") !=
        std::string::npos);
  CHECK(printed("winograd 4x4 tile 2x2").find("expected 'batch'") != std::string::npos);
  CHECK(printed("attention tile 2x2 unroll 4 block 8 accumulators 65").find("'accumulators' takes 1 to 64") !=
        std::string::npos);
  CHECK(printed("recurrent tile 2x2 accumulators 0").find("'accumulators' takes 1 or more") !=
        std::string::npos);
  CHECK(printed("elements lanes 0").find("'lanes' takes 1 or more") != std::string::npos);
  CHECK(printed("elements lanes 8 unroll 65").find("'unroll' takes 1 to 64") != std::string::npos);
  CHECK(printed("elements lanes 8 partitions 0").find("'partitions' takes 1 or more") != std::string::npos);
  CHECK(printed("resample gathers").find("expected 'lanes'") != std::string::npos);
  CHECK(printed("relayout squares 0").find("'squares' takes 1 or more") != std::string::npos);
  CHECK(printed("sort tile 2x2").find("expected the end of the plan") != std::string::npos);
  CHECK(printed("guess tile 3").find("wanted one of: arg_reduce, attention") != std::string::npos);
  CHECK(printed("").find("wanted one of: arg_reduce, attention") != std::string::npos);
}

TEST_CASE("words of earlier versions are refused with the new one", "[plan]") {
  auto place = [](const std::string& text, const std::string& old, const std::string& now) {
    return "plan:1:" + std::to_string(text.find(old) + 1) + ": '" + old + "' is called '" + now + "'";
  };
  struct Text {
    const char *text, *old, *now;
  };
  for (auto [text, old, now] :
       {Text{"direct product dot4 u8 i8 i32", "product", "mac"},
        Text{"direct sums scratch", "sums", "accumulators"},
        Text{"direct tile 4x2 rows outermost parts 3", "parts", "split_k"},
        Text{"winograd 2x2 tile 8x3 batch 16 apart", "apart", "separate_transform"},
        Text{"depthwise tile 7 along 1 straight", "straight", "unrolled"},
        Text{"depthwise_chain lines 3", "lines", "rows"}, Text{"line_pooling", "line_pooling", "row_pooling"},
        Text{"attention tile 2x2 steps 4 block 8", "steps", "unroll"},
        Text{"recurrent tile 2x3 turns", "turns", "alternate_direction"},
        Text{"elements lanes 4 window 9", "window", "max_unrolled_window"},
        Text{"rows lanes 4 keeps_terms", "keeps_terms", "stores_exponentials"},
        Text{"members", "members", "inline"}})
    CHECK(printed(text) == place(text, old, now));
}

TEST_CASE("plans are equal by the fields that texts have", "[plan]") {
  auto plan_of = [](const char* text) { return parse_plan_request("plan", text)->plan; };
  KernelPlan plan = plan_of("direct tile 4x2 rows outermost lanes 8"), other = plan;
  other.get_if<ContractionPlan>()->tiling.cycles = 7;
  CHECK(plan == other); // an estimate
  CHECK(to_string(plan) == "direct tile 4x2 rows outermost lanes 8");
  other.get_if<ContractionPlan>()->tiling.rest_splits = {1, 2, 1, 1};
  CHECK_FALSE(plan == other);
  CHECK(to_string(other) == "direct tile 4x2 rows outermost lanes 8 rest_splits 1,2,1,1");
  CHECK_FALSE(plan == plan_of("polyphase tile 4x2 rows outermost lanes 8"));
  CHECK_FALSE(plan_of("scan") == plan_of("arg_reduce"));
  CHECK_FALSE(plan_of("sort") == plan_of("concatenate"));
  CHECK(to_string(plan_of("rows lanes 8 unroll 2")) == "rows lanes 8");
  CHECK(to_string(plan_of("direct mac fma f32 f32 f32")) == "direct"); // the value that stands for no text
}

TEST_CASE("the grammar has every word", "[plan]") {
  std::string grammar = plan_grammar();
  for (const char* part : {"planar|polyphase|direct [mac KIND LHS RHS ACCUMULATOR]", "rest_splits N,N,...",
                           "winograd HIGHxWIDE [tile ROWSxVECTORS", "scan [lanes N] [by_rows]",
                           "row_pooling [lanes N] [max_unrolled_window N]", "arg_reduce [lanes N]",
                           "1, 2, 4 or 8", "fused_spatial_sum"}) {
    INFO(grammar);
    CHECK(grammar.find(part) != std::string::npos);
  }
}
