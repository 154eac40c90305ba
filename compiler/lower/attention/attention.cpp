// Attention as one kernel. For a tile of query rows, the scores of a block of keys are stored in a small
// array, turned into weights, and multiplied into the values at once; the sums of earlier blocks are rescaled
// to the current reference of the weights. Keys are packed by a kernel of their own, since the first product
// needs them along lanes.
#include "compiler/graph/fusion.h"
#include "compiler/lower/attention/bf16_attention.h"
#include "compiler/lower/attention/lane_operand.h"
#include "compiler/lower/attention/mask_skipping.h"
#include "compiler/lower/attention/online_softmax.h"
#include "compiler/lower/attention/qk_dot.h"
#include "compiler/lower/attention/score_code.h"
#include "compiler/lower/contraction/contraction_ops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/attention/attention_mask.h"
#include "compiler/plan/attention/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;
using Registers = std::vector<Register>;

class AttentionKernel {
public:
  AttentionKernel(LoweringContext& context, const Instruction& fusion, const Attention& attention,
                  const plan::AttentionPlan& plan)
      : context_(context), fusion_(fusion), a_(attention),
        s_(plan::tiling_of(plan, attention, context.target())) {}

  void emit() {
    keys_ = keys_in_lanes(a_, s_.lanes);
    values_ = {s_.lanes, a_.keys, a_.value_depth, a_.weight_dims, a_.v_outer, a_.v_depth, a_.v_key};
    BufferSlice keys, values;
    if (s_.packs_keys) keys = pack(keys_, a_.k, "pack keys");
    if (s_.packs_values) values = pack(values_, a_.v, "pack values");
    KernelMaker maker(context_, fusion_, "attention");
    b_ = &maker.builder();
    q_ = maker.read(operand_of(fusion_, a_.q));
    k_ = s_.packs_keys ? maker.parameter(keys, Scalar::F32, keys_.elements(), false, "keys")
                       : maker.read(operand_of(fusion_, a_.k));
    v_ = s_.packs_values ? maker.parameter(values, Scalar::F32, values_.elements(), false, "values")
                         : maker.read(operand_of(fusion_, a_.v));
    if (s_.skips_hidden) hidden_.emplace(maker, s_, a_.keys.value(), plan::shown_keys(a_, fusion_, s_));
    code_.emplace(maker, fusion_, a_, s_.lanes);
    result_ = maker.write(result_of(fusion_));
    int64_t padded = std::min(s_.block, keys_.vectors().upper_bound() * s_.lanes);
    scores_ = maker.scratch(Scalar::F32, s_.rows * padded, "scores");
    score_stride_ = padded;
    blocks_ = ceil_div(a_.keys, s_.block);
    is_online_ = a_.keys.upper_bound() > s_.block;
    depth_stride_ = values_.vectors().value() * s_.lanes;
    weights_.emplace(maker,
                     OnlineSoftmaxShape{s_.lanes, s_.rows, padded, code_->scale(), is_online_,
                                        s_.fused_exponents, s_.accumulators},
                     scores_);
    if (is_online_) accumulators_ = maker.scratch(Scalar::F32, s_.rows * depth_stride_, "scaled");
    emit_tiles();
    maker.kernel().algorithm = "attention " + std::to_string(s_.rows) + "x" + std::to_string(s_.vectors);
    maker.set_flops(2 * (a_.outer * a_.rows * a_.keys).upper_bound() * (a_.depth + a_.value_depth));
    maker.finish();
  }

private:
  BufferSlice pack(const LaneOperand& operand, const StridedView& view, const char* algorithm) {
    BufferSlice place{context_.add_scratch_buffer(operand.elements() * 4, "packed"), 0};
    KernelMaker maker(context_, fusion_, "pack");
    int source = maker.read(operand_of(fusion_, view));
    int out = maker.parameter(place, Scalar::F32, operand.elements(), true, "packed");
    maker.kernel().algorithm = algorithm;
    emit_pack_lanes(maker.builder(), operand, source, view.offset, out);
    maker.finish();
    return place;
  }

