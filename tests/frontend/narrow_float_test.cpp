// Operators of f16 and bf16 whose sums, squares and products leave the dtype's range or precision before the
// result comes back into it: what lies between is f32.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace firn;
using namespace firn::test;

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

int wire_type(DType dtype) {
  return dtype == DType::F16 ? F16 : dtype == DType::BF16 ? 16 : dtype == DType::I64 ? I64 : F32;
}

// Result 0 of one node over `inputs`, which are all inputs of the model.
Doubles result(int64_t opset, const std::string& op, const std::vector<Message>& attributes,
               const std::vector<LiteralRef>& inputs) {
  Model model;
  model.opsets = {{"", opset}};
  Names names;
  for (const LiteralRef& input : inputs) {
    names.push_back(std::string(1, static_cast<char>('a' + names.size())));
    model.graph.inputs.push_back(value(names.back(), wire_type(input->dtype()),
                                       std::vector<WireDim>(input->dims().begin(), input->dims().end())));
  }
  model.graph.outputs = {value("y", wire_type(inputs[0]->dtype()), {})};
  model.graph.nodes = {node(op, names, {"y"}, attributes)};
  Imported imported = import_model(model);
  INFO(op << ": " << imported.messages);
  REQUIRE(imported.model);
  LiteralRef y = run(imported, inputs)[0];
  CHECK(y->dtype() == inputs[0]->dtype());
  return numbers(y);
}

LiteralRef all(DType dtype, const Ints& dims, double value) {
  int64_t count = 1;
  for (int64_t extent : dims) count *= extent;
  return Literal::of(dtype, dims, Doubles(static_cast<size_t>(count), value));
}
LiteralRef f16(const Ints& dims, const Doubles& values) {
  return Literal::of(DType::F16, dims, values);
}

// The first element of an operator over 300 elements of 300, whose sum is 90000, and of their squares 2.7e7.
double over_many(int64_t opset, const std::string& op, const Ints& dims,
                 std::vector<Message> attributes = {}) {
  return result(opset, op, std::move(attributes), {all(DType::F16, dims, 300)})[0];
}

constexpr double kHalf = 1.0 / 1024; // relative, an ulp of f16

} // namespace

TEST_CASE("reductions of f16 whose sums overflow f16") {
  auto axes = attribute_ints("axes", {1});
  CHECK(over_many(13, "ReduceL2", {1, 300}, {axes}) == Approx(300 * std::sqrt(300.0)).epsilon(kHalf));
  CHECK(over_many(13, "ReduceMean", {1, 300}, {axes}) == 300);
  CHECK(over_many(13, "ReduceLogSum", {1, 300}, {axes}) == Approx(std::log(90000.0)).epsilon(kHalf));
  CHECK(over_many(13, "ReduceLogSumExp", {1, 300}, {axes}) == Approx(300 + std::log(300.0)).epsilon(kHalf));
}

TEST_CASE("a mean of more elements than f16 counts to") {
  CHECK(result(13, "ReduceMean", {attribute_ints("axes", {0})}, {all(DType::F16, {70000}, 2)})[0] == 2);
}

TEST_CASE("sums of bf16 keep what bf16 would lose") {
  // From 256 on bf16 counts in twos.
  CHECK(result(13, "ReduceMean", {attribute_ints("axes", {0})}, {all(DType::BF16, {1000}, 1)})[0] == 1);
  CHECK(result(13, "ReduceL2", {attribute_ints("axes", {0})}, {all(DType::BF16, {1024}, 1)})[0] == 32);
}

TEST_CASE("norms of f16 whose squares overflow f16") {
  CHECK(over_many(13, "LpNormalization", {1, 300}) == Approx(1 / std::sqrt(300.0)).epsilon(kHalf));
  CHECK(over_many(13, "LpNormalization", {1, 300}, {attribute("p", 1)}) == Approx(1.0 / 300).epsilon(kHalf));
  CHECK(over_many(13, "MeanVarianceNormalization", {1, 300}, {attribute_ints("axes", {1})}) == 0);
  CHECK(over_many(13, "LRN", {1, 300, 1, 1}, {attribute("size", 5)}) ==
        Approx(300 / std::pow(1 + 0.0001 * 3 / 5 * 90000, 0.75)).epsilon(kHalf));
  // Normalised by statistics that f16 would be given for.
  LiteralRef x = f16({1, 2}, {60000, 50000}), scale = all(DType::F16, {2}, 2), bias = all(DType::F16, {2}, 1);
  for (int64_t stash : {1, 10}) {
    Doubles y = result(17, "LayerNormalization", {attribute("stash_type", stash)}, {x, scale, bias});
    CHECK(y == Doubles{3, -1});
  }
  CHECK(result(23, "RMSNormalization", {}, {all(DType::F16, {1, 2}, 300), scale})[0] == 2);
}

