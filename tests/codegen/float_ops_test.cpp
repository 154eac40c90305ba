// Floating-point ops against the C library, bit for bit (NaN for NaN), over special and ordinary numbers.
#include "tests/codegen/op_runner.h"

#include "compiler/target/strict_floats.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace firn::test {

using namespace kernel;

template <class T> static std::vector<T> special_numbers() {
  using L = std::numeric_limits<T>;
  std::vector<T> numbers = {T(0.0),       T(1),       T(0.5),          T(1.5),        T(2.5),   T(3.7),
                            T(1e-3),      L::min(),   L::denorm_min(), L::min() / 4,  L::max(), L::infinity(),
                            T(8388607.5), T(8388609), T(123456.789),   T(0.49999997), T(1e30)};
  if (sizeof(T) == 8) numbers.push_back(T(4503599627370495.5));
  size_t count = numbers.size();
  for (size_t i = 0; i < count; ++i) numbers.push_back(-numbers[i]);
  numbers.push_back(L::quiet_NaN());
  while (numbers.size() % 8) numbers.push_back(T(numbers.size()) / 3);
  return numbers;
}

template <class T> static bool same(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Whether vectors of so many lanes take subnormal numbers for zeros.
template <class T> static bool flushes(const Machine& target, int lanes) {
  return sizeof(T) == 4 && lanes % 4 == 0 && vectors_flush_subnormals(target);
}
template <class T> static bool any_subnormal(std::initializer_list<T> numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](T x) { return std::fpclassify(x) == FP_SUBNORMAL; });
}

template <class T> static T minimum(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T> struct BinaryCase {
  OpKind kind;
  T (*reference)(T, T);
};
template <class T> static std::vector<BinaryCase<T>> binary_cases() {
  return {
      {OpKind::FAdd, [](T a, T b) { return a + b; }},
      {OpKind::FSub, [](T a, T b) { return a - b; }},
      {OpKind::FMul, [](T a, T b) { return a * b; }},
      {OpKind::FDiv, [](T a, T b) { return a / b; }},
      {OpKind::FRem, [](T a, T b) { return std::fmod(a, b); }},
      {OpKind::FMinimum, [](T a, T b) { return minimum(a, b); }},
      {OpKind::FMaximum, [](T a, T b) { return -minimum(-a, -b); }},
      {OpKind::FMinFast, [](T a, T b) { return a < b ? a : b; }},
      {OpKind::FMaxFast, [](T a, T b) { return a > b ? a : b; }},
      {OpKind::FCopySign, [](T a, T b) { return std::copysign(a, b); }},
  };
}

template <class T> static void check_binary(const Machine& target, Scalar scalar, int lanes) {
  std::vector<T> numbers = special_numbers<T>(), a, b;
  for (T x : numbers)
    for (T y : numbers) a.push_back(x), b.push_back(y);
  auto cases = binary_cases<T>();
  auto results = run_ops(target, lanes, {scalar, scalar}, {bytes_of(a), bytes_of(b)}, scalar,
                         [&](Builder& builder, const std::vector<Register>& v) {
                           std::vector<Register> out;
                           for (const auto& test : cases)
                             out.push_back(builder.binary(test.kind, v[0], v[1]));
                           return out;
                         });
  for (size_t c = 0; c < cases.size(); ++c) {
    std::vector<T> got = numbers_of<T>(results[c]);
    for (size_t i = 0; i < a.size(); ++i) {
      T want = cases[c].reference(a[i], b[i]);
      if (same(got[i], want) || (flushes<T>(target, lanes) && any_subnormal({a[i], b[i], want}))) continue;
      FAIL(op_kind_info(cases[c].kind).mnemonic << "(" << a[i] << ", " << b[i] << ") = " << got[i]
                                                << ", wanted " << want << " on " << target.processor << ", "
                                                << lanes << " lanes");
    }
  }
}

TEST_CASE("binary float ops", "[ops]") {
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (int lanes : {1, 4, 16}) {
      check_binary<float>(target, Scalar::F32, lanes);
      if (target.cpu.has_double) check_binary<double>(target, Scalar::F64, lanes);
    }
  }
}

TEST_CASE("reciprocals are within two units of the last place", "[ops]") {
  std::vector<float> a;
  for (float x = 0x1p-125f; x < 0x1p125f; x *= 1.37f) a.push_back(a.size() % 2 ? -x : x);
  a.push_back(NAN);
  while (a.size() % 16) a.push_back(1 + static_cast<float>(a.size()) * 0x1p-20f);
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (int lanes : {1, 4, 8, 16}) {
      auto results = run_ops(target, lanes, {Scalar::F32}, {bytes_of(a)}, Scalar::F32,
                             [](Builder& builder, const std::vector<Register>& v) {
                               return std::vector<Register>{builder.unary(OpKind::FReciprocal, v[0])};
                             });
      std::vector<float> got = numbers_of<float>(results[0]);
      for (size_t i = 0; i < a.size(); ++i) {
        INFO("1 / " << a[i] << " = " << got[i] << " on " << target.processor << ", " << lanes << " lanes");
        if (std::isnan(a[i]))
          CHECK(std::isnan(got[i]));
        else
          CHECK(std::fabs(static_cast<double>(got[i]) * static_cast<double>(a[i]) - 1) < 0x1p-22);
      }
    }
  }
}

