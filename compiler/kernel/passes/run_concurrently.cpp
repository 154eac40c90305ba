// run-concurrently: calls that threads do not share run at the same time as others that do not depend on
// them, such as the two directions of a recurrent layer.
//
//   call 3 (0, 1)        call 5 (0, 2)
//   call 5 (0, 2)   ->   concurrent {
//   call 4 (0, 3)          call 3 (0, 1)
//                          call 4 (0, 3)
//                        }
//
// Calls in between run before both or behind both, as dependences allow. Each of the two must take at least
// as long as handing out tasks does. Runs behind share-kernels, which is better where it has enough work, and
// before memory is planned, for what concurrent calls touch is alive at the same time.
#include "compiler/kernel/passes/cycle_count.h"
#include "compiler/kernel/passes/pass.h"

#include <algorithm>
#include <optional>

namespace firn::kernel {
namespace {

constexpr size_t kFarthest = 32; // the most steps from one call to the other

class Concurrency {
public:
  Concurrency(Program& program, const KernelPassOptions& options) : program_(program), options_(options) {}

  bool run(std::vector<Step>& steps) {
    bool changed = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Step::Kind::Concurrent) continue;
      changed |= run(steps[i].first) | run(steps[i].second);
      if (!is_long(steps[i])) continue;
      size_t at = i;
      for (int calls = 1; calls < options_.goals.threads; ++calls) {
        auto other = find_other(steps, at);
        if (!other || !options_.take_rewrite()) break;
        at = join(steps, at, *other);
        changed = true;
      }
      if (at != i) --i; // another step stands here now
    }
    return changed;
  }

private:
  const Kernel& kernel_of(const Step& call) const {
    return *program_.kernels[static_cast<size_t>(call.kernel)];
  }

  // Whether a call is left to one thread, for longer than it takes to hand it to another.
  bool is_long(const Step& step) const {
    if (step.kind != Step::Kind::Call || step.is_copy) return false;
    const Kernel& kernel = kernel_of(step);
    if (kernel.tasks > 1 || kernel.parallel_count.lower_bound() < 1 || may_end_run(step)) return false;
    const Machine& target = options_.target_of(kernel);
    double cycles = count_cycles(kernel, target) * static_cast<double>(kernel.max_iterations()) *
                    static_cast<double>(kernel.phases);
    return options_.goals.share_all || cycles >= kSharedCallCycles;
  }

  // Whether the call may end the run with an error. Calls behind it may rely on its check, so they stay
  // there.
  bool may_end_run(const Step& call) const {
    return std::any_of(call.arguments.begin(), call.arguments.end(), [&](const Argument& argument) {
      return program_.buffers[static_cast<size_t>(argument.buffer)].space == Space::Status;
    });
  }

  bool depend(const Step& a, const Step& b) const {
    if (a.kind == Step::Kind::Concurrent)
      return std::any_of(a.first.begin(), a.first.end(), [&](const Step& call) { return depend(call, b); });
    if (b.kind == Step::Kind::Concurrent) return depend(b, a);
    if (a.kind != Step::Kind::Call || b.kind != Step::Kind::Call) return true;
    return depend_on_each_other(a, b, program_);
  }

  struct Other {
    size_t index;
    bool moves_up; // the call moves up; false: the step itself moves down
  };
  // A call behind `steps[at]` that can run at the same time; `steps[at]` is one call or several joined ones.
  std::optional<Other> find_other(const std::vector<Step>& steps, size_t at) const {
    bool can_sink = true;
    for (size_t i = at + 1; i < steps.size() && i <= at + kFarthest; ++i) {
      if (steps[i].kind != Step::Kind::Call || may_end_run(steps[i])) return std::nullopt;
      bool is_free = !depend(steps[at], steps[i]);
      if (is_free && is_long(steps[i])) {
        if (can_sink) return Other{i, false};
        auto begin = steps.begin();
        if (std::none_of(begin + static_cast<std::ptrdiff_t>(at) + 1, begin + static_cast<std::ptrdiff_t>(i),
                         [&](const Step& between) { return depend(between, steps[i]); }))
          return Other{i, true};
      }
      can_sink &= is_free;
    }
    return std::nullopt;
  }

  // Returns the index of the joined step.
  static size_t join(std::vector<Step>& steps, size_t at, Other other) {
    auto begin = steps.begin();
    auto place = begin + static_cast<std::ptrdiff_t>(at),
         found = begin + static_cast<std::ptrdiff_t>(other.index);
    Step joined;
    if (place->kind == Step::Kind::Concurrent) {
      joined = std::move(*place);
    } else {
      joined.kind = Step::Kind::Concurrent;
      joined.first.push_back(std::move(*place));
    }
    joined.first.push_back(std::move(*found));
    (other.moves_up ? *place : *found) = std::move(joined);
    steps.erase(other.moves_up ? found : place);
    return other.moves_up ? at : other.index - 1;
  }

  Program& program_;
  const KernelPassOptions& options_;
};

} // namespace

bool run_concurrently(Program& program, const KernelPassOptions& options) {
  if (!options.target || options.goals.threads <= 1) return false;
  return Concurrency(program, options).run(program.steps);
}

} // namespace firn::kernel
