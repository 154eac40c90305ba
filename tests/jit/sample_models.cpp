// See sample_models.h.
#include "tests/jit/sample_models.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

namespace firn::test {

std::string model_path(const std::string& name) {
  return FIRN_SOURCE_DIR "/models/" + name + "/model.onnx";
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string small_graph(int seed) {
  std::string numbers;
  for (int i = 0; i < 64 * 8; ++i)
    numbers += (i ? ", " : "") + std::to_string((i * 37 + seed * 101) % 17 - 8) + ".0";
  return "module @small {\n  func @main(%x: f32[1,64]) -> (f32[1,8]) {\n    %w = constant [" + numbers +
         "] : f32[64,8]\n    %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
         "rhs_contract = "
         "[0]} : f32[1,8]\n    %t = tanh %y : f32[1,8]\n    return %t\n  }\n}\n";
}

jit::Model compiled(jit::Compiler& compiler, const std::string& path, const jit::ModelOptions& options) {
  jit::Model model = compiler.compile(path, options);
  if (!model) FAIL(model.error().message());
  return model;
}

} // namespace firn::test
