// Dots and convolutions by plans written by hand: tiles with rests of rows and columns, both orders of loops,
// parts, blocks, operands read where they lie. The lowered program of each gives the evaluator's results.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

std::string attribute(const std::string& plan) {
  return plan.empty() ? "" : ", plan = \"" + plan + "\"";
}

// 13 x 37 of 29 steps; the rhs is a parameter, or constant weights.
std::string dot_text(const std::string& plan, bool constant) {
  std::string weights = constant ? "%w = " + random_constant(29 * 37, 3) + " : f32[29,37] " : "";
  return "module @m { func @main(%x: f32[13,29]" + std::string(constant ? "" : ", %w: f32[29,37]") +
         ") -> (f32[13,37]) { " + weights +
         "%y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]" +
         attribute(plan) + "} : f32[13,37] return %y } }";
}

std::string batched_text(const std::string& plan) {
  return "module @m { func @main(%x: f32[3,5,7], %w: f32[3,7,19]) -> (f32[3,5,19]) { %y = dot %x, %w "
         "{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]" +
         attribute(plan) + "} : f32[3,5,19] return %y } }";
}

std::string blocked(const std::string& dims, const std::string& cpu) {
  return "f32[" + dims + "]{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
}

// A 3x3 window over 16 channels, to 20 filters, with tanh(sums + bias) behind it.
std::string convolution_text(const std::string& plan, const std::string& cpu) {
  std::string in = blocked("1,16,7,9", cpu), out = blocked("1,20,7,9", cpu);
  return "module @m { func @main(%x: f32[1,16,7,9], %b: f32[20]) -> (f32[1,20,7,9]) { %w = " +
         random_constant(20 * 16 * 9, 5) + " : f32[20,16,3,3] %i = copy %x : " + in +
         " %c = fusion %i, %w, %b {kind = contraction" + attribute(plan) + "} region (%p: " + in +
         ", %q: f32[20,16,3,3], %d: f32[20]) { %s = convolution %p, %q {window = 3x3 pad 1_1x1_1, groups = "
         "1} : " +
         out + " %e = broadcast_in_dim %d {dims = [1]} : " + out + " %t = add %s, %e : " + out +
         " %a = tanh %t : " + out + " return %a } : " + out + " %r = copy %c : f32[1,20,7,9] return %r } }";
}

std::string planar_text(const std::string& plan) {
  return "module @m { func @main(%x: f32[2,5,6,21], %w: f32[3,5,3,3]) -> (f32[2,3,6,21]) { %c = convolution "
         "%x, %w {window = 3x3 pad 1_1x1_1, groups = 1" +
         attribute(plan) + "} : f32[2,3,6,21] return %c } }";
}

std::string transposed_text(const std::string& plan, const std::string& cpu) {
  int block = target_of("", cpu).cpu.channel_block();
  std::string filters = std::to_string(2 * block), in = blocked("1,8,5,6", cpu),
              out = blocked("1," + filters + ",10,12", cpu);
  return "module @m { func @main(%x: f32[1,8,5,6]) -> (f32[1," + filters +
         ",10,12]) { %w = " + random_constant(2 * block * 8 * 16, 7) + " : f32[" + filters +
         ",8,4,4] %i = copy %x : " + in +
         " %c = convolution %i, %w {window = 4x4 pad 2_2x2_2 input_dilate 2x2, groups = 1" + attribute(plan) +
         "} : " + out + " %r = copy %c : f32[1," + filters + ",10,12] return %r } }";
}

// Few rows over 331 columns of weights, with tanh(sums + bias) behind: whole groups of columns in streams,
// those left, and a part of one.
std::string wide_text(const std::string& plan, int rows, const std::string& dtype) {
  std::string x = "[" + std::to_string(rows) + ",29]", y = "f32[" + std::to_string(rows) + ",331]";
  std::string weights = random_constant(29 * 331, 3) + " : f32[29,331] ", of = "%v", type = "f32[29,331]";
  std::string convert;
  if (dtype != "f32") {
    type = dtype + "[29,331]";
    convert = "%n = convert %v {to = " + dtype + "} : " + type + " ";
    of = "%n";
  }
  return "module @m { func @main(%x: f32" + x + ", %b: f32[331]) -> (" + y + ") { %v = " + weights + convert +
         "%c = fusion %x, " + of + ", %b {kind = contraction" + attribute(plan) + "} region (%p: f32" + x +
         ", %q: " + type +
         ", %d: f32[331]) { %s = dot %p, %q {lhs_batch = [], rhs_batch = [], lhs_contract = " +
         "[1], rhs_contract = [0], result = f32} : " + y + " %e = broadcast_in_dim %d {dims = [1]} : " + y +
         " %t = add %s, %e : " + y + " %a = tanh %t : " + y + " return %a } : " + y + " return %c } }";
}

