// Plans of whole modules.
#include "compiler/plan/plan_module.h"

#include "compiler/plan/roots.h"
#include "compiler/plan/windows.h"

namespace firn::plan {
namespace {

bool has_static_types(const Instruction& instruction) {
  auto is_static = [](const Type& type) { return type.is_tensor() && type.is_static(); };
  for (Value operand : instruction.operands())
    if (!is_static(operand.type())) return false;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!is_static(instruction.type(i))) return false;
  return true;
}

class ModulePlanning {
public:
  explicit ModulePlanning(const Options& options) : options_(options) {}

  Result visit(const Region& region) {
    for (const auto& instruction : region.instructions()) {
      if (Result planned = plan(*instruction); !planned) return planned;
      for (int i = 0; holds_kernels(*instruction) && i < instruction->num_regions(); ++i)
        if (Result within = visit(instruction->region(i)); !within) return within;
    }
    return {};
  }
  KernelPlans take() { return std::move(plans_); }

private:
  Result plan(const Instruction& instruction) {
    if (instruction.attributes().has("plan")) return read(instruction);
    if (!has_static_types(instruction)) return {};
    if (auto chosen = choose_plan(instruction, options_)) plans_.set(instruction, std::move(*chosen));
    return {};
  }

  Result read(const Instruction& instruction) {
    if (!has_static_types(instruction)) return {}; // lowering says what is wrong with it
    std::string name =
        "the plan of " + (instruction.location().empty() ? "%" + instruction.name() : instruction.location());
    auto plan = parse_kernel_plan(name, instruction.attributes().text("plan"));
    if (!plan) return model_error(plan.error().message);
    std::string wrong =
        std::visit([&](const auto& of_family) { return check(of_family, instruction, options_); }, *plan);
    if (!wrong.empty())
      return model_error(name + ", '" + to_string(*plan) + "', cannot be followed: " + wrong);
    plans_.set(instruction, std::move(*plan));
    return {};
  }

  const Options& options_;
  KernelPlans plans_;
};

} // namespace

std::optional<KernelPlan> choose_plan(const Instruction& instruction, const Options& options) {
  if (auto plan = plan_depthwise(instruction, options)) return *plan;
  if (auto plan = plan_pooling(instruction, options)) return *plan;
  return std::nullopt;
}

Expected<KernelPlans> plan_module(const Module& module, const Options& options) {
  ModulePlanning planning(options);
  if (Result done = planning.visit(module.main().body()); !done) return done.error();
  return planning.take();
}

} // namespace firn::plan
