// `firn ops` is true: what it says of derivatives holds for a node of each operator, every operator of the
// table has a node in operators.txt that compiles, up to the planned program, and those that are listed as
// compiling only where their count is known have one that does not.
#include "compiler/driver/compile.h"
#include "compiler/driver/inspect.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/graph/function_type.h"
#include "compiler/graph/producers.h"
#include "compiler/graph/verify.h"
#include "compiler/passes/pass.h"
#include "tests/frontend/import_case.h"
#include "tests/frontend/model_writer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <unistd.h>

using namespace firn;
using namespace firn::test;

namespace {

const std::map<std::string, int> kTypes = {{"f32", F32}, {"u8", U8},   {"i8", 3},    {"u16", 4},
                                           {"i16", 5},   {"i32", I32}, {"i64", I64}, {"bool", Bool},
                                           {"f16", F16}, {"f64", 11},  {"u32", 12},  {"u64", 13},
                                           {"bf16", 16}, {"u4", 21},   {"i4", 22},   {"string", 8}};

std::vector<int64_t> integers(const std::string& list) {
  std::vector<int64_t> values;
  std::stringstream stream(list);
  for (std::string each; std::getline(stream, each, ',');) values.push_back(std::atoll(each.c_str()));
  return values;
}

std::vector<float> reals(const std::string& list) {
  std::vector<float> values;
  std::stringstream stream(list);
  for (std::string each; std::getline(stream, each, ',');)
    values.push_back(static_cast<float>(std::atof(each.c_str())));
  return values;
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> values;
  std::stringstream stream(list);
  for (std::string each; std::getline(stream, each, ',');) values.push_back(each);
  return values;
}

// A constant: floats in float_data, i64 in int64_data, the rest in int32_data.
Message tensor(const std::string& name, int type, const std::vector<int64_t>& dims, const std::string& list) {
  Message m = tensor_header(name, type, dims);
  for (const std::string& each : words(list)) {
    if (type == F32)
      m.real(4, static_cast<float>(std::atof(each.c_str())));
    else
      m.number(type == I64 ? 7 : 5, std::atoll(each.c_str()));
  }
  return m;
}

// name=7, name=0.5, name=[1,2], name=[0.5,2], name=[one,two], name=f32:[0.5,2] or name=text.
Message parse_attribute(const std::string& text) {
  std::string name = text.substr(0, text.find('=')), value = text.substr(text.find('=') + 1);
  if (value[0] == '[') {
    std::string list = value.substr(1, value.size() - 2);
    if (std::isalpha(static_cast<unsigned char>(list[0]))) return attribute_texts(name, words(list));
    return list.find('.') == list.npos ? attribute_ints(name, integers(list))
                                       : attribute_reals(name, reals(list));
  }
  if (size_t colon = value.find(":["); colon != value.npos) {
    std::string list = value.substr(colon + 2, value.size() - colon - 3);
    auto count = static_cast<int64_t>(words(list).size());
    return attribute_tensor(name, tensor("", kTypes.at(value.substr(0, colon)), {count}, list));
  }
  if (value.find_first_not_of("-0123456789") == value.npos) return attribute(name, std::atoll(value.c_str()));
  if (value.find_first_not_of("-+.e0123456789") == value.npos)
    return attribute_real(name, static_cast<float>(std::atof(value.c_str())));
  return attribute_text(name, value);
}

void add_input(Graph& graph, const std::string& name, const std::string& text) {
  size_t open = text.find('['), close = text.find(']');
  if (size_t times = text.find('*'); times != text.npos) {
    Names elements;
    for (int i = 0; i < std::atoi(text.c_str() + times + 1); ++i) {
      elements.push_back(name + "_" + std::to_string(i));
      add_input(graph, elements.back(), text.substr(0, times));
    }
    graph.nodes.push_back(node("SequenceConstruct", elements, {name}));
    return;
  }
  if (size_t arrow = text.find('>'); arrow != text.npos) {
    Message held = Message().message(1, Message().number(1, kTypes.at(text.substr(arrow + 1))));
    Message map = Message().number(1, kTypes.at(text.substr(0, arrow))).message(2, held);
    graph.inputs.push_back(Message().text(1, name).message(2, Message().message(5, map)));
    return;
  }
  int type = kTypes.at(text.substr(0, open));
  std::vector<int64_t> dims = integers(text.substr(open + 1, close - open - 1));
  if (close + 1 < text.size())
    graph.initializers.push_back(tensor(name, type, dims, text.substr(close + 2)));
  else
    graph.inputs.push_back(value(name, type, std::vector<WireDim>(dims.begin(), dims.end())));
}

struct Sample {
  std::string op;
  Model model;
  bool has_map = false; // whether input i0 is one
};

Sample parse_sample(const std::string& line) {
  std::stringstream stream(line);
  Sample sample;
  int opset = 0, count = 0;
  std::string bar;
  stream >> sample.op >> opset >> count >> bar;
  size_t end = sample.op.rfind('.');
  std::string domain = end == sample.op.npos ? "" : sample.op.substr(0, end);
  std::string op = end == sample.op.npos ? sample.op : sample.op.substr(end + 1);
  sample.model.opsets = {{domain, opset}};
  std::vector<Message> attributes;
  for (std::string word; stream >> word && word != "|";) attributes.push_back(parse_attribute(word));
  Names inputs, outputs;
  for (std::string word; stream >> word;) {
    inputs.push_back(word == "-" ? "" : "i" + std::to_string(inputs.size()));
    sample.has_map |= word.find('>') != word.npos;
    if (word != "-") add_input(sample.model.graph, inputs.back(), word);
  }
  for (int i = 0; i < count; ++i) {
    outputs.push_back("o" + std::to_string(i));
    sample.model.graph.outputs.push_back(Message().text(1, outputs.back()));
  }
  sample.model.graph.nodes.push_back(node(op, inputs, outputs, attributes, domain));
  return sample;
}

// Nodes with subgraphs, and others that no line describes, over the line i0.
std::vector<Sample> samples_over_a_line() {
  auto result = [](const std::string& name) { return Message().text(1, name); };
  Graph negate, loop, scan, map;
  negate.nodes = {node("Neg", {"i0"}, {"n"})};
  negate.outputs = {result("n")};
  loop.inputs = {value("step", I64, {}), value("go", Bool, {}), value("s", F32, {3})};
  loop.nodes = {node("Add", {"s", "s"}, {"t"}), node("Identity", {"go"}, {"on"})};
  loop.outputs = {result("on"), result("t")};
  scan.inputs = {value("e", F32, {})};
  scan.nodes = {node("Neg", {"e"}, {"f"})};
  scan.outputs = {result("f")};
  map.inputs = {value("e", F32, {}), value("whole", F32, {})};
  map.nodes = {node("Add", {"e", "whole"}, {"f"})};
  map.outputs = {result("f")};
  std::vector<Sample> samples(7);
  for (Sample& sample : samples) {
    sample.model.graph.inputs = {value("i0", F32, {3})};
    sample.model.graph.outputs = {result("o0")};
  }
  samples[0].op = "If";
  samples[0].model.graph.inputs.push_back(value("c", Bool, {}));
  samples[0].model.graph.nodes = {node(
      "If", {"c"}, {"o0"},
      {attribute_graph("then_branch", negate.encode()), attribute_graph("else_branch", negate.encode())})};
  samples[1].op = "Loop";
  samples[1].model.graph.initializers = {int_scalar("times", 4), bool_scalar("true", true)};
  samples[1].model.graph.nodes = {
      node("Loop", {"times", "true", "i0"}, {"o0"}, {attribute_graph("body", loop.encode())})};
  samples[2].op = "Scan";
  samples[2].model.graph.nodes = {node(
      "Scan", {"i0"}, {"o0"}, {attribute_graph("body", scan.encode()), attribute("num_scan_inputs", 1)})};
  samples[3].op = "SequenceMap";
  samples[3].model.graph.nodes = {
      node("SplitToSequence", {"i0"}, {"s"}),
      node("SequenceMap", {"s", "i0"}, {"o0"}, {attribute_graph("body", map.encode())})};
  samples[4].op = "SequenceEmpty";
  samples[4].model.graph.nodes = {node("SequenceEmpty", {}, {"s"}),
                                  node("SequenceInsert", {"s", "i0"}, {"o0"})};
  for (size_t i = 3; i < samples.size(); ++i) samples[i].model.opsets = {{"", 18}};
  samples[6].op = "ai.onnx.preview.training.Gradient";
  samples[6].model.opsets.push_back({"ai.onnx.preview.training", 1});
  samples[6].model.graph.nodes = {node("Exp", {"i0"}, {"e"}),
                                  node("Gradient", {"i0"}, {"o0"},
                                       {attribute_texts("xs", {"i0"}), attribute_text("y", "e")},
                                       "ai.onnx.preview.training")};
  samples[5].op = "com.microsoft.GreedySearch";
  samples[5].model.opsets = {{"", 12}, {"com.microsoft", 1}};
  Graph decoder; // whose caches hold what it reads of the tokens
  decoder.inputs = {value("ids", I32, {1, "s"}), value("at", I32, {1, "s"}), value("mask", I32, {1, "t"}),
                    value("past", F32, {2, 1, 1, "p", 2})};
  decoder.nodes = {node("Gather", {"scores", "ids"}, {"logits"}), node("Gather", {"rows", "ids"}, {"read"}),
                   node("Unsqueeze", {"read"}, {"one"}, {attribute_ints("axes", {0, 2})}),
                   node("Concat", {"one", "one"}, {"two"}, {attribute("axis", 0)}),
                   node("Concat", {"past", "two"}, {"present"}, {attribute("axis", 3)})};
  decoder.outputs = {result("logits"), result("present")};
  samples[5].model.graph.inputs = {value("prompt", I32, {1, 3}), value("scores", F32, {7, 7}),
                                   value("rows", F32, {7, 2})};
  samples[5].model.graph.nodes = {node("Constant", {}, {"longest"}, {attribute_ints("value_ints", {8})}),
                                  node("Cast", {"longest"}, {"most"}, {attribute("to", I32)}),
                                  node("GreedySearch", {"prompt", "most"}, {"o0"},
                                       {attribute_graph("decoder", decoder.encode()),
                                        attribute("eos_token_id", 3), attribute("pad_token_id", 0)},
                                       "com.microsoft")};
  return samples;
}

std::vector<Sample> all_samples() {
  std::vector<Sample> samples = samples_over_a_line();
  std::ifstream file(FIRN_OPERATORS);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') samples.push_back(parse_sample(line));
  return samples;
}

} // namespace

