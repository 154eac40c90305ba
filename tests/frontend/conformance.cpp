// Runs ONNX's conformance cases through the importer and the evaluator and compares with the stored outputs.
//   frontend_conformance CASES REFUSED [PART]
// CASES holds folders of cases (node, simple, ...). REFUSED lists, one per line, cases that may fail and why;
// a listed case that passes is an error, as is any other failure. With PART only cases whose name contains it
// run, and every result is printed. Each case runs in a process of its own, so that a crash is one failure
// among others.
#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/verify.h"
#include "compiler/passes/pass.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;
using namespace firn;

// Largest allowed difference relative to the largest expected element. Sums are rounded in other orders than
// where the expectations came from, some of which were computed in f64 and some step by step in half
// precision.
double tolerance(DType dtype) {
  switch (dtype) {
  case DType::F16: return 4e-3;
  case DType::BF16: return 2e-2;
  case DType::F64:
  case DType::F32: return 2e-4; // one expectation is rounded to four digits
  default: return 0;
  }
}

// "" if equal under the tolerance, otherwise what differs.
std::string compare(const Literal& found, const Literal& expected) {
  if (found.dtype() != expected.dtype() || found.dims() != expected.dims())
    return "is " + found.type().to_string() + ", expected " + expected.type().to_string();
  if (found.dtype() == DType::String)
    return found.string_values() == expected.string_values() ? "" : "has other strings";
  bool exact = !is_float(found.dtype());
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < found.num_elements(); ++i) {
    if (exact) {
      if (found.get_int(i) != expected.get_int(i))
        return "element " + std::to_string(i) + " is " + std::to_string(found.get_int(i)) + ", expected " +
               std::to_string(expected.get_int(i));
      continue;
    }
    double a = found.get_double(i), b = expected.get_double(i);
    if (std::isfinite(a) && std::isfinite(b)) {
      largest = std::max(largest, std::fabs(b));
      difference = std::max(difference, std::fabs(a - b));
    } else if (!(std::isnan(a) && std::isnan(b)) && a != b) {
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
    }
  }
  double allowed = tolerance(found.dtype()) * (largest == 0 ? 1e-3 : largest);
  return difference <= allowed
             ? ""
             : "differs by " + std::to_string(difference) + " of " + std::to_string(largest);
}

// Inputs that can decide shapes: small tensors of integers or bools, and scalars.
bool decides_shapes(const Literal& input) {
  if (input.dtype() == DType::String) return false;
  bool list = input.dims().size() == 1 && input.num_elements() <= 8; // scales and regions of Resize
  return is_float(input.dtype()) ? input.num_elements() == 1 || list : input.num_elements() <= 64;
}

// Evaluates the module, whose gradients get their bodies, and compares; "" if all is well.
std::string check(Module& module, const std::map<std::string, LiteralRef>& inputs,
                  const std::vector<onnx::StoredOutput>& stored) {
  if (Result verified = verify(module); !verified) return "verify: " + verified.error().message;
  PipelineRun passes;
  if (Result derived = run_passes(module, "differentiate", passes); !derived)
    return "differentiate: " + derived.error().message;
  std::vector<LiteralRef> arguments;
  for (const std::string& name : module.main().parameter_names) {
    auto input = inputs.find(name);
    if (input == inputs.end()) return "no data for input '" + name + "'";
    arguments.push_back(input->second);
  }
  auto results = evaluate(module, arguments);
  if (!results) return "evaluate: " + results.error().message;
  std::vector<LiteralRef> outputs = onnx::as_results(stored, module.main().result_names, *results);
  if (results->size() < outputs.size()) return std::to_string(results->size()) + " results";
  for (size_t i = 0; i < outputs.size(); ++i)
    if (std::string what = compare(*(*results)[i], *outputs[i]); !what.empty())
      return "output " + std::to_string(i) + " " + what;
  return "";
}

