// Which tensors of the three functions are what, and runs of them.
#include "compiler/driver/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace firn::driver {
namespace {

using Slot = Instance::Slot;

bool has(const std::vector<Slot>& slots, const std::string& name) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.tensor->name == name; });
}

double number_in(const Slot& slot) {
  double wide = 0;
  float narrow = 0;
  if (slot.tensor->dtype == DType::F64) {
    std::memcpy(&wide, slot.memory, sizeof wide);
    return wide;
  }
  std::memcpy(&narrow, slot.memory, sizeof narrow);
  return static_cast<double>(narrow);
}

} // namespace

Expected<std::unique_ptr<Trainer>> Trainer::create(const LoadedExecutable& model) {
  auto step = model.find_entry("step"), evaluate = model.find_entry("evaluate");
  if (!step || !evaluate)
    return usage_error("the model has no training step: it wants to be compiled with --train");
  auto trainer = std::unique_ptr<Trainer>(new Trainer);
  const artifact::ModelDescription& d = model.description();
  HeapMemory& memory = trainer->memory_;
  std::byte* parameters = memory.allocate(d.parameter_bytes, d.arena_alignment);
  std::byte* arena = memory.allocate(
      std::max(model.description_of(*step).arena_bytes, model.description_of(*evaluate).arena_bytes),
      d.arena_alignment);
  trainer->inference_ =
      std::make_unique<Instance>(model, memory.allocate(d.arena_bytes, d.arena_alignment), parameters);
  trainer->evaluate_ = std::make_unique<Instance>(model, arena, parameters, *evaluate);
  trainer->step_ = std::make_unique<Instance>(model, arena, parameters, *step);
  if (Result found = trainer->find_tensors(); !found) return found.error();
  trainer->place_inputs();
  if (d.threads > 1) {
    trainer->pool_ = std::make_unique<ThreadPool>(static_cast<size_t>(d.threads));
    trainer->executor_ = trainer->pool_->executor();
    trainer->lend(&trainer->executor_);
  }
  return trainer;
}

// The learning rate is the one input of @step that @evaluate lacks, and labels are those of @evaluate that
// @main lacks.
Result Trainer::find_tensors() {
  for (size_t i = 0; i < step_->inputs().size(); ++i) {
    const artifact::TensorDescription& input = *step_->inputs()[i].tensor;
    if (has(evaluate_->inputs(), input.name)) continue;
    rate_ = {&input, memory_.allocate(input.byte_size(), FIRN_WEIGHT_ALIGNMENT)};
    step_->bind_input(i, rate_.memory);
  }
  for (const Slot& state : step_->states()) {
    if (state.tensor->is_parameter)
      parameters_.push_back(state);
    else
      optimizer_states_.push_back(state);
    if (state.tensor->dtype == DType::I64 && state.tensor->dims.empty()) count_ = state;
  }
  if (!rate_.memory || !count_.memory || evaluate_->outputs().empty() || step_->outputs().empty())
    return usage_error("the functions @step and @evaluate of the model are not those of --train");
  set_learning_rate(0);
  return {};
}

// Runs reuse the places that inputs have in the arena.
void Trainer::place_inputs() {
  for (const Slot& input : evaluate_->inputs()) {
    std::byte* memory = memory_.allocate(input.tensor->byte_size(), FIRN_WEIGHT_ALIGNMENT);
    std::memset(memory, 0, static_cast<size_t>(input.tensor->byte_size()));
    if (!has(inference_->inputs(), input.tensor->name)) labels_ = inputs_.size();
    for (Instance* instance : {step_.get(), evaluate_.get(), inference_.get()})
      for (size_t i = 0; i < instance->inputs().size(); ++i)
        if (instance->inputs()[i].tensor->name == input.tensor->name) instance->bind_input(i, memory);
    inputs_.push_back({input.tensor, memory});
  }
}

Result Trainer::set_dims(const std::map<std::string, int64_t>& values) {
  std::vector<ActualDims> all;
  for (Instance* instance : {step_.get(), evaluate_.get(), inference_.get()}) {
    std::map<std::string, int64_t> own;
    for (const artifact::DimDescription& dim : instance->description().dims)
      if (auto value = values.find(dim.name); value != values.end()) own.insert(*value);
    auto dims = dims_at(instance->description(), instance == step_.get() ? values : own);
    if (!dims) return dims.error();
    all.push_back(std::move(*dims));
  }
  step_->set_dims(std::move(all[0]));
  evaluate_->set_dims(std::move(all[1]));
  inference_->set_dims(std::move(all[2]));
  return {};
}

Result Trainer::fit_dims(const std::vector<std::vector<int64_t>>& input_dims) {
  std::vector<KnownExtent> known;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const artifact::TensorDescription& wanted = *inputs_[i].tensor;
    for (size_t axis = 0; axis < input_dims[i].size(); ++axis)
      if (wanted.dims[axis].is_constant() && wanted.dims[axis].value() != input_dims[i][axis])
        return usage_error("input '" + wanted.name + "': dim " + std::to_string(axis) + " is " +
                           std::to_string(input_dims[i][axis]) + ", wanted " + wanted.dims[axis].to_string());
    add_known(wanted, input_dims[i], known);
  }
  auto found = find_dims(evaluate_->description(), std::move(known));
  if (!found) return usage_error(found.error().message);
  std::map<std::string, int64_t> values;
  for (const artifact::DimDescription& dim : evaluate_->description().dims)
    values[dim.name] = found->values.at(dim.symbol.get());
  return set_dims(values);
}

std::vector<int64_t> Trainer::dims_of(const artifact::TensorDescription& tensor) const {
  return evaluate_->dims_of(tensor);
}

firn_status Trainer::run_for_loss(Instance& instance) {
  const firn_status status = instance.run();
  if (status != FIRN_STATUS_OK) return status;
  loss_ = number_in(instance.outputs()[0]);
  return std::isfinite(loss_) ? FIRN_STATUS_OK : FIRN_STATUS_NOT_FINITE;
}

firn_status Trainer::step() {
  return run_for_loss(*step_);
}
firn_status Trainer::evaluate() {
  return run_for_loss(*evaluate_);
}
firn_status Trainer::infer() {
  return inference_->run();
}

double Trainer::learning_rate() const {
  return number_in(rate_);
}

void Trainer::set_learning_rate(double rate) {
  const auto narrow = static_cast<float>(rate);
  if (rate_.tensor->dtype == DType::F64)
    std::memcpy(rate_.memory, &rate, sizeof rate);
  else
    std::memcpy(rate_.memory, &narrow, sizeof narrow);
}

int64_t Trainer::step_count() const {
  int64_t count = 0;
  std::memcpy(&count, count_.memory, sizeof count);
  return count;
}

void Trainer::reset() {
  step_->reset();
}

void Trainer::lend(const firn_executor* executor) {
  for (Instance* instance : {step_.get(), evaluate_.get(), inference_.get()})
    instance->call().executor = executor;
}

} // namespace firn::driver
