// See read_back.h.
#include "tests/lower/read_back.h"

#include "compiler/plan/plan_function.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

using Written = std::vector<std::pair<Instruction*, Attributes>>; // with the attributes that they had

void write_down(const Region& region, const plan::KernelPlans& plans, Written& written) {
  for (const auto& instruction : region.instructions()) {
    if (const plan::KernelPlan* plan = plans.find(*instruction)) {
      written.emplace_back(instruction.get(), instruction->attributes());
      instruction->attributes().set("plan", plan::to_string(*plan));
    }
    for (int i = 0; i < instruction->num_regions(); ++i) write_down(instruction->region(i), plans, written);
  }
}

} // namespace

bool expect_plans_read_back(const Module& module, const plan::PlanOptions& options) {
  auto plans = plan::plan_function(module.main(), options);
  if (!plans) return false;
  Written written;
  write_down(module.main().body(), *plans, written);
  auto again = plan::plan_function(module.main(), options);
  std::vector<std::string> texts;
  for (const auto& [instruction, attributes] : written) {
    texts.push_back(instruction->attributes().text("plan"));
    instruction->attributes() = attributes;
  }
  if (!again) FAIL(again.error().message);
  for (size_t i = 0; i < written.size(); ++i) {
    const plan::KernelPlan* plan = again->find(*written[i].first);
    if (!plan) FAIL("no plan was read from: " << texts[i]);
    if (!(*plan == *plans->find(*written[i].first)))
      FAIL("read as: " << plan::to_string(*plan) << "\nof: " << texts[i]);
  }
  return true;
}

} // namespace firn::test
