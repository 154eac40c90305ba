// The compiler in the process: models are compiled while the program runs and called at once, without a
// linker and without files.
//
//   firn::jit::Compiler compiler;                        // for this machine's CPU
//   firn::jit::Model model = compiler.compile("net.onnx", firn::jit::ModelOptions().dim("batch", 1, 8));
//   if (!model) return log(model.error().message());     // the diagnostics of `firn compile`
//   firn::jit::Instance net(*model);
//   auto x = net.input<float>("image");                  // a checked view of the input's memory
//   std::copy(pixels.begin(), pixels.end(), x.begin());
//   if (firn::jit::Status status = net.run(); !status) return log(status.message());
//   use(net.output<float>("scores"));
//
// C++17; nothing here throws or needs RTTI. Programs link libfirn.so (CMake: Firn::jit). The classes wrap the
// C interface, firn/jit_c.h, which is all of this header for programs in C. firn/jit_trainer.h trains models.
#ifndef FIRN_JIT_H
#define FIRN_JIT_H

#include "firn/jit_c.h"

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

struct firn_custom_call; // firn/custom_op.h

namespace firn {
namespace jit {

// The result of a run or of a change to an instance: 0, or a FIRN_STATUS_ with its detail.
class Status {
public:
  constexpr Status(firn_status code = FIRN_STATUS_OK) noexcept : code_(code) {}
  constexpr explicit operator bool() const noexcept { return code_ == FIRN_STATUS_OK; }
  constexpr firn_status code() const noexcept { return code_; }
  const char* message() const noexcept { return firn_jit_status_message(code_); }

private:
  firn_status code_;
};

struct Diagnostic {
  int32_t kind; // FIRN_JIT_OK: a warning
  std::string message;
};

// Why there is no model.
class Error {
public:
  Error(int32_t kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  // FIRN_JIT_USER and its like; FIRN_JIT_OK: there is a model.
  int32_t kind() const noexcept { return kind_; }
  // A line for each diagnostic.
  const std::string& message() const noexcept { return message_; }

private:
  int32_t kind_;
  std::string message_;
};

// Element types by the numbers that ONNX has for them. Specialise it for storage types of your own.
template <class T> struct ElementType;
template <> struct ElementType<float> : std::integral_constant<int32_t, 1> {};
template <> struct ElementType<uint8_t> : std::integral_constant<int32_t, 2> {};
template <> struct ElementType<int8_t> : std::integral_constant<int32_t, 3> {};
template <> struct ElementType<uint16_t> : std::integral_constant<int32_t, 4> {};
template <> struct ElementType<int16_t> : std::integral_constant<int32_t, 5> {};
template <> struct ElementType<int32_t> : std::integral_constant<int32_t, 6> {};
template <> struct ElementType<int64_t> : std::integral_constant<int32_t, 7> {};
template <> struct ElementType<bool> : std::integral_constant<int32_t, 9> {};
template <> struct ElementType<double> : std::integral_constant<int32_t, 11> {};
template <> struct ElementType<uint32_t> : std::integral_constant<int32_t, 12> {};
template <> struct ElementType<uint64_t> : std::integral_constant<int32_t, 13> {};

// A view of an instance's tensor, as it is until dims are set, memory is bound or a run counts anew; or why
// there is none.
template <class T> class Tensor {
public:
  Tensor(const firn_jit_tensor& tensor, const char* error) noexcept : tensor_(tensor), error_(error) {}
  explicit operator bool() const noexcept { return !error_; }
  const char* message() const noexcept { return error_ ? error_ : "no error"; }

  T* data() const noexcept { return error_ ? nullptr : static_cast<T*>(tensor_.data); }
  size_t size() const noexcept { return error_ ? 0 : tensor_.bytes / sizeof(T); }
  T* begin() const noexcept { return data(); }
  T* end() const noexcept { return data() + size(); }
  T& operator[](size_t index) const noexcept { return data()[index]; }
  size_t rank() const noexcept { return error_ ? 0 : static_cast<size_t>(tensor_.rank); }
  int64_t dim(size_t axis) const noexcept { return tensor_.dims[axis]; }
  std::vector<int64_t> dims() const {
    return error_ ? std::vector<int64_t>() : std::vector<int64_t>(tensor_.dims, tensor_.dims + tensor_.rank);
  }

private:
  firn_jit_tensor tensor_;
  const char* error_; // static storage
};

// A compiled model, or the diagnostics of why there is none. Copies share the code, which lives until the
// last of them and of the instances is gone.
class Model {
public:
  Model() = default;
  Model(firn_jit_model* model, std::vector<Diagnostic> diagnostics)
      : model_(model), diagnostics_(std::move(diagnostics)) {}
  Model(const Model& other) : model_(other.model_), diagnostics_(other.diagnostics_) {
    if (model_) firn_jit_model_retain(model_);
  }
  Model(Model&& other) noexcept
      : model_(std::exchange(other.model_, nullptr)), diagnostics_(std::move(other.diagnostics_)) {}
  Model& operator=(Model other) noexcept {
    std::swap(model_, other.model_);
    std::swap(diagnostics_, other.diagnostics_);
    return *this;
  }
  ~Model() {
    if (model_) firn_jit_model_release(model_);
  }

