// Composites: rules of their own give what the bodies give, and every composite has a gradient.
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/class_losses.h"
#include "compiler/graph/composites.h"
#include "compiler/graph/resample.h"
#include "compiler/graph/tree_ensemble.h"
#include "compiler/passes/gradient/adjoints.h"
#include "tests/gradients/composite_case.h"

#include <cmath>

namespace firn::test {
namespace {

using Values = std::vector<Value>;

void check(const std::vector<TestParameter>& parameters, const CompositeBody& body) {
  check_composite(text_of(parameters, body), 2);
}

// Checks a function whose parameters have a symbol, from `lower` to 7, for extents of 13.
void check_at_any_extent(const std::vector<TestParameter>& parameters, int lower, const CompositeBody& body) {
  std::string signature;
  for (const TestParameter& each : parameters)
    signature += (signature.empty() ? "%" : ", %") + std::string(each.name) + ": " +
                 Type::tensor_of(each.dtype, each.dims).to_string();
  auto module = parse_module("m", "module @m { symbol n in [" + std::to_string(lower) + ", 7] func @f(" +
                                      replaced(signature, "[13", "[n") + ") -> () { return } }");
  if (!module) FAIL(module.error().message);
  Region& region = (*module)->find("f")->body();
  Values values;
  for (Instruction* parameter : region.parameters()) values.push_back(parameter->result());
  GraphBuilder builder(region);
  region.set_results(body(builder, values));
  std::string text = print_module(**module);
  INFO(text);
  check_by_differences(text, "f", 4);
  check_object(replaced(with_gradient(text), "f64", "f32"), "g", {});
}

TEST_CASE("softmax") {
  for (int dim : {0, 1, 2}) {
    check({{"x", {2, 3, 5}}},
          [&](GraphBuilder& b, const Values& p) { return Values{make_softmax(b, p[0], dim)}; });
    check({{"x", {2, 3, 5}}},
          [&](GraphBuilder& b, const Values& p) { return Values{make_log_softmax(b, p[0], dim)}; });
  }
}

Values results_of(const Instruction& composite) {
  Values results;
  for (int i = 0; i < composite.num_results(); ++i)
    results.push_back(const_cast<Instruction&>(composite).result(i));
  return results;
}

TEST_CASE("norms over the last dims, with their statistics") {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 3, 5}, {1, 1, 2}, {13, 3, 5}})
    for (bool statistics : {false, true})
      for (int dim : {1, 2}) {
        std::vector<TestParameter> parameters{
            {"x", dims}, {"scale", {dims[1], dims[2]}}, {"bias", {dims[2]}}};
        auto body = [&](GraphBuilder& b, const Values& p) {
          return results_of(*make_layer_norm(b, p[0], p[1], p[2], dim, 0.01, DType::F64, statistics));
        };
        if (dims[0] == 13)
          check_at_any_extent(parameters, 0, body);
        else
          check(parameters, body);
      }
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 3, 5}, {0, 3, 2}})
    check({{"x", dims}, {"scale", {dims[2]}}}, [](GraphBuilder& b, const Values& p) {
      return Values{make_rms_norm(b, p[0], p[1], 2, 0.01, DType::F64)};
    });
}

TEST_CASE("norms of channels") {
  auto instance = [](GraphBuilder& b, const Values& p) {
    return Values{make_instance_norm(b, p[0], p[1], p[2], 0.01)};
  };
  auto group = [](GraphBuilder& b, const Values& p) {
    return Values{make_group_norm(b, p[0], p[1], p[2], 2, 0.01, DType::F64)};
  };
  auto batch = [](GraphBuilder& b, const Values& p) {
    std::vector<Dim> dims(static_cast<size_t>(p[0].rank()), Dim(1));
    dims[1] = p[1].type().dims[0];
    return results_of(*make_batch_norm(b, p[0], b.reshape(p[1], dims), b.reshape(p[2], dims), 0.01));
  };
  for (const CompositeBody& body : {CompositeBody(instance), CompositeBody(group), CompositeBody(batch)}) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 4, 5}, {3, 2, 1, 3}, {1, 2, 7}})
      check({{"x", dims}, {"scale", {dims[1]}}, {"bias", {dims[1]}}}, body);
    check_at_any_extent({{"x", {13, 4, 3, 2}}, {"scale", {4}}, {"bias", {4}}}, 1, body);
  }
  check({{"x", {5, 3}}, {"scale", {3}}, {"bias", {3}}}, batch);
}

