// Attention, recurrent layers, rows, copies, chains and fused spatial sums by plans written by hand. The
// lowered program of each gives the evaluator's results.
#include "compiler/graph/hlo_text.h"
#include "compiler/passes/pass.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

const char* const kCpus[] = {"x86-64", "x86-64-v3", "native"};

template <class Text> void expect_followed(const std::vector<std::string>& plans, Text text) {
  for (const char* cpu : kCpus)
    for (const std::string& plan : plans) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(text(plan, std::string(cpu)), {.tolerance = 1e-4, .cpus = {cpu}});
    }
}

// Text with "PLAN" as a place for the plan.
std::string with_plan(std::string text, const std::string& plan) {
  size_t at = text.find("PLAN");
  return text.replace(at, 4, "plan = \"" + plan + "\"");
}

std::string attention_text(const std::string& plan, const std::string&) {
  return with_plan(
      R"(module @m { func @main(%q: f32[2,11,16], %k: f32[2,37,16], %v: f32[2,37,8]) -> (f32[2,11,8]) {
    %r = fusion %q, %k, %v {kind = attention, PLAN} region (%a: f32[2,11,16], %b: f32[2,37,16], %c: f32[2,37,8]) {
      %s = dot %a, %b {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} : f32[2,11,37]
      %w = composite %s {name = softmax, dim = 2} region (%x: f32[2,11,37]) {
        %low = constant [-inf] : f32[]
        %m = reduce %x, %low {dims = [2]} region (%l: f32[], %h: f32[]) { %n = maximum %l, %h : f32[] return %n } : f32[2,11]
        %mb = broadcast_in_dim %m {dims = [0, 1]} : f32[2,11,37]
        %d = subtract %x, %mb : f32[2,11,37]
        %e = exponential %d : f32[2,11,37]
        %z = constant [0] : f32[]
        %t = reduce %e, %z {dims = [2]} region (%l: f32[], %h: f32[]) { %n = add %l, %h : f32[] return %n } : f32[2,11]
        %tb = broadcast_in_dim %t {dims = [0, 1]} : f32[2,11,37]
        %y = divide %e, %tb : f32[2,11,37]
        return %y
      } : f32[2,11,37]
      %o = dot %w, %c {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} : f32[2,11,8]
      return %o
    } : f32[2,11,8]
    return %r } })",
      plan);
}

std::string copy_text(const std::string& plan, const std::string&) {
  return with_plan("module @m { func @main(%x: f32[1,19,6,5]) -> (f32[5,6,19,1]) { %y = transpose %x "
                   "{permutation = [3, 2, 1, 0], PLAN} : f32[5,6,19,1] return %y } }",
                   plan);
}

} // namespace

TEST_CASE("attention follows plans written by hand", "[plan]") {
  auto block = [](const std::string& cpu, int vectors, int blocks) {
    return std::to_string(target_of("", cpu).cpu.lanes(32) * vectors * blocks);
  };
  for (const char* cpu : kCpus) {
    std::vector<std::string> plans = {
        "attention",
        "elements",
        "attention tile 4x2 unroll 1 block " + block(cpu, 2, 1) + " packs_keys",
        "attention tile 11x1 unroll 4 block " + block(cpu, 1, 3) + " packs_keys packs_values",
        "attention tile 6x1 unroll 2 block " + block(cpu, 1, 1),
        "attention tile 3x2 unroll 4 block " + block(cpu, 2, 2) + " accumulators 1 packs_values",
        "attention tile 4x1 unroll 4 block " + block(cpu, 1, 2) + " accumulators 7 packs_keys"};
    if (target_of("", cpu).cpu.has_fma)
      plans.push_back("attention tile 4x1 unroll 1 block " + block(cpu, 1, 1) +
                      " packs_keys fused_exponents");
    for (const std::string& plan : plans) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(attention_text(plan, cpu), {.tolerance = 1e-4, .cpus = {cpu}});
    }
  }
  auto error = [](const std::string& plan) { return lowering_error(attention_text(plan, "")); };
  CHECK(error("attention tile 12x1 unroll 1 block 64 packs_keys").find("do not make 11 rows") !=
        std::string::npos);
  CHECK(error("attention tile 10x1 unroll 1 block 64 packs_keys").find("do not make 11 rows") !=
        std::string::npos);
  CHECK(error("attention tile 4x2 unroll 1 block 3 packs_keys").find("a block has a multiple of") !=
        std::string::npos);
  CHECK(error("attention tile 4x6 unroll 1 block 48 packs_keys").find("the keys fill 5 vectors") !=
        std::string::npos);
  CHECK(error("attention tile 4x2 unroll 1 block 16 packs_keys skips_hidden").find("no constant mask") !=
        std::string::npos);
  CHECK(error("relayout").find("no copy, transpose or broadcast") != std::string::npos);
}

TEST_CASE("exponents are fused on CPUs that fuse operations", "[plan]") {
  auto module = firn::parse_module(
      "m.hlo", attention_text("attention tile 4x1 unroll 1 block 4 packs_keys fused_exponents", ""));
  REQUIRE(module);
  firn::test::LoweringSetup options;
  options.target = target_of("", "x86-64");
  auto program = firn::test::plan_and_lower(**module, options);
  REQUIRE(!program);
  CHECK(program.error().message.find("no fused multiply-adds") != std::string::npos);
}

TEST_CASE("copies follow plans written by hand", "[plan]") {
  expect_followed({"relayout", "relayout squares 2", "relayout squares 4", "elements"}, copy_text);
  for (const char* plan : {"relayout squares 3", "relayout squares 1", "relayout squares 128"})
    CHECK(lowering_error(copy_text(plan, "")).find("a power of two from 2 to") != std::string::npos);
  CHECK(lowering_error(copy_text("concatenate", "")).find("another operation") != std::string::npos);
}

