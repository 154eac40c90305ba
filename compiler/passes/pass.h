// Passes over the graph IR: one row in passes.def, one file, one documented function each.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"
#include "compiler/support/pass_list.h"
#include "compiler/target/cpu_list.h"

#include <optional>
#include <span>
#include <string>

namespace firn {

struct PassOptions : RewriteLimit, PassRefusal {
  explicit PassOptions(const Goals& wanted = kDefaultGoals, const Machine* machine = nullptr)
      : target(machine), goals(wanted) {}

  const Machine* target;             // null: target-independent passes only
  std::span<const NamedTarget> cpus; // plan-kernels: CPUs of the object, `target` first; none: it alone
  const Goals& goals;
  // plan-kernels: plans that overrule the cost model, and the reasons for what was chosen.
  const plan::ScheduleDatabase* schedules = nullptr;
  std::vector<plan::Explanation>* explanations = nullptr;
  // rematerialize: bytes that parameters and results of an entry function may take at once, and the one
  // function that it is for; null: all.
  std::optional<int64_t> memory_budget;
  const Function* budgeted = nullptr;
  // Constants larger than this are not made by folding unless inputs were as large.
  int64_t fold_bytes_limit = 64 << 20;
};

using PipelineRun = PassListRun<Module, PassOptions>;

// Runs the named passes ("fold-constants,eliminate-dead-code", "none"), verifying after each that changed
// something.
// An unknown name is a usage error; a broken module is Fault::Internal naming the pass.
Result run_passes(Module& module, const std::string& names, PipelineRun& run);
// The passes that bring the computations of @prepare into the form that planning takes.
inline constexpr const char* kPreparingPasses = "lower-quantization,inline-composites,legalise-narrow-types,"
                                                "simplify-dots,form-fusions,eliminate-dead-code";
// The list that `firn compile` runs on a module, as such a string, for a target-independent or a compiling
// pipeline.
std::string default_pipeline(const Module& module, bool for_target);
// The first passes of the target-independent list, up to the one that derives gradients.
std::string pipeline_through_differentiate();

} // namespace firn
