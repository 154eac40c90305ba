// Keys and values are packed by kernels of their own, once for all rows. For a block of rows, queries are
// narrowed; then, one block of keys after the other, tiles of scores are stored, turned into weights, and
// multiplied with values, in tile matrices or in vectors. The sums stay in scratch. If the last block of rows
// begins earlier, it stores only the rows that no other block stores.
#include "compiler/lower/attention/bf16_attention.h"

#include "compiler/lower/attention/online_softmax.h"
#include "compiler/lower/attention/pair_operand.h"
#include "compiler/lower/attention/score_code.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/attention/bf16_attention.h"

#include <algorithm>
#include <cmath>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;
using Registers = std::vector<Register>;

class Bf16Attention {
public:
  Bf16Attention(LoweringContext& context, const Instruction& fusion, const Attention& attention,
                const plan::AttentionPlan& plan)
      : context_(context), fusion_(fusion), a_(attention), plan_(plan),
        m_(plan::bf16_blocks(plan, attention, context.target())), lanes_(m_.lanes) {}

  void emit() {
    keys_ = keys_in_lanes(a_, lanes_);
    keys_.k_extent = m_.depth_k;
    values_ = {lanes_, m_.key_k, a_.value_depth, a_.weight_dims, a_.v_outer, a_.v_depth, a_.v_key};
    BufferSlice keys = pack(keys_, a_.depth, a_.k, "pack keys"),
                values = pack(values_, a_.keys.value(), a_.v, "pack values");
    KernelMaker maker(context_, fusion_, "attention");
    b_ = &maker.builder();
    q_ = maker.read(operand_of(fusion_, a_.q));
    k_ = maker.parameter(keys, Scalar::BF16, keys_.elements(), false, "keys");
    v_ = maker.parameter(values, Scalar::BF16, values_.elements(), false, "values");
    code_.emplace(maker, fusion_, a_, lanes_);
    result_ = maker.write(result_of(fusion_));
    add_scratch(maker);
    if (in_matrices()) set_tiles(maker.kernel());
    emit_rows();
    maker.kernel().algorithm = "attention " + std::to_string(plan_.rows) + "x" +
                               std::to_string(plan_.vectors) + " " + plan::to_string(plan_.mac);
    maker.set_flops(2 * (a_.outer * a_.rows * a_.keys).upper_bound() * (a_.depth + a_.value_depth));
    maker.finish();
  }

private:
  static constexpr int kSteps = plan::Bf16Blocks::kSteps;

  bool in_matrices() const { return plan_.mac.kind == MacKind::TileMatrix; }
  // Steps that an iteration of a product takes.
  int k_unroll() const { return in_matrices() ? kSteps : plan_.unroll; }

  BufferSlice pack(const LaneOperand& operand, int64_t k_extent, const StridedView& view,
                   const char* algorithm) {
    BufferSlice place{context_.add_scratch_buffer(operand.elements() * 2, "packed"), 0};
    KernelMaker maker(context_, fusion_, "pack");
    int source = maker.read(operand_of(fusion_, view));
    int out = maker.parameter(place, Scalar::BF16, operand.elements(), true, "packed");
    maker.kernel().algorithm = algorithm;
    emit_pack_pairs(maker.builder(), operand, k_extent, source, view.offset, out);
    maker.finish();
    return place;
  }

  void add_scratch(KernelMaker& maker) {
    int64_t rows = int64_t{m_.high} * m_.tile_rows;
    stride_ = plan_.block;
    value_vectors_ = values_.vectors().value();
    is_online_ = a_.keys.value() > plan_.block;
    queries_ = maker.scratch(Scalar::BF16, rows * m_.depth_k, "queries");
    scores_ = maker.scratch(Scalar::F32, rows * stride_, "scores");
    weights_ = maker.scratch(Scalar::BF16, rows * stride_, "weights");
    accumulators_ = maker.scratch(Scalar::F32, rows * value_vectors_ * lanes_, "sums");
    softmax_.emplace(maker,
                     OnlineSoftmaxShape{lanes_, plan_.rows, stride_, code_->scale(), is_online_,
                                        plan_.fused_exponents, plan_.accumulators, weights_},
                     scores_);
  }

  int accumulators_tile(int i, int j) const { return i * plan_.vectors + j; }
  int lhs_tile(int i) const { return m_.high * plan_.vectors + i; }
  int rhs_tile(int j) const { return m_.high * plan_.vectors + m_.high + j; }

