// The compiler that clients of the library share: equal requests are compiled once.
#pragma once

#include "tools/jit/model.h"

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <optional>

namespace firn::library {

// A request as firn_jit_request has it, with a copy of its words.
struct Request {
  std::string model;
  std::optional<std::span<const std::byte>> bytes;
  std::vector<std::string> words;
  std::map<std::string, void*> symbols;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& phase)> progress;
};

struct Outcome {
  std::shared_ptr<const Model> model; // null: the diagnostics say why
  std::vector<Diagnostic> diagnostics;
  std::vector<std::string> warnings;
  bool was_stopped() const;
};

class Compiler {
public:
  // `threads` compile a model, as many as there are cores if 0. `folder` keeps models from program to
  // program; empty: nothing does.
  Compiler(unsigned threads, std::string folder) : threads_(threads), folder_(std::move(folder)) {}

  // Any number of threads may call it at the same time. A request that equals one in flight waits for that
  // one's outcome, and one whose model still lives gets that model.
  Outcome compile(const Request& request);

private:
  // The living model of the key; null: `other` is the compilation that is under way, or else it is `own` now.
  std::shared_ptr<const Model> find_living(const std::string& key, std::promise<Outcome>& own,
                                           std::shared_future<Outcome>& other);
  // Compiles for all that wait for `own`.
  Outcome compile_for_all(const Request& request, const std::string& content, const std::string& key,
                          std::promise<Outcome>& own);
  // `content`: the part of the key that the code depends on; empty: nothing tells whether it is the same.
  Outcome compile_anew(const Request& request, const std::string& content) const;
  Expected<std::optional<CacheFolder>> open_folder() const;
  Outcome compile_shielded(const Request& request, const std::string& content) const; // whatever happens
  const unsigned threads_;
  const std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Outcome>> in_flight_; // by key
  std::map<std::string, std::weak_ptr<const Model>> models_;
};

} // namespace firn::library
