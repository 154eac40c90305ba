// make-entry: steps say all that a run does, and leave nothing for code generation to imply.
//
//   extent n [0, 64]                      extent n [0, 64]
//   call 0 (0, 1) extents (n)             require
//                                         clear 1
//                                         checked 1 {
//                                           when (2 * n) {
//                                             share {
//                                               call 0 (0, 1) extents (n) count (2 * n)
//                                             }
//                                           }
//                                         }
//
// The bounds of extents are required, and the status word is cleared, when a run begins. A call that gets the
// status word may fail and is checked. One whose iterations vary states their number, and runs when there are
// any. A kernel with tasks is shared by threads. Steps that do all of this already stay as they are.
//
// - Requires: nothing.
// - Establishes: verify_entry() holds.
// - Breaks: other passes over steps, which look for calls; it runs last.
#include "compiler/kernel/passes/pass.h"

#include <algorithm>
#include <set>
#include <utility>

namespace firn::kernel {

namespace {

class EntryMaker {
public:
  explicit EntryMaker(Program& program) : program_(program) {}

  bool run() {
    expand(program_.steps, {});
    begin();
    return changed_;
  }

private:
  // The steps that hold a call already.
  struct Around {
    std::set<int> checked;
    bool is_counted = false, is_shared = false;
  };

  void expand(std::vector<Step>& steps, const Around& around) {
    for (Step& step : steps) expand(step, around);
  }

  void expand(Step& step, Around around) {
    switch (step.kind) {
    case Step::Kind::Call: return expand_call(step, around);
    case Step::Kind::If:
    case Step::Kind::While: expand(step.first, {}); return expand(step.second, {});
    case Step::Kind::Concurrent:
      for (Step& call : step.first) state_count(call);
      return;
    case Step::Kind::Checked: around.checked.insert(step.condition.buffer); break;
    case Step::Kind::When: around.is_counted = true; break;
    case Step::Kind::Share: around.is_shared = true; break;
    case Step::Kind::Bind:
    case Step::Kind::Require:
    case Step::Kind::Clear: return;
    }
    expand(step.first, around);
  }

  const Kernel& kernel_of(const Step& call) const {
    return *program_.kernels[static_cast<size_t>(call.kernel)];
  }

  void state_count(Step& call) {
    const Kernel& kernel = kernel_of(call);
    if (call.count || kernel.parallel_count.is_constant()) return;
    call.count = iterations_of(call, kernel);
    changed_ = true;
  }

  void expand_call(Step& step, const Around& around) {
    state_count(step);
    const std::optional<IntExpr> count = step.count;
    std::vector<int> statuses;
    for (const Argument& argument : step.arguments)
      if (program_.buffers[static_cast<size_t>(argument.buffer)].space == Space::Status)
        statuses.push_back(argument.buffer);
    if (kernel_of(step).tasks > 1 && !around.is_shared) enclose(step, Step::Kind::Share);
    if (count && count->lower_bound() < 1 && !around.is_counted) {
      enclose(step, Step::Kind::When);
      step.count = count;
    }
    for (int status : statuses) {
      statuses_.insert(status);
      if (around.checked.contains(status)) continue;
      enclose(step, Step::Kind::Checked);
      step.condition.buffer = status;
    }
  }

  void enclose(Step& step, Step::Kind kind) {
    Step outer;
    outer.kind = kind;
    outer.first.push_back(std::move(step));
    step = std::move(outer);
    changed_ = true;
  }

  // Adds what begins a run.
  void begin() {
    std::vector<Step> preamble;
    bool requires_bounds = !program_.extents.empty() &&
                           (program_.steps.empty() || program_.steps[0].kind != Step::Kind::Require);
    if (requires_bounds) preamble.emplace_back().kind = Step::Kind::Require;
    for (const Step& step : program_.steps)
      if (step.kind == Step::Kind::Clear) statuses_.erase(step.condition.buffer);
    for (int status : statuses_) {
      Step& clear = preamble.emplace_back();
      clear.kind = Step::Kind::Clear;
      clear.condition.buffer = status;
    }
    changed_ |= !preamble.empty();
    auto at =
        program_.steps.begin() + (!requires_bounds && !program_.extents.empty() ? 1 : 0); // behind the bounds
    program_.steps.insert(at, std::make_move_iterator(preamble.begin()),
                          std::make_move_iterator(preamble.end()));
  }

  Program& program_;
  std::set<int> statuses_; // words that calls get
  bool changed_ = false;
};

} // namespace

bool make_entry(Program& program, const KernelPassOptions&) {
  return EntryMaker(program).run();
}

} // namespace firn::kernel