  void set_tiles(kernel::Kernel& kernel) const {
    constexpr int kRowBytes = TileMatrixFacts::kRowBytes;
    kernel.tiles.assign(static_cast<size_t>(rhs_tile(plan_.vectors)), {m_.tile_rows, kRowBytes});
    for (int j = 0; j < plan_.vectors; ++j)
      kernel.tiles[static_cast<size_t>(rhs_tile(j))] = {TileMatrixFacts::kRows, kRowBytes};
  }

  void emit_rows() {
    IntExpr p = b_->set_parallel(a_.outer * m_.blocks), block = floor_mod(p, m_.blocks);
    outer_ = floor_div(p, m_.blocks);
    row_ = min(block * plan_.rows, a_.rows - plan_.rows);
    k_place_ = keys_.part(outer_);
    v_place_ = values_.part(outer_);
    narrow_queries();
    softmax_->begin_tile(plan_.rows);
    if (is_online_) for_accumulators([&](const IntExpr&, const IntExpr&) { return zero(); });
    int64_t keys = a_.keys.value(), whole = keys / plan_.block;
    b_->loop(0, whole, 1, [&](const IntExpr& i) { emit_block(i * plan_.block, plan_.block); });
    if (keys > whole * plan_.block) emit_block(whole * plan_.block, keys - whole * plan_.block);
    softmax_->end_tile(plan_.rows);
    store_results(max(block * plan_.rows - row_, 0));
  }

  Register zero() { return b_->constant({Scalar::F32, lanes_}, 0); }

  void narrow_queries() {
    IntExpr from = offset_at(outer_, a_.score_dims, a_.q_outer) + a_.q.offset;
    b_->loop(0, plan_.rows, 1, [&](const IntExpr& r) {
      for (int64_t d = 0; d < m_.depth_k; d += lanes_)
        b_->store(narrowed(*b_, load_some(*b_, q_, from + (row_ + r) * a_.q_row + d, a_.depth - d, lanes_)),
                  queries_, r * m_.depth_k + d);
    });
  }

  // Updates the sums of weighted values: update(place, row) gives the new value.
  template <class Update> void for_accumulators(Update update) {
    b_->loop(0, plan_.rows, 1, [&](const IntExpr& r) {
      for (int64_t v = 0; v < value_vectors_; ++v) {
        IntExpr place = accumulators_place(r, v);
        b_->store(update(place, r), accumulators_, place, 4 * lanes_);
      }
    });
  }
  IntExpr accumulators_place(const IntExpr& row, const IntExpr& vector) const {
    return (row * value_vectors_ + vector) * lanes_;
  }
  Register sum_at(const IntExpr& place) {
    return b_->load({Scalar::F32, lanes_}, accumulators_, place, 4 * lanes_);
  }

  // Scores, weights and weighted values of `keys` keys from `first` on, a multiple of the block.
  void emit_block(const IntExpr& first, int64_t keys) {
    int64_t vectors = (keys + lanes_ - 1) / lanes_, products = (keys + kSteps - 1) / kSteps;
    for_groups(vectors, [&](const IntExpr& vector, int wide) {
      multiply(vector, wide, a_.depth, /*keeps=*/false, {queries_, 0, m_.depth_k},
               {k_, k_place_ + floor_div(first, lanes_) * (m_.depth_k * lanes_), m_.depth_k * lanes_},
               {scores_, 0, stride_});
    });
    finish_scores(first, keys, vectors);
    softmax_->update(plan_.rows, keys);
    // A product takes a whole number of steps: those beyond the last vector have zero weights.
    for (int64_t v = vectors; v < products * kSteps / lanes_; ++v)
      b_->loop(0, plan_.rows, 1, [&](const IntExpr& r) {
        b_->store(b_->constant({Scalar::BF16, lanes_}, 0), weights_, r * stride_ + v * lanes_);
      });
    if (is_online_)
      for_accumulators([&](const IntExpr& place, const IntExpr& r) {
        return b_->binary(OpKind::FMul, sum_at(place), b_->splat(softmax_->rescale(r), lanes_));
      });
    for_groups(value_vectors_, [&](const IntExpr& vector, int wide) {
      multiply(vector, wide, keys, /*keeps=*/is_online_, {weights_, 0, stride_},
               {v_, v_place_ + first * lanes_, m_.key_k * lanes_},
               {accumulators_, 0, value_vectors_ * lanes_});
    });
  }

