// The reduction nest of a register tile, with its sums as loop-carried values.
#include "compiler/lower/contraction/register_tile.h"

#include "compiler/lower/contraction/group_requests.h"
#include "compiler/lower/contraction/k_interleave.h"
#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/contraction/tile_stores.h"

#include <algorithm>
#include <numeric>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;

class RegisterTile {
public:
  RegisterTile(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling)
      : b_(builder), spec_(spec), tiling_(tiling), groups_(plan::column_groups(spec.shape.n, tiling.tile)),
        scalars_(spec.shape.mac.kind == MacKind::Dot16 ? groups_.lanes : 1) {}

  void emit(TilePosition& position, int rows, int vectors) {
    position.vectors = vectors;
    kernel::MachineType type = spec_.element.with_lanes(groups_.lanes / scalars_);
    position.k_interleave = k_interleave_ = groups_.k_interleave(position.column_vector);
    int registers = groups_.registers(position.column_vector, vectors),
        accumulators = rows * registers * scalars_;
    int accumulator_splits = std::max(1, tiling_.tile.accumulator_splits);
    Register zero = b_.constant(type, 0.0);
    std::vector<Register> acc(static_cast<size_t>(accumulators * accumulator_splits), zero);
    for (int i = 0; i < accumulators && k_interleave_ == 1 && scalars_ == 1; ++i)
      if (Register start = spec_.result->initial(b_, position, i / vectors, i % vectors))
        acc[static_cast<size_t>(i)] = start;
    std::vector<IntExpr> k(spec_.shape.k.size());
    acc = emit_reduction(position, rows, registers, 0, k, acc);
    for (int phase = accumulator_splits; phase > 1; phase /= 2) // pairwise, so that the order is fixed
      for (int p = 0; p < phase / 2; ++p)
        for (int i = 0; i < accumulators; ++i) {
          Register& lhs = acc[static_cast<size_t>(p * accumulators + i)];
          lhs = b_.binary(sum_op(spec_), lhs, acc[static_cast<size_t>((p + phase / 2) * accumulators + i)]);
        }
    if (k_interleave_ > 1) acc = add_all_steps(position, rows, vectors, acc);
    if (scalars_ > 1) acc = join_scalars(position, vectors, acc);
    TileStores(b_, spec_, tiling_).store(position, rows, vectors, acc);
  }

  // Sums of all tiles are carried together, one tile's behind another's.
  void emit(std::vector<TilePosition> positions, int rows, int vectors) {
    kernel::MachineType type = spec_.element.with_lanes(groups_.lanes);
    Register zero = b_.constant(type, 0.0);
    int accumulators = rows * vectors;
    std::vector<Register> acc;
    for (TilePosition& position : positions) {
      position.vectors = vectors;
      for (int i = 0; i < accumulators; ++i) {
        Register start = spec_.result->initial(b_, position, i / vectors, i % vectors);
        acc.push_back(start ? start : zero);
      }
    }
    side_by_side_ = std::move(positions);
    std::vector<IntExpr> k(spec_.shape.k.size());
    acc = emit_reduction(side_by_side_[0], rows, vectors, 0, k, std::move(acc));
    for (size_t i = 0; i < side_by_side_.size(); ++i) {
      auto first = acc.begin() + static_cast<std::ptrdiff_t>(i) * accumulators;
      TileStores(b_, spec_, tiling_).store(side_by_side_[i], rows, vectors, {first, first + accumulators});
    }
  }

private:
  // Vectors of the sums that general registers hold, added to their starts.
  std::vector<Register> join_scalars(const TilePosition& position, int vectors,
                                     const std::vector<Register>& scalars) {
    std::vector<Register> joined;
    for (auto first = scalars.begin(); first != scalars.end(); first += scalars_) {
      const int number = static_cast<int>(joined.size());
      Register vector = b_.splat(*first, scalars_);
      for (int lane = 1; lane < scalars_; ++lane) vector = b_.insert(vector, first[lane], lane);
      if (Register start = spec_.result->initial(b_, position, number / vectors, number % vectors))
        vector = b_.binary(sum_op(spec_), vector, start);
      joined.push_back(vector);
    }
    return joined;
  }