// "" if the data set passes. Where the importer wants constants, inputs that decide shapes are fixed to their
// values. Models with symbolic dims run once more with their dims left open, if they import so.
std::string run_data_set(const fs::path& model, const fs::path& data) {
  auto facts = onnx::inspect_onnx(model.string());
  if (!facts) return "inspect: " + facts.error().message;
  auto inputs = onnx::read_stored_inputs(data.string(), *facts);
  if (!inputs) return "data: " + inputs.error().message;
  auto outputs = onnx::read_stored_outputs(data.string(), *facts);
  if (!outputs) return "data: " + outputs.error().message;
  onnx::ImportOptions options;
  options.lengths = inputs->lengths;
  bool symbolic = false;
  for (const auto& [name, literal] : inputs->tensors) options.shapes[name] = literal->dims();
  for (const onnx::ValueFacts& input : facts->inputs)
    if (auto given = inputs->tensors.find(input.name); given != inputs->tensors.end())
      symbolic |= onnx::is_tensor(input) && input.type != given->second->type().to_string();
  DiagnosticList diagnostics, unfixed, open;
  auto imported = onnx::import_onnx(model.string(), options, unfixed);
  if (imported && symbolic && inputs->lengths.empty())
    if (auto unbound = onnx::import_onnx(model.string(), {}, open))
      if (std::string what = check(*unbound->module, inputs->tensors, *outputs); !what.empty())
        return "with open dims: " + what;
  if (imported) return check(*imported->module, inputs->tensors, *outputs);
  for (const auto& [name, literal] : inputs->tensors)
    if (decides_shapes(*literal)) options.constants[name] = literal;
  imported = onnx::import_onnx(model.string(), options, diagnostics);
  if (!imported) return "import: " + (diagnostics.empty() ? "no message" : diagnostics.messages()[0].message);
  return check(*imported->module, inputs->tensors, *outputs);
}

std::string run_case(const fs::path& folder) {
  for (int set = 0;; ++set) {
    fs::path data = folder / ("test_data_set_" + std::to_string(set));
    if (!fs::exists(data)) return set == 0 ? "has no data" : "";
    if (std::string what = run_data_set(folder / "model.onnx", data); !what.empty()) return what;
  }
}

// Runs the case in a child process of at most 20 seconds.
std::string run_apart(const fs::path& folder) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    dup2(ends[1], STDERR_FILENO);
    std::string what = run_case(folder);
    if (write(ends[1], what.data(), what.size()) < 0) _exit(3);
    _exit(what.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status)) + " " + text;
  return text.empty() ? "fails" : text;
}

std::map<std::string, std::string> read_refused(const char* path) {
  std::map<std::string, std::string> refused;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    size_t comma = line.find(", ");
    if (!line.empty() && line[0] != '#' && comma != std::string::npos)
      refused[line.substr(0, comma)] = line.substr(comma + 2);
  }
  return refused;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: %s CASES REFUSED [PART]\n", argv[0]), 2;
  auto refused = read_refused(argv[2]);
  std::string part = argc > 3 ? argv[3] : "";
  std::vector<std::string> cases;
  for (const auto& kind : fs::directory_iterator(argv[1])) {
    if (!kind.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(kind))
      if (fs::exists(entry.path() / "model.onnx"))
        cases.push_back(kind.path().filename().string() + "/" + entry.path().filename().string());
  }
  std::sort(cases.begin(), cases.end());
  if (cases.empty()) return std::fprintf(stderr, "no cases in %s\n", argv[1]), 2;
  int passed = 0, expected_failures = 0, wrong = 0;
  for (const std::string& name : cases) {
    if (name.find(part) == std::string::npos) continue;
    std::string what = run_apart(fs::path(argv[1]) / name);
    std::replace(what.begin(), what.end(), '\n', ' ');
    bool listed = refused.count(name) != 0;
    if (what.empty()) ++passed;
    if (!what.empty() && listed) ++expected_failures;
    if (what.empty() == listed) {
      ++wrong;
      std::printf("%s, %s\n", name.c_str(), listed ? "passes but is listed as refused" : what.c_str());
    } else if (argc > 3) {
      std::printf("%s, %s\n", name.c_str(), what.empty() ? "passes" : what.c_str());
    }
  }
  std::printf("%d pass, %d fail as listed, %d wrong\n", passed, expected_failures, wrong);
  return wrong != 0;
}