TEST_CASE("activations") {
  using Make = Value (*)(GraphBuilder&, Value);
  for (Make make : {make_silu, make_hard_swish, make_mish,
                    +[](GraphBuilder&b, Value x) { return make_gelu(b, x, false); },
                    +[](GraphBuilder&b, Value x) { return make_gelu(b, x, true); }}) {
    auto body = [&](GraphBuilder& b, const Values& p) { return Values{make(b, p[0])}; };
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{7}, {1}, {0, 3}})
      check({{"x", dims}}, body);
    check_at_any_extent({{"x", {13, 3}}}, 0, body);
  }
}

// Losses of scores [n, classes, d...] by labels that draws choose, one of them ignored.
void check_class_loss(const std::vector<int64_t>& dims, const char* reduction, bool ignores, bool weighs) {
  std::vector<int64_t> places = dims;
  places.erase(places.begin() + 1);
  std::vector<int64_t> labels(static_cast<size_t>(Type::tensor_of(DType::I64, places).num_elements()));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i * 5 % 7) % dims[1];
  if (labels.size() > 2) labels[2] = ignores ? -100 : -1;
  ClassLossOptions options{reduction, {}};
  if (ignores) options.ignore_index = -100;
  std::vector<TestParameter> parameters{{"x", dims}};
  if (weighs) parameters.push_back({"positive", {dims[1]}});
  auto label_constant = [&](GraphBuilder& b) {
    return b.constant(Literal::of<int64_t>(DType::I64, places, labels));
  };
  check(parameters, [&](GraphBuilder& b, const Values& p) {
    Value weights = weighs ? p[1] : Value{};
    return Values{make_negative_log_likelihood(b, p[0], label_constant(b), weights, options)};
  });
  for (bool shows_logs : {false, true})
    check(parameters, [&](GraphBuilder& b, const Values& p) {
      Value weights = weighs ? p[1] : Value{};
      Instruction* made =
          make_softmax_cross_entropy(b, p[0], label_constant(b), weights, options, shows_logs);
      return shows_logs ? Values{made->result(0), made->result(1)} : Values{made->result()};
    });
}

TEST_CASE("losses over classes") {
  for (const char* reduction : {"none", "mean", "sum"}) {
    check_class_loss({5, 3}, reduction, false, false);
    check_class_loss({5, 7}, reduction, true, false);
    check_class_loss({3, 3, 1, 2}, reduction, false, true);
    check_class_loss({2, 5, 3}, reduction, true, true);
    check_class_loss({1, 1}, reduction, false, true);
    if (std::string(reduction) != "mean") check_class_loss({0, 3}, reduction, true, true);
  }
}

TEST_CASE("losses over classes of labels that runs give, at any batch") {
  for (const char* reduction : {"mean", "sum"}) {
    ClassLossOptions options{reduction, -3};
    std::vector<TestParameter> parameters{
        {"x", {13, 3, 2}}, {"index3", {13, 2}, DType::I32}, {"positive", {3}}};
    check_at_any_extent(parameters, options.reduction == "mean" ? 3 : 0,
                        [&](GraphBuilder& b, const Values& p) {
                          return Values{make_softmax_cross_entropy(b, p[0], p[1], p[2], options)->result()};
                        });
  }
}

TEST_CASE("losses over as many classes as a run has") {
  check_at_any_extent({{"x", {3, 13}}, {"index1", {3}, DType::I64}}, 1, [](GraphBuilder& b, const Values& p) {
    return results_of(*make_softmax_cross_entropy(b, p[0], p[1], {}, {}, true));
  });
}

TEST_CASE("a loss over classes that is written out") {
  check_at_any_extent({{"x", {13, 3, 2}}, {"index3", {13, 1, 2}, DType::I64}}, 0,
                      [](GraphBuilder& b, const Values& p) {
                        Value logs = make_log_softmax(b, p[0], 1);
                        return Values{b.op(Opcode::GatherElements, {logs, p[1]}, {{"axis", int64_t{1}}})};
                      });
}

