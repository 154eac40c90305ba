// Requests for plans: what is given is obeyed or refused, and a completed plan's text is that plan again.
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/plan_function.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"
#include "tests/lower/read_back.h"

#include <catch2/catch.hpp>

#include <random>

using namespace firn;
using namespace firn::test;

namespace {

// 13 rows, or up to so many, of 37 steps, to 50 columns of weights that are constants.
std::string dot_text(const std::string& plan, bool varies = false) {
  std::string rows = varies ? "n" : "13";
  return "module @m { " + std::string(varies ? "symbol n in [0, 13] " : "") + "func @main(%x: f32[" + rows +
         ",37]) -> (f32[" + rows + ",50]) { %w = " + random_constant(37 * 50, 3) +
         " : f32[37,50] %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
         "[0], plan = \"" +
         plan + "\"} : f32[" + rows + ",50] return %y } }";
}

// A window of 16 channels in blocks, with tanh behind it.
std::string convolution_text(const std::string& plan, const std::string& cpu) {
  std::string block = "]{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}",
              in = "f32[1,16,7,9" + block, out = "f32[1,20,7,9" + block;
  return "module @m { func @main(%x: f32[1,16,7,9]) -> (f32[1,20,7,9]) { %w = " +
         random_constant(20 * 16 * 9, 5) + " : f32[20,16,3,3] %i = copy %x : " + in +
         " %c = fusion %i, %w {kind = contraction, plan = \"" + plan + "\"} region (%p: " + in +
         ", %q: f32[20,16,3,3]) { %s = convolution %p, %q {window = 3x3 pad 1_1x1_1, groups = 1} : " + out +
         " %a = tanh %s : " + out + " return %a } : " + out + " %r = copy %c : f32[1,20,7,9] return %r } }";
}

std::string joined(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// Some of the words of a contraction, in their order.
class RandomRequest {
public:
  explicit RandomRequest(unsigned seed) : random_(seed) {}

  std::string text() {
    int rows = pick({1, 2, 3, 4, 6, 8});
    std::string text = "direct tile " + std::to_string(rows) + "x" + std::to_string(pick({1, 2, 3}));
    add(text, "splits", {1, 2, 4});
    if (chance(2)) text += chance(2) ? " columns outermost" : " rows outermost";
    if (chance(4)) text += " split_k 2";
    if (chance(4)) text += " row_block " + std::to_string(rows);
    if (chance(4)) text += " split_m 2";
    for (const char* word : {"optimize_size", "rolled_epilogue"})
      if (chance(4)) text += std::string(" ") + word;
    add(text, "lanes", {4, 8, 16});
    add(text, "unroll", {1, 2, 3, 7, 8});
    add(text, "epilogue_unroll", {1, 2, 3});
    for (const char* word : {"rolled_runs", "rolled_long_runs", "rolled_k", "prefetch_vectors",
                             "prefetch_scalars", "lookup_words"})
      if (chance(4)) text += std::string(" ") + word;
    if (chance(3)) {
      std::vector<int> splits;
      for (int i = 0; i < rows; ++i) splits.push_back(pick({1, 2, 4}));
      text += " rest_splits " + joined(splits);
    }
    add(text, "rest_rows", {1, 2, 4});
    return text;
  }

private:
  int pick(std::vector<int> values) { return values[random_() % values.size()]; }
  bool chance(int of) { return random_() % static_cast<unsigned>(of) == 0; }
  void add(std::string& text, const char* word, std::vector<int> values) {
    if (chance(3)) text += std::string(" ") + word + " " + std::to_string(pick(std::move(values)));
  }
  std::mt19937 random_;
};

std::string plan_of(const std::string& text, const char* cpu = "x86-64-v3") {
  auto module = parse_module("test.hlo", text);
  if (!module) FAIL(module.error().message);
  Machine target = target_of("", cpu);
  auto plans = plan::plan_function((*module)->main(), {target});
  if (!plans) return plans.error().message;
  std::string found;
  for (const auto& instruction : (*module)->main().body().instructions())
    if (const plan::KernelPlan* plan = plans->find(*instruction); plan && plan->is<plan::ContractionPlan>())
      found = plan::to_string(*plan);
  return found;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("requests at random are read back as the plans that they became", "[plan]") {
  int completed = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::string request = RandomRequest(seed).text();
    for (const char* cpu : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
      Machine target = target_of("", cpu);
      for (const std::string& text :
           {dot_text(request), dot_text(request, true), convolution_text(request, cpu)}) {
        INFO(cpu << ": " << request);
        auto module = parse_module("test.hlo", text);
        REQUIRE(module);
        completed += expect_plans_read_back(**module, {target});
      }
    }
  }
  CHECK(completed > 200);
}

TEST_CASE("fields that follow from a tile are obeyed where they are given", "[plan]") {
  CHECK(plan_of(dot_text("direct tile 4x2")) == "direct tile 4x2 columns outermost lanes 8");
  CHECK(plan_of(dot_text("direct tile 4x2 unroll 3")) ==
        "direct tile 4x2 columns outermost lanes 8 unroll 3");
  // So many accumulators leave no registers for a second step; a complete text says so itself.
  CHECK(has(plan_of(dot_text("direct tile 14x1")), " rolled_k"));
  CHECK(plan_of(dot_text("direct tile 14x1 columns outermost lanes 8")) ==
        "direct tile 14x1 columns outermost lanes 8");
  CHECK(
      has(plan_of(dot_text("direct tile 4x2 lanes 4")), "there is no 'lanes 4' here, it would be 'lanes 8'"));
  CHECK(has(plan_of(dot_text("direct tile 4x2 prefetch_scalars")), "a dot's rows are not asked for"));
  CHECK(has(plan_of(dot_text("direct tile 4x2 lookup_words")), "no words of integers"));
  CHECK(has(plan_of(dot_text("direct tile 4x2 rest_splits 1,2")), "rest_splits has 4 numbers"));
  CHECK(has(plan_of(dot_text("direct tile 4x2 rest_rows 8")), "leave fewer rows"));
}

TEST_CASE("every field that follows from a tile has code", "[plan]") {
  for (const std::string& plan : std::vector<std::string>{
           "direct tile 4x2 unroll 3 prefetch_vectors", "direct tile 5x1 rows outermost unroll 8 rolled_k",
           "direct tile 4x1 columns outermost lanes 8",
           "direct tile 8x1 rest_splits 1,4,2,1,1,2,1,1 rest_rows 4",
           "direct tile 3x2 rows outermost unroll 1 prefetch_vectors rest_splits 1,2,4",
           "direct tile 4x1 rolled_epilogue unroll 37 epilogue_unroll 3 rolled_k prefetch_vectors"}) {
    INFO(plan);
    expect_lowered_module(dot_text(plan), {.tolerance = 1e-5, .cpus = {"x86-64-v3"}});
    expect_lowered_module(
        dot_text(plan, true),
        {.tolerance = 1e-5, .cpus = {"x86-64-v3"}, .extents = {{{"n", 13}}, {{"n", 6}}, {{"n", 1}}}});
  }
  for (const std::string& plan : std::vector<std::string>{
           "direct tile 4x2 unroll 3 prefetch_vectors prefetch_scalars",
           "direct tile 5x1 rows outermost unroll 5 rolled_runs rolled_k",
           "direct tile 9x1 rolled_epilogue epilogue_unroll 4 rolled_long_runs prefetch_scalars",
           "direct tile 4x2 columns outermost lanes 8 unroll 2 rest_splits 1,2,4,1"}) {
    INFO(plan);
    expect_lowered_module(convolution_text(plan, "x86-64-v3"), {.tolerance = 1e-4, .cpus = {"x86-64-v3"}});
  }
}