  // Calls emit(first vector, number of vectors) for all vectors.
  template <class Emit> void for_groups(int64_t vectors, Emit emit) {
    int64_t groups = vectors / plan_.vectors, rest = vectors % plan_.vectors;
    b_->loop(0, groups, 1, [&](const IntExpr& g) { emit(g * plan_.vectors, plan_.vectors); });
    if (rest > 0) emit(IntExpr(groups * plan_.vectors), static_cast<int>(rest));
  }

  struct Operand {
    int buffer;
    IntExpr place;
    int64_t stride; // from row to row; if packed, from vector to vector
  };

  // Computes result = [result +] lhs times rhs, for the columns of `wide` vectors from `vector` on.
  void multiply(const IntExpr& vector, int wide, int64_t k_extent, bool keeps, const Operand& lhs,
                const Operand& rhs, const Operand& result) {
    int64_t iterations = (k_extent + k_unroll() - 1) / k_unroll();
    if (in_matrices())
      multiply_matrices(vector, wide, iterations, keeps, lhs, rhs, result);
    else
      multiply_pairs(vector, wide, iterations, keeps, lhs, rhs, result);
  }

  void multiply_matrices(const IntExpr& vector, int wide, int64_t products, bool keeps, const Operand& lhs,
                         const Operand& rhs, const Operand& result) {
    Builder& b = *b_;
    auto place = [&](int i, int j) {
      return result.place + (vector + j) * lanes_ + int64_t{i} * m_.tile_rows * result.stride;
    };
    for_tiles(wide, [&](int i, int j) {
      if (keeps)
        b.tile_load(accumulators_tile(i, j), result.buffer, place(i, j), result.stride);
      else
        b.tile_zero(accumulators_tile(i, j));
    });
    b.loop(0, products, 1, [&](const IntExpr& s) {
      for_tiles(wide, [&](int i, int j) {
        if (j == 0)
          b.tile_load(lhs_tile(i), lhs.buffer,
                      lhs.place + s * kSteps + int64_t{i} * m_.tile_rows * lhs.stride, lhs.stride);
        if (i == 0)
          b.tile_load(rhs_tile(j), rhs.buffer,
                      rhs.place + (vector + j) * rhs.stride + s * (int64_t{kSteps} * lanes_),
                      int64_t{2} * lanes_);
        b.tile_dot(OpKind::TileDotBF16, accumulators_tile(i, j), lhs_tile(i), rhs_tile(j));
      });
    });
    for_tiles(wide, [&](int i, int j) {
      b.tile_store(accumulators_tile(i, j), result.buffer, place(i, j), result.stride);
    });
  }

  // Sums of all rows in registers.
  void multiply_pairs(const IntExpr& vector, int wide, int64_t iterations, bool keeps, const Operand& lhs,
                      const Operand& rhs, const Operand& result) {
    Builder& b = *b_;
    kernel::MachineType type{Scalar::F32, lanes_};
    auto place = [&](int r, int j) { return result.place + (vector + j) * lanes_ + r * result.stride; };
    Registers accumulators;
    for (int r = 0; r < plan_.rows; ++r)
      for (int j = 0; j < wide; ++j)
        accumulators.push_back(keeps ? b.load(type, result.buffer, place(r, j), 4 * lanes_) : zero());
    accumulators =
        b.loop_carried(0, iterations, 1, std::move(accumulators), [&](const IntExpr& i, Registers in) {
          for (int step = 0; step < plan_.unroll; step += 2)
            add_pair(in, vector, wide, i * plan_.unroll + step, lhs, rhs);
          return in;
        });
    for (int r = 0; r < plan_.rows; ++r)
      for (int j = 0; j < wide; ++j)
        b.store(accumulators[static_cast<size_t>(r * wide + j)], result.buffer, place(r, j), 4 * lanes_);
  }

