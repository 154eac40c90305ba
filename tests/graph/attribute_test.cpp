// The attribute dictionary and windows. The text form of every kind is in text/names_and_attributes.hlo.
#include "compiler/graph/attribute.h"

#include <catch2/catch.hpp>

namespace firn {
namespace {

TEST_CASE("attributes are sorted, found and replaced by name") {
  Attributes attributes{{"stride", int64_t{2}}, {"axis", int64_t{1}}};
  attributes.set("mode", Word{"edge"});
  attributes.set("axis", int64_t{3});
  CHECK(attributes.to_string() == "{axis = 3, mode = edge, stride = 2}");
  CHECK(attributes.integer("axis") == 3);
  CHECK(attributes.integer("missing", 7) == 7);
  CHECK(attributes.word("mode") == "edge");
  CHECK(attributes.word("missing", "none") == "none");
  CHECK_FALSE(attributes.flag("missing"));
  attributes.erase("mode");
  CHECK_FALSE(attributes.has("mode"));
  CHECK(Attributes().to_string().empty());
}

TEST_CASE("equality is independent of insertion order") {
  Attributes a{{"x", int64_t{1}}, {"y", true}}, b{{"y", true}, {"x", int64_t{1}}};
  CHECK(a == b);
  b.set("x", 1.0);
  CHECK_FALSE(a == b);
}

TEST_CASE("doubles print so that they differ from integers") {
  Attributes attributes{{"whole", 2.0}, {"large", 1e22}, {"integer", int64_t{2}}};
  CHECK(attributes.to_string() == "{integer = 2, large = 1e+22, whole = 2.0}");
}

TEST_CASE("windows print what is not at its default") {
  Window window{{{3, 2, 1, 1, 1, 1}, {5, 1, 0, -1, 2, 1}}};
  CHECK(window.to_string() == "3x5 pad 1_1x0_-1 stride 2x1 dilate 1x2");
  CHECK(Window{{{1}, {1}}}.to_string() == "1x1");
}

TEST_CASE("a window's positions") {
  CHECK(WindowDim{.size = 3}.output_size(5) == 3);
  CHECK(WindowDim{.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1}.output_size(5) == 3);
  CHECK(WindowDim{.size = 3, .dilation = 2}.output_size(5) == 1);
  CHECK(WindowDim{.size = 3, .dilation = 2}.output_size(4) == 0);
  CHECK(WindowDim{.size = 2, .input_dilation = 2}.output_size(3) == 4);
  CHECK(WindowDim{.size = 1, .pad_low = -2}.output_size(3) == 1);
  CHECK(WindowDim{.size = 3}.output_size(0) == 0);
}

} // namespace
} // namespace firn
