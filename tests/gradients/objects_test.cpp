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
  return replaced(content.str(), "f64", "f32");
}

const ObjectSetting kSettings[] = {{"x86-64-v3"}, {"native"}, {"x86-64-v3", OptLevel::Os, Math::Strict}};

// Gradients of the first order are compiled for several CPUs and goals.
void check_file(const std::string& file) {
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

TEST_CASE("objects of the gradient of pooled convolutions, in blocks of channels", "[objects]") {
  std::string pooled = "region(%a: f32[], %b: f32[]) { %m = maximum %a, %b : f32[] return %m } : f32[2,";
  std::string text = R"(module @m {
    symbol n in [0, 4]
    func @f(%x: f32[2,3,12,10], %w: f32[16,3,3,3], %v: f32[24,16,3,3]) -> (f32[2,24,3,3]) {
      %low = constant [-inf] : f32[]
      %c = convolution %x, %w {groups = 1, window = 3x3 pad 1_1x1_1} : f32[2,16,12,10]
      %p = reduce_window %c, %low {window = 1x1x2x2 stride 1x1x2x2} )" +
                     pooled + R"(16,6,5]
      %d = convolution %p, %v {groups = 1, window = 3x3 pad 1_1x1_1} : f32[2,24,6,5]
      %r = reduce_window %d, %low {window = 1x1x3x3 pad 0_0x0_0x1_1x1_1 stride 1x1x2x2} )" +
                     pooled + R"(24,3,3]
      return %r
    }
    func @g = gradient @f wrt x, w, v seedable
  })";
  for (const char* images : {"f32[2,", "f32[n,"})
    for (const ObjectSetting& setting : kSettings)
      check_object(replaced(text, "f32[2,", images), "g", setting);
}

} // namespace
} // namespace firn::test