  void add_pair(Registers& accumulators, const IntExpr& vector, int wide, const IntExpr& step,
                const Operand& lhs, const Operand& rhs) {
    Builder& b = *b_;
    auto as_pairs = [&](Register words) { return b.cast(OpKind::Bitcast, words, Scalar::BF16); };
    Registers operands;
    for (int j = 0; j < wide; ++j)
      operands.push_back(as_pairs(b.load({Scalar::I32, lanes_}, rhs.buffer,
                                         rhs.place + (vector + j) * rhs.stride + step * lanes_, 4 * lanes_)));
    for (int r = 0; r < plan_.rows; ++r) {
      Register pair = b.load({Scalar::I32, 1}, lhs.buffer, lhs.place + r * lhs.stride + step);
      pair = as_pairs(b.splat(pair, lanes_));
      for (int j = 0; j < wide; ++j) {
        Register& sum = accumulators[static_cast<size_t>(r * wide + j)];
        sum = b.emit(OpKind::DotBF16, {sum, pair, operands[static_cast<size_t>(j)]}, b.type(sum));
      }
    }
  }
  template <class Do> void for_tiles(int wide, Do action) const {
    for (int i = 0; i < m_.high; ++i)
      for (int j = 0; j < wide; ++j) action(i, j);
  }

  // Applies the fusion's code before softmax to the products, and hides lanes beyond the last key.
  void finish_scores(const IntExpr& first, int64_t keys, int64_t vectors) {
    int64_t rest = keys % lanes_, whole = rest > 0 ? vectors - 1 : vectors;
    b_->loop(0, plan_.rows, 1, [&](const IntExpr& r) {
      if (!code_->is_product())
        b_->loop(0, whole, 1, [&](const IntExpr& v) { finish_score(first, r, v, lanes_); });
      if (rest > 0) finish_score(first, r, whole, static_cast<int>(rest));
    });
  }
  void finish_score(const IntExpr& first, const IntExpr& r, const IntExpr& vector, int valid) {
    Builder& b = *b_;
    kernel::MachineType type{Scalar::F32, lanes_};
    IntExpr place = r * stride_ + vector * lanes_;
    Register score = code_->score_of(outer_, row_ + r, first + vector * lanes_, valid,
                                     b.load(type, scores_, place, 4 * lanes_));
    if (valid < lanes_) score = b.select(b.lane_mask(lanes_, valid), score, b.constant(type, -INFINITY));
    b.store(score, scores_, place, 4 * lanes_);
  }

  // Stores rows from `own` on.
  void store_results(const IntExpr& own) {
    IntExpr to = offset_at(outer_, a_.weight_dims, a_.result_outer);
    b_->loop(own, plan_.rows, 1, [&](const IntExpr& r) {
      Register inverse = b_->splat(softmax_->inverse_sum(r), lanes_);
      for (int64_t v = 0; v < value_vectors_; ++v)
        store_result(b_->binary(OpKind::FMul, sum_at(accumulators_place(r, v)), inverse),
                     to + (row_ + r) * a_.result_row + v * lanes_ * a_.result_depth,
                     static_cast<int>(std::min<int64_t>(lanes_, a_.value_depth - v * lanes_)));
    });
  }
  void store_result(Register value, const IntExpr& place, int valid) {
    if (!(a_.result_depth == IntExpr(1))) {
      for (int lane = 0; lane < valid; ++lane)
        b_->store(b_->extract(value, lane), result_, place + a_.result_depth * lane);
    } else if (valid == lanes_) {
      b_->store(value, result_, place);
    } else {
      b_->store_masked(value, result_, place, b_->lane_mask(lanes_, valid));
    }
  }

  LoweringContext& context_;
  const Instruction& fusion_;
  const Attention& a_;
  const plan::AttentionPlan& plan_;
  plan::Bf16Blocks m_;
  int lanes_;
  LaneOperand keys_, values_;
  Builder* b_ = nullptr;
  std::optional<ScoreCode> code_;
  std::optional<OnlineSoftmax> softmax_;
  int q_ = -1, k_ = -1, v_ = -1, result_ = -1, queries_ = -1, scores_ = -1, weights_ = -1, accumulators_ = -1;
  int64_t stride_ = 0, value_vectors_ = 0;
  bool is_online_ = false;                  // there are several blocks of keys
  IntExpr outer_, row_, k_place_, v_place_; // positions of the current block of rows
};

} // namespace

void emit_bf16_attention(LoweringContext& context, const Instruction& fusion, const Attention& attention,
                         const plan::AttentionPlan& plan) {
  Bf16Attention(context, fusion, attention, plan).emit();
}

} // namespace firn::lower
