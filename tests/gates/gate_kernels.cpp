// See gate_kernels.h.
#include "tests/gates/gate_kernels.h"

#include "compiler/graph/composites.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"
#include "compiler/lower/contraction/contraction.h"
#include "compiler/memory/arena.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/winograd/plan.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

namespace firn::test {
namespace {

using Dims = std::vector<int64_t>;

std::string join(const Dims& values, const char* between) {
  std::string text;
  for (int64_t value : values) text += (text.empty() ? "" : between) + std::to_string(value);
  return text;
}

std::string f32(const Dims& dims) {
  return "f32[" + join(dims, ",") + "]";
}

// `text` with constants <#w> and <#b>.
std::unique_ptr<Module> parse(const std::string& text, const Dims& weights, const Dims& bias) {
  auto module = parse_module("gate.hlo", text, {{"w", random_literal(weights)}, {"b", random_literal(bias)}});
  if (!module) FAIL(module.error().message << "\n" << text);
  if (Result result = verify(**module); !result) FAIL(result.error().message << "\n" << text);
  return std::move(*module);
}

struct Convolution {
  int64_t channels, filters, extent;
  Dims kernel;
  int64_t stride = 1;
  bool depthwise = false;
  bool plain_input = false, plain_result = false; // rather than channels in blocks
};

// The convolution, then bias and activation.
std::unique_ptr<Module> convolution_module(const Convolution& c, int block) {
  Dims in{1, c.channels}, out{1, c.filters}, weights{c.filters, c.depthwise ? 1 : c.channels}, order{0, 1};
  std::string pads, strides;
  for (int64_t taps : c.kernel) {
    int64_t pad = taps / 2;
    in.push_back(c.extent);
    out.push_back((c.extent + 2 * pad - taps) / c.stride + 1);
    weights.push_back(taps);
    order.push_back(static_cast<int64_t>(order.size()));
    pads += (pads.empty() ? "" : "x") + std::to_string(pad) + "_" + std::to_string(pad);
    strides += (strides.empty() ? "" : "x") + std::to_string(c.stride);
  }
  std::string layout = "{" + join(order, ",") + ":1x" + std::to_string(block) + "}";
  std::string x = f32(in) + (c.plain_input ? "" : layout), y = f32(out) + (c.plain_result ? "" : layout);
  std::string w = f32(weights), b = f32({c.filters});
  std::string text =
      "module @m {\n func @main(%x: " + f32(in) + ") -> (" + f32(out) + ") {\n %xb = copy %x : " + x +
      "\n %w = constant <#w> : " + w + "\n %b = constant <#b> : " + b +
      "\n %f = fusion %xb, %w, %b {kind = contraction} region(%p: " + x + ", %q: " + w + ", %v: " + b +
      ") {\n %c = convolution %p, %q {window = " + join(c.kernel, "x") + " pad " + pads + " stride " +
      strides + ", groups = " + std::to_string(c.depthwise ? c.channels : 1) + "} : " + y +
      "\n %s = broadcast_in_dim %v {dims = [1]} : " + y + "\n %a = add %c, %s : " + y +
      "\n %t = maximum %a, %s : " + y + "\n return %t\n } : " + y + "\n %r = copy %f : " + f32(out) +
      "\n return %r\n }\n}\n";
  return parse(text, weights, {c.filters});
}

// x [m, k] times constant [k, n], plus bias.
std::unique_ptr<Module> dot_module(int64_t m, int64_t n, int64_t k) {
  std::string x = f32({m, k}), w = f32({k, n}), b = f32({n}), y = f32({m, n});
  std::string text =
      "module @m {\n func @main(%x: " + x + ") -> (" + y + ") {\n %w = constant <#w> : " + w +
      "\n %b = constant <#b> : " + b + "\n %r = fusion %x, %w, %b {kind = contraction} region(%p: " + x +
      ", %q: " + w + ", %v: " + b +
      ") {\n %d = dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : " +
      y + "\n %s = broadcast_in_dim %v {dims = [1]} : " + y + "\n %a = add %d, %s : " + y +
      "\n return %a\n } : " + y + "\n return %r\n }\n}\n";
  return parse(text, {k, n}, {n});
}

// An LSTM of `hidden` units on an input whose products are there already.
std::unique_ptr<Module> lstm_module(int64_t steps, int64_t hidden) {
  auto module = std::make_unique<Module>("m");
  Region& body = module->add_function("main").body();
  GraphBuilder b(body);
  auto input = [&](const char* name, std::vector<Dim> dims) {
    return body.add_parameter(Type::tensor(DType::F32, std::move(dims)), name)->result();
  };
  RecurrentOperands o;
  o.x = input("x", {steps, 1, 4 * hidden});
  o.r = b.constant(random_literal({4 * hidden, hidden}));
  o.h0 = input("h0", {1, hidden});
  o.c0 = input("c0", {1, hidden});
  body.set_results({make_lstm(b, o, {})->result(0)});
  return module;
}

GateKernel convolution(const std::string& name, const Convolution& c) {
  int64_t columns = c.depthwise ? 0 : c.plain_result ? c.extent : c.filters;
  return {name, [c](int block) { return convolution_module(c, block); }, columns};
}
GateKernel dot(int64_t m, int64_t n, int64_t k) {
  std::string name = "dot m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k);
  return {name, [=](int) { return dot_module(m, n, k); }, n};
}

// The explanation of a module's only dot or convolution.
const plan::Explanation* find_contraction(const std::vector<plan::Explanation>& explanations) {
  auto found = std::find_if(explanations.begin(), explanations.end(), [](const plan::Explanation& e) {
    return e.chosen.is<plan::ContractionPlan>() || e.chosen.is<plan::WinogradPlan>();
  });
  return found == explanations.end() ? nullptr : &*found;
}

plan::TileShape tile_of(const plan::KernelPlan& plan) {
  if (const auto* contraction = plan.get_if<plan::ContractionPlan>()) return contraction->tiling.tile;
  return plan.get_if<plan::WinogradPlan>()->tile;
}

} // namespace

LiteralRef random_literal(const std::vector<int64_t>& dims) {
  auto literal = std::make_shared<Literal>(DType::F32, dims);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> value(-0.5f, 0.5f);
  for (float& element : literal->mutable_data<float>()) element = value(random);
  return literal;
}

std::string attention_text(int64_t heads, int64_t rows, int64_t depth, const std::string& attributes) {
  std::string x = f32({heads, rows, depth}), s = f32({heads, rows, rows}), line = f32({heads, rows});
  auto reduce = [&](const char* result, const char* from, const char* initial, const char* op) {
    return std::string(" ") + result + " = reduce " + from + ", " + initial +
           " {dims = [2]} region(%a: f32[], %b: f32[]) { %o = " + op +
           " %a, %b : f32[] return %o } : " + line + "\n";
  };
  std::string softmax = " %w = composite %s {name = softmax, dim = 2} region(%p: " + s +
                        ") {\n %l = constant [-inf] : f32[]\n" + reduce("%m", "%p", "%l", "maximum") +
                        " %ms = broadcast_in_dim %m {dims = [0, 1]} : " + s +
                        "\n %d = subtract %p, %ms : " + s + "\n %e = exponential %d : " + s +
                        "\n %z = constant [0.0] : f32[]\n" + reduce("%t", "%e", "%z", "add") +
                        " %ts = broadcast_in_dim %t {dims = [0, 1]} : " + s +
                        "\n %y = divide %e, %ts : " + s + "\n return %y\n } : " + s + "\n";
  return "module @m {\n func @main(%q: " + x + ", %k: " + x + ", %v: " + x + ") -> (" + x +
         ") {\n %r = fusion %q, %k, %v {kind = attention" + attributes + "} region(%q1: " + x +
         ", %k1: " + x + ", %v1: " + x +
         ") {\n %s = dot %q1, %k1 {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} "
         ": " +
         s + "\n" + softmax +
         " %o = dot %w, %v1 {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} : " +
         x + "\n return %o\n } : " + x + "\n return %r\n }\n}\n";
}

const std::vector<GateKernel>& gate_kernels() {
  static const std::vector<GateKernel> kernels = {
      convolution("convolution 1x1", {.channels = 128, .filters = 256, .extent = 28, .kernel = {1, 1}}),
      convolution("convolution 1x1 to 24 filters",
                  {.channels = 144, .filters = 24, .extent = 56, .kernel = {1, 1}}),
      convolution("convolution 1x1 to 116 filters",
                  {.channels = 232, .filters = 116, .extent = 28, .kernel = {1, 1}}),
      convolution("convolution 1x1 stride 2",
                  {.channels = 64, .filters = 128, .extent = 28, .kernel = {1, 1}, .stride = 2}),
      convolution("convolution 3x3 few channels",
                  {.channels = 3, .filters = 32, .extent = 64, .kernel = {3, 3}, .stride = 2}),
      convolution("convolution 5x5 one channel",
                  {.channels = 1, .filters = 32, .extent = 64, .kernel = {5, 5}}),
      convolution("convolution 16 one channel",
                  {.channels = 1, .filters = 128, .extent = 1000, .kernel = {16}, .stride = 8}),
      convolution(
          "convolution 7x7 of an image",
          {.channels = 3, .filters = 64, .extent = 112, .kernel = {7, 7}, .stride = 2, .plain_input = true}),
      convolution("convolution 5x5 to few channels", {.channels = 32,
                                                      .filters = 2,
                                                      .extent = 64,
                                                      .kernel = {5, 5},
                                                      .plain_input = true,
                                                      .plain_result = true}),
      convolution("convolution 3x3 stride 2",
                  {.channels = 64, .filters = 96, .extent = 28, .kernel = {3, 3}, .stride = 2}),
      convolution("convolution 3x3", {.channels = 64, .filters = 64, .extent = 28, .kernel = {3, 3}}),
      convolution("convolution 5x5",
                  {.channels = 32, .filters = 48, .extent = 20, .kernel = {5, 5}, .stride = 2}),
      convolution("convolution 3", {.channels = 64, .filters = 64, .extent = 100, .kernel = {3}}),
      convolution("convolution 3 stride 2",
                  {.channels = 64, .filters = 64, .extent = 100, .kernel = {3}, .stride = 2}),
      convolution("depthwise 3x3",
                  {.channels = 96, .filters = 96, .extent = 56, .kernel = {3, 3}, .depthwise = true}),
      convolution(
          "depthwise 3x3 stride 2",
          {.channels = 96, .filters = 96, .extent = 56, .kernel = {3, 3}, .stride = 2, .depthwise = true}),
      convolution("depthwise 5x5",
                  {.channels = 96, .filters = 96, .extent = 28, .kernel = {5, 5}, .depthwise = true}),
      convolution("depthwise 5x5 two tiles a line",
                  {.channels = 96, .filters = 96, .extent = 14, .kernel = {5, 5}, .depthwise = true}),
      dot(128, 768, 768),
      dot(197, 192, 192),
      dot(1, 1024, 1024),
      {"attention 12x128x64", [](int) { return parse(attention_text(12, 128, 64, ""), {1}, {1}); }},
      {"lstm 128", [](int) { return lstm_module(16, 128); }},
  };
  return kernels;
}

const std::vector<std::string>& gate_cpus() {
  static const std::vector<std::string> cpus = {"x86-64", "x86-64-v3", "x86-64-v4", "znver4",
                                                "sapphirerapids"};
  return cpus;
}

static std::string place_and_emit(kernel::Program& program, const Machine& target) {
  memory::plan_arena(program);
  memory::place_constants(program);
  auto assembly = codegen::emit_assembly(program, options_for(target));
  if (!assembly) FAIL(assembly.error().message);
  return std::move(*assembly);
}

std::string assembly_of(const std::string& text, const Machine& target) {
  auto module = parse_module("gate.hlo", text);
  if (!module) FAIL(module.error().message);
  auto program = firn::test::plan_and_lower(**module, {target});
  if (!program) FAIL(program.error().message);
  return place_and_emit(*program, target);
}

GateCode compile_gate_kernel(const GateKernel& kernel, const std::string& cpu, const std::string& schedule) {
  Machine target = target_of("x86_64-linux-gnu", cpu);
  auto module = kernel.module(target.cpu.channel_block());
  firn::test::LoweringSetup options;
  options.target = target;
  options.goals.winograd = firn::Winograd::All;
  std::vector<plan::Explanation> explanations;
  options.explanations = &explanations;
  std::optional<plan::ScheduleDatabase> database;
  if (!schedule.empty()) { // the signature is what lowering says it is
    REQUIRE(firn::test::plan_and_lower(*module, options));
    const plan::Explanation* own = find_contraction(explanations);
    REQUIRE(own);
    auto parsed = plan::ScheduleDatabase::parse("schedule", "firn-schedules 1\n" + own->signature + " => " +
                                                                schedule + "\n");
    REQUIRE(parsed);
    database = std::move(*parsed);
    options.schedules = &*database;
    explanations.clear();
  }
  auto program = firn::test::plan_and_lower(*module, options);
  if (!program) FAIL(program.error().message);
  std::string assembly = place_and_emit(*program, target);
  auto busiest = std::max_element(program->kernels.begin(), program->kernels.end(),
                                  [](const auto& a, const auto& b) { return a->flops < b->flops; });
  GateCode code;
  code.algorithm = (*busiest)->algorithm;
  // Without FMAs, sums change registers: assembly does not tell tiles.
  const plan::Explanation* contraction = find_contraction(explanations);
  if (contraction && kernel.columns > 0 && target.cpu.has_fma) {
    plan::TileShape tile = tile_of(contraction->chosen);
    plan::ColumnGroups groups = plan::column_groups(kernel.columns, tile);
    // Groups in streams are computed as one tile of all their columns.
    const auto* tiles = contraction->chosen.get_if<plan::ContractionPlan>();
    int streams = tiles ? tiles->tiling.tile.column_streams : 1;
    code.tile = {tile.rows, groups.full_groups == 0 ? groups.rest_registers : tile.vectors * streams,
                 tile.accumulator_splits, groups.rest_registers};
  }
  for (AssemblyLoop& loop : innermost_loops(assembly))
    if (loop.function == "firn.k." + (*busiest)->name) code.loops.push_back(std::move(loop));
  return code;
}

} // namespace firn::test
