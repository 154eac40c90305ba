// Graph IR to kernel IR: every instruction of @main becomes a kernel call, a view of another buffer, or
// nothing.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/kernel/kernel.h"
#include "compiler/plan/options.h"
#include "compiler/plan/schedule.h"
#include "compiler/target/target_info.h"

#include <map>

namespace firn::lower {

enum class Math : uint8_t { Default, Strict };

using plan::Winograd;

inline constexpr int64_t kDefaultTextBytes = 64 << 10;

struct LoweringOptions {
  TargetInfo target;
  bool optimize_size = false;
  Math math = Math::Default;
  Winograd winograd = Winograd::WithinBytes;
  const plan::ScheduleDatabase* schedules = nullptr;      // overrules the cost model where it has an entry
  std::vector<plan::Explanation>* explanations = nullptr; // of instructions that are planned here
  int threads = 1;                                        // for which kernels are cut into items
  bool check_indices = false; // one out of range ends the run with a status; else it is clamped alone
  // The plans of the module's instructions; null: they are made here.
  const plan::KernelPlans* plans = nullptr;
  const TargetInfo* baseline =
      nullptr; // the CPU of which some of these plans are: KernelPlans::is_for_baseline
  // First values of states by parameter name; others start from zeros.
  const std::map<std::string, LiteralRef>* initial_states = nullptr;
  int64_t text_bytes = kDefaultTextBytes; // of all strings that a run makes; more end it with a status
};

// The program that computes @main. What cannot be lowered is an error (Fault::Unsupported) naming the
// instruction's location and op.
Expected<kernel::Program> lower_module(const Module& module, const LoweringOptions& options);

} // namespace firn::lower
