// Compiles requests, and joins equal ones.
#include "tools/jit/compiler.h"

#include "compiler/driver/guarded.h"
#include "compiler/driver/variants.h"
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
  std::string content = request.bytes ? request.model + "\n" + sha256_hex(*request.bytes)
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
      if (is_stopped(request)) return {nullptr, {driver::stopped_error()}, {}};
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
  Outcome outcome = compile_shielded(request, content);
  {
    std::lock_guard lock(mutex_);
    in_flight_.erase(key);
    if (outcome.model) models_[key] = outcome.model;
  }
  own.set_value(outcome);
  return outcome;
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
  std::optional<CacheFolder> folder;
  auto cache = cache_for(request, folder);
  if (!cache) outcome.warnings.push_back(cache.error().message);
  std::string key; // empty: the model is not kept
  if (cache && *cache && !content.empty()) {
    key = kept_as(request, *options, content);
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

// The folder, if there is one and the key of a request tells all that its code depends on. A folder that
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
