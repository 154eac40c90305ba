// Recurrent layers as kernels against their reference bodies: all kinds and options, sizes that fill no
// vector.
#include "compiler/graph/composites.h"
#include "compiler/plan/plan_function.h"
#include "compiler/plan/recurrent/plan.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>
#include <random>

using namespace firn;
using namespace firn::test;

namespace {

struct Case {
  const char* kind = "lstm";
  int64_t steps = 4, batch = 1, in = 7, hidden = 21;
  bool projected = false, constant_weights = true, peepholes = false, lens = false;
  bool narrow = false; // weights are bytes with scales
  RecurrentOptions options = {};
  bool only_last = false; // y is not used
  std::string plan = "";  // the layer's, if it is not the cost model's
  std::vector<std::string> cpus = {"x86-64", "x86-64-v3", "native"};
  int threads = 1;
  // Steps and entries of the batch that vary from none or one up to the bounds above, in each run.
  std::vector<std::pair<int64_t, int64_t>> runs = {};
};

LiteralRef weights(std::vector<int64_t> dims, std::mt19937& random) {
  auto literal = std::make_shared<Literal>(DType::F32, dims);
  std::uniform_real_distribution<float> value(-0.2f, 0.2f);
  auto* data = reinterpret_cast<float*>(literal->mutable_bytes().data());
  for (int64_t i = 0; i < literal->num_elements(); ++i) data[i] = value(random);
  return literal;
}

LiteralRef bytes(std::vector<int64_t> dims, std::mt19937& random) {
  auto literal = std::make_shared<Literal>(DType::I8, dims);
  std::uniform_int_distribution<int> value(-128, 127);
  for (int8_t& byte : literal->mutable_data<int8_t>()) byte = static_cast<int8_t>(value(random));
  return literal;
}
// Scales that make rows of bytes about as large as other weights.
LiteralRef scales(int64_t rows, std::mt19937& random) {
  auto literal = std::make_shared<Literal>(DType::F32, std::vector{rows});
  std::uniform_real_distribution<float> value(0.0005f, 0.002f);
  for (float& scale : literal->mutable_data<float>()) scale = value(random);
  return literal;
}

void make_layer(const Case& c, Module& module) {
  Dim steps = c.steps, batch = c.batch;
  if (!c.runs.empty()) {
    module.symbols = {std::make_shared<Symbol>(Symbol{"steps", 0, c.steps}),
                      std::make_shared<Symbol>(Symbol{"batch", 0, c.batch})};
    steps = IntExpr::symbol(module.symbols[0]);
    batch = IntExpr::symbol(module.symbols[1]);
  }
  Function& main = module.add_function("main");
  GraphBuilder b(main.body());
  std::mt19937 random(1);
  auto input = [&](const char* name, DType dtype, std::vector<Dim> dims) {
    return main.body().add_parameter(Type::tensor(dtype, std::move(dims)), name)->result();
  };
  auto weight = [&](const char* name, std::vector<int64_t> dims) {
    if (c.constant_weights) return b.constant(weights(dims, random));
    return input(name, DType::F32, std::vector<Dim>(dims.begin(), dims.end()));
  };
  std::string kind = c.kind;
  int64_t h = c.hidden, gates = (kind == "lstm" ? 4 : kind == "gru" ? 3 : 1) * h;
  RecurrentOperands o;
  o.x = input("x", DType::F32, {steps, batch, c.projected ? gates : c.in});
  auto matrix = [&](const char* name, int64_t columns, Value& of_rows) {
    if (!c.narrow) return weight(name, {gates, columns});
    of_rows = b.constant(scales(gates, random));
    return c.constant_weights ? b.constant(bytes({gates, columns}, random))
                              : input(name, DType::I8, {gates, columns});
  };
  if (!c.projected) o.w = matrix("w", c.in, o.w_scales), o.b = weight("b", {gates});
  o.r = matrix("r", h, o.r_scales);
  o.h0 = input("h0", DType::F32, {batch, h});
  if (kind == "lstm") o.c0 = input("c0", DType::F32, {batch, h});
  if (c.peepholes) o.peepholes = weight("p", {3 * h});
  if (c.options.linear_before_reset) o.b_r = weight("b_r", {h});
  if (c.lens) o.lens = input("lens", DType::I32, {batch});
  Instruction* layer = kind == "lstm"  ? make_lstm(b, o, c.options)
                       : kind == "gru" ? make_gru(b, o, c.options)
                                       : make_rnn(b, o, c.options);
  std::vector<Value> results;
  for (int i = c.only_last ? 1 : 0; i < layer->num_results(); ++i) results.push_back(layer->result(i));
  if (!c.plan.empty()) layer->attributes().set("plan", c.plan);
  main.body().set_results(results);
}

void expect_layer(const Case& c) {
  INFO(c.kind << " steps " << c.steps << " batch " << c.batch << " in " << c.in << " hidden " << c.hidden
              << (c.narrow ? " narrow " : " ") << c.plan);
  Module module("test");
  make_layer(c, module);
  std::vector<std::map<std::string, int64_t>> extents;
  for (auto [steps, batch] : c.runs) extents.push_back({{"steps", steps}, {"batch", batch}});
  expect_lowered_module(module, {.tolerance = 2e-6,
                                 .ranges = {{"w", {-0.4, 0.4}}, {"r", {-0.4, 0.4}}, {"b", {-0.4, 0.4}}},
                                 .cpus = c.cpus,
                                 .extents = extents,
                                 .threads = c.threads});
}

} // namespace