// Whether a result of the module depends on a float parameter by a derivative other than 0.
std::string derivative_found(Module& module) {
  const Function& main = module.main();
  std::vector<int> wrt;
  for (size_t i = 0; i < main.body().parameters().size(); ++i)
    if (is_differentiable(main.body().parameters()[i]->type())) wrt.push_back(static_cast<int>(i));
  std::vector<std::string> gradients;
  for (size_t i = 0; i < main.body().results().size() && !wrt.empty(); ++i) {
    if (!is_differentiable(main.body().results()[i].type())) continue;
    gradients.push_back("gradient of result " + std::to_string(i));
    module.add_function(gradients.back()).gradient =
        GradientOf{main.name(), static_cast<int>(i), wrt, {}, /*seedable=*/true};
  }
  PipelineRun passes;
  if (Result derived = run_passes(module, "differentiate", passes); !derived) {
    CHECK(derived.error().fault == Fault::Unsupported);
    return "none";
  }
  for (const std::string& name : gradients)
    for (Value result : module.find(name)->body().results())
      if (!is_constant_expression(result)) return "derivative";
  return "zero";
}

TEST_CASE("firn ops says which operators have a derivative") {
  // An operator has the last of these words that one of its nodes has.
  const std::vector<std::string_view> words{"zero", "none", "derivative"};
  std::map<std::string, size_t> found;
  for (const Sample& sample : all_samples()) {
    onnx::ImportOptions options;
    if (sample.has_map) options.dims[onnx::map_size_name("i0")] = 3;
    DiagnosticList diagnostics;
    auto imported = onnx::import_onnx_bytes("sample.onnx", sample.model.encode(), options, diagnostics);
    INFO(sample.op);
    REQUIRE(imported);
    auto word = std::find(words.begin(), words.end(), derivative_found(*imported->module));
    found[sample.op] = std::max(found[sample.op], static_cast<size_t>(word - words.begin()));
  }
  for (const auto& [op, number] : found) {
    INFO("wanted in derivatives.def: FIRN_DERIVATIVE(\"" << op << "\", \"" << words[number] << "\")");
    CHECK(driver::derivative_of(op) == words[number]);
  }
}

