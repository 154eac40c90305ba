// Tests which convolutions Winograd's algorithm computes, by the cost of its filters and the time of the
// whole network.
#include "compiler/graph/hlo_text.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/winograd/plan.h"
#include "tests/lower/lowered_program.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <numeric>

using namespace firn;
using namespace firn::lower;
using namespace firn::plan;

namespace {

struct Layer {
  int64_t channels, size;
};

// 3x3 convolutions beside each other, each of as many filters as channels, in blocks of 8; and a product of
// two inputs with that many rows, inner elements and columns.
struct Network {
  std::vector<Layer> layers;
  int64_t product = 0;

  int64_t weight_bytes() const {
    int64_t bytes = 0;
    for (const Layer& layer : layers) bytes += layer.channels * layer.channels * 9 * 4;
    return bytes;
  }

  std::unique_ptr<Module> module() const {
    std::string parameters, body, types, results;
    auto add_result = [&](const std::string& name, const std::string& type) {
      types += (types.empty() ? "" : ", ") + type;
      results += (results.empty() ? "%" : ", %") + name;
    };
    for (size_t i = 0; i < layers.size(); ++i) {
      auto [channels, size] = layers[i];
      std::string n = std::to_string(i), c = std::to_string(channels), s = std::to_string(size);
      std::string plain = "f32[1," + c + "," + s + "," + s + "]", blocked = plain + "{0,1,2,3:1x8}";
      parameters += (i ? ", %x" : "%x") + n + ": " + plain;
      body += "%b" + n + " = copy %x" + n + " : " + blocked + "\n%w" + n + " = " +
              test::random_constant(channels * channels * 9, static_cast<unsigned>(i)) + " : f32[" + c + "," +
              c + ",3,3]\n%c" + n + " = convolution %b" + n + ", %w" + n +
              " {window = 3x3 pad 1_1x1_1, groups = 1} : " + blocked + "\n%r" + n + " = copy %c" + n + " : " +
              plain + "\n";
      add_result("r" + n, plain);
    }
    if (product > 0) {
      std::string n = std::to_string(product), square = "f32[" + n + "," + n + "]";
      parameters += ", %l: " + square + ", %m: " + square;
      body += "%p = dot %l, %m {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : " +
              square + "\n";
      add_result("p", square);
    }
    auto parsed = parse_module("m.hlo", "module @m {\nfunc @main(" + parameters + ") -> (" + types + ") {\n" +
                                            body + "return " + results + "\n}\n}\n");
    if (!parsed) FAIL(parsed.error().message);
    return std::move(*parsed);
  }
};

// The explanations of the convolutions, in order.
std::vector<Explanation> explain(const Network& network, Winograd winograd = Winograd::WithinBytes,
                                 const ScheduleDatabase* schedules = nullptr) {
  std::vector<Explanation> explanations;
  firn::test::LoweringSetup options;
  options.target = *find_target("x86_64-linux-gnu", "x86-64-v3", "");
  options.goals.winograd = winograd;
  options.schedules = schedules;
  options.explanations = &explanations;
  auto program = firn::test::plan_and_lower(*network.module(), options);
  if (!program) FAIL(program.error().message);
  std::erase_if(explanations, [](const Explanation& e) { return e.candidates.empty(); });
  REQUIRE(explanations.size() >= network.layers.size());
  explanations.resize(network.layers.size());
  return explanations;
}

bool is_winograd(const Explanation& explanation) {
  return explanation.chosen.is<WinogradPlan>();
}

int outputs_high(const Explanation& explanation) {
  const auto* plan = explanation.chosen.get_if<WinogradPlan>();
  return plan ? plan->outputs_high : 0;
}

int64_t added_bytes(const std::vector<Explanation>& explanations) {
  return std::accumulate(explanations.begin(), explanations.end(), int64_t{0},
                         [](int64_t sum, const Explanation& e) { return sum + e.added_bytes; });
}

} // namespace

TEST_CASE("filters for Winograd's algorithm at most double the weights", "[plan][winograd]") {
  Network network{{{32, 28}, {64, 14}, {48, 20}}};
  std::vector<Explanation> all = explain(network, Winograd::All), chosen = explain(network);
  CHECK(added_bytes(all) > 2 * network.weight_bytes());
  CHECK(std::all_of(all.begin(), all.end(), is_winograd));
  CHECK(added_bytes(chosen) <= network.weight_bytes());
  CHECK(std::any_of(chosen.begin(), chosen.end(), is_winograd));
  for (const Explanation& explanation : chosen) CHECK(explanation.left_out != is_winograd(explanation));
  for (const Explanation& explanation : explain(network, Winograd::Off))
    CHECK((!is_winograd(explanation) && !explanation.left_out));
}

