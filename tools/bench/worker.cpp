// The program that `firn bench --build` links with a model's object. Called by a person it checks the stored
// outputs of every data set, times runs on each and says so in a table (kUsage). Called with MODEL_DIR
// THREADS it does as it is told by lines on standard input; one JSON object per line on standard output:
//   at the start     {"ready": true, "load_s": S, "max_error": E}  or  {"ready": false, "reason": "..."}
//   run S hot|cold K {"median_ns": N, "min_ns": N, "runs": N}  or  {"reason": "..."}
//   quit             {"peak_rss_kib": N}
// K is the number of a test_data_set_K, 0 without it. The error is the largest over all sets that the object
// is for, 1e308 where a shape, a Boolean or an integer of 32 bits or more differs.
#include "worker_case.h"

#include <chrono>
#include <unistd.h>

namespace {

constexpr const char* kUsage =
    R"(usage: %s [FOLDER] [--threads N] [--seconds S] [--tolerance E]
       %s FOLDER THREADS

Checks and times a model that firn compiled, on the data sets test_data_set_K in FOLDER. Default: the folder
that the program was built for,
  %s

  --threads N    lends runs a pool of N threads; default: as many as the object makes use of, %d
  --seconds S    time to measure of each kind, with hot and with cold caches; default 1
  --tolerance E  the largest error of an output; default: 1e-5, f16 1e-2, bf16 5e-2
  --help         prints this

Exit code: 0 if all outputs are right, 1 if one is wrong or the model cannot run here, 2 for a wrong command line.

With FOLDER THREADS it answers lines on standard input by lines of JSON, for programs:
  at the start       {"ready": true, "load_s": S, "max_error": E}  or  {"ready": false, "reason": "..."}
  run S hot|cold K   {"median_ns": N, "min_ns": N, "runs": N}, on test_data_set_K, for S seconds
  quit               {"peak_rss_kib": N}
)";

using Clock = std::chrono::steady_clock;

const char* program_name = "worker";
bool answers_lines = false;

struct Times {
  double median, fastest; // ns
  size_t runs;
};

Times measure(Model& model, double seconds, bool cold) {
  static std::vector<unsigned char> memory(cold ? 64 << 20 : 0);
  if (cold) memory.resize(64 << 20);
  auto timed = [&](size_t repeat) {
    for (size_t i = 0; cold && i < memory.size(); i += 64) ++memory[i];
    auto start = Clock::now();
    for (size_t i = 0; i < repeat; ++i) model.run();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  model.run();
  size_t repeat = 1; // a reading of the clock covers 20 us or more
  while (!cold && timed(repeat) < 20e3) repeat *= 2;
  std::vector<double> times;
  while (times.size() < 3 || Clock::now() < end) times.push_back(timed(repeat) / double(repeat));
  std::sort(times.begin(), times.end());
  size_t half = times.size() / 2;
  double median = times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2;
  return {median, times[0], times.size() * repeat};
}

long peak_rss_kib() {
  long kib = 0;
  if (FILE* status = std::fopen("/proc/self/status", "r")) {
    for (char line[256]; std::fgets(line, sizeof line, status);)
      if (std::sscanf(line, "VmHWM: %ld", &kib) == 1) break;
    std::fclose(status);
  }
  return kib;
}

// ---- For people.

struct Request {
  std::string folder = kFolder;
  int threads = kThreads;
  double seconds = 1, tolerance = 0; // 0: of the type
};

[[noreturn]] void refuse_usage(const std::string& reason) {
  std::fprintf(stderr, "%s: error: %s; --help says what it takes\n", program_name, reason.c_str());
  std::exit(2);
}

double number_above_zero(const std::string& option, const char* word) {
  char* end = nullptr;
  double value = word ? std::strtod(word, &end) : 0;
  if (!word || *word == 0 || *end != 0 || !(value > 0 && std::isfinite(value)))
    refuse_usage(option +
                 (word ? " is '" + std::string(word) + "', wanted a number above 0" : " wants a value"));
  return value;
}

Request read_request(int argc, char** argv) {
  Request request;
  bool has_folder = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--threads")
      request.threads = int(std::clamp(number_above_zero(word, argv[++i]), 1.0, 1024.0));
    else if (word == "--seconds")
      request.seconds = number_above_zero(word, argv[++i]);
    else if (word == "--tolerance")
      request.tolerance = number_above_zero(word, argv[++i]);
    else if (word[0] == '-')
      refuse_usage("there is no option '" + word + "'");
    else if (has_folder)
      refuse_usage("'" + word + "' is one folder too many");
    else
      request.folder = word, has_folder = true;
  }
  return request;
}

