// Recurrent layers with all of their options: the rule gives what the body's loop gives.
#include "tests/gradients/composite_case.h"

#include <cmath>

namespace firn::test {
namespace {

using Values = std::vector<Value>;

enum class Cell { Lstm, Gru, Rnn };

// The results that the function under test reads.
enum class Read { All, Sequence, State };

// Extents of -1 vary: up to 3 steps, 1 to 3 batch entries.
struct Layer {
  Cell cell;
  RecurrentOptions options = {};
  int64_t steps = 3, batch = 2, hidden = 2;
  bool has_lens = false, has_peepholes = false, is_projected = false;
  Read read = Read::All;
};

int64_t gates_of(Cell cell) {
  return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1;
}

class LayerModule {
public:
  explicit LayerModule(const Layer& layer)
      : layer_(layer), region_(module_.add_function("f").body()), b_(region_),
        steps_(extent("steps", 0, layer.steps)), batch_(extent("batch", 1, layer.batch)) {}

  std::string text() {
    int64_t gates = gates_of(layer_.cell) * layer_.hidden;
    Dim rows(gates), hidden(layer_.hidden), inputs(layer_.is_projected ? gates : 2);
    RecurrentOperands from;
    from.x = parameter("x", {steps_, batch_, inputs});
    if (!layer_.is_projected) from.w = parameter("w", {rows, inputs}), from.b = parameter("b", {rows});
    from.r = parameter("r", {rows, hidden});
    from.h0 = parameter("h0", {batch_, hidden});
    if (layer_.cell == Cell::Lstm) from.c0 = parameter("c0", {batch_, hidden});
    if (layer_.has_peepholes) from.peepholes = parameter("p", {Dim(3 * layer_.hidden)});
    if (layer_.options.linear_before_reset) from.b_r = parameter("b_r", {hidden});
    if (layer_.has_lens) from.lens = parameter("start3_lens", {batch_}, DType::I32);
    auto make = layer_.cell == Cell::Lstm ? make_lstm : layer_.cell == Cell::Gru ? make_gru : make_rnn;
    region_.set_results({combined(make(b_, from, layer_.options))});
    return print_module(module_);
  }

private:
  Dim extent(const char* name, int64_t lower, int64_t number) {
    if (number >= 0) return Dim(number);
    return Dim(
        IntExpr::symbol(module_.symbols.emplace_back(std::make_shared<Symbol>(Symbol{name, lower, 3}))));
  }

  Value parameter(const char* name, const std::vector<Dim>& dims, DType dtype = DType::F64) {
    return region_.add_parameter(Type::tensor(dtype, dims), name)->result();
  }

  // One value of the results that are read, in which each step has a cotangent of its own.
  Value combined(Instruction* layer) {
    Value y = layer->result(), last = layer->result(1);
    Value sum = b_.reduce(Opcode::Add, b_.binary(Opcode::Multiply, y, y), {0}, /*keep_dims=*/false);
    if (layer_.read == Read::Sequence) return sum;
    if (layer_.read == Read::All) last = b_.binary(Opcode::Add, last, sum);
    if (layer->num_results() == 2) return last;
    return b_.binary(Opcode::Subtract, last, layer->result(2));
  }

  const Layer& layer_;
  Module module_{"m"};
  Region& region_;
  GraphBuilder b_;
  Dim steps_, batch_;
};

void check_layer(const Layer& layer, int draws = 2) {
  check_composite(LayerModule(layer).text(), draws);
}

// The rule alone: clip has kinks, which differences may meet.
void check_by_rule(const Layer& layer) {
  check_rule(LayerModule(layer).text(), 6);
}

TEST_CASE("gradients of recurrent layers of any extents") {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Rnn}) {
    for (auto [steps, batch, hidden] : {std::tuple{1, 1, 5}, {1, 3, 2}, {3, 3, 1}, {2, 1, 2}, {3, 2, 5}})
      check_layer({.cell = cell, .steps = steps, .batch = batch, .hidden = hidden});
    check_layer({.cell = cell, .steps = -1}, 6);
    check_layer({.cell = cell, .batch = -1}, 6);
  }
}

