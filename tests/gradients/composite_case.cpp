// See composite_case.h.
#include "tests/gradients/composite_case.h"

#include "compiler/graph/function_type.h"

#include <cmath>

namespace firn::test {
namespace {

std::vector<LiteralRef> results_of(const Function& function, const std::vector<LiteralRef>& inputs) {
  auto results = evaluate_function(function, {inputs.begin(), inputs.end()});
  if (!results) FAIL(results.error().message);
  std::vector<LiteralRef> literals;
  for (const RuntimeValue& value : *results) literals.push_back(value.tensor);
  return literals;
}

} // namespace

std::string with_gradient(const std::string& text) {
  auto module = parse_module("m", text);
  std::string wrt;
  FunctionType type = *function_type(*(*module)->find("f"));
  for (size_t i = 0; i < type.parameters.size(); ++i)
    if (is_differentiable(type.parameters[i])) wrt += (wrt.empty() ? "" : ", ") + std::to_string(i);
  return text.substr(0, text.rfind('}')) + " func @g = gradient @f wrt " + wrt + " seedable }";
}

std::string by_body(std::string text) {
  size_t at = text.find("name = ") + 7;
  return text.replace(at, text.find_first_of(",}", at) - at, "other");
}

void check_rule(const std::string& text, int draws) {
  INFO(text);
  check_object(replaced(with_gradient(text), "f64", "f32"), "g", {});
  auto derived = differentiated(with_gradient(text)), expected = differentiated(with_gradient(by_body(text)));
  std::mt19937_64 random(1);
  for (int draw = 0; draw < draws; ++draw) {
    auto inputs = draw_inputs(*derived, *derived->find("g"), random);
    auto by_rule = results_of(*derived->find("g"), inputs), wanted = results_of(*expected->find("g"), inputs);
    REQUIRE(by_rule.size() == wanted.size());
    for (size_t i = 0; i < by_rule.size(); ++i)
      for (int64_t k = 0; k < wanted[i]->num_elements(); ++k)
        CHECK(std::fabs(by_rule[i]->get_double(k) - wanted[i]->get_double(k)) < 1e-12);
  }
}

void check_composite(const std::string& text, int draws) {
  INFO(text);
  check_rule(text, draws);
  check_by_differences(text, "f", draws);
}

} // namespace firn::test
