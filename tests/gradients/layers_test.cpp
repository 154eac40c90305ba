// Composites that hold loops and tables: recurrent layers with all of their options, products with
// integers in blocks, trees. They are derived through their bodies.
#include "compiler/graph/composites.h"
#include "compiler/graph/tree_ensemble.h"
#include "tests/gradients/gradient_case.h"

#include <cmath>
#include <map>

namespace firn::test {
namespace {

using Values = std::vector<Value>;

void check(const std::vector<TestParameter>& parameters, const CompositeBody& body) {
  std::string text = text_of(parameters, body);
  INFO(text);
  check_by_differences(text, "f", 1);
}

enum class Cell { Lstm, Gru, Rnn };

int64_t gates_of(Cell cell) {
  return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1;
}

struct Layer {
  Cell cell;
  RecurrentOptions options = {};
  bool has_lens = false, has_peepholes = false, is_projected = false;
};

// Three steps, batch 2, inputs of 2, hidden size 2. All results are derived.
void check_layer(const Layer& layer) {
  int64_t rows = 2 * gates_of(layer.cell);
  std::vector<TestParameter> parameters{
      {"x", {3, 2, layer.is_projected ? rows : 2}}, {"r", {rows, 2}}, {"h0", {2, 2}}};
  if (!layer.is_projected) parameters.insert(parameters.end(), {{"w", {rows, 2}}, {"b", {rows}}});
  if (layer.cell == Cell::Lstm) parameters.push_back({"c0", {2, 2}});
  if (layer.has_peepholes) parameters.push_back({"peepholes", {6}});
  if (layer.options.linear_before_reset) parameters.push_back({"b_r", {2}});
  check(parameters, [&](GraphBuilder& b, const Values& p) {
    std::map<std::string, Value> named;
    for (size_t i = 0; i < p.size(); ++i) named[parameters[i].name] = p[i];
    RecurrentOperands from;
    from.x = named["x"], from.w = named["w"], from.r = named["r"], from.b = named["b"];
    from.h0 = named["h0"], from.c0 = named["c0"], from.peepholes = named["peepholes"];
    from.b_r = named["b_r"];
    if (layer.has_lens) from.lens = b.constant(Literal::of<int64_t>(DType::I32, {2}, {1, 3}));
    auto make = layer.cell == Cell::Lstm ? make_lstm : layer.cell == Cell::Gru ? make_gru : make_rnn;
    Instruction* made = make(b, from, layer.options);
    Values results;
    for (int i = 0; i < made->num_results(); ++i) results.push_back(made->result(i));
    return results;
  });
}

TEST_CASE("recurrent layers with each of their options") {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Rnn})
    for (bool has_lens : {false, true}) {
      Layer layer{cell};
      layer.has_lens = has_lens;
      layer.options.reverse = has_lens;
      check_layer(layer);
      layer.is_projected = true;
      layer.options.clip = 0.75;
      check_layer(layer);
    }
  Layer coupled{Cell::Lstm}, linear{Cell::Gru};
  coupled.options.input_forget = coupled.has_peepholes = true;
  linear.options.linear_before_reset = true;
  check_layer(coupled);
  check_layer(linear);
}

TEST_CASE("recurrent layers with each activation") {
  for (const char* activation : {"relu", "tanh", "sigmoid", "affine", "leakyrelu", "thresholdedrelu",
                                 "scaledtanh", "hardsigmoid", "elu", "softsign", "softplus"}) {
    Layer layer{Cell::Rnn};
    layer.options.activations = {activation};
    layer.options.alpha = {0.3};
    layer.options.beta = {0.4};
    check_layer(layer);
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