TEST_CASE("gradients of recurrent layers with partial vectors and tiles") {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Rnn})
    for (auto [steps, batch, hidden] : {std::tuple{1, 9, 35}, {4, 1, 70}, {3, 11, 19}}) {
      Layer layer{.cell = cell, .steps = steps, .batch = batch, .hidden = hidden};
      check_by_rule(layer);
      layer.options.reverse = layer.has_lens = true;
      layer.options.linear_before_reset = cell == Cell::Gru;
      check_by_rule(layer);
    }
}

TEST_CASE("gradients of recurrent layers backwards, of lengths, of projected inputs, of some results") {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Rnn})
    for (bool reverse : {false, true})
      for (bool has_lens : {false, true}) {
        Layer layer{cell};
        layer.options.reverse = reverse;
        layer.has_lens = has_lens;
        layer.steps = layer.batch = has_lens ? -1 : 3;
        layer.read = reverse == has_lens ? Read::All : reverse ? Read::Sequence : Read::State;
        check_layer(layer, 4);
        layer.is_projected = true;
        layer.options.clip = 0.35;
        check_by_rule(layer);
      }
}

TEST_CASE("gradients of recurrent layers with peepholes, coupled gates, products before the reset") {
  for (bool reverse : {false, true}) {
    Layer lstm{Cell::Lstm}, gru{Cell::Gru};
    lstm.has_peepholes = lstm.has_lens = gru.has_lens = true;
    lstm.options.reverse = gru.options.reverse = reverse;
    gru.options.linear_before_reset = true;
    check_layer(lstm, 4);
    check_layer(gru, 4);
    lstm.has_lens = gru.has_lens = false;
    lstm.options.input_forget = gru.is_projected = true;
    lstm.steps = gru.steps = -1;
    check_layer(lstm, 4);
    check_layer(gru, 4);
  }
}

TEST_CASE("gradients of recurrent layers with each activation") {
  for (const char* activation : {"relu", "tanh", "sigmoid", "affine", "leakyrelu", "thresholdedrelu",
                                 "scaledtanh", "hardsigmoid", "elu", "softsign", "softplus"}) {
    Layer layer{Cell::Rnn};
    layer.options.activations = {activation};
    layer.options.alpha = {0.3};
    layer.options.beta = {0.4};
    check_layer(layer);
  }
  for (const char* activation : {"sigmoid", "affine", "scaledtanh", "softsign", "softplus"}) {
    Layer layer{Cell::Lstm};
    layer.options.activations = {"sigmoid", activation, activation};
    layer.options.alpha = {0, 0.3, 0.5};
    layer.options.beta = {0, 0.4, 0.6};
    check_layer(layer);
  }
}

TEST_CASE("gradients of steps behind the end of a sequence are exactly 0") {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Rnn})
    for (bool reverse : {false, true}) {
      Layer layer{cell};
      layer.options.reverse = reverse;
      layer.has_lens = true;
      auto module = differentiated(with_gradient(LayerModule(layer).text()));
      const Function& gradient = *module->find("g");
      std::mt19937_64 random(1);
      std::vector<LiteralRef> inputs = draw_inputs(*module, gradient, random);
      inputs[inputs.size() - 2] = Literal::of<int64_t>(DType::I32, {2}, {1, 3});
      auto results = evaluate_function(gradient, {inputs.begin(), inputs.end()});
      REQUIRE(results);
      std::vector<double> dx = elements(*(*results)[0].tensor);
      for (size_t step : {1, 2})
        for (size_t k = 0; k < 2; ++k) CHECK(dx[step * 4 + k] == 0);
      CHECK(dx[0] != 0);
      CHECK(dx[2 * 4 + 2] != 0);
    }
}

} // namespace
} // namespace firn::test