  // Reduces registers with several steps of the reduction to the sums of rows x vectors.
  std::vector<Register> add_all_steps(const TilePosition& position, int rows, int vectors,
                                      const std::vector<Register>& acc) {
    int registers = groups_.registers(position.column_vector, vectors);
    std::vector<Register> accumulators;
    for (int row = 0; row < rows; ++row)
      for (int vector = 0; vector < vectors; ++vector) {
        auto first = acc.begin() + row * registers + vector * k_interleave_;
        int count = std::min(k_interleave_, registers - vector * k_interleave_);
        Register sum = add_steps(b_, {first, first + count}, k_interleave_);
        Register start = spec_.result->initial(b_, position, row, vector);
        accumulators.push_back(start ? b_.binary(sum_op(spec_), sum, start) : sum);
      }
    return accumulators;
  }

  std::vector<Register> emit_reduction(const TilePosition& position, int rows, int vectors, size_t level,
                                       std::vector<IntExpr>& k, std::vector<Register> acc) {
    if (level == spec_.shape.k.size()) return emit_step(position, rows, vectors, k, 0, std::move(acc));
    if (level > 0 && level + 1 == spec_.shape.k.size() && spec_.block_scales != BlockScales::None &&
        !is_scaled_)
      return emit_scaled(position, rows, vectors, level, k, std::move(acc));
    const plan::ReductionLoop& loop = spec_.shape.k[level];
    if (loop.kind == plan::ReductionLoop::Kind::Split)
      return emit_runs(position, rows, vectors, level, k, std::move(acc));
    bool innermost = level + 1 == spec_.shape.k.size();
    if (loop.kind == plan::ReductionLoop::Kind::Rolled && innermost && tiling_.tile.accumulator_splits <= 1 &&
        (loop.block > 0 || tiling_.unroll > 1))
      return emit_innermost_loop(position, rows, vectors, k, std::move(acc));
    bool clipped = loop.kind == plan::ReductionLoop::Kind::Clipped;
    int64_t whole = innermost ? whole_k_groups() : loop.extent;
    ClippedRange range = clipped ? spec_.operands->clipped_range(position, level) : ClippedRange{0, whole};
    int accumulator_splits = innermost && !clipped ? std::max(1, tiling_.tile.accumulator_splits) : 1,
        k_interleave = innermost ? k_interleave_ : 1;
    if (range.summed > 0) return emit_summed(position, rows, vectors, level, k, range, std::move(acc));
    int64_t round = int64_t{accumulator_splits} * k_interleave, main = whole / round * round;
    if (accumulator_splits == 1) {
      acc = b_.loop_carried(range.first, range.end, k_interleave, std::move(acc),
                            [&](const IntExpr& iv, const std::vector<Register>& in) {
                              k[level] = iv;
                              return emit_reduction(position, rows, vectors, level + 1, k, in);
                            });
      return emit_steps(position, rows, vectors, k, whole, loop.extent - whole, std::move(acc));
    }
    if (main > 0)
      acc = b_.loop_carried(0, main, round, std::move(acc), [&](const IntExpr& iv, std::vector<Register> in) {
        for (int phase = 0; phase < accumulator_splits; ++phase) {
          k[level] = iv + phase * k_interleave;
          in = emit_step(position, rows, vectors, k, phase, std::move(in));
        }
        return in;
      });
    for (int64_t i = main; i < loop.extent; i += k_interleave) {
      k[level] = i;
      acc =
          emit_step(position, rows, vectors, k, static_cast<int>((i - main) / k_interleave), std::move(acc));
    }
    return acc;
  }

  // Sums over some values of a clipped loop around others, which are then added to the sums of the whole.
  std::vector<Register> emit_summed(const TilePosition& position, int rows, int vectors, size_t level,
                                    std::vector<IntExpr>& k, const ClippedRange& range,
                                    std::vector<Register> acc) {
    int64_t size = range.summed;
    Register zero = b_.constant(b_.type(acc[0]), 0.0);
    return b_.loop_carried(floor_div(range.first, size), ceil_div(range.end, size), 1, std::move(acc),
                           [&](const IntExpr& number, const std::vector<Register>& all) {
                             std::vector<Register> accumulators = b_.loop_carried(
                                 max(range.first, number * size), min(range.end, number * size + size), 1,
                                 std::vector<Register>(all.size(), zero),
                                 [&](const IntExpr& iv, const std::vector<Register>& in) {
                                   k[level] = iv;
                                   return emit_reduction(position, rows, vectors, level + 1, k, in);
                                 });
                             for (size_t i = 0; i < accumulators.size(); ++i)
                               accumulators[i] = b_.binary(sum_op(spec_), all[i], accumulators[i]);
                             return accumulators;
                           });
  }

