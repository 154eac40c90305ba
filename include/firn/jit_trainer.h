// Training in the process (firn/jit.h), C++17; nothing here throws or needs RTTI. The functions in C stand in
// firn/jit_c.h.
#ifndef FIRN_JIT_TRAINER_H
#define FIRN_JIT_TRAINER_H

#include "firn/jit.h"

namespace firn {
namespace jit {

// Trains a model that was compiled with ModelOptions::train(), for one thread at a time:
//
//   firn::jit::Model model = compiler.compile("net.onnx", firn::jit::ModelOptions().train("mse", "adam"));
//   firn::jit::Trainer trainer(*model);
//   if (!trainer) return log(trainer.error().message());
//   trainer.set_learning_rate(1e-3);
//   fill(trainer.input<float>("x"), trainer.input<float>("labels"));
//   if (firn::jit::Status status = trainer.step(); !status) return log(status.message());
//   log(trainer.loss());
//
// It has tensors of its own to train, which are at first as the model has them.
class Trainer {
public:
  Trainer() = default;
  explicit Trainer(const Model& model) {
    if (!model) return;
    firn_jit_messages* messages = nullptr;
    firn_jit_trainer_create(model.handle(), &trainer_, &messages);
    error_ = error_of(messages);
  }
  Trainer(Trainer&& other) noexcept { swap(other); }
  Trainer& operator=(Trainer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Trainer() {
    if (trainer_) firn_jit_trainer_free(trainer_);
  }

  explicit operator bool() const noexcept { return trainer_; }
  // Why there is no trainer.
  const Error& error() const noexcept { return error_; }

  // Forward, backward and update; the loss without an update; the model's outputs. None of them allocates or
  // locks. A loss that is not finite is FIRN_STATUS_NOT_FINITE, and changes nothing.
  Status step() noexcept { return trainer_ ? firn_jit_trainer_step(trainer_) : kNone; }
  Status evaluate() noexcept { return trainer_ ? firn_jit_trainer_evaluate(trainer_) : kNone; }
  Status infer() noexcept { return trainer_ ? firn_jit_trainer_infer(trainer_) : kNone; }
  // The loss that the last step or evaluation found.
  double loss() const noexcept { return trainer_ ? firn_jit_trainer_loss(trainer_) : 0; }
  // 0 until it is set.
  double learning_rate() const noexcept { return trainer_ ? firn_jit_trainer_learning_rate(trainer_) : 0; }
  void set_learning_rate(double rate) noexcept {
    if (trainer_) firn_jit_trainer_set_learning_rate(trainer_, rate);
  }
  int64_t step_count() const noexcept { return trainer_ ? firn_jit_trainer_step_count(trainer_) : 0; }

  // The model's inputs and, where the loss wants them, "labels", which stay as they are until they are
  // written; what infer() computes; the tensors that are trained, by the model's names for them; and what the
  // optimizer keeps beside them.
  template <class T> Tensor<T> input(const char* name) { return find<T>(FIRN_JIT_INPUT, name); }
  template <class T> Tensor<T> output(const char* name) { return find<T>(FIRN_JIT_OUTPUT, name); }
  template <class T> Tensor<T> parameter(const char* name) { return find<T>(FIRN_JIT_PARAMETER, name); }
  template <class T> Tensor<T> state(const char* name) { return find<T>(FIRN_JIT_STATE, name); }
  std::vector<firn_jit_tensor> inputs() { return tensors(FIRN_JIT_INPUT); }
  std::vector<firn_jit_tensor> parameters() { return tensors(FIRN_JIT_PARAMETER); }
  std::vector<firn_jit_tensor> states() { return tensors(FIRN_JIT_STATE); }

  Status set_dim(const char* name, int64_t value) noexcept {
    return trainer_ ? firn_jit_trainer_set_dim(trainer_, name, value) : kNone;
  }
  // An executor that outlives the trainer; null: the calling thread alone.
  void lend(const firn_executor* executor) noexcept {
    if (trainer_) firn_jit_trainer_lend(trainer_, executor);
  }
  // Parameters and states back to their first values.
  void reset() noexcept {
    if (trainer_) firn_jit_trainer_reset(trainer_);
  }
  // Writes the parameters by their names, as .npz or .safetensors by the ending of `path`, and PATH.state,
  // which has the states too and is what load() reads: training goes on from there as if nothing had been
  // between. An error of kind FIRN_JIT_OK: it is done; after others files or trainer are as they were.
  Error save(const std::string& path) const {
    firn_jit_messages* messages = nullptr;
    if (!trainer_) return Error(FIRN_JIT_USAGE, "there is no trainer");
    firn_jit_trainer_save(trainer_, path.c_str(), &messages);
    return error_of(messages);
  }
  Error load(const std::string& path) {
    firn_jit_messages* messages = nullptr;
    if (!trainer_) return Error(FIRN_JIT_USAGE, "there is no trainer");
    firn_jit_trainer_load(trainer_, path.c_str(), &messages);
    return error_of(messages);
  }
  firn_jit_trainer* handle() const noexcept { return trainer_; }

private:
  static constexpr firn_status kNone = FIRN_STATUS_NOT_INITIALISED;

  void swap(Trainer& other) noexcept {
    std::swap(trainer_, other.trainer_);
    std::swap(error_, other.error_);
  }
  static Error error_of(firn_jit_messages* messages) {
    Error error(FIRN_JIT_OK, "");
    if (firn_jit_messages_count(messages) > 0)
      error = Error(firn_jit_message_kind(messages, 0), firn_jit_message_text(messages, 0));
    firn_jit_messages_free(messages);
    return error;
  }
  std::vector<firn_jit_tensor> tensors(int32_t kind) {
    std::vector<firn_jit_tensor> all;
    firn_jit_tensor tensor = {};
    for (size_t i = 0; trainer_ && firn_jit_trainer_tensor(trainer_, kind, i, &tensor); ++i)
      all.push_back(tensor);
    return all;
  }
  template <class T> Tensor<T> find(int32_t kind, const std::string& name) {
    for (const firn_jit_tensor& tensor : tensors(kind)) {
      if (name != tensor.name) continue;
      const bool is_type = tensor.dtype == ElementType<std::remove_const_t<T>>::value;
      return {tensor, is_type ? nullptr : "the tensor's elements are of another type"};
    }
    return {{}, trainer_ ? "the trainer has no tensor of this name" : "there is no trainer"};
  }
  firn_jit_trainer* trainer_ = nullptr;
  Error error_ = Error(FIRN_JIT_USAGE, "there is no model");
};

} // namespace jit
} // namespace firn

#endif // FIRN_JIT_TRAINER_H
