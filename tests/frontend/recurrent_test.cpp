// LSTM, GRU and RNN with all their options against plain loops over ONNX's formulas.
#include "tests/frontend/import_case.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

using namespace firn;
using namespace firn::test;

namespace {

using Floats = std::vector<float>;

constexpr int64_t kSteps = 5, kBatch = 3, kIn = 4, kHidden = 6;
constexpr float kClip = 0.3f;

// Numbers in (-1, 1), the same for the same seed.
Floats noise(size_t count, uint32_t seed) {
  Floats values;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    values.push_back(static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1);
  }
  return values;
}

struct Options {
  const char* op = "LSTM";
  int gates = 4;
  const char* direction = "forward";
  bool lens = false, states = false, peepholes = false, clip = false, batch_first = false;
  bool input_forget = false, linear_before_reset = false, other_activations = false;

  int64_t directions() const { return std::string(direction) == "bidirectional" ? 2 : 1; }
};

struct Data {
  Floats x, w, r, b, h0, c0, p;
  std::vector<int32_t> lens{5, 2, 4};

  explicit Data(const Options& o) {
    size_t d = static_cast<size_t>(o.directions()), g = static_cast<size_t>(o.gates), h = kHidden;
    x = noise(kSteps * kBatch * kIn, 1);
    w = noise(d * g * h * kIn, 2);
    r = noise(d * g * h * h, 3);
    b = noise(d * 2 * g * h, 4);
    h0 = o.states ? noise(d * kBatch * h, 5) : Floats(d * kBatch * h, 0);
    c0 = o.states ? noise(d * kBatch * h, 6) : Floats(d * kBatch * h, 0);
    p = o.peepholes ? noise(d * 3 * h, 7) : Floats(d * 3 * h, 0);
  }
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// One step of one batch entry in one direction.
struct Reference {
  const Options& o;
  const Data& data;
  int64_t direction;

  double gate_activation(double x) const {
    x = o.clip ? std::clamp<double>(x, -kClip, kClip) : x;
    return o.other_activations ? std::clamp(0.3 * x + 0.4, 0.0, 1.0) : sigmoid(x);
  }
  double candidate_activation(double x) const {
    x = o.clip ? std::clamp<double>(x, -kClip, kClip) : x;
    return o.other_activations ? 0.8 * std::tanh(0.9 * x) : std::tanh(x);
  }
  double input_part(int gate, int64_t j, const float* x) const {
    int64_t row = (direction * o.gates + gate) * kHidden + j;
    double sum = data.b[static_cast<size_t>((direction * 2 * o.gates + gate) * kHidden + j)];
    for (int64_t i = 0; i < kIn; ++i) sum += double(data.w[static_cast<size_t>(row * kIn + i)]) * x[i];
    return sum;
  }
  double recurrent_bias(int gate, int64_t j) const {
    return data.b[static_cast<size_t>((direction * 2 * o.gates + o.gates + gate) * kHidden + j)];
  }
  double recurrent_part(int gate, int64_t j, const std::vector<double>& h) const {
    int64_t row = (direction * o.gates + gate) * kHidden + j;
    double sum = 0;
    for (int64_t i = 0; i < kHidden; ++i)
      sum += double(data.r[static_cast<size_t>(row * kHidden + i)]) * h[static_cast<size_t>(i)];
    return sum;
  }

