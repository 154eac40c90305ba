// Waits for the compiler's thread, and looks at signals meanwhile.
#include "compilation.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <thread>

namespace nb = nanobind;

namespace firn::python {

Compilation::Compilation(std::string model, std::vector<std::string> options,
                         std::vector<std::pair<std::string, uintptr_t>> symbols)
    : name_(std::move(model)), options_(std::move(options)), symbols_(std::move(symbols)),
      stop_(firn_jit_stop_create()) {}

Compilation::~Compilation() {
  firn_jit_model_release(model_);
  firn_jit_messages_free(messages_);
  firn_jit_stop_free(stop_);
}

int32_t Compilation::run(firn_jit_compiler* compiler, const void* bytes, size_t count,
                         const nb::object& progress) {
  std::thread thread([=, this] { compile(compiler, bytes, count); });
  try {
    watch(progress);
  } catch (...) {
    firn_jit_stop_request(stop_);
    nb::gil_scoped_release released;
    thread.join();
    throw;
  }
  thread.join();
  return code_;
}

void Compilation::compile(firn_jit_compiler* compiler, const void* bytes, size_t count) {
  std::vector<const char*> words;
  for (const std::string& option : options_) words.push_back(option.c_str());
  std::vector<firn_jit_symbol> symbols;
  for (const auto& [name, address] : symbols_)
    symbols.push_back({name.c_str(), reinterpret_cast<void*>(address)});
  firn_jit_request request = {};
  request.size = sizeof request;
  request.model = name_.c_str();
  request.bytes = bytes;
  request.byte_count = count;
  request.options = words.data();
  request.option_count = words.size();
  request.symbols = symbols.data();
  request.symbol_count = symbols.size();
  request.stop = stop_;
  request.context = this;
  request.progress = [](void* context, const char* phase) {
    auto& self = *static_cast<Compilation*>(context);
    std::lock_guard lock(self.mutex_);
    self.phases_.emplace_back(phase);
    self.changed_.notify_one();
  };
  code_ = firn_jit_compile(compiler, &request, &model_, &messages_);
  std::lock_guard lock(mutex_);
  has_ended_ = true;
  changed_.notify_one();
}

bool Compilation::wait(std::vector<std::string>& phases) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return has_ended_ || !phases_.empty(); });
  phases = std::exchange(phases_, {});
  return has_ended_;
}

void Compilation::watch(const nb::object& progress) {
  for (bool has_ended = false; !has_ended;) {
    std::vector<std::string> phases;
    {
      nb::gil_scoped_release released;
      has_ended = wait(phases);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    for (const std::string& phase : phases)
      if (!progress.is_none()) progress(phase);
  }
}

std::vector<std::pair<int32_t, std::string>> Compilation::messages() const {
  std::vector<std::pair<int32_t, std::string>> all;
  for (size_t i = 0; i < firn_jit_messages_count(messages_); ++i)
    all.emplace_back(firn_jit_message_kind(messages_, i), firn_jit_message_text(messages_, i));
  return all;
}

} // namespace firn::python
