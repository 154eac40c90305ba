// Loop orders of contractions: what passes from which cache level decides.
#include "compiler/lower/contraction.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

lower::ContractionSpec product(int64_t rows, int64_t inner, int64_t columns, int64_t weight_bytes) {
  lower::ContractionSpec spec;
  spec.element = {kernel::Scalar::F32, 1};
  spec.rows = rows;
  spec.columns = columns;
  spec.reduction.emplace_back();
  spec.reduction[0].extent = inner;
  spec.scalar_bytes = rows * inner * 4;
  spec.vector_bytes = inner * columns * 4;
  spec.weight_bytes = weight_bytes;
  return spec;
}

bool columns_outermost(const lower::ContractionSpec& spec) {
  auto target = find_target("", "sapphirerapids", "");
  REQUIRE(target);
  return lower::choose_tiling(spec, *target).columns_outermost;
}

} // namespace

TEST_CASE("weights from beyond the second cache level pass once, asked for ahead", "[lower][tiling]") {
  CHECK(columns_outermost(product(196, 1024, 256, 100 << 20)));
  CHECK(columns_outermost(product(784, 64, 512, 100 << 20)));
}

TEST_CASE("near columns pass once per row of tiles where rows are more", "[lower][tiling]") {
  CHECK_FALSE(columns_outermost(product(196, 1024, 256, 0)));
  CHECK_FALSE(columns_outermost(product(3136, 256, 64, 64 << 10)));
}

TEST_CASE("few rows do not stream wide panels", "[lower][tiling]") {
  auto target = find_target("", "x86-64-v3", "");
  REQUIRE(target);
  // 512 x 5 vectors fill more than the first cache level; two rows of them would wait for the second.
  lower::TileShape tile = lower::choose_tiling(product(8, 512, 512, 0), *target).tile;
  CHECK(tile.rows >= 4);
  CHECK(tile.rows * tile.vectors >= 8);
}
