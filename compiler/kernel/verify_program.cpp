// The verifier of programs. It checks that
// - buffers have a size, an alignment that their offset keeps, and, as inputs, outputs and states, their
//   number; states start from weights;
// - kernels verify and have names of their own;
// - constants fill weights, each buffer once;
// - calls pass one argument per parameter, which lies in its buffer and is aligned as the parameter promises,
//   and one extent per extent of the kernel, within its bounds, of the program's;
// - nothing writes inputs or weights; conditions name bytes that exist;
// - steps around calls hold one step, and name status words and extents that exist;
// - tensors of the interface have dims over the program's extents, and results update states;
// - what a call writes shares memory with nothing else that it is passed, unless the kernel promises to write
//   in place.
#include "compiler/kernel/kernel.h"

#include <algorithm>
#include <set>

namespace firn::kernel {

namespace {

class ProgramVerifier {
public:
  explicit ProgramVerifier(const Program& program) : program_(program) {}

  Result run() {
    for (const SymbolRef& extent : program_.extents)
      if (extent->lower < 0 || extent->upper > kLargestExtent)
        fail("extent '" + extent->name + "' has bounds that no extent has");
    for (const Buffer& buffer : program_.buffers) check_buffer(buffer);
    std::set<std::string> names;
    for (const auto& kernel : program_.kernels) {
      if (Result result = verify(*kernel); !result) return result;
      if (!names.insert(kernel->name).second) fail("two kernels are named '" + kernel->name + "'");
    }
    check_constants();
    check_interface();
    check_steps(program_.steps, /*depth=*/0);
    if (message_.empty()) return {};
    return internal_error("program '" + program_.name + "': " + message_);
  }

private:
  void fail(const std::string& text) {
    if (message_.empty()) message_ = text;
  }
  bool is_buffer(int number) const {
    return number >= 0 && static_cast<size_t>(number) < program_.buffers.size();
  }
  const Buffer& buffer(int number) const { return program_.buffers[static_cast<size_t>(number)]; }

  void check_buffer(const Buffer& buffer) {
    if (buffer.bytes < 0) fail("buffer '" + buffer.name + "' has a negative size");
    if (buffer.alignment < 1 || (buffer.alignment & (buffer.alignment - 1))) {
      fail("buffer '" + buffer.name + "' has alignment " + std::to_string(buffer.alignment));
    }
    if (buffer.space == Space::Scratch)
      fail("buffer '" + buffer.name + "' is scratch, which belongs to kernels");
    bool numbered = buffer.space == Space::Input || buffer.space == Space::Output || is_state(buffer.space);
    if (numbered && buffer.io_index < 0)
      fail("buffer '" + buffer.name + "' does not say which input, output or state it is");
    if (buffer.initial >= 0 &&
        (!is_state(buffer.space) || !is_buffer(buffer.initial) ||
         program_.buffers[static_cast<size_t>(buffer.initial)].space != Space::Weights ||
         program_.buffers[static_cast<size_t>(buffer.initial)].bytes < buffer.bytes))
      fail("buffer '" + buffer.name + "' has a first value that is none");
    if (buffer.offset >= 0 && buffer.offset % buffer.alignment != 0 && buffer.bytes > 0) {
      fail("buffer '" + buffer.name + "' lies at offset " + std::to_string(buffer.offset) +
           ", against its alignment");
    }
  }

  void check_constants() {
    std::set<int> filled;
    for (const Constant& constant : program_.constants) {
      if (!is_buffer(constant.buffer) || buffer(constant.buffer).space != Space::Weights) {
        fail("a constant fills buffer " + std::to_string(constant.buffer) + ", which is no weights buffer");
      } else if (!filled.insert(constant.buffer).second) {
        fail("buffer '" + buffer(constant.buffer).name + "' is filled twice");
      }
    }
  }

  void check_interface() {
    const Interface& interface = program_.interface;
    auto check = [&](const Tensor& tensor) {
      for (const IntExpr& dim : tensor.dims) {
        if (!mentions_known(dim)) fail("a dim of '" + tensor.name + "' mentions an extent that there is not");
        if (dim.lower_bound() < 0 || dim.upper_bound() > kLargestExtent)
          fail("a dim of '" + tensor.name + "' has bounds that no extent has");
      }
    };
    for (const Tensor& tensor : interface.parameters) check(tensor);
    std::set<int> updated;
    for (const Tensor& tensor : interface.results) {
      check(tensor);
      if (tensor.updates < -1 || tensor.updates >= static_cast<int>(interface.parameters.size()))
        fail("output '" + tensor.name + "' updates an input that there is not");
      else if (tensor.updates >= 0 && !updated.insert(tensor.updates).second)
        fail("two outputs update one state");
    }
    if (!interface.dims.empty() && interface.dims.size() != program_.extents.size())
      fail("some extents have dims, and others have none");
  }

