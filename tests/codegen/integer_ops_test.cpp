// Integer ops against C++ with the rules of kernel_ops.def: no division traps, long shifts give zero.
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

#include <bit>
#include <limits>

namespace firn::test {

using namespace kernel;

template <class T> struct Reference {
  using U = std::make_unsigned_t<T>;
  static constexpr unsigned bits = 8 * sizeof(T);
  static T run(OpKind kind, T a, T b) {
    U ua = static_cast<U>(a), ub = static_cast<U>(b);
    switch (kind) {
    case OpKind::IAdd: return static_cast<T>(ua + ub);
    case OpKind::ISub: return static_cast<T>(ua - ub);
    case OpKind::IMul: return static_cast<T>(static_cast<uint64_t>(ua) * ub);
    case OpKind::SDiv: return b == 0 ? T(0) : b == -1 ? static_cast<T>(U(0) - ua) : static_cast<T>(a / b);
    case OpKind::UDiv: return ub == 0 ? T(0) : static_cast<T>(ua / ub);
    case OpKind::SRem: return b == 0 || b == -1 ? T(0) : static_cast<T>(a % b);
    case OpKind::URem: return ub == 0 ? T(0) : static_cast<T>(ua % ub);
    case OpKind::And: return a & b;
    case OpKind::Or: return a | b;
    case OpKind::Xor: return a ^ b;
    case OpKind::Shl:
      return ub >= bits ? T(0) : static_cast<T>(static_cast<U>(static_cast<uint64_t>(ua) << ub));
    case OpKind::LShr: return ub >= bits ? T(0) : static_cast<T>(ua >> ub);
    case OpKind::AShr: return static_cast<T>(a >> (ub >= bits ? bits - 1 : ub));
    case OpKind::SMin: return a < b ? a : b;
    case OpKind::SMax: return a > b ? a : b;
    case OpKind::UMin: return ua < ub ? a : b;
    case OpKind::UMax: return ua > ub ? a : b;
    case OpKind::CtPop: return static_cast<T>(std::popcount(ua));
    default: FAIL("no reference"); return 0;
    }
  }
};

static constexpr OpKind kinds[] = {OpKind::IAdd, OpKind::ISub, OpKind::IMul, OpKind::SDiv, OpKind::UDiv,
                                   OpKind::SRem, OpKind::URem, OpKind::And,  OpKind::Or,   OpKind::Xor,
                                   OpKind::Shl,  OpKind::LShr, OpKind::AShr, OpKind::SMin, OpKind::SMax,
                                   OpKind::UMin, OpKind::UMax, OpKind::CtPop};

template <class T> static void check(const Machine& target, Scalar scalar, int lanes) {
  using L = std::numeric_limits<T>;
  std::vector<T> numbers = {0,  1,  -1, 2,   3,  7,        8,        31,
                            32, 63, 64, 100, -7, L::max(), L::min(), static_cast<T>(L::max() / 3)};
  std::vector<T> a, b;
  for (T x : numbers)
    for (T y : numbers) a.push_back(x), b.push_back(y);
  static constexpr int64_t divisors[] = {1, -1, 7, 16, -3};
  auto results = run_ops(target, lanes, {scalar, scalar}, {bytes_of(a), bytes_of(b)}, scalar,
                         [&](Builder& builder, const std::vector<Register>& v) {
                           std::vector<Register> out;
                           for (OpKind kind : kinds) {
                             out.push_back(kind == OpKind::CtPop ? builder.unary(kind, v[0])
                                                                 : builder.binary(kind, v[0], v[1]));
                           }
                           for (int64_t divisor : divisors) {
                             Register constant = builder.constant_int({scalar, lanes}, divisor);
                             out.push_back(builder.binary(OpKind::SDiv, v[0], constant));
                             out.push_back(builder.binary(OpKind::URem, v[0], constant));
                           }
                           return out;
                         });
  auto expect = [&](size_t result, OpKind kind, size_t i, T left, T right) {
    T got = numbers_of<T>(results[result])[i], want = Reference<T>::run(kind, left, right);
    if (got == want) return;
    FAIL(op_kind_info(kind).mnemonic << "(" << +left << ", " << +right << ") = " << +got << ", wanted "
                                     << +want << " in " << scalar_name(scalar) << " on " << target.processor
                                     << ", " << lanes << " lanes");
  };
  for (size_t i = 0; i < a.size(); ++i) {
    size_t result = 0;
    for (OpKind kind : kinds) expect(result++, kind, i, a[i], b[i]);
    for (int64_t divisor : divisors) {
      expect(result++, OpKind::SDiv, i, a[i], static_cast<T>(divisor));
      expect(result++, OpKind::URem, i, a[i], static_cast<T>(divisor));
    }
  }
}

TEST_CASE("integer ops", "[ops]") {
  for (const Machine& target : runnable_targets()) {
    for (int lanes : {1, 16}) {
      check<int8_t>(target, Scalar::I8, lanes);
      check<int16_t>(target, Scalar::I16, lanes);
      check<int32_t>(target, Scalar::I32, lanes);
      check<int64_t>(target, Scalar::I64, lanes);
    }
  }
}

TEST_CASE("integer compares are signed or unsigned as told", "[ops]") {
  std::vector<int32_t> numbers = {0, 1, -1, INT32_MAX, INT32_MIN, 5, -5, 77}, a, b;
  for (int32_t x : numbers)
    for (int32_t y : numbers) a.push_back(x), b.push_back(y);
  for (const Machine& target : runnable_targets()) {
    auto results =
        run_ops(target, 8, {Scalar::I32, Scalar::I32}, {bytes_of(a), bytes_of(b)}, Scalar::I32,
                [&](Builder& builder, const std::vector<Register>& v) {
                  std::vector<Register> out;
                  for (OpKind kind : {OpKind::SCmp, OpKind::UCmp}) {
                    for (Predicate p : {Predicate::Eq, Predicate::Ne, Predicate::Lt, Predicate::Le,
                                        Predicate::Gt, Predicate::Ge}) {
                      out.push_back(builder.select(builder.compare(kind, p, v[0], v[1]), v[0], v[1]));
                    }
                  }
                  return out;
                });
    for (size_t i = 0; i < a.size(); ++i) {
      uint32_t x = static_cast<uint32_t>(a[i]), y = static_cast<uint32_t>(b[i]);
      bool want[] = {a[i] == b[i],      a[i] != b[i], a[i]<b[i], a[i] <= b[i], a[i]> b[i],
                     a[i] >= b[i],      x == y,       x != y,
                     x<y, x <= y, x> y, x >= y};
      for (size_t p = 0; p < 12; ++p) {
        if (numbers_of<int32_t>(results[p])[i] != (want[p] ? a[i] : b[i]))
          FAIL("compare " << p << " of " << a[i] << " and " << b[i]);
      }
    }
  }
}

} // namespace firn::test
