// Liveness of buffers over nested steps.
#include "compiler/memory/liveness.h"

#include <algorithm>
#include <map>

namespace firn::memory {
namespace {

using kernel::Step;

class LivenessBuilder {
public:
  explicit LivenessBuilder(kernel::Program& program) : program_(program) {
    result_.buffers.resize(program.buffers.size());
  }

  Liveness run() {
    visit(program_.steps);
    result_.num_steps = time_;
    for (size_t i = 0; i < program_.buffers.size(); ++i)
      if ((program_.buffers[i].extent_of >= 0 || program_.buffers[i].kept) && time_ > 0) {
        result_.buffers[i].add(0);
        result_.buffers[i].add(time_ - 1);
      }
    extend_over_loops();
    return std::move(result_);
  }

private:
  struct Loop {
    int first, last;
    std::map<int, bool> reads_first; // by buffer: whether its first access in an iteration is a read
  };

  void touch(int buffer, bool written) {
    result_.buffers[static_cast<size_t>(buffer)].add(time_);
    for (size_t loop : open_) loops_[loop].reads_first.emplace(buffer, !written);
  }

  // Reads first: a buffer both read and written counts as read.
  void touch_all(const Step& call) {
    const kernel::Kernel& kernel = *program_.kernels[static_cast<size_t>(call.kernel)];
    for (bool written : {false, true})
      for (size_t i = 0; i < call.arguments.size(); ++i)
        if (kernel.parameters[i].written == written) touch(call.arguments[i].buffer, written);
  }

  void visit_call(Step& step) {
    touch_all(step);
    result_.calls.push_back(&step);
    ++time_;
  }

  // All that the calls touch is alive at the same time.
  void visit_concurrent(Step& step) {
    for (const Step& call : step.first) touch_all(call);
    result_.calls.push_back(nullptr);
    ++time_;
  }

  void visit(std::vector<Step>& steps) {
    for (Step& step : steps) {
      if (step.kind == Step::Kind::Call) {
        visit_call(step);
      } else if (step.kind == Step::Kind::Concurrent) {
        visit_concurrent(step);
      } else if (step.kind == Step::Kind::Bind) {
        visit_condition(step);
      } else if (step.kind == Step::Kind::If) {
        visit_condition(step);
        visit(step.first);
        visit(step.second);
      } else {
        visit_loop(step);
      }
    }
  }

  void visit_condition(Step& step) {
    touch(step.condition.buffer, false);
    result_.calls.push_back(nullptr);
    ++time_;
  }

  void visit_loop(Step& step) {
    size_t number = loops_.size();
    loops_.push_back({time_, time_, {}});
    open_.push_back(number);
    visit(step.first);
    visit_condition(step);
    visit(step.second);
    open_.pop_back();
    loops_[number].last = time_ - 1;
  }

  // Inner loops come after outer ones in the list; repeating until nothing grows handles nesting.
  void extend_over_loops() {
    for (bool grown = true; grown;) {
      grown = false;
      for (const Loop& loop : loops_)
        for (auto [buffer, reads_first] : loop.reads_first) {
          LiveInterval& interval = result_.buffers[static_cast<size_t>(buffer)];
          bool outside = interval.first < loop.first || interval.last > loop.last;
          if (!outside && !reads_first) continue;
          LiveInterval before = interval;
          interval.add(loop.first);
          interval.add(loop.last);
          interval.held_until = std::max(interval.held_until, loop.last);
          grown |= before.first != interval.first || before.last != interval.last;
        }
    }
  }

  kernel::Program& program_;
  Liveness result_;
  std::vector<Loop> loops_;
  std::vector<size_t> open_;
  int time_ = 0;
};

} // namespace

Liveness compute_liveness(kernel::Program& program) {
  return LivenessBuilder(program).run();
}

} // namespace firn::memory