  void emit_tiles() {
    Builder& b = *b_;
    bool varies = !a_.rows.is_constant();
    IntExpr tiles = varies ? ceil_div(a_.rows, s_.rows) : IntExpr(s_.large + s_.small);
    IntExpr p = b.set_parallel(a_.outer * tiles);
    outer_ = floor_div(p, at_least_one(tiles));
    IntExpr tile = floor_mod(p, at_least_one(tiles));
    if (hidden_) hidden_->begin_tile(tile);
    q_place_ = offset_at(outer_, a_.score_dims, a_.q_outer) + a_.q.offset;
    k_place_ =
        s_.packs_keys ? keys_.part(outer_) : offset_at(outer_, a_.score_dims, a_.k_outer) + a_.k.offset;
    v_place_ =
        s_.packs_values ? values_.part(outer_) : offset_at(outer_, a_.weight_dims, a_.v_outer) + a_.v.offset;
    result_place_ = offset_at(outer_, a_.weight_dims, a_.result_outer);
    if (varies) return emit_varying_tile(tile);
    if (s_.small == 0) return emit_tile(tile * s_.rows, s_.rows);
    Register large = b.compare(OpKind::SCmp, kernel::Predicate::Lt, b.index(tile), b.index(s_.large));
    b.if_then_else(
        large,
        [&] {
          emit_tile(min(tile, s_.large - 1) * s_.rows, s_.rows);
          return Registers{};
        },
        [&] {
          emit_tile((max(tile, s_.large) - s_.large) * (s_.rows - 1) + s_.large * s_.rows, s_.rows - 1);
          return Registers{};
        });
  }

  // The last tile holds the rest that whole tiles leave.
  void emit_varying_tile(const IntExpr& tile) {
    Builder& b = *b_;
    IntExpr first = tile * s_.rows, count = min(a_.rows - first, IntExpr(s_.rows));
    IntExpr rows = b.symbolic(b.index(count), 1, s_.rows, "rows");
    IntExpr whole = floor_div(rows, s_.rows);
    rest_ = b.symbolic(b.index(rows - whole * s_.rows), 0, s_.rows - 1, "rest");
    emit_tile(first, rows);
  }

  // Calls body(first row within the tile, height) for the parts in which a tile of so many rows is
  // multiplied.
  template <class Body> void for_each_height(const IntExpr& rows, Body body) {
    if (rows.is_constant()) return body(IntExpr(0), static_cast<int>(rows.value()));
    b_->loop(0, floor_div(rows, s_.rows) * s_.rows, s_.rows, [&](const IntExpr& at) { body(at, s_.rows); });
    for_each_rest(rest_, body);
  }
  template <class Body> void for_each_rest(const IntExpr& rows, Body body) {
    IntExpr done = 0;
    for (int height : s_.rest_rows) {
      IntExpr end = floor_div(rows, height) * height;
      b_->loop(done, end, height, [&](const IntExpr& at) { body(at, height); });
      done = end;
    }
  }

  void emit_tile(const IntExpr& row, const IntExpr& rows) {
    Builder& b = *b_;
    weights_->begin_tile(rows);
    if (!is_online_) return emit_block(row, rows, 0, a_.keys);
    b.loop(0, rows, 1, [&](const IntExpr& r) {
      b.loop(0, depth_stride_, s_.lanes, [&](const IntExpr& d) {
        b.store(b.constant({Scalar::F32, s_.lanes}, 0), accumulators_, r * depth_stride_ + d);
      });
    });
    emit_blocks(row, rows);
    weights_->end_tile(rows);
    emit_results(row, rows);
  }

  // Each call of emit_block() emits all of a tile's code once more.
  void emit_blocks(const IntExpr& row, const IntExpr& rows) {
    bool varies = !a_.keys.is_constant();
    IntExpr whole = varies ? blocks_ : floor_div(a_.keys, s_.block);
    b_->loop(0, whole, 1, [&](const IntExpr& block) {
      IntExpr first = block * s_.block;
      emit_block(row, rows, first, varies ? min(a_.keys - first, IntExpr(s_.block)) : IntExpr(s_.block));
    });
    if (!(whole == blocks_)) emit_block(row, rows, whole * s_.block, a_.keys - whole * s_.block);
  }

