// Facts about models and operators.
#include "compiler/driver/inspect.h"

#include "compiler/artifact/manifest.h"
#include "compiler/frontend/onnx/operator_table.h"

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

std::string as_json(const onnx::ModelFacts& facts, int64_t macs, const std::string& verdict,
                    const DiagnosticList& diagnostics) {
  std::string text = "{\n  \"ir_version\": " + std::to_string(facts.ir_version) + ",\n  \"opsets\": {";
  for (size_t i = 0; i < facts.opsets.size(); ++i)
    text +=
        (i ? ", " : "") + json_string(facts.opsets[i].first) + ": " + std::to_string(facts.opsets[i].second);
  text +=
      "},\n  \"producer\": " + json_string(facts.producer) + ",\n  \"sha256\": " + json_string(facts.sha256);
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
  text += "},\n  \"multiply_adds\": " + (macs >= 0 ? std::to_string(macs) : "null") +
          ",\n  \"compiles\": " + (diagnostics.empty() ? "true" : "false") +
          ",\n  \"verdict\": " + json_string(verdict) + ",\n  \"errors\": [";
  first = true;
  for (const Diagnostic& diagnostic : diagnostics.messages()) {
    text += (first ? "" : ", ") + json_string(diagnostic.message);
    first = false;
  }
  return text + "]\n}\n";
}

std::string as_text(const CompileOptions& options, const onnx::ModelFacts& facts, int64_t macs,
                    const std::string& verdict) {
  std::string text = options.model + "\n";
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
  if (macs >= 0) row("multiply-adds", std::to_string(macs));
  row("nodes", std::to_string(facts.nodes));
  std::vector<std::pair<int64_t, std::string>> histogram;
  for (const auto& [name, count] : facts.operators) histogram.push_back({-count, name});
  std::sort(histogram.begin(), histogram.end());
  for (const auto& [count, name] : histogram) row("", std::to_string(-count) + " x " + name);
  for (const std::string& warning : facts.warnings) row("warning", warning);
  return text + verdict + "\n";
}

} // namespace

std::string inspect(const CompileOptions& options, bool json, DiagnosticList& diagnostics) {
  auto facts = onnx::inspect_onnx(options.model, options.import);
  if (!facts) return diagnostics.add(facts.error()), "";
  auto compilation = compile_in_memory(options, diagnostics);
  int64_t macs = compilation ? compilation->description.flops / 2 : -1;
  std::string verdict =
      compilation ? "it compiles for " + compilation->target.display_name() : "it does not compile";
  return json ? as_json(*facts, macs, verdict, diagnostics) : as_text(options, *facts, macs, verdict);
}

namespace {

// Of ONNX's conformance cases that hold the operator.
int cases_passed(std::string_view name) {
  static const std::map<std::string_view, int> numbers = {
#define FIRN_CASES_PASSED(operator_name, number) {operator_name, number},
#include "compiler/driver/cases_passed.def"
#undef FIRN_CASES_PASSED
  };
  auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

// The classes of dtypes that a row takes, each once: "T=float T int" is "float, int".
std::string taken_types(const char* words) {
  std::istringstream stream(words);
  std::string text;
  for (std::string word; stream >> word;) {
    bool is_variable = std::isupper(static_cast<unsigned char>(word[0])) != 0;
    size_t equals = word.find('=');
    if (is_variable && equals == word.npos) continue; // said before
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
              ", \"cases_passed\": " + std::to_string(cases_passed(name)) +
              ", \"documentation\": " + json_string(row.documentation) + "}";
    } else {
      auto padded = [](std::string word, size_t width) {
        return word + std::string(word.size() < width ? width - word.size() : 0, ' ') + " ";
      };
      std::string cases = std::to_string(cases_passed(name)) + " cases";
      std::string line =
          padded(name, 30) + padded(versions, 7) + padded(taken_types(row.types), 16) + padded(cases, 10);
      text += line + row.documentation + "\n";
    }
    first = false;
  }
  if (first) return "";
  return json ? text + "\n]\n" : text;
}

} // namespace firn::driver
