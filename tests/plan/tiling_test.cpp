// Tiles and loop orders of contractions: how columns fill vectors decides, and what passes from which cache
// level.
#include "compiler/plan/contraction/tiling.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

plan::ContractionShape product(int64_t rows, int64_t inner, int64_t columns, int64_t weight_bytes) {
  plan::ContractionShape shape;
  shape.m = rows;
  shape.n = columns;
  shape.k.emplace_back();
  shape.k[0].extent = inner;
  shape.scalar_bytes = rows * inner * 4;
  shape.vector_bytes = inner * columns * 4;
  shape.weight_bytes = weight_bytes;
  return shape;
}

bool columns_outermost(const plan::ContractionShape& shape) {
  auto target = find_target("", "sapphirerapids", "");
  REQUIRE(target);
  return plan::choose_tiling(shape, *target).columns_outermost;
}

// Rows of 384 elements by 384 columns.
plan::Tiling tiling_of(const char* cpu, int64_t rows, bool vary) {
  auto target = find_target("x86_64-linux-gnu", cpu, "");
  REQUIRE(target);
  plan::ContractionShape shape;
  shape.m = rows;
  shape.m_varies = vary;
  shape.n = 384;
  shape.k = {{plan::ReductionLoop::Kind::Rolled, 384}};
  shape.scalar_bytes = rows * 384 * 4;
  shape.vector_bytes = 384 * 384 * 4;
  shape.set_mac({});
  return plan::choose_tiling(shape, *target);
}

} // namespace

TEST_CASE("weights from beyond the second cache level pass once, asked for ahead", "[plan][tiling]") {
  CHECK(columns_outermost(product(196, 1024, 256, 100 << 20)));
  CHECK(columns_outermost(product(784, 64, 512, 100 << 20)));
}

TEST_CASE("near columns pass once per row of tiles where rows are more", "[plan][tiling]") {
  CHECK_FALSE(columns_outermost(product(196, 1024, 256, 0)));
  CHECK_FALSE(columns_outermost(product(3136, 256, 64, 64 << 10)));
}

TEST_CASE("few rows do not stream wide panels", "[plan][tiling]") {
  auto target = find_target("", "x86-64-v3", "");
  REQUIRE(target);
  // 512 x 5 vectors fill more than the first cache level; two rows of them would wait for the second.
  plan::TileShape tile = plan::choose_tiling(product(8, 512, 512, 0), *target).tile;
  CHECK(tile.rows >= 4);
  CHECK(tile.rows * tile.vectors >= 8);
}

TEST_CASE("depth pays where the last vector is half empty and the reduction long", "[plan][tiling]") {
  auto target = find_target("", "sapphirerapids", "");
  REQUIRE(target);
  auto depth = [&](int64_t inner, int64_t columns, int max) {
    plan::ContractionShape shape = product(56, inner, columns, 0);
    shape.max_k_interleave = max;
    return plan::choose_tiling(shape, *target).tile.k_interleave;
  };
  CHECK(depth(144, 24, 4) == 2);
  CHECK(depth(144, 40, 4) == 2);
  CHECK(depth(144, 12, 4) == 4);
  CHECK(depth(144, 24, 1) == 1); // neighbours lie apart
  CHECK(depth(8, 24, 4) == 1);   // additions at the end would cost more
  CHECK(depth(144, 32, 4) == 1);
  CHECK(depth(144, 31, 4) == 1);
  CHECK(depth(144, 1000, 4) == 1);
  plan::ContractionShape shape = product(56, 144, 24, 0);
  shape.max_k_interleave = 4;
  shape.optimize_size = true;
  CHECK(plan::choose_tiling(shape, *target).tile.k_interleave == 1);
}

TEST_CASE("weights of few rows come in streams where they are far", "[plan][tiling]") {
  auto streams = [](const char* cpu, int64_t rows, int64_t weight_bytes) {
    plan::ContractionShape shape = product(rows, 768, 3072, 0);
    shape.weight_bytes = weight_bytes;
    auto target = find_target("", cpu, "");
    plan::Tiling tiling = plan::choose_tiling(shape, *target);
    CHECK(plan::check_column_streams(tiling, shape) == "");
    CHECK(plan::choose_tiling(shape, *target, &tiling.tile).cycles == tiling.cycles);
    return tiling.tile.column_streams;
  };
  CHECK(streams("sapphirerapids", 1, 100 << 20) == 4);
  CHECK(streams("x86-64-v3", 1, 100 << 20) == 4);
  CHECK(streams("sapphirerapids", 2, 100 << 20) == 4);
  CHECK(streams("sapphirerapids", 1, 1 << 20) == 1);
  CHECK(streams("sapphirerapids", 64, 100 << 20) == 1);
  CHECK(streams("znver4", 1, 100 << 20) == 1);
  CHECK(find_target("", "znver4", "")->cpu.memory_streams == 1);
  CHECK(streams("neoverse-n1", 1, 100 << 20) == 1); // not measured
  CHECK(find_target("", "neoverse-n1", "")->cpu.memory_streams == 0);
}

