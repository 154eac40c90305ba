// Compiles requests, and joins equal ones.
#include "tools/jit/compiler.h"

#include "compiler/driver/variants.h"
#include "compiler/support/sha256.h"
#include "tools/jit/request_options.h"

#include <algorithm>

namespace firn::library {

bool Outcome::was_stopped() const {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& each) { return each.fault == Fault::Stopped; });
}

namespace {

// The part of the key that the code depends on, which is all but the addresses of the program's functions.
std::optional<std::string> content_of(const Request& request) {
  std::string content = request.bytes ? request.model + "\n" + sha256_hex(*request.bytes)
                                      : driver::file_identity(request.model);
  if (content.empty()) return std::nullopt;
  for (const std::string& word : request.words) content += "\n" + std::to_string(word.size()) + " " + word;
  return content;
}

// Whether words name files besides the model, which the key does not know.
bool names_files(const Request& request) {
  return std::any_of(request.words.begin(), request.words.end(), [](const std::string& word) {
    return word.starts_with("--schedule-db") || word.starts_with("--const") || word.starts_with("--link") ||
           word.starts_with("--weights-in");
  });
}

// The name of the file in which a request's model is kept.
std::string kept_as(const Request& request, const driver::CompileOptions& options,
                    const std::string& content) {
  std::string text = driver::build_identity() + "\n" + content;
  if (auto target = driver::targets_of(options))
    for (const NamedTarget& cpu : *target)
      text += "\n" + cpu.target.display_name() + " " + cpu.target.features;
  for (const auto& [name, address] : request.symbols) text += "\n" + name;
  return sha256_hex(std::as_bytes(std::span(text)));
}

} // namespace

std::optional<std::string> key_of(const Request& request) {
  auto key = content_of(request);
  if (key)
    for (const auto& [name, address] : request.symbols)
      *key += "\n" + name + " " + std::to_string(reinterpret_cast<uintptr_t>(address));
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
        if (auto model = living->second.lock(); model && model->is_current())
          return {std::move(model), {}, {}};
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
  options->jobs = threads_;
  std::optional<CacheFolder> folder;
  auto cache = cache_for(request, folder);
  if (cache)
    options->cache_folder = folder_;
  else
    outcome.warnings.push_back(cache.error().message);
  std::string key;
  const auto content = content_of(request);
  if (cache && *cache && content) {
    key = kept_as(request, *options, *content);
    outcome.model = Model::find(**cache, key, request.symbols);
    if (outcome.model) return outcome;
  }
  auto compilation = driver::compile_in_memory(*options, diagnostics);
  if (compilation) {
    auto model = Model::load(*compilation, key.empty() ? nullptr : *cache, key);
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

// The folder, if there is one and it can know whether a model is the one that is asked for. A folder that
// cannot be used hinders no compilation.
Expected<const CacheFolder*> Compiler::cache_for(const Request& request,
                                                 std::optional<CacheFolder>& folder) const {
  if (folder_.empty() || names_files(request)) return static_cast<const CacheFolder*>(nullptr);
  auto opened = CacheFolder::open(folder_);
  if (!opened) return opened.error();
  folder = std::move(*opened);
  return static_cast<const CacheFolder*>(&*folder);
}

} // namespace firn::library
