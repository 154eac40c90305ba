// Runs the program of a GPU without one: its kernels as PTX in the interpreter (compiler/ptx), its steps
// here. Every buffer lies apart from all others, so that the interpreter finds each access beyond one.
#pragma once

#include "compiler/codegen/ptx.h"
#include "compiler/driver/actual_dims.h"
#include "compiler/driver/compile.h"
#include "compiler/graph/literal.h"
#include "compiler/ptx/module.h"

#include <memory>

namespace firn::driver {

class PtxRunner {
public:
  // Generates the PTX of a compilation for a GPU, which outlives the runner, and reads it.
  static Expected<std::unique_ptr<PtxRunner>> create(const Compilation& compilation, OptLevel level);
  // Reads PTX that was generated before, and changed since.
  static Expected<std::unique_ptr<PtxRunner>> create(const Compilation& compilation, codegen::PtxModule ptx);

  // Takes what @main takes and gives what it gives, as ObjectRunner::run() does. Errors are those of a run,
  // and what the interpreter finds: it names kernel, block, thread and line.
  Expected<std::vector<LiteralRef>> run(const std::vector<LiteralRef>& inputs);
  // States back to their first values.
  void reset();
  // How the next runs go: when copies arrive, in which order blocks and warps run.
  ptx::Options& options() { return options_; }

private:
  using Steps = std::vector<kernel::Step>;
  explicit PtxRunner(const Compilation& compilation) : c_(compilation), program_(compilation.program) {}

  void allocate();
  uint64_t allocate(const kernel::Buffer& buffer);
  void write(const kernel::Constant& constant);
  uint64_t address_of(const kernel::Argument& argument) const {
    return addresses_[static_cast<size_t>(argument.buffer)] + static_cast<uint64_t>(argument.byte_offset);
  }
  template <class T> T word_at(const kernel::Argument& place) const {
    return memory_.read<T>(address_of(place), 1)[0];
  }
  Result bind_extents(const std::vector<LiteralRef>& inputs);
  Result write_inputs(const std::vector<LiteralRef>& inputs);
  Expected<std::vector<LiteralRef>> read_results() const;
  int buffer_of(kernel::Space space, size_t number) const;
  int64_t value_of(const IntExpr& expression) const;

  Result run(const Steps& steps);
  Result run(const kernel::Step& step);
  Result call(const kernel::Step& step);

  const Compilation& c_;
  const kernel::Program& program_;
  std::vector<std::string> kernels_; // names of functions
  std::unique_ptr<ptx::Module> module_;
  ptx::Memory memory_;
  ptx::Options options_;
  std::vector<uint64_t> addresses_; // by buffer
  SymbolTable symbols_;             // the program's extents, and what steps have bound
  ActualDims dims_;
};

} // namespace firn::driver
