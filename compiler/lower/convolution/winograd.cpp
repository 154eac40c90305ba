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
    if (plan_.apart) return emit_products_apart();
    WinogradInputs input_transform(*this);
    IntExpr p = b_.set_parallel(plan_.batches);
    TileRun run = run_of(p);
    b_.loop(0, plan_.channel_blocks(), 1,
            [&](const IntExpr& block) { transform_block(input_transform, run, block); });
    ContractionSpec spec = products();
    for_each_group([&](const TilePosition& group) { emit_group(spec, group, run); });
  }

  // The transforms alone, of all batches.
  void emit_inputs() {
    IntExpr p = b_.set_parallel(plan_.batches * plan_.channel_blocks());
    IntExpr batch = floor_div(p, plan_.channel_blocks());
    enter(batch);
    WinogradInputs input_transform(*this);
    transform_block(input_transform, run_of(batch), floor_mod(p, plan_.channel_blocks()));
  }

private:
  // The tiles of a batch.
  struct TileRun {
    IntExpr first, count;
  };

  TileRun run_of(const IntExpr& batch) const {
    IntExpr first = batch * plan_.batch;
    return {first, min(plan_.batch, plan_.tiles - first)};
  }

  // Of V of all batches: what follows is about this one.
  void enter(const IntExpr& batch) { batch_vectors_ = batch * (plan_.input_scratch() / plan_.lanes); }

  void transform_block(WinogradInputs& transform, const TileRun& run, const IntExpr& block) {
    b_.loop(0, run.count, 1,
            [&](const IntExpr& tile) { transform.transform(position(run.first + tile), block, tile); });
  }

  // The batches of a column group follow each other: its filters stay near.
  void emit_products_apart() {
    plan::ColumnGroups groups = plan::column_groups(plan_.filters, plan_.tiling.tile);
    IntExpr p = b_.set_parallel(groups.count() * plan_.batches);
    IntExpr batch = floor_mod(p, plan_.batches);
    enter(batch);
    ContractionSpec spec = products();
    TileRun run = run_of(batch);
    in_group(floor_div(p, plan_.batches), [&](const TilePosition& at) { emit_group(spec, at, run); });
  }

  void emit_group(const ContractionSpec& spec, const TilePosition& group, const TileRun& run) {
    WinogradOutputs output_transform(*this);
    b_.loop(0, plan_.points(), 1, [&](const IntExpr& point) {
      TilePosition at = group;
      at.outer = {point};
      emit_row_tiles(b_, spec, plan_.tiling, at);
    });
    b_.loop(0, run.count, 1, [&](const IntExpr& tile) {
      for_each_vector(group, [&](const IntExpr& vector, int valid) {
        output_transform.transform(position(run.first + tile), group, vector, valid, tile);
      });
    });
  }

  // Column groups of one width whose vectors are full; behind them there may be one that is neither.
  int64_t groups_alike() const {
    plan::ColumnGroups groups = plan::column_groups(plan_.filters, plan_.tiling.tile);
    bool partial = plan_.filters % plan_.lanes != 0;
    return groups.full_groups - (partial && groups.rest_vectors == 0 ? 1 : 0);
  }

  TilePosition alike_group(const IntExpr& number) const {
    TilePosition at;
    at.vectors = plan::column_groups(plan_.filters, plan_.tiling.tile).vectors;
    at.column_vector = number * at.vectors;
    return at;
  }

  TilePosition last_group() const {
    plan::ColumnGroups groups = plan::column_groups(plan_.filters, plan_.tiling.tile);
    TilePosition at = alike_group(groups_alike());
    if (groups_alike() == groups.full_groups) at.vectors = groups.rest_vectors;
    return at;
  }

  bool has_last_group() const {
    return groups_alike() < plan::column_groups(plan_.filters, plan_.tiling.tile).count();
  }

  void for_each_group(const std::function<void(const TilePosition&)>& body) {
    b_.loop(0, groups_alike(), 1, [&](const IntExpr& group) { body(alike_group(group)); });
    if (has_last_group()) body(last_group());
  }

  void in_group(const IntExpr& number, const std::function<void(const TilePosition&)>& body) {
    if (!has_last_group()) return body(alike_group(number));
    if (groups_alike() == 0) return body(last_group());
    kernel::MachineType index{Scalar::Index, 1};
    Register alike = b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(number),
                                b_.constant_int(index, groups_alike()));
    auto branch = [&](const TilePosition& at) {
      body(at);
      return std::vector<Register>{};
    };
    b_.if_then_else(
        alike, [&] { return branch(alike_group(number)); }, [&] { return branch(last_group()); });
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

void emit_winograd_inputs(Builder& builder, const plan::WinogradGeometry& plan,
                          const ContractionBinding& binding, int inputs) {
  WinogradEmitter(builder, plan, binding, inputs, /*products=*/-1).emit_inputs();
}

} // namespace firn::lower
