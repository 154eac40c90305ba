// Tensors in and out of the code of freshly compiled objects.
#include "compiler/driver/object_runner.h"

#include "include/firn/text.h"

#include <algorithm>
#include <cstring>

namespace firn::driver {
namespace {

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
  auto runner = std::unique_ptr<ObjectRunner>(new ObjectRunner(c, memory));
  std::byte* arena = runner->memory_->allocate(c.program.arena_bytes, FIRN_WEIGHT_ALIGNMENT);
  std::byte* parameters = runner->allocate_parameters();
  auto model = LoadedExecutable::load(c, *runner->memory_);
  if (!model) return model.error();
  runner->own_model_ = std::move(*model);
  runner->model_ = runner->own_model_.get();
  runner->begin(arena, parameters);
  if (c.description.threads > 1) {
    runner->pool_ = std::make_unique<ThreadPool>(static_cast<size_t>(c.description.threads));
    runner->pool_executor_ = runner->pool_->executor();
    runner->lend(&runner->pool_executor_);
  }
  return runner;
}

ObjectRunner::ObjectRunner(Compilation& c, RunnerMemory* memory) : compilation_(&c), memory_(memory) {
  if (memory) return;
  heap_ = std::make_unique<HeapMemory>();
  memory_ = heap_.get();
}

std::unique_ptr<ObjectRunner> ObjectRunner::make_twin() const {
  auto twin = std::unique_ptr<ObjectRunner>(new ObjectRunner(*compilation_, nullptr));
  twin->model_ = model_;
  twin->begin(twin->memory_->allocate(compilation_->program.arena_bytes, FIRN_WEIGHT_ALIGNMENT),
              twin->allocate_parameters());
  return twin;
}

std::byte* ObjectRunner::allocate_parameters() {
  const int64_t bytes = compilation_->description.parameter_bytes;
  return bytes > 0 ? memory_->allocate(bytes, FIRN_WEIGHT_ALIGNMENT) : nullptr;
}

// Programs made by hand have no module: they take nothing and give nothing.
void ObjectRunner::begin(std::byte* arena, std::byte* parameters) {
  instance_ = std::make_unique<Instance>(*model_, arena, parameters);
  if (compilation_->module) bind_tensors();
}

// Parameters and results of @main are states or lie among inputs and outputs; memory for those that have no
// place in the arena is the runner's.
void ObjectRunner::bind_tensors() {
  auto own = [&](const artifact::TensorDescription& tensor) {
    int64_t element = std::clamp(bit_width(tensor.dtype) / 8, 1, 8);
    return memory_->allocate(tensor.byte_size(), element);
  };
  const Function& main = compilation_->module->main();
  size_t states = 0, inputs = 0, outputs = 0;
  for (size_t i = 0; i < main.body().parameters().size(); ++i) {
    if (main.is_state(i)) {
      parameters_.push_back(instance_->states()[states++]);
      continue;
    }
    const Instance::Slot& slot = instance_->inputs()[inputs];
    if (!slot.memory) instance_->bind_input(inputs, own(*slot.tensor));
    parameters_.push_back(instance_->inputs()[inputs++]);
  }
  for (size_t i = 0; i < main.body().results().size(); ++i) {
    if (main.updates_state(i)) {
      results_.push_back(parameters_[static_cast<size_t>(main.aliases[i])]);
      continue;
    }
    const Instance::Slot& slot = instance_->outputs()[outputs];
    if (!slot.memory) instance_->bind_output(outputs, own(*slot.tensor));
    results_.push_back(instance_->outputs()[outputs++]);
  }
}

ObjectRunner::~ObjectRunner() = default;

int ObjectRunner::run_again() {
  std::fill(stamps_.begin(), stamps_.end(), 0);
  instance_->call().profile = stamps_.data();
  return instance_->run();
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

Expected<std::vector<LiteralRef>> ObjectRunner::run(const std::vector<LiteralRef>& inputs) {
  if (inputs.size() != parameters_.size())
    return usage_error("got " + std::to_string(inputs.size()) + " inputs, the model has " +
                       std::to_string(parameters_.size()));
  std::vector<KnownExtent> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_state = compilation_->module->main().is_state(i);
    if (Result fits = check_input(*parameters_[i].tensor, inputs[i], is_state); !fits) return fits.error();
    if (inputs[i]) add_known(*parameters_[i].tensor, inputs[i]->dims(), known);
  }
  auto dims = find_dims(compilation_->description, std::move(known));
  if (!dims) return dims.error();
  const Compilation& c = *compilation_;
  if (c.codegen.profile)
    stamps_.resize(kernel::work_steps(c.program_at(c.run_variant, dims->extents)).size() + 1);
  instance_->set_dims(std::move(*dims));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && inputs[i]->dtype() == DType::String)
      store_text(*inputs[i], *memory_, parameters_[i].memory);
    else if (inputs[i])
      std::copy_n(inputs[i]->bytes().data(), inputs[i]->bytes().size(), parameters_[i].memory);
  if (int status = run_again(); status != FIRN_STATUS_OK)
    return usage_error(std::string("the run ended early: ") + firn_rt2_status_message(status));
  std::vector<LiteralRef> results;
  for (const Instance::Slot& result : results_) {
    std::vector<int64_t> dims = instance_->dims_of(*result.tensor);
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
