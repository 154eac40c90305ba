// Winograd's matrices and the guard on their accuracy, by themselves.
#include "compiler/lower/convolution/winograd.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <random>

using namespace firn;

TEST_CASE("Winograd transforms compute what the direct sum does", "[lower]") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (auto [outputs, taps] : {std::pair{4, 3}, {2, 3}, {2, 5}, {1, 1}}) {
    plan::WinogradTransform t = plan::make_winograd_transform(outputs, taps);
    double in[6], filter[6], in_points[6], filter_points[6], got[6];
    for (double& value : in) value = normal(random);
    for (double& value : filter) value = normal(random);
    apply_transform(t.input, in, 1, in_points, 1);
    apply_transform(t.filter, filter, 1, filter_points, 1);
    for (int i = 0; i < t.inputs(); ++i) in_points[i] *= filter_points[i];
    apply_transform(t.output, in_points, 1, got, 1);
    for (int i = 0; i < outputs; ++i) {
      double want = 0;
      for (int k = 0; k < taps; ++k) want += in[i + k] * filter[k];
      CHECK(got[i] == Approx(want).epsilon(1e-12).margin(1e-12));
    }
  }
}

TEST_CASE("the guard sees filters that Winograd's algorithm ruins", "[lower]") {
  plan::WinogradGeometry plan;
  plan.height = plan.width = plan::make_winograd_transform(4, 3);
  plan.channels = plan.filters = 16;
  std::vector<float> filters(16 * 16 * 9);
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (float& value : filters) value = normal(random);
  double ordinary = plan::winograd_error_ratio(plan, filters.data());
  CHECK(ordinary > 0.5);
  CHECK(ordinary < 4);
  // One tap only: the direct sum hardly rounds at all.
  for (size_t i = 0; i < filters.size(); ++i) filters[i] = i % 144 == 0 ? 1.0f : 0.0f;
  CHECK(plan::winograd_error_ratio(plan, filters.data()) > 4);
}

TEST_CASE("filters of 16-bit floats are no filters for Winograd's algorithm", "[lower]") {
  // 42 bytes: as many floats as fit would end two bytes before them, where a block of the heap does.
  for (const std::string dtype : {"f16", "bf16"})
    for (const char* window : {"3x1 pad 1_1x0_0", "1x1 pad 0_0x0_0"}) {
      bool taps = window[0] == '3';
      std::string filter = dtype + (taps ? "[1,7,3,1]" : "[3,7,1,1]"),
                  result = dtype + (taps ? "[1,1,5,4]" : "[1,3,5,4]");
      firn::test::expect_lowered("%x: " + dtype + "[1,7,5,4]",
                                 "%w = " + firn::test::random_constant(21, 5) + " : " + filter +
                                     " %r = convolution %x, %w {window = " + window +
                                     ", groups = 1} : " + result,
                                 result, {.tolerance = 1e-2});
    }
}

TEST_CASE("Winograd's algorithm stores what it computes in f32 as bf16", "[lower]") {
  for (const char* cpu : {"x86-64", "x86-64-v3", "native"})
    for (const char* spatial : {"9,11", "4,5", "17,3"}) {
      std::string block = "{0,1,2,3:1x" + std::to_string(firn::test::target_of("", cpu).cpu.channel_block()) +
                          "}",
                  x = "f32[2,32," + std::string(spatial) + "]", y = "[2,19," + std::string(spatial) + "]";
      std::string text =
          "module @m { func @main(%x: " + x + ") -> (bf16" + y +
          ") { %w = " + firn::test::random_constant(19 * 32 * 9, 6) +
          " : f32[19,32,3,3] %b = copy %x : " + x + block +
          " %f = fusion %b, %w {kind = contraction, plan = \"winograd 4x4\"} region (%p: " + x + block +
          ", %q: f32[19,32,3,3]) { %c = convolution %p, %q {window = 3x3 pad 1_1x1_1, "
          "groups = 1} : f32" +
          y + block + " %n = convert %c {to = bf16} : bf16" + y + block + " return %n } : bf16" + y + block +
          " %r = copy %f : bf16" + y + " return %r } }";
      bool found = false;
      for (const auto& kernel : firn::test::lower_text(text, cpu).kernels)
        found |= kernel->algorithm.find("winograd") != std::string::npos;
      CHECK(found);
      firn::test::expect_lowered_module(text, {.tolerance = 5e-3, .cpus = {cpu}});
    }
}
