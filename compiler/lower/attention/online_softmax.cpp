// The reference of a row is the whole number nearest its largest exponent, as long as f32 can tell exponents
// that far from zero apart. If it cannot (rows that are masked whole by a large number, infinities, NaN), the
// largest score itself is subtracted beforehand, and the whole number is zero.
#include "compiler/lower/attention/online_softmax.h"

#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/movement/transpose_lanes.h"

#include <algorithm>

namespace firn::lower {

using kernel::OpKind;
using kernel::Register;

namespace {

constexpr double kLowest = -3.4028234663852886e38;
constexpr double kMaxWhole = 0x1p20; // up to it, errors of 2^-24 leave exponents right
constexpr double kMagic = 0x1.8p23 + 127;
constexpr double kBelowNormal = -127; // an exponent whose power is 0

} // namespace

OnlineSoftmax::OnlineSoftmax(KernelMaker& maker, const OnlineSoftmaxShape& shape, int scores)
    : b_(maker.builder()), s_(shape), scores_(scores), state_(-1),
      padded_((shape.rows + shape.lanes - 1) / shape.lanes * shape.lanes),
      factor_(static_cast<float>(shape.scale / scalar_ops::math::kLn2)), type_{kernel::Scalar::F32,
                                                                               shape.lanes} {
  state_ = maker.scratch(kernel::Scalar::F32, (kFields + 2 * s_.lanes) * padded_, "softmax");
}

void OnlineSoftmax::begin_tile(const IntExpr& rows) {
  int64_t max = rows.upper_bound();
  // Rows that a tile lacks need a reference too: zero is near.
  b_.loop(rows, max, 1, [&](const IntExpr& r) { store(constant(0), maximum_place(r)); });
  if (!s_.is_online) return;
  for (int64_t r = 0; r < max; r += s_.lanes) {
    store(constant(kLowest), place(Largest, r));
    store(constant(kLowest), place(Base, r));
    store(constant(0), place(Whole, r));
  }
  b_.loop(0, max, 1, [&](const IntExpr& r) { store(constant(0), accumulator_place(r)); });
}

Register OnlineSoftmax::combine(OpKind kind, const IntExpr& vectors, Register start,
                                const std::function<Register(const IntExpr& v)>& element) {
  int64_t chains = std::min(s_.accumulators, vectors.upper_bound());
  IntExpr rounds = floor_div(vectors, chains);
  Registers accumulators(static_cast<size_t>(chains), start);
  accumulators =
      b_.loop_carried(0, rounds, 1, std::move(accumulators), [&](const IntExpr& round, const Registers& in) {
        Registers out;
        for (int64_t c = 0; c < chains; ++c)
          out.push_back(b_.binary(kind, in[static_cast<size_t>(c)], element(round * chains + c)));
        return out;
      });
  if (vectors.is_constant()) {
    for (int64_t i = 0, left = (vectors - rounds * chains).value(); i < left; ++i) {
      Register& sum = accumulators[static_cast<size_t>(i)];
      sum = b_.binary(kind, sum, element(rounds * chains + i));
    }
  } else {
    accumulators[0] = b_.loop_carried(rounds * chains, vectors, 1, {accumulators[0]},
                                      [&](const IntExpr& v, const Registers& in) {
                                        return Registers{b_.binary(kind, in[0], element(v))};
                                      })[0];
  }
  for (size_t count = accumulators.size(); count > 1; count = (count + 1) / 2)
    for (size_t i = 0; i < count / 2; ++i)
      accumulators[i] = b_.binary(kind, accumulators[i], accumulators[count - 1 - i]);
  return accumulators[0];
}

Register OnlineSoftmax::fold_rows(OpKind kind, int64_t first, const IntExpr& rows,
                                  IntExpr (OnlineSoftmax::*place)(const IntExpr&) const) {
  Registers vectors;
  for (int64_t r = first; r < std::min(rows.upper_bound(), first + s_.lanes); ++r)
    vectors.push_back(load((this->*place)(r)));
  return fold_lanes(b_, kind, std::move(vectors), s_.lanes);
}

void OnlineSoftmax::find_largest(const IntExpr& rows, const IntExpr& keys) {
  b_.loop(0, rows, 1, [&](const IntExpr& r) {
    store(combine(OpKind::FMaxFast, vectors_of(keys), constant(kLowest),
                  [&](const IntExpr& v) { return score(r, v); }),
          maximum_place(r));
  });
  for (int64_t first = 0; first < rows.upper_bound(); first += s_.lanes) {
    Register largest = fold_rows(OpKind::FMaxFast, first, rows, &OnlineSoftmax::maximum_place);
    if (s_.is_online) largest = b_.binary(OpKind::FMaxFast, load(place(Largest, first)), largest);
    store(largest, place(Largest, first));
  }
}

void OnlineSoftmax::subtract_largest(const IntExpr& rows, const IntExpr& keys) {
  b_.loop(0, rows, 1, [&](const IntExpr& r) {
    Register largest = b_.splat(number(Largest, r), s_.lanes);
    b_.loop(0, vectors_of(keys), 1,
            [&](const IntExpr& v) { set_score(r, v, b_.binary(OpKind::FSub, score(r, v), largest)); });
  });
}

// Chooses one reference per `lanes` rows.
std::vector<OnlineSoftmax::Reference> OnlineSoftmax::choose_references(const IntExpr& rows,
                                                                       const IntExpr& keys) {
  Registers wholes;
  Register distance = b_.constant({kernel::Scalar::F32, 1}, 0);
  for (int64_t first = 0; first < rows.upper_bound(); first += s_.lanes) {
    Register exponent = b_.binary(OpKind::FMul, load(place(Largest, first)), constant(factor_));
    distance =
        b_.binary(OpKind::FAdd, distance, b_.reduce(OpKind::ReduceFAdd, b_.unary(OpKind::FAbs, exponent)));
    wholes.push_back(
        b_.binary(OpKind::FSub, b_.binary(OpKind::FAdd, exponent, constant(kMagic)), constant(kMagic)));
  }
  size_t count = wholes.size();
  auto near = [&] {
    Registers yields = wholes;
    yields.insert(yields.end(), count, constant(0));
    return yields;
  };
  auto far = [&] {
    subtract_largest(rows, keys);
    Registers yields(count, constant(0));
    for (size_t i = 0; i < count; ++i)
      yields.push_back(load(place(Largest, static_cast<int64_t>(i) * s_.lanes)));
    return yields;
  };
  Register is_near = b_.compare(OpKind::FCmp, kernel::Predicate::Lt, distance,
                                b_.constant({kernel::Scalar::F32, 1}, kMaxWhole));
  Registers chosen = s_.fused ? b_.if_then_else(is_near, near, far) : far();
  std::vector<Reference> references;
  for (size_t i = 0; i < count; ++i) references.push_back({chosen[count + i], chosen[i]});
  return references;
}

void OnlineSoftmax::set_reference(int64_t first, const Reference& reference) {
  KernelScalars math(b_);
  store(math.sub(constant(kMagic), reference.whole), place(Center, first));
  store(math.mul(math.add(reference.whole, constant(kBelowNormal)), constant(1 / factor_)),
        place(Min, first));
  if (!s_.is_online) return;
  Register moved = math.fma(math.sub(load(place(Base, first)), reference.base), constant(factor_),
                            math.sub(load(place(Whole, first)), reference.whole));
  store(scalar_ops::math::relative_power(math, moved, constant(1), constant(kMagic), constant(kBelowNormal)),
        place(Rescale, first));
  store(reference.base, place(Base, first));
  store(reference.whole, place(Whole, first));
}

void OnlineSoftmax::update(const IntExpr& rows, const IntExpr& keys) {
  find_largest(rows, keys);
  std::vector<Reference> references = choose_references(rows, keys);
  for (size_t i = 0; i < references.size(); ++i)
    set_reference(static_cast<int64_t>(i) * s_.lanes, references[i]);
  b_.loop(0, rows, 1, [&](const IntExpr& r) { weigh_row(r, keys); });
}

void OnlineSoftmax::set_weight(const IntExpr& r, const IntExpr& v, Register value) {
  if (s_.narrow_weights < 0) return set_score(r, v, value);
  b_.store(b_.cast(OpKind::FTruncTo, value, kernel::Scalar::BF16), s_.narrow_weights,
           r * s_.stride + v * s_.lanes);
}

void OnlineSoftmax::weigh_row(const IntExpr& r, const IntExpr& keys) {
  KernelScalars math(b_);
  Register center = b_.splat(number(Center, r), s_.lanes), min = b_.splat(number(Min, r), s_.lanes);
  auto weight = [&](const IntExpr& v) {
    Register power = scalar_ops::math::relative_power(math, score(r, v), constant(factor_), center, min);
    set_weight(r, v, power);
    return power;
  };
  Register sum = combine(OpKind::FAdd, vectors_of(keys), constant(0), weight);
  if (s_.is_online) sum = b_.fma(load(accumulator_place(r)), b_.splat(number(Rescale, r), s_.lanes), sum);
  store(sum, accumulator_place(r));
}

void OnlineSoftmax::end_tile(const IntExpr& rows) {
  for (int64_t first = 0; first < rows.upper_bound(); first += s_.lanes) {
    Register sum = fold_rows(OpKind::FAdd, first, rows, &OnlineSoftmax::accumulator_place);
    store(b_.binary(OpKind::FDiv, constant(1), sum), place(Inverse, first));
  }
}

Register OnlineSoftmax::rescale(const IntExpr& r) {
  return number(Rescale, r);
}

Register OnlineSoftmax::inverse_sum(const IntExpr& r) {
  return number(Inverse, r);
}

} // namespace firn::lower