  // Separate sums over the innermost loop, which are scaled and added.
  std::vector<Register> emit_scaled(const TilePosition& position, int rows, int vectors, size_t level,
                                    std::vector<IntExpr>& k, std::vector<Register> acc) {
    is_scaled_ = true;
    std::vector<Register> accumulators(acc.size(), b_.constant(b_.type(acc[0]), 0.0));
    bool scales_rows = spec_.block_scales == BlockScales::OfRowsAndColumns;
    if (scales_rows) accumulators = starts_of_bytes(position, rows, vectors, k, acc.size());
    accumulators = emit_reduction(position, rows, vectors, level, k, std::move(accumulators));
    is_scaled_ = false;
    if (scales_rows) scale_rows(position, rows, vectors, k, accumulators);
    std::vector<Register> scales; // the scales of every tile, repeated for all its sums
    for (const TilePosition& tile : side_by_side_.empty() ? std::vector{position} : side_by_side_) {
      std::vector<Register> own;
      for (int vector = 0; vector < vectors; ++vector)
        own.push_back(spec_.operands->scales(b_, tile, vector, k));
      size_t accumulators_of_tile = acc.size() / std::max<size_t>(1, side_by_side_.size());
      for (size_t i = 0; i < accumulators_of_tile; ++i) scales.push_back(own[i % own.size()]);
    }
    for (size_t i = 0; i < acc.size(); ++i) acc[i] = b_.fma(accumulators[i], scales[i], acc[i]);
    return acc;
  }

  // The starts of sums of bytes: the first of several partial sums starts from the row's block.
  std::vector<Register> starts_of_bytes(const TilePosition& position, int rows, int vectors,
                                        const std::vector<IntExpr>& k, size_t accumulators) {
    std::vector<Register> starts;
    for (size_t tile = 0; tile < std::max<size_t>(1, side_by_side_.size()); ++tile)
      for (int row = 0; row < rows; ++row) {
        RowBlock block = spec_.operands->row_block(position, row, k);
        Register start =
            b_.splat(b_.load({kernel::Scalar::I32, 1}, block.starts, block.place), groups_.lanes);
        starts.insert(starts.end(), static_cast<size_t>(vectors), start);
      }
    starts.resize(accumulators, b_.constant_int({kernel::Scalar::I32, groups_.lanes}, 0));
    return starts;
  }

  // Converts sums of bytes to f32, times the scale of the row's block.
  void scale_rows(const TilePosition& position, int rows, int vectors, const std::vector<IntExpr>& k,
                  std::vector<Register>& accumulators) {
    std::vector<Register> scales;
    for (int row = 0; row < rows; ++row) {
      RowBlock block = spec_.operands->row_block(position, row, k);
      scales.push_back(b_.splat(b_.load({kernel::Scalar::F32, 1}, block.scales, block.place), groups_.lanes));
    }
    for (size_t i = 0; i < accumulators.size(); ++i) {
      size_t row = i / static_cast<size_t>(vectors) % static_cast<size_t>(rows);
      accumulators[i] =
          b_.binary(OpKind::FMul, b_.cast(OpKind::SIToF, accumulators[i], kernel::Scalar::F32), scales[row]);
    }
  }

  // Products of the innermost loop whose k group is complete. An incomplete one is straight code behind them,
  // because that code knows its place.
  int64_t whole_k_groups() const { return spec_.shape.k.back().extent - (spec_.shape.k_tail > 0 ? 1 : 0); }

