// The steps of a program, run one after the other.
#include "compiler/driver/ptx_runner.h"

#include "include/firn/abi.h"

#include <algorithm>
#include <cstring>

namespace firn::driver {
namespace {

using kernel::Space;
using kernel::Step;

size_t index_of(int number) {
  return static_cast<size_t>(number);
}

Diagnostic ended_early(int status) {
  return usage_error(std::string("the run ended early: ") + firn_rt2_status_message(status));
}

} // namespace

Expected<std::unique_ptr<PtxRunner>> PtxRunner::create(const Compilation& c, OptLevel level) {
  auto ptx = codegen::emit_ptx(c.program, c.target, level);
  return ptx ? create(c, std::move(*ptx)) : Expected<std::unique_ptr<PtxRunner>>(ptx.error());
}

Expected<std::unique_ptr<PtxRunner>> PtxRunner::create(const Compilation& c, codegen::PtxModule ptx) {
  auto runner = std::unique_ptr<PtxRunner>(new PtxRunner(c));
  runner->kernels_ = std::move(ptx.kernels);
  if (!runner->kernels_.empty()) {
    auto module = ptx::parse(ptx.text);
    if (!module) return module.error();
    runner->module_ = std::make_unique<ptx::Module>(std::move(*module));
  }
  runner->allocate();
  return runner;
}

void PtxRunner::allocate() {
  for (const kernel::Buffer& buffer : program_.buffers) addresses_.push_back(allocate(buffer));
  for (const kernel::Constant& constant : program_.constants) write(constant);
  reset();
}

// Equal constants are one, at one offset.
void PtxRunner::write(const kernel::Constant& constant) {
  const kernel::Buffer& held = program_.buffers[index_of(constant.buffer)];
  std::vector<std::byte> bytes(static_cast<size_t>(held.bytes));
  kernel::write_constant(constant, bytes);
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = program_.buffers[i];
    if (buffer.space != Space::Weights || buffer.offset != held.offset) continue;
    const auto size = static_cast<size_t>(std::min(buffer.bytes, held.bytes));
    (void)static_cast<bool>(memory_.write(addresses_[i], bytes.data(), size));
  }
}

uint64_t PtxRunner::allocate(const kernel::Buffer& buffer) {
  return memory_.allocate(buffer.name, static_cast<uint64_t>(std::max<int64_t>(1, buffer.bytes)));
}

void PtxRunner::reset() {
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = program_.buffers[i];
    if (!kernel::is_state(buffer.space)) continue;
    std::vector<uint8_t> bytes(static_cast<size_t>(buffer.bytes));
    if (buffer.initial >= 0)
      bytes = memory_.read<uint8_t>(addresses_[index_of(buffer.initial)], bytes.size());
    (void)static_cast<bool>(memory_.write(addresses_[i], bytes.data(), bytes.size()));
  }
}

int PtxRunner::buffer_of(Space space, size_t number) const {
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const kernel::Buffer& buffer = program_.buffers[i];
    const bool fits = buffer.space == space || (kernel::is_state(space) && kernel::is_state(buffer.space));
    if (fits && buffer.io_index == static_cast<int>(number)) return static_cast<int>(i);
  }
  return -1;
}

int64_t PtxRunner::value_of(const IntExpr& expression) const {
  std::optional<int64_t> value = resolve(expression, symbols_);
  FIRN_CHECK(value, "a step mentions an extent that no step has bound");
  return *value;
}

Expected<std::vector<LiteralRef>> PtxRunner::run(const std::vector<LiteralRef>& inputs) {
  if (Result bound = bind_extents(inputs); !bound) return bound.error();
  // Nothing of the last run is left to read.
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Space space = program_.buffers[i].space;
    if (space == Space::Weights || kernel::is_state(space)) continue;
    (void)static_cast<bool>(memory_.release(addresses_[i]));
    addresses_[i] = allocate(program_.buffers[i]);
  }
  if (Result written = write_inputs(inputs); !written) return written.error();
  if (Result done = run(program_.steps); !done) return done.error();
  return read_results();
}

Result PtxRunner::bind_extents(const std::vector<LiteralRef>& inputs) {
  const Function& main = c_.module->main();
  std::vector<KnownExtent> known;
  size_t states = 0, others = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_state = main.is_state(i);
    const artifact::TensorDescription& tensor =
        is_state ? c_.description.states[states++] : c_.description.inputs[others++];
    if (Result fits = check_input(tensor, inputs[i], is_state); !fits) return fits;
    if (inputs[i]) add_known(tensor, inputs[i]->dims(), known);
  }
  auto dims = find_dims(c_.description, std::move(known));
  if (!dims) return dims.error();
  dims_ = std::move(*dims);
  symbols_.clear();
  for (size_t i = 0; i < program_.extents.size(); ++i)
    symbols_[program_.extents[i].get()] = static_cast<int64_t>(dims_.extents[i]);
  return {};
}

