// See extents_text.h.
#include "tests/lower/extents_text.h"

namespace firn::test {

std::string module_of(const std::vector<std::string>& symbols, const std::string& parameters,
                      const std::string& body, const std::string& type) {
  std::string text = "module @test {\n";
  for (const std::string& symbol : symbols) text += "  symbol " + symbol + "\n";
  return text + "  func @main(" + parameters + ") -> (" + type + ") {\n" + body + "\n    return %r\n  }\n}\n";
}

std::vector<std::map<std::string, int64_t>> values_of(const std::string& name,
                                                      const std::vector<int64_t>& values) {
  std::vector<std::map<std::string, int64_t>> all;
  for (int64_t value : values) all.push_back({{name, value}});
  return all;
}

void expect_everywhere(const std::string& text, LoweredOptions options) {
  options.tolerance = 1e-5;
  expect_lowered_module(text, options);
  options.placement = Placement::AtStart;
  options.threads = 3;
  expect_lowered_module(text, options);
}

} // namespace firn::test