TEST_CASE("pools of f16 whose sums overflow f16") {
  auto kernel = attribute_ints("kernel_shape", {300});
  CHECK(over_many(13, "AveragePool", {1, 1, 300}, {kernel}) == 300);
  CHECK(over_many(13, "LpPool", {1, 1, 300}, {kernel}) == Approx(300 * std::sqrt(300.0)).epsilon(kHalf));
  CHECK(over_many(13, "GlobalAveragePool", {1, 1, 300}) == 300);
  CHECK(over_many(13, "GlobalLpPool", {1, 1, 300}) == Approx(300 * std::sqrt(300.0)).epsilon(kHalf));
}

TEST_CASE("losses of f16 whose sums overflow f16") {
  LiteralRef target = i64({300}, Ints(300, 0));
  CHECK(result(13, "NegativeLogLikelihoodLoss", {}, {all(DType::F16, {300, 2}, -300), target})[0] == 300);
  CHECK(result(13, "SoftmaxCrossEntropyLoss", {},
               {all(DType::F16, {300, 2}, 1), target, all(DType::F16, {2}, 300)})[0] ==
        Approx(std::log(2.0)).epsilon(kHalf));
}

TEST_CASE("a product's sum that overflows f16 is there for the term that brings it back") {
  LiteralRef row = all(DType::F16, {1, 300}, 300), column = all(DType::F16, {300, 1}, 1);
  LiteralRef down = all(DType::F16, {1}, -60000);
  CHECK(result(13, "Gemm", {}, {row, column, down})[0] == 30000);
  CHECK(result(13, "Gemm", {attribute_real("alpha", 0.25f)}, {row, column})[0] == 22496);
  LiteralRef image = all(DType::F16, {1, 300, 1}, 300), ones = all(DType::F16, {1, 300, 1}, 1);
  CHECK(result(13, "Conv", {}, {image, ones, down})[0] == 30000);
  LiteralRef transposed = all(DType::F16, {300, 1, 1}, 1);
  CHECK(result(13, "ConvTranspose", {}, {image, transposed, down})[0] == 30000);
  auto equation = [](const char* text) { return std::vector<Message>{attribute_text("equation", text)}; };
  LiteralRef small = all(DType::F16, {1}, 0.5);
  CHECK(result(13, "Einsum", equation("ij,i->i"), {row, small})[0] == 44992);
  CHECK(result(13, "Einsum", equation("ij,jk,i->k"), {row, column, small})[0] == 44992);
  CHECK(result(13, "Sum", {}, {f16({1}, {60000}), f16({1}, {60000}), f16({1}, {-60000})})[0] == 60000);
  CHECK(result(13, "Mean", {}, {f16({1}, {60000}), f16({1}, {60000})})[0] == 60000);
}

TEST_CASE("updates of f16 are rounded when all are added") {
  LiteralRef zero = all(DType::F16, {1}, 0), updates = all(DType::F16, {4096}, 1);
  auto add = attribute_text("reduction", "add");
  CHECK(result(18, "ScatterElements", {add}, {zero, i64({4096}, Ints(4096, 0)), updates})[0] == 4096);
  CHECK(result(18, "ScatterND", {add}, {zero, i64({4096, 1}, Ints(4096, 0)), updates})[0] == 4096);
}

TEST_CASE("scores of f16 attention that overflow f16") {
  LiteralRef q = all(DType::F16, {1, 1, 1, 64}, 64), k = all(DType::F16, {1, 1, 2, 64}, 32);
  // Both keys score 64 * 64 * 32 before the scale of 1/8 is taken out of the queries.
  LiteralRef v = f16({1, 1, 2, 1}, {1, 3});
  CHECK(result(23, "Attention", {attribute_real("scale", 1)}, {q, k, v})[0] == 2);
}

TEST_CASE("activations of f16 round once") {
  // 1/3 x + 1/2 at x = 1 lies at 0.8333; rounding 1/3 to f16 first would give another number for many x.
  Doubles xs;
  for (int i = -400; i < 400; ++i) xs.push_back(i / 128.0);
  LiteralRef x = f16({800}, xs);
  Doubles y = result(22, "HardSigmoid", {attribute_real("alpha", 0.3f), attribute_real("beta", 0.4f)}, {x});
  for (size_t i = 0; i < xs.size(); ++i) {
    double wanted = std::min(1.0, std::max(0.0, 0.3f * xs[i] + 0.4f));
    CHECK(y[i] == Literal::of(DType::F16, {1}, Doubles{wanted})->get_double(0));
  }
}