TEST_CASE("the most time per byte comes first", "[plan][winograd]") {
  // Large images of few channels before small images of many.
  std::vector<Explanation> chosen = explain({{{64, 8}, {16, 64}, {16, 56}}});
  CHECK(outputs_high(chosen[1]) == 4);
  CHECK(outputs_high(chosen[2]) == 4);
  CHECK(outputs_high(chosen[0]) < 4);
}

TEST_CASE("Winograd's algorithm is left out where the network hardly gains", "[plan][winograd]") {
  Network alone{{{32, 16}}}, beside{{{32, 16}}, 1024};
  CHECK(is_winograd(explain(alone)[0]));
  Explanation left_out = explain(beside)[0];
  CHECK_FALSE(is_winograd(left_out));
  CHECK(left_out.left_out);
  CHECK(left_out.added_bytes == 0);
  CHECK(explanation_text({left_out}).find("not worth its bytes") != std::string::npos);
  // Options and databases that ask for Winograd's algorithm get it.
  CHECK(is_winograd(explain(beside, Winograd::All)[0]));
  auto database =
      ScheduleDatabase::parse("db", "firn-schedules 1\n" + left_out.signature + " => winograd 4x4\n");
  REQUIRE(database);
  Explanation asked = explain(beside, Winograd::WithinBytes, &*database)[0];
  CHECK(outputs_high(asked) == 4);
  CHECK(asked.overruled);
}

TEST_CASE("where extents vary, images as small as they get count too", "[plan][winograd]") {
  // The algorithm of the only convolution of images of `least` to `most` lines and columns.
  auto algorithm = [](const std::string& min, const std::string& max) {
    std::string plain = "f32[1,64,s,s]", blocked = plain + "{0,1,2,3:1x16}";
    std::string text =
        "module @m { symbol s in [" + min + ", " + max + "] func @main(%x: " + plain + ") -> (" + plain +
        ") { %b = copy %x : " + blocked + " %w = " + test::random_constant(64 * 64 * 9, 1) +
        " : f32[64,64,3,3] %c = convolution %b, %w {window = 3x3 pad 1_1x1_1, groups = 1} : " + blocked +
        " %r = copy %c : " + plain + " return %r } }";
    for (const auto& kernel : test::lower_text(text, "x86-64-v4").kernels)
      if (kernel->name.starts_with("convolution")) return kernel->algorithm;
    return std::string();
  };
  CHECK(algorithm("8", "16").find("winograd") != std::string::npos);
  CHECK(algorithm("16", "16").find("winograd") != std::string::npos);
  // An image of one pixel multiplies one of nine taps.
  CHECK(algorithm("1", "16").find("direct") != std::string::npos);
}

TEST_CASE("convolutions that lie in a concatenation use Winograd's algorithm like others",
          "[plan][winograd]") {
  const std::string image = "f32[1,32,16,16]{0,1,2,3:1x8}", both = "f32[1,64,16,16]{0,1,2,3:1x8}";
  auto convolution = [&](const std::string& name, unsigned seed) {
    return " %w" + name + " = " + test::random_constant(32 * 32 * 9, seed) + " : f32[32,32,3,3] %" + name +
           " = convolution %b, %w" + name + " {window = 3x3 pad 1_1x1_1, groups = 1} : " + image;
  };
  std::string text =
      "module @m { func @main(%x: f32[1,32,16,16]) -> (f32[1,64,16,16]) { %b = copy %x : " + image +
      convolution("l", 1) + convolution("h", 2) + " %c = concatenate %l, %h {dim = 1} : " + both +
      " %r = copy %c : f32[1,64,16,16] return %r } }";
  // One kernel serves both: they are equal.
  int64_t winograd = 0, direct = 0;
  for (const auto& kernel : test::lower_text(text, "x86-64-v3").kernels) {
    winograd += kernel->algorithm.find("winograd") != std::string::npos;
    direct += kernel->algorithm.find("direct") != std::string::npos;
  }
  CHECK(winograd == 1);
  CHECK(direct == 0);
}