std::string byte_text(const std::string& plan) {
  return "module @m { func @main(%x: u8[1,29]) -> (i32[1,331]) { %v = " + random_constant(29 * 331, 3) +
         " : f32[29,331] %h = constant [40] : f32[] %g = broadcast_in_dim %h {dims = []} : f32[29,331] "
         "%m = multiply %v, %g : f32[29,331] %w = convert %m {to = i8} : i8[29,331] %y = dot %x, %w "
         "{lhs_batch = [], "
         "rhs_batch = [], lhs_contract = [1], rhs_contract = [0], result = i32" +
         attribute(plan) + "} : i32[1,331] return %y } }";
}

const char* const kCpus[] = {"x86-64", "x86-64-v3", "native"};

template <class Text> void expect_followed(const std::vector<std::string>& plans, Text text) {
  for (const char* cpu : kCpus)
    for (const std::string& plan : plans) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(text(plan, cpu), {.tolerance = 1e-4, .cpus = {cpu}});
    }
}

std::string error_of(const std::string& text) {
  return lowering_error(text);
}

} // namespace

TEST_CASE("dots follow plans written by hand", "[plan]") {
  for (bool constant : {true, false})
    expect_followed(
        {"direct", "direct tile 1x1", "direct tile 4x2 columns outermost", "direct tile 5x3 rows outermost",
         "direct tile 13x1 splits 4 columns outermost", "direct tile 3x2 splits 2 rows outermost",
         "direct tile 4x1 columns outermost split_k 3", "direct tile 2x2 columns outermost row_block 6",
         "direct tile 3x1 columns outermost split_k 2 row_block 3",
         "direct tile 6x2 columns outermost optimize_size", "direct tile 4x2 columns outermost swap_operands",
         "direct tile 4x2 columns outermost split_m 2", "direct tile 3x1 columns outermost split_m 4",
         "direct tile 3x1 columns outermost split_k 2 split_m 2", "elements"},
        [&](const std::string& plan, const char*) { return dot_text(plan, constant); });
  expect_followed({"direct tile 4x2 columns outermost unpacked", "direct tile 3x1 rows outermost unpacked",
                   "direct tile 4x1 columns outermost split_k 2 unpacked"},
                  [&](const std::string& plan, const char*) { return dot_text(plan, false); });
  expect_followed({"direct tile 2x1", "direct tile 4x2 columns outermost unpacked",
                   "direct tile 5x1 columns outermost swap_operands",
                   "direct tile 1x1 columns outermost split_m 2"},
                  [&](const std::string& plan, const char*) { return batched_text(plan); });
}

TEST_CASE("columns come in as many streams as plans say", "[plan]") {
  for (const char* dtype : {"f32", "bf16"}) {
    std::string product = dtype == std::string("f32") ? "" : " mac fma f32 bf16 f32";
    for (int rows : {1, 3})
      expect_followed({"direct" + product + " tile 3x2 columns outermost column_streams 4",
                       "direct" + product + " tile 4x1 columns outermost column_streams 3 rolled_epilogue",
                       "direct" + product + " tile 3x4 columns outermost column_streams 2 rolled_epilogue"},
                      [&](const std::string& plan, const char*) { return wide_text(plan, rows, dtype); });
  }
  expect_followed({"direct tile 1x2 columns outermost column_streams 4",
                   "direct tile 1x1 columns outermost column_streams 5"},
                  [&](const std::string& plan, const char*) { return byte_text(plan); });
}

TEST_CASE("convolutions follow plans written by hand", "[plan]") {
  expect_followed({"direct",
                   "direct tile 1x1 columns outermost",
                   "direct tile 5x2 rows outermost",
                   "direct tile 9x1 columns outermost rolled_epilogue",
                   "direct tile 2x2 columns outermost rolled_epilogue max_unrolled_stores 0",
                   "direct tile 5x2 columns outermost rolled_epilogue max_unrolled_stores 10",
                   "direct tile 4x2 splits 2 columns outermost bias_in_accumulators",
                   "direct tile 3x1 rows outermost rolled_epilogue bias_in_accumulators",
                   "direct tile 4x2 columns outermost optimize_size",
                   "direct tile 4x2 columns outermost split_m 3",
                   "direct tile 2x1 columns outermost split_m 7 bias_in_accumulators",
                   "winograd 4x4",
                   "winograd 2x4",
                   "winograd 4x2 tile 3x1 batch 2",
                   "winograd 4x2 tile 3x1 batch 2 separate_transform",
                   "winograd 2x2 tile 4x2 batch 3 separate_transform rolled_epilogue",
                   "winograd 4x4 tile 2x2 batch 4 live_vectors 6",
                   "winograd 4x4 tile 2x2 batch 4 live_vectors 64",
                   "winograd 4x4 tile 2x3 batch 6 separate_transform",
                   "winograd 2x4 tile 1x1 batch 1 separate_transform",
                   "winograd 2x2 tile 2x2 batch 5 rolled_epilogue",
                   "elements"},
                  convolution_text);
  if (!target_of("", "native").cpu.has_embedded_broadcast) return; // several steps in one register want it
  for (const char* plan :
       {"direct tile 4x1 interleave 2 columns outermost", "direct tile 2x2 interleave 4 rows outermost",
        "direct tile 5x1 interleave 2 panel 2 rows outermost rolled_epilogue"}) {
    INFO(plan);
    expect_lowered_module(convolution_text(plan, "native"), {.tolerance = 1e-4, .cpus = {"native"}});
  }
}

