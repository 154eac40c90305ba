// The pipeline for a target does not change what small programs compute, on random inputs, by the evaluator.
#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/passes/pass.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

using namespace firn;

namespace {

std::vector<LiteralRef> random_inputs(const Module& module) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<LiteralRef> inputs;
  for (Instruction* parameter : module.main().body().parameters()) {
    std::vector<double> values(static_cast<size_t>(parameter->type().num_elements()));
    for (double& value : values) value = uniform(random);
    inputs.push_back(Literal::of(parameter->type().dtype, parameter->type().static_dims(), values));
  }
  return inputs;
}

// `signature`: "(%x: f32[3]) -> (f32[3])"; the last instruction of `body` is %r. Equal bits with tolerance 0.
void expect_unchanged(const std::string& signature, const std::string& body, double tolerance,
                      const std::string& absent, firn::WeightType weights = firn::WeightType::AsGiven) {
  std::string text = "module @m { func @main" + signature + " { " + body + " return %r } }";
  INFO(text);
  auto plain = parse_module("plain", text), changed = parse_module("changed", text);
  REQUIRE(plain);
  REQUIRE(changed);
  auto target = find_target("x86_64-unknown-linux-gnu", "x86-64-v3", "");
  REQUIRE(target);
  Goals goals{.weight_type = weights};
  PipelineRun run{PassOptions(goals, &*target)};
  Result done = run_passes(**changed, default_pipeline(**changed, /*for_target=*/true), run);
  if (!done) FAIL(done.error().message);
  CHECK(print_module(**changed).find(absent) == std::string::npos);
  std::vector<LiteralRef> inputs = random_inputs(**plain);
  auto expected = evaluate(**plain, inputs), found = evaluate(**changed, inputs);
  REQUIRE(expected);
  REQUIRE(found);
  const Literal &a = *(*expected)[0], &b = *(*found)[0];
  REQUIRE(a.dims() == b.dims());
  for (int64_t i = 0; i < a.num_elements(); ++i)
    CHECK(std::abs(a.get_double(i) - b.get_double(i)) <= tolerance);
}

} // namespace

TEST_CASE("convolutions that dilate both filter and input") {
  auto expect = [](const std::string& x, const std::string& w, const std::string& window, int groups,
                   const std::string& result) {
    expect_unchanged("(%x: f32[" + x + "], %w: f32[" + w + "]) -> (f32[" + result + "])",
                     "%r = convolution %x, %w {window = " + window + ", groups = " + std::to_string(groups) +
                         "} : f32[" + result + "]",
                     1e-5, window.substr(window.find(" dilate"), 9));
  };
  // Dilations that share a factor and that do not, filters shorter than the input's holes.
  for (int both : {2, 3, 4})
    for (int filter : {2, 3, 6}) {
      std::string extent = std::to_string(5 * both - both + 1 + 4 - 2 * filter);
      expect("1,3,5", "2,3,3",
             "3 pad 2_2 dilate " + std::to_string(filter) + " input_dilate " + std::to_string(both), 1,
             "1,2," + extent);
    }
  expect("1,4,5", "4,1,3", "3 pad 4_5 dilate 2 input_dilate 3", 4, "1,4,18");
  expect("2,4,5", "6,2,3", "3 pad 4_5 dilate 2 input_dilate 3", 2, "2,6,18");
  expect("1,2,4,5", "3,2,2,3", "2x3 pad 3_3x0_1 dilate 3x2 input_dilate 2x1", 1, "1,3,10,2");
  expect("1,2,3,4,2", "2,2,2,2,2", "2x2x2 pad 1_1x2_2x2_3 dilate 2x3x2 input_dilate 2x2x3", 1, "1,2,5,8,7");
}

TEST_CASE("random numbers are the evaluator's bit for bit") {
  for (const char* dtype : {"f32", "f64", "f16", "bf16"}) {
    std::string scalar = std::string(dtype) + "[]", type = std::string(dtype) + "[5,7]";
    expect_unchanged("(%l: " + scalar + ", %h: " + scalar + ") -> (" + type + ")",
                     "%r = rng_uniform %l, %h {seed = 11} : " + type, 0, "rng_uniform");
  }
}

// The weights have 48 columns of 64 steps, [64,48] or transposed, and are integers times a power of two for
// each block.
TEST_CASE("weights that the narrow type holds exactly") {
  for (bool is_turned : {false, true})
    for (auto [weights, max] :
         {std::pair{firn::WeightType::I4, 8}, {firn::WeightType::I8, 127}, {firn::WeightType::BF16, 127}}) {
      std::string numbers;
      for (int64_t i = 0; i < 64 * 48; ++i) {
        int64_t column = is_turned ? i / 64 : i % 48, step = is_turned ? i % 64 : i / 48;
        int64_t integer = step % 32 == 0 ? -max : (step * 7 + column * 3) % (2 * max) - max;
        int64_t scale = weights == firn::WeightType::I4 ? 1 << (column + step / 32) % 4 : 1 << column % 4;
        numbers += (i ? ", " : "") + std::to_string(integer * scale);
      }
      std::string dims = is_turned ? "[48,64]" : "[64,48]";
      expect_unchanged("(%x: f32[2,64]) -> (f32[2,48])",
                       "%w = constant [" + numbers + "] : f32" + dims +
                           " %r = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch = [], "
                           "rhs_contract = [" +
                           (is_turned ? "1" : "0") + "]} : f32[2,48]",
                       weights == firn::WeightType::I4 ? 1e-3 : 1e-2, "> : f32" + dims, weights);
    }
}