double tolerance_of(const StoredTensor& output) {
  return output.type == 10 ? 1e-2 : output.type == 16 ? 5e-2 : 1e-5; // f16, bf16
}

int check_and_time(const Request& request) {
  std::vector<DataSet> sets = read_sets(request.folder);
  Model model;
  if (request.threads > 1) model.lend(size_t(request.threads));
  bool all_right = true;
  std::printf("%-18s %-11s %12s %12s %12s\n", "", "error", "hot ms", "fastest", "cold ms");
  for (size_t k = 0; k < sets.size(); ++k) {
    std::string name = "test_data_set_" + std::to_string(k);
    if (!kFits[k]) {
      std::printf("%-18s the object is not for its shapes or fixed inputs\n", name.c_str());
      continue;
    }
    model.select(k, sets[k].inputs);
    model.run();
    bool right = true;
    for (size_t i = 0; i < sets[k].outputs.size(); ++i) {
      double most = request.tolerance > 0 ? request.tolerance : tolerance_of(sets[k].outputs[i]);
      right = right && error_of_output(model, sets[k], k, i) <= most;
    }
    double error = error_of(model, sets[k], k);
    Times hot = measure(model, request.seconds, /*cold=*/false), cold = measure(model, request.seconds, true);
    char shown[32];
    std::snprintf(shown, sizeof shown, error < 1e300 ? "%.2e" : "differs", error);
    std::printf("%-18s %-11s %12.4f %12.4f %12.4f%s\n", name.c_str(), shown, hot.median / 1e6,
                hot.fastest / 1e6, cold.median / 1e6, right ? "" : "  WRONG");
    all_right = all_right && right;
  }
  return all_right ? 0 : 1;
}

// ---- For programs.

std::string escaped(const std::string& text) {
  std::string json;
  for (char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c >= 0 && c < ' ' ? '?' : c;
  }
  return json;
}

int answer_lines(const std::string& folder, int threads) {
  answers_lines = true;
  std::vector<DataSet> sets = read_sets(folder);
  auto start = Clock::now();
  Model model;
  if (threads > 1) model.lend(size_t(threads));
  model.select(0, sets[0].inputs);
  model.run();
  double load = std::chrono::duration<double>(Clock::now() - start).count(),
         error = error_of(model, sets[0], 0);
  for (size_t k = 1; k < sets.size(); ++k) {
    if (!kFits[k]) continue;
    model.select(k, sets[k].inputs);
    model.run();
    error = std::max(error, error_of(model, sets[k], k));
  }
  std::printf("{\"ready\": true, \"load_s\": %.6f, \"max_error\": %.6g}\n", load, error);
  std::fflush(stdout);
  for (char line[256]; std::fgets(line, sizeof line, stdin);) {
    char mode[16];
    double seconds = 0;
    size_t set = 0;
    if (std::sscanf(line, "run %lf %15s %zu", &seconds, mode, &set) < 2) {
      std::printf("{\"peak_rss_kib\": %ld}\n", peak_rss_kib());
      break;
    }
    if (set < sets.size() && kFits[set]) {
      model.select(set, sets[set].inputs);
      Times times = measure(model, seconds, std::strcmp(mode, "cold") == 0);
      std::printf("{\"median_ns\": %.2f, \"min_ns\": %.2f, \"runs\": %zu}\n", times.median, times.fastest,
                  times.runs);
    } else {
      std::printf("{\"reason\": \"the object is not for test_data_set_%zu\"}\n", set);
    }
    std::fflush(stdout);
  }
  return 0;
}

} // namespace

void refuse(const std::string& reason) {
  if (answers_lines)
    std::printf("{\"ready\": false, \"reason\": \"%s\"}\n", escaped(reason).c_str());
  else
    std::fprintf(stderr, "%s: error: %s\n", program_name, reason.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

int main(int argc, char** argv) {
  if (argc > 0) program_name = argv[0];
  for (int i = 1; i < argc; ++i)
    if (std::string word = argv[i]; word == "--help" || word == "-h")
      return std::printf(kUsage, program_name, program_name, kFolder, kThreads), 0;
  if (argc == 3 && argv[1][0] != '-' && argv[2][0] != '-') {
    if (std::atoi(argv[2]) < 1) refuse_usage("'" + std::string(argv[2]) + "' is no number of threads");
    return answer_lines(argv[1], std::atoi(argv[2]));
  }
  return check_and_time(read_request(argc, argv));
}