template <class T> struct UnaryCase {
  OpKind kind;
  T (*reference)(T);
};

template <class T> static void check_unary(const Machine& target, Scalar scalar, int lanes) {
  std::vector<UnaryCase<T>> cases = {
      {OpKind::FNeg, [](T a) { return -a; }},
      {OpKind::FAbs, [](T a) { return std::fabs(a); }},
      {OpKind::FSqrt, [](T a) { return std::sqrt(a); }},
      {OpKind::FFloor, [](T a) { return std::floor(a); }},
      {OpKind::FCeil, [](T a) { return std::ceil(a); }},
      {OpKind::FTrunc, [](T a) { return std::trunc(a); }},
      {OpKind::FRoundEven, [](T a) { return std::nearbyint(a); }},
  };
  std::vector<T> a = special_numbers<T>();
  while (a.size() % 16) a.push_back(T(a.size()) / 3);
  auto results = run_ops(target, lanes, {scalar}, {bytes_of(a)}, scalar,
                         [&](Builder& builder, const std::vector<Register>& v) {
                           std::vector<Register> out;
                           for (const auto& test : cases) out.push_back(builder.unary(test.kind, v[0]));
                           // Operands that are constants take shorter ways.
                           for (double number : {0.0, -0.0, 1.0}) {
                             Register constant = builder.constant({scalar, lanes}, number);
                             out.push_back(builder.binary(OpKind::FMaximum, v[0], constant));
                             out.push_back(builder.binary(OpKind::FMinimum, constant, v[0]));
                           }
                           return out;
                         });
  auto check = [&](size_t result, std::string_view name, size_t i, T want) {
    T got = numbers_of<T>(results[result])[i];
    if (!same(got, want) && !(flushes<T>(target, lanes) && any_subnormal({a[i], want}))) {
      FAIL(name << "(" << a[i] << ") = " << got << ", wanted " << want << " on " << target.processor << ", "
                << lanes << " lanes");
    }
  };
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t c = 0; c < cases.size(); ++c)
      check(c, op_kind_info(cases[c].kind).mnemonic, i, cases[c].reference(a[i]));
    size_t at = cases.size();
    for (T number : {T(0.0), T(-0.0), T(1.0)}) {
      check(at++, "fmaximum with a constant", i, -minimum(-a[i], -number));
      check(at++, "fminimum with a constant", i, minimum(a[i], number));
    }
  }
}

TEST_CASE("unary float ops", "[ops]") {
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (int lanes : {1, 4, 16}) {
      check_unary<float>(target, Scalar::F32, lanes);
      if (target.cpu.has_double) check_unary<double>(target, Scalar::F64, lanes);
    }
  }
}

TEST_CASE("fma rounds once where the target fuses and twice where it does not", "[ops]") {
  std::vector<float> a(16, 1.0f + 0x1p-12f), b = a, c(16, -1.0f);
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (int lanes : {1, 16}) {
      auto emit = [](Builder& builder, const std::vector<Register>& v) {
        return std::vector<Register>{builder.fma(v[0], v[1], v[2])};
      };
      auto got = numbers_of<float>(run_ops(target, lanes, {Scalar::F32, Scalar::F32, Scalar::F32},
                                           {bytes_of(a), bytes_of(b), bytes_of(c)}, Scalar::F32, emit)[0]);
      volatile float product = a[0] * b[0];
      CHECK(got[3] == (target.cpu.has_fma ? std::fma(a[0], b[0], c[0]) : product + c[0]));
    }
  }
}

TEST_CASE("float compares order NaN as C does", "[ops]") {
  std::vector<float> numbers = special_numbers<float>(), a, b;
  for (float x : numbers)
    for (float y : numbers) a.push_back(x), b.push_back(y);
  static constexpr Predicate predicates[] = {Predicate::Eq, Predicate::Ne, Predicate::Lt,
                                             Predicate::Le, Predicate::Gt, Predicate::Ge};
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (int lanes : {1, 16}) {
      auto results = run_ops(target, lanes, {Scalar::F32, Scalar::F32}, {bytes_of(a), bytes_of(b)},
                             Scalar::I8, [&](Builder& builder, const std::vector<Register>& v) {
                               std::vector<Register> out;
                               for (Predicate p : predicates) {
                                 out.push_back(builder.cast(
                                     OpKind::ZExt, builder.compare(OpKind::FCmp, p, v[0], v[1]), Scalar::I8));
                               }
                               return out;
                             });
      for (size_t i = 0; i < a.size(); ++i) {
        bool want[] = {a[i] == b[i], a[i] != b[i], a[i]<b[i], a[i] <= b[i], a[i]> b[i], a[i] >= b[i]};
        for (size_t p = 0; p < 6; ++p) {
          if (results[p][i] != want[p])
            FAIL("predicate " << p << " of " << a[i] << " and " << b[i] << " on " << target.processor);
        }
      }
    }
  }
}

} // namespace firn::test