  explicit operator bool() const noexcept { return model_; }
  // Warnings, and errors if there is no model.
  const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }
  // The diagnostics without the warnings.
  Error error() const {
    Error error(FIRN_JIT_OK, "");
    for (const Diagnostic& each : diagnostics_) {
      if (each.kind == FIRN_JIT_OK) continue;
      error = error.message().empty() ? Error(each.kind, each.message)
                                      : Error(error.kind(), error.message() + "\n" + each.message);
    }
    return error;
  }
  // The model itself, as std::expected gives it.
  const Model& operator*() const noexcept { return *this; }
  std::string manifest() const { return model_ ? firn_jit_model_manifest(model_) : ""; }
  size_t arena_bytes() const noexcept { return model_ ? firn_jit_model_arena_bytes(model_) : 0; }
  size_t arena_alignment() const noexcept { return model_ ? firn_jit_model_arena_alignment(model_) : 1; }
  std::vector<firn_jit_tensor> inputs() const { return tensors(FIRN_JIT_INPUT); }
  std::vector<firn_jit_tensor> outputs() const { return tensors(FIRN_JIT_OUTPUT); }
  std::vector<firn_jit_tensor> states() const { return tensors(FIRN_JIT_STATE); }
  std::vector<firn_jit_dim> dims() const {
    std::vector<firn_jit_dim> all(model_ ? firn_jit_model_dim_count(model_) : 0);
    for (size_t i = 0; i < all.size(); ++i) firn_jit_model_dim(model_, i, &all[i]);
    return all;
  }
  firn_jit_model* handle() const noexcept { return model_; }

private:
  std::vector<firn_jit_tensor> tensors(int32_t kind) const {
    std::vector<firn_jit_tensor> all(model_ ? firn_jit_model_count(model_, kind) : 0);
    for (size_t i = 0; i < all.size(); ++i) firn_jit_model_tensor(model_, kind, i, &all[i]);
    return all;
  }
  firn_jit_model* model_ = nullptr;
  std::vector<Diagnostic> diagnostics_;
};

// Memory, inputs and outputs for runs of a model, for one thread at a time.
class Instance {
public:
  Instance() = default;
  // `arena`: memory of the caller's (Model::arena_bytes, arena_alignment), which outlives the instance;
  // null: from the heap.
  explicit Instance(const Model& model, void* arena = nullptr, size_t arena_bytes = 0)
      : instance_(model ? firn_jit_instance_create(model.handle(), arena, arena_bytes, &created_) : nullptr) {
    if (instance_) entry_ = firn_jit_instance_entry(instance_);
  }
  Instance(Instance&& other) noexcept { swap(other); }
  Instance& operator=(Instance&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Instance() {
    if (instance_) firn_jit_instance_free(instance_);
  }

  explicit operator bool() const noexcept { return instance_; }
  // Computes the outputs. Neither allocates nor locks.
  Status run() noexcept { return instance_ ? Status(entry_.run(entry_.call)) : created_; }
  template <class T> Tensor<T> input(const char* name) { return find<T>(FIRN_JIT_INPUT, name); }
  template <class T> Tensor<T> output(const char* name) { return find<T>(FIRN_JIT_OUTPUT, name); }
  template <class T> Tensor<T> state(const char* name) { return find<T>(FIRN_JIT_STATE, name); }
  template <class T> Tensor<T> input(size_t index) { return at<T>(FIRN_JIT_INPUT, index); }
  template <class T> Tensor<T> output(size_t index) { return at<T>(FIRN_JIT_OUTPUT, index); }
  Status set_dim(const char* name, int64_t value) noexcept {
    return instance_ ? Status(firn_jit_instance_set_dim(instance_, name, value)) : created_;
  }
  Status bind_input(size_t index, const void* data, size_t bytes) noexcept {
    return bind(FIRN_JIT_INPUT, index, const_cast<void*>(data), bytes);
  }
  Status bind_output(size_t index, void* data, size_t bytes) noexcept {
    return bind(FIRN_JIT_OUTPUT, index, data, bytes);
  }
  // An executor that outlives the instance; null: the calling thread alone.
  void lend(const firn_executor* executor) noexcept {
    if (instance_) firn_jit_instance_lend(instance_, executor);
  }
  void reset() noexcept {
    if (instance_) firn_jit_instance_reset(instance_);
  }
  firn_jit_instance* handle() const noexcept { return instance_; }

private:
  void swap(Instance& other) noexcept {
    std::swap(instance_, other.instance_);
    std::swap(entry_, other.entry_);
    std::swap(created_, other.created_);
  }
  Status bind(int32_t kind, size_t index, void* data, size_t bytes) noexcept {
    if (!instance_) return created_;
    Status status = firn_jit_instance_bind(instance_, kind, index, data, bytes);
    entry_ = firn_jit_instance_entry(instance_);
    return status;
  }
  template <class T> Tensor<T> at(int32_t kind, size_t index) {
    firn_jit_tensor tensor = {};
    if (!instance_) return {tensor, "there is no instance"};
    if (!firn_jit_instance_tensor(instance_, kind, index, &tensor))
      return {tensor, "the model has no tensor of this number"};
    if (tensor.dtype != ElementType<std::remove_const_t<T>>::value)
      return {tensor, "the tensor's elements are of another type"};
    return {tensor, tensor.data ? nullptr : "no memory is bound to the tensor"};
  }
  template <class T> Tensor<T> find(int32_t kind, const std::string& name) {
    firn_jit_tensor tensor = {};
    for (size_t i = 0; instance_ && firn_jit_instance_tensor(instance_, kind, i, &tensor); ++i)
      if (name == tensor.name) return at<T>(kind, i);
    return {{}, instance_ ? "the model has no tensor of this name" : "there is no instance"};
  }
  firn_status created_ = FIRN_STATUS_NOT_INITIALISED; // why there is no instance
  firn_jit_instance* instance_ = nullptr;
  firn_jit_entry entry_ = {};
};

// Ends compilations that were given it.
class Stop {
public:
  Stop() : stop_(firn_jit_stop_create()) {}
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  ~Stop() { firn_jit_stop_free(stop_); }
  void request() noexcept { firn_jit_stop_request(stop_); }
  const firn_jit_stop* handle() const noexcept { return stop_; }

private:
  firn_jit_stop* stop_;
};

// How a model is compiled. Setters return the object.
class ModelOptions {
public:
  ModelOptions& cpu(const std::string& name) { return option("--mcpu", name); }
  ModelOptions& threads(int count) { return option("--threads", std::to_string(count)); }
  ModelOptions& dim(const std::string& name, int64_t value) {
    return option("--dim", name + "=" + std::to_string(value));
  }
  ModelOptions& dim(const std::string& name, int64_t lower, int64_t upper) {
    return option("--dim", name + "=" + std::to_string(lower) + ".." + std::to_string(upper));
  }
  ModelOptions& shape(const std::string& input, std::initializer_list<int64_t> dims) {
    std::string text;
    for (int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
    return option("--shape", input + "=" + text);
  }
  // The input whose value in a run is that of the output in the run before.
  ModelOptions& state(const std::string& input, const std::string& output) {
    return option("--state", input + "=" + output);
  }
  // Gives the model a training step, for Trainer: by a loss, "softmax_cross_entropy" say, or "output:NAME"
  // for one that the model computes, and an optimizer, "adam" say. `more` has their options,
  // "weight_decay=0.01", apart by commas.
  ModelOptions& train(const std::string& loss, const std::string& optimizer, const std::string& more = "") {
    return option("--train", "loss=" + loss + ",optimizer=" + optimizer + (more.empty() ? "" : "," + more));
  }
  // A tensor to train, or a pattern such as "fc.*"; without one, all are trained.
  ModelOptions& trainable(const std::string& pattern) { return option("--trainable", pattern); }
  ModelOptions& strict_math() { return option("--math", "strict"); }
  ModelOptions& optimize(const std::string& level) { return option("--optimize", level); }
  // The function that computes an operator, "com.acme:Pool", with so many bytes of workspace
  // (firn/custom_op.h).
  ModelOptions& custom_op(const std::string& name, int32_t (*function)(const firn_custom_call*),
                          size_t workspace = 0) {
    const std::string symbol = "firn_custom_" + std::to_string(symbols_.size());
    symbols_.emplace_back(symbol, reinterpret_cast<void*>(function));
    return option("--custom-op",
                  name + "=" + symbol + (workspace > 0 ? ":" + std::to_string(workspace) : ""));
  }
  // Any option of `firn compile`, "--precision" with "bf16", say.
  ModelOptions& option(const std::string& name, const std::string& value) {
    words_.push_back(name + "=" + value);
    names_cpu_ = names_cpu_ || name == "--mcpu";
    return *this;
  }
  ModelOptions& flag(const std::string& name) {
    words_.push_back(name);
    return *this;
  }
  // Outlives the compilation.
  ModelOptions& stop(const Stop& stop) {
    stop_ = stop.handle();
    return *this;
  }
  ModelOptions& progress(void (*call)(void* context, const char* phase), void* context = nullptr) {
    progress_ = call;
    context_ = context;
    return *this;
  }

private:
  friend class Compiler;
  std::vector<std::string> words_;
  bool names_cpu_ = false;
  std::vector<std::pair<std::string, void*>> symbols_;
  const firn_jit_stop* stop_ = nullptr;
  void (*progress_)(void*, const char*) = nullptr;
  void* context_ = nullptr;
};

// Settings of a compiler. Setters return the object.
class Options {
public:
  // The CPU of models whose own options name none; otherwise it is this machine's.
  Options& cpu(const std::string& name) {
    cpu_ = name;
    return *this;
  }
  // Threads that compile one model at the same time; 0: as many as there are cores.
  Options& threads(size_t count) {
    threads_ = count;
    return *this;
  }
  // The folder where compiled models are kept from program to program; it is made if it is missing.
  Options& cache(const std::string& folder) {
    folder_ = folder;
    return *this;
  }

private:
  friend class Compiler;
  std::string cpu_;
  size_t threads_ = 0;
  std::string folder_;
};

// Makes models. Any number of threads may use one at the same time.
class Compiler {
public:
  explicit Compiler(const Options& options = Options()) : cpu_(options.cpu_) {
    const firn_jit_compiler_options values = {sizeof values, options.threads_,
                                              options.folder_.empty() ? nullptr : options.folder_.c_str()};
    compiler_ = firn_jit_compiler_create(&values);
  }
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  ~Compiler() { firn_jit_compiler_free(compiler_); }