  // Stores the weighted values of all blocks, divided by the sum of their weights.
  void emit_results(const IntExpr& row, const IntExpr& rows) {
    Builder& b = *b_;
    kernel::MachineType type{Scalar::F32, s_.lanes};
    int64_t vectors = values_.vectors().value();
    b.loop(0, rows, 1, [&](const IntExpr& r) {
      Register inverse = b.splat(weights_->inverse_sum(r), s_.lanes);
      for (int64_t v = 0; v < vectors; ++v) {
        Register sum = b.load(type, accumulators_, v * s_.lanes + r * depth_stride_, 4 * s_.lanes);
        store_result(row + r, v * s_.lanes, valid_columns(v, 0), b.binary(OpKind::FMul, sum, inverse));
      }
    });
  }

  // Rows of a tile that are multiplied together.
  struct RowRun {
    IntExpr row, at; // first row among all rows, and within the tile
    int count;
  };

  // Scores, weights and weighted values of `keys` keys from `first` on.
  void emit_block(const IntExpr& row, const IntExpr& rows, const IntExpr& first, const IntExpr& keys) {
    for_each_height(rows, [&](const IntExpr& at, int height) {
      emit_block_scores({row + at, at, height}, first, keys);
    });
    // Few keys need only the heights that a rest of rows has.
    if (!keys.is_constant())
      for_each_rest(rows, [&](const IntExpr& at, int height) {
        emit_rest_scores({row + at, at, height}, first, keys);
        emit_partial_scores({row + at, at, height}, first, keys);
      });
    weights_->update(rows, keys);
    if (!is_online_) weights_->end_tile(rows);
    if (hidden_) {
      gap_.to = keys.value() / s_.key_k_step() * s_.key_k_step();
      gap_.from = hidden_->find_reach(first, gap_.to, static_cast<int>(rows.value()), scores_, score_stride_);
    }
    for_each_height(rows, [&](const IntExpr& at, int height) {
      emit_block_values({row + at, at, height}, first, keys);
    });
  }

  // Vectors of keys whose scores a tile computes at a time.
  int key_vectors() const { return s_.packs_keys ? s_.vectors : 1; }

  // Scores of a block, except for its last keys if only a run knows how many of them fill no group.
  void emit_block_scores(const RowRun& rows, const IntExpr& first, const IntExpr& keys) {
    int width = key_vectors();
    int64_t group = static_cast<int64_t>(width) * s_.lanes;
    IntExpr full = floor_div(keys, group), rest = keys - full * group;
    IntExpr shown = hidden_ ? hidden_->shown_groups(first, group, full.value()) : full;
    b_->loop(0, shown, 1, [&](const IntExpr& g) { emit_scores(rows, first, g * width, width, group); });
    b_->loop(shown, full, 1, [&](const IntExpr& g) { emit_hidden_scores(rows, first, g * width, width); });
    if (!keys.is_constant()) return;
    int vectors = static_cast<int>((rest.value() + s_.lanes - 1) / s_.lanes);
    if (vectors > 0) emit_scores(rows, first, full * width, vectors, rest.value());
  }

  // Scores of whole vectors of keys that fill no group.
  void emit_rest_scores(const RowRun& rows, const IntExpr& first, const IntExpr& keys) {
    int width = key_vectors();
    if (width == 1) return;
    b_->loop(floor_div(keys, width * s_.lanes) * width, floor_div(keys, s_.lanes), 1,
             [&](const IntExpr& v) { emit_scores(rows, first, v, 1, s_.lanes); });
  }

  void emit_block_values(const RowRun& rows, const IntExpr& first, const IntExpr& keys) {
    int64_t vectors = values_.vectors().value(), groups = vectors / s_.vectors;
    int64_t partial = a_.value_depth % s_.lanes;
    // Only the last vector may be partial; its group has a place of its own.
    if (partial != 0 && groups * s_.vectors == vectors) --groups;
    b_->loop(0, groups, 1,
             [&](const IntExpr& g) { emit_values(rows, first, keys, g * s_.vectors, s_.vectors); });
    if (vectors > groups * s_.vectors)
      emit_values(rows, first, keys, groups * s_.vectors, static_cast<int>(vectors - groups * s_.vectors));
  }

