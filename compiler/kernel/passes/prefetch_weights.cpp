// prefetch-weights: weights that a call would wait for, such as the matrix of a matrix-vector product, are
// prefetched by calls before it that compute meanwhile.
//
//   call 0 (0, 1, 2)              call 0 (0, 1, 2, 3 + 4096)
//   call 1 (2, 3, 4)              call 1 (2, 3, 4)
//   kernel "convolution" {        kernel "convolution" {
//     ...                           ...
//                                   parameter "ahead" i8[0] align 64
//     for from (0) to (14) ...      for from (0) to (14) ... {
//                                     prefetch b3[64*i] streaming
//
// The kernels of those earlier calls get one more parameter: the place in the weights that their hot loops
// prefetch from. All calls of a kernel prefetch as much as the one that wants most; the stretches of the
// others end where the weights that they want end. Weights lie in the order of their use, so that they are
// one stream: a call asks for a stretch of it. The plan goes backwards, so that every stretch is asked for as
// late as it still arrives in time. Programs that fit in the second cache level, or are optimized for size,
// stay as they are.
//
// - Requires: equal kernels are one, so that code does not grow; weights have their places.
// - Establishes: nothing that another pass needs.
// - Breaks: nothing.
#include "compiler/kernel/passes/cycle_count.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/kernel/passes/spread_prefetches.h"

#include <algorithm>
#include <map>
#include <set>

namespace firn::kernel {
namespace {

constexpr int64_t kLine = kCacheLineBytes;
constexpr double kBandwidth = 0.8;  // share of the memory's bandwidth that prefetches can use
constexpr double kMinCycles = 3000; // the least computing that pays for another argument
constexpr int64_t kMinBytes = 4096;

int64_t round_up(int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

struct Call {
  Step* step = nullptr;
  int kernel = -1;             // -1: none (control flow), or one that must stay as it is
  int64_t begin = 0, end = 0;  // offsets of the weights that it is the first to read
  int64_t activations = 0;     // bytes
  int64_t arrives = 0;         // bytes of weights that it can load while it runs, without requests before it
  int64_t capacity = 0;        // bytes that it can prefetch
  int64_t ahead = 0;           // bytes behind its own weights that shall have arrived at its end
  int64_t from = 0, bytes = 0; // the stretch of weights that it prefetches
};

class Planner {
public:
  Planner(Program& program, const Machine& target) : program_(program), target_(target) {
    for (const Step& step : program.steps) {
      find_nested(step.first);
      find_nested(step.second);
    }
    for (Step& step : program.steps) add(step);
  }

  // Whether any call was given something to ask for.
  bool run(const KernelPassOptions& options) {
    if (place_of(0).buffer < 0) return false; // weights without places
    int64_t wanted = 0;
    for (size_t i = calls_.size(); i-- > 0;) wanted = plan_backwards(calls_[i], wanted);
    int64_t asked = 0;          // the end of what has been asked for
    std::map<int, int64_t> max; // bytes, by kernel
    for (Call& call : calls_) {
      call.from = std::max(asked, round_up(call.end));
      int64_t capacity = call.capacity - std::max<int64_t>(0, call.end - std::max(asked, call.begin));
      call.bytes = std::min(call.end + call.ahead - call.from, capacity) / kLine * kLine;
      if (call.bytes < kMinBytes) call.bytes = 0;
      asked = call.from + call.bytes;
      max[call.kernel] = std::max(max[call.kernel], call.bytes);
    }
    bool changed = false;
    for (auto [kernel, bytes] : max)
      if (kernel >= 0 && bytes > 0) changed |= ask(kernel, bytes, options);
    return changed;
  }

private:
  // Makes the calls of a kernel prefetch so many bytes.
  bool ask(int kernel, int64_t bytes, const KernelPassOptions& options) {
    auto spread = spread_prefetches(kernel_of(kernel), bytes / kLine);
    if (!spread || !options.take_rewrite()) return false;
    insert_prefetches(kernel_of(kernel), *spread);
    for (const Call& call : calls_)
      if (call.kernel == kernel) call.step->arguments.push_back(place_of(first_asked(call, bytes)));
    return true;
  }

  Kernel& kernel_of(int number) const { return *program_.kernels[static_cast<size_t>(number)]; }

  void find_nested(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::Call) nested_.insert(step.kernel);
      find_nested(step.first);
      find_nested(step.second);
    }
  }

