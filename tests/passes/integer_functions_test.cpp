// Functions of quantised values on a CPU without hardware for floats: no float is left, results are those of
// the rules in plan/fixed_point_functions.h to the bit, and at most one step from what floats give.
#include "compiler/graph/composites.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/fixed_point.h"
#include "compiler/plan/fixed_point_functions.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

using namespace firn;

namespace {

using Integers = std::vector<int64_t>;
using Dims = std::vector<int64_t>;

struct Quantised {
  float scale;
  int64_t zero_point;
  DType dtype = DType::I8;
  int64_t low() const { return dtype == DType::U8 ? 0 : -128; }
};

// A function of quantised inputs whose result is quantised.
struct Scene {
  explicit Scene(const Quantised& result_of) : to(result_of), module("m") {
    Function& main = module.add_function("main");
    body = &main.body();
    builder.emplace(*body);
  }

  Value input(const Quantised& x, const Dims& dims) {
    Value integers = body->add_parameter(Type::tensor_of(x.dtype, dims))->result();
    return builder->op(Opcode::Dequantize, {integers, builder->scalar(DType::F32, x.scale), zero(x)});
  }
  Value constant(const Dims& dims, const std::vector<double>& numbers) {
    return builder->constant(Literal::of(DType::F32, dims, numbers));
  }
  Value unary(Opcode opcode, Value x) { return builder->unary(opcode, x); }
  Value binary(Opcode opcode, Value x, Value y) { return builder->binary(opcode, x, y); }
  Value number(double value) { return builder->scalar(DType::F32, value); }

  void finish(Value y) {
    Value bytes = builder->op(Opcode::Quantize, {y, builder->scalar(DType::F32, to.scale), zero(to)},
                              {{"to", to.dtype}});
    body->set_results({bytes});
  }

