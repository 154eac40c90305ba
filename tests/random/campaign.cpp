// See campaign.h.
#include "tests/random/campaign.h"

#include "tests/random/check_gradients.h"
#include "tests/random/gradient_case.h"
#include "tests/random/process.h"
#include "tests/random/shrink.h"

#include <chrono>
#include <map>
#include <poll.h>

namespace firn::test {
namespace {

struct Failure {
  uint64_t seed;
  Verdict verdict;
};

// The first line, not too long: a campaign's report has a line per failure.
std::string brief(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  return line.size() > 240 ? line.substr(0, 240) + "..." : line;
}

// A graph with a gradient, compiled where it has one. Graphs that have none, or for whose gradient a kernel
// is missing, are limits.
Verdict check_gradient_object(const TestCase& test, const Phase& phase) {
  std::string why;
  phase("differentiate");
  auto derived = with_gradient(test, why);
  if (!derived) return {"limit", why};
  derived->setting.weights = driver::Weights::Embed; // other weights would be checked without the gradient
  Verdict verdict = check_case(*derived, phase);
  if (verdict.kind == "unsupported") verdict.kind = "limit";
  return verdict;
}

Verdict check(const CampaignOptions& options, const TestCase& test, uint64_t seed, const Phase& phase) {
  if (options.gradient_objects && test.refusal.empty()) return check_gradient_object(test, phase);
  if (options.gradients == 0) return check_case(test, phase);
  return check_gradients(test, seed, options.gradients, phase);
}

class Campaign {
public:
  explicit Campaign(const CampaignOptions& options) : options_(options), next_(options.first) {}

  std::vector<Failure> run() {
    auto start = std::chrono::steady_clock::now();
    while (next_ < options_.end || !running_.empty()) {
      while (next_ < options_.end && running_.size() < static_cast<size_t>(options_.jobs)) {
        uint64_t seed = next_++;
        auto check_seed = [this, seed](const Phase& phase) {
          return check(options_, generate_case(seed), seed, phase);
        };
        running_.emplace(seed, CheckProcess(check_seed, options_.seconds));
      }
      serve();
    }
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%llu graphs, %zu failures, %.0f s\n",
                static_cast<unsigned long long>(options_.end - options_.first), failures_.size(), seconds);
    int limits = 0;
    for (const auto& [message, count] : limits_) {
      limits += count;
      if (options_.limits) std::printf("  limit: %dx %s\n", count, message.c_str());
    }
    std::printf("  refused, as %s: %d\n",
                options_.gradients || options_.gradient_objects ? "they have no gradient"
                                                                : "no kernel takes their dims",
                limits);
    return std::move(failures_);
  }

private:
  void serve() {
    std::vector<pollfd> waiting;
    for (const auto& [seed, process] : running_) waiting.push_back({process.output(), POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), -1);
    size_t i = 0;
    for (auto it = running_.begin(); it != running_.end();) {
      bool news = waiting[i++].revents != 0;
      if (!news || !it->second.read()) {
        ++it;
        continue;
      }
      report(it->first, it->second.verdict());
      it = running_.erase(it);
    }
  }

  void report(uint64_t seed, const Verdict& verdict) {
    ++done_;
    if (verdict.is_limit()) ++limits_[brief(verdict.message)];
    if (!verdict.passed() && !verdict.is_limit()) {
      failures_.push_back({seed, verdict});
      std::printf("seed %llu (%s): %s: %s\n", static_cast<unsigned long long>(seed),
                  draw_setting(seed).to_string().c_str(), verdict.kind.c_str(),
                  brief(verdict.message).c_str());
    }
    if (done_ % 500 == 0)
      std::printf("... %llu graphs, %zu failures\n", static_cast<unsigned long long>(done_),
                  failures_.size());
    std::fflush(stdout);
  }

  const CampaignOptions& options_;
  uint64_t next_, done_ = 0;
  std::map<std::string, int> limits_;
  std::map<uint64_t, CheckProcess> running_;
  std::vector<Failure> failures_;
};

// Prints a case, a line per node.
void print_case(const TestCase& test) {
  std::printf("  %s%s%s\n", test.flags().c_str(), test.setting.external ? ", external tensors" : "",
              test.setting.guard_before ? ", guarded before" : ", guarded after");
  for (const std::string& name : test.graph.inputs)
    std::printf("  input %s: %s\n", name.c_str(), test.graph.literal(name).type().to_string().c_str());
  for (const TestNode& node : test.graph.nodes) {
    std::string line = "  ";
    for (const std::string& name : node.outputs) line += name + " ";
    line += "= " + node.op + "(";
    for (const std::string& name : node.inputs)
      line += name.empty() ? "- " : name + ":" + test.graph.literal(name).type().to_string() + " ";
    line.back() = ')';
    for (const std::string& name : node.outputs) line += " : " + test.graph.literal(name).type().to_string();
    std::printf("%s\n", line.c_str());
  }
  for (const auto& [input, output] : test.graph.states)
    std::printf("  state %s=%s\n", input.c_str(), output.c_str());
  for (const std::string& name : test.graph.outputs) std::printf("  output %s\n", name.c_str());
}

void shrink_failure(const CampaignOptions& options, const Failure& failure) {
  if (failure.verdict.message.find("'generate'") != std::string::npos) return; // there is no graph
  TestCase test = generate_case(failure.seed);
  Verdict last = failure.verdict;
  auto still_fails = [&](const TestCase& less) {
    auto check_less = [&](const Phase& phase) { return check(options, less, failure.seed, phase); };
    Verdict verdict = CheckProcess(check_less, options.seconds).wait();
    bool same = verdict.kind == failure.verdict.kind;
    if (same) last = verdict;
    return same;
  };
  if (options.shrink && failure.verdict.kind != "hang") test = shrink(std::move(test), still_fails);
  std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(failure.seed), last.kind.c_str(),
              last.message.c_str());
  print_case(test);
  if (!options.write_folder.empty())
    if (Result written = write_case(test, options.write_folder + "/seed_" + std::to_string(failure.seed));
        !written)
      std::printf("  not written: %s\n", written.error().message.c_str());
}

} // namespace

int run_campaign(const CampaignOptions& options) {
  (void)runnable_cpus(); // once, before the first fork
  std::vector<Failure> failures = Campaign(options).run();
  std::map<std::string, int> kinds;
  for (const Failure& failure : failures) ++kinds[failure.verdict.kind];
  for (const auto& [kind, count] : kinds) std::printf("  %s: %d\n", kind.c_str(), count);
  constexpr size_t kMaxShrunk = 40;
  for (size_t i = 0; i < failures.size() && i < kMaxShrunk; ++i) {
    std::fflush(stdout);
    shrink_failure(options, failures[i]);
  }
  return static_cast<int>(failures.size());
}

} // namespace firn::test