  // Emits straight code per value, or a loop for every run of values that the same rows take, unless such a
  // loop would hold loops itself.
  std::vector<Register> emit_runs(const TilePosition& position, int rows, int vectors, size_t level,
                                  std::vector<IntExpr>& k, std::vector<Register> acc) {
    int64_t extent = spec_.shape.k[level].extent, end = 0;
    bool rolls = tiling_.rolls_long_runs || (tiling_.rolls_runs && !has_loop_within(level));
    for (int64_t first = 0; first < extent; first = end) {
      std::vector<bool> taken = rows_taken(position, rows, level, first);
      do ++end;
      while (rolls && end < extent && rows_taken(position, rows, level, end) == taken);
      acc = b_.loop_carried(first, end, 1, std::move(acc),
                            [&](const IntExpr& iv, const std::vector<Register>& in) {
                              k[level] = iv;
                              taken_ = taken;
                              return emit_reduction(position, rows, vectors, level + 1, k, in);
                            });
    }
    taken_.clear();
    return acc;
  }

  bool has_loop_within(size_t level) const {
    while (++level < spec_.shape.k.size()) {
      const plan::ReductionLoop& loop = spec_.shape.k[level];
      bool innermost = level + 1 == spec_.shape.k.size();
      if (loop.extent > (innermost ? plan::steps_per_iteration(tiling_, steps_of(loop)) : 1)) return true;
    }
    return false;
  }

  // Tiles at varying positions are inside: only such tiles share a body.
  std::vector<bool> rows_taken(const TilePosition& position, int rows, size_t level, int64_t value) const {
    std::vector<bool> taken(static_cast<size_t>(rows), true);
    std::vector<IntExpr> k(spec_.shape.k.size());
    k[level] = value;
    for (int row = 0; row < rows && position.row.is_constant(); ++row)
      taken[static_cast<size_t>(row)] = spec_.operands->row_contributes(position.row.value() + row, k);
    return taken;
  }

  // The innermost loop, with several steps per iteration: over whole blocks and the rest of a block if the
  // scalar operand lies in blocks. Requests for the next column group are interleaved: every tile of rows
  // requests its share, so that the group is near when its turn comes.
  std::vector<Register> emit_innermost_loop(const TilePosition& position, int rows, int vectors,
                                            std::vector<IntExpr>& k, std::vector<Register> acc) {
    plan::ReductionLoop loop = steps_of(spec_.shape.k.back());
    int64_t block = std::max<int64_t>(1, loop.block > 0 ? loop.block : loop.extent),
            blocks = loop.extent / block;
    int64_t unroll = plan::steps_per_iteration(tiling_, loop);
    GroupRequests requests(b_, spec_, tiling_, rows, unroll);
    if (tiling_.rolls_k && !requests.any() && spec_.scalar_rows_per_line == 0) unroll = 1;
    auto run = [&](const IntExpr& first, int64_t extent, std::vector<Register> in) {
      int64_t main = extent / unroll * unroll;
      in = b_.loop_carried(
          0, main / unroll, 1, std::move(in), [&](const IntExpr& iv, const std::vector<Register>& carried) {
            requests.emit(position, k, first + iv * unroll);
            std::vector<Register> out =
                emit_iteration(position, rows, vectors, k, first + iv * unroll, unroll, carried);
            if (spec_.scalar_rows_per_line > 0 && extent == loop.block)
              request_scalars(position, rows, k, first + block, iv, block / unroll);
            return out;
          });
      return emit_steps(position, rows, vectors, k, first + main, extent - main, std::move(in));
    };
    acc = b_.loop_carried(0, blocks, 1, std::move(acc),
                          [&](const IntExpr& iv, const std::vector<Register>& carried) {
                            return run(iv * block, block, carried);
                          });
    acc = run(blocks * block, loop.extent % block, std::move(acc));
    return emit_steps(position, rows, vectors, k, loop.extent, spec_.shape.k_tail > 0 ? 1 : 0,
                      std::move(acc));
  }

  // The innermost loop over whole products, with `k_interleave_` steps of the reduction as one.
  plan::ReductionLoop steps_of(plan::ReductionLoop loop) const {
    loop.extent = whole_k_groups() / k_interleave_;
    loop.block /= k_interleave_;
    return loop;
  }

