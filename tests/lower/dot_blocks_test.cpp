// Dots whose reductions are cut into parts and whose rows pass in blocks, on sizes that leave rests
// everywhere.
#include "compiler/graph/builder.h"
#include "compiler/graph/composites.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

std::string matrix(int rows, int columns) {
  std::string text = "[";
  unsigned state = 1;
  for (int i = 0; i < rows * columns; ++i) {
    state = state * 1664525u + 1013904223u;
    text += (i ? ", " : "") + std::to_string(static_cast<int>(state >> 24) - 128);
  }
  return text + "] : f32[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
}

// x [rows, inner] times constant weights [inner, columns], plus a bias and x's own kind of residual.
void expect_dot(const std::string& cpu, int rows, int inner, int columns, bool in_parts) {
  std::string result = "f32[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  std::string body =
      "%w = constant " + matrix(inner, columns) +
      "\n%r = fusion %x, %w, %y {kind = contraction} region (%a: f32[" + std::to_string(rows) + "," +
      std::to_string(inner) + "], %b: f32[" + std::to_string(inner) + "," + std::to_string(columns) +
      "], %c: " + result +
      ") { %d = dot %a, %b {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : " +
      result + " %s = add %d, %c : " + result + " return %s } : " + result;
  std::string parameters =
      "%x: f32[" + std::to_string(rows) + "," + std::to_string(inner) + "], %y: " + result;
  expect_lowered(parameters, body, result, {.tolerance = 4e-6, .cpus = {cpu}});
  auto program = lower_text("module @test {\n  func @main(" + parameters + ") -> (" + result + ") {\n" +
                                body + "\n    return %r\n  }\n}\n",
                            cpu);
  bool several = program.steps.size() > 1;
  CHECK(several == in_parts);
}

} // namespace

TEST_CASE("long reductions run in parts", "[lower][dot]") {
  expect_dot("x86-64", 37, 3400, 19, true); // second cache level of 256 KiB
  expect_dot("x86-64-v3", 67, 3111, 21, true);
  expect_dot("x86-64-v3", 67, 300, 37, false);
}

TEST_CASE("many rows pass in blocks", "[lower][dot]") {
  expect_dot("x86-64", 349, 111, 19, false); // a little more than half of the second cache level
  expect_dot("x86-64", 700, 111, 19, false);
  expect_dot("x86-64-v3", 1501, 131, 37, false);
}

TEST_CASE("blocks of rows leave most of the second cache level to the rest", "[lower][dot]") {
  auto iterations = [](int rows) {
    std::string x = "f32[" + std::to_string(rows) + ",128]", y = "f32[" + std::to_string(rows) + ",16]";
    auto program =
        lower_text("module @test {\n  func @main(%x: " + x + ") -> (" + y + ") {\n%w = constant " +
                       matrix(128, 16) + "\n%r = fusion %x, %w {kind = contraction} region (%a: " + x +
                       ", %b: f32[128,16]) { %d = dot %a, %b {lhs_batch = [], rhs_batch = [], "
                       "lhs_contract = [1], rhs_contract = [0]} : " +
                       y + " return %d } : " + y + "\n    return %r\n  }\n}\n",
                   "x86-64");
    std::string text = firn::kernel::print_program(program);
    return std::stoi(text.substr(text.find(" count ") + 7));
  };
  int one = iterations(180); // 256 KiB: 192 rows fit three eighths of it
  CHECK(iterations(204) == 2 * one);
  CHECK(iterations(360) == 2 * one);
  CHECK(iterations(540) == 3 * one);
}

TEST_CASE("single rows ask ahead for weights that no cache holds, or read them as streams", "[lower][dot]") {
  auto asks_ahead = [](int64_t inner, const char* cpu, firn::DType weights = firn::DType::F32) {
    firn::Module module("test");
    firn::Region& body = module.add_function("main").body();
    firn::GraphBuilder b(body);
    firn::Value x = body.add_parameter(firn::Type::tensor(firn::DType::F32, {1, inner}), "x")->result();
    firn::Value w = b.constant(std::make_shared<firn::Literal>(weights, std::vector<int64_t>{inner, 1024}));
    using Ints = std::vector<int64_t>;
    body.set_results({b.op(firn::Opcode::Dot, {x, w},
                           {{"lhs_batch", Ints{}},
                            {"rhs_batch", Ints{}},
                            {"lhs_contract", Ints{1}},
                            {"rhs_contract", Ints{0}},
                            {"result", firn::DType::F32}})});
    std::string text = firn::kernel::print_program(lower_program(module, cpu));
    return text.find("prefetch") != std::string::npos;
  };
  CHECK_FALSE(asks_ahead(64, "znver3"));
  CHECK(asks_ahead(16384, "znver3"));
  CHECK_FALSE(asks_ahead(4096, "x86-64-v3"));
  // Factors that are widened are left to hardware that is known to fetch one stream as fast as several.
  CHECK_FALSE(asks_ahead(32768, "znver3", firn::DType::BF16));
  CHECK(asks_ahead(32768, "neoverse-n1", firn::DType::BF16));
}

TEST_CASE("norms take rows behind the blocks of a dot", "[lower][dot]") {
  using namespace firn;
  using Ints = std::vector<int64_t>;
  // How many kernels make norm(x w), and x w as well if `sums_too`; a scale may be known or a parameter.
  auto kernels = [](int64_t rows, bool rms, bool sums_too, bool known_scale) {
    Module module("test");
    Region& body = module.add_function("main").body();
    GraphBuilder b(body);
    auto f32 = [](Ints dims) {
      return firn::Type::tensor(DType::F32, std::vector<Dim>(dims.begin(), dims.end()));
    };
    auto constant = [&](Ints dims, unsigned state) {
      auto literal = std::make_shared<Literal>(DType::F32, dims);
      for (int64_t i = 0; i < literal->num_elements(); ++i) {
        state = state * 1664525u + 1013904223u;
        literal->set_double(i, static_cast<double>(state >> 16) / 32768 - 1);
      }
      return b.constant(literal);
    };
    Value x = body.add_parameter(f32({2, rows / 2, 111}), "x")->result();
    Value scale = known_scale ? constant({37}, 1) : body.add_parameter(f32({37}), "s")->result();
    Value accumulators = b.op(
        Opcode::Dot, {x, constant({111, 37}, 2)},
        {{"lhs_batch", Ints{}}, {"rhs_batch", Ints{}}, {"lhs_contract", Ints{2}}, {"rhs_contract", Ints{0}}});
    Value norm =
        rms ? make_rms_norm(b, accumulators, scale, 2, 1e-5, DType::F32)
            : make_layer_norm(b, accumulators, scale, constant({37}, 3), 2, 1e-5, DType::F32)->result();
    body.set_results(sums_too ? std::vector<Value>{norm, accumulators} : std::vector<Value>{norm});
    expect_lowered_module(module, {.tolerance = 4e-6, .cpus = {"x86-64", "native"}});
    return lower_program(module, "x86-64").steps.size();
  };
  CHECK(kernels(702, false, false, true) == 1); // blocks of rows in 256 KiB
  CHECK(kernels(702, false, true, true) == 1);
  CHECK(kernels(702, true, false, true) == 1);
  CHECK(kernels(702, true, true, false) == 2); // a scale that may not be known yet
  CHECK(kernels(64, false, false, true) == 2); // all rows stay in cache
}