  void add(Step& step) {
    Call call;
    call.step = &step;
    call.begin = call.end = calls_.empty() ? 0 : calls_.back().end;
    if (step.kind != Step::Kind::Call)
      call.activations = target_.cpu.l2_bytes;
    else
      add_call(call);
    calls_.push_back(call);
  }

  void add_call(Call& call) {
    Kernel& kernel = kernel_of(call.step->kernel);
    // Kernels that CPUs share stay equal for all of them.
    if (nested_.count(call.step->kernel) == 0 && !kernel.is_for_baseline) call.kernel = call.step->kernel;
    for (size_t i = 0; i < call.step->arguments.size(); ++i) {
      const Buffer& buffer = program_.buffers[static_cast<size_t>(call.step->arguments[i].buffer)];
      const BufferParameter& parameter = kernel.parameters[i];
      if (buffer.space == Space::Weights)
        call.end = std::max(call.end, buffer.offset + buffer.bytes);
      else
        call.activations += parameter.size * scalar_bytes(parameter.element);
    }
    // Threads compute side by side, each of them with a part of the activations and weights.
    double computing = computing_cycles(kernel) / kernel.tasks,
           activations = static_cast<double>(call.activations) / kernel.tasks;
    double running = std::max(computing, activations / target_.cpu.l2_bytes_per_cycle),
           // Time that moves activations is not left for weights.
        idle = computing - activations / target_.cpu.l3_bytes_per_cycle;
    double bandwidth = kBandwidth * target_.cpu.memory_bytes_per_cycle;
    call.arrives = static_cast<int64_t>(running * bandwidth);
    if (call.kernel >= 0 && idle >= kMinCycles) call.capacity = static_cast<int64_t>(idle * bandwidth);
  }

  // Tile products compute so much at a time that their kernels spend most cycles in other code.
  double computing_cycles(const Kernel& kernel) const {
    if (kernel.tiles.empty())
      return static_cast<double>(kernel.flops) /
             (2.0 * target_.cpu.register_lanes(32) * target_.cpu.fma_pipes);
    return count_cycles(kernel, target_) * static_cast<double>(kernel.max_iterations());
  }

  // Returns how many bytes, from the call's own weights on, shall have arrived before it begins so that
  // `wanted` bytes behind these have arrived at its end. At most half the cache holds weights that are not
  // used yet.
  int64_t plan_backwards(Call& call, int64_t wanted) const {
    int64_t own = call.end - call.begin;
    call.ahead = std::clamp<int64_t>(target_.cpu.l2_bytes / 2 - call.activations, 0, wanted);
    // The part due to its own weights: all of them if they are few, because the first tiles of a call ask for
    // weights faster than the rest, and would wait for them.
    int64_t late = own <= target_.cpu.l2_bytes / 4 ? own : own - call.arrives;
    if (call.ahead > 0) late = std::max(late, own + call.ahead - call.capacity);
    return std::max<int64_t>(0, late);
  }

  // Calls of a kernel ask for equally much. One that wants less starts earlier, with bytes that have arrived,
  // so that nothing arrives that the cache should not hold yet.
  static int64_t first_asked(const Call& call, int64_t bytes) {
    return std::max<int64_t>(0, call.from + call.bytes - bytes);
  }

  // The place of an offset in the weights. Behind the last weights the first ones follow, for the next run.
  Argument place_of(int64_t offset) const {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.space != Space::Weights || buffer.offset < 0) continue;
      if (offset >= buffer.offset && offset < buffer.offset + buffer.bytes)
        return {static_cast<int>(i), offset - buffer.offset};
    }
    return offset > 0 ? place_of(0) : Argument{};
  }

  Program& program_;
  const Machine& target_;
  std::set<int> nested_; // kernels that control flow calls
  std::vector<Call> calls_;
};

} // namespace

bool prefetch_weights(Program& program, const KernelPassOptions& options) {
  if (!options.target || options.goals.optimize_size()) return false;
  if (program.weight_bytes + program.arena_bytes <= options.target->cpu.l2_bytes) return false;
  return Planner(program, *options.target).run(options);
}

} // namespace firn::kernel
