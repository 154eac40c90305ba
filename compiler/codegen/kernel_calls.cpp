// See kernel_calls.h.
#include "compiler/codegen/kernel_calls.h"

#include "compiler/support/bind_symbols.h"

#include <algorithm>

namespace firn::codegen {

using namespace kernel;

namespace {

// The bytes of an argument in the arena, where inputs and outputs may have a slot, or in the block of
// parameters; empty for other memory.
struct ArgumentRange {
  int64_t first = 0, end = 0;
  bool in_parameters = false;
  bool overlaps(const ArgumentRange& other) const {
    return in_parameters == other.in_parameters && first < other.end && other.first < end;
  }
};

// Gathers facts from the calls of a program.
class FactFinder {
public:
  explicit FactFinder(const Program& program) : program_(program) {
    for (const auto& kernel : program.kernels) {
      CallFacts facts;
      for (const BufferParameter& parameter : kernel->parameters)
        facts.parameters.push_back({parameter.alignment, /*no_alias=*/true});
      for (const InPlace& pair : kernel->in_place)
        for (int number : {pair.written, pair.read})
          facts.parameters[static_cast<size_t>(number)].no_alias = false;
      facts_.push_back(std::move(facts));
    }
  }

  std::vector<CallFacts> find() {
    gather(program_.steps);
    return std::move(facts_);
  }

private:
  void gather(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      gather(step.first);
      gather(step.second);
      if (step.kind != Step::Kind::Call) continue;
      gather_memory(step);
      gather_scalars(step);
    }
  }

  void gather_memory(const Step& step) {
    const Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
    std::vector<ParameterFacts>& facts = facts_[static_cast<size_t>(step.kernel)].parameters;
    std::vector<ArgumentRange> ranges;
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const BufferParameter& parameter = kernel.parameters[i];
      const Argument& argument = step.arguments[i];
      const Buffer& memory = program_.buffers[static_cast<size_t>(argument.buffer)];
      bool io = memory.space == Space::Input || memory.space == Space::Output;
      int64_t place = std::max<int64_t>(memory.offset, 0) + argument.byte_offset;
      int64_t known = place == 0 ? 4096 : place & -place;
      // Memory that the caller bound has the alignment of its elements and no more.
      if (io) known = caller_alignment(parameter.element);
      facts[i].alignment = static_cast<int>(std::min<int64_t>(facts[i].alignment, known));
      ArgumentRange range;
      if (memory.space != Space::Weights && memory.offset >= 0)
        range = {place, place + parameter.size * scalar_bytes(parameter.element),
                 memory.space == Space::Parameters};
      ranges.push_back(range);
    }
    for (size_t i = 0; i < ranges.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        if (!(kernel.parameters[i].written || kernel.parameters[j].written)) continue;
        if (ranges[i].overlaps(ranges[j])) facts[i].no_alias = facts[j].no_alias = false;
      }
  }

  void gather_scalars(const Step& step) {
    auto number = static_cast<size_t>(step.kernel);
    std::vector<std::optional<int64_t>> passed = scalars_of(step, *program_.kernels[number]);
    std::vector<std::optional<int64_t>>& known = facts_[number].scalars;
    bool& is_called = facts_[number].is_called;
    if (!is_called)
      known = std::move(passed);
    else
      for (size_t i = 0; i < known.size(); ++i)
        if (known[i] != passed[i]) known[i].reset();
    is_called = true;
  }

  // The values that the call passes, as far as they are known. A task of a shared kernel passes ranges of its
  // own.
  static std::vector<std::optional<int64_t>> scalars_of(const Step& step, const Kernel& kernel) {
    std::vector<std::optional<int64_t>> scalars;
    SymbolTable extents;
    for (size_t i = 0; i < step.extents.size(); ++i) {
      bool known = step.extents[i].is_constant();
      scalars.push_back(known ? std::optional(step.extents[i].value()) : std::nullopt);
      if (known) extents[kernel.extents[i].get()] = step.extents[i].value();
    }
    const std::optional<int64_t> count = resolve(kernel.parallel_count, extents);
    const bool is_whole = kernel.tasks <= 1;
    auto add_range = [&](std::optional<int64_t> end) {
      scalars.push_back(is_whole ? std::optional<int64_t>(0) : std::nullopt);
      scalars.push_back(is_whole ? end : std::nullopt);
    };
    if (kernel.phase) add_range(kernel.phases);
    if (kernel.max_iterations() > 1) add_range(count);
    return scalars;
  }

  const Program& program_;
  std::vector<CallFacts> facts_;
};

// Marks the parameters and extents that a kernel's body reads.
class UseFinder {
public:
  UseFinder(const Kernel& kernel, std::vector<bool>& used) : kernel_(kernel), used_(used) {}

  void visit(const Block& block) {
    for (const auto& op : block.ops) {
      if (op_kind_info(op->kind).group == OpGroup::Memory) mark(op->buffer);
      for (int buffer : op->buffers) mark(buffer);
      for (const IntExpr* expression : {&op->index, &op->lower, &op->upper}) mark(*expression);
      for (const Block& inner : op->blocks) visit(inner);
    }
  }

private:
  void mark(int buffer) {
    if (static_cast<size_t>(buffer) < kernel_.parameters.size()) used_[static_cast<size_t>(buffer)] = true;
  }
  void mark(const IntExpr& expression) {
    if (expression.is_constant()) return;
    for (size_t i = 0; i < kernel_.extents.size(); ++i)
      if (expression.mentions(*kernel_.extents[i])) used_[kernel_.parameters.size() + i] = true;
  }

  const Kernel& kernel_;
  std::vector<bool>& used_;
};

} // namespace

std::string CallFacts::text() const {
  std::string text;
  for (const ParameterFacts& parameter : parameters)
    text += "align " + std::to_string(parameter.alignment) + (parameter.no_alias ? " apart\n" : "\n");
  for (const std::optional<int64_t>& scalar : scalars)
    text += "scalar " + (scalar ? std::to_string(*scalar) : "varies") + "\n";
  return text;
}

std::vector<CallFacts> call_facts(const Program& program) {
  return FactFinder(program).find();
}

std::vector<bool> taken_arguments(const Kernel& kernel, const CallFacts& facts) {
  std::vector<bool> taken(kernel.parameters.size() + kernel.extents.size());
  UseFinder(kernel, taken).visit(kernel.body);
  // Loops over phases and iterations read the ends of their ranges.
  taken.resize(taken.size() + (kernel.phase ? 2 : 0) + (kernel.max_iterations() > 1 ? 2 : 0), true);
  for (size_t i = 0; i < facts.scalars.size(); ++i)
    if (facts.scalars[i]) taken[kernel.parameters.size() + i] = false;
  return taken;
}

llvm::CallInst* KernelFunction::call(llvm::IRBuilder<>& ir, std::span<llvm::Value* const> arguments) const {
  FIRN_CHECK(arguments.size() == taken.size(), "a kernel is called with a wrong number of arguments");
  std::vector<llvm::Value*> passed;
  for (size_t i = 0; i < taken.size(); ++i)
    if (taken[i]) passed.push_back(arguments[i]);
  llvm::CallInst* call = ir.CreateCall(function, passed);
  call->setCallingConv(function->getCallingConv());
  return call;
}

} // namespace firn::codegen