TEST_CASE("the last column group takes the registers that its columns fill", "[plan][tiling]") {
  plan::ColumnGroups groups = plan::column_groups(72, {9, 3, 16, 1, 2});
  CHECK(groups.count() == 2);
  CHECK(groups.registers(0, 3) == 3);
  CHECK(groups.k_interleave(0) == 1);
  CHECK(groups.rest_vectors == 2);
  CHECK(groups.registers(3, 2) == 3);
  CHECK(groups.k_interleave(3) == 2);
  CHECK(plan::column_groups(40, {4, 3, 16, 1, 2}).registers(0, 3) == 5); // one group, and the last one
  CHECK(plan::column_groups(40, {4, 3, 16, 1, 1}).registers(0, 3) == 3);
  CHECK(plan::column_groups(116, {14, 2, 16, 1, 4}).registers(6, 2) == 5);
}

TEST_CASE("rows left by tiles over given panels have sums that hide the latency", "[plan][tiling]") {
  auto wide = find_target("", "x86-64-v4", ""), narrow = find_target("", "x86-64-v3", "");
  REQUIRE((wide && narrow));
  Machine target = with_vectors_of(*narrow, *wide);
  plan::ContractionShape shape = product(128, 768, 768, 0);
  CHECK(plan::choose_tiling(shape, target).rest_splits.empty()); // it leaves none, or as many
  shape.panel = 3;
  plan::Tiling tiling = plan::choose_tiling(shape, target);
  int rest = static_cast<int>(128 % tiling.tile.rows);
  REQUIRE(static_cast<int>(tiling.rest_splits.size()) == tiling.tile.rows);
  CHECK(tiling.rest_splits[static_cast<size_t>(rest)] > tiling.tile.accumulator_splits);
  shape.m = 5 * tiling.tile.rows;
  CHECK(plan::choose_tiling(shape, target).rest_splits.empty());
}

TEST_CASE("tiles of rows that vary leave little of numbers that people have", "[plan]") {
  CHECK(tiling_of("x86-64-v3", 12, false).tile.rows == 6);
  for (const char* cpu : {"x86-64-v3", "haswell", "znver3", "x86-64-v4", "sapphirerapids"}) {
    INFO(cpu);
    plan::Tiling tiling = tiling_of(cpu, 4096, true);
    CHECK(16 % tiling.tile.rows == 0);
    CHECK(tiling.tile.rows * tiling.tile.vectors >= 12);
    CHECK(2 * tiling.rest_rows >= tiling.tile.rows / 2);
    CHECK(tiling.rest_splits.size() == static_cast<size_t>(tiling.tile.rows));
  }
}

TEST_CASE("few rows that vary have tiles that they fill", "[plan]") {
  for (int64_t max : {1, 2, 3, 5, 7}) {
    plan::Tiling tiling = tiling_of("x86-64-v3", max, true);
    INFO(max);
    CHECK(tiling.tile.rows >= 1);
    CHECK(tiling.tile.rows <= max);
    CHECK(tiling.rest_rows <= tiling.tile.rows);
  }
}

TEST_CASE("words of bytes in general registers are taken step by step", "[plan][tiling]") {
  auto unroll = [](const char* triple, const char* cpu) {
    auto target = find_target(triple, cpu, "");
    REQUIRE(target);
    plan::ContractionShape shape = product(1, 64, 64, 4096);
    shape.set_mac({MacKind::Dot4, DType::I8, DType::I8, DType::I32});
    return plan::choose_tiling(shape, *target).unroll;
  };
  CHECK(unroll("thumbv7em-none-eabihf", "cortex-m4") == 1);
  CHECK(unroll("x86_64-linux-gnu", "x86-64-v3") > 1);
}
