// Tests register tiles for a varying number of rows beside those for a known number.
#include "compiler/plan/contraction/tiling.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

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
