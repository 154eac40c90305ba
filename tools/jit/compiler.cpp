// Compiles requests, and joins equal ones.
#include "tools/jit/compiler.h"

#include "compiler/support/sha256.h"
#include "tools/jit/request_options.h"

#include <sys/stat.h>

#include <algorithm>

namespace firn::library {

bool Outcome::was_stopped() const {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& each) { return each.fault == Fault::Stopped; });
}

std::optional<std::string> key_of(const Request& request) {
  std::string key;
  if (request.bytes) {
    key = request.model + "\n" + sha256_hex(*request.bytes);
  } else {
    struct stat file {};
    if (::stat(request.model.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
    for (int64_t number : {static_cast<int64_t>(file.st_dev), static_cast<int64_t>(file.st_ino),
                           static_cast<int64_t>(file.st_size), static_cast<int64_t>(file.st_mtim.tv_sec),
                           static_cast<int64_t>(file.st_mtim.tv_nsec)})
      key += std::to_string(number) + " ";
  }
  for (const std::string& word : request.words) key += "\n" + std::to_string(word.size()) + " " + word;
  for (const auto& [name, address] : request.symbols)
    key += "\n" + name + " " + std::to_string(reinterpret_cast<uintptr_t>(address));
  return key;
}

Outcome Compiler::compile(const Request& request) {
  const std::optional<std::string> key = key_of(request);
  if (!key) return compile_shielded(request);
  for (;;) {
    std::promise<Outcome> promise;
    std::shared_future<Outcome> other;
    {
      std::lock_guard lock(mutex_);
      std::erase_if(models_, [](const auto& each) { return each.second.expired(); });
      if (auto living = models_.find(*key); living != models_.end())
        if (auto model = living->second.lock()) return {std::move(model), {}, {}};
      if (auto found = in_flight_.find(*key); found != in_flight_.end())
        other = found->second;
      else
        in_flight_[*key] = promise.get_future().share();
    }
    if (other.valid()) {
      const Outcome& outcome = other.get();
      // Whoever asked the other compilation to stop has not asked this one.
      if (outcome.was_stopped() && !(request.stop && *request.stop)) continue;
      return outcome;
    }
    Outcome outcome = compile_shielded(request);
    {
      std::lock_guard lock(mutex_);
      in_flight_.erase(*key);
      if (outcome.model) models_[*key] = outcome.model;
    }
    promise.set_value(outcome);
    return outcome;
  }
}

Outcome Compiler::compile_shielded(const Request& request) const {
  try {
    return compile_anew(request);
  } catch (const std::bad_alloc&) {
    return {nullptr, {usage_error("there is not enough memory to compile the model")}, {}};
  } catch (const std::exception& error) {
    return {nullptr, {internal_error(error.what())}, {}};
  }
}

Outcome Compiler::compile_anew(const Request& request) const {
  Outcome outcome;
  DiagnosticList diagnostics;
  auto options = options_of(request);
  if (!options) {
    outcome.diagnostics.push_back(options.error());
    return outcome;
  }
  auto compilation = driver::compile_in_memory(*options, diagnostics);
  if (compilation) {
    auto model = Model::load(*compilation);
    if (model)
      outcome.model = std::move(*model);
    else
      diagnostics.add(model.error());
    outcome.warnings = compilation->facts.warnings;
  }
  outcome.diagnostics = diagnostics.messages();
  return outcome;
}

} // namespace firn::library
