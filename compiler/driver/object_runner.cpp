// Memory, inputs and outputs of the code of freshly compiled objects.
#include "compiler/driver/object_runner.h"

#include "compiler/artifact/header_types.h"
#include "include/firn/text.h"

#include <algorithm>
#include <cstring>

namespace firn::driver {
namespace {

class Heap final : public RunnerMemory {
public:
  std::byte* allocate(int64_t bytes, int64_t alignment) override {
    auto slack = static_cast<size_t>(alignment);
    blocks_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes) + slack));
    auto address = reinterpret_cast<uintptr_t>(blocks_.back().get());
    return blocks_.back().get() + (slack - address % slack) % slack;
  }

private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

constexpr int64_t kArenaAlignment = 64; // and that of weights

// Elements whose bytes lie in the runner's memory.
void store_text(const Literal& literal, RunnerMemory& memory, std::byte* to) {
  for (const std::string& each : literal.string_values()) {
    std::byte* bytes = memory.allocate(static_cast<int64_t>(each.size()), 1);
    std::memcpy(bytes, each.data(), each.size());
    firn_text text{};
    text.data = reinterpret_cast<const char*>(bytes);
    text.size = each.size();
    std::memcpy(to, &text, sizeof text);
    to += sizeof text;
  }
}

LiteralRef load_text(const std::byte* from, const std::vector<int64_t>& dims) {
  std::vector<std::string> strings;
  for (int64_t i = checked_num_elements(dims).value_or(0); i > 0; --i, from += sizeof(firn_text)) {
    firn_text text;
    std::memcpy(&text, from, sizeof text);
    strings.emplace_back(text.data ? text.data : "", static_cast<size_t>(text.size));
  }
  return Literal::strings(dims, std::move(strings));
}

} // namespace

Expected<std::unique_ptr<ObjectRunner>> ObjectRunner::create(Compilation& c, RunnerMemory* memory) {
  auto runner = std::unique_ptr<ObjectRunner>(new ObjectRunner);
  runner->compilation_ = &c;
  if (!memory) runner->heap_ = std::make_unique<Heap>();
  runner->memory_ = memory ? memory : runner->heap_.get();
  if (Result loaded = runner->load(); !loaded) return loaded.error();
  runner->arena_ = runner->memory_->allocate(c.program.arena_bytes, kArenaAlignment);
  runner->bind_weights(/*copied=*/memory != nullptr);
  if (c.module) runner->bind_tensors(); // programs made by hand take nothing and give nothing
  runner->reset();
  if (c.description.threads > 1) {
    runner->pool_ = std::make_unique<ThreadPool>(static_cast<size_t>(c.description.threads));
    runner->pool_executor_ = runner->pool_->executor();
    runner->executor_ = &runner->pool_executor_;
  }
  return runner;
}

std::unique_ptr<ObjectRunner> ObjectRunner::make_twin() const {
  auto twin = std::unique_ptr<ObjectRunner>(new ObjectRunner);
  twin->compilation_ = compilation_;
  twin->function_ = function_;
  twin->weights_ = weights_;
  twin->heap_ = std::make_unique<Heap>();
  twin->memory_ = twin->heap_.get();
  twin->arena_ = twin->memory_->allocate(compilation_->program.arena_bytes, kArenaAlignment);
  if (compilation_->module) twin->bind_tensors();
  twin->reset();
  return twin;
}

Result ObjectRunner::load() {
  auto code = load_code(*compilation_);
  if (!code) return code.error();
  code_ = std::move(*code);
  function_ = reinterpret_cast<EntryFunction*>(code_->symbol(compilation_->codegen.run_symbol));
  FIRN_CHECK(function_, "the object lacks its function");
  weights_ = reinterpret_cast<const unsigned char*>(own_weights().data());
  return {};
}

// Weights that the object does not hold as they are are prepared.
void ObjectRunner::bind_weights(bool copied) {
  if (!compilation_->prepare && !copied) return;
  const int64_t bytes =
      compilation_->prepare ? compilation_->prepare->arena_bytes : compilation_->program.weight_bytes;
  std::byte* bound = memory_->allocate(bytes, kArenaAlignment);
  const unsigned char* raw = weights_;
  prepared_ = bound;
  weights_ = reinterpret_cast<const unsigned char*>(bound);
  if (compilation_->prepare)
    prepare(raw);
  else
    std::copy_n(raw, bytes, reinterpret_cast<unsigned char*>(bound));
}

void ObjectRunner::prepare(const unsigned char* raw) {
  auto* function = reinterpret_cast<EntryFunction*>(code_->symbol(compilation_->codegen.prepare_symbol));
  FIRN_CHECK(function, "the object lacks its prepare function");
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = reinterpret_cast<unsigned char*>(prepared_);
  call.weights = raw;
  function(&call);
}

std::span<const std::byte> ObjectRunner::own_weights() const {
  auto weights =
      reinterpret_cast<const std::byte* (*)()>(code_->symbol(compilation_->codegen.weights_symbol));
  FIRN_CHECK(weights, "the object lacks the function of its weights");
  return {weights(), static_cast<size_t>(compilation_->description.embedded_weight_bytes())};
}

Result ObjectRunner::refit(std::span<const std::byte> raw) {
  const artifact::ModelDescription& d = compilation_->description;
  FIRN_CHECK(d.raw_weight_bytes && static_cast<int64_t>(raw.size()) == *d.raw_weight_bytes && prepared_,
             "refitting an object that holds packed weights");
  auto given = reinterpret_cast<const unsigned char*>(raw.data());
  auto own = reinterpret_cast<const unsigned char*>(own_weights().data());
  for (const artifact::RawWeights& tensor : d.raw_weights) {
    if (tensor.may_change) continue;
    const firn_rt2_range range = {static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.bytes)};
    if (firn_status status = firn_rt2_check_weights(given, own, &range, 1); status != FIRN_STATUS_OK)
      return usage_error(firn_rt2_status_message(status));
  }
  if (compilation_->prepare)
    prepare(given);
  else
    std::copy(raw.begin(), raw.end(), prepared_);
  return {};
}

