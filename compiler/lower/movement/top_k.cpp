// top_k of few elements. A line becomes keys, integers in the order in which its elements are wanted, the
// greatest first. The key of the k-th is found by bisection, which counts keys in vectors; those up to it are
// moved together, lower indices first among equals, and each learns its place by comparison with all others.
// Of a line too long to be held, elements enter one by one if they come before the k-th of those at hand.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/movement/sort.h"
#include "compiler/plan/top_k/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;
using kernel::Scalar;
using Registers = std::vector<Register>;

constexpr kernel::MachineType kNumber{Scalar::I64, 1};

bool is_wide(DType dtype) {
  return bit_width(dtype) == 64;
}

// Converts elements to integers of 32 or 64 bits in the same order: NaN above all numbers, -0 equal to 0.
Register key_of(Builder& b, DType dtype, bool largest, Register value) {
  KernelScalars scalars(b);
  int bits = is_wide(dtype) ? 64 : 32;
  Register key;
  if (is_float(dtype)) {
    Register raw = scalars.bits_of(scalars.add(value, scalars.constant(value, 0)));
    Register greatest = scalars.lshr(scalars.integer(raw, -1), scalars.integer(raw, 1));
    Register sign = scalars.ashr(raw, scalars.integer(raw, bits - 1));
    key = scalars.ixor(raw, scalars.iand(sign, greatest));
    key = scalars.select(scalars.fcmp(Cmp::Ne, value, value), greatest, key);
  } else {
    bool keeps_sign = is_signed(dtype);
    key = scalars.resize_int(value, bits, keeps_sign);
    if (!keeps_sign && scalars.bits(value) == bits)
      key = scalars.ixor(key, scalars.shl(scalars.integer(key, 1), scalars.integer(key, bits - 1)));
  }
  return largest ? key : scalars.ixor(key, scalars.integer(key, -1));
}

// Whether any lane of a mask holds.
Register any_of(Builder& b, Register mask) {
  Register bits = mask;
  switch (b.type(mask).lanes) {
  case 1: return mask;
  case 8: bits = b.cast(OpKind::Bitcast, mask, Scalar::I8); break;
  case 16: bits = b.cast(OpKind::Bitcast, mask, Scalar::I16); break;
  default: bits = b.reduce(OpKind::ReduceIAdd, b.cast(OpKind::ZExt, mask, Scalar::I32));
  }
  return b.compare(OpKind::UCmp, Predicate::Ne, bits, b.constant_int(b.type(bits), 0));
}

