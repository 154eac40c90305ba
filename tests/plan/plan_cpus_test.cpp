// Plans of several CPUs in the text of a graph: each CPU follows its own, and what planning chose is read
// back as it was.
#include "compiler/graph/hlo_text.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/plan_cpus.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

const std::vector<std::string> kCpus = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};

// A large dot of constant columns with tanh behind it, beside a row of few elements.
std::string network(const std::string& plan, const std::string& small_plan = "") {
  auto attribute = [](const std::string& text) { return text.empty() ? "" : ", plan = \"" + text + "\""; };
  return "module @m { func @main(%x: f32[96,128], %s: f32[64]) -> (f32[96,192], f32[64]) { %w = " +
         random_constant(128 * 192, 3) +
         " : f32[128,192] %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract "
         "= [0]" +
         attribute(plan) + "} : f32[96,192] %t = fusion %s {kind = loop" + attribute(small_plan) +
         "} region (%p: f32[64]) { %a = negate %p : f32[64] return %a } : f32[64] return %y, %t } }";
}

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module("test.hlo", text);
  if (!module) FAIL(module.error().message);
  return std::move(*module);
}

struct Planned {
  std::unique_ptr<Module> module;
  std::vector<NamedTarget> cpus;
  std::vector<plan::KernelPlans> plans;
  std::string error;

  // The plan of the instruction with this opcode.
  std::string of(Opcode opcode, size_t cpu) const {
    for (const auto& instruction : module->main().body().instructions())
      if (instruction->is(opcode))
        return (plans[cpu].is_for_baseline(*instruction) ? "all: " : "") +
               plan::to_string(*plans[cpu].find(*instruction));
    return "";
  }
};

Planned plan(const std::string& text, const std::vector<std::string>& names = kCpus) {
  Planned planned;
  planned.module = parsed(text);
  auto cpus = find_targets("x86_64-linux-gnu", names);
  if (!cpus) FAIL(cpus.error().message);
  planned.cpus = std::move(*cpus);
  auto plans = plan::plan_cpus(planned.module->main(), {planned.cpus});
  if (plans)
    planned.plans = std::move(*plans);
  else
    planned.error = plans.error().message;
  return planned;
}

std::string error_of(const std::string& plan_text, const std::string& small_plan = "") {
  return plan(network(plan_text, small_plan)).error;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("each CPU follows the plan that the text has for it", "[plan]") {
  Planned all = plan(network("direct tile 5x2 columns outermost; x86-64-v3: direct tile 3x1; "
                             "x86-64-v2: direct tile 2x2; sapphirerapids: no plan at all"));
  CHECK(all.error.empty());
  CHECK(has(all.of(Opcode::Dot, 0), "direct tile 5x2 "));
  CHECK(has(all.of(Opcode::Dot, 1), "direct tile 3x1 "));
  CHECK(has(all.of(Opcode::Dot, 2), "direct tile 2x2 "));

  // By its name a CPU finds its plan wherever it stands among them.
  Planned alone = plan(network("x86-64-v3: direct tile 3x1"), {"x86-64-v3"});
  CHECK(has(alone.of(Opcode::Dot, 0), "direct tile 3x1 "));
  Planned second = plan(network("x86-64-v3: direct tile 3x1"), {"x86-64-v3", "x86-64-v2"});
  CHECK(has(second.of(Opcode::Dot, 0), "direct tile 3x1 "));
  CHECK_FALSE(has(second.of(Opcode::Dot, 1), "direct tile 3x1 "));
}

TEST_CASE("the kernels of a CPU are those of its plan", "[plan]") {
  Planned all = plan(network("; x86-64-v3: direct tile 3x1"));
  CHECK(has(all.error, "names no algorithm"));
  all = plan(network("x86-64-v3: direct tile 3x1"));
  lower::LoweringOptions options{all.cpus[1].target, kDefaultGoals, &all.cpus.back().target};
  auto program = lower::lower_module(*all.module, all.module->main(), all.plans[1], options);
  REQUIRE(program);
  std::string algorithms;
  for (const auto& kernel : program->kernels) algorithms += kernel->algorithm + "\n";
  CHECK(has(algorithms, "dot 3x1\n"));
}

TEST_CASE("a plan that a CPU cannot follow is refused by its name", "[plan]") {
  CHECK(has(error_of("x86-64-v3: planar"), "the plan of %y for x86-64-v3, 'planar', cannot"));
  CHECK(has(error_of("direct tile 4x1; direct tile 4x1"), "'plan' has two plans for the first CPU"));
  CHECK(has(error_of("x86-64-v3: direct; x86-64-v3: direct"), "two plans for 'x86-64-v3'"));
  CHECK(has(error_of(": direct"), "names no CPU"));
  CHECK(has(error_of("all: direct; x86-64-v3: direct"), "for all CPUs, and others"));
  CHECK(has(error_of("x86-64-v2: blocked"), "'blocked' names no algorithm"));
}

TEST_CASE("one code for all CPUs is what the text asks for", "[plan]") {
  Planned all = plan(network("", "all: elements lanes 4 unroll 2"));
  CHECK(all.error.empty());
  for (size_t cpu = 0; cpu < kCpus.size(); ++cpu) {
    INFO(cpu);
    CHECK(has(all.of(Opcode::Fusion, cpu), "all: elements lanes 4 unroll 2"));
  }
  // An instruction with a plan written for one CPU is not shared.
  all = plan(network("", "elements lanes 16"));
  CHECK(has(all.of(Opcode::Fusion, 0), "elements lanes 16"));
  CHECK_FALSE(has(all.of(Opcode::Fusion, 2), "all:"));
}

TEST_CASE("plans of all CPUs are read back from the text", "[plan]") {
  Planned chosen = plan(network(""));
  CHECK(has(chosen.of(Opcode::Fusion, 1), "all: ")); // it takes next to no time
  PassOptions options(kDefaultGoals, &chosen.cpus[0].target);
  options.cpus = chosen.cpus;
  REQUIRE(plan_kernels(*chosen.module, options));
  std::string text = print_module(*chosen.module);
  CHECK(has(text, "; x86-64-v3: direct tile "));
  CHECK(has(text, "\"all: elements "));
  CHECK_FALSE(plan_kernels(*chosen.module, options)); // nothing is left to write

  Planned again = plan(text);
  CHECK(again.error.empty());
  for (size_t cpu = 0; cpu < kCpus.size(); ++cpu)
    for (Opcode opcode : {Opcode::Dot, Opcode::Fusion}) {
      INFO(kCpus[cpu]);
      CHECK(again.of(opcode, cpu) == chosen.of(opcode, cpu));
    }

  // A text that nobody reads, because the member of a fusion has no kernel, hinders nothing.
  std::string odd = network("");
  odd.replace(odd.find("%a = negate %p"), 14, "%a = negate %p {plan = \"x; x\"}");
  Planned unread = plan(odd);
  CHECK(unread.error.empty());
  CHECK(plan_kernels(*unread.module, options));

  // A person's plan for one CPU stays, and the others' are added.
  Planned by_hand = plan(network("x86-64-v3: direct tile 3x1"));
  REQUIRE(plan_kernels(*by_hand.module, options));
  text = print_module(*by_hand.module);
  CHECK(has(text, "; x86-64-v3: direct tile 3x1; x86-64-v2: direct "));
}

} // namespace firn::test