void ObjectRunner::bind_tensors() {
  const artifact::ModelDescription& d = compilation_->description;
  const Function& main = compilation_->module->main();
  auto slot = [&](const artifact::TensorDescription& tensor) -> Slot {
    if (tensor.arena_offset) return {&tensor, arena_ + *tensor.arena_offset};
    int64_t element = std::clamp(bit_width(tensor.dtype) / 8, 1, 8);
    return {&tensor, memory_->allocate(tensor.byte_size(), element)};
  };
  size_t states = 0;
  for (size_t i = 0; i < main.body().parameters().size(); ++i) {
    bool is_state = main.is_state(i);
    parameters_.push_back(slot(is_state ? d.states[states++] : d.inputs[inputs_.size()]));
    if (!is_state) inputs_.push_back(parameters_.back().memory);
  }
  for (size_t i = 0; i < main.body().results().size(); ++i) {
    bool is_state = main.updates_state(i);
    results_.push_back(is_state ? parameters_[static_cast<size_t>(main.aliases[i])]
                                : slot(d.outputs[outputs_.size()]));
    if (!is_state) outputs_.push_back(results_.back().memory);
  }
}

void ObjectRunner::reset() {
  for (const artifact::TensorDescription& state : compilation_->description.states) {
    std::byte* memory = arena_ + *state.arena_offset;
    auto bytes = static_cast<size_t>(state.byte_size());
    if (state.initial_weights)
      std::memcpy(memory, weights_ + *state.initial_weights, bytes);
    else
      std::memset(memory, 0, bytes);
  }
}

ObjectRunner::~ObjectRunner() = default;

int ObjectRunner::run_again() {
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = reinterpret_cast<unsigned char*>(arena_);
  call.weights = weights_;
  call.inputs = inputs_.data();
  call.outputs = outputs_.data();
  call.extents = dims_.extents.data();
  call.executor = executor_;
  std::fill(stamps_.begin(), stamps_.end(), 0);
  call.profile = stamps_.data();
  call.variant = compilation_->run_variant;
  return function_(&call);
}

bool ObjectRunner::inputs_are(const std::vector<LiteralRef>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto bytes = inputs[i]->bytes();
    if (inputs[i]->dtype() == DType::String &&
        load_text(parameters_[i].memory, inputs[i]->dims())->string_values() != inputs[i]->string_values())
      return false;
    if (!compilation_->module->main().is_state(i) && !bytes.empty() &&
        std::memcmp(parameters_[i].memory, bytes.data(), bytes.size()) != 0)
      return false;
  }
  return true;
}

// Type and rank, and every dim that does not vary.
Result ObjectRunner::check_input(size_t parameter, const LiteralRef& input) const {
  const artifact::TensorDescription& wanted = *parameters_[parameter].tensor;
  if (!input && compilation_->module->main().is_state(parameter)) return {};
  if (!input) return usage_error("input '" + wanted.name + "' is not given");
  bool fits = input->dtype() == wanted.dtype && input->dims().size() == wanted.dims.size();
  for (size_t axis = 0; fits && axis < wanted.dims.size(); ++axis)
    fits = !wanted.dims[axis].is_constant() || wanted.dims[axis].value() == input->dims()[axis];
  if (fits) return {};
  return usage_error("input '" + wanted.name + "' is " + input->type().to_string() + ", the model wants " +
                     artifact::type_text(wanted));
}

Expected<std::vector<LiteralRef>> ObjectRunner::run(const std::vector<LiteralRef>& inputs) {
  if (inputs.size() != parameters_.size())
    return usage_error("got " + std::to_string(inputs.size()) + " inputs, the model has " +
                       std::to_string(parameters_.size()));
  std::vector<KnownExtent> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (Result fits = check_input(i, inputs[i]); !fits) return fits.error();
    if (inputs[i]) add_known(*parameters_[i].tensor, inputs[i]->dims(), known);
  }
  auto dims = find_dims(compilation_->description, std::move(known));
  if (!dims) return dims.error();
  dims_ = std::move(*dims);
  const Compilation& c = *compilation_;
  if (c.codegen.profile) stamps_.resize(c.program_at(c.run_variant, dims_.extents).steps.size() + 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && inputs[i]->dtype() == DType::String)
      store_text(*inputs[i], *memory_, parameters_[i].memory);
    else if (inputs[i])
      std::copy_n(inputs[i]->bytes().data(), inputs[i]->bytes().size(), parameters_[i].memory);
  if (int status = run_again(); status != FIRN_STATUS_OK)
    return usage_error(std::string("the run ended early: ") + firn_rt2_status_message(status));
  std::vector<LiteralRef> results;
  for (const Slot& result : results_) {
    std::vector<int64_t> dims = actual_dims(*result.tensor, dims_);
    for (const artifact::CountedDim& counted : result.tensor->counted_dims)
      std::memcpy(&dims[counted.axis], arena_ + counted.arena_offset, sizeof(int64_t));
    if (result.tensor->dtype == DType::String) {
      results.push_back(load_text(result.memory, dims));
      continue;
    }
    auto literal = std::make_shared<Literal>(result.tensor->dtype, dims);
    std::copy_n(result.memory, literal->bytes().size(), literal->mutable_bytes().data());
    results.push_back(std::move(literal));
  }
  return results;
}

} // namespace firn::driver
