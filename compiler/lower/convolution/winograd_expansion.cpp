// Transformed filters made where the model runs: a kernel that reads the filters [filters][channels][taps]
// and writes them as plan::pack_winograd_filters() lays them out.
#include "compiler/lower/convolution/winograd.h"
#include "compiler/lower/convolution/winograd_transform.h"

#include <cstring>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;
using kernel::Scalar;

class FilterExpansion {
public:
  FilterExpansion(kernel::Kernel& kernel, const plan::WinogradGeometry& plan)
      : b_(kernel), plan_(plan), groups_(plan::column_groups(plan.filters, plan.tiling.tile)),
        taps_(plan.height.taps * plan.width.taps) {
    raw_ = b_.add_parameter("raw", Scalar::F32, plan.filters * plan.channels * taps_, /*written=*/false);
    packed_ = b_.add_parameter("packed", Scalar::F32, plan.filter_elements(), /*written=*/true);
  }

  void emit() {
    IntExpr group = b_.set_parallel(groups_.count());
    if (groups_.rest_vectors == 0) return expand_group(group, groups_.vectors);
    if (groups_.full_groups == 0) return expand_group(group, groups_.rest_vectors);
    Register full = b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(group),
                               b_.constant_int({Scalar::Index, 1}, groups_.full_groups));
    b_.if_then_else(
        full,
        [&] {
          expand_group(group, groups_.vectors);
          return std::vector<Register>{};
        },
        [&] {
          expand_group(groups_.full_groups, groups_.rest_vectors);
          return std::vector<Register>{};
        });
  }

private:
  void expand_group(const IntExpr& group, int vectors) {
    IntExpr first = group * groups_.vectors;
    b_.loop(0, vectors, 1, [&](const IntExpr& vector) {
      b_.loop(0, plan_.channels, 1, [&](const IntExpr& channel) {
        std::vector<Register> points = transform(load_taps(first + vector, channel));
        IntExpr at = first * (plan_.lanes * plan_.points() * plan_.channels) +
                     channel * (vectors * plan_.lanes) + vector * plan_.lanes;
        for (int point = 0; point < plan_.points(); ++point)
          b_.store(points[static_cast<size_t>(point)], packed_,
                   at + point * plan_.channels * vectors * plan_.lanes, plan_.lanes * 4);
      });
    });
  }

  // One lane per filter; those beyond the last one are zero.
  std::vector<Register> load_taps(const IntExpr& vector, const IntExpr& channel) {
    std::vector<int64_t> offsets;
    for (int lane = 0; lane < plan_.lanes; ++lane) offsets.push_back(lane * plan_.channels * taps_);
    Register lanes = b_.constant_lanes({Scalar::I64, plan_.lanes}, offsets), mask;
    if (plan_.filters % plan_.lanes != 0)
      mask = b_.lane_mask(plan_.lanes, IntExpr(plan_.filters) - vector * plan_.lanes);
    std::vector<Register> values;
    for (int64_t tap = 0; tap < taps_; ++tap)
      values.push_back(b_.gather({Scalar::F32, plan_.lanes}, raw_,
                                 (vector * plan_.lanes * plan_.channels + channel) * taps_ + tap, lanes,
                                 mask));
    return values;
  }

  // G_h taps G_w^T.
  std::vector<Register> transform(const std::vector<Register>& taps) {
    int high = plan_.height.inputs(), wide = plan_.width.inputs();
    std::vector<std::vector<Register>> rows;
    for (int row = 0; row < plan_.height.taps; ++row) {
      auto from = taps.begin() + row * plan_.width.taps;
      rows.push_back(emit_transform(b_, plan_.width.filter, {from, from + plan_.width.taps}));
    }
    std::vector<Register> points(static_cast<size_t>(plan_.points()));
    for (int column = 0; column < wide; ++column) {
      std::vector<Register> values;
      for (const std::vector<Register>& row : rows) values.push_back(row[static_cast<size_t>(column)]);
      values = emit_transform(b_, plan_.height.filter, std::move(values));
      for (int row = 0; row < high; ++row)
        points[static_cast<size_t>(row * wide + column)] = values[static_cast<size_t>(row)];
    }
    return points;
  }

  Builder b_;
  const plan::WinogradGeometry& plan_;
  plan::ColumnGroups groups_;
  int64_t taps_;
  int raw_, packed_;
};

} // namespace

kernel::RawForm raw_winograd_filters(const plan::WinogradGeometry& plan, LiteralRef filters) {
  kernel::RawForm raw;
  raw.bytes = static_cast<int64_t>(filters->bytes().size());
  raw.fill = [filters](std::span<std::byte> out) {
    std::memcpy(out.data(), filters->bytes().data(), out.size());
  };
  raw.make_expansion = [plan] {
    auto kernel = std::make_unique<kernel::Kernel>();
    kernel->algorithm = "winograd filters";
    FilterExpansion(*kernel, plan).emit();
    return kernel;
  };
  return raw;
}

} // namespace firn::lower
