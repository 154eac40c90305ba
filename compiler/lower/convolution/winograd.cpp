// The kernel of a Winograd convolution: for every batch of tiles the transforms of its inputs, then for every
// group of filters the products of all points and the transforms back into the result. U are the transformed
// filters and V the transformed inputs, as in "Fast Algorithms for Convolutional Neural Networks" (Lavin,
// Gray).
#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/convolution/winograd_tiles.h"
#include "compiler/lower/convolution/winograd_transform.h"
#include "compiler/lower/machine_types.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

constexpr int64_t kLineElements = kCacheLineBytes / 4; // f32 elements of a cache line

// The place of a vector of filters in U.
IntExpr point_filters(const plan::WinogradGeometry& plan, const TilePosition& group, const IntExpr& point,
                      const IntExpr& pair, const IntExpr& vector) {
  return (point * plan.filter_stride() + pair * group.vectors + vector) * (plan.lanes * 2);
}

// The products of one point, which the one outer dim tells. The rows of tiles are tiles of the image.
// Reduction steps of integers are pairs of channels.
class WinogradProducts final : public WinogradTiles,
                               public TileOperands,
                               public TilePrefetch,
                               public TileResult {
public:
  // Reads what the batch of `tiles` has in V, and stores its products. `filters`: the buffer of U.
  WinogradProducts(const WinogradTiles& tiles, int filters) : WinogradTiles(tiles), filters_(filters) {}

  Register scalar(Builder& b, const TilePosition& at, int row, const KValues& k) const override {
    if (!plan_.is_integer()) {
      IntExpr vector = input_vector(at.outer[0], floor_div(k[0], plan_.lanes), at.row + row);
      return b.load({Scalar::F32, 1}, inputs_, vector * plan_.lanes + floor_mod(k[0], plan_.lanes));
    }
    int pairs = plan_.lanes / 2;
    IntExpr vector = input_vector(at.outer[0], floor_div(k[0], pairs), at.row + row);
    return b.load({Scalar::I32, 1}, inputs_, vector * plan_.lanes + floor_mod(k[0], pairs) * 2);
  }

  Register vector(Builder& b, const TilePosition& at, int vector, const KValues& k) const override {
    if (!plan_.is_integer())
      return b.load(factor_, binding_.vector, filter_offset(at, vector, k[0]), plan_.lanes * 4);
    return b.load({Scalar::I32, plan_.lanes}, filters_, point_filters(plan_, at, at.outer[0], k[0], vector),
                  plan_.lanes * 4);
  }

  // Requests the filters of the next point, which lie right behind those of this one.
  void request_group(Builder& b, const TilePosition& at, const IntExpr& line) const override {
    plan::ColumnGroups groups = plan::column_groups(plan_.filters, plan_.tiling.tile);
    int64_t row = int64_t{groups.panel_registers(at.column_vector)} * plan_.lanes;
    int64_t here = std::max<int64_t>(1, at.vectors * plan_.lanes / kLineElements);
    IntExpr place = plan_.tiling.tile.panel == 0
                        ? line * kLineElements
                        : floor_div(line, here) * row + floor_mod(line, here) * kLineElements;
    b.prefetch(binding_.vector, filter_offset(at, 0, 0) + plan_.channels * row + place, /*into_l2=*/true);
  }
  void request_scalar(Builder& b, const TilePosition& at, const IntExpr& row,
                      const KValues& k) const override {
    b.prefetch(inputs_, input_vector(at.outer[0], floor_div(k[0], plan_.lanes), at.row + row) * plan_.lanes);
  }

  Register store(Builder&, const TilePosition& at, int row, int vector, Register sum, int) const override {
    WinogradTiles::store(sum, products_,
                         at.outer[0] * plan_.product_stride() + (at.row + row) * at.vectors + vector);
    return sum;
  }

private:
  IntExpr filter_offset(const TilePosition& at, const IntExpr& vector, const IntExpr& channel) const {
    return plan_.filter_index(at.column_vector, vector, at.outer[0], channel);
  }

  int filters_;
};