  // Steps that a product leaves out; none if `from` equals `to`. `to`: a multiple of the schedule's key step.
  struct Gap {
    IntExpr from = 0;
    int64_t to = 0;
  };

  // acc[row][vector] += scalar(row, k) * vector(vector, k) over k.
  template <class ScalarAt, class VectorAt>
  Registers multiply(int rows, int vectors, const IntExpr& k_extent, const Gap& gap, Registers start,
                     ScalarAt scalar_at, VectorAt vector_at) {
    auto step = [&](const IntExpr& k, Registers& accumulators) {
      Registers loaded;
      for (int v = 0; v < vectors; ++v) loaded.push_back(vector_at(v, k));
      for (int r = 0; r < rows; ++r) {
        Register scalar = b_->splat(scalar_at(r, k), s_.lanes);
        for (int v = 0; v < vectors; ++v) {
          Register& sum = accumulators[static_cast<size_t>(r * vectors + v)];
          sum = b_->fma(scalar, loaded[static_cast<size_t>(v)], sum);
        }
      }
    };
    auto walk = [&](const IntExpr& from, const IntExpr& to, Registers accumulators) {
      return b_->loop_carried(floor_div(from, s_.unroll), floor_div(to, s_.unroll), 1,
                              std::move(accumulators), [&](const IntExpr& i, Registers in) {
                                for (int j = 0; j < s_.unroll; ++j) step(i * s_.unroll + j, in);
                                return in;
                              });
    };
    Registers accumulators = std::move(start);
    if (gap.to > 0) accumulators = walk(0, gap.from, std::move(accumulators));
    accumulators = walk(gap.to, k_extent, std::move(accumulators));
    IntExpr done = floor_div(k_extent, s_.unroll) * s_.unroll;
    if (!k_extent.is_constant())
      return b_->loop_carried(done, k_extent, 1, std::move(accumulators),
                              [&](const IntExpr& k, Registers in) {
                                step(k, in);
                                return in;
                              });
    for (int64_t k = done.value(); k < k_extent.value(); ++k) step(k, accumulators);
    return accumulators;
  }

  // Products of rows with a group of packed keys: [row][vector].
  Registers packed_products(const RowRun& rows, const IntExpr& first, const IntExpr& vector, int vectors) {
    Builder& b = *b_;
    kernel::MachineType type{Scalar::F32, s_.lanes};
    IntExpr first_vector = floor_div(first, s_.lanes);
    return multiply(
        rows.count, vectors, a_.depth, {},
        Registers(static_cast<size_t>(rows.count * vectors), b.constant(type, 0)),
        [&](int r, const IntExpr& k) {
          return b.load({Scalar::F32, 1}, q_, q_place_ + (rows.row + r) * a_.q_row + k * a_.q_depth);
        },
        [&](int v, const IntExpr& k) {
          return b.load(type, k_,
                        k_place_ + (first_vector + vector + v) * (a_.depth * s_.lanes) + k * s_.lanes,
                        4 * s_.lanes);
        });
  }

  // Products of rows with one vector of keys that are read where they lie.
  Registers products_in_place(const RowRun& rows, const IntExpr& key, int64_t keys) {
    Registers products;
    for (int r = 0; r < rows.count; ++r)
      products.push_back(emit_qk_dot(*b_,
                                     {q_, k_, q_place_ + (rows.row + r) * a_.q_row, k_place_ + key * a_.k_key,
                                      a_.k_key, a_.depth, s_.lanes},
                                     static_cast<int>(std::min<int64_t>(keys, s_.lanes))));
    return products;
  }

  // Scores of a group of keys that the mask hides from all rows: they do not depend on products.
  void emit_hidden_scores(const RowRun& rows, const IntExpr& first, const IntExpr& vector, int vectors) {
    Register product = b_->constant({Scalar::F32, s_.lanes}, 0);
    b_->loop(0, rows.count, 1, [&](const IntExpr& r) {
      for (int v = 0; v < vectors; ++v)
        b_->store(code_->score_of(outer_, rows.row + r, first + (vector + v) * s_.lanes, s_.lanes, product),
                  scores_, score_place(rows, r, vector + v), 4 * s_.lanes);
    });
  }

