// See gate_networks.h.
#include "tests/gates/gate_networks.h"

#include "compiler/graph/composites.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/lower/lower.h"
#include "compiler/memory/arena.h"
#include "compiler/passes/pass.h"
#include "tests/codegen/model_object.h"
#include "tests/gates/gate_kernels.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

namespace firn::test {
namespace {

using Dims = std::vector<int64_t>;

// Writes a network from its input to its outputs.
class NetworkBuilder {
public:
  NetworkBuilder()
      : module_(std::make_unique<Module>("m")), body_(module_->add_function("main").body()), b(body_) {}

  Value input(const Dims& dims) {
    return body_
        .add_parameter(Type::tensor(DType::F32, {dims.begin(), dims.end()}), "x" + std::to_string(inputs_++))
        ->result();
  }
  Value weights(const Dims& dims) { return b.constant(random_literal(dims)); }
  std::unique_ptr<Module> finish(std::vector<Value> results) {
    body_.set_results(std::move(results));
    return std::move(module_);
  }

  // With a bias, as batch norms leave one.
  Value convolution(Value x, int64_t filters, const std::vector<WindowDim>& window, int64_t groups = 1) {
    Dims kernel{filters, x.dim(1) / groups};
    for (const WindowDim& dim : window) kernel.push_back(dim.size);
    Value y =
        b.op(Opcode::Convolution, {x, weights(kernel)}, {{"groups", groups}, {"window", Window{window}}});
    return b.binary(Opcode::Add, y, b.reshape(weights({filters}), per_channel(y)));
  }
  Value pointwise(Value x, int64_t filters) {
    return convolution(x, filters, std::vector<WindowDim>(static_cast<size_t>(x.type().rank() - 2)));
  }
  static WindowDim same(int64_t size, int64_t stride = 1, int64_t dilation = 1) {
    int64_t pad = size / 2 * dilation;
    return {.size = size, .stride = stride, .pad_low = pad, .pad_high = pad, .dilation = dilation};
  }
  static WindowDim transposed(int64_t size, int64_t stride) {
    int64_t pad = size - 1 - (size - stride) / 2;
    return {.size = size, .pad_low = pad, .pad_high = pad, .input_dilation = stride};
  }
  Value relu(Value x) { return b.binary(Opcode::Maximum, x, b.splat_like(x, 0)); }
  Value relu6(Value x) { return b.op(Opcode::Clamp, {b.splat_like(x, 0), x, b.splat_like(x, 6)}); }
  Value dense(Value x, int64_t columns) {
    int last = x.type().rank() - 1;
    Value y = b.op(Opcode::Dot, {x, weights({x.dim(last), columns})},
                   {{"lhs_batch", Dims{}},
                    {"rhs_batch", Dims{}},
                    {"lhs_contract", Dims{last}},
                    {"rhs_contract", Dims{0}}});
    return b.binary(Opcode::Add, y, weights({columns}));
  }
  Value layer_norm(Value x) {
    int last = x.type().rank() - 1;
    return make_layer_norm(b, x, weights({x.dim(last)}), weights({x.dim(last)}), last, 1e-5, DType::F32)
        ->result();
  }

private:
  std::vector<Dim> per_channel(Value y) const {
    std::vector<Dim> dims(static_cast<size_t>(y.type().rank()), Dim(1));
    dims[1] = Dim(y.dim(1));
    return dims;
  }
  std::unique_ptr<Module> module_;
  Region& body_;
  int inputs_ = 0;

public:
  GraphBuilder b;
};

using Net = NetworkBuilder;
using Activation = std::function<Value(Net&, Value)>;

// Inverted residuals: on large maps strips, on small ones a kernel per member; squeezed by fused sums.
std::unique_ptr<Module> inverted_residuals(const Activation& activation) {
  Net n;
  auto inverted = [&](Value x, int64_t expanded, int64_t filters, int64_t taps, int64_t stride,
                      bool squeezes) {
    Value y = activation(n, n.pointwise(x, expanded));
    y = activation(n,
                   n.convolution(y, expanded, {Net::same(taps, stride), Net::same(taps, stride)}, expanded));
    if (squeezes) {
      Value sum = n.b.reduce(Opcode::Add, y, {2, 3}, true);
      Value gate = n.b.unary(Opcode::Logistic, n.pointwise(activation(n, n.pointwise(sum, 8)), expanded));
      y = n.b.binary(Opcode::Multiply, y, gate);
    }
    y = n.pointwise(y, filters);
    return stride == 1 && filters == x.dim(1) ? n.b.binary(Opcode::Add, x, y) : y;
  };
  Value x = activation(n, n.convolution(n.input({1, 3, 224, 224}), 32, {Net::same(3, 2), Net::same(3, 2)}));
  x = activation(n, n.convolution(x, 32, {Net::same(3), Net::same(3)}, 32));
  x = inverted(n.pointwise(x, 16), 96, 24, 3, 2, false);
  x = inverted(x, 144, 24, 3, 1, false);
  x = inverted(x, 144, 24, 5, 1, true);
  x = inverted(x, 144, 40, 5, 2, true);
  x = inverted(x, 120, 40, 3, 1, true);
  x = inverted(x, 96, 40, 5, 2, false);
  x = inverted(x, 96, 40, 5, 1, false);
  x = inverted(x, 96, 40, 3, 1, false);
  x = inverted(x, 96, 48, 3, 2, false);
  x = inverted(x, 96, 48, 5, 1, true);
  return n.finish({activation(n, n.pointwise(x, 96))});
}

// A detector's: Winograd with SiLU and residuals, pooling of pooling, upsampling, boxes of distributions.
std::unique_ptr<Module> detector() {
  Net n;
  auto block = [&](Value x, int64_t filters, int64_t taps, int64_t stride) {
    return make_silu(n.b, n.convolution(x, filters, {Net::same(taps, stride), Net::same(taps, stride)}));
  };
  auto bottleneck = [&](Value x) {
    return n.b.binary(Opcode::Add, x, block(block(x, x.dim(1), 3, 1), x.dim(1), 3, 1));
  };
  Value x = block(block(n.input({1, 3, 160, 160}), 16, 3, 2), 32, 3, 2);
  Value fine = block(x, 32, 1, 1);
  x = n.b.concatenate({fine, bottleneck(bottleneck(slice_dim(n.b, fine, 1, 16, 32)))}, 1);
  x = bottleneck(block(x, 64, 3, 2));
  Value pooled = block(x, 32, 1, 1);
  std::vector<Value> parts{pooled};
  for (int i = 0; i < 2; ++i)
    parts.push_back(n.b.reduce_window(Opcode::Maximum, parts.back(), {{{}, {}, Net::same(5), Net::same(5)}}));
  x = block(n.b.concatenate(parts, 1), 64, 1, 1);
  Value doubled = n.b.reshape(x, {1, 64, 20, 1, 20, 1});
  doubled = n.b.reshape(n.b.broadcast_to(doubled, {1, 64, 20, 2, 20, 2}), {1, 64, 40, 40});
  x = bottleneck(block(n.b.concatenate({doubled, fine}, 1), 32, 1, 1));
  Value boxes = n.b.reshape(n.pointwise(block(x, 64, 3, 1), 64), {1, 4, 16, 1600});
  Value shares = make_softmax(n.b, n.b.transpose(boxes, {0, 2, 1, 3}), 1);
  Value scores = n.b.unary(Opcode::Logistic, n.pointwise(x, 80));
  return n.finish({n.pointwise(shares, 1), scores});
}

// Down and up again: pooling, transposed convolutions, Winograd of all sizes, few filters at the end.
std::unique_ptr<Module> encoder_decoder() {
  Net n;
  auto twice = [&](Value x, int64_t filters) {
    for (int i = 0; i < 2; ++i) x = n.relu(n.convolution(x, filters, {Net::same(3), Net::same(3)}));
    return x;
  };
  Value x = twice(n.input({1, 1, 96, 96}), 16), fine = x;
  x = twice(
      n.b.reduce_window(Opcode::Maximum, x, {{{}, {}, {.size = 2, .stride = 2}, {.size = 2, .stride = 2}}}),
      32);
  x = n.b.reduce_window(Opcode::Add, x, {{{}, {}, Net::same(3, 2), Net::same(3, 2)}});
  x = n.relu(n.convolution(x, 64, {Net::same(5), Net::same(5)}));
  x = twice(x, 40);
  x = n.relu(n.convolution(x, 32, {Net::transposed(4, 2), Net::transposed(4, 2)}));
  x = n.convolution(x, 16, {Net::transposed(2, 2), Net::transposed(2, 2)});
  x = n.b.concatenate({x, fine}, 1);
  x = n.relu(n.convolution(x, 16, {Net::same(3), Net::same(3)}, 8));
  return n.finish({n.convolution(x, 2, {Net::same(3), Net::same(3)}), make_gelu(n.b, twice(x, 16), false)});
}

// Over time: dilated depthwise convolutions between norms, a learned filter bank and its inverse.
std::unique_ptr<Module> time_domain() {
  Net n;
  Value x = n.relu(n.convolution(n.input({1, 1, 4000}), 64, {{.size = 16, .stride = 8}})), spectrum = x;
  for (int64_t dilation : {1, 2, 8, 64}) {
    auto norm = [&](Value v) {
      Value slope = n.b.binary(Opcode::Multiply, v, n.weights({1}));
      v = n.b.select(n.b.compare("lt", v, n.b.splat_like(v, 0)), slope, v);
      return make_group_norm(n.b, v, n.weights({v.dim(1)}), n.weights({v.dim(1)}), 1, 1e-5, DType::F32);
    };
    Value y = norm(n.pointwise(x, 96));
    y = norm(n.convolution(y, 96, {Net::same(3, 1, dilation)}, 96));
    x = n.b.binary(Opcode::Add, x, n.pointwise(y, 64));
  }
  x = n.b.unary(Opcode::Tanh, n.convolution(x, 64, {Net::same(5)}));
  x = n.b.binary(Opcode::Multiply, n.b.unary(Opcode::Logistic, n.convolution(x, 64, {Net::same(3)})),
                 spectrum);
  return n.finish({n.convolution(x, 1, {Net::transposed(16, 8)})});
}

// A layer over `rows` positions, and for one row over keys and values of earlier ones.
std::unique_ptr<Module> transformer(int64_t rows) {
  Net n;
  constexpr int64_t kWidth = 96, kHeads = 3, kDepth = kWidth / kHeads;
  Value x = n.input({rows, kWidth}), normed = n.layer_norm(x);
  auto heads = [&](Value v) {
    return n.b.transpose(n.b.reshape(v, {Dim(rows), Dim(kHeads), Dim(kDepth)}), {1, 0, 2});
  };
  auto earlier = [&](Value v) {
    return rows > 1 ? heads(v) : n.b.concatenate({n.input({kHeads, 127, kDepth}), heads(v)}, 1);
  };
  Value query = heads(n.dense(normed, kWidth)), key = earlier(n.dense(normed, kWidth)),
        value = earlier(n.dense(normed, kWidth));
  Value scores = n.b.op(
      Opcode::Dot, {query, key},
      {{"lhs_batch", Dims{0}}, {"rhs_batch", Dims{0}}, {"lhs_contract", Dims{2}}, {"rhs_contract", Dims{2}}});
  scores = n.b.binary(Opcode::Multiply, scores, n.b.splat_like(scores, 0.125));
  Value mixed = n.b.op(
      Opcode::Dot, {make_softmax(n.b, scores, 2), value},
      {{"lhs_batch", Dims{0}}, {"rhs_batch", Dims{0}}, {"lhs_contract", Dims{2}}, {"rhs_contract", Dims{1}}});
  mixed = n.b.reshape(n.b.transpose(mixed, {1, 0, 2}), {Dim(rows), Dim(kWidth)});
  x = n.b.binary(Opcode::Add, x, n.dense(mixed, kWidth));
  Value hidden = make_gelu(n.b, n.dense(n.layer_norm(x), 2 * kWidth), rows == 1);
  x = n.b.binary(Opcode::Add, x, n.dense(hidden, kWidth));
  return n.finish({make_softmax(n.b, n.dense(n.layer_norm(x), 100), 1)});
}

// Products that wait for their weights, of odd widths too.
std::unique_ptr<Module> few_rows() {
  Net n;
  Value x = n.relu(n.dense(n.input({1, 512}), 1024));
  return n.finish({n.dense(x, 1000), n.dense(n.input({3, 512}), 100)});
}

std::unique_ptr<Module> recurrent(int64_t steps) {
  Net n;
  constexpr int64_t kHidden = 96;
  Value x = n.input({steps, 1, 64});
  auto operands = [&](int64_t gates) {
    RecurrentOperands o;
    o.x = x;
    o.w = n.weights({gates * kHidden, x.dim(2)});
    o.r = n.weights({gates * kHidden, kHidden});
    o.b = n.weights({gates * kHidden});
    o.h0 = n.input({1, kHidden});
    return o;
  };
  RecurrentOperands lstm = operands(4);
  lstm.c0 = n.input({1, kHidden});
  x = make_lstm(n.b, lstm, {})->result(0);
  x = make_gru(n.b, operands(3), {})->result(0);
  RecurrentOperands gru = operands(3);
  gru.b_r = n.weights({kHidden});
  x = make_gru(n.b, gru, {.linear_before_reset = true})->result(0);
  return n.finish({make_rnn(n.b, operands(1), {})->result(0)});
}

} // namespace

const std::vector<GateNetwork>& gate_networks() {
  static const std::vector<GateNetwork> networks = {
      {"inverted residuals, clipped",
       [] { return inverted_residuals([](Net& n, Value x) { return n.relu6(x); }); }},
      {"inverted residuals, SiLU",
       [] { return inverted_residuals([](Net& n, Value x) { return make_silu(n.b, x); }); }},
      {"inverted residuals, hard swish",
       [] { return inverted_residuals([](Net& n, Value x) { return make_hard_swish(n.b, x); }); }},
      {"detector", detector},
      {"encoder and decoder", encoder_decoder},
      {"time domain", time_domain},
      {"transformer", [] { return transformer(50); }},
      {"transformer's step", [] { return transformer(1); }},
      {"recurrent", [] { return recurrent(8); }},
      {"recurrent's step", [] { return recurrent(1); }},
      {"step over weights of 4 bits", few_rows, firn::WeightType::I4},
      {"step over weights of 8 bits", few_rows, firn::WeightType::I8},
  };
  return networks;
}

std::string compile_network(const GateNetwork& network, const std::string& cpu) {
  Machine target = target_of("x86_64-linux-gnu", cpu);
  auto module = network.module();
  Goals goals{.weight_type = network.weight_type, .winograd = Winograd::All};
  PipelineRun run{PassOptions(goals, &target)};
  if (Result done = run_passes(*module, default_pipeline(*module, /*for_target=*/true), run); !done)
    FAIL(done.error().message);
  auto program = firn::test::plan_and_lower(*module, {target, {.winograd = Winograd::All}});
  if (!program) FAIL(program.error().message);
  memory::place_constants(*program);
  memory::plan_arena(*program);
  kernel::KernelPipelineRun kernels{kernel::KernelPassOptions(kDefaultGoals, &target)};
  if (Result done =
          run_kernel_passes(*program, kernel::default_kernel_pipeline(/*for_target=*/true), kernels);
      !done)
    FAIL(done.error().message);
  auto assembly = codegen::emit_assembly(*program, options_for(target));
  if (!assembly) FAIL(assembly.error().message);
  return std::move(*assembly);
}

} // namespace firn::test
