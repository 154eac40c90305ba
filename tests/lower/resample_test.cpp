// Resampled images against the evaluator: dims, factors with shuffles that repeat and without, short lines,
// channels last, blocks, filters of two and four taps.
#include "compiler/graph/resample.h"
#include "tests/lower/lowered_program.h"

#include "compiler/target/machine.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

using namespace firn;
using namespace firn::test;

namespace {

// Linear interpolation with half pixels, or four taps around the same places.
ResampledDim make_dim(int dim, int64_t in, int64_t out, int64_t taps) {
  std::vector<int64_t> indices;
  std::vector<double> weights;
  for (int64_t t = 0; t < taps; ++t)
    for (int64_t i = 0; i < out; ++i) {
      double place =
          (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5;
      double low = std::floor(place);
      int64_t tap = static_cast<int64_t>(low) + t - (taps - 2) / 2;
      indices.push_back(std::clamp<int64_t>(tap, 0, in - 1));
      double near = 1 - std::abs(place - static_cast<double>(tap));
      weights.push_back(taps == 2 ? near : 0.25 + 0.5 * near);
    }
  return {dim, Literal::of(DType::I32, {taps, out}, indices), Literal::of(DType::F32, {taps, out}, weights)};
}

struct Case {
  std::vector<int64_t> dims;
  std::vector<std::pair<int, int64_t>> resampled; // dim, extent of the result
  int64_t taps = 2;
  bool blocked = false;
  std::string plan = ""; // if it is not the cost model's
  std::vector<std::string> cpus = {"x86-64", "x86-64-v3", "native"};
  bool varies = false; // the batch, up to that of `dims`
};

Layout channel_blocks(int rank, int block) {
  Layout layout;
  for (int d = 0; d < rank; ++d) layout.order.push_back(d);
  layout.blocks = {{1, block}};
  return layout;
}

void make_resampled(const Case& c, const std::string& cpu, Module& module) {
  Region& body = module.add_function("main").body();
  GraphBuilder b(body);
  std::vector<Dim> extents(c.dims.begin(), c.dims.end());
  if (c.varies) {
    module.symbols.push_back(std::make_shared<const Symbol>(Symbol{"n", 0, c.dims[0]}));
    extents[0] = IntExpr::symbol(module.symbols[0]);
  }
  Value x = body.add_parameter(Type::tensor(DType::F32, extents), "x")->result();
  std::vector<ResampledDim> dims;
  for (auto [dim, extent] : c.resampled)
    dims.push_back(make_dim(dim, c.dims[static_cast<size_t>(dim)], extent, c.taps));
  Value y = make_resample(b, x, dims);
  if (!c.plan.empty()) y.def->attributes().set("plan", c.plan);
  if (c.blocked) {
    auto machine = find_target("", cpu, "");
    REQUIRE(machine);
    Type blocks = x.type(), plain = y.type();
    blocks.layout = channel_blocks(x.rank(), machine->cpu.channel_block());
    Instruction* copy = body.append(Opcode::Copy, {x}, {blocks}, {}, y.def);
    set_resample_layout(*y.def, copy->result(), blocks.layout);
    y = b.make_typed(Opcode::Copy, {y}, {plain})->result();
  }
  body.set_results({y});
}

void expect_resampled(const Case& c) {
  for (const std::string& cpu : c.cpus) {
    Module module("test");
    make_resampled(c, cpu, module);
    INFO(cpu << "\n" << print_module(module));
    auto program = lower_program(module, cpu);
    CHECK(std::count_if(program.kernels.begin(), program.kernels.end(),
                        [](const auto& kernel) { return kernel->algorithm == "resample"; }) == 1);
    LoweredOptions options{.tolerance = 1e-6, .cpus = {cpu}};
    for (int64_t n = 0; c.varies && n <= c.dims[0]; ++n) options.extents.push_back({{"n", n}});
    expect_lowered_module(module, options);
  }
}

} // namespace

TEST_CASE("images enlarged by simple factors", "[lower]") {
  expect_resampled({{1, 3, 8, 40}, {{2, 16}, {3, 80}}});
  expect_resampled({{2, 3, 5, 33}, {{2, 20}, {3, 132}}});
  expect_resampled({{1, 2, 6, 24}, {{2, 9}, {3, 36}}});
  expect_resampled({{1, 2, 4, 30}, {{2, 32}, {3, 240}}});
}

TEST_CASE("images of other and longer lines", "[lower]") {
  expect_resampled({{1, 3, 7, 17}, {{2, 12}, {3, 257}}});
  expect_resampled({{1, 2, 3, 301}, {{2, 4}, {3, 977}}}); // more shuffles than are worth their code
  expect_resampled({{1, 2, 9, 500}, {{2, 4}, {3, 70}}});  // elements far apart
}

TEST_CASE("lines shorter than a vector", "[lower]") {
  expect_resampled({{2, 3, 2, 2}, {{2, 3}, {3, 3}}});
  expect_resampled({{1, 5, 4, 1}, {{2, 8}, {3, 6}}});
  expect_resampled({{1, 2, 40, 50}, {{2, 3}, {3, 3}}});
}

TEST_CASE("last vectors that overlap the one before", "[lower]") {
  for (int64_t out : {11, 20, 37, 45}) {
    expect_resampled({{1, 1, 2 * out}, {{2, out}}});
    expect_resampled({{1, 1, 10, 2 * out}, {{2, 5}, {3, out}}});
    expect_resampled({{1, 3, 4, 1}, {{2, 8}, {3, out}}});
  }
}

TEST_CASE("one dim, or three", "[lower]") {
  expect_resampled({{2, 3, 20}, {{2, 50}}});
  expect_resampled({{1, 3, 6, 21}, {{2, 12}}});
  expect_resampled({{1, 3, 6, 21}, {{3, 42}}});
  expect_resampled({{1, 2, 3, 4, 20}, {{2, 6}, {3, 8}, {4, 40}}});
  expect_resampled({{1, 2, 3, 4, 20}, {{4, 40}, {2, 6}}}); // in another order
  expect_resampled({{4, 6}, {{0, 9}, {1, 50}}});
}

TEST_CASE("channels last", "[lower]") {
  expect_resampled({{1, 6, 7, 3}, {{1, 12}, {2, 21}}}); // fewer than a vector
  expect_resampled({{2, 5, 6, 20}, {{1, 10}, {2, 9}}});
}

TEST_CASE("channel blocks", "[lower]") {
  expect_resampled({{1, 19, 8, 10}, {{2, 16}, {3, 25}}, 2, true});
  expect_resampled({{2, 32, 6}, {{2, 15}}, 2, true});
  expect_resampled({{1, 16, 3, 4, 5}, {{2, 6}, {3, 6}, {4, 6}}, 2, true});
}

TEST_CASE("the batch of resampled images varies", "[lower]") {
  for (Case c : {Case{{3, 3, 8, 40}, {{2, 16}, {3, 80}}}, Case{{3, 5, 6, 20}, {{1, 10}, {2, 9}}},
                 Case{{3, 2, 20}, {{2, 50}}}, Case{{2, 19, 8, 10}, {{2, 16}, {3, 25}}, 2, true},
                 Case{{4, 17, 5, 9}, {{2, 12}}, 4, true}}) {
    c.varies = true;
    expect_resampled(c);
  }
}

TEST_CASE("four taps", "[lower]") {
  expect_resampled({{1, 3, 8, 20}, {{2, 16}, {3, 40}}, 4});
  expect_resampled({{1, 17, 8, 9}, {{2, 12}, {3, 18}}, 4, true});
}

TEST_CASE("resampled images follow plans written by hand", "[lower][plan]") {
  Case near{{1, 2, 8, 20}, {{2, 12}, {3, 40}}}, far{{1, 2, 9, 300}, {{2, 4}, {3, 41}}};
  Case last{{2, 5, 6, 20}, {{1, 10}, {2, 9}}}, blocked{{1, 19, 8, 10}, {{2, 16}, {3, 25}}, 2, true};
  auto expect = [](Case c, std::initializer_list<const char*> plans) {
    for (const char* plan : plans) {
      c.plan = plan;
      INFO(plan);
      expect_resampled(c);
    }
  };
  expect(near, {"resample", "resample vectors lanes 1", "resample shuffles lanes 2",
                "resample shuffles lanes 4", "resample gathers lanes 2", "resample gathers lanes 4"});
  expect(far, {"resample gathers lanes 4", "resample vectors lanes 1"});
  for (Case c : {last, blocked})
    expect(c,
           {"resample", "resample vectors lanes 1", "resample vectors lanes 2", "resample vectors lanes 4"});
  auto error = [](Case c, const char* plan) {
    Module module("test");
    c.plan = plan;
    make_resampled(c, "x86-64-v3", module);
    firn::test::LoweringSetup options;
    options.target = *find_target("", "x86-64-v3", "");
    auto program = firn::test::plan_and_lower(module, options);
    return program ? std::string() : program.error().message;
  };
  CHECK(error(near, "resample vectors lanes 4").find("neighbours of a line lie side by side") !=
        std::string::npos);
  CHECK(error(last, "resample shuffles lanes 4").find("no neighbours of a line lie side by side") !=
        std::string::npos);
  CHECK(error(far, "resample shuffles lanes 4").find("two vectors do not hold") != std::string::npos);
  CHECK(error({{1, 6, 7, 3}, {{1, 12}, {2, 21}}}, "resample vectors lanes 4").find("3 elements between") !=
        std::string::npos);
  // Tables whose numbers the text leaves out.
  Module module("test");
  make_resampled(near, "x86-64-v3", module);
  std::string text = print_module(module);
  CHECK(lower_text(text, "x86-64-v3").kernels.size() == 1);
  text.insert(text.find("name = resample"), "plan = \"resample shuffles lanes 4\", ");
  CHECK(lowering_error(text).find("the places along the line are not known") != std::string::npos);
  CHECK(error(near, "resample gathers lanes 3").find("a power of two up to") != std::string::npos);
}

TEST_CASE("images of drawn sizes are read inside their memory", "[lower][guard]") {
  std::vector<std::string> cpus = runnable_cpus();
  for (unsigned number = 0; number < 24; ++number) {
    std::mt19937 random(number);
    auto pick = [&](std::initializer_list<int64_t> values) {
      return values.begin()[random() % values.size()];
    };
    Case c;
    c.dims = {pick({1, 2}), pick({1, 3, 5, 7, 17, 24, 33})};
    int64_t rank = pick({1, 2, 2, 3});
    for (int dim = 2; dim < 2 + rank; ++dim) {
      c.dims.push_back(pick({1, 2, 3, 5, 7, 17, 24}));
      if (dim == 1 + rank || random() % 2) c.resampled.emplace_back(dim, pick({1, 3, 5, 14, 17, 33, 48}));
    }
    c.taps = pick({2, 2, 4}), c.blocked = random() % 2, c.cpus = {cpus[number % cpus.size()]};
    INFO("draw " << number);
    expect_resampled(c);
  }
}
