// `firn verify`: finds cases, runs each in a process of its own so that a crash is one wrong case, and
// reports.
#include "compiler/driver/verify.h"

#include "compiler/artifact/manifest.h"
#include "compiler/support/output_set.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <poll.h>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace firn::driver {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void find_cases(const fs::path& folder, std::vector<std::string>& cases) {
  std::error_code error;
  if (fs::exists(folder / "model.onnx", error)) {
    cases.push_back(folder.string());
    return;
  }
  std::vector<fs::path> inner;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) inner.push_back(entry.path());
  std::sort(inner.begin(), inner.end());
  for (const fs::path& path : inner) find_cases(path, cases);
}

// A case that runs in a child process, which writes "verdict error message" to a pipe.
struct Child {
  pid_t pid;
  int pipe;
  std::string folder, text;
  Clock::time_point deadline;
};

Child start_child(const VerifyOptions& options, const std::string& folder) {
  int ends[2];
  FIRN_CHECK(::pipe(ends) == 0, "cannot make a pipe");
  std::fflush(nullptr);
  pid_t pid = ::fork();
  FIRN_CHECK(pid >= 0, "cannot fork");
  if (pid == 0) {
    ::close(ends[0]);
    CaseResult result = verify_case(options, folder);
    std::ostringstream line;
    line << static_cast<int>(result.verdict) << " " << result.error << " " << result.message;
    std::string text = line.str().substr(0, 60000);
    ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  return {pid, ends[0], folder, "", Clock::now() + std::chrono::seconds(options.timeout_seconds)};
}

CaseResult finish_child(Child& child, bool timed_out) {
  if (timed_out) ::kill(child.pid, SIGKILL);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  ::close(child.pipe);
  CaseResult result;
  result.name = fs::path(child.folder).filename().string();
  if (timed_out) {
    result.message = "no answer in time";
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    result.message = WIFSIGNALED(status) ? std::string("crashed: ") + ::strsignal(WTERMSIG(status))
                                         : "ended with exit code " + std::to_string(WEXITSTATUS(status));
  } else {
    std::istringstream line(child.text);
    int verdict = 0;
    std::string error;
    line >> verdict >> error;
    result.verdict = static_cast<Verdict>(verdict);
    result.error = std::strtod(error.c_str(), nullptr);
    line.ignore(1);
    std::getline(line, result.message, '\0');
  }
  return result;
}

// Results in the order of the cases, as children end.
class Runner {
public:
  Runner(const VerifyOptions& options, const std::vector<std::string>& cases)
      : options_(options), cases_(cases) {}

  void run(const std::function<void(const CaseResult&)>& report) {
    size_t next = 0, reported = 0;
    while (reported < cases_.size()) {
      while (next < cases_.size() && children_.size() < static_cast<size_t>(std::max(1, options_.jobs))) {
        children_.push_back(start_child(options_, cases_[next]));
        numbers_.push_back(next++);
      }
      collect();
      for (; results_.count(reported); ++reported) report(results_[reported]);
    }
  }

private:
  void collect() {
    std::vector<pollfd> polls;
    for (const Child& child : children_) polls.push_back({child.pipe, POLLIN, 0});
    ::poll(polls.data(), polls.size(), 500);
    for (size_t i = children_.size(); i-- > 0;) {
      bool ended = false;
      if (polls[i].revents) {
        char buffer[4096];
        ssize_t got = ::read(children_[i].pipe, buffer, sizeof buffer);
        if (got > 0) children_[i].text.append(buffer, static_cast<size_t>(got));
        ended = got <= 0;
      }
      bool timed_out = !ended && Clock::now() > children_[i].deadline;
      if (!ended && !timed_out) continue;
      results_[numbers_[i]] = finish_child(children_[i], timed_out);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      numbers_.erase(numbers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const VerifyOptions& options_;
  const std::vector<std::string>& cases_;
  std::vector<Child> children_;
  std::vector<size_t> numbers_;
  std::map<size_t, CaseResult> results_;
};

std::map<std::string, std::string> read_list(const std::string& path) {
  std::map<std::string, std::string> list;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string name, reason;
    if (!(words >> name) || name[0] == '#') continue;
    std::getline(words >> std::ws, reason);
    list[name] = reason;
  }
  return list;
}

void print_case(const VerifyOptions& options, const CaseResult& result) {
  const char* verdict = result.verdict == Verdict::Pass    ? "pass"
                        : result.verdict == Verdict::Wrong ? "WRONG"
                                                           : "refused";
  if (options.json) {
    std::printf("{\"name\": %s, \"verdict\": \"%s\", \"error\": %s, \"message\": %s}\n",
                artifact::json_string(result.name).c_str(), verdict,
                std::isfinite(result.error) ? std::to_string(result.error).c_str() : "null",
                artifact::json_string(result.message).c_str());
  } else if (result.verdict == Verdict::Pass) {
    if (!options.quiet) std::printf("%-44s pass     %.2g\n", result.name.c_str(), result.error);
  } else {
    std::string first_lines = result.message.substr(0, 600);
    std::printf("%-44s %-8s %s\n", result.name.c_str(), verdict, first_lines.c_str());
  }
  std::fflush(stdout);
}

} // namespace

Expected<int> verify(const VerifyOptions& options) {
  std::vector<std::string> cases;
  for (const std::string& folder : options.folders) {
    if (!fs::is_directory(folder)) return usage_error("'" + folder + "' is not a folder");
    find_cases(folder, cases);
  }
  if (cases.empty())
    return usage_error("no cases found: a case is a folder with model.onnx and test_data_set_*");
  auto start = Clock::now();
  std::map<Verdict, int> totals;
  std::map<std::string, std::string> refused;
  Runner(options, cases).run([&](const CaseResult& result) {
    print_case(options, result);
    ++totals[result.verdict];
    if (result.verdict == Verdict::Refused)
      refused[result.name] = result.message.substr(0, result.message.find('\n'));
  });
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  bool list_differs = false;
  if (!options.list.empty() && options.update_list) {
    std::string text;
    for (const auto& [name, reason] : refused) text += name + "  " + reason + "\n";
    if (Result written = write_file(options.list, text); !written) return written.error();
  } else if (!options.list.empty()) {
    auto expected = read_list(options.list);
    for (const auto& [name, reason] : refused)
      if (!expected.count(name))
        std::printf("%s is refused but not in the list\n", name.c_str()), list_differs = true;
    for (const auto& [name, reason] : expected)
      if (!refused.count(name))
        std::printf("%s is in the list but not refused\n", name.c_str()), list_differs = true;
  }
  std::printf("%d passed, %d wrong, %d refused in %.0f s\n", totals[Verdict::Pass], totals[Verdict::Wrong],
              totals[Verdict::Refused], seconds);
  return totals[Verdict::Wrong] > 0 || list_differs ? 1 : 0;
}

} // namespace firn::driver