  Quantised to;
  Module module;
  Region* body;
  std::optional<GraphBuilder> builder;

private:
  Value zero(const Quantised& of) { return builder->scalar(of.dtype, static_cast<double>(of.zero_point)); }
};

// Rows of whole ranges of bytes, and rows of few different ones.
LiteralRef random_bytes(const Type& type, std::mt19937& random) {
  Integers numbers;
  Dims dims = type.static_dims();
  const int64_t low = type.dtype == DType::U8 ? 0 : -128;
  while (static_cast<int64_t>(numbers.size()) < type.num_elements()) {
    const auto first = static_cast<int64_t>(random() % 256), range = int64_t{1} << (random() % 9);
    for (int64_t i = 0; i < dims.back(); ++i)
      numbers.push_back(low + std::min<int64_t>(first + static_cast<int64_t>(random()) % range, 255));
  }
  return Literal::of<int64_t>(type.dtype, dims, numbers);
}

struct Run {
  std::vector<Integers> inputs;
  Integers found;
};

// Runs the module before and after the pipeline for the CPU, and holds both results together.
Run run(Scene& scene, int64_t max_difference) {
  std::mt19937 random(3);
  std::vector<LiteralRef> inputs;
  Run result;
  for (Instruction* parameter : scene.body->parameters()) {
    inputs.push_back(random_bytes(parameter->type(), random));
    result.inputs.push_back(inputs.back()->to_ints());
  }
  INFO(print_module(scene.module));
  auto expected = evaluate(scene.module, inputs);
  REQUIRE(expected);
  auto target = find_target("thumbv7m-none-eabi", "cortex-m3", "");
  REQUIRE(target);
  PipelineRun pipeline{PassOptions(kDefaultGoals, &*target)};
  Result done = run_passes(scene.module, default_pipeline(scene.module, /*for_target=*/true), pipeline);
  if (!done) FAIL(done.error().message);
  std::string after = print_module(scene.module);
  INFO(after);
  CHECK(after.find("f32") == std::string::npos);
  auto found = evaluate(scene.module, inputs);
  REQUIRE(found);
  result.found = (*found)[0]->to_ints();
  int64_t difference = 0;
  for (size_t i = 0; i < result.found.size(); ++i) {
    const int64_t wanted = (*expected)[0]->get_int(static_cast<int64_t>(i));
    difference = std::max(difference, std::abs(result.found[i] - wanted));
  }
  CHECK(difference <= max_difference);
  return result;
}

// Numbers n * factor + bias, rounded by the rule of fixed_point.h; channels are the last dim.
Integers rounded(const Integers& n, plan::FixedPointTerm term, std::vector<double> biases,
                 const Quantised& to) {
  for (double& bias : biases) bias = bias / to.scale + static_cast<double>(to.zero_point);
  for (double& factor : term.factors) factor /= to.scale;
  auto fixed = plan::choose_fixed_point({term}, biases);
  REQUIRE(fixed);
  Integers result;
  for (size_t i = 0; i < n.size(); ++i) {
    const size_t c = i % biases.size();
    const int64_t product = (n[i] * fixed->terms[0].multipliers[c]) >> fixed->terms[0].cut;
    const int64_t sum = (product + fixed->offsets[c]) >> fixed->shifts[fixed->shifts.size() == 1 ? 0 : c];
    result.push_back(std::min(std::max(sum, to.low()), to.low() + 255));
  }
  return result;
}

Integers softmax_by_rule(const Integers& x, size_t length, const plan::FixedPointSoftmax& rule) {
  Integers numbers;
  for (auto row = x.begin(); row != x.end(); row += static_cast<long>(length)) {
    const int64_t largest = *std::max_element(row, row + static_cast<long>(length));
    auto power = [&](size_t i) {
      return static_cast<uint64_t>(
          rule.exponentials[static_cast<size_t>(largest - row[static_cast<long>(i)])]);
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < length; ++i) sum += power(i);
    int h = 0;
    while ((sum << h) < uint64_t{1} << 31) ++h;
    const uint64_t divisor = (sum << h) >> 16, reciprocal = UINT32_MAX / divisor;
    for (size_t i = 0; i < length; ++i)
      numbers.push_back(static_cast<int64_t>((((power(i) << h) >> 16) * reciprocal) >> 17));
  }
  return numbers;
}

// The numbers of a layer norm, or with a zero point those of an RMS norm.
Integers norm_by_rule(const Integers& x, size_t length, const plan::FixedPointNorm& rule,
                      std::optional<int64_t> zero) {
  Integers numbers;
  for (auto row = x.begin(); row != x.end(); row += static_cast<long>(length)) {
    int64_t sum = 0, squares = 0;
    for (auto at = row; at != row + static_cast<long>(length); ++at) {
      sum += *at;
      squares += (*at - zero.value_or(0)) * (*at - zero.value_or(0));
    }
    const auto count = static_cast<int64_t>(length);
    const int64_t w = ((zero ? squares : count * squares - sum * sum) << 16) + rule.epsilon;
    int h = 0;
    while (h < 62 && (w << h) < int64_t{1} << 60) h += 2;
    const auto v = static_cast<uint32_t>(((w << h) >> 30) >> 16);
    uint32_t root = 69782 - ((v * 39321) >> 16);
    for (int step = 0; step < 3; ++step) {
      const uint32_t one = (v * ((root * root) >> 16)) >> 14;
      root = (root * ((196608 - one) >> 2)) >> 15;
    }
    for (auto at = row; at != row + static_cast<long>(length); ++at) {
      const int64_t c = zero ? *at - *zero : count * *at - sum;
      const int shift = h / 2 - 4 - rule.range_bits;
      const int64_t scaled = shift >= 0 ? c << shift : (c + ((1 << -shift) >> 1)) >> -shift;
      numbers.push_back((scaled * root) >> 15);
    }
  }
  return numbers;
}

void check_softmax(int64_t length, const Quantised& x, const Quantised& y) {
  Scene scene(y);
  scene.finish(make_softmax(*scene.builder, scene.input(x, {30, length}), 1));
  INFO("softmax of " << length << ", scale " << x.scale);
  Run done = run(scene, 1);
  auto rule = plan::choose_fixed_point_softmax(x.scale, length);
  REQUIRE(rule);
  Integers numbers = softmax_by_rule(done.inputs[0], static_cast<size_t>(length), *rule);
  CHECK(done.found == rounded(numbers, {1 / rule->unit, {rule->unit}, rule->error}, {0}, y));
}

// Multiples of 1/64, so that their quotients by scales are exact.
std::vector<double> random_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back((static_cast<double>(random() % 255) - 127) / 64);
  return numbers;
}

