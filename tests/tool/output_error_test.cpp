// The error of outputs over several runs: figures worked out by hand.
#include "compiler/driver/tensor_error.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace firn;

namespace {

LiteralRef floats(const std::vector<float>& values) {
  return Literal::of(DType::F32, {static_cast<int64_t>(values.size())}, values);
}

} // namespace

TEST_CASE("runs add up to the largest difference and to the root of the mean square") {
  driver::OutputError error;
  error.add(*floats({1, -2.5f}), *floats({1, -2}));
  error.add(*floats({3, 4}), *floats({3, 5}));
  CHECK(error.type == "f32[2]");
  CHECK(error.elements == 4);
  CHECK(error.unlike == 0);
  CHECK(error.largest == 1);
  CHECK(error.relative() == Approx(1.0 / 5));
  CHECK(error.rms() == Approx(std::sqrt((0.25 + 1) / 4)));
  CHECK(error.expected_rms() == Approx(std::sqrt((1 + 4 + 9 + 25) / 4.0)));
}

TEST_CASE("numbers of which one is not finite are counted, equal ones are not") {
  driver::OutputError error;
  error.add(*floats({NAN, INFINITY, -INFINITY, 1, INFINITY, 2}),
            *floats({NAN, INFINITY, INFINITY, NAN, 1, 2}));
  CHECK(error.unlike == 3);
  CHECK(error.largest == 0);
  CHECK(std::isinf(error.relative()));
}

TEST_CASE("integers and strings differ or do not, and are no numbers with an error") {
  driver::OutputError error;
  error.add(*Literal::of_i64({1, 2, 3}), *Literal::of_i64({1, 9, 3}));
  CHECK(error.unlike == 1);
  CHECK(error.elements == 3);
  CHECK(error.relative() == 0);
  driver::OutputError words;
  words.add(*Literal::strings({2}, {"a", "b"}), *Literal::strings({2}, {"a", "c"}));
  CHECK(words.unlike == 1);
}

TEST_CASE("integers without a sign are told without one") {
  std::string why;
  std::vector<int64_t> first{1, -2}, second{1, -1};
  CHECK(std::isinf(driver::tensor_error(*Literal::of(DType::U64, {2}, first),
                                        *Literal::of(DType::U64, {2}, second), why)));
  CHECK(why == "element 1 is 18446744073709551614, expected 18446744073709551615");
}

TEST_CASE("both parts of complex numbers count, and tensors of other shapes differ in every element") {
  driver::OutputError error;
  Literal got(DType::C64, {1}), want(DType::C64, {1});
  want.mutable_data<float>()[1] = 2;
  error.add(got, want);
  CHECK(error.elements == 2);
  CHECK(error.largest == 2);
  driver::OutputError other;
  other.add(*floats({1}), *floats({1, 2}));
  CHECK(other.unlike == 2);
  other.add(*floats({1}), *floats({}));
  CHECK(other.unlike == 3);
}