  // Compiles a file: ONNX, or a graph in text form (.hlo).
  Model compile(const std::string& path, const ModelOptions& options = ModelOptions()) {
    return compile(path, nullptr, 0, options);
  }
  // Compiles bytes that are read until the call returns. `name` is for messages; one that ends in .hlo says
  // that they are a graph in text form.
  Model compile(const std::string& name, const void* bytes, size_t count,
                const ModelOptions& options = ModelOptions()) {
    const std::string cpu = "--mcpu=" + cpu_;
    std::vector<const char*> words;
    if (!cpu_.empty() && !options.names_cpu_) words.push_back(cpu.c_str());
    for (const std::string& word : options.words_) words.push_back(word.c_str());
    std::vector<firn_jit_symbol> symbols;
    for (const auto& symbol : options.symbols_) symbols.push_back({symbol.first.c_str(), symbol.second});
    firn_jit_request request = {};
    request.size = sizeof request;
    request.model = name.c_str();
    request.bytes = bytes;
    request.byte_count = count;
    request.options = words.data();
    request.option_count = words.size();
    request.symbols = symbols.data();
    request.symbol_count = symbols.size();
    request.stop = options.stop_;
    request.progress = options.progress_;
    request.context = options.context_;
    firn_jit_model* model = nullptr;
    firn_jit_messages* messages = nullptr;
    firn_jit_compile(compiler_, &request, &model, &messages);
    std::vector<Diagnostic> diagnostics;
    for (size_t i = 0; i < firn_jit_messages_count(messages); ++i)
      diagnostics.push_back({firn_jit_message_kind(messages, i), firn_jit_message_text(messages, i)});
    firn_jit_messages_free(messages);
    return Model(model, std::move(diagnostics));
  }

private:
  std::string cpu_;
  firn_jit_compiler* compiler_ = nullptr;
};

} // namespace jit
} // namespace firn
#endif

#endif // FIRN_JIT_H