  bool mentions_known(const IntExpr& expression) const {
    std::vector<SymbolRef> symbols = expression.symbols();
    return std::all_of(symbols.begin(), symbols.end(), [&](const SymbolRef& symbol) {
      return std::find(extents_.begin(), extents_.end(), symbol) != extents_.end();
    });
  }

  void check_status(const Step& step) {
    if (!is_buffer(step.condition.buffer) || step.condition.byte_offset != 0 ||
        buffer(step.condition.buffer).space != Space::Status || buffer(step.condition.buffer).bytes < 4)
      fail("a status lies in no status word");
  }

  // Checks a step that make-entry adds.
  void check_entry_step(const Step& step, int depth) {
    if (step.has_status()) check_status(step);
    if (step.is_preamble()) {
      if (depth > 0) fail("a run begins within a step");
      return;
    }
    if (step.first.size() != 1)
      return fail("a step around a call holds " + std::to_string(step.first.size()));
    if (step.kind == Step::Kind::When && !mentions_known(*step.count))
      return fail("a condition mentions an extent that the program does not have");
    check_steps(step.first, depth + 1);
    if (!message_.empty() || step.kind != Step::Kind::Share) return;
    const Step& call = step.first[0];
    if (call.kind != Step::Kind::Call) return fail("threads share calls alone");
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(call.kernel)];
    if (kernel.tasks < 2) fail("threads share kernel '" + kernel.name + "', which has one task");
  }

  void check_steps(const std::vector<Step>& steps, int depth) {
    if (depth > 200) return fail("steps are nested more than 200 levels deep");
    for (const Step& step : steps) {
      if (!message_.empty()) return;
      if (step.kind == Step::Kind::Call) {
        check_call(step);
        continue;
      }
      if (step.kind == Step::Kind::Concurrent) {
        check_concurrent(step, depth);
        continue;
      }
      if (step.is_preamble() || step.kind == Step::Kind::Checked || step.kind == Step::Kind::When ||
          step.kind == Step::Kind::Share) {
        check_entry_step(step, depth);
        continue;
      }
      bool binds = step.kind == Step::Kind::Bind;
      if (!is_buffer(step.condition.buffer) || step.condition.byte_offset < 0 ||
          step.condition.byte_offset > buffer(step.condition.buffer).bytes - (binds ? 8 : 1)) {
        fail(binds ? "a count lies outside its buffer" : "a condition lies outside its buffer");
      }
      if (binds) {
        if (step.symbol->lower < 0 || step.symbol->upper > kLargestExtent)
          fail("count '" + step.symbol->name + "' has no bounds");
        extents_.push_back(step.symbol);
        continue;
      }
      size_t known = extents_.size(); // extents that are bound inside are unknown after the step
      check_steps(step.first, depth + 1);
      if (step.kind == Step::Kind::If) extents_.resize(known);
      check_steps(step.second, depth + 1);
      extents_.resize(known);
    }
  }

  void check_concurrent(const Step& step, int depth) {
    if (step.first.size() < 2) fail("concurrent calls are fewer than two");
    for (const Step& call : step.first) {
      if (call.kind != Step::Kind::Call) return fail("only calls run concurrently");
      check_steps({call}, depth + 1);
      if (!message_.empty()) return;
      const Kernel& kernel = *program_.kernels[static_cast<size_t>(call.kernel)];
      if (kernel.tasks > 1) return fail("kernel '" + kernel.name + "' has threads of its own");
      if (kernel.parallel_count.lower_bound() < 1)
        return fail("kernel '" + kernel.name + "' runs concurrently, and may have no iterations");
    }
    for (size_t i = 0; i < step.first.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (depend_on_each_other(step.first[i], step.first[j], program_))
          return fail("a concurrent call writes what another touches");
  }

  void check_call(const Step& step) {
    if (step.kernel < 0 || static_cast<size_t>(step.kernel) >= program_.kernels.size()) {
      return fail("a step calls kernel " + std::to_string(step.kernel) + ", which does not exist");
    }
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
    if (step.arguments.size() != kernel.parameters.size()) {
      return fail("kernel '" + kernel.name + "' is called with " + std::to_string(step.arguments.size()) +
                  " arguments, has " + std::to_string(kernel.parameters.size()) + " parameters");
    }
    check_extents(kernel, step);
    if (step.is_copy &&
        (step.arguments.size() != 2 || kernel.parameters[0].written || !kernel.parameters[1].written))
      return fail("a copy by kernel '" + kernel.name +
                  "' does not read its first argument and write its second");
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      check_argument(kernel, kernel.parameters[i], step.arguments[i]);
    }
    for (size_t i = 0; message_.empty() && i < step.arguments.size(); ++i)
      for (size_t j = 0; j < step.arguments.size(); ++j)
        if (i != j && kernel.parameters[i].written) check_disjoint(kernel, step, i, j);
  }

