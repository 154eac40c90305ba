// Numbers of fixed point to and from floats, beside the count of their bits as a number of the same code.
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

namespace firn::test {

using namespace kernel;

namespace {

// Puts `number` into the first lane, so that a general register holds it.
Register with_number(Builder& b, Register vector, int64_t number) {
  if (b.type(vector).lanes == 1) return vector;
  return b.insert(vector, b.constant_int({b.type(vector).scalar, 1}, number), 0);
}

Register times_power(Builder& b, Register value, int exponent) {
  return b.binary(OpKind::FMul, value, b.constant(b.type(value), std::ldexp(1.0, exponent)));
}

template <class I> void check_words_to_floats(const Machine& target, int lanes, int bits) {
  const std::vector<I> words = {0,
                                1,
                                static_cast<I>(-1),
                                I{1} << 30,
                                1000,
                                16777217,
                                std::numeric_limits<I>::max(),
                                std::numeric_limits<I>::min(),
                                33554431,
                                static_cast<I>(-77),
                                5,
                                static_cast<I>(0x80000001U),
                                2147483520,
                                1234567891,
                                I{3} << 28,
                                static_cast<I>(-1234567891)};
  const OpKind kind = std::is_signed_v<I> ? OpKind::SIToF : OpKind::UIToF;
  const auto results =
      run_ops(target, lanes, {Scalar::I32}, {bytes_of(words)}, Scalar::F32,
              [&](Builder& b, const std::vector<Register>& v) {
                Register number = with_number(b, v[0], bits);
                return std::vector<Register>{times_power(b, b.cast(kind, number, Scalar::F32), -bits)};
              });
  const auto got = numbers_of<float>(results[0]);
  for (size_t i = 0; i < words.size(); ++i) {
    const bool is_count = lanes > 1 && i % static_cast<size_t>(lanes) == 0;
    const float want = std::ldexp(static_cast<float>(is_count ? static_cast<I>(bits) : words[i]), -bits);
    if (got[i] != want)
      FAIL(words[i] << " with " << bits << " bits behind the point gave " << got[i] << ", wanted " << want
                    << " on " << target.processor << ", " << lanes << " lanes");
  }
}

template <class I> void check_floats_to_integers(const Machine& target, int lanes, int bits, Scalar to) {
  const std::vector<float> floats = {0,     0.5F,   -0.5F, 1.25F, 0.001F, -0.3F, 3e-6F,    -3e-6F,
                                     1e20F, -1e20F, 0.99F, 0.03F, -1,     2.75F, INFINITY, NAN};
  using L = std::numeric_limits<I>;
  const OpKind kind = L::is_signed ? OpKind::FToSISat : OpKind::FToUISat;
  const auto results = run_ops(target, lanes, {Scalar::F32}, {bytes_of(floats)}, to,
                               [&](Builder& b, const std::vector<Register>& v) {
                                 Register integer = b.cast(kind, times_power(b, v[0], bits), to);
                                 return std::vector<Register>{with_number(b, integer, bits)};
                               });
  const auto got = numbers_of<I>(results[0]);
  for (size_t i = 0; i < floats.size(); ++i) {
    const double number = std::trunc(std::ldexp(static_cast<double>(floats[i]), bits));
    const bool is_count = lanes > 1 && i % static_cast<size_t>(lanes) == 0;
    const I want = is_count             ? static_cast<I>(bits)
                   : std::isnan(number) ? I{0}
                   : number >= L::max() ? L::max()
                   : number <= L::min() ? L::min()
                                        : static_cast<I>(number);
    if (got[i] != want)
      FAIL(floats[i] << " with " << bits << " bits behind the point gave " << +got[i] << ", wanted " << +want
                     << " on " << target.processor << ", " << lanes << " lanes");
  }
}

} // namespace

TEST_CASE("words with bits behind the point become floats", "[ops]") {
  for (const Machine& target : runnable_targets())
    for (int lanes : {1, 4, 16})
      for (int bits : {1, 10, 30, 32, 33})
        if (target.cpu.has_float) {
          check_words_to_floats<int32_t>(target, lanes, bits);
          check_words_to_floats<uint32_t>(target, lanes, bits);
        }
}

TEST_CASE("floats become integers with bits behind the point", "[ops]") {
  for (const Machine& target : runnable_targets())
    for (int lanes : {1, 4, 16})
      for (int bits : {1, 6, 31, 33})
        if (target.cpu.has_float) {
          check_floats_to_integers<int32_t>(target, lanes, bits, Scalar::I32);
          check_floats_to_integers<uint32_t>(target, lanes, bits, Scalar::I32);
          check_floats_to_integers<int16_t>(target, lanes, bits, Scalar::I16);
          check_floats_to_integers<uint8_t>(target, lanes, bits, Scalar::I8);
        }
}

} // namespace firn::test