namespace {

// The text of the module after planning, in which the first plan that begins with `from` is replaced by `to`.
std::string planned(const std::string& text, const std::string& cpu, const std::string& from,
                    const std::string& to) {
  auto module = firn::parse_module("test.hlo", text);
  if (!module) FAIL(module.error().message);
  firn::Machine target = target_of("", cpu);
  firn::PipelineRun run;
  run.options.target = &target;
  firn::Result done = firn::run_passes(**module, "plan-kernels", run);
  if (!done) FAIL(done.error().message);
  std::string printed = firn::print_module(**module);
  size_t at = printed.find("plan = \"" + from);
  REQUIRE(at != std::string::npos);
  size_t first = at + 8, end = printed.find('"', first);
  return printed.replace(first, end - first, to);
}

// A chain of a 1x1 convolution, a depthwise one and a 1x1 convolution.
std::string chain_text(const std::string& cpu) {
  std::string block = std::to_string(target_of("", cpu).cpu.channel_block());
  auto image = [&](const std::string& channels) {
    return "f32[1," + channels + ",9,10]{0,1,2,3:1x" + block + "}";
  };
  std::string in = image("8"), wide = image("36"), out = image("12");
  std::string parameters = "%e: f32[36,8,1,1], %d: f32[36,1,3,3], %p: f32[12,36,1,1]";
  return "module @m { func @main(%x: f32[1,8,9,10], " + parameters +
         ") -> (f32[1,12,9,10]) { %i = copy %x : " + in +
         " %f = fusion %i, %e, %d, %p {kind = depthwise_chain, rows = 4} region (%a: " + in + ", " +
         parameters + ") { %b = convolution %a, %e {window = 1x1, groups = 1} : " + wide +
         " %c = convolution %b, %d {window = 3x3 pad 1_1x1_1, groups = 36} : " + wide +
         " %g = convolution %c, %p {window = 1x1, groups = 1} : " + out + " return %g } : " + out +
         " %r = copy %f : f32[1,12,9,10] return %r } }";
}

std::string sum_text(const std::string& cpu) {
  std::string block = std::to_string(target_of("", cpu).cpu.channel_block());
  std::string in = "f32[1,8,6,7]{0,1,2,3:1x" + block + "}", out = "f32[1,20,6,7]{0,1,2,3:1x" + block + "}";
  return "module @m { func @main(%x: f32[1,8,6,7], %w: f32[20,8,3,3]) -> (f32[1,20]) { %i = copy %x : " + in +
         " %f = fusion %i, %w {kind = fused_spatial_sum} region (%a: " + in +
         ", %b: f32[20,8,3,3]) { %c = convolution %a, " +
         "%b {window = 3x3 pad 1_1x1_1, groups = 1} : " + out +
         " %s = fusion %c {kind = reduce} region (%d: " + out +
         ") { %z = constant [0] : f32[] %m = reduce %d, %z {dims = [2,3]} region (%l: f32[], %h: f32[]) { %n "
         "= add "
         "%l, %h : f32[] return %n } : f32[1,20] return %m } : f32[1,20] return %s } : f32[1,20] return %f } "
         "}";
}

void expect_replaced(const std::string& text, const std::string& cpu, const std::string& from,
                     const std::vector<std::string>& plans) {
  for (const std::string& plan : plans) {
    INFO(cpu << ": " << plan);
    expect_lowered_module(planned(text, cpu, from, plan), {.tolerance = 1e-4, .cpus = {cpu}});
  }
}

} // namespace

TEST_CASE("chains and fused spatial sums follow plans written by hand", "[plan]") {
  for (const char* cpu : kCpus) {
    expect_replaced(chain_text(cpu), cpu, "depthwise_chain",
                    {"depthwise_chain rows 1", "depthwise_chain rows 4", "depthwise_chain rows 9", "inline"});
    expect_replaced(chain_text(cpu), cpu, "direct",
                    {"direct", "direct tile 3x1 columns outermost", "direct tile 10x2 columns outermost"});
    expect_replaced(chain_text(cpu), cpu, "depthwise tile",
                    {"depthwise tile 3 along 1", "depthwise tile 5 along 1 unrolled taps_in_registers"});
    expect_replaced(sum_text(cpu), cpu, "direct",
                    {"direct tile 2x1 columns outermost", "direct tile 5x2 rows outermost rolled_epilogue"});
    for (const char* plan : {"inline", "fused_spatial_sum"}) {
      std::string text = sum_text(cpu), kind = "kind = fused_spatial_sum";
      text.replace(text.find(kind), kind.size(), kind + ", plan = \"" + plan + "\"");
      expect_lowered_module(text, {.tolerance = 1e-4, .cpus = {cpu}});
    }
  }
  const std::string cpu = "x86-64-v3";
  auto error = [&](const std::string& from, const std::string& to) {
    return lowering_error(planned(chain_text(cpu), cpu, from, to));
  };
  CHECK(error("depthwise_chain", "depthwise_chain rows 10").find("a strip has 1 to 9 rows") !=
        std::string::npos);
  CHECK(error("depthwise tile", "depthwise tile 3 along 0").find("along its rows") != std::string::npos);
  CHECK(error("direct", "planar").find("planes want") != std::string::npos);
  CHECK(error("direct", "elements").find("cannot be followed") != std::string::npos);
  CHECK(lowering_error(planned(sum_text(cpu), cpu, "direct", "elements")).find("leaves no sums") !=
        std::string::npos);
  CHECK(lowering_error(planned(sum_text(cpu), cpu, "elements", "inline")).find("no fusion of several") !=
        std::string::npos);
}