  void step(const float* x, std::vector<double>& h, std::vector<double>& c) const {
    std::vector<double> next_h(h), next_c(c);
    for (int64_t j = 0; j < kHidden; ++j) {
      size_t at = static_cast<size_t>(j);
      auto gate = [&](int g) { return input_part(g, j, x) + recurrent_part(g, j, h) + recurrent_bias(g, j); };
      auto peep = [&](int g) {
        return double(data.p[static_cast<size_t>((direction * 3 + g) * kHidden + j)]);
      };
      if (o.gates == 1) {
        next_h[at] = candidate_activation(gate(0));
      } else if (o.gates == 4) {
        double i = gate_activation(gate(0) + peep(0) * c[at]);
        double f = o.input_forget ? 1 - i : gate_activation(gate(2) + peep(2) * c[at]);
        next_c[at] = f * c[at] + i * candidate_activation(gate(3));
        double out = o.other_activations ? next_c[at] / (1 + std::fabs(next_c[at])) : std::tanh(next_c[at]);
        next_h[at] = gate_activation(gate(1) + peep(1) * next_c[at]) * out;
      } else {
        double z = gate_activation(gate(0));
        double inner;
        if (o.linear_before_reset) {
          inner = gate_activation(gate(1)) * (recurrent_part(2, j, h) + recurrent_bias(2, j));
        } else {
          std::vector<double> reset(h);
          for (int64_t k = 0; k < kHidden; ++k)
            reset[static_cast<size_t>(k)] *=
                gate_activation(input_part(1, k, x) + recurrent_part(1, k, h) + recurrent_bias(1, k));
          inner = recurrent_part(2, j, reset) + recurrent_bias(2, j);
        }
        next_h[at] = (1 - z) * candidate_activation(input_part(2, j, x) + inner) + z * h[at];
      }
    }
    h = next_h;
    c = next_c;
  }
};

// y [steps, directions, batch, hidden], y_h and y_c [directions, batch, hidden].
struct Expected3 {
  std::vector<double> y, y_h, y_c;
};

Expected3 reference(const Options& o, const Data& data) {
  int64_t directions = o.directions();
  Expected3 e;
  e.y.assign(static_cast<size_t>(kSteps * directions * kBatch * kHidden), 0);
  for (int64_t d = 0; d < directions; ++d) {
    for (int64_t n = 0; n < kBatch; ++n) {
      Reference cell{o, data, d};
      auto first = [&](const Floats& from) {
        auto begin = from.begin() + (d * kBatch + n) * kHidden;
        return std::vector<double>(begin, begin + kHidden);
      };
      std::vector<double> h = first(data.h0), c = first(data.c0);
      int64_t length = o.lens ? data.lens[static_cast<size_t>(n)] : kSteps;
      bool reverse = d == 1 || std::string(o.direction) == "reverse";
      for (int64_t s = 0; s < length; ++s) {
        int64_t t = reverse ? length - 1 - s : s;
        cell.step(&data.x[static_cast<size_t>((t * kBatch + n) * kIn)], h, c);
        std::copy(h.begin(), h.end(), e.y.begin() + ((t * directions + d) * kBatch + n) * kHidden);
      }
      e.y_h.insert(e.y_h.end(), h.begin(), h.end());
      e.y_c.insert(e.y_c.end(), c.begin(), c.end());
    }
  }
  return e;
}

Message strings(const std::string& name, const std::vector<std::string>& values) {
  Message m;
  m.text(1, name).number(20, 8);
  for (const auto& each : values) m.text(9, each);
  return m;
}
Message reals(const std::string& name, const Floats& values) {
  Message m;
  m.text(1, name).number(20, 6);
  for (float each : values) m.real(7, each);
  return m;
}

std::vector<Message> attributes(const Options& o) {
  std::vector<Message> made{attribute("hidden_size", kHidden), attribute_text("direction", o.direction)};
  if (o.clip) made.push_back(attribute_real("clip", kClip));
  if (o.batch_first) made.push_back(attribute("layout", 1));
  if (o.input_forget) made.push_back(attribute("input_forget", 1));
  if (o.linear_before_reset) made.push_back(attribute("linear_before_reset", 1));
  if (o.other_activations) {
    std::vector<std::string> names;
    Floats alpha, beta;
    for (int64_t d = 0; d < o.directions(); ++d) {
      if (o.gates > 1) names.push_back("HardSigmoid"), alpha.push_back(0.3f), beta.push_back(0.4f);
      names.push_back("ScaledTanh"), alpha.push_back(0.8f), beta.push_back(0.9f);
      if (o.gates == 4) names.push_back("Softsign");
    }
    made.push_back(strings("activations", names));
    made.push_back(reals("activation_alpha", alpha));
    made.push_back(reals("activation_beta", beta));
  }
  return made;
}

// Swaps the first two of the dims [a, b, rest].
Floats swapped(const Floats& values, int64_t a, int64_t b) {
  int64_t rest = static_cast<int64_t>(values.size()) / (a * b);
  Floats result(values.size());
  for (int64_t i = 0; i < a * b * rest; ++i) {
    int64_t row = i / (b * rest), column = i / rest % b;
    result[static_cast<size_t>((column * a + row) * rest + i % rest)] = values[static_cast<size_t>(i)];
  }
  return result;
}

Model make_model(const Options& o, const Data& data) {
  int64_t d = o.directions(), g = o.gates;
  Model model;
  auto state = [&](const char* name, const Floats& values) {
    return o.batch_first ? floats(name, {kBatch, d, kHidden}, swapped(values, d, kBatch))
                         : floats(name, {d, kBatch, kHidden}, values);
  };
  model.graph.inputs = {o.batch_first ? value("x", F32, {kBatch, kSteps, kIn})
                                      : value("x", F32, {kSteps, kBatch, kIn})};
  model.graph.initializers = {floats("w", {d, g * kHidden, kIn}, data.w),
                              floats("r", {d, g * kHidden, kHidden}, data.r),
                              floats("b", {d, 2 * g * kHidden}, data.b),
                              tensor_header("lens", I32, {kBatch}).raw(9, data.lens),
                              state("h0", data.h0),
                              state("c0", data.c0),
                              floats("p", {d, 3 * kHidden}, data.p)};
  Names inputs{"x", "w", "r", "b", o.lens ? "lens" : "", o.states ? "h0" : ""}, outputs{"y", "y_h"};
  if (g == 4) {
    inputs.push_back(o.states ? "c0" : "");
    inputs.push_back(o.peepholes ? "p" : "");
    outputs.push_back("y_c");
  }
  for (const auto& name : outputs) model.graph.outputs.push_back(value(name, F32, {}));
  model.graph.nodes = {node(o.op, inputs, outputs, attributes(o))};
  return model;
}

void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  double largest = 0;
  for (size_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::fabs(found[i] - wanted[i]));
  CHECK(largest < 1e-5);
}