  // The steps of one iteration, as straight code if there are registers for that.
  std::vector<Register> emit_iteration(const TilePosition& position, int rows, int vectors,
                                       std::vector<IntExpr>& k, const IntExpr& first, int64_t count,
                                       const std::vector<Register>& acc) {
    if (!tiling_.rolls_k || count == 1) return emit_steps(position, rows, vectors, k, first, count, acc);
    return b_.loop_carried(0, count, 1, acc, [&](const IntExpr& step, const std::vector<Register>& in) {
      return emit_steps(position, rows, vectors, k, first + step, 1, in);
    });
  }

  // Requests the rows of the scalar operand's next block, spread over the iterations of this one.
  void request_scalars(const TilePosition& position, int rows, std::vector<IntExpr>& k,
                       const IntExpr& next_block, const IntExpr& iteration, int64_t iterations) {
    int64_t lines = (rows + spec_.scalar_rows_per_line - 1) / spec_.scalar_rows_per_line;
    int64_t share = (lines + iterations - 1) / iterations;
    k.back() = next_block * k_interleave_;
    for (int64_t i = 0; i < share; ++i)
      spec_.prefetch->request_scalar(b_, position, (iteration * share + i) * spec_.scalar_rows_per_line, k);
  }

  std::vector<Register> emit_steps(const TilePosition& position, int rows, int vectors,
                                   std::vector<IntExpr>& k, const IntExpr& first, int64_t count,
                                   std::vector<Register> acc) {
    for (int64_t step = 0; step < count; ++step) {
      k.back() = (first + step) * k_interleave_;
      acc = emit_step(position, rows, vectors, k, 0, std::move(acc));
    }
    return acc;
  }

  std::vector<Register> emit_step(const TilePosition& position, int rows, int vectors,
                                  const std::vector<IntExpr>& k, int phase, std::vector<Register> acc) {
    if (side_by_side_.empty()) return emit_step_of(position, rows, vectors, k, phase, std::move(acc));
    for (size_t i = 0; i < side_by_side_.size(); ++i)
      acc = emit_step_of(side_by_side_[i], rows, vectors, k, static_cast<int>(i), std::move(acc));
    return acc;
  }

  // One step of the reduction: vectors are loaded once, and every scalar is multiplied into its row. `phase`:
  // selects among several partial sums, or among several tiles.
  std::vector<Register> emit_step_of(const TilePosition& position, int rows, int vectors,
                                     const std::vector<IntExpr>& k, int phase, std::vector<Register> acc) {
    std::vector<Register> loaded;
    const plan::MacInstruction& product = spec_.shape.mac;
    for (int vector = 0; vector < vectors; ++vector)
      loaded.push_back(spec_.operands->vector(b_, position, vector, k));
    bool are_words = spec_.word_k > 1;
    Register table = tiling_.looks_up_words ? table_of_steps(b_, spec_.word_k) : Register{};
    for_each_operand(k, [&](int part, const std::vector<IntExpr>& at) {
      std::vector<Register> operands;
      for (Register words : loaded) {
        if (are_words)
          words = product.k_group() > 1 ? group_of_words(b_, words, part)
                                        : step_of_words(b_, words, part, spec_.word_k, table);
        operands.push_back(unpacked_operands(b_, product, words));
      }
      acc = multiply(position, rows, vectors, at, phase, operands, std::move(acc));
    });
    return acc;
  }

  // Calls emit(number, k) for the factors of a step. A word has several parts, each of as many steps as a
  // product takes; the part's number stands behind the values of the loops.
  template <class Emit> void for_each_operand(const std::vector<IntExpr>& k, Emit emit) {
    if (spec_.word_k == 1) return emit(0, k);
    std::vector<IntExpr> at = k;
    at.emplace_back();
    for (int part = 0; part < spec_.word_k / spec_.shape.mac.k_group(); ++part) {
      at.back() = part;
      emit(part, at);
    }
  }

  // Spreads a row's factor over all lanes.
  Register scalar_at(const TilePosition& position, int row, const std::vector<IntExpr>& k) {
    if (scalars_ > 1) return spec_.operands->scalar(b_, position, row, k);
    return unpacked_operands(b_, spec_.shape.mac,
                             repeat_steps(b_, spec_.operands->scalar(b_, position, row, k), groups_.lanes));
  }

