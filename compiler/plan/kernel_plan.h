// How one instruction is computed: an algorithm and all that was decided for it. Plans are plain data; their
// text stands in the graph as the attribute `plan`:
//
//   %d = convolution %x, %w {..., plan = "depthwise tile 7 along 1 straight taps_in_registers"} : ...
//
// A plan written by hand is obeyed. One that the kernels of its algorithm cannot compute is an error.
#pragma once

#include "compiler/graph/module.h"

#include <map>
#include <string>
#include <variant>

namespace firn::plan {

// How the walk over windows of blocked channels is cut: a tile is a run of `pixels` positions of the result
// along one spatial dim.
struct WindowTiling {
  int64_t pixels = 1;
  int64_t along = 0;     // the spatial dim
  bool straight = false; // positions whose whole window is inside get straight code
  bool operator==(const WindowTiling&) const = default;
};

// A depthwise convolution, or one of narrow groups, over blocked channels.
struct DepthwisePlan {
  WindowTiling tiling;
  bool taps_in_registers = false; // those of a block of channels, for all its tiles; needs straight code
  bool operator==(const DepthwisePlan&) const = default;
};

// A maximum, minimum or sum over windows of blocked channels.
struct PoolingPlan {
  WindowTiling tiling;
  bool operator==(const PoolingPlan&) const = default;
};

using KernelPlan = std::variant<DepthwisePlan, PoolingPlan>;

std::string to_string(const KernelPlan& plan);
// Reads what to_string() prints; `name` stands before line and column in errors.
Expected<KernelPlan> parse_kernel_plan(const std::string& name, std::string_view text);

// The plans of a module's instructions, those within `if`, `while` and fusions of several kernels among them.
// Instructions without one become no kernel, or one of an emitter that decides for itself
// (lower/emitter_table.cpp).
class KernelPlans {
public:
  // Null without a plan, or with one of another algorithm.
  template <class Plan> const Plan* find(const Instruction& instruction) const {
    auto found = plans_.find(&instruction);
    return found == plans_.end() ? nullptr : std::get_if<Plan>(&found->second);
  }
  const KernelPlan* find(const Instruction& instruction) const {
    auto found = plans_.find(&instruction);
    return found == plans_.end() ? nullptr : &found->second;
  }
  void set(const Instruction& instruction, KernelPlan plan) { plans_[&instruction] = std::move(plan); }

private:
  std::map<const Instruction*, KernelPlan> plans_;
};

} // namespace firn::plan
