// Every rule of adjoints.def, first and second order, against differences in f64.
#include "compiler/graph/verify.h"
#include "compiler/passes/gradient/adjoints.h"
#include "tests/gradients/gradient_case.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace firn::test {
namespace {

std::map<std::string, std::string> read_cases() {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(FIRN_GRADIENTS_DIR)) {
    if (entry.path().extension() != ".hlo") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    texts[entry.path().filename().string()] = content.str();
  }
  REQUIRE(texts.size() >= 5);
  return texts;
}

void collect(const Region& region, std::set<Opcode>& opcodes) {
  for (const auto& instruction : region.instructions()) {
    opcodes.insert(instruction->opcode());
    for (int i = 0; i < instruction->num_regions(); ++i) collect(instruction->region(i), opcodes);
  }
}

TEST_CASE("functions in text form have the gradients that differences give") {
  for (const auto& [name, text] : read_cases()) {
    auto module = parse_module(name, text);
    if (!module) FAIL(module.error().message);
    for (const auto& function : (*module)->functions()) {
      if (function->name().starts_with("helper")) continue;
      INFO(name << ": @" << function->name());
      check_by_differences(text, function->name(), 50);
    }
  }
}

TEST_CASE("these functions hold every op whose derivative is no expression") {
  std::set<Opcode> opcodes;
  for (const auto& [name, text] : read_cases()) {
    auto module = parse_module(name, text);
    for (const auto& function : (*module)->functions()) collect(function->body(), opcodes);
  }
  for (int i = 0; i <= static_cast<int>(Opcode::TextSplit); ++i) {
    auto opcode = static_cast<Opcode>(i);
    gradient::AdjointForm form = gradient::adjoint_of(opcode).form;
    if (form != gradient::AdjointForm::Rule) continue;
    INFO(opcode_name(opcode));
    CHECK(opcodes.count(opcode) == 1);
  }
}

// Elementwise rows need no text: the op of each stands between operands that its name asks for.
TEST_CASE("expressions of elementwise ops are the derivatives that they are written beside") {
  static const std::map<Opcode, std::vector<std::string>> kKinds = {
      {Opcode::Acosh, {"large"}},
      {Opcode::Log, {"positive"}},
      {Opcode::Sqrt, {"positive"}},
      {Opcode::Rsqrt, {"positive"}},
      {Opcode::LogPlusOne, {"positive"}},
      {Opcode::Divide, {"x", "positive"}},
      {Opcode::Power, {"positive", "x"}},
      {Opcode::Remainder, {"ratio", "unit"}},
      {Opcode::Atan2, {"x", "positive"}},
      {Opcode::Clamp, {"small", "signed", "large"}},
      {Opcode::Abs, {"signed"}},
      {Opcode::Maximum, {"signed", "small"}},
      {Opcode::Minimum, {"small", "signed"}}};
  for (int i = 0; i <= static_cast<int>(Opcode::TextSplit); ++i) {
    auto opcode = static_cast<Opcode>(i);
    if (gradient::adjoint_of(opcode).form != gradient::AdjointForm::Elementwise) continue;
    std::string parameters, operands;
    auto kinds = kKinds.find(opcode);
    for (int operand = 0; operand < op_info(opcode).arity; ++operand) {
      std::string kind = kinds == kKinds.end() ? "x" : kinds->second[static_cast<size_t>(operand)];
      std::string name = "%" + kind + "_" + std::to_string(operand);
      parameters += (operand ? ", " : "") + name + ": f64[n,3]";
      operands += (operand ? ", " : "") + name;
    }
    std::string text = "module @m { symbol n in [0, 7] func @f(" + parameters +
                       ") -> (f64[n,3]) { %r = " + std::string(opcode_name(opcode)) + " " + operands +
                       " : f64[n,3] return %r } }";
    INFO(text);
    check_by_differences(text, "f", 50);
  }
}

} // namespace
} // namespace firn::test
