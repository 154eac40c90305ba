// Conversions between all types, against exact references; every 16-bit float is tried.
#include "tests/codegen/narrow_floats.h"
#include "tests/codegen/op_runner.h"

#include "compiler/target/strict_floats.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace firn::test {

using namespace kernel;

TEST_CASE("every 16-bit float widens exactly", "[ops]") {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (HalfKind kind : half_kinds) {
      for (int lanes : {1, 16}) {
        auto got =
            numbers_of<float>(run_ops(target, lanes, {kind.scalar}, {bytes_of(all)}, Scalar::F32,
                                      [](Builder& b, const std::vector<Register>& v) {
                                        return std::vector<Register>{b.cast(OpKind::FExt, v[0], Scalar::F32)};
                                      })[0]);
        for (size_t i = 0; i < all.size(); ++i) {
          double want = decode(all[i], kind.mantissa_bits);
          bool good = std::isnan(want) ? std::isnan(got[i])
                                       : got[i] == want && std::signbit(got[i]) == std::signbit(want);
          if (!good)
            FAIL(scalar_name(kind.scalar)
                 << " " << i << " gave " << got[i] << ", wanted " << want << " on " << target.processor);
        }
      }
    }
  }
}

// Numbers at and around every rounding boundary of the format.
template <class T> static std::vector<T> boundaries(int mantissa_bits) {
  std::vector<T> numbers = {T(0),
                            T(-0.0),
                            T(INFINITY),
                            T(-INFINITY),
                            T(NAN),
                            std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::denorm_min(),
                            T(65519.996),
                            T(65520),
                            T(65536),
                            T(1e-30)};
  for (uint32_t bits = 0; bits < 0x7f80; bits += bits < 40 ? 1 : 97) {
    double low = decode(static_cast<uint16_t>(bits), mantissa_bits),
           high = decode(static_cast<uint16_t>(bits + 1), mantissa_bits);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    T middle = static_cast<T>((low + high) / 2);
    for (T x :
         {static_cast<T>(low), middle, std::nextafter(middle, T(0)), std::nextafter(middle, T(INFINITY))}) {
      numbers.push_back(x), numbers.push_back(-x);
    }
  }
  while (numbers.size() % 16) numbers.push_back(T(1));
  return numbers;
}

template <class T>
static void check_narrowing(const Machine& target, Scalar from, HalfKind kind, int lanes,
                            bool flushes_bf16 = false) {
  std::vector<T> numbers = boundaries<T>(kind.mantissa_bits);
  // Subnormal numbers may become zeros or stay, so they are left out.
  for (T& number : numbers)
    if (flushes_bf16 && std::fpclassify(number) == FP_SUBNORMAL) number = T(1);
  auto got = numbers_of<uint16_t>(run_ops(
      target, lanes, {from}, {bytes_of(numbers)}, kind.scalar,
      [&](Builder& b, const std::vector<Register>& v) {
        return std::vector<Register>{b.cast(OpKind::FTruncTo, v[0], kind.scalar)};
      },
      flushes_bf16)[0]);
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint16_t want = encode(static_cast<double>(numbers[i]), kind.mantissa_bits);
    bool good =
        is_nan_bits(want, kind.mantissa_bits) ? is_nan_bits(got[i], kind.mantissa_bits) : got[i] == want;
    if (!good) {
      FAIL(scalar_name(from) << " " << numbers[i] << " to " << scalar_name(kind.scalar) << " gave " << got[i]
                             << ", wanted " << want << " on " << target.processor << ", " << lanes
                             << " lanes");
    }
  }
}

TEST_CASE("narrowing to 16-bit floats rounds once, to nearest even", "[ops]") {
  for (const Machine& target : runnable_targets()) {
    for (HalfKind kind : half_kinds) {
      for (int lanes : {1, 16}) {
        if (target.cpu.has_float) check_narrowing<float>(target, Scalar::F32, kind, lanes);
        if (target.cpu.has_double) check_narrowing<double>(target, Scalar::F64, kind, lanes);
      }
    }
  }
}