TEST_CASE("recurrent layers of all kinds", "[lower]") {
  for (const char* kind : {"lstm", "gru", "rnn"}) {
    expect_layer({.kind = kind});
    expect_layer({.kind = kind, .steps = 1, .hidden = 64});
    expect_layer({.kind = kind, .steps = 3, .batch = 5, .hidden = 40});
    expect_layer({.kind = kind, .projected = true});
    expect_layer({.kind = kind, .batch = 2, .constant_weights = false});
    expect_layer({.kind = kind, .batch = 3, .lens = true, .options = {.reverse = true}});
  }
}

TEST_CASE("recurrent layers whose weights are bytes", "[lower]") {
  for (const char* kind : {"lstm", "gru", "rnn"}) {
    expect_layer({.kind = kind, .narrow = true});
    expect_layer({.kind = kind, .steps = 1, .hidden = 64, .narrow = true});
    expect_layer({.kind = kind, .steps = 3, .batch = 5, .hidden = 40, .projected = true, .narrow = true});
    expect_layer({.kind = kind, .batch = 2, .hidden = 130, .constant_weights = false, .narrow = true});
    expect_layer({.kind = kind, .batch = 3, .lens = true, .narrow = true, .options = {.reverse = true}});
    expect_layer({.kind = kind, .steps = 1, .batch = 4, .in = 1, .hidden = 3, .narrow = true});
    for (const char* plan : {"recurrent tile 3x2 accumulators 12 prefetch_distance 256",
                             "recurrent tile 5x3 prefetch_distance 4 alternate_direction rolled_cells"})
      expect_layer({.kind = kind, .steps = 3, .batch = 5, .narrow = true, .plan = plan});
    expect_layer({.kind = kind, .steps = 5, .batch = 7, .hidden = 100, .narrow = true, .threads = 3});
    expect_layer({.kind = kind, .batch = 5, .narrow = true, .runs = {{4, 5}, {0, 1}, {3, 2}}});
  }
  expect_layer({.kind = "gru", .hidden = 40, .narrow = true, .options = {.linear_before_reset = true}});
  for (int64_t steps : {1, 3})
    expect_layer({.steps = steps,
                  .batch = 2,
                  .narrow = true,
                  .cpus = {"cortex-a53", "neoverse-n1", "cortex-m4", "generic-rv64"}});
}

TEST_CASE("recurrent layers with residuals", "[lower]") {
  auto check = [](const char* kind, bool is_linear) {
    RecurrentOptions options{.linear_before_reset = is_linear, .residuals = true};
    expect_layer({.kind = kind, .options = options});
    expect_layer({.kind = kind, .steps = 1, .batch = 9, .hidden = 35, .projected = true, .options = options});
    expect_layer(
        {.kind = kind, .batch = 5, .lens = true, .options = options, .runs = {{4, 5}, {0, 1}, {3, 2}}});
    expect_layer({.kind = kind, .steps = 5, .hidden = 100, .options = options, .threads = 3});
    for (const char* plan : {"recurrent tile 3x2 accumulators 12", "recurrent tile 2x1 rolled_cells"})
      expect_layer({.kind = kind, .steps = 3, .batch = 5, .options = options, .plan = plan});
  };
  for (const char* kind : {"lstm", "gru", "rnn"}) check(kind, /*is_linear=*/false);
  check("gru", /*is_linear=*/true);
}

TEST_CASE("recurrent layers of odd sizes", "[lower]") {
  for (int64_t hidden : {1, 3, 8, 31, 130})
    expect_layer({.steps = 2, .in = 1, .hidden = hidden, .only_last = true});
  expect_layer({.kind = "gru", .steps = 1, .in = 2, .hidden = 1});
  expect_layer({.kind = "gru",
                .steps = 1,
                .batch = 9,
                .in = 3,
                .hidden = 35,
                .options = {.linear_before_reset = true}});
  expect_layer({.kind = "rnn", .steps = 2, .batch = 17, .in = 1, .hidden = 150});
}

