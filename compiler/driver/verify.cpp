// `firn verify`: finds cases, runs each in a process of its own so that a crash is one wrong case, and
// reports.
#include "compiler/driver/verify.h"

#include "compiler/artifact/manifest.h"
#include "compiler/driver/against.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/runs_here.h"
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"

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
  if (fs::exists(folder / "model.onnx", error) || fs::exists(folder / "model.hlo", error)) {
    cases.push_back(folder.string());
    return;
  }
  std::vector<fs::path> inner;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) inner.push_back(entry.path());
  std::sort(inner.begin(), inner.end());
  for (const fs::path& path : inner) find_cases(path, cases);
}

// A case that runs in a child process, which writes "verdict random error size stated message" to a pipe.
struct Child {
  pid_t pid;
  int noted; // its number in Unfinished
  int pipe;
  std::string folder, text;
  std::optional<TemporaryFolder> scratch; // its TMPDIR
  Clock::time_point deadline;
};

// All digits of a double.
std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

Child start_child(const VerifyOptions& options, const std::string& folder) {
  int ends[2];
  FIRN_CHECK(::pipe(ends) == 0, "cannot make a pipe");
  auto scratch = TemporaryFolder::make(); // the parent's, as the child may crash
  std::fflush(nullptr);
  SignalsHeld held;
  pid_t pid = ::fork();
  FIRN_CHECK(pid >= 0, "cannot fork");
  if (pid == 0) {
    Unfinished::disown();
    ::pthread_sigmask(SIG_SETMASK, &held.before(), nullptr);
    if (scratch) ::setenv("TMPDIR", scratch->path().c_str(), /*overwrite=*/1);
    ::close(ends[0]);
    CaseResult result;
    try {
      result = options.against_own ? state_case(options, folder) : verify_case(options, folder);
    } catch (const InternalFailure& failure) { // nothing of the parent's may run here
      result.message = "internal error: " + failure.message();
    }
    std::ostringstream line;
    line << static_cast<int>(result.verdict) << " " << result.is_random << " " << number_text(result.error)
         << " " << result.stated.size() << " " << result.stated << result.message.substr(0, 60000);
    std::string text = line.str();
    ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::optional<TemporaryFolder> kept;
  if (scratch) kept.emplace(std::move(*scratch));
  return {pid,
          Unfinished::note_child(pid),
          ends[0],
          folder,
          "",
          std::move(kept),
          Clock::now() + std::chrono::seconds(options.timeout_seconds)};
}

CaseResult finish_child(Child& child, bool timed_out) {
  if (timed_out) ::kill(child.pid, SIGKILL);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  Unfinished::forget(child.noted);
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
    size_t stated = 0;
    line >> verdict >> result.is_random >> error >> stated;
    result.verdict = static_cast<Verdict>(verdict);
    result.error = std::strtod(error.c_str(), nullptr);
    line.ignore(1);
    result.stated.resize(std::min(stated, child.text.size()));
    line.read(result.stated.data(), static_cast<std::streamsize>(result.stated.size()));
    std::getline(line, result.message, '\0');
  }
  return result;
}

// Reports results in the order of the cases, as children end.
class Runner {
public:
  Runner(const VerifyOptions& options, const std::vector<std::string>& cases)
      : options_(options), cases_(cases) {}

  // Runs cases until `report` returns false.
  void run(const std::function<bool(const CaseResult&)>& report) {
    size_t next = 0, reported = 0;
    while (reported < cases_.size()) {
      while (next < cases_.size() && children_.size() < static_cast<size_t>(std::max(1, options_.jobs))) {
        children_.push_back(start_child(options_, cases_[next]));
        numbers_.push_back(next++);
      }
      collect();
      for (; results_.count(reported); ++reported)
        if (!report(results_[reported])) return stop();
    }
  }

private:
  void stop() {
    for (Child& child : children_) (void)finish_child(child, /*timed_out=*/true);
  }

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

Expected<std::map<std::string, std::string>> read_list(const std::string& path) {
  std::map<std::string, std::string> list;
  std::ifstream stream(path);
  if (!stream) return usage_error("cannot read the list '" + path + "'");
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string name, reason;
    if (!(words >> name) || name[0] == '#') continue;
    std::getline(words >> std::ws, reason);
    list[name] = reason;
  }
  return list;
}

std::string case_text(const VerifyOptions& options, const CaseResult& result, bool is_first) {
  const char* verdict = result.verdict == Verdict::Pass    ? "pass"
                        : result.verdict == Verdict::Wrong ? "WRONG"
                                                           : "refused";
  if (result.verdict == Verdict::Pass && options.quiet) return "";
  if (options.json)
    return (is_first ? "\n  {\"name\": " : ",\n  {\"name\": ") + artifact::json_string(result.name) +
           ", \"verdict\": \"" + verdict + "\", \"drawn\": " + (result.is_random ? "true" : "false") +
           ", \"error\": " + (std::isfinite(result.error) ? number_text(result.error) : "null") +
           ", \"message\": " + artifact::json_string(result.message) +
           (result.stated.empty() ? "" : ", " + result.stated) + "}";
  char error[16];
  std::snprintf(error, sizeof error, "%.2g", result.error);
  auto padded = [](std::string text, size_t width) {
    return text + std::string(text.size() < width ? width - text.size() : 0, ' ') + " ";
  };
  return padded(result.name, 44) + padded(verdict, 8) +
         (!result.stated.empty()                       ? result.stated
          : result.verdict != Verdict::Pass            ? result.message.substr(0, 600)
          : result.is_random                           ? "drawn: type, shape and statistics"
          : options.verbose && !result.message.empty() ? padded(error, 10) + result.message
                                                       : error) +
         (result.stated.empty() ? "\n" : "");
}

