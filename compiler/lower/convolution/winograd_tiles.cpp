// Classes of tiles by what lies inside, and vectors by number.
#include "compiler/lower/convolution/winograd_tiles.h"
#include "compiler/lower/machine_types.h"

#include <algorithm>

namespace firn::lower {

using kernel::Builder;
using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;
using kernel::Scalar;

std::vector<TileClass> classify_tiles(int64_t tiles, int step, int64_t offset, int size, int64_t extent) {
  std::vector<TileClass> classes;
  for (int64_t t = 0; t < tiles; ++t) {
    int64_t first = t * step + offset;
    int low = static_cast<int>(std::clamp<int64_t>(-first, 0, size));
    int high = static_cast<int>(std::clamp<int64_t>(extent - first, low, size));
    if (!classes.empty() && classes.back().low == low && classes.back().high == high)
      classes.back().last = t;
    else
      classes.push_back({t, t, low, high});
  }
  std::stable_sort(classes.begin(), classes.end(), [](const TileClass& a, const TileClass& b) {
    return a.last - a.first > b.last - b.first;
  });
  return classes;
}

WinogradTiles::WinogradTiles(Builder& builder, const plan::WinogradGeometry& plan,
                             const ContractionBinding& binding, int inputs, int products)
    : b_(builder), plan_(plan), binding_(binding), inputs_(inputs),
      products_(products), factor_{memory_scalar(plan.mac.lhs), plan.lanes}, sum_{memory_scalar(
                                                                                      plan.mac.accumulator),
                                                                                  plan.lanes},
      block_vectors_(plan.batch) {
  int64_t elements = static_cast<int64_t>(plan.points()) * plan.lanes;
  accumulator_tile_ = builder.add_scratch("tile", sum_.scalar, elements);
  factor_tile_ = plan.is_integer() ? builder.add_scratch("tile of factors", factor_.scalar, elements)
                                   : accumulator_tile_;
}

void WinogradTiles::by_class(const std::vector<TileClass>& classes, const IntExpr& at,
                             const std::function<void(const TileClass&)>& body, size_t number) {
  const TileClass& here = classes[number];
  if (number + 1 == classes.size()) return body(here);
  kernel::MachineType index{Scalar::Index, 1};
  // An unsigned comparison tests both ends of the run.
  Register inside = b_.compare(OpKind::UCmp, Predicate::Le, b_.index(at - here.first),
                               b_.constant_int(index, here.last - here.first));
  b_.if_then_else(
      inside,
      [&] {
        body(here);
        return std::vector<Register>{};
      },
      [&] {
        by_class(classes, at, body, number + 1);
        return std::vector<Register>{};
      });
}

Register WinogradTiles::is_below(const IntExpr& at, const IntExpr& extent, OpKind compare) {
  Register end =
      extent.is_constant() ? b_.constant_int({Scalar::Index, 1}, extent.value()) : b_.index(extent);
  return b_.compare(compare, Predicate::Lt, b_.index(at), end);
}

void WinogradTiles::by_edge(const IntExpr& first, const IntExpr& end, const IntExpr& at, int size,
                            const std::function<void(const TileClass&)>& body) {
  auto emit = [&](bool at_edge) {
    return [&body, size, at_edge] {
      body({0, 0, 0, size, at_edge});
      return std::vector<Register>{};
    };
  };
  Register inside = is_below(at - first, max(0, end - first), OpKind::UCmp);
  b_.if_then_else(inside, emit(false), emit(true));
}

Register WinogradTiles::load(kernel::MachineType type, int buffer, const IntExpr& vector) {
  return b_.load(type, buffer, vector * plan_.lanes, plan_.lanes * scalar_bytes(type.scalar));
}

void WinogradTiles::store(Register value, int buffer, const IntExpr& vector) const {
  b_.store(value, buffer, vector * plan_.lanes, plan_.lanes * scalar_bytes(b_.type(value).scalar));
}

IntExpr WinogradTiles::input_vector(const IntExpr& point, const IntExpr& block, const IntExpr& tile) const {
  return batch_vectors_ + point * plan_.input_stride() + block * block_vectors_ + tile;
}

WinogradTiles::Position WinogradTiles::position(const IntExpr& tile) const {
  IntExpr high = at_least_one(plan_.actual.tiles_high), wide = at_least_one(plan_.actual.tiles_wide);
  IntExpr line = floor_div(tile, wide);
  return {floor_div(line, high), floor_mod(line, high), floor_mod(tile, wide)};
}

} // namespace firn::lower
