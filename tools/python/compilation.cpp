// Waits for the compiler's thread, and looks at signals meanwhile.
#include "compilation.h"

#include <nanobind/stl/string.h>

#include <cstdlib>

namespace nb = nanobind;
using namespace std::chrono_literals;

namespace firn::python {

namespace {

// Compilations that were told to stop and have not yet. The interpreter's lock guards the list, which is
// never destroyed.
std::vector<std::unique_ptr<Compilation>>& left_behind() {
  static auto& all = *new std::vector<std::unique_ptr<Compilation>>;
  return all;
}

} // namespace

Compilation::Compilation(std::shared_ptr<firn_jit_compiler> compiler, std::string model, nb::object data,
                         std::vector<std::string> options,
                         std::vector<std::pair<std::string, uintptr_t>> symbols)
    : compiler_(std::move(compiler)), name_(std::move(model)), data_(std::move(data)),
      options_(std::move(options)), symbols_(std::move(symbols)), stop_(firn_jit_stop_create()) {}

Compilation::~Compilation() {
  if (thread_.joinable()) thread_.join();
  firn_jit_model_release(model_);
  firn_jit_messages_free(messages_);
  firn_jit_stop_free(stop_);
}

void Compilation::run(std::unique_ptr<Compilation>& compilation, const nb::object& progress) {
  std::erase_if(left_behind(), [](const auto& each) { return each->ends_within(0ms); });
  compilation->thread_ = std::thread([self = compilation.get()] { self->compile(); });
  try {
    compilation->watch(progress);
  } catch (...) {
    firn_jit_stop_request(compilation->stop_);
    bool has_ended = false;
    {
      nb::gil_scoped_release released;
      has_ended = compilation->ends_within(500ms);
    }
    if (!has_ended) {
      // The process must not end under the thread.
      [[maybe_unused]] static const int registered = std::atexit([] {
        for (const auto& each : left_behind()) each->ends_within(1h);
      });
      left_behind().push_back(std::move(compilation));
    }
    throw;
  }
}

void Compilation::compile() {
  std::vector<const char*> words;
  for (const std::string& option : options_) words.push_back(option.c_str());
  std::vector<firn_jit_symbol> symbols;
  for (const auto& [name, address] : symbols_)
    symbols.push_back({name.c_str(), reinterpret_cast<void*>(address)});
  firn_jit_request request = {};
  request.size = sizeof request;
  request.model = name_.c_str();
  // This thread has no lock of the interpreter; bytes do not change, and data_ keeps them.
  if (PyBytes_Check(data_.ptr())) {
    request.bytes = PyBytes_AsString(data_.ptr());
    request.byte_count = static_cast<size_t>(PyBytes_Size(data_.ptr()));
  }
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
  code_ = firn_jit_compile(compiler_.get(), &request, &model_, &messages_);
  std::lock_guard lock(mutex_);
  has_ended_ = true;
  changed_.notify_one();
}

bool Compilation::wait(std::chrono::milliseconds time, std::vector<std::string>& phases) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return has_ended_ || !phases_.empty(); });
  phases = std::exchange(phases_, {});
  return has_ended_;
}

bool Compilation::ends_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return has_ended_; });
}

void Compilation::watch(const nb::object& progress) {
  for (bool has_ended = false; !has_ended;) {
    std::vector<std::string> phases;
    {
      nb::gil_scoped_release released;
      has_ended = wait(50ms, phases);
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