void check_norm(int64_t length, const Quantised& x, bool is_centered, double epsilon) {
  const Quantised y{0.0625f, 5};
  Scene scene(y);
  std::vector<double> scales = random_numbers(length, 1), biases = random_numbers(length, 2);
  if (!is_centered) std::fill(biases.begin(), biases.end(), 0);
  Value in = scene.input(x, {30, length}), scale = scene.constant({length}, scales);
  scene.finish(is_centered ? make_layer_norm(*scene.builder, in, scale, scene.constant({length}, biases), 1,
                                             epsilon, DType::F32)
                                 ->result()
                           : make_rms_norm(*scene.builder, in, scale, 1, epsilon, DType::F32));
  INFO("norm of " << length << ", scale " << x.scale << ", epsilon " << epsilon);
  Run done = run(scene, 1);
  auto rule = plan::choose_fixed_point_norm(x.scale, length, epsilon, is_centered);
  REQUIRE(rule);
  std::optional<int64_t> zero;
  if (!is_centered) zero = x.zero_point;
  Integers numbers = norm_by_rule(done.inputs[0], static_cast<size_t>(length), *rule, zero);
  for (double& factor : scales) factor *= rule->unit;
  CHECK(done.found == rounded(numbers, {rule->max, scales, rule->error, rule->relative}, biases, y));
}

} // namespace

TEST_CASE("softmax of bytes") {
  for (int64_t length : {1, 2, 10, 12, 64, 300, 1024})
    for (float scale : {0.005f, 0.1415f, 2.0f}) {
      check_softmax(length, {scale, 5}, {1.0f / 256, -128});
      check_softmax(length, {scale, 128, DType::U8}, {1.0f / 256, 0, DType::U8});
      check_softmax(length, {scale, -128}, {1.0f / 128, -20});
    }
}

TEST_CASE("softmax along an inner dim") {
  Scene scene({1.0f / 256, -128});
  scene.finish(make_softmax(*scene.builder, scene.input({0.1f, 3}, {2, 7, 9}), 1));
  run(scene, 1);
}

TEST_CASE("softmax of bytes that are moved") {
  Scene scene({1.0f / 256, -128});
  Value x = scene.input({0.1f, 3}, {6, 10});
  scene.finish(make_softmax(*scene.builder, scene.builder->reshape(x, {2, 3, 10}), 2));
  run(scene, 1);
}

TEST_CASE("means of bytes that are moved") {
  Scene scene({0.04f, -9});
  Value x = scene.builder->reshape(scene.input({0.05f, 3}, {2, 3, 4, 5}), {2, 3, 20});
  Value sum = scene.builder->reduce(Opcode::Add, x, {2}, false);
  scene.finish(scene.binary(Opcode::Multiply, sum, scene.number(0.05)));
  run(scene, 1);
}

TEST_CASE("constants that are spread in different ways") {
  Scene scene({0.04f, -9});
  Value x = scene.input({0.05f, 3}, {1, 3, 4});
  Value scale = scene.builder->reshape(scene.constant({3}, {0.5, 0.25, 2}), {1, 3, 1});
  Value bias = scene.constant({1, 3, 4}, {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, -2, -2, -2, -2});
  scene.finish(scene.binary(Opcode::Add, scene.binary(Opcode::Multiply, x, scale), bias));
  run(scene, 1);
}

TEST_CASE("norms of bytes") {
  for (int64_t length : {1, 2, 5, 64, 300, 768})
    for (double epsilon : {1e-5, 1e-12, 0.1}) {
      check_norm(length, {0.05f, 3}, true, epsilon);
      check_norm(length, {0.5f, 100, DType::U8}, true, epsilon);
      check_norm(length, {0.05f, 3}, false, epsilon);
      check_norm(length, {0.5f, 100, DType::U8}, false, epsilon);
    }
}

TEST_CASE("norms of channels") {
  for (int kind : {0, 1}) {
    Scene scene({0.04f, -7});
    Value x = scene.input({0.03f, 11}, {2, 6, 4, 5}), scale = scene.constant({6}, random_numbers(6, 1)),
          bias = scene.constant({6}, random_numbers(6, 2));
    scene.finish(kind == 0 ? make_instance_norm(*scene.builder, x, scale, bias, 1e-5)
                           : make_group_norm(*scene.builder, x, scale, bias, 3, 1e-5, DType::F32));
    run(scene, 1);
  }
}

