// hoist-invariant-calls: a loop's calls that would give the same in every iteration run once, in front of it.
//
//   while 9 {                        call 1 (0, 3)
//     call 0 (8, 9)                  while 9 {
//   } {                        ->      call 0 (8, 9)
//     call 1 (0, 3)                  } {
//     call 2 (3, 4)                    call 2 (3, 4)
//   }                                }
//
// The packs of weights that a loop's products read are the calls that count. A call moves if no step of the
// loop writes what it reads; if it alone writes its results, ahead of all their readers; and if nothing
// outside of the loop touches these, for the loop may have no iteration. Calls that may end a run stay.
//
// - Requires: memory is not planned.
// - Establishes: no call directly in a loop's body can move in front of the loop.
// - Breaks: nothing.
#include "compiler/kernel/passes/pass.h"

#include <algorithm>
#include <vector>

namespace firn::kernel {
namespace {

// The steps that touch a buffer, counted.
struct Touches {
  int reads = 0, writes = 0;
};

class Hoisting {
public:
  Hoisting(Program& program, const KernelPassOptions& options) : program_(program), options_(options) {}

  bool run() {
    count(program_.steps, everywhere_ = fresh());
    return run(program_.steps);
  }

private:
  using Counts = std::vector<Touches>;
  Counts fresh() const { return Counts(program_.buffers.size()); }
  static Touches& at(Counts& counts, const Argument& argument) {
    return counts[static_cast<size_t>(argument.buffer)];
  }

  // Visits the arguments of a call: with whether the call writes there.
  template <class Visit> void visit_arguments(const Step& call, const Visit& visit) const {
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(call.kernel)];
    for (size_t i = 0; i < call.arguments.size(); ++i) visit(call.arguments[i], kernel.parameters[i].written);
  }

  void count(const Step& step, Counts& counts) const {
    if (step.has_condition()) ++at(counts, step.condition).reads;
    if (step.kind == Step::Kind::Call)
      visit_arguments(step, [&](const Argument& argument, bool written) {
        ++(written ? at(counts, argument).writes : at(counts, argument).reads);
      });
    count(step.first, counts);
    count(step.second, counts);
  }
  void count(const std::vector<Step>& steps, Counts& counts) const {
    for (const Step& step : steps) count(step, counts);
  }

  // Inner loops come first: their calls may leave the outer one, too.
  bool run(std::vector<Step>& steps) {
    bool changed = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      changed |= run(steps[i].first) | run(steps[i].second);
      if (steps[i].kind != Step::Kind::While || binds(steps[i])) continue;
      std::vector<Step> moved = hoist(steps[i]);
      changed |= !moved.empty();
      steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(moved.begin()),
                   std::make_move_iterator(moved.end()));
      i += moved.size();
    }
    return changed;
  }

  // Whether a step sets an extent, which later calls may mention.
  static bool binds(const Step& step) {
    auto any = [](const std::vector<Step>& steps) { return std::any_of(steps.begin(), steps.end(), binds); };
    return step.kind == Step::Kind::Bind || any(step.first) || any(step.second);
  }

  std::vector<Step> hoist(Step& loop) {
    std::vector<Step> moved;
    Counts inside = fresh(), before = fresh(); // before: touched in an iteration ahead of the call
    count(loop, inside);
    count(loop.first, before);
    ++at(before, loop.condition).reads;
    for (size_t i = 0; i < loop.second.size();) {
      Step& step = loop.second[i];
      if (!may_move(step, inside, before) || !options_.take_rewrite()) {
        count(step, before);
        ++i;
        continue;
      }
      visit_arguments(step, [&](const Argument& argument, bool written) {
        --(written ? at(inside, argument).writes : at(inside, argument).reads);
      });
      moved.push_back(std::move(step));
      loop.second.erase(loop.second.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return moved;
  }

  bool may_move(const Step& step, Counts& inside, Counts& before) {
    if (step.kind != Step::Kind::Call) return false;
    bool may = true;
    visit_arguments(step, [&](const Argument& argument, bool written) {
      const Buffer& buffer = program_.buffers[static_cast<size_t>(argument.buffer)];
      Touches own = at(inside, argument), all = at(everywhere_, argument), ahead = at(before, argument);
      if (buffer.space == Space::Status || buffer.kept) may = false;
      if (!written) {
        may = may && own.writes == 0;
      } else {
        bool is_local = all.reads == own.reads && all.writes == 1 && own.writes == 1;
        may = may && is_local && ahead.reads == 0 && buffer.space == Space::Arena && buffer.extent_of < 0;
      }
    });
    return may;
  }

  Program& program_;
  const KernelPassOptions& options_;
  Counts everywhere_;
};

} // namespace

bool hoist_invariant_calls(Program& program, const KernelPassOptions& options) {
  return Hoisting(program, options).run();
}

} // namespace firn::kernel