// The results of a run of all cases.
struct Totals {
  std::map<Verdict, int> count;
  int drawn = 0;                                    // cases that passed by statistics
  std::map<std::string, std::string> refused;       // name and reason
  std::vector<std::string> not_listed, not_refused; // cases whose refusal differs from the list
  double seconds = 0;
};

std::string totals_text(const VerifyOptions& options, Totals& totals) {
  std::string text;
  for (const std::string& name : totals.not_listed) text += name + " is refused but not in the list\n";
  for (const std::string& name : totals.not_refused) text += name + " is in the list but not refused\n";
  char line[128];
  std::snprintf(line, sizeof line, "%d passed, %d wrong, %d refused in %.0f s", totals.count[Verdict::Pass],
                totals.count[Verdict::Wrong], totals.count[Verdict::Refused], totals.seconds);
  text += line;
  if (totals.drawn > 0)
    text += ", " + std::to_string(totals.drawn) + " passed by statistics of what they draw";
  if (options.engine == Engine::Evaluator) return text + "\n";
  const std::string gpu = options.compile.gpu.substr(0, options.compile.gpu.find(':'));
  if (options.engine == Engine::Ptx) return text + ", kernels of " + gpu + " in the interpreter of PTX\n";
  if (options.engine == Engine::Loops)
    return text + ", kernels of " + gpu + " as loops for " + cpu_note(options.compile) + "\n";
  return text + ", code for " + cpu_note(options.compile) + "\n";
}

std::string totals_json(Totals& totals) {
  auto names = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& name : list) text += (text.empty() ? "" : ", ") + artifact::json_string(name);
    return "[" + text + "]";
  };
  return "\n], \"passed\": " + std::to_string(totals.count[Verdict::Pass]) +
         ", \"drawn\": " + std::to_string(totals.drawn) +
         ", \"wrong\": " + std::to_string(totals.count[Verdict::Wrong]) +
         ", \"refused\": " + std::to_string(totals.count[Verdict::Refused]) +
         ", \"refused_but_not_listed\": " + names(totals.not_listed) +
         ", \"listed_but_not_refused\": " + names(totals.not_refused) +
         ", \"seconds\": " + number_text(totals.seconds) + "}\n";
}

// Compares the refusals with the list, or makes them the list.
Result use_list(const VerifyOptions& options, Totals& totals) {
  if (options.list.empty()) return {};
  if (options.update_list) {
    std::string text;
    for (const auto& [name, reason] : totals.refused) text += name + "  " + reason + "\n";
    return write_file(options.list, text);
  }
  auto expected = read_list(options.list);
  if (!expected) return expected.error();
  for (const auto& [name, reason] : totals.refused)
    if (!expected->count(name)) totals.not_listed.push_back(name);
  for (const auto& [name, reason] : *expected)
    if (!totals.refused.count(name)) totals.not_refused.push_back(name);
  return {};
}

} // namespace

static Expected<int> verify_cases(const VerifyOptions& options) {
  std::vector<std::string> cases;
  for (const std::string& folder : options.folders) {
    if (fs::is_directory(folder))
      find_cases(folder, cases);
    else if (options.against_own && fs::exists(folder))
      cases.push_back(folder);
    else
      return usage_error("'" + folder + "' is not a folder" + (options.against_own ? " or a file" : ""));
  }
  if (cases.empty())
    return usage_error(options.against_own
                           ? "no models found: wanted files, or folders with model.onnx"
                           : "no cases found: a case is a folder with model.onnx and test_data_set_*");
  if (options.engine == Engine::Object)
    if (Result runs = check_runs_here(options.compile); !runs) return runs.error();
  if (!options.list.empty() && !options.update_list)
    if (auto list = read_list(options.list); !list) return list.error();
  auto start = Clock::now();
  Totals totals;
  auto print = [&](const std::string& text) { return options.print ? options.print(text) : Result(); };
  Result printed = print(options.json ? "{\"cases\": [" : "");
  bool is_first = true;
  Runner(options, cases).run([&](const CaseResult& result) {
    std::string text = case_text(options, result, is_first);
    if (!text.empty()) is_first = false;
    if (printed) printed = print(text);
    ++totals.count[result.verdict];
    totals.drawn += result.is_random && result.verdict == Verdict::Pass;
    if (result.verdict == Verdict::Refused)
      totals.refused[result.name] = result.message.substr(0, result.message.find('\n'));
    return static_cast<bool>(printed);
  });
  if (!printed) return printed.error();
  totals.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (Result compared = use_list(options, totals); !compared) return compared.error();
  printed = print(options.json ? totals_json(totals) : totals_text(options, totals));
  if (!printed) return printed.error();
  bool differs = !totals.not_listed.empty() || !totals.not_refused.empty();
  return totals.count[Verdict::Wrong] > 0 || differs ? 1 : 0;
}

Expected<int> verify(const VerifyOptions& options) {
  return guarded("firn verify", [&] { return verify_cases(options); });
}

} // namespace firn::driver