TEST_CASE("recurrent layers follow plans written by hand", "[lower][plan]") {
  for (const char* kind : {"lstm", "gru", "rnn"})
    for (const char* plan :
         {"recurrent tile 1x1", "recurrent tile 1x1 accumulators 64 alternate_direction",
          "recurrent tile 2x1 rolled_cells", "recurrent tile 3x2 accumulators 12 prefetch_distance 256",
          "recurrent tile 5x3 prefetch_distance 4 alternate_direction rolled_cells"}) {
      expect_layer({.kind = kind, .steps = 3, .batch = 5, .hidden = 21, .plan = plan});
      expect_layer({.kind = kind, .steps = 1, .batch = 5, .hidden = 21, .projected = true, .plan = plan});
    }
  auto error = [](const char* plan) {
    Module module("test");
    make_layer({.batch = 2, .constant_weights = false, .plan = plan}, module);
    return lowering_error(print_module(module));
  };
  CHECK(error("recurrent tile 3x1").find("at most the 2 rows of the batch") != std::string::npos);
  CHECK(error("recurrent tile 1x1 prefetch_distance 6").find("weights of 4 bytes") != std::string::npos);
  CHECK(error("recurrent tile 1x1 accumulators 2000").find("at most 1024 sums") != std::string::npos);
  CHECK(error("recurrent tile 2x1 items 3").find("items are whole tiles") != std::string::npos);
  CHECK(error("recurrent tile 2x1 items 4").find("items are whole tiles") != std::string::npos);
  CHECK(error("recurrent tile 1x1 alternate_direction cooperative").find("do not alternate") !=
        std::string::npos);
  CHECK(error("recurrent tile 1x8 cooperative").find("one block") != std::string::npos);
  CHECK(error("attention").find("no fusion of attention") != std::string::npos);
}

TEST_CASE("threads share recurrent layers, with equal bits", "[lower][plan]") {
  for (const char* kind : {"lstm", "gru", "rnn"})
    for (int64_t steps : {1, 2, 5})
      for (int64_t batch : {1, 7}) {
        Case c{
            .kind = kind, .steps = steps, .batch = batch, .hidden = 75, .cpus = {"x86-64-v3"}, .threads = 3};
        c.options.reverse = steps == 2;
        for (const char* plan :
             {"recurrent tile 1x1 cooperative", "recurrent tile 1x3 accumulators 12 cooperative",
              "recurrent tile 1x2 items 1", "recurrent tile 2x2 alternate_direction rolled_cells items 4",
              "recurrent tile 3x1 rolled_cells cooperative", "recurrent tile 3x1 items 3"}) {
          c.plan = plan;
          if (batch > 1 || c.plan.find("tile 1") != std::string::npos) expect_layer(c);
        }
      }
  expect_layer({.kind = "gru",
                .batch = 3,
                .hidden = 48,
                .lens = true,
                .options = {.linear_before_reset = true},
                .plan = "recurrent tile 2x1 cooperative",
                .threads = 8});
}

TEST_CASE("recurrent layers are shared where that is worth its waits", "[lower][plan]") {
  auto plan_of = [](const Case& c, int threads, const char* cpu = "x86-64-v3") {
    Module module("test");
    make_layer(c, module);
    auto target = find_target("x86_64-linux-gnu", cpu, "");
    REQUIRE(target);
    Goals goals{.threads = threads};
    auto plans = plan::plan_function(module.main(), {*target, goals});
    REQUIRE(plans);
    for (const auto& instruction : module.main().body().instructions())
      if (const auto* plan = plans->find<plan::RecurrentPlan>(*instruction)) return *plan;
    FAIL("no plan of a recurrent layer");
    return plan::RecurrentPlan();
  };
  Case small{.steps = 50, .hidden = 64, .projected = true},
      large{.steps = 50, .hidden = 1024, .projected = true},
      wide{.steps = 50, .batch = 32, .hidden = 64, .projected = true};
  CHECK_FALSE(plan_of(small, 2).cooperative);
  CHECK(plan_of(large, 2).cooperative);
  CHECK_FALSE(plan_of(large, 1).cooperative);
  CHECK_FALSE(plan_of(wide, 2).cooperative);
  CHECK(plan_of(wide, 2).item_rows == 16);
  CHECK(plan_of(wide, 1).item_rows == 0);
}