TEST_CASE("ignored labels have derivative 0, even if all are ignored") {
  std::string text = text_of({{"x", {2, 3}}}, [](GraphBuilder& b, const Values& p) {
    Value labels = b.constant(Literal::of<int64_t>(DType::I64, {2}, {9, 9}));
    return Values{make_softmax_cross_entropy(b, p[0], labels, {}, {"mean", 9})->result()};
  });
  auto module = differentiated(with_gradient(text));
  for (double element : elements(*run(*module, "g", {"1, 2, 3, -1, 0, 1", "1"})[0])) CHECK(element == 0);
}

LiteralRef indices(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return Literal::of<int64_t>(DType::I32, dims, values);
}
LiteralRef weights(const std::vector<int64_t>& dims, const std::vector<double>& values) {
  return Literal::of(DType::F64, dims, values);
}

TEST_CASE("resampling, whose cotangents are resampled by transposed tables") {
  ResampledDim rows{1, indices({2, 5}, {0, 0, 1, 1, 2, 0, 1, 2, 2, 2}),
                    weights({2, 5}, {1, 0.7, 0.4, 0.9, 0.5, 0, 0.3, 0.6, 0.1, 0.5})};
  ResampledDim columns{2, indices({1, 2}, {3, 3}), weights({1, 2}, {1, -0.5})};
  ResampledDim one{2, indices({1, 1}, {0}), weights({1, 1}, {3})};
  auto by = [](std::vector<ResampledDim> dims) {
    return [=](GraphBuilder& b, const Values& p) { return Values{make_resample(b, p[0], dims)}; };
  };
  check({{"x", {2, 3, 4}}}, by({rows, columns}));
  check({{"x", {0, 3, 4}}}, by({columns}));
  check({{"x", {2, 3, 0}}}, by({rows}));
  check({{"x", {1, 3, 1}}}, by({one, rows}));
  check_at_any_extent({{"x", {13, 3, 4}}}, 0, by({rows, columns}));
}

TEST_CASE("resampling that all results read from one place is derived through its body") {
  ResampledDim one{1, indices({1, 12}, std::vector<int64_t>(12, 0)),
                   weights({1, 12}, std::vector<double>(12, 0.5))};
  check({{"x", {1, 7}}}, [&](GraphBuilder& b, const Values& p) {
    Value y = make_resample(b, p[0], {one});
    CHECK_FALSE(gradient::has_composite_rule(*y.def));
    return Values{y};
  });
}

TEST_CASE("products with integers in blocks, by rows and by scales") {
  LiteralRef few = Literal::of<int64_t>(DType::I8, {2, 2, 2}, {1, -2, 3, 4, -5, 6, 7, -8});
  LiteralRef stored =
      Literal::of<int64_t>(DType::U4, {2, 1, 8}, {8, 1, 15, 4, 0, 9, 7, 2, 3, 3, 12, 8, 6, 5, 1, 14});
  for (bool has_words : {false, true}) {
    LiteralRef integers = has_words ? stored : few;
    int64_t n = integers->dims()[0], blocks = integers->dims()[1], block = integers->dims()[2];
    auto body = [&](GraphBuilder& b, const Values& p) {
      return Values{make_blocked_dot(b, p[0], b.constant(integers), p[1])};
    };
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{3}, {}, {2, 1}, {0}}) {
      std::vector<int64_t> dims = rows;
      dims.push_back(blocks * block);
      check({{"x", dims, DType::F32}, {"scales", {n, blocks}, DType::F32}}, body);
    }
  }
}

TEST_CASE("trees have steps: their derivative is 0") {
  std::string text = text_of({{"x", {3, 2}}}, [](GraphBuilder& b, const Values& p) {
    TreeEnsemble trees;
    trees.thresholds = Literal::of(DType::F64, {3}, std::vector<double>{0.1, NAN, NAN});
    trees.shift = 1;
    trees.links = Literal::of<int64_t>(DType::I32, {3}, {2 << 1, 1 << 1, 2 << 1});
    trees.values = Literal::of(DType::F64, {3}, std::vector<double>{0, 2, 3});
    trees.roots = Literal::of<int64_t>(DType::I32, {1}, {0});
    trees.targets = Literal::of<int64_t>(DType::I32, {1}, {0});
    trees.depth = 1;
    return Values{make_tree_ensemble(b, p[0], trees)};
  });
  INFO(text);
  auto module = differentiated(text.substr(0, text.rfind('}')) + "func @g = gradient @f wrt x }");
  for (double element : elements(*run(*module, "g", {"1, 2, 0, 0, -1, 5"})[0])) CHECK(element == 0);
}

} // namespace
} // namespace firn::test