Result PtxRunner::write_inputs(const std::vector<LiteralRef>& inputs) {
  const Function& main = c_.module->main();
  size_t states = 0, others = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_state = main.is_state(i);
    const int buffer = is_state ? buffer_of(Space::State, states++) : buffer_of(Space::Input, others++);
    if (buffer < 0 || !inputs[i]) continue;
    auto bytes = inputs[i]->bytes();
    if (Result written = memory_.write(addresses_[index_of(buffer)], bytes.data(), bytes.size()); !written)
      return written;
  }
  return {};
}

Expected<std::vector<LiteralRef>> PtxRunner::read_results() const {
  const Function& main = c_.module->main();
  std::vector<LiteralRef> results;
  size_t outputs = 0, states = 0;
  std::vector<size_t> state_of_parameter;
  for (size_t i = 0; i < main.body().parameters().size(); ++i)
    state_of_parameter.push_back(main.is_state(i) ? states++ : 0);
  for (size_t i = 0; i < main.body().results().size(); ++i) {
    const bool updates = main.updates_state(i);
    const size_t number =
        updates ? state_of_parameter[index_of(static_cast<int>(main.aliases[i]))] : outputs++;
    const artifact::TensorDescription& tensor =
        updates ? c_.description.states[number] : c_.description.outputs[number];
    std::vector<int64_t> dims = actual_dims(tensor, dims_);
    for (size_t b = 0; !updates && b < program_.buffers.size(); ++b)
      if (program_.buffers[b].extent_of == static_cast<int>(number))
        dims[index_of(program_.buffers[b].extent_axis)] = word_at<int64_t>({static_cast<int>(b), 0});
    auto literal = std::make_shared<Literal>(tensor.dtype, dims);
    auto bytes = literal->mutable_bytes();
    const int buffer = buffer_of(updates ? Space::State : Space::Output, number);
    FIRN_CHECK(buffer >= 0 || bytes.empty(), "a result has no buffer");
    if (!bytes.empty()) {
      const uint64_t address = addresses_[index_of(buffer)];
      if (!memory_.is_written(address, bytes.size()))
        return internal_error("output '" + tensor.name + "' is not written as a whole");
      if (Result read = memory_.read(address, bytes.data(), bytes.size()); !read) return read.error();
    }
    results.push_back(std::move(literal));
  }
  return results;
}

Result PtxRunner::run(const Steps& steps) {
  for (const Step& step : steps)
    if (Result done = run(step); !done) return done;
  return {};
}

Result PtxRunner::run(const Step& step) {
  switch (step.kind) {
  case Step::Kind::Call: return call(step);
  case Step::Kind::If: return run(word_at<uint8_t>(step.condition) ? step.first : step.second);
  case Step::Kind::While:
    for (;;) {
      if (Result done = run(step.first); !done) return done;
      if (!word_at<uint8_t>(step.condition)) return {};
      if (Result done = run(step.second); !done) return done;
    }
  case Step::Kind::Bind:
    symbols_[step.symbol.get()] =
        std::clamp(word_at<int64_t>(step.condition), step.symbol->lower, step.symbol->upper);
    return {};
  case Step::Kind::Require:
    for (const SymbolRef& extent : program_.extents)
      if (symbols_.at(extent.get()) < extent->lower || symbols_.at(extent.get()) > extent->upper)
        return ended_early(kernel::kOutOfRange);
    return {};
  case Step::Kind::Clear: {
    const int32_t none = 0;
    return memory_.write(address_of(step.condition), &none, sizeof none);
  }
  case Step::Kind::Checked: {
    if (Result done = run(step.first); !done) return done;
    const auto status = word_at<int32_t>(step.condition);
    return status == FIRN_STATUS_OK ? Result() : Result(ended_early(status));
  }
  case Step::Kind::When: return value_of(*step.count) > 0 ? run(step.first) : Result();
  case Step::Kind::Concurrent:
  case Step::Kind::Share: return run(step.first);
  }
  FIRN_UNREACHABLE("step is of no kind");
}

// One launch, or one for each phase.
Result PtxRunner::call(const Step& step) {
  const kernel::Kernel& kernel = *program_.kernels[index_of(step.kernel)];
  const int64_t blocks = step.count ? value_of(*step.count) : kernel.parallel_count.value();
  if (blocks <= 0) return {};
  for (int64_t phase = 0; phase < kernel.phases; ++phase) {
    ptx::Arguments arguments;
    for (const kernel::Argument& argument : step.arguments) arguments.add(address_of(argument));
    for (const IntExpr& extent : step.extents) arguments.add(value_of(extent));
    if (kernel.phase) arguments.add(phase);
    auto done = ptx::launch(*module_, kernels_[index_of(step.kernel)], {static_cast<uint32_t>(blocks), 1, 1},
                            {static_cast<uint32_t>(kernel.threads), 1, 1}, 0, arguments, memory_, options_);
    if (!done)
      return internal_error("kernel '" + kernel.name + "' (" + kernel.location +
                            "): " + done.error().message);
  }
  return {};
}

} // namespace firn::driver
