// How one instruction is computed: an algorithm and all that was decided for it. Plans are plain data;
// their text stands in the graph as the attribute `plan`:
//
//   %d = convolution %x, %w {..., plan = "depthwise tile 7 along 1 unrolled taps_in_registers"} : ...
//
// A plan that is written, by hand or in a schedule database, is a request: it may leave holes, which the
// cost model fills for the instruction at hand. It is obeyed, or it is an error where the kernels of its
// algorithm cannot compute it. The struct of each algorithm's decisions lies in the algorithm's folder
// (FOLDER/plan.h) and lists its fields once, fields(): plans print, are read and are compared by these lists,
// and `firn help plans` shows them. A completed plan also carries what was derived of its instruction on the
// way, such as a convolution's geometry, so that lowering finds it there: members that are no fields.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/algorithm.h"
#include "compiler/plan/plan_fields.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace firn::plan {

// A plan of any algorithm, as a value: it is copied with its decisions.
class KernelPlan {
public:
  KernelPlan(); // no kernel: Algorithm::Inline
  template <class Plan>
  requires requires(Plan plan) { plan.fields(); }
  KernelPlan(Plan plan)
      : algorithm_(algorithm_of(plan)), decisions_(std::make_unique<DecisionsOf<Plan>>(std::move(plan))) {}
  KernelPlan(const KernelPlan& other) : algorithm_(other.algorithm_), decisions_(other.decisions_->clone()) {}
  KernelPlan(KernelPlan&&) = default;
  KernelPlan& operator=(KernelPlan other) {
    std::swap(algorithm_, other.algorithm_);
    decisions_.swap(other.decisions_);
    return *this;
  }

  Algorithm algorithm() const { return algorithm_; }
  // The decisions of an algorithm whose struct is `Plan`; null: it has another.
  template <class Plan> const Plan* get_if() const {
    return is_plan_of<Plan>(algorithm_) ? static_cast<const Plan*>(decisions_->plan) : nullptr;
  }
  template <class Plan> Plan* get_if() {
    return is_plan_of<Plan>(algorithm_) ? static_cast<Plan*>(decisions_->plan) : nullptr;
  }
  template <class Plan> bool is() const { return is_plan_of<Plan>(algorithm_); }
  // The list refers to the plan, which outlives it.
  Fields fields() { return decisions_->fields(); }

private:
  struct Decisions {
    virtual ~Decisions() = default;
    virtual std::unique_ptr<Decisions> clone() const = 0;
    virtual Fields fields() = 0;
    void* plan = nullptr; // the struct
  };
  template <class Plan> struct DecisionsOf final : Decisions {
    explicit DecisionsOf(Plan given) : own(std::move(given)) { plan = &own; }
    std::unique_ptr<Decisions> clone() const override { return std::make_unique<DecisionsOf>(own); }
    Fields fields() override { return own.fields(); }
    Plan own;
  };

  Algorithm algorithm_;
  std::unique_ptr<Decisions> decisions_; // never null, but in a plan that was moved from
};

// Estimates are no part of it. Equal plans have equal texts.
bool operator==(const KernelPlan& a, const KernelPlan& b);
// The text has the fields that differ from the defaults of the lists, in their order.
std::string to_string(const KernelPlan& plan);

// A plan that somebody wrote, with holes, and which of its fields are no holes.
struct PlanRequest {
  KernelPlan plan;
  GivenFields given;
};
// The text has the fields that were given, and is read back as the same request.
std::string to_string(const PlanRequest& request);
// `name` stands before line and column in errors.
Expected<PlanRequest> parse_plan_request(const std::string& name, std::string_view text);
// Why a completed plan is not what was asked for; empty: it is.
std::string check_given(const PlanRequest& request, const KernelPlan& completed);

// The words of all algorithms with what they mean, for people.
std::string plan_grammar();

// The plans of a module's instructions, those within `if`, `while` and fusions of several kernels among
// them. Instructions without one become no kernel: they are constants, control flow, or composites whose
// bodies have the kernels.
class KernelPlans {
public:
  // Null without a plan, or with one of another algorithm.
  template <class Plan> const Plan* find(const Instruction& instruction) const {
    auto found = plans_.find(&instruction);
    return found == plans_.end() ? nullptr : found->second.template get_if<Plan>();
  }
  const KernelPlan* find(const Instruction& instruction) const {
    auto found = plans_.find(&instruction);
    return found == plans_.end() ? nullptr : &found->second;
  }
  bool has(const Instruction& instruction, Algorithm algorithm) const {
    const KernelPlan* plan = find(instruction);
    return plan && plan->algorithm() == algorithm;
  }
  void set(const Instruction& instruction, KernelPlan plan) { plans_[&instruction] = std::move(plan); }
  // Sets a plan for the baseline of several CPUs, whose code all of them run for it.
  void set_for_baseline(const Instruction& instruction, KernelPlan plan) {
    set(instruction, std::move(plan));
    for_baseline_.insert(&instruction);
  }
  bool is_for_baseline(const Instruction& instruction) const {
    return for_baseline_.count(&instruction) != 0;
  }

  // Marks the plan as one that a person wrote, which other decisions leave as it is.
  void mark_as_written(const Instruction& instruction) { written_.insert(&instruction); }
  bool is_written(const Instruction& instruction) const { return written_.count(&instruction) != 0; }

  // Bytes of all constants of the module: what a run draws through the caches.
  int64_t model_weight_bytes = 0;

private:
  std::map<const Instruction*, KernelPlan> plans_;
  std::set<const Instruction*> for_baseline_, written_;
};

} // namespace firn::plan