// But for ties: scales that other passes merge are rounded differently.
TEST_CASE("functions of one byte are exact") {
  using Function = std::function<Value(Scene&, Value)>;
  auto check = [](const Quantised& y, const Function& function, int64_t max_difference = 0) {
    Scene scene(y);
    scene.finish(function(scene, scene.input({0.05f, 3}, {7, 50})));
    run(scene, max_difference);
  };
  check({1.0f / 256, -128}, [](Scene& s, Value x) { return s.unary(Opcode::Logistic, x); });
  check({1.0f / 128, 0}, [](Scene& s, Value x) { return s.unary(Opcode::Tanh, x); });
  check({0.01f, 0, DType::U8},
        [](Scene& s, Value x) { return s.unary(Opcode::Sqrt, s.unary(Opcode::Abs, x)); });
  check(
      {0.03f, -5},
      [](Scene& s, Value x) { // leaky Relu
        return s.binary(Opcode::Maximum, x, s.binary(Opcode::Multiply, x, s.number(0.1)));
      },
      1);
  check({0.03f, -5}, [](Scene& s, Value x) { return make_silu(*s.builder, x); });
  check({0.03f, -5}, [](Scene& s, Value x) { return make_silu(*s.builder, s.builder->reshape(x, {50, 7})); });
  check(
      {0.03f, -5}, [](Scene& s, Value x) { return make_hard_swish(*s.builder, x); }, 1);
  check({0.03f, -5}, [](Scene& s, Value x) { return make_mish(*s.builder, x); });
  check({0.03f, -5}, [](Scene& s, Value x) { return make_gelu(*s.builder, x, false); });
  check({0.03f, -5}, [](Scene& s, Value x) { return make_gelu(*s.builder, x, true); });
}

TEST_CASE("products of bytes and of functions of them") {
  using Function = std::function<Value(Scene&, Value, Value)>;
  auto check = [](const Dims& dims, const Function& function) {
    Scene scene({0.04f, -9});
    Value x = scene.input({0.05f, 3}, {2, 6, 5}), y = scene.input({0.02f, 7, DType::U8}, dims);
    scene.finish(function(scene, x, y));
    run(scene, 1);
  };
  auto product = [](Scene& s, Value x, Value y) { return s.binary(Opcode::Multiply, x, y); };
  auto gated = [](Scene& s, Value x, Value y) {
    return s.binary(Opcode::Multiply, x, s.unary(Opcode::Logistic, y));
  };
  for (const Dims& dims : {Dims{2, 6, 5}, Dims{2, 6, 1}, Dims{1, 1, 5}}) {
    check(dims, product);
    check(dims, gated);
  }
  check({2, 6, 5},
        [](Scene& s, Value x, Value y) { return s.binary(Opcode::Add, x, s.unary(Opcode::Tanh, y)); });
  check({2, 6, 5}, [](Scene& s, Value x, Value y) {
    Value sum = s.binary(Opcode::Add, y, s.number(0.7));
    return s.binary(Opcode::Subtract, s.binary(Opcode::Multiply, x, sum), y);
  });
}

TEST_CASE("maxima, choices and movements of bytes") {
  Scene larger({0.04f, -9});
  Value x = larger.input({0.05f, 3}, {2, 6, 5}), y = larger.input({0.02f, 7, DType::U8}, {2, 6, 5});
  larger.finish(larger.binary(Opcode::Maximum, x, y));
  run(larger, 1);

  Scene prelu({0.04f, -9});
  x = prelu.input({0.05f, 3}, {2, 6, 5});
  Value slopes = prelu.builder->reshape(prelu.constant({6}, random_numbers(6, 1)), {1, 6, 1});
  Value is_negative = prelu.builder->compare("lt", x, prelu.number(0));
  prelu.finish(prelu.builder->select(is_negative, prelu.binary(Opcode::Multiply, x, slopes), x));
  run(prelu, 1);

  Scene padded({0.04f, -9});
  x = padded.input({0.05f, 3}, {2, 6, 5});
  padded.finish(padded.builder->pad(x, padded.number(0), {0, 1, 2}, {0, 0, 1}));
  run(padded, 1);

  Scene reduced({0.04f, -9});
  x = reduced.input({0.05f, 3}, {2, 6, 5});
  reduced.finish(reduced.builder->reduce(Opcode::Maximum, x, {1}, false));
  run(reduced, 1);
}

TEST_CASE("products of two quantised matrices") {
  Scene scene({0.5f, -9});
  Value x = scene.input({0.05f, 3}, {2, 6, 16}), y = scene.input({0.02f, 7, DType::U8}, {2, 16, 5});
  scene.finish(scene.builder->op(Opcode::Dot, {x, y},
                                 {{"lhs_batch", std::vector<int64_t>{0}},
                                  {"rhs_batch", std::vector<int64_t>{0}},
                                  {"lhs_contract", std::vector<int64_t>{2}},
                                  {"rhs_contract", std::vector<int64_t>{1}}}));
  run(scene, 1);
}
