// Views: addressing with static and dynamic extents, rows, packed elements, argmax.
#include "firn/model.h"

#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <ranges>
#include <span>
#include <vector>

TEST_CASE("a static view is as small as a pointer and addresses in row-major order") {
  float data[24];
  std::iota(data, data + 24, 0.0f);
  const firn::View<float, 2, 3, 4> view(data);
  static_assert(sizeof view == sizeof(float*));
  CHECK(view(1, 2, 3) == 23.0f);
  CHECK(view[1][0](2) == 14.0f);
  CHECK(view[1][2][3] == 23.0f);
  CHECK(view.size() == 24);
  CHECK(view.size_bytes() == 96);
  CHECK(view.extent(1) == 3);
  view(0, 0, 1) = 100.0f;
  CHECK(data[1] == 100.0f);
  const std::span<float> span(view);
  CHECK(span.size() == 24);
  const firn::View<const float, 2, 3, 4> constant = view;
  CHECK(&constant(1, 1, 1) == &view(1, 1, 1));
}

TEST_CASE("a temporary view makes a span, because its elements outlive it") {
  float data[6] = {};
  const auto tensor = [&] { return firn::View<float, 2, 3>(data); };
  const std::span<float> span = tensor();
  const std::span<const float> constant = tensor();
  const std::span<float, 6> whole(tensor());
  CHECK((span.data() == data && constant.data() == data && whole.data() == data));
  const std::span<float> rows = firn::View<float, firn::dynamic, 3>(data, 1);
  CHECK(rows.size() == 3);
  static_assert(std::ranges::view<firn::View<float, 2, 3>>);
  static_assert(std::ranges::borrowed_range<firn::View<float, firn::dynamic>>);
}

TEST_CASE("dynamic extents come with the pointer") {
  float data[24];
  std::iota(data, data + 24, 0.0f);
  const firn::View<float, firn::dynamic, 3, firn::dynamic> view(data, 2, 4);
  CHECK(view(1, 2, 3) == 23.0f);
  CHECK(view[1](0, 2) == 14.0f);
  CHECK(view[1].extent(1) == 4);
  CHECK(view.size() == 24);
  const firn::View<const float, firn::dynamic, 3, firn::dynamic> constant = view;
  CHECK(constant.extent(0) == 2);
  CHECK(constant(1, 0, 0) == 12.0f);
}

TEST_CASE("a scalar is a view without indices") {
  float value = 3.0f;
  const firn::View<float> view(&value);
  CHECK(view() == 3.0f);
  CHECK(view.size() == 1);
}

TEST_CASE("packed elements are read and written low bits first") {
  unsigned char bytes[3] = {0x21, 0xf8, 0xab};
  const firn::PackedView<firn::int4, 2, 3> view(bytes);
  CHECK(view(0, 0) == 1);
  CHECK(view(0, 1) == 2);
  CHECK(view(0, 2) == -8);
  CHECK(view(1, 0) == -1);
  view(1, 0) = 7;
  CHECK(bytes[1] == 0x78);
  view(0, 0) = view(0, 1);
  CHECK(bytes[0] == 0x22);
  CHECK(view.size_bytes() == 3);
  const firn::PackedView<const firn::uint2, 5> crumbs(bytes);
  CHECK(crumbs(4) == 0);
  CHECK(crumbs(0) == 2);
  CHECK(crumbs.size_bytes() == 2);
}

TEST_CASE("argmax is the first largest and passes over NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float data[5] = {nan, 1.0f, 3.0f, nan, 3.0f};
  CHECK(firn::argmax(firn::View<const float, 5>(data)) == 2);
  firn::half halves[3] = {1.0f, 2.0f, 0.5f};
  CHECK(firn::argmax(firn::View<firn::half, 3>(halves)) == 1);
}

TEST_CASE("byte spans take arrays and containers") {
  std::vector<float> floats(3);
  int ints[4] = {};
  CHECK(firn::ByteSpan(floats).size() == 12);
  CHECK(firn::ByteSpan(ints).size() == 16);
  CHECK(firn::ConstByteSpan(std::span<const float>(floats)).size() == 12);
}