void check_layer(const Options& o) {
  CAPTURE(o.op, o.direction, o.lens, o.states, o.peepholes, o.clip, o.other_activations);
  Data data(o);
  Imported imported = import_model(make_model(o, data));
  INFO(imported.messages);
  REQUIRE(imported.model);
  CHECK(contains(imported.text(), "composite"));
  Floats x = o.batch_first ? swapped(data.x, kSteps, kBatch) : data.x;
  std::vector<int64_t> dims =
      o.batch_first ? std::vector<int64_t>{kBatch, kSteps, kIn} : std::vector<int64_t>{kSteps, kBatch, kIn};
  auto results = run(imported, {f32(dims, {x.begin(), x.end()})});
  Expected3 wanted = reference(o, data);
  if (o.batch_first) return check_close(numbers(results[1]), wanted.y_h);
  check_close(numbers(results[0]), wanted.y);
  check_close(numbers(results[1]), wanted.y_h);
  if (o.gates == 4) check_close(numbers(results[2]), wanted.y_c);
}

void check_all(Options o, const std::vector<std::function<void(Options&)>>& variants) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    o.direction = direction;
    check_layer(o);
    for (const auto& change : variants) {
      Options changed = o;
      change(changed);
      check_layer(changed);
    }
  }
}

const std::vector<std::function<void(Options&)>> kVariants{
    [](Options& o) { o.lens = true; },
    [](Options& o) { o.states = true; },
    [](Options& o) { o.lens = o.states = o.clip = true; },
    [](Options& o) { o.other_activations = o.states = true; },
};

} // namespace

TEST_CASE("LSTM follows its formulas") {
  auto variants = kVariants;
  variants.push_back([](Options& o) { o.peepholes = o.states = o.clip = true; });
  variants.push_back([](Options& o) { o.input_forget = true; });
  check_all({}, variants);
}

TEST_CASE("GRU follows its formulas, before and after reset") {
  auto variants = kVariants;
  for (auto change : kVariants)
    variants.push_back([change](Options& o) { change(o), o.linear_before_reset = true; });
  Options gru;
  gru.op = "GRU";
  gru.gates = 3;
  check_all(gru, variants);
}