TEST_CASE("every listed operator compiles") {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("operators_" + std::to_string(getpid()) + ".onnx");
  std::set<std::string> found;
  for (const Sample& sample : all_samples()) {
    std::ofstream(path, std::ios::binary) << sample.model.encode();
    driver::CompileOptions options;
    options.model = path.string();
    if (sample.has_map) options.import.dims[onnx::map_size_name("i0")] = 3;
    DiagnosticList diagnostics;
    bool compiles = driver::compile_in_memory(options, diagnostics) != nullptr;
    std::string messages;
    for (const Diagnostic& each : diagnostics.messages()) messages += each.message + "\n";
    INFO(sample.op << ": " << messages);
    CHECK(compiles);
    found.insert(sample.op);
  }
  std::filesystem::remove(path);
  for (const onnx::OperatorRow& row : onnx::operator_table()) {
    std::string name = (*row.domain ? std::string(row.domain) + "." : "") + row.name;
    INFO(name);
    CHECK(found.count(name) == 1);
  }
}

TEST_CASE("an input of any operator that is left out ends in a message or a module") {
  std::ifstream file(FIRN_OPERATORS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t bar = line.rfind(" | ");
    if (bar == line.npos) continue;
    std::stringstream stream(line.substr(bar + 3));
    Names words;
    for (std::string word; stream >> word;) words.push_back(word);
    for (size_t left_out = 0; left_out < words.size(); ++left_out) {
      std::string other = line.substr(0, bar + 2);
      for (size_t i = 0; i < words.size(); ++i) other += " " + (i == left_out ? "-" : words[i]);
      INFO(other);
      Imported imported = import_bytes(parse_sample(other).model.encode());
      if (!imported.model) {
        CHECK(imported.messages != "");
        continue;
      }
      Result verified = verify(*imported.model->module);
      CHECK(verified);
    }
  }
}