TEST_CASE("recurrent layers of drawn sizes and operands read inside their memory", "[lower][guard]") {
  std::vector<std::string> cpus = runnable_cpus();
  for (unsigned number = 0; number < 24; ++number) {
    std::mt19937 random(number);
    auto pick = [&](std::initializer_list<int64_t> values) {
      return values.begin()[random() % values.size()];
    };
    auto flip = [&] { return random() % 2 == 0; };
    Case c;
    c.kind = number % 3 == 0 ? "lstm" : number % 3 == 1 ? "gru" : "rnn";
    c.steps = pick({1, 2, 3, 5}), c.batch = pick({1, 1, 2, 3, 7});
    c.in = pick({1, 3, 5, 17, 24}), c.hidden = pick({1, 3, 5, 7, 17, 24, 33});
    c.projected = flip(), c.constant_weights = flip(), c.lens = flip(), c.only_last = flip();
    c.peepholes = number % 3 == 0 && flip();
    c.options.reverse = flip(), c.options.linear_before_reset = number % 3 == 1 && flip();
    c.cpus = {cpus[number % cpus.size()]};
    INFO("draw " << number << " on " << c.cpus[0]);
    expect_layer(c);
  }
}

TEST_CASE("options of lstm layers", "[lower]") {
  expect_layer({.peepholes = true});
  expect_layer({.projected = true, .peepholes = true, .options = {.input_forget = true}});
  expect_layer({.batch = 2, .lens = true, .options = {.clip = 0.3}});
  expect_layer({.options = {.activations = {"hardsigmoid", "softsign", "elu"},
                            .alpha = {0.2, 0, 0.7},
                            .beta = {0.5, 0, 0}}});
}

TEST_CASE("options of gru and rnn layers", "[lower]") {
  expect_layer({.kind = "gru", .options = {.linear_before_reset = true}});
  expect_layer({.kind = "gru",
                .batch = 2,
                .projected = true,
                .lens = true,
                .options = {.linear_before_reset = true, .clip = 0.5}});
  expect_layer(
      {.kind = "gru",
       .options = {
           .reverse = true, .activations = {"sigmoid", "scaledtanh"}, .alpha = {0, 1.5}, .beta = {0, 0.5}}});
  for (const char* name : {"relu", "affine", "leakyrelu", "thresholdedrelu", "softplus"})
    expect_layer({.kind = "rnn", .options = {.activations = {name}, .alpha = {0.5}, .beta = {0.1}}});
}

TEST_CASE("a recurrent layer is one kernel", "[lower]") {
  Module module("test");
  Function& main = module.add_function("main");
  GraphBuilder b(main.body());
  std::mt19937 random(1);
  RecurrentOperands o;
  o.x = main.body().add_parameter(Type::tensor(DType::F32, {6, 1, 4}), "x")->result();
  o.h0 = main.body().add_parameter(Type::tensor(DType::F32, {1, 8}), "h")->result();
  o.c0 = main.body().add_parameter(Type::tensor(DType::F32, {1, 8}), "c")->result();
  o.w = b.constant(weights({32, 4}, random));
  o.r = b.constant(weights({32, 8}, random));
  o.b = b.constant(weights({32}, random));
  main.body().set_results({make_lstm(b, o, {})->result()});
  kernel::Program program = lower_program(module, "x86-64-v3");
  CHECK(program.kernels.size() == 1);
  CHECK(program.steps.size() == 1);
}

TEST_CASE("large recurrent layers fetch their weights ahead", "[lower]") {
  expect_layer({.kind = "gru", .steps = 2, .hidden = 200, .options = {.linear_before_reset = true}});
}

TEST_CASE("recurrent layers over steps and batches that vary", "[lower][extents]") {
  std::vector<std::pair<int64_t, int64_t>> runs = {{5, 9}, {1, 1}, {2, 2}, {4, 7},
                                                   {5, 3}, {0, 4}, {3, 0}, {1, 8}};
  for (const char* kind : {"lstm", "gru", "rnn"}) {
    Case plain{.kind = kind, .steps = 5, .batch = 9, .runs = runs};
    expect_layer(plain);
    Case reverse = plain;
    reverse.projected = reverse.lens = reverse.options.reverse = true;
    reverse.hidden = 32;
    expect_layer(reverse);
    for (const char* plan : {"recurrent tile 4x1", "recurrent tile 7x1 alternate_direction"}) {
      Case planned = plain;
      planned.plan = plan;
      planned.constant_weights = false;
      expect_layer(planned);
    }
  }
  expect_layer(
      {.kind = "gru", .steps = 5, .batch = 9, .options = {.linear_before_reset = true}, .runs = runs});
}
