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