  std::vector<Register> multiply(const TilePosition& position, int rows, int vectors,
                                 const std::vector<IntExpr>& k, int phase,
                                 const std::vector<Register>& loaded, std::vector<Register> acc) {
    const plan::MacInstruction& product = spec_.shape.mac;
    if (spec_.widens_rows) return multiply_widened(position, rows, vectors, k, phase, loaded, std::move(acc));
    const std::vector<Register> columns = scalars_ > 1 ? columns_of(loaded) : loaded;
    for (int row = 0; row < rows; ++row) {
      if (!taken_.empty() && !taken_[static_cast<size_t>(row)]) continue;
      Register scalar = scalar_at(position, row, k);
      for (size_t column = 0; column < columns.size(); ++column) {
        Register& sum = acc[static_cast<size_t>(phase * rows + row) * columns.size() + column];
        sum = multiply_add(b_, product, scalar, columns[column], sum);
      }
    }
    return acc;
  }

  // Multiplies rows of pairs by columns of bytes, whose pairs all rows of the tile share.
  std::vector<Register> multiply_widened(const TilePosition& position, int rows, int vectors,
                                         const std::vector<IntExpr>& k, int phase,
                                         const std::vector<Register>& loaded, std::vector<Register> acc) {
    std::vector<std::array<Register, 2>> columns;
    for (Register bytes : loaded) columns.push_back(widened_pairs(b_, spec_.shape.mac.rhs, bytes));
    for (int row = 0; row < rows; ++row) {
      std::array<Register, 2> scalar = spec_.operands->widened_scalar(b_, position, row, k);
      for (int vector = 0; vector < vectors; ++vector) {
        Register& sum = acc[static_cast<size_t>((phase * rows + row) * vectors + vector)];
        for (size_t pair : {0, 1})
          sum = b_.emit(OpKind::DotS16, {sum, scalar[pair], columns[static_cast<size_t>(vector)][pair]},
                        b_.type(sum));
      }
    }
    return acc;
  }

  // The operands of each column of vectors that have a row of bytes for every lane.
  std::vector<Register> columns_of(const std::vector<Register>& vectors) {
    const int row = spec_.shape.mac.k_group();
    std::vector<Register> columns;
    for (Register vector : vectors)
      for (int lane = 0; lane < groups_.lanes; ++lane) {
        std::vector<int64_t> bytes(static_cast<size_t>(row));
        std::iota(bytes.begin(), bytes.end(), int64_t{lane} * row);
        columns.push_back(b_.shuffle(vector, vector, std::move(bytes)));
      }
    return columns;
  }

  Builder& b_;
  const ContractionSpec& spec_;
  const plan::Tiling& tiling_;
  plan::ColumnGroups groups_;
  int scalars_ = 1;        // general registers that hold the sums of a vector; 1: a vector register does
  int k_interleave_ = 1;   // steps that a register holds
  bool is_scaled_ = false; // within the sums of a block
  std::vector<TilePosition> side_by_side_; // several tiles; empty: one
  std::vector<bool> taken_; // rows that contribute at the value of the split loop at hand; empty: all
};

bool all_valid(const ContractionSpec& spec, int64_t row, std::vector<IntExpr>& k, size_t level) {
  if (level == spec.shape.k.size()) return spec.operands->row_contributes(row, k);
  if (spec.shape.k[level].kind != plan::ReductionLoop::Kind::Split) return all_valid(spec, row, k, level + 1);
  for (int64_t i = 0; i < spec.shape.k[level].extent; ++i) {
    k[level] = i;
    if (!all_valid(spec, row, k, level + 1)) return false;
  }
  return true;
}

} // namespace

void emit_register_tile(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                        TilePosition position, int rows, int vectors) {
  RegisterTile(builder, spec, tiling).emit(position, rows, vectors);
}

void emit_register_tiles(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                         const std::vector<TilePosition>& positions, int rows, int vectors) {
  RegisterTile(builder, spec, tiling).emit(positions, rows, vectors);
}

bool tile_is_inside(const ContractionSpec& spec, int64_t first, int rows) {
  std::vector<IntExpr> k(spec.shape.k.size());
  for (int64_t row : {first, first + rows - 1})
    if (!all_valid(spec, row, k, 0)) return false;
  return true;
}

} // namespace firn::lower