  IntExpr score_place(const RowRun& rows, const IntExpr& r, const IntExpr& vector) const {
    return vector * s_.lanes + (rows.at + r) * score_stride_;
  }

  // Scores of one group of keys: `vector` counts from `first`, `keys` of its lanes are keys.
  void emit_scores(const RowRun& rows, const IntExpr& first, const IntExpr& vector, int vectors,
                   int64_t keys) {
    Builder& b = *b_;
    kernel::MachineType type{Scalar::F32, s_.lanes};
    Registers accumulators = s_.packs_keys ? packed_products(rows, first, vector, vectors)
                                           : products_in_place(rows, first + vector * s_.lanes, keys);
    for (int r = 0; r < rows.count; ++r)
      for (int v = 0; v < vectors; ++v) {
        int valid = static_cast<int>(std::min<int64_t>(s_.lanes, keys - v * s_.lanes));
        Register score = code_->score_of(outer_, rows.row + r, first + (vector + v) * s_.lanes, valid,
                                         accumulators[static_cast<size_t>(r * vectors + v)]);
        if (valid < s_.lanes)
          score = b.select(b.lane_mask(s_.lanes, valid), score, b.constant(type, -INFINITY));
        b.store(score, scores_, score_place(rows, r, vector + v), 4 * s_.lanes);
      }
  }

  // Scores of the last keys of a block, which fill no vector.
  void emit_partial_scores(const RowRun& rows, const IntExpr& first, const IntExpr& keys) {
    if (s_.lanes == 1) return;
    Builder& b = *b_;
    IntExpr whole = floor_div(keys, s_.lanes), rest = keys - whole * s_.lanes;
    b.loop(whole, ceil_div(keys, s_.lanes), 1, [&](const IntExpr& v) {
      Registers products = packed_products(rows, first, v, 1);
      Register is_key = b.lane_mask(s_.lanes, rest), lowest = b.constant({Scalar::F32, s_.lanes}, -INFINITY);
      for (int r = 0; r < rows.count; ++r) {
        Register score = code_->score_of(outer_, rows.row + r, first + v * s_.lanes, s_.lanes - 1,
                                         products[static_cast<size_t>(r)]);
        b.store(b.select(is_key, score, lowest), scores_, score_place(rows, r, v), 4 * s_.lanes);
      }
    });
  }

  // Zero times the values in the gap: the result is zero, or NaN.
  Registers hidden_values(const IntExpr& first, const IntExpr& vector, int vectors) {
    Register zero = b_->constant({Scalar::F32, s_.lanes}, 0);
    Registers accumulators(static_cast<size_t>(vectors), zero);
    if (gap_.to == 0) return accumulators;
    return b_->loop_carried(
        gap_.from, gap_.to, 1, std::move(accumulators), [&](const IntExpr& k, Registers in) {
          for (int v = 0; v < vectors; ++v)
            in[static_cast<size_t>(v)] =
                b_->fma(zero, load_values(first + k, vector + v, valid_columns(vector, v)),
                        in[static_cast<size_t>(v)]);
          return in;
        });
  }

  // The start of a sum of weighted values: the rescaled sum of earlier blocks, if there are any.
  Register start_of(Register hidden, Register rescale, const IntExpr& place) {
    if (!is_online_) return hidden;
    Register earlier = b_->load({Scalar::F32, s_.lanes}, accumulators_, place, 4 * s_.lanes);
    return gap_.to > 0 ? b_->fma(rescale, earlier, hidden) : b_->binary(OpKind::FMul, rescale, earlier);
  }

