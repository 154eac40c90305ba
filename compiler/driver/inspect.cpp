// Facts about models and operators.
#include "compiler/driver/inspect.h"

#include "compiler/artifact/manifest.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/import_model.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/support/diagnostic_text.h"
#include "compiler/support/mapped_file.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <sstream>
#include <string_view>

namespace firn::driver {
namespace {

using artifact::json_string;

std::string opset_text(const onnx::ModelFacts& facts) {
  std::string text;
  for (const auto& [domain, version] : facts.opsets)
    text += (text.empty() ? "" : ", ") + domain + " " + std::to_string(version);
  return text;
}

// Whether a model compiles, perhaps with values for dims that have none.
struct Verdict {
  std::string text = "it does not compile";
  bool compiles = false;
  int64_t macs = -1;               // -1: unknown
  std::vector<std::string> wanted; // names of dims that have no values
};

std::string as_json(const onnx::ModelFacts& facts, const Verdict& verdict,
                    const DiagnosticList& diagnostics) {
  std::string text = "{\n  \"ir_version\": " + std::to_string(facts.ir_version) + ",\n  \"opsets\": {";
  for (size_t i = 0; i < facts.opsets.size(); ++i)
    text +=
        (i ? ", " : "") + json_string(facts.opsets[i].first) + ": " + std::to_string(facts.opsets[i].second);
  text += "},\n  \"producer\": " + json_string(facts.producer) +
          ",\n  \"sha256\": " + json_string(facts.digest.hex());
  auto values = [&](const char* name, const std::vector<onnx::ValueFacts>& list) {
    text += std::string(",\n  \"") + name + "\": [";
    const char* between = "";
    for (const onnx::ValueFacts& value : list) {
      if (value.has_initializer) continue;
      text += between + ("{\"name\": " + json_string(value.name)) + ", \"type\": " + json_string(value.type) +
              "}";
      between = ", ";
    }
    text += "]";
  };
  values("inputs", facts.inputs);
  values("outputs", facts.outputs);
  text += ",\n  \"nodes\": " + std::to_string(facts.nodes) +
          ",\n  \"parameters\": " + std::to_string(facts.parameters) + ",\n  \"operators\": {";
  bool first = true;
  for (const auto& [name, count] : facts.operators) {
    text += (first ? "" : ", ") + json_string(name) + ": " + std::to_string(count);
    first = false;
  }
  text += "},\n  \"multiply_adds\": " + (verdict.macs >= 0 ? std::to_string(verdict.macs) : "null") +
          ",\n  \"compiles\": " + (verdict.compiles ? "true" : "false") + ",\n  \"dims_wanted\": [";
  for (size_t i = 0; i < verdict.wanted.size(); ++i) text += (i ? ", " : "") + json_string(verdict.wanted[i]);
  text += "],\n  \"verdict\": " + json_string(verdict.text) + ",\n  \"errors\": [";
  first = true;
  for (const Diagnostic& diagnostic : diagnostics.messages()) {
    text += (first ? "" : ", ") + json_string(diagnostic.message);
    first = false;
  }
  return text + "]\n}\n";
}

std::string as_text(const CompileOptions& options, const onnx::ModelFacts& facts, const Verdict& verdict) {
  std::string text = (options.model == kStandardInput ? "standard input" : options.model) + "\n";
  auto row = [&](const char* name, const std::string& value) {
    char head[32];
    std::snprintf(head, sizeof head, "  %-14s", name);
    text += head + value + "\n";
  };
  row("IR version", std::to_string(facts.ir_version));
  row("opsets", opset_text(facts));
  if (!facts.producer.empty()) row("producer", facts.producer);
  for (const auto& input : facts.inputs)
    if (!input.has_initializer) row("input", input.name + ": " + input.type);
  for (const auto& output : facts.outputs) row("output", output.name + ": " + output.type);
  row("parameters",
      std::to_string(facts.parameters) + " (" + std::to_string(facts.parameter_bytes) + " bytes)");
  if (verdict.macs >= 0) row("multiply-adds", std::to_string(verdict.macs));
  row("nodes", std::to_string(facts.nodes));
  std::vector<std::pair<int64_t, std::string>> histogram;
  for (const auto& [name, count] : facts.operators) histogram.push_back({-count, name});
  std::sort(histogram.begin(), histogram.end());
  for (const auto& [count, name] : histogram) row("", std::to_string(-count) + " x " + name);
  for (const std::string& warning : facts.warnings) row("warning", warning);
  return text + verdict.text + "\n";
}

using OpenDims = std::vector<std::pair<std::string, int>>;

// Finds values for the dims with which the model can be imported. It tries sizes that inputs often have;
// first axes, which count samples, try 1 before these. Nothing if none will do; `missing` names a file that
// is not there and without which no size can be tried.
std::optional<CompileOptions> with_dims_bound(const CompileOptions& options, const onnx::ModelFile& model,
                                              const OpenDims& open, DiagnosticList& missing) {
  for (bool one_sample : {true, false})
    for (int64_t size : {64, 224, 16, 128, 256, 512, 32, 8, 4, 2, 1}) {
      CompileOptions bound = options;
      for (const auto& [name, axis] : open) bound.import.dims[name] = one_sample && axis == 0 ? 1 : size;
      DiagnosticList reasons;
      if (onnx::import_onnx(model, bound.import, reasons)) return bound;
      if (gravest_fault(reasons) == Fault::Usage) return missing = std::move(reasons), std::nullopt;
    }
  return std::nullopt;
}

// The command that compiles the model, with the options that were given.
std::string compile_line(const CompileOptions& options, const OpenDims& open,
                         const std::map<std::string, int64_t>& dims) {
  std::string line = "firn compile " + onnx::shell_word(options.model);
  if (!options.triple.empty()) line += " --target " + onnx::shell_word(options.triple);
  if (!options.cpu.empty()) line += " -mcpu=" + onnx::shell_word(options.cpu);
  if (!options.features.empty()) line += " -mattr=" + onnx::shell_word(options.features);
  for (const std::string& flag : options.flags) line += " " + onnx::shell_word(flag);
  for (const auto& [name, axis] : open)
    line += " --dim " + onnx::shell_word(name + "=" + std::to_string(dims.at(name)));
  return line;
}

Verdict judge(const CompileOptions& options, const onnx::ModelFile& model, onnx::ModelFacts& facts,
              DiagnosticList& diagnostics) {
  Verdict verdict;
  auto open = onnx::unbound_dims(model, options.import);
  std::optional<CompileOptions> bound;
  if (open && !open->empty()) bound = with_dims_bound(options, model, *open, diagnostics);
  if (!diagnostics.empty()) return verdict;
  auto compilation = compile_in_memory(bound ? *bound : options, diagnostics);
  if (!compilation) return verdict;
  facts.warnings = compilation->facts.warnings;
  verdict.compiles = true;
  verdict.text = "it compiles for " + compilation->target.display_name();
  if (!bound) return verdict.macs = compilation->description.flops / 2, verdict;
  for (const auto& [name, axis] : *open) verdict.wanted.push_back(name);
  verdict.text += " once its dims have values: " + compile_line(options, *open, bound->import.dims);
  return verdict;
}

} // namespace

static std::string inspect_model(const CompileOptions& options, bool json, DiagnosticList& diagnostics) {
  auto model = open_model(options);
  if (!model) return diagnostics.add(model.error()), "";
  auto facts = onnx::inspect_onnx(*model, options.import);
  if (!facts) return diagnostics.add(facts.error()), "";
  Verdict verdict = judge(options, *model, *facts, diagnostics);
  return json ? as_json(*facts, verdict, diagnostics) : as_text(options, *facts, verdict);
}

namespace {

// How many of ONNX's conformance cases that hold the operator pass.
int cases_passed(std::string_view name) {
  static const std::map<std::string_view, int> numbers = {
#define FIRN_CASES_PASSED(operator_name, number) {operator_name, number},
#include "compiler/driver/cases_passed.def"
#undef FIRN_CASES_PASSED
  };
  auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

} // namespace

std::string_view derivative_of(std::string_view operator_name) {
  static const std::map<std::string_view, std::string_view> words = {
#define FIRN_DERIVATIVE(name, word) {name, word},
#include "compiler/driver/derivatives.def"
#undef FIRN_DERIVATIVE
  };
  auto found = words.find(operator_name);
  return found == words.end() ? "derivative" : found->second;
}

namespace {

// The classes of dtypes that a row takes, each once: "T=float T int" is "float, int".
std::string taken_types(const char* words) {
  std::istringstream stream(words);
  std::string text;
  for (std::string word; stream >> word;) {
    bool is_variable = std::isupper(static_cast<unsigned char>(word[0])) != 0;
    size_t equals = word.find('=');
    if (is_variable && equals == word.npos) continue; // listed already
    word = word.substr(is_variable ? equals + 1 : 0);
    word = word.substr(0, word.find('~'));
    if ((", " + text + ",").find(", " + word + ",") == std::string::npos)
      text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "any" : text;
}

} // namespace

std::string list_operators(const std::string& filter, bool json) {
  std::string text = json ? "[\n" : "";
  bool first = true;
  for (const onnx::OperatorRow& row : onnx::operator_table()) {
    std::string name = *row.domain ? std::string(row.domain) + "." + row.name : row.name;
    if (name.find(filter) == name.npos) continue;
    std::string versions =
        std::to_string(row.since) + (row.until >= onnx::kLatest ? "+" : "-" + std::to_string(row.until));
    if (json) {
      text += (first ? "  {\"name\": " : ",\n  {\"name\": ") + json_string(name) +
              ", \"opsets\": " + json_string(versions) +
              ", \"types\": " + json_string(taken_types(row.types)) +
              ", \"derivative\": " + json_string(std::string(derivative_of(name))) +
              ", \"cases_passed\": " + std::to_string(cases_passed(name)) +
              ", \"documentation\": " + json_string(row.documentation) + "}";
    } else {
      auto padded = [](std::string word, size_t width) {
        return word + std::string(word.size() < width ? width - word.size() : 0, ' ') + " ";
      };
      std::string cases = std::to_string(cases_passed(name)) + " cases";
      std::string line = padded(name, 30) + padded(versions, 7) + padded(taken_types(row.types), 16) +
                         padded(std::string(derivative_of(name)), 10) + padded(cases, 10);
      text += line + row.documentation + "\n";
    }
    first = false;
  }
  if (first) return "";
  return json ? text + "\n]\n" : text;
}

std::string inspect(const CompileOptions& options, bool json, DiagnosticList& diagnostics) {
  return guarded(options.model, diagnostics, std::string(),
                 [&] { return inspect_model(options, json, diagnostics); });
}

} // namespace firn::driver
