// Compiles requests, and joins equal ones.
#include "tools/jit/compiler.h"

#include "compiler/driver/guarded.h"
#include "compiler/support/sha256.h"
#include "tools/jit/request_options.h"

#include <algorithm>
#include <chrono>

namespace firn::library {

bool Outcome::was_stopped() const {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& each) { return each.fault == Fault::Stopped; });
}

namespace {

bool is_stopped(const Request& request) {
  return request.stop && *request.stop;
}

// The part of the key that the code depends on: all but the addresses of the program's functions. It is empty
// if the model's file cannot be found.
std::string content_of(const Request& request) {
  std::string content = request.bytes ? request.model + "\n" + sha256_tree_hex(*request.bytes)
                                      : driver::file_identity(request.model);
  if (content.empty()) return content;
  for (const std::string& word : request.words) content += "\n" + std::to_string(word.size()) + " " + word;
  return content;
}

// The key by which requests are equal.
std::string key_of(const Request& request, const std::string& content) {
  std::string key = content;
  for (const auto& [name, address] : request.symbols)
    key += "\n" + name + " " + std::to_string(reinterpret_cast<uintptr_t>(address));
  return key;
}

} // namespace

Outcome Compiler::compile(const Request& request) {
  const std::string content = content_of(request);
  if (content.empty()) return compile_shielded(request, content);
  const std::string key = key_of(request, content);
  for (;;) {
    std::promise<Outcome> own;
    std::shared_future<Outcome> other;
    if (auto model = find_living(key, own, other)) return {std::move(model), {}, {}};
    if (!other.valid()) return compile_for_all(request, content, key, own);
    while (other.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
      if (is_stopped(request)) return {nullptr, {stopped_error()}, {}};
    // Whoever asked the other compilation to stop has not asked this one.
    if (!other.get().was_stopped() || is_stopped(request)) return other.get();
  }
}

std::shared_ptr<const Model> Compiler::find_living(const std::string& key, std::promise<Outcome>& own,
                                                   std::shared_future<Outcome>& other) {
  std::lock_guard lock(mutex_);
  std::erase_if(models_, [](const auto& each) { return each.second.expired(); });
  if (auto living = models_.find(key); living != models_.end())
    if (auto model = living->second.lock(); model && model->is_current()) return model;
  if (auto found = in_flight_.find(key); found != in_flight_.end())
    other = found->second;
  else
    in_flight_[key] = own.get_future().share();
  return nullptr;
}

Outcome Compiler::compile_for_all(const Request& request, const std::string& content, const std::string& key,
                                  std::promise<Outcome>& own) {
  try {
    Outcome outcome = compile_shielded(request, content);
    {
      std::lock_guard lock(mutex_);
      in_flight_.erase(key);
      if (outcome.model) models_[key] = outcome.model;
    }
    own.set_value(outcome);
    return outcome;
  } catch (...) { // waiting threads get the exception, too
    {
      std::lock_guard lock(mutex_);
      in_flight_.erase(key);
    }
    own.set_exception(std::current_exception());
    throw;
  }
}

Outcome Compiler::compile_shielded(const Request& request, const std::string& content) const {
  try {
    return compile_anew(request, content);
  } catch (const InternalFailure& failure) {
    return {nullptr, {driver::failure_diagnostic(request.model, failure)}, {}};
  } catch (const std::bad_alloc&) {
    return {nullptr, {usage_error("there is not enough memory to compile the model")}, {}};
  } catch (const std::exception& error) {
    return {nullptr, {internal_error(error.what())}, {}};
  }
}

Outcome Compiler::compile_anew(const Request& request, const std::string& content) const {
  Outcome outcome;
  DiagnosticList diagnostics;
  auto options = options_of(request);
  if (!options) {
    outcome.diagnostics.push_back(options.error());
    return outcome;
  }
  options->jobs = threads_;
  std::optional<CacheFolder> folder;
  if (auto opened = open_folder())
    folder = std::move(*opened);
  else
    outcome.warnings.push_back(opened.error().message);
  if (folder) options->cache_folder = folder_;
  std::string name; // empty: the model is not kept
  if (folder && !content.empty() && !driver::depends_on_other_files(*options)) {
    name = driver::kept_name(*options, content);
    outcome.model = Model::find(*folder, name, *options);
    if (outcome.model) return outcome;
  }
  auto compilation = driver::compile_in_memory(*options, diagnostics);
  if (compilation) {
    auto model = Model::load(*compilation, name.empty() ? nullptr : &*folder, name);
    if (model)
      outcome.model = std::move(*model);
    else
      diagnostics.add(model.error());
    const auto& warnings = compilation->facts.warnings;
    outcome.warnings.insert(outcome.warnings.end(), warnings.begin(), warnings.end());
  }
  outcome.diagnostics = diagnostics.messages();
  return outcome;
}

// No folder: the program named none. One that cannot be used hinders no compilation.
Expected<std::optional<CacheFolder>> Compiler::open_folder() const {
  if (folder_.empty()) return std::optional<CacheFolder>();
  auto opened = CacheFolder::open(folder_);
  if (!opened) return opened.error();
  return std::optional<CacheFolder>(std::move(*opened));
}

} // namespace firn::library