TEST_CASE("convolutions to few channels follow plans written by hand", "[plan]") {
  expect_followed({"planar", "planar tile 3x1", "planar tile 2x2 columns outermost", "planar tile 1x3",
                   "direct", "direct tile 4x1 columns outermost", "elements"},
                  [](const std::string& plan, const char*) { return planar_text(plan); });
}

TEST_CASE("transposed convolutions follow plans written by hand", "[plan]") {
  expect_followed({"polyphase", "polyphase tile 1x1", "polyphase tile 3x2 columns outermost",
                   "polyphase tile 4x1 rows outermost", "polyphase tile 2x2 splits 2 columns outermost",
                   "elements"},
                  transposed_text);
}

TEST_CASE("contraction plans that cannot be followed say why", "[plan]") {
  auto dot = [](const std::string& plan) { return error_of(dot_text(plan, true)); };
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(dot("polyphase"), "this is a dot"));
  CHECK(has(dot("planar"), "this is a dot"));
  CHECK(has(dot("winograd 4x4"), "no convolution in a kernel of its own"));
  CHECK(has(dot("depthwise tile 1 along 1"), "no depthwise convolution"));
  CHECK(has(dot("direct tile 4x2 columns outermost split_k 30"), "split_k would leave parts without any"));
  CHECK(has(dot("direct tile 4x2 columns outermost row_block 6"), "a number of whole tiles"));
  CHECK(has(dot("direct tile 4x2 rows outermost split_k 2"), "columns outermost"));
  CHECK(has(dot("direct tile 4x2 columns outermost split_m 4"), "split_m would leave parts without"));
  CHECK(has(dot("direct tile 4x2 columns outermost split_m 9223372036854775807"), "walks 3 tiles"));
  CHECK(has(dot("direct tile 4x2 rows outermost split_m 2"), "split_m wants columns outermost"));
  CHECK(has(dot("direct tile 4x2 columns outermost row_block 4 split_m 2"), "no blocks of rows"));
  CHECK(has(dot("direct tile 13x2 columns outermost split_k 2"), "more rows than a tile has"));
  CHECK(has(dot("direct tile 4x2 interleave 2 columns outermost"), "interleaved by 1 at most"));
  CHECK(has(dot("direct tile 4x2 columns outermost swap_operands unpacked"), "do not lie together"));
  CHECK(has(dot("direct tile 4x2 columns outermost widened"), "fewer bits than products take are widened"));
  std::string numbers = "1";
  for (int i = 1; i < 40; ++i) numbers += ", " + std::to_string(i);
  CHECK(has(error_of("module @m { func @main(%x: f32[9,8]) -> (f32[9,5]) { %q = constant [" + numbers +
                     "] : i8[8,5] %r = dot %x, %q {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
                     "rhs_contract = [0], result = f32, plan = \"direct mac fma f32 i8 f32 tile 2x1 "
                     "rows outermost widened\"} : f32[9,5] return %r } }"),
            "widened by the group, outermost"));
  CHECK(has(dot("direct tile 4x2 columns outermost column_streams 2"), "of one register tile's rows"));
  CHECK(has(dot("direct tile 13x1 splits 2 columns outermost column_streams 2"), "neither splits"));
  CHECK(has(dot("direct tile 13x1 rows outermost column_streams 2"), "neither splits"));
  CHECK(has(dot("direct tile 13x2 columns outermost column_streams 9"), "fewer groups"));
  CHECK(has(error_of(dot_text("direct tile 13x1 columns outermost column_streams 2 unpacked", false)),
            "of packed ones"));
  CHECK(has(dot("relayout"), "no copy, transpose or broadcast"));
  CHECK(has(dot("sort"), "another operation"));
  CHECK(has(error_of(batched_text("direct tile 2x1 rows outermost")), "batches or groups"));
  auto convolution = [](const std::string& plan) { return error_of(convolution_text(plan, "x86-64-v3")); };
  CHECK(has(convolution("polyphase"), "no transposed convolution"));
  CHECK(has(convolution("planar"), "plain rows"));
  CHECK(has(convolution("winograd 3x3"), "transforms of these sizes"));
  CHECK(has(convolution("direct tile 4x2 columns outermost split_k 2"), "only dots"));
  CHECK(has(convolution("direct tile 4x2 columns outermost unpacked"), "packed columns"));
  CHECK(has(convolution("direct tile 4x2 columns outermost split_m 5"), "walks 7 tiles"));
  CHECK(has(error_of(transposed_text("direct", "x86-64-v3")), "it has phases"));
}
