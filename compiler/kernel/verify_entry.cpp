// The verifier of entries: steps say all that a run does. It checks that
// - a program with extents requires their bounds first, and clears the status word before other steps;
// - a call states its iterations where they vary, and runs only when there are any;
// - a call that may fail is checked, and one whose kernel has tasks is shared;
// - calls that run at the same time cannot fail.
#include "compiler/kernel/kernel.h"

#include <algorithm>

namespace firn::kernel {

namespace {

class EntryVerifier {
public:
  explicit EntryVerifier(const Program& program) : program_(program) {}

  Result run() {
    if (!program_.extents.empty() &&
        (program_.steps.empty() || program_.steps[0].kind != Step::Kind::Require))
      fail("the bounds of extents are not required");
    std::span<const Step> work = work_steps(program_);
    for (const Step& step : std::span(program_.steps).first(program_.steps.size() - work.size()))
      if (step.kind == Step::Kind::Clear) cleared_.push_back(step.condition.buffer);
    check(work, {});
    if (message_.empty()) return {};
    return internal_error("entry of program '" + program_.name + "': " + message_ +
                          "; make-entry has not run, or a pass ran behind it");
  }

private:
  // The steps around a step that hold it alone.
  struct Around {
    const IntExpr* when = nullptr;
    std::vector<int> checked;
    bool is_shared = false, is_concurrent = false;
  };

  void fail(const std::string& text) {
    if (message_.empty()) message_ = text;
  }

  void check(std::span<const Step> steps, const Around& around) {
    for (const Step& step : steps) check(step, around);
  }

  void check(const Step& step, Around around) {
    switch (step.kind) {
    case Step::Kind::Call: return check_call(step, around);
    case Step::Kind::Bind: return;
    case Step::Kind::Require:
    case Step::Kind::Clear: return fail("a run begins behind its first steps");
    case Step::Kind::If:
    case Step::Kind::While: check(step.first, {}); return check(step.second, {});
    case Step::Kind::Concurrent: around.is_concurrent = true; break;
    case Step::Kind::Checked: around.checked.push_back(step.condition.buffer); break;
    case Step::Kind::When: around.when = &*step.count; break;
    case Step::Kind::Share: around.is_shared = true; break;
    }
    check(step.first, around);
  }

  void check_call(const Step& step, const Around& around) {
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
    const std::string call = "a call of kernel '" + kernel.name + "' ";
    bool varies = !kernel.parallel_count.is_constant();
    if (varies != step.count.has_value()) fail(call + "has iterations that vary, and no count");
    if (step.count && step.count->lower_bound() < 1 && !(around.when && *around.when == *step.count))
      fail(call + "runs where it has no iterations");
    if ((kernel.tasks > 1) != around.is_shared) fail(call + "has tasks, which no threads share");
    for (const Argument& argument : step.arguments) {
      if (program_.buffers[static_cast<size_t>(argument.buffer)].space != Space::Status) continue;
      if (std::find(cleared_.begin(), cleared_.end(), argument.buffer) == cleared_.end())
        fail(call + "may fail, and its status word is not cleared");
      bool is_checked =
          std::find(around.checked.begin(), around.checked.end(), argument.buffer) != around.checked.end();
      if (around.is_concurrent || !is_checked) fail(call + "may fail, and is not checked");
    }
  }

  const Program& program_;
  std::vector<int> cleared_; // status words
  std::string message_;
};

} // namespace

Result verify_entry(const Program& program) {
  return EntryVerifier(program).run();
}

} // namespace firn::kernel