class WinogradEmitter : private WinogradTiles {
public:
  WinogradEmitter(Builder& builder, const plan::WinogradGeometry& plan, const ContractionBinding& binding,
                  const WinogradBuffers& buffers)
      : WinogradTiles(builder, plan, binding, buffers.inputs, buffers.products), filters_(buffers.filters) {}

  void emit() {
    if (plan_.separate_transform) return emit_separate_products();
    IntExpr p = b_.set_parallel(plan_.actual.batches);
    TileRun run = run_of(p);
    // Every point holds only the tiles of the run, so that few tiles lie near each other.
    if (plan_.batch_varies) block_vectors_ = run.count;
    WinogradInputs input_transform(*this);
    b_.loop(0, plan_.channel_blocks(), 1,
            [&](const IntExpr& block) { transform_block(input_transform, run, block); });
    ContractionSpec spec = products();
    if (plan_.batch_varies) spec.actual_m = run.count;
    for_each_group([&](const TilePosition& group) { emit_group(spec, group, run); });
  }

  // Emits the transforms alone, of all batches.
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
    // If extents vary, the divisions stay outside the loops.
    auto once = [&](const IntExpr& count) {
      return plan_.varies ? b_.symbolic(b_.index(count), 0, plan_.batch, "tiles") : count;
    };
    IntExpr size = once(plan_.actual.batch), first = batch * size;
    return {first, once(min(size, plan_.actual.tiles - first))};
  }

  // Selects the batch in V, if V holds all batches.
  void enter(const IntExpr& batch) { batch_vectors_ = batch * (plan_.input_scratch() / plan_.lanes); }

  void transform_block(WinogradInputs& transform, const TileRun& run, const IntExpr& block) {
    b_.loop(0, run.count, 1,
            [&](const IntExpr& tile) { transform.transform(position(run.first + tile), block, tile); });
  }

  // Emits the products and the transforms of outputs alone; emit_inputs() has filled V in another kernel. The
  // batches of a column group follow each other, so that its filters stay near.
  void emit_separate_products() {
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
    if (plan_.is_integer()) transform_filters(group);
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

  // Transforms the filters of a column group, from bytes into U.
  void transform_filters(const TilePosition& group) {
    PackedOperand packed = integer_filters(plan_);
    int lanes = plan_.lanes * 2, high = plan_.height.taps, wide = plan_.width.taps;
    b_.loop(0, plan_.channel_pairs(), 1, [&](const IntExpr& pair) {
      b_.loop(0, group.vectors, 1, [&](const IntExpr& vector) {
        std::vector<std::vector<Register>> rows;
        for (int row = 0; row < high; ++row) {
          std::vector<Register> taps;
          for (int column = 0; column < wide; ++column) {
            IntExpr place = packed.index(0, group, 0, {row * wide + column, pair}) + vector * lanes;
            taps.push_back(load_packed_operands(b_, plan_.mac, binding_.vector, place, plan_.lanes));
          }
          rows.push_back(emit_transform(b_, plan_.width.filter, std::move(taps)));
        }
        for (int column = 0; column < plan_.width.inputs(); ++column) {
          std::vector<Register> values;
          for (const std::vector<Register>& row : rows) values.push_back(row[static_cast<size_t>(column)]);
          values = emit_transform(b_, plan_.height.filter, std::move(values));
          for (int row = 0; row < plan_.height.inputs(); ++row)
            b_.store(values[static_cast<size_t>(row)], filters_,
                     point_filters(plan_, group, row * plan_.width.inputs() + column, pair, vector),
                     lanes * 2);
        }
      });
    });
  }

  // Column groups of one width; the group of the last filters is separate if its last vector is not full.
  struct GroupRun {
    int64_t first_vector, groups;
    int vectors;
  };
  std::vector<GroupRun> group_runs() const {
    plan::ColumnGroups groups = plan::column_groups(plan_.filters, plan_.tiling.tile);
    std::vector<GroupRun> runs;
    auto add = [&](int64_t first, int64_t count, int vectors, bool ends) {
      int64_t alike = count - (ends && plan_.filters % plan_.lanes != 0 ? 1 : 0);
      if (alike > 0) runs.push_back({first, alike, vectors});
      if (alike < count) runs.push_back({first + alike * vectors, 1, vectors});
    };
    if (groups.full_groups > 0) add(0, groups.full_groups, groups.vectors, groups.rest_groups == 0);
    if (groups.rest_groups > 0)
      add(groups.first_rest_vector(), groups.rest_groups, groups.rest_vectors, true);
    return runs;
  }

  static TilePosition group_of(const GroupRun& run, const IntExpr& number) {
    TilePosition at;
    at.vectors = run.vectors;
    at.column_vector = number * run.vectors + run.first_vector;
    return at;
  }

  void for_each_group(const std::function<void(const TilePosition&)>& body) {
    for (const GroupRun& run : group_runs())
      b_.loop(0, run.groups, 1, [&](const IntExpr& group) { body(group_of(run, group)); });
  }

  // Finds the group of a number by a chain of tests; `number` counts from the first group of run number
  // `run`.
  void in_group(const IntExpr& number, const std::function<void(const TilePosition&)>& body, size_t run = 0) {
    std::vector<GroupRun> runs = group_runs();
    const GroupRun& here = runs[run];
    IntExpr within = here.groups == 1 ? IntExpr(0) : run == 0 ? number : max(number, 0);
    if (run + 1 == runs.size()) return body(group_of(here, within));
    kernel::MachineType index{Scalar::Index, 1};
    Register is_here = b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(number),
                                  b_.constant_int(index, here.groups));
    b_.if_then_else(
        is_here,
        [&] {
          body(group_of(here, run == 0 ? number : within));
          return std::vector<Register>{};
        },
        [&] {
          in_group(number - here.groups, body, run + 1);
          return std::vector<Register>{};
        });
  }

  // Calls body(vector, valid lanes) for the vectors of a group.
  void for_each_vector(const TilePosition& group, const std::function<void(const IntExpr&, int)>& body) {
    int rest = static_cast<int>(plan_.filters % plan_.lanes);
    bool ends = rest > 0 && (group.column_vector + group.vectors) == IntExpr(plan_.filters / plan_.lanes + 1);
    b_.loop(0, group.vectors - (ends ? 1 : 0), 1, [&](const IntExpr& vector) { body(vector, plan_.lanes); });
    if (ends) body(group.vectors - 1, rest);
  }

  ContractionSpec products() const {
    const WinogradTiles& batch = *this;
    auto tiles = std::make_shared<const WinogradProducts>(batch, filters_);
    ContractionSpec spec;
    spec.shape = plan_.products();
    spec.element.scalar = sum_.scalar;
    spec.operands = tiles;
    spec.result = tiles;
    if (plan_.is_integer()) return spec;
    spec.prefetch = tiles;
    spec.group_lines = plan_.channels * plan_.tiling.tile.vectors * plan_.lanes / kLineElements;
    spec.scalar_rows_per_line = std::max(1, static_cast<int>(kLineElements) / plan_.lanes);
    return spec;
  }

  int filters_;
};

} // namespace

PackedOperand integer_filters(const plan::WinogradGeometry& plan) {
  PackedOperand packed;
  int64_t taps = plan.height.taps * plan.width.taps;
  packed.tile = plan.tiling.tile;
  packed.k_group = plan.mac.k_group();
  packed.element = memory_scalar(plan.mac.rhs);
  packed.extents = {taps, plan.channels};
  packed.strides = {1, taps};
  packed.columns = plan.filters;
  packed.column_stride = plan.channels * taps;
  return packed;
}

void emit_winograd(Builder& builder, const plan::WinogradGeometry& plan, const ContractionBinding& binding,
                   const WinogradBuffers& buffers) {
  WinogradEmitter(builder, plan, binding, buffers).emit();
}

void emit_winograd_inputs(Builder& builder, const plan::WinogradGeometry& plan,
                          const ContractionBinding& binding, int inputs) {
  WinogradEmitter(builder, plan, binding, {inputs}).emit_inputs();
}

} // namespace firn::lower
