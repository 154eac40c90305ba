// The kernel of a Winograd convolution: for every batch of tiles the transforms of its inputs, then for every
// group of filters the products of all points and the transforms back into the result.
#include "compiler/lower/convolution/winograd_tiles.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

constexpr int64_t kLineElements = kCacheLineBytes / 4;

class WinogradEmitter : private WinogradTiles {
public:
  WinogradEmitter(Builder& builder, const plan::WinogradGeometry& plan, const ContractionBinding& binding,
                  int inputs, int products)
      : WinogradTiles(builder, plan, binding, inputs, products) {}

  void emit() {
    WinogradInputs input_transform(*this);
    WinogradOutputs output_transform(*this);
    IntExpr p = b_.set_parallel(plan_.batches);
    IntExpr first = p * plan_.batch;
    IntExpr count = min(plan_.batch, plan_.tiles - first);
    b_.loop(0, plan_.channel_blocks(), 1, [&](const IntExpr& block) {
      b_.loop(0, count, 1,
              [&](const IntExpr& tile) { input_transform.transform(position(first + tile), block, tile); });
    });
    ContractionSpec spec = products();
    for_each_group([&](const TilePosition& group) {
      b_.loop(0, plan_.points(), 1, [&](const IntExpr& point) {
        TilePosition at = group;
        at.outer = {point};
        emit_row_tiles(b_, spec, plan_.tiling, at);
      });
      b_.loop(0, count, 1, [&](const IntExpr& tile) {
        for_each_vector(group, [&](const IntExpr& vector, int valid) {
          output_transform.transform(position(first + tile), group, vector, valid, tile);
        });
      });
    });
  }

private:
  // The group with the last filters stands alone where its last vector is not full.
  void for_each_group(const std::function<void(const TilePosition&)>& body) {
    plan::ColumnGroups groups = plan::column_groups(plan_.filters, plan_.tiling.tile);
    bool partial = plan_.filters % plan_.lanes != 0;
    int64_t alike = groups.full_groups - (partial && groups.rest_vectors == 0 ? 1 : 0);
    TilePosition at;
    at.vectors = groups.vectors;
    b_.loop(0, alike, 1, [&](const IntExpr& group) {
      at.column_vector = group * groups.vectors;
      body(at);
    });
    if (alike == groups.count()) return;
    at.column_vector = alike * groups.vectors;
    at.vectors = alike == groups.full_groups ? groups.rest_vectors : groups.vectors;
    body(at);
  }

  // Calls body(vector, valid lanes) for the vectors of a group.
  void for_each_vector(const TilePosition& group, const std::function<void(const IntExpr&, int)>& body) {
    int rest = static_cast<int>(plan_.filters % plan_.lanes);
    bool ends = rest > 0 && (group.column_vector + group.vectors) == IntExpr(plan_.filters / plan_.lanes + 1);
    b_.loop(0, group.vectors - (ends ? 1 : 0), 1, [&](const IntExpr& vector) { body(vector, plan_.lanes); });
    if (ends) body(group.vectors - 1, rest);
  }

  ContractionSpec products() {
    ContractionSpec spec;
    spec.shape = plan_.products();
    spec.scalar = [this](Builder& b, const TilePosition& at, int row, const std::vector<IntExpr>& k) {
      IntExpr vector = input_vector(at.outer[0], floor_div(k[0], plan_.lanes), at.row + row);
      return b.load({Scalar::F32, 1}, inputs_, vector * plan_.lanes + floor_mod(k[0], plan_.lanes));
    };
    spec.vector = [this](Builder& b, const TilePosition& at, int vector, const std::vector<IntExpr>& k) {
      return b.load(vector_, binding_.vector, filter_offset(at, vector, k[0]), plan_.lanes * 4);
    };
    spec.store = [this](Builder&, const TilePosition& at, int row, int vector, Register sum, int) {
      store(sum, products_, at.outer[0] * plan_.product_stride() + (at.row + row) * at.vectors + vector);
      return sum;
    };
    // The filters of the point after this one lie right behind.
    spec.group_lines = plan_.channels * plan_.tiling.tile.vectors * plan_.lanes / kLineElements;
    spec.prefetch = [this](Builder& b, const TilePosition& at, const IntExpr& line) {
      IntExpr next = filter_offset(at, 0, 0) + plan_.channels * at.vectors * plan_.lanes;
      b.prefetch(binding_.vector, next + line * kLineElements, /*into_l2=*/true);
    };
    spec.scalar_rows_per_line = std::max(1, static_cast<int>(kLineElements) / plan_.lanes);
    spec.prefetch_scalar = [this](Builder& b, const TilePosition& at, const IntExpr& row,
                                  const std::vector<IntExpr>& k) {
      b.prefetch(inputs_,
                 input_vector(at.outer[0], floor_div(k[0], plan_.lanes), at.row + row) * plan_.lanes);
    };
    return spec;
  }

  IntExpr filter_offset(const TilePosition& at, const IntExpr& vector, const IntExpr& channel) const {
    return plan_.filter_index(at.column_vector, at.vectors, vector, at.outer[0], channel);
  }
};

} // namespace

void emit_winograd(Builder& builder, const plan::WinogradGeometry& plan, const ContractionBinding& binding,
                   int inputs, int products) {
  WinogradEmitter(builder, plan, binding, inputs, products).emit();
}

} // namespace firn::lower
