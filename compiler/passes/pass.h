// Passes over the graph IR: one row in passes.def, one file, one documented function each.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"
#include "compiler/support/pass_list.h"

#include <string>

namespace firn {

struct PassOptions : RewriteLimit {
  const TargetInfo* target = nullptr; // null: target-independent passes only
  bool optimize_size = false;
  bool strict_math = false;
  bool bf16_products = false;                               // for multiply-in-bf16
  plan::WeightType weight_type = plan::WeightType::AsGiven; // for compress-weights
  // For plan-kernels.
  plan::Winograd winograd = plan::Winograd::WithinBytes;
  const plan::ScheduleDatabase* schedules = nullptr;
  std::vector<plan::Explanation>* explanations = nullptr;
  int threads = 1;
  int64_t fold_bytes_limit =
      64 << 20; // constants larger than this are not made by folding unless inputs were as large
};

using PipelineRun = PassListRun<Module, PassOptions>;

// Runs the named passes ("fold-constants,eliminate-dead-code", "none"), verifying after each that changed
// something.
// An unknown name is a usage error; a broken module is Fault::Internal naming the pass.
Result run_passes(Module& module, const std::string& names, PipelineRun& run);
// What gives the computations of @prepare a form that lowering takes.
inline constexpr const char* kPreparingPasses =
    "inline-composites,legalise-narrow-types,simplify-dots,form-fusions,eliminate-dead-code";
// The list that `firn compile` runs, as such a string, for a target-independent or a compiling pipeline.
std::string default_pipeline(bool for_target);

} // namespace firn