  void check_extents(const Kernel& kernel, const Step& step) {
    if (step.extents.size() != kernel.extents.size())
      return fail("kernel '" + kernel.name + "' is called with " + std::to_string(step.extents.size()) +
                  " extents, has " + std::to_string(kernel.extents.size()));
    for (size_t i = 0; i < step.extents.size(); ++i) {
      const IntExpr& given = step.extents[i];
      const Symbol& wanted = *kernel.extents[i];
      for (const SymbolRef& symbol : given.symbols())
        if (std::find(extents_.begin(), extents_.end(), symbol) == extents_.end())
          return fail("a call mentions extent '" + symbol->name + "', which the program does not have");
      if (given.lower_bound() < wanted.lower || given.upper_bound() > wanted.upper)
        fail("extent '" + wanted.name + "' of kernel '" + kernel.name +
             "' may leave its bounds: " + given.to_string());
    }
    if (step.count && message_.empty())
      if (IntExpr iterations = iterations_of(step, kernel); *step.count != iterations)
        fail("kernel '" + kernel.name + "' is called with a count of " + step.count->to_string() +
             ", has iterations " + iterations.to_string());
  }

  // The kernel writes argument i.
  void check_disjoint(const Kernel& kernel, const Step& step, size_t i, size_t j) {
    const Argument &written = step.arguments[i], &other = step.arguments[j];
    if (written.buffer != other.buffer) return;
    int64_t distance = other.byte_offset - written.byte_offset;
    auto bytes = [&](size_t n) {
      return kernel.parameters[n].size * scalar_bytes(kernel.parameters[n].element);
    };
    if (distance >= bytes(i) || -distance >= bytes(j)) return;
    bool promised = std::any_of(kernel.in_place.begin(), kernel.in_place.end(), [&](const InPlace& pair) {
      return pair.written == static_cast<int>(i) && pair.read == static_cast<int>(j) &&
             pair.distance == distance;
    });
    if (!promised)
      fail("kernel '" + kernel.name + "' writes '" + kernel.parameters[i].name + "' over '" +
           kernel.parameters[j].name + "', which it does not promise to do in place");
  }

  void check_argument(const Kernel& kernel, const BufferParameter& parameter, const Argument& argument) {
    std::string what = "argument '" + parameter.name + "' of kernel '" + kernel.name + "' ";
    if (!is_buffer(argument.buffer)) return fail(what + "names a buffer that does not exist");
    const Buffer& memory = buffer(argument.buffer);
    int64_t bytes = parameter.size * scalar_bytes(parameter.element);
    if (parameter.per_task && kernel.tasks > 1) bytes = task_stride(parameter) * kernel.tasks;
    if (argument.byte_offset < 0 || argument.byte_offset > memory.bytes - bytes) {
      fail(what + "needs " + std::to_string(bytes) + " bytes at " + std::to_string(argument.byte_offset) +
           " of buffer '" + memory.name + "', which has " + std::to_string(memory.bytes));
    }
    bool io = memory.space == Space::Input || memory.space == Space::Output;
    // Inputs and outputs may be the caller's own memory, of which only the element's alignment is known.
    if (!io &&
        (memory.alignment % parameter.alignment != 0 || argument.byte_offset % parameter.alignment != 0)) {
      fail(what + "is promised alignment " + std::to_string(parameter.alignment) + ", buffer '" +
           memory.name + "' has " + std::to_string(memory.alignment) + " at offset " +
           std::to_string(argument.byte_offset));
    }
    if (parameter.written && (memory.space == Space::Weights || memory.space == Space::Input)) {
      fail(what + "is written, but buffer '" + memory.name + "' is read-only");
    }
  }

  const Program& program_;
  std::vector<SymbolRef> extents_ = program_.extents; // extents that calls may mention at the current step
  std::string message_;
};

} // namespace

Result verify(const Program& program) {
  return ProgramVerifier(program).run();
}

} // namespace firn::kernel