TEST_CASE("narrowing to bf16 by the CPU's own instruction rounds alike, but for subnormal numbers", "[ops]") {
  for (const Machine& target : runnable_targets())
    for (HalfKind kind : half_kinds)
      for (int lanes : {1, 8, 16})
        if (target.cpu.has_float && kind.scalar == Scalar::BF16)
          check_narrowing<float>(target, Scalar::F32, kind, lanes, /*flushes_bf16=*/true);
}

TEST_CASE("arithmetic of 16-bit floats rounds each result", "[ops]") {
  std::vector<uint16_t> a, b;
  for (uint32_t i = 0; i < 64; ++i)
    for (uint32_t j = 0; j < 64; ++j)
      a.push_back(static_cast<uint16_t>(i * 1021)), b.push_back(static_cast<uint16_t>(j * 1019 + 7));
  for (const Machine& target : runnable_targets()) {
    if (!target.cpu.has_float) continue;
    for (HalfKind kind : half_kinds) {
      // Subnormal numbers of bf16 are those of f32.
      if (kind.scalar == Scalar::BF16 && vectors_flush_subnormals(target)) continue;
      auto results = run_ops(target, 16, {kind.scalar, kind.scalar}, {bytes_of(a), bytes_of(b)}, kind.scalar,
                             [](Builder& builder, const std::vector<Register>& v) {
                               return std::vector<Register>{builder.binary(OpKind::FAdd, v[0], v[1]),
                                                            builder.binary(OpKind::FMul, v[0], v[1]),
                                                            builder.binary(OpKind::FDiv, v[0], v[1])};
                             });
      for (size_t i = 0; i < a.size(); ++i) {
        double x = decode(a[i], kind.mantissa_bits), y = decode(b[i], kind.mantissa_bits);
        double wants[] = {x + y, x * y, x / y};
        for (size_t r = 0; r < 3; ++r) {
          uint16_t got = numbers_of<uint16_t>(results[r])[i], want = encode(wants[r], kind.mantissa_bits);
          bool good =
              is_nan_bits(want, kind.mantissa_bits) ? is_nan_bits(got, kind.mantissa_bits) : got == want;
          if (!good)
            FAIL("op " << r << " of " << x << ", " << y << " gave " << got << ", wanted " << want << " on "
                       << target.processor);
        }
      }
    }
  }
}

template <class F> static std::vector<F> edge_floats() {
  std::vector<F> numbers = {0,
                            F(-0.0),
                            F(0.9),
                            F(-0.9),
                            1,
                            -1,
                            F(127.5),
                            F(128),
                            F(-128.9),
                            F(-129),
                            255,
                            256,
                            F(32767.9),
                            32768,
                            F(2147483520.0),
                            F(2147483648.0),
                            F(-2147483648.0),
                            F(4294967040.0),
                            F(4294967296.0),
                            F(9.2233715e18),
                            F(9.2233720368547758e18),
                            F(-9.2233720368547758e18),
                            F(1.8446743e19),
                            F(1.8446744073709552e19),
                            F(1e30),
                            F(-1e30),
                            F(INFINITY),
                            F(-INFINITY),
                            F(NAN),
                            F(1e-40),
                            F(123456.7),
                            F(-77777.7)};
  return numbers;
}

template <class I, class F> static I saturate(F value) {
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(F(1), std::numeric_limits<I>::digits)) return std::numeric_limits<I>::max();
  if (value <= static_cast<F>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  return static_cast<I>(value);
}