TEST_CASE("RNN follows its formula") {
  Options rnn;
  rnn.op = "RNN";
  rnn.gates = 1;
  check_all(rnn, kVariants);
}

TEST_CASE("batch-first recurrent layers swap dims outside of the composite") {
  Options o;
  o.batch_first = o.states = true;
  check_layer(o);
}

TEST_CASE("default activations leave no attribute, others are listed") {
  Options o;
  CHECK(!contains(import_model(make_model(o, Data(o))).text(), "activations"));
  o.other_activations = true;
  CHECK(contains(import_model(make_model(o, Data(o))).text(),
                 "activations = \"hardsigmoid scaledtanh softsign\""));
}

TEST_CASE("a quantised LSTM sees nothing of what is behind its sequences") {
  Model model;
  auto bytes = [](const char* name, std::vector<int64_t> dims) {
    std::vector<uint8_t> values(static_cast<size_t>(dims[1] * dims[2]));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(17 * i);
    return tensor_header(name, U8, dims).raw(9, values);
  };
  model.opsets.emplace_back("com.microsoft", 1);
  auto wide = [&](const char* name, uint8_t at) {
    return tensor_header(name, U8, {1}).raw(9, std::vector{at});
  };
  model.graph.initializers = {bytes("w", {1, kIn, 4 * kHidden}), bytes("r", {1, kHidden, 4 * kHidden}),
                              floats("s", {1}, {0.01f}), wide("z", 120)};
  model.graph.inputs = {value("x", F32, {"steps", kBatch, kIn}), value("lens", I32, {kBatch})};
  for (const char* direction : {"forward", "reverse"}) {
    model.graph.nodes = {
        node("DynamicQuantizeLSTM", {"x", "w", "r", "", "lens", "", "", "", "s", "z", "s", "z"},
             {"y", "y_h", "y_c"}, {attribute("hidden_size", kHidden), attribute_text("direction", direction)},
             "com.microsoft")};
    model.graph.outputs = {value("y", F32, {}), value("y_h", F32, {}), value("y_c", F32, {})};
    Imported imported = import_model(model);
    INFO(imported.messages);
    REQUIRE(imported.model);
    Floats all = noise(kSteps * kBatch * kIn, 1), some(all.begin(), all.begin() + 4 * kBatch * kIn);
    std::fill(all.begin() + 4 * kBatch * kIn, all.end(), 1000.0f);
    LiteralRef lens = Literal::of(DType::I32, {kBatch}, std::vector<double>{2, 4, 3});
    auto padded = run(imported, {f32({kSteps, kBatch, kIn}, {all.begin(), all.end()}), lens});
    auto plain = run(imported, {f32({4, kBatch, kIn}, {some.begin(), some.end()}), lens});
    CHECK(numbers(padded[1]) == numbers(plain[1]));
    CHECK(numbers(padded[2]) == numbers(plain[2]));
    std::vector<double> y = numbers(plain[0]);
    y.resize(numbers(padded[0]).size(), 0.0);
    CHECK(numbers(padded[0]) == y);
  }
}

TEST_CASE("a recurrent layer whose weights do not fit says what is wanted") {
  Options o;
  Model model = make_model(o, Data(o));
  model.graph.initializers[1] =
      floats("r", {1, 4 * kHidden, kHidden + 1}, noise(4 * kHidden * (kHidden + 1), 3));
  Imported imported = import_model(model);
  CHECK(!imported.model);
  CHECK(contains(imported.messages, "hidden_size is 6"));
}

TEST_CASE("a recurrent layer wants features whose number is known") {
  Options o;
  Data data(o);
  Model model = make_model(o, data);
  // One more node in front, whose result has as many features as there are true elements.
  model.graph.inputs.push_back(value("mask", Bool, {kIn}));
  model.graph.nodes.insert(model.graph.nodes.begin(),
                           node("Compress", {"x", "mask"}, {"some"}, {attribute("axis", 2)}));
  model.graph.nodes[1] = node(o.op, {"some", "w", "r", "b"}, {"y"}, attributes(o));
  model.graph.outputs = {Message().text(1, "y")};
  Imported imported = import_model(model);
  CHECK(!imported.model);
  CHECK(contains(imported.messages, "does not support symbolic dim"));
}
