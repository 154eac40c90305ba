// Reads and prints the plans of several CPUs.
#include "compiler/plan/written_plan.h"

#include <algorithm>

namespace firn::plan {
namespace {

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \n\t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \n\t") + 1 - first);
}

bool has_cpu(const WrittenPlans& plans, const std::string& cpu) {
  return std::any_of(plans.begin(), plans.end(), [&](const WrittenPlan& plan) { return plan.cpu == cpu; });
}

} // namespace

Expected<WrittenPlans> read_written_plans(const Instruction& instruction, const std::string& place) {
  WrittenPlans plans;
  if (!instruction.attributes().has("plan")) return plans;
  std::string_view rest = instruction.attributes().text("plan");
  for (bool is_last = false; !is_last;) {
    size_t end = rest.find(';');
    is_last = end == std::string_view::npos;
    std::string_view entry = rest.substr(0, end);
    if (!is_last) rest.remove_prefix(end + 1);
    size_t colon = entry.find(':');
    WrittenPlan plan;
    if (colon != std::string_view::npos) {
      plan.cpu = trimmed(entry.substr(0, colon));
      entry.remove_prefix(colon + 1);
      if (plan.cpu.empty()) return model_error(place + ": 'plan' names no CPU before ':'");
    }
    plan.text = trimmed(entry);
    std::string whose = plan.cpu.empty() ? "the first CPU" : "'" + plan.cpu + "'";
    if (has_cpu(plans, plan.cpu)) return model_error(place + ": 'plan' has two plans for " + whose);
    plans.push_back(std::move(plan));
  }
  if (plans.size() > 1 && has_cpu(plans, kForAll))
    return model_error(place + ": 'plan' has a plan for all CPUs, and others beside it");
  return plans;
}

const WrittenPlan* find_written_plan(const WrittenPlans& plans, const std::string& cpu, bool is_first) {
  const WrittenPlan* found = nullptr;
  for (const WrittenPlan& plan : plans) {
    if (plan.cpu == cpu && !cpu.empty()) return &plan;
    if (plan.is_for_all() || (plan.cpu.empty() && is_first)) found = &plan;
  }
  return found;
}

std::string to_string(const WrittenPlans& plans) {
  std::string text;
  for (const WrittenPlan& plan : plans)
    text += (text.empty() ? "" : "; ") + (plan.cpu.empty() ? "" : plan.cpu + ": ") + plan.text;
  return text;
}

} // namespace firn::plan
