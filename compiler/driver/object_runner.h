// Runs a compiled model in this process: the code that `firn compile` emits, loaded by loaded_code.h.
#pragma once

#include "compiler/driver/instance.h"
#include "include/firn/thread_pool.h"

namespace firn::driver {

class ObjectRunner {
public:
  // Generates code for a compilation that compile_in_memory made for this host. With `memory`, the arena
  // comes from it first, then the block of parameters, if there is one, the weights (a copy, unless they are
  // prepared) and every input and output that lies outside the arena, aligned as a caller has to; else from
  // the heap.
  static Expected<std::unique_ptr<ObjectRunner>> create(Compilation& compilation,
                                                        RunnerMemory* memory = nullptr);
  // Another runner of the same code on the same weights, with arena and parameters of its own on the heap,
  // for a run at the same time. This one outlives it.
  std::unique_ptr<ObjectRunner> make_twin() const;
  ~ObjectRunner();
  ObjectRunner(const ObjectRunner&) = delete;

  // Takes what @main takes and gives what it gives: checks dtypes and dims of `inputs`, runs, and copies the
  // results. Dims that vary are those of the inputs. A state that is not given (null) goes on from what it
  // is.
  Expected<std::vector<LiteralRef>> run(const std::vector<LiteralRef>& inputs);
  // Whether every input, states apart, still is what the last run() was given.
  bool inputs_are(const std::vector<LiteralRef>& inputs) const;
  // Runs again on the inputs of the last run(), from the states that it left; a FIRN_STATUS_.
  int run_again();
  // Has runs ask another executor for threads, null: none. At first it is a pool of as many as the object
  // makes use of. The executor outlives the runner.
  void lend(const firn_executor* executor) { instance_->call().executor = executor; }
  const firn_executor* executor() const { return instance_->call().executor; }
  // The weights that the object holds.
  std::span<const std::byte> own_weights() const { return model_->own_weights(); }
  // Prepares other weights than the object's own, of an object that is compiled with Weights::Init; raw ones
  // as the description lays them out. An error where the code depends on others, as Weights::prepare() has
  // it.
  Result refit(std::span<const std::byte> raw) { return own_model_->refit(raw); }
  // States back to their first values, which they have after create().
  void reset() { instance_->reset(); }
  // For code generated with CodegenOptions::profile: the cycle counter before the first top-level step of the
  // last run() and behind each of its steps; while it runs, 0 for those that are not done.
  const std::vector<uint64_t>& stamps() const { return stamps_; }

private:
  ObjectRunner(Compilation& compilation, RunnerMemory* memory);
  void begin(std::byte* arena, std::byte* parameters);
  std::byte* allocate_parameters(); // null: the model has none
  void bind_tensors();
  Compilation* compilation_;
  std::unique_ptr<RunnerMemory> heap_;
  RunnerMemory* memory_;
  std::unique_ptr<LoadedExecutable> own_model_; // null in a twin: the other one unloads it
  const LoadedExecutable* model_ = nullptr;
  std::unique_ptr<Instance> instance_;
  std::vector<Instance::Slot> parameters_,
      results_; // @main's; a state's new value lies where the old one was
  std::unique_ptr<ThreadPool> pool_;
  firn_executor pool_executor_ = {};
  std::vector<uint64_t> stamps_; // steps of profiled code, else empty
};

} // namespace firn::driver