template <class I, class F>
static void check_float_to_integer(const Machine& target, Scalar from, Scalar to, int lanes) {
  std::vector<F> numbers = edge_floats<F>();
  bool is_signed = std::is_signed_v<I>;
  auto results = run_ops(
      target, lanes, {from}, {bytes_of(numbers)}, to, [&](Builder& b, const std::vector<Register>& v) {
        return std::vector<Register>{b.cast(is_signed ? OpKind::FToSISat : OpKind::FToUISat, v[0], to),
                                     b.cast(is_signed ? OpKind::FToSI : OpKind::FToUI, v[0], to)};
      });
  for (size_t i = 0; i < numbers.size(); ++i) {
    I want = saturate<I>(numbers[i]), got = numbers_of<I>(results[0])[i],
      plain = numbers_of<I>(results[1])[i];
    // Truncation without saturation is only defined if the number fits.
    bool fits = !std::isnan(numbers[i]) && std::trunc(numbers[i]) == static_cast<F>(want) &&
                numbers[i] < std::ldexp(F(1), std::numeric_limits<I>::digits);
    if (got != want || (fits && plain != want)) {
      FAIL(numbers[i] << " of " << scalar_name(from) << " to " << scalar_name(to) << " gave " << +got
                      << " and " << +plain << ", wanted " << +want << " on " << target.processor << ", "
                      << lanes << " lanes");
    }
  }
}

template <class F> static void check_all_to_integer(const Machine& target, Scalar from, int lanes) {
  check_float_to_integer<int8_t, F>(target, from, Scalar::I8, lanes);
  check_float_to_integer<uint8_t, F>(target, from, Scalar::I8, lanes);
  check_float_to_integer<int16_t, F>(target, from, Scalar::I16, lanes);
  check_float_to_integer<int32_t, F>(target, from, Scalar::I32, lanes);
  check_float_to_integer<uint32_t, F>(target, from, Scalar::I32, lanes);
  check_float_to_integer<int64_t, F>(target, from, Scalar::I64, lanes);
  check_float_to_integer<uint64_t, F>(target, from, Scalar::I64, lanes);
}

TEST_CASE("floats to integers truncate, and saturate where asked", "[ops]") {
  for (const Machine& target : runnable_targets()) {
    for (int lanes : {1, 16}) {
      if (target.cpu.has_float) check_all_to_integer<float>(target, Scalar::F32, lanes);
      if (target.cpu.has_double) check_all_to_integer<double>(target, Scalar::F64, lanes);
    }
  }
}

template <class I, class F>
static void check_integer_to_float(const Machine& target, Scalar from, Scalar to, int lanes) {
  using L = std::numeric_limits<I>;
  std::vector<I> numbers = {0,
                            1,
                            2,
                            3,
                            100,
                            L::max(),
                            L::min(),
                            static_cast<I>(L::max() / 2),
                            static_cast<I>(L::max() - 1),
                            static_cast<I>(L::min() + 1),
                            static_cast<I>(-1),
                            static_cast<I>(16777217),
                            static_cast<I>(16777219),
                            static_cast<I>(33554431),
                            static_cast<I>(9007199254740993),
                            static_cast<I>(0x8000004000000001)};
  auto got = numbers_of<F>(run_ops(
      target, lanes, {from}, {bytes_of(numbers)}, to, [&](Builder& b, const std::vector<Register>& v) {
        return std::vector<Register>{b.cast(std::is_signed_v<I> ? OpKind::SIToF : OpKind::UIToF, v[0], to)};
      })[0]);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (got[i] != static_cast<F>(numbers[i])) {
      FAIL(+numbers[i] << " of " << scalar_name(from) << " to " << scalar_name(to) << " gave " << got[i]
                       << " on " << target.processor);
    }
  }
}

template <class F> static void check_all_to_float(const Machine& target, Scalar to, int lanes) {
  check_integer_to_float<int8_t, F>(target, Scalar::I8, to, lanes);
  check_integer_to_float<uint8_t, F>(target, Scalar::I8, to, lanes);
  check_integer_to_float<int32_t, F>(target, Scalar::I32, to, lanes);
  check_integer_to_float<uint32_t, F>(target, Scalar::I32, to, lanes);
  check_integer_to_float<int64_t, F>(target, Scalar::I64, to, lanes);
  check_integer_to_float<uint64_t, F>(target, Scalar::I64, to, lanes);
}

TEST_CASE("integers to floats round to nearest even", "[ops]") {
  for (const Machine& target : runnable_targets()) {
    for (int lanes : {1, 16}) {
      if (target.cpu.has_float) check_all_to_float<float>(target, Scalar::F32, lanes);
      if (target.cpu.has_double) check_all_to_float<double>(target, Scalar::F64, lanes);
    }
  }
}

