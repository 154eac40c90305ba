// Cycles of the steps of a program.
#include "compiler/driver/predicted_time.h"

#include "compiler/kernel/passes/cycle_count.h"
#include "compiler/plan/cost_model.h"

#include <algorithm>

namespace firn::driver {
namespace {

class Prediction {
public:
  Prediction(const kernel::Program& program, const Machine& target) : program_(program), target_(target) {}

  // Counts both branches, and one iteration of a loop: nothing is known of conditions.
  double of(const std::vector<kernel::Step>& steps) const {
    double cycles = 0;
    for (const kernel::Step& step : steps)
      cycles += step.kind == kernel::Step::Kind::Call ? of_call(step) : of(step.first) + of(step.second);
    return cycles;
  }

private:
  double of_call(const kernel::Step& call) const {
    const kernel::Kernel& kernel = *program_.kernels[static_cast<size_t>(call.kernel)];
    double computing = count_cycles(kernel, target_) * static_cast<double>(kernel.max_iterations()) *
                       static_cast<double>(kernel.phases);
    return plan::overlapped(
        computing, plan::stream_cycles(weight_bytes(call), /*passes=*/1, target_, program_.weight_bytes));
  }

  // A kernel that looks up rows of a table reads a part of it alone.
  double weight_bytes(const kernel::Step& call) const {
    double bytes = 0, read = static_cast<double>(program_.kernels[static_cast<size_t>(call.kernel)]->bytes);
    for (const auto& argument : call.arguments) {
      const kernel::Buffer& buffer = program_.buffers[static_cast<size_t>(argument.buffer)];
      if (buffer.space == kernel::Space::Weights) bytes += static_cast<double>(buffer.bytes);
    }
    return std::min(bytes, read);
  }

  const kernel::Program& program_;
  const Machine& target_;
};

} // namespace

double predicted_cycles(const Compilation& compilation) {
  return Prediction(compilation.program, compilation.target).of(compilation.program.steps);
}

} // namespace firn::driver
