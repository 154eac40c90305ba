// The part of the C interface of include/firn/jit.h that trains. Nothing that is thrown within leaves it.
#include "include/firn/jit.h"

#include "compiler/driver/train/saved_training.h"
#include "tools/jit/handles.h"

using namespace firn;

struct firn_jit_trainer {
  std::shared_ptr<const library::Model> model;
  std::unique_ptr<driver::Trainer> trainer;
  std::map<std::string, int64_t> dims;
  std::vector<std::vector<int64_t>> shown[4]; // dims of tensors as they were last asked for
};

namespace {

const std::vector<driver::Trainer::Slot>* slots_of(const driver::Trainer& trainer, int32_t kind) {
  switch (kind) {
  case FIRN_JIT_INPUT: return &trainer.inputs();
  case FIRN_JIT_OUTPUT: return &trainer.outputs();
  case FIRN_JIT_STATE: return &trainer.optimizer_states();
  case FIRN_JIT_PARAMETER: return &trainer.parameters();
  default: return nullptr;
  }
}

// FIRN_JIT_OK, or the kind of the diagnostic that goes to `messages`.
int32_t finish(const Result& result, firn_jit_messages** messages) {
  if (messages) *messages = nullptr;
  if (result) return FIRN_JIT_OK;
  const auto kind = static_cast<int32_t>(result.error().fault);
  if (messages) *messages = new firn_jit_messages{{{kind, result.error().message}}};
  return kind;
}

// A fault of the compiler's and the lack of memory are diagnostics outside.
template <class Body> int32_t guarded_call(firn_jit_messages** messages, Body body) noexcept {
  try {
    return finish(driver::guarded("the trainer", body), messages);
  } catch (...) {
    return FIRN_JIT_USAGE;
  }
}

Result save(const firn_jit_trainer& trainer, const std::string& path) {
  OutputSet outputs;
  if (Result written = driver::write_training(path, "", *trainer.trainer, {}, outputs); !written)
    return written;
  return outputs.commit();
}

} // namespace

int32_t firn_jit_trainer_create(firn_jit_model* model, firn_jit_trainer** trainer,
                                firn_jit_messages** messages) noexcept {
  *trainer = nullptr;
  return guarded_call(messages, [&]() -> Result {
    auto made = driver::Trainer::create(model->model->executable());
    if (!made) return made.error();
    auto created = std::make_unique<firn_jit_trainer>();
    created->model = model->model;
    created->trainer = std::move(*made);
    for (int32_t kind : {FIRN_JIT_INPUT, FIRN_JIT_OUTPUT, FIRN_JIT_STATE, FIRN_JIT_PARAMETER})
      created->shown[kind].resize(slots_of(*created->trainer, kind)->size());
    *trainer = created.release();
    return {};
  });
}
void firn_jit_trainer_free(firn_jit_trainer* trainer) noexcept {
  delete trainer;
}

firn_status firn_jit_trainer_step(firn_jit_trainer* trainer) noexcept {
  return trainer->trainer->step();
}
firn_status firn_jit_trainer_evaluate(firn_jit_trainer* trainer) noexcept {
  return trainer->trainer->evaluate();
}
firn_status firn_jit_trainer_infer(firn_jit_trainer* trainer) noexcept {
  return trainer->trainer->infer();
}
double firn_jit_trainer_loss(const firn_jit_trainer* trainer) noexcept {
  return trainer->trainer->loss();
}
double firn_jit_trainer_learning_rate(const firn_jit_trainer* trainer) noexcept {
  return trainer->trainer->learning_rate();
}
void firn_jit_trainer_set_learning_rate(firn_jit_trainer* trainer, double rate) noexcept {
  trainer->trainer->set_learning_rate(rate);
}
int64_t firn_jit_trainer_step_count(const firn_jit_trainer* trainer) noexcept {
  return trainer->trainer->step_count();
}

int32_t firn_jit_trainer_tensor(firn_jit_trainer* trainer, int32_t kind, size_t index,
                                firn_jit_tensor* tensor) noexcept {
  return shielded(0, [&] {
    const auto* slots = slots_of(*trainer->trainer, kind);
    if (!slots || index >= slots->size()) return 0;
    const driver::Trainer::Slot& slot = (*slots)[index];
    std::vector<int64_t>& dims = trainer->shown[kind][index];
    dims = kind == FIRN_JIT_INPUT    ? trainer->trainer->dims_of(*slot.tensor)
           : kind == FIRN_JIT_OUTPUT ? trainer->trainer->output_dims(index)
                                     : slot.tensor->dims_at_bound();
    *tensor = tensor_of(slot, dims);
    return 1;
  });
}

firn_status firn_jit_trainer_set_dim(firn_jit_trainer* trainer, const char* name, int64_t value) noexcept {
  return shielded<firn_status>(FIRN_STATUS_NO_MEMORY, [&]() -> firn_status {
    std::map<std::string, int64_t> values = trainer->dims;
    values[name] = value;
    if (!trainer->trainer->set_dims(values)) return FIRN_STATUS_OUT_OF_RANGE | 1 << 8;
    trainer->dims = std::move(values);
    return FIRN_STATUS_OK;
  });
}
int32_t firn_jit_trainer_fit(firn_jit_trainer* trainer, const int64_t* const* dims,
                             firn_jit_messages** messages) noexcept {
  return guarded_call(messages, [&]() -> Result {
    std::vector<std::vector<int64_t>> all;
    for (const driver::Trainer::Slot& input : trainer->trainer->inputs()) {
      const int64_t* given = dims[all.size()];
      all.emplace_back(given, given ? given + input.tensor->dims.size() : given);
    }
    return trainer->trainer->fit_dims(all);
  });
}
void firn_jit_trainer_lend(firn_jit_trainer* trainer, const firn_executor* executor) noexcept {
  trainer->trainer->lend(executor);
}
void firn_jit_trainer_reset(firn_jit_trainer* trainer) noexcept {
  trainer->trainer->reset();
}

int32_t firn_jit_trainer_save(const firn_jit_trainer* trainer, const char* path,
                              firn_jit_messages** messages) noexcept {
  return guarded_call(messages, [&] { return save(*trainer, path); });
}
int32_t firn_jit_trainer_load(firn_jit_trainer* trainer, const char* path,
                              firn_jit_messages** messages) noexcept {
  return guarded_call(messages, [&]() -> Result {
    auto position = driver::read_training(path, *trainer->trainer);
    return position ? Result() : position.error();
  });
}
