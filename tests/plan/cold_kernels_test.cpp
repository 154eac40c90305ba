// Tests that, for several CPUs, instructions that take little time share the code for the least able one.
#include "compiler/plan/cold_kernels.h"
#include "compiler/plan/plan_cpus.h"
#include "compiler/plan/plan_function.h"
#include "tests/lower/lowered_program.h"

#include "compiler/kernel/kir_text.h"
#include "compiler/plan/elements/plan.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

// A dot of many steps beside something of few elements: the logits' largest, say.
std::string network(int64_t inner, const std::string& small) {
  std::string rows = std::to_string(inner);
  return "module @cold {\n  func @main(%x: f32[256," + rows + "], %w: f32[" + rows +
         ",256], %y: f32[64]) -> (f32[256,256], f32[64]) {\n" +
         "    %d = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : "
         "f32[256,256]\n    %s = " +
         small + " : f32[64]\n    return %d, %s\n  }\n}\n";
}

struct Programs {
  std::vector<std::string> cold; // each program's texts of the kernels for the least able CPU
  size_t kernels = 0;            // kernels of the first program
};

Programs lower_for(const std::string& text, const std::vector<std::string>& cpus) {
  auto module = parse_module("test", text);
  if (!module) FAIL(module.error().message);
  auto targets = find_targets("x86_64-linux-gnu", cpus);
  REQUIRE(targets);
  std::vector<plan::Explanation> explanations;
  auto plans = plan::plan_cpus((*module)->main(), {*targets, kDefaultGoals, nullptr, &explanations});
  if (!plans) FAIL(plans.error().message);
  Programs result;
  for (size_t i = 0; i < targets->size(); ++i) {
    lower::LoweringOptions options{(*targets)[i].target, kDefaultGoals, &targets->back().target};
    auto program = lower::lower_module(**module, (*module)->main(), (*plans)[i], options);
    REQUIRE(program);
    REQUIRE(kernel::verify(*program));
    if (i == 0) result.kernels = program->kernels.size();
    result.cold.emplace_back();
    for (const auto& kernel : program->kernels)
      if (kernel->is_for_baseline) result.cold.back() += kernel::kernel_text(*kernel, /*anonymous=*/true);
    auto parsed = kernel::parse_program("again", kernel::print_program(*program));
    REQUIRE(parsed);
    CHECK(kernel::print_program(*parsed) == kernel::print_program(*program));
  }
  std::string said = plan::explanation_text(explanations);
  CHECK((said.find("the code of all CPUs is that for " + targets->back().name) != std::string::npos) ==
        !result.cold[0].empty());
  return result;
}

const std::vector<std::string> kCpus = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

} // namespace

TEST_CASE("what takes little time has the code of the least able CPU alone", "[plan]") {
  Programs programs = lower_for(network(512, "negate %y"), kCpus);
  REQUIRE(programs.cold.size() == 3);
  CHECK(programs.kernels == 2);
  CHECK_FALSE(programs.cold[0].empty());
  CHECK(programs.cold[0].find("kernel", 1) == std::string::npos); // the dot is not among them
  CHECK(programs.cold[0] == programs.cold[1]);
  CHECK(programs.cold[0] == programs.cold[2]);
}

TEST_CASE("what takes a part of the time that counts has code for each CPU", "[plan]") {
  CHECK(lower_for(network(1, "negate %y"), kCpus).cold[0].empty());
  // A tanh counts as sixteen cheap operations.
  CHECK_FALSE(lower_for(network(8, "negate %y"), kCpus).cold[0].empty());
  CHECK(lower_for(network(8, "tanh %y"), kCpus).cold[0].empty());
}

TEST_CASE("what sums over a dim that varies takes the time of its bound", "[plan]") {
  std::string vary =
      "module @m {\n  symbol n in [1, 512]\n  func @main(%x: f32[64,n], %w: f32[n,64]) -> (f32[64,64]) "
      "{\n    %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
      "[0]} : f32[64,64]\n    return %y\n  }\n}\n";
  CHECK(lower_for(vary, kCpus).cold[0].empty());
}

TEST_CASE("a loop that takes next to nothing of the time repeats no code", "[plan]") {
  auto unroll = [](int64_t inner, const std::string& schedule) -> int64_t {
    auto module = parse_module("test", network(inner, "add %y, %y"));
    REQUIRE(module);
    auto target = find_target("x86_64-linux-gnu", "x86-64-v3", "");
    REQUIRE(target);
    auto database = plan::ScheduleDatabase::parse("db", "firn-schedules 1\n" + schedule);
    REQUIRE(database);
    plan::PlanOptions options{*target};
    options.schedules = &*database;
    auto plans = plan::plan_function((*module)->main(), options);
    REQUIRE(plans);
    for (const auto& instruction : (*module)->main().body().instructions())
      if (const auto* elements = plans->find<plan::ElementsPlan>(*instruction)) {
        CHECK(elements->code.accumulators == elements->code.unroll);
        return elements->code.unroll;
      }
    return 0;
  };
  CHECK(unroll(512, "") == 1);
  CHECK(unroll(1, "") == 4);
  CHECK(unroll(512, "x86-64-v3 add(f32[64], f32[64]) -> f32[64] => elements lanes 8") == 4);
}

} // namespace firn::test