  // The weighted values of a group of columns.
  void emit_values(const RowRun& rows, const IntExpr& first, const IntExpr& keys, const IntExpr& vector,
                   int vectors) {
    Builder& b = *b_;
    kernel::MachineType scalar{Scalar::F32, 1};
    Registers start;
    auto accumulator_place = [&](int r, int v) {
      return (vector + v) * s_.lanes + (rows.at + r) * depth_stride_;
    };
    Registers hidden = hidden_values(first, vector, vectors);
    for (int r = 0; r < rows.count; ++r) {
      Register rescale;
      if (is_online_) rescale = b.splat(weights_->rescale(rows.at + r), s_.lanes);
      for (int v = 0; v < vectors; ++v)
        start.push_back(start_of(hidden[static_cast<size_t>(v)], rescale, accumulator_place(r, v)));
    }
    Registers accumulators = multiply(
        rows.count, vectors, keys, gap_, std::move(start),
        [&](int r, const IntExpr& k) { return b.load(scalar, scores_, k + (rows.at + r) * score_stride_); },
        [&](int v, const IntExpr& k) {
          return load_values(first + k, vector + v, valid_columns(vector, v));
        });
    for (int r = 0; r < rows.count; ++r)
      for (int v = 0; v < vectors; ++v) {
        Register sum = accumulators[static_cast<size_t>(r * vectors + v)];
        if (is_online_) {
          b.store(sum, accumulators_, accumulator_place(r, v), 4 * s_.lanes);
          continue;
        }
        sum = b.binary(OpKind::FMul, sum, b.splat(weights_->inverse_sum(rows.at + r), s_.lanes));
        store_result(rows.row + r, (vector + v) * s_.lanes, valid_columns(vector, v), sum);
      }
  }

  int valid_columns(const IntExpr& vector, int v) const {
    if (!vector.is_constant()) return s_.lanes;
    return static_cast<int>(std::min<int64_t>(s_.lanes, a_.value_depth - (vector.value() + v) * s_.lanes));
  }

  Register load_values(const IntExpr& key, const IntExpr& vector, int valid) {
    Builder& b = *b_;
    kernel::MachineType type{Scalar::F32, s_.lanes};
    if (s_.packs_values)
      return b.load(type, v_, v_place_ + vector * (a_.keys * s_.lanes) + key * s_.lanes, 4 * s_.lanes);
    IntExpr place = v_place_ + key * a_.v_key + vector * s_.lanes;
    if (valid == s_.lanes) return b.load(type, v_, place);
    return b.load_masked(type, v_, place, b.lane_mask(s_.lanes, valid), b.constant(type, 0));
  }

  void store_result(const IntExpr& row, const IntExpr& column, int valid, Register value) {
    Builder& b = *b_;
    IntExpr place = result_place_ + row * a_.result_row + column * a_.result_depth;
    if (valid == s_.lanes && (a_.result_depth == IntExpr(1) || s_.lanes == 1))
      return b.store(value, result_, place);
    for (int lane = 0; lane < valid; ++lane)
      b.store(s_.lanes == 1 ? value : b.extract(value, lane), result_, place + a_.result_depth * lane);
  }

  LoweringContext& context_;
  const Instruction& fusion_;
  const Attention& a_;
  plan::AttentionTiling s_;
  LaneOperand keys_, values_;
  Builder* b_ = nullptr;
  std::optional<ScoreCode> code_;
  std::optional<OnlineSoftmax> weights_;
  std::optional<MaskSkipping> hidden_;
  Gap gap_; // gap of the current block
  int q_ = -1, k_ = -1, v_ = -1, result_ = -1, scores_ = -1, accumulators_ = -1;
  int64_t score_stride_ = 0, depth_stride_ = 0;
  IntExpr blocks_ = 1;     // blocks of keys
  bool is_online_ = false; // there may be several
  IntExpr outer_, q_place_, k_place_, v_place_, result_place_;
  IntExpr rest_ = 0; // rows of the current tile, if it is not a whole one
};

} // namespace

void emit_attention(LoweringContext& context, const Instruction& fusion, const plan::AttentionPlan& plan) {
  Attention attention = *match_attention(*fusion_root(fusion));
  if (plan.mac != plan::MacInstruction{}) return emit_bf16_attention(context, fusion, attention, plan);
  AttentionKernel(context, fusion, attention, plan).emit();
}

} // namespace firn::lower
