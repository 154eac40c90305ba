// Plans read back what they print, and say where they cannot be read.
#include "compiler/plan/kernel_plan.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::plan;

namespace {

std::string printed(const std::string& text) {
  auto plan = parse_kernel_plan("plan", text);
  return plan ? to_string(*plan) : plan.error().message;
}

} // namespace

TEST_CASE("plans print as they are read", "[plan]") {
  for (const char* text :
       {"direct",
        "direct tile 14x2 columns outermost",
        "direct tile 4x3 splits 2 interleave 4 rows outermost",
        "direct tile 6x4 columns outermost parts 3 row_block 48",
        "direct tile 4x2 columns outermost shares 5",
        "direct tile 1x4 panel 8 columns outermost whole_panels",
        "direct tile 1x2 columns outermost column_streams 2 whole_panels compact",
        "direct tile 8x1 columns outermost compact lhs_columns unpacked looped_epilogue",
        "direct product dot4 u8 i8 i32",
        "direct product dot2 bf16 bf16 f32 tile 14x2 columns outermost",
        "direct product fma f32 i4 f32 tile 8x3 columns outermost widened",
        "direct product dot4 u8 i8 i32 tile 8x3 columns outermost four_bits widened",
        "direct product fma i16 u8 i32 tile 1x1 rows outermost",
        "direct product tile_matrix u8 i8 i32 sums tile_registers",
        "direct tile 32x2 columns outermost sum_tiles 4 k_blocks 3 parts 2 row_block 64",
        "direct tile 16x3 columns outermost interleaved_epilogue looped_epilogue",
        "polyphase tile 4x2 columns outermost bias_first",
        "planar tile 3x4 columns outermost",
        "winograd 4x2",
        "winograd 4x4 tile 14x2 splits 2 batch 56 looped_epilogue",
        "winograd 2x2 tile 8x3 batch 16 apart",
        "depthwise_chain lines 3",
        "attention",
        "attention tile 12x2 steps 4 block 64 packs_keys packs_values",
        "attention tile 4x1 steps 2 block 8 accumulators 2 packs_keys skips_hidden",
        "attention tile 4x1 steps 2 block 8 skips_hidden fused_exponents",
        "attention product tile_matrix bf16 bf16 f32",
        "attention product dot2 bf16 bf16 f32 tile 6x4 steps 8 block 224 packs_keys packs_values",
        "attention product tile_matrix bf16 bf16 f32 tile 29x2 steps 1 block 224",
        "recurrent",
        "recurrent tile 2x3",
        "recurrent tile 2x3 sums 8 fetch_ahead 4096 turns looped_cells",
        "recurrent tile 1x4 turns",
        "relayout squares 8",
        "rows",
        "rows in_producer",
        "rows lanes 4 keeps_terms short_terms in_producer",
        "line_pooling",
        "line_pooling lanes 8",
        "rows lanes 8 copies 4 accumulators 2 keeps_terms in_producer",
        "elements",
        "elements lanes 4",
        "elements lanes 4 window 9 strided in_blocks",
        "elements lanes 16 copies 2 accumulators 1 boxes 3 window 9 in_blocks",
        "relayout",
        "resample",
        "resample vectors lanes 8",
        "resample shuffles lanes 4",
        "resample gathers lanes 16",
        "trees",
        "trees tile 4x2 block 64",
        "fused_spatial_sum",
        "members",
        "concatenate",
        "update_slice",
        "scatter_elements",
        "scatter_nd",
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
        "pack_elements",
        "depthwise tile 7 along 1 looped_epilogue bias_first",
        "depthwise tile 7 along 1",
        "depthwise product dot4 u8 i8 i32 tile 7 along 1 straight",
        "depthwise tile 14 along 0 straight",
        "depthwise tile 6 along 2 straight taps_in_registers",
        "pooling tile 8 along 1 straight",
        "pooling tile 1 along 0"})
    CHECK(printed(text) == text);
}

TEST_CASE("a plan that is none names the place", "[plan]") {
  CHECK(printed("direct product fma f32 f32 f32") == "direct"); // what stands for no text
  CHECK(printed("direct sums registers tile 4x2 rows outermost") == "direct tile 4x2 rows outermost");
  CHECK(printed("direct product dot3 u8 i8 i32").find("one of fma, dot2, dot4") != std::string::npos);
  CHECK(printed("direct product dot4 u8 s8 i32").find("'s8' is no element type") != std::string::npos);
  CHECK(printed("direct sums elsewhere").find("registers, tile_registers or scratch") != std::string::npos);
  CHECK(printed("depthwise tile") == "plan:1:15: expected an integer");
  CHECK(printed("depthwise along 1") == "plan:1:11: expected 'tile'");
  CHECK(printed("pooling tile 3 along 1 taps_in_registers") == "plan:1:24: expected the end of the plan");
  CHECK(printed("direct tile 0x2").find("wanted two sizes from 1 to 64") != std::string::npos);
  CHECK(printed("direct tile 65x2").find("wanted two sizes from 1 to 64") != std::string::npos);
  CHECK(printed("direct tile 4x2 parts 0").find("at least one part") != std::string::npos);
  CHECK(printed("direct tile 4x2 columns").find("expected 'outermost'") != std::string::npos);
  CHECK(printed("attention tile 2x2 steps 3 block 8").find("steps are 1, 2, 4 or 8") != std::string::npos);
  CHECK(printed("winograd 4x4 tile 2x2").find("expected 'batch'") != std::string::npos);
  CHECK(printed("attention tile 2x2 steps 4 block 8 accumulators 65").find("at most 64 accumulators") !=
        std::string::npos);
  CHECK(printed("recurrent tile 2x2 sums 0").find("at least one sum") != std::string::npos);
  CHECK(printed("elements lanes 0").find("at least one lane") != std::string::npos);
  CHECK(printed("elements lanes 8 copies 65").find("at most 64 copies") != std::string::npos);
  CHECK(printed("elements lanes 8 boxes 0").find("at least one box") != std::string::npos);
  CHECK(printed("resample gathers").find("expected 'lanes'") != std::string::npos);
  CHECK(printed("rows lanes 8 copies 2") == "rows lanes 8"); // what stands for no text
  CHECK(printed("relayout squares 0").find("a square has elements") != std::string::npos);
  CHECK(printed("sort tile 2x2").find("expected the end of the plan") != std::string::npos);
  CHECK(printed("guess tile 3").find("wanted one of: arg_reduce, attention") != std::string::npos);
  CHECK(printed("").find("wanted one of: arg_reduce, attention") != std::string::npos);
}
