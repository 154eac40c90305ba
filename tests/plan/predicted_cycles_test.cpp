// Two counts of the same cycles: those that plan predicts for a contraction before it is lowered, and those
// that kernel passes count in its code, to tell whether it is worth sharing. Plan takes the longest of the
// pipes that work side by side, kernel passes the sum of all ops, so that they never count less.
#include "compiler/graph/hlo_text.h"
#include "compiler/kernel/passes/cycle_count.h"
#include "compiler/plan/algorithm_rules.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::test;

namespace {

constexpr size_t kMaxCandidates = 6;
// The sum of all ops relative to the longest pipe: one column of vectors loads a scalar for each product.
constexpr double kMaxRatio = 5;

std::string dot_text(const std::string& m, const std::string& k, const std::string& n) {
  return "module @m { func @main(%x: f32[" + m + "," + k + "], %w: f32[" + k + "," + n + "]) -> (f32[" + m +
         "," + n +
         "]) { %r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
         "[0]} : f32[" +
         m + "," + n + "] return %r } }";
}

const char* const kConvolution =
    "module @m { func @main(%x: f32[1,32,20,20], %w: f32[48,32,3,3]) -> (f32[1,48,18,18]) { %r = convolution "
    "%x, %w {window = 3x3, groups = 1} : f32[1,48,18,18] return %r } }";

// Cycles of the kernel that multiplies, which takes longer than those that pack its operands.
double counted_cycles(const kernel::Program& program, const Machine& target) {
  double most = 0;
  for (const auto& kernel : program.kernels)
    most = std::max(most, count_cycles(*kernel, target) * static_cast<double>(kernel->max_iterations()));
  return most;
}

} // namespace

TEST_CASE("code of contractions counts as cycles near those that plan predicts", "[plan]") {
  for (const char* cpu : {"x86-64-v3", "x86-64-v4", "skylake", "znver4"})
    for (const std::string& text : {dot_text("64", "256", "96"), dot_text("200", "64", "64"),
                                    dot_text("37", "300", "130"), std::string(kConvolution)}) {
      auto module = parse_module("test.hlo", text);
      REQUIRE(module);
      const Machine target = target_of("", cpu);
      const plan::PlanOptions options{target};
      auto planned = plan::plan_function((*module)->main(), options);
      REQUIRE(planned);
      const Instruction& product = *(*module)->main().body().results()[0].def;
      auto candidates = plan::rules_of(plan::Algorithm::Direct)
                            .candidates(product, plan::PlanningContext{options}, kMaxCandidates);
      REQUIRE(!candidates.empty());
      for (const plan::Candidate& candidate : candidates) {
        INFO(cpu << ": " << text << "\n" << to_string(candidate.plan));
        plan::KernelPlans plans = *planned;
        plans.set(product, candidate.plan);
        auto program = plan_and_lower(**module, {.target = target, .plans = &plans});
        REQUIRE(program);
        const double ratio = counted_cycles(*program, target) / candidate.cycles;
        CHECK(ratio >= 1);
        CHECK(ratio <= kMaxRatio);
      }
    }
}
