// Every gradient of the .hlo files here, of both orders, as an object in f32.
#include "tests/gradients/object_case.h"

#include <fstream>
#include <span>
#include <sstream>

namespace firn::test {
namespace {

std::string text_in_f32(const std::string& name) {
  std::ifstream file(std::string(FIRN_GRADIENTS_DIR) + "/" + name, std::ios::binary);
  REQUIRE(file);
  std::stringstream content;
  content << file.rdbuf();
  return with_floats(content.str(), "f64", "f32");
}

// Gradients of the first order are compiled for several CPUs and goals.
void check_file(const std::string& file) {
  static const ObjectSetting kSettings[] = {
      {"x86-64-v3"}, {"native"}, {"x86-64-v3", OptLevel::Os, Math::Strict}};
  std::string text = text_in_f32(file);
  auto functions = parse_module(file, text);
  if (!functions) FAIL(functions.error().message);
  for (const auto& function : (*functions)->functions()) {
    if (function->name().starts_with("helper")) continue;
    auto module = parse_module(file, text);
    std::vector<Declared> all = declare_both_orders(**module, function->name());
    std::string declared = print_module(**module);
    for (const Declared& each : all) {
      bool is_first_order = each.primal == function->name();
      for (const ObjectSetting& setting : std::span(kSettings, is_first_order ? std::size(kSettings) : 1))
        check_object(declared, each.gradient, setting);
    }
  }
}

TEST_CASE("objects of contractions' gradients", "[objects]") {
  check_file("contractions.hlo");
}

TEST_CASE("objects of gradients through calls, branches and loops", "[objects]") {
  check_file("control.hlo");
}

TEST_CASE("objects of gathers' and scatters' gradients", "[objects]") {
  check_file("gather.hlo");
}

TEST_CASE("objects of movements' gradients", "[objects]") {
  check_file("movement.hlo");
}

TEST_CASE("objects of reductions' gradients", "[objects]") {
  check_file("reductions.hlo");
}

} // namespace
} // namespace firn::test