// The greatest or least lane of a vector.
Register across(Builder& b, OpKind kind, Register vector) {
  for (int half = b.type(vector).lanes / 2; half >= 1; half /= 2) {
    std::vector<int64_t> low, high;
    for (int lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    vector = b.binary(kind, b.shuffle(vector, vector, low), b.shuffle(vector, vector, high));
  }
  return b.type(vector).lanes == 1 ? vector : b.extract(vector, 0);
}

// Candidates for the k greatest keys with their positions in the line, lower ones first.
class Candidates {
public:
  // `held`: the most candidates there may be; `max_vectors`: vectors of keys that are counted side by side.
  Candidates(KernelMaker& maker, Scalar key, int64_t k, int64_t held, int lanes, int64_t max_vectors)
      : b_(maker.builder()), key_{key, 1}, k_(k), lanes_(lanes) {
    while (vectors_ < max_vectors && vectors_ * lanes_ < k_) vectors_ *= 2;
    capacity_ = held + vectors_ * lanes_;
    keys_ = maker.scratch(key, capacity_, "keys");
    positions_ = maker.scratch(Scalar::I32, capacity_, "positions");
    ranks_ = maker.scratch(Scalar::I32, k_ + lanes_, "ranks");
  }

  // Stores an element of the line, or a vector of them, as candidates from `at` on.
  void put(Register keys, const IntExpr& at, Register positions) {
    b_.store(keys, keys_, at);
    b_.store(positions, positions_, at);
  }

  // Keeps k of the first `count` candidates, at least k, in their order; gives the least of their keys.
  Register select(const IntExpr& count) {
    for (int i = 0; i < vectors_; ++i) b_.store(lowest(lanes_), keys_, count + i * lanes_);
    Register last = find_last(count);
    Register spare =
        b_.binary(OpKind::ISub, b_.constant_int(kNumber, k_), count_keys(count, last, Predicate::Gt));
    keep(count, last, spare);
    return last;
  }

  // Emits the candidates in order, once k are left: `emit(position, rank)`.
  void in_order(const std::function<void(Register position, Register rank)>& emit) {
    if (k_ > 1) rank();
    b_.loop(0, k_, 1, [&](const IntExpr& i) {
      Register rank = k_ > 1 ? b_.load({Scalar::I32, 1}, ranks_, i) : b_.constant_int({Scalar::I32, 1}, 0);
      emit(b_.cast(OpKind::SExt, b_.load({Scalar::I32, 1}, positions_, i), Scalar::I64),
           b_.cast(OpKind::SExt, rank, Scalar::I64));
    });
  }

  kernel::MachineType key_type(int lanes) const { return key_.with_lanes(lanes); }

private:
  Register lowest(int lanes) {
    KernelScalars scalars(b_);
    Register one = b_.constant_int(key_type(lanes), 1);
    return scalars.shl(one, scalars.integer(one, 8 * kernel::scalar_bytes(key_.scalar) - 1));
  }
  Register load_keys(const IntExpr& at, int lanes) { return b_.load(key_type(lanes), keys_, at); }
  IntExpr rounds(const IntExpr& count) const {
    return ceil_div(count, vectors_ * lanes_) * (vectors_ * lanes_);
  }

  // Counts the keys that compare with `bound` by `predicate`; the least key, which pads rounds, must not.
  Register count_keys(const IntExpr& count, Register bound, Predicate predicate) {
    Register bounds = b_.splat(bound, lanes_);
    Registers accumulators(static_cast<size_t>(vectors_), b_.constant_int(key_type(lanes_), 0));
    accumulators = b_.loop_carried(
        0, rounds(count), vectors_ * lanes_, accumulators, [&](const IntExpr& at, const Registers& in) {
          Registers next;
          for (int i = 0; i < vectors_; ++i) {
            Register counts = b_.compare(OpKind::SCmp, predicate, load_keys(at + i * lanes_, lanes_), bounds);
            next.push_back(b_.binary(OpKind::IAdd, in[static_cast<size_t>(i)],
                                     b_.cast(OpKind::ZExt, counts, key_.scalar)));
          }
          return next;
        });
    return to_number(b_.reduce(OpKind::ReduceIAdd, folded(OpKind::IAdd, accumulators)));
  }
  Register to_number(Register value) {
    return b_.type(value).scalar == Scalar::I64 ? value : b_.cast(OpKind::SExt, value, Scalar::I64);
  }
  Register folded(OpKind kind, const Registers& values) {
    Register all = values[0];
    for (size_t i = 1; i < values.size(); ++i) all = b_.binary(kind, all, values[i]);
    return all;
  }

  // The k-th greatest key. It is at most the greatest key; and at least the least of the lanes' greatest
  // keys, if there are at least k lanes.
  Register find_last(const IntExpr& count) {
    Registers tops(static_cast<size_t>(vectors_), lowest(lanes_));
    tops = b_.loop_carried(0, rounds(count), vectors_ * lanes_, tops,
                           [&](const IntExpr& at, const Registers& in) {
                             Registers next;
                             for (int i = 0; i < vectors_; ++i)
                               next.push_back(b_.binary(OpKind::SMax, in[static_cast<size_t>(i)],
                                                        load_keys(at + i * lanes_, lanes_)));
                             return next;
                           });
    Register high = across(b_, OpKind::SMax, folded(OpKind::SMax, tops));
    if (k_ == 1) return high;
    Register low = k_ <= vectors_ * lanes_ ? across(b_, OpKind::SMin, folded(OpKind::SMin, tops)) : lowest(1);
    return bisect(count, low, high);
  }

  Register bisect(const IntExpr& count, Register low, Register high) {
    Register wanted = b_.constant_int(kNumber, k_);
    return b_.while_loop(
        {low, high, b_.constant_int(kNumber, -1)},
        [&](const Registers& in) {
          return b_.binary(OpKind::And, b_.compare(OpKind::SCmp, Predicate::Lt, in[0], in[1]),
                           b_.compare(OpKind::SCmp, Predicate::Ne, in[2], wanted));
        },
        [&](const Registers& in) {
          // The half is rounded up, and its difference may not fit a signed integer.
          Register one = b_.constant_int(key_, 1), room = b_.binary(OpKind::ISub, in[1], in[0]);
          Register half =
              b_.binary(OpKind::IAdd, b_.binary(OpKind::LShr, room, one), b_.binary(OpKind::And, room, one));
          Register middle = b_.binary(OpKind::IAdd, in[0], half);
          Register found = count_keys(count, middle, Predicate::Ge);
          Register enough = b_.compare(OpKind::SCmp, Predicate::Ge, found, wanted);
          return Registers{b_.select(enough, middle, in[0]),
                           b_.select(enough, in[1], b_.binary(OpKind::ISub, middle, one)),
                           b_.select(enough, found, in[2])};
        })[0];
  }

  // Moves the keys above `last`, and the first `spare` that equal it, together.
  void keep(const IntExpr& count, Register last, Register spare) {
    Register bounds = b_.splat(last, lanes_), none = b_.constant_int(kNumber, 0);
    b_.loop_carried(0, ceil_div(count, lanes_), 1, {none, spare}, [&](const IntExpr& v, const Registers& in) {
      IntExpr at = v * lanes_;
      Register any = any_of(b_, b_.compare(OpKind::SCmp, Predicate::Ge, load_keys(at, lanes_), bounds));
      return b_.if_then_else(
          any,
          [&] {
            return b_.loop_carried(0, lanes_, 1, in, [&](const IntExpr& lane, const Registers& now) {
              return keep_one(at + lane, last, now);
            });
          },
          [&] { return in; });
    });
  }
  // `now`: the number of keys kept so far, and how many more may equal the last.
  Registers keep_one(const IntExpr& at, Register last, const Registers& now) {
    Register key = load_keys(at, 1), position = b_.load({Scalar::I32, 1}, positions_, at);
    Register is_last =
        b_.binary(OpKind::And, b_.compare(OpKind::SCmp, Predicate::Eq, key, last),
                  b_.compare(OpKind::SCmp, Predicate::Gt, now[1], b_.constant_int(kNumber, 0)));
    Register kept = b_.binary(OpKind::Or, is_last, b_.compare(OpKind::SCmp, Predicate::Gt, key, last));
    IntExpr to = b_.symbolic(now[0], 0, capacity_ - 1);
    b_.store(key, keys_, to);
    b_.store(position, positions_, to);
    return {b_.binary(OpKind::IAdd, now[0], b_.cast(OpKind::ZExt, kept, Scalar::I64)),
            b_.binary(OpKind::ISub, now[1], b_.cast(OpKind::ZExt, is_last, Scalar::I64))};
  }

  // Counts for each candidate those that come before it: with greater keys, or with equal keys at lower
  // positions.
  void rank() {
    Register one = b_.constant_int(key_type(lanes_), 1);
    Register lane =
        lanes_ > 1 ? b_.constant_lanes(key_type(lanes_), lane_numbers()) : b_.constant_int(key_, 0);
    b_.loop(0, (k_ + lanes_ - 1) / lanes_, 1, [&](const IntExpr& block) {
      IntExpr first = block * lanes_, end = min(first + lanes_, IntExpr(k_));
      Register keys = load_keys(first, lanes_);
      Register numbers = b_.splat(b_.cast(OpKind::IndexCast, b_.index(first), key_.scalar), lanes_);
      numbers = b_.binary(OpKind::IAdd, numbers, lane);
      auto add = [&](const IntExpr& from, const IntExpr& to, Register sum,
                     const std::function<Register(Register other, const IntExpr& at)>& is_before) {
        return b_.loop_carried(from, to, 1, {sum}, [&](const IntExpr& at, const Registers& in) {
          Register before = is_before(b_.splat(load_keys(at, 1), lanes_), at);
          return Registers{b_.binary(OpKind::IAdd, in[0], b_.cast(OpKind::ZExt, before, key_.scalar))};
        })[0];
      };
      auto compare = [&](Predicate predicate) {
        return [&, predicate](Register other, const IntExpr&) {
          return b_.compare(OpKind::SCmp, predicate, other, keys);
        };
      };
      Register rank = add(0, first, b_.binary(OpKind::ISub, one, one), compare(Predicate::Ge));
      rank = add(first, end, rank, [&](Register other, const IntExpr& at) {
        Register place = b_.splat(b_.cast(OpKind::IndexCast, b_.index(at), key_.scalar), lanes_);
        Register ahead = b_.compare(OpKind::SCmp, Predicate::Lt, place, numbers);
        Register equal = b_.compare(OpKind::SCmp, Predicate::Eq, other, keys);
        return b_.binary(OpKind::Or, b_.compare(OpKind::SCmp, Predicate::Gt, other, keys),
                         b_.binary(OpKind::And, equal, ahead));
      });
      rank = add(end, k_, rank, compare(Predicate::Gt));
      b_.store(key_.scalar == Scalar::I32 ? rank : b_.cast(OpKind::Trunc, rank, Scalar::I32), ranks_, first);
    });
  }
  std::vector<int64_t> lane_numbers() const {
    std::vector<int64_t> numbers;
    for (int lane = 0; lane < lanes_; ++lane) numbers.push_back(lane);
    return numbers;
  }

  Builder& b_;
  kernel::MachineType key_;
  int64_t k_, capacity_ = 0;
  int lanes_, vectors_ = 4; // lanes_ of a vector; vectors_ of a round, side by side
  int keys_, positions_, ranks_;
};

class Selection {
public:
  Selection(KernelMaker& maker, const Instruction& top_k, const plan::TopKPlan& plan)
      : b_(maker.builder()), top_k_(top_k), operand_(top_k.operand(0).type()),
        dim_(static_cast<size_t>(top_k.attributes().integer("dim"))),
        largest_(top_k.attributes().flag("largest", true)), lanes_(static_cast<int>(plan.lanes)),
        extent_(operand_.dims[dim_].extent), in_(maker.read(top_k.operand(0))),
        values_(maker.write(result_of(top_k, 0))), indices_(maker.write(result_of(top_k, 1))),
        held_(std::min(extent_.upper_bound(), std::max(plan.held, 4 * k()))),
        candidates_(maker, is_wide(operand_.dtype) ? Scalar::I64 : Scalar::I32, k(), held_ + lanes_, lanes_,
                    plan.vectors),
        state_(maker.scratch(Scalar::I64, 2, "state")), block_(maker.scratch(key_scalar(), lanes_, "block")) {
  }

  void emit_line(const Index& line) {
    IntExpr first = min(extent_, IntExpr(held_));
    emit_vector_loop(b_, first, lanes_, 1, [&](const Lanes& lanes) {
      IntExpr at = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
      candidates_.put(load_key(line, at, lanes), lanes.first, positions(lanes.first, lanes.count));
    });
    Register last = candidates_.select(first);
    if (extent_.upper_bound() > held_) emit_rest(line, last);
    candidates_.in_order([&](Register position, Register rank) {
      Index from = line, to = line;
      from[dim_] = clamped_symbol(b_, position, 0, extent_ - 1);
      to[dim_] = clamped_symbol(b_, rank, 0, IntExpr(k() - 1));
      store_element(b_, values_, top_k_.type(0), to, {}, load_element(b_, in_, operand_, from, {}));
      store_element(b_, indices_, top_k_.type(1), to, {}, position);
    });
  }

private:
  int64_t k() const { return top_k_.attributes().integer("k"); }
  Scalar key_scalar() const { return is_wide(operand_.dtype) ? Scalar::I64 : Scalar::I32; }

  Register load_key(const Index& line, const IntExpr& at, const Lanes& lanes) {
    Index index = line;
    index[dim_] = at;
    return key_of(b_, operand_.dtype, largest_, load_element(b_, in_, operand_, index, lanes));
  }
  Register positions(const IntExpr& first, int lanes) {
    Register start = b_.splat(b_.cast(OpKind::IndexCast, b_.index(first), Scalar::I32), lanes);
    if (lanes == 1) return start;
    std::vector<int64_t> numbers;
    for (int lane = 0; lane < lanes; ++lane) numbers.push_back(lane);
    return b_.binary(OpKind::IAdd, start, b_.constant_lanes({Scalar::I32, lanes}, numbers));
  }

  // Processes the elements beyond those held: `state_` has the number of candidates and the key they must
  // exceed.
  void emit_rest(const Index& line, Register last) {
    set_state(b_.constant_int(kNumber, k()), last);
    IntExpr rest = extent_ - min(extent_, IntExpr(held_));
    emit_vector_loop(b_, rest, lanes_, 1, [&](const Lanes& lanes) {
      IntExpr at = lanes.symbol ? IntExpr::symbol(lanes.symbol) : lanes.first;
      Register keys = load_key(line, at + held_, lanes), bound = load_bound();
      Register any = any_of(b_, b_.compare(OpKind::SCmp, Predicate::Gt, keys, b_.splat(bound, lanes.count)));
      b_.if_then_else(
          any,
          [&] {
            b_.store(keys, block_, 0);
            take(lanes.first + held_, lanes.count, bound);
            return Registers{};
          },
          [] { return Registers{}; });
    });
    candidates_.select(b_.symbolic(load_count(), k(), held_ + lanes_));
  }
  // Takes the keys of the block that exceed `bound`.
  void take(const IntExpr& first, int lanes, Register bound) {
    Register count =
        b_.loop_carried(0, lanes, 1, {load_count()}, [&](const IntExpr& lane, const Registers& now) {
          Register key = b_.load(candidates_.key_type(1), block_, lane);
          candidates_.put(key, b_.symbolic(now[0], k(), held_ + lanes_), positions(first + lane, 1));
          Register enters = b_.compare(OpKind::SCmp, Predicate::Gt, key, bound);
          return Registers{b_.binary(OpKind::IAdd, now[0], b_.cast(OpKind::ZExt, enters, Scalar::I64))};
        })[0];
    b_.store(count, state_, 0);
    b_.if_then_else(
        b_.compare(OpKind::SCmp, Predicate::Ge, count, b_.constant_int(kNumber, held_)),
        [&] {
          set_state(b_.constant_int(kNumber, k()),
                    candidates_.select(b_.symbolic(count, held_, held_ + lanes_)));
          return Registers{};
        },
        [] { return Registers{}; });
  }
  void set_state(Register count, Register bound) {
    b_.store(count, state_, 0);
    b_.store(b_.type(bound).scalar == Scalar::I64 ? bound : b_.cast(OpKind::SExt, bound, Scalar::I64), state_,
             1);
  }
  Register load_count() { return b_.load(kNumber, state_, 0); }
  Register load_bound() {
    Register bound = b_.load(kNumber, state_, 1);
    return key_scalar() == Scalar::I64 ? bound : b_.cast(OpKind::Trunc, bound, Scalar::I32);
  }

  Builder& b_;
  const Instruction& top_k_;
  const Type& operand_;
  size_t dim_;
  bool largest_;
  int lanes_;
  IntExpr extent_;
  int in_, values_, indices_;
  int64_t held_; // elements of a line that are held at a time
  Candidates candidates_;
  int state_, block_;
};

} // namespace

void emit_top_k(LoweringContext& context, const Instruction& top_k, const plan::TopKPlan& plan) {
  if (top_k.type().is_static() && top_k.type().num_elements() == 0) return;
  if (!plan.selects) return emit_sorted_top_k(context, top_k);
  KernelMaker maker(context, top_k, "top_k");
  Selection selection(maker, top_k, plan);
  const Type& operand = top_k.operand(0).type();
  emit_sort_lines(maker, operand, static_cast<size_t>(top_k.attributes().integer("dim")),
                  [&](const Index& line) { selection.emit_line(line); });
  maker.finish();
}

} // namespace firn::lower