TEST_CASE("integers widen, narrow and change kind", "[ops]") {
  std::vector<int16_t> numbers = {0,    1,     -1,     127, 128, 255,  256,   -128,
                                  -129, 32767, -32768, 77,  -77, 1000, -1000, 5};
  for (const Machine& target : runnable_targets()) {
    for (int lanes : {1, 16}) {
      auto results = run_ops(
          target, lanes, {Scalar::I16}, {bytes_of(numbers)}, Scalar::I64,
          [&](Builder& b, const std::vector<Register>& v) {
            Register byte = b.cast(OpKind::Trunc, v[0], Scalar::I8);
            Register bit = b.compare(OpKind::SCmp, Predicate::Gt, v[0], b.constant_int(b.type(v[0]), 100));
            std::vector<Register> out = {
                b.cast(OpKind::SExt, v[0], Scalar::I64), b.cast(OpKind::ZExt, v[0], Scalar::I64),
                b.cast(OpKind::SExt, byte, Scalar::I64), b.cast(OpKind::ZExt, byte, Scalar::I64),
                b.cast(OpKind::SExt, bit, Scalar::I64),  b.cast(OpKind::ZExt, bit, Scalar::I64)};
            if (b.type(v[0]).lanes == 1)
              out.push_back(
                  b.cast(OpKind::IndexCast, b.cast(OpKind::IndexCast, v[0], Scalar::Index), Scalar::I64));
            else
              out.push_back(out[0]);
            return out;
          });
      for (size_t i = 0; i < numbers.size(); ++i) {
        int64_t n = numbers[i];
        int64_t want[] = {n,
                          static_cast<uint16_t>(n),
                          static_cast<int8_t>(n),
                          static_cast<uint8_t>(n),
                          n > 100 ? -1 : 0,
                          n > 100,
                          n};
        for (size_t r = 0; r < 7; ++r) CHECK(numbers_of<int64_t>(results[r])[i] == want[r]);
      }
    }
  }
}

// The integers that `narrow` gives, sign-extended from `to`.
static std::vector<int64_t> integers_of(Scalar to, const std::vector<char>& bytes) {
  std::vector<int64_t> integers;
  auto add = [&](const auto& values) { integers.assign(values.begin(), values.end()); };
  if (to == Scalar::I8) add(numbers_of<int8_t>(bytes));
  if (to == Scalar::I16) add(numbers_of<int16_t>(bytes));
  if (to == Scalar::I32) add(numbers_of<int32_t>(bytes));
  return integers;
}

TEST_CASE("narrow rounds floats to even, moves them by a zero point and saturates", "[ops]") {
  std::vector<float> numbers = {0,       -0.0F,  0.5F, 1.5F,   2.5F, -0.5F,  -1.5F, 126.5F,
                                127.4F,  127.5F, 128,  254.5F, 255,  255.5F, 256,   -127.5F,
                                -128.5F, -129,   1e9F, -1e9F,  3e9F, -3e9F,  1e30F, -1e30F};
  for (float sign : {1.0F, -1.0F}) numbers.push_back(sign * std::numeric_limits<float>::infinity());
  numbers.push_back(std::numeric_limits<float>::quiet_NaN());
  while (numbers.size() < 176) numbers.push_back(0.5F * static_cast<float>(numbers.size()) - 40);
  // Numbers for an op that is promised ordinary ones.
  std::vector<float> ordinary = numbers;
  for (float& number : ordinary)
    if (!(std::abs(number) <= kMaxBounded)) number = 0;
  struct Range {
    Scalar to;
    int low, high, zero;
  };
  for (const Machine& target : runnable_targets())
    for (Range range : {Range{Scalar::I8, 0, 255, 0},
                        {Scalar::I8, 0, 255, 131},
                        {Scalar::I8, 0, 255, 255},
                        {Scalar::I8, -128, 127, 0},
                        {Scalar::I8, -128, 127, 5},
                        {Scalar::I8, -128, 127, -128},
                        {Scalar::I8, -128, 127, -3},
                        {Scalar::I8, 0, 127, 0},
                        {Scalar::I8, 9, 230, 9},
                        {Scalar::I16, 0, 255, 77},
                        {Scalar::I16, -128, 127, 5},
                        {Scalar::I16, 0, 65535, 32768},
                        {Scalar::I16, -32768, 32767, 0},
                        {Scalar::I32, 0, 255, 3},
                        {Scalar::I32, -8388608, 8388607, -1}})
      // Vectors are narrowed one after the other, and several beside each other are narrowed together.
      for (auto [lanes, unroll, bounded] :
           {std::tuple{1, 1, false}, {1, 1, true}, {16, 1, false}, {16, 1, true}, {16, 5, false}}) {
        if (!target.cpu.has_float) continue;
        const std::vector<float>& given = bounded ? ordinary : numbers;
        auto emit = [&, lanes = lanes, bounded = bounded](Builder& b, const std::vector<Register>& v) {
          std::vector<Register> narrowed;
          for (Register number : {v[0], b.unary(OpKind::FNeg, v[0])})
            narrowed.push_back(b.narrow(number, range.to, range.low, range.high, range.zero, bounded));
          return narrowed;
        };
        auto results = run_ops(target, lanes, {Scalar::F32}, {bytes_of(given)}, range.to, emit,
                               /*flushes_bf16=*/false, unroll);
        for (size_t r = 0; r < 2; ++r) {
          std::vector<int64_t> got = integers_of(range.to, results[r]);
          const int64_t bits = 8 * scalar_bytes(range.to), mask = (int64_t{1} << bits) - 1;
          for (size_t i = 0; i < given.size(); ++i) {
            double number = r == 0 ? given[i] : -given[i];
            double inside = std::clamp<double>(number, range.low - range.zero, range.high - range.zero);
            int64_t want = static_cast<int64_t>(std::nearbyint(inside)) + range.zero;
            if (std::isnan(number)) want = range.low;
            INFO(target.processor << ", " << lanes << " lanes, " << unroll << " times, " << number << " to "
                                  << bits << " bits, in " << range.low << ".." << range.high << " from "
                                  << range.zero);
            CHECK((got[i] & mask) == (want & mask));
          }
        }
      }
}

// Rows of bytes beside each other; `pattern`: how they may lie over the operand, none if they lie apart.
static std::string narrowing_code(Overwriting pattern) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "narrowing";
  Builder b(*kernel);
  int in = b.add_parameter("in", Scalar::I8, 1024, false, 64);
  int out = b.add_parameter("out", Scalar::I8, 1024, true, 64);
  if (pattern != Overwriting::None) kernel->in_place.push_back({out, in, pattern, 0});
  b.loop(
      0, 1024, 16,
      [&](const IntExpr& i) {
        MachineType real{Scalar::F32, 16};
        Register number = b.cast(OpKind::UIToF, b.load({Scalar::I8, 16}, in, i), Scalar::F32);
        Register scaled = b.binary(OpKind::FMul, number, b.constant(real, 1.5));
        b.store(b.narrow(scaled, Scalar::I8, 0, 255, 0), out, i);
      },
      4);
  auto text = codegen::emit_assembly(program_of(std::move(kernel)),
                                     options_for(target_of("x86_64-linux-gnu", "x86-64-v4")));
  REQUIRE(text);
  return *text;
}

TEST_CASE("bytes of four vectors are narrowed together and stored at once", "[ops]") {
  for (Overwriting pattern :
       {Overwriting::None, Overwriting::Pointwise, Overwriting::RowWise, Overwriting::Sliding}) {
    std::string text = narrowing_code(pattern);
    INFO(overwriting_name(pattern) << "\n" << text);
    auto count = [&](const char* part) {
      int found = 0;
      for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
      return found;
    };
    // Stores are not joined if a load between them may read what one of them writes.
    bool waits = pattern == Overwriting::None || pattern == Overwriting::Pointwise;
    CHECK(count("vpmovusdb") == (waits ? 0 : 4));
    CHECK(count("vpackssdw") == (waits ? 2 : 0));
    CHECK(count("vpackuswb") == (waits ? 1 : 0));
  }
}

} // namespace firn::test
