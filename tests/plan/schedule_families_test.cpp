// The schedule database over plans of every family: what --explain prints reads back as the same plans, and
// another plan of a signature overrules the cost model's.
#include "compiler/graph/composites.h"
#include "compiler/graph/resample.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

using namespace firn;
using namespace firn::test;
using namespace firn::plan;

namespace {

const char* const kCpu = "x86-64-v3"; // blocks of 8 channels

using MakeBody = std::function<void(Module&, Region&)>;
struct Family {
  const char* plan;  // the cost model's plan begins with this
  const char* other; // the database's plan; the resulting plan begins with it
  MakeBody make = {};
  std::string text = ""; // text of the module, if there is no `make`
};

std::unique_ptr<Module> make_module(const Family& family) {
  if (!family.make) {
    auto parsed = parse_module("test.hlo", family.text);
    if (!parsed) FAIL(parsed.error().message);
    return std::move(*parsed);
  }
  auto module = std::make_unique<Module>("test");
  family.make(*module, module->add_function("main").body());
  return module;
}

std::vector<Explanation> explain(const Module& module, const std::string& database, const char* cpu = kCpu) {
  bool has_header = database.find("firn-schedules") == 0;
  auto schedules = ScheduleDatabase::parse("db", (has_header ? "" : "firn-schedules 1\n") + database);
  REQUIRE(schedules);
  std::vector<Explanation> explanations;
  firn::test::LoweringSetup options;
  options.target = target_of("", cpu);
  options.goals.winograd = Winograd::All;
  options.schedules = &*schedules;
  options.explanations = &explanations;
  auto program = firn::test::plan_and_lower(module, options);
  if (!program) FAIL(program.error().message);
  return explanations;
}

bool starts_with(const KernelPlan& plan, const std::string& start) {
  std::string text = to_string(plan);
  return text.rfind(start, 0) == 0 && (text.size() == start.size() || text[start.size()] == ' ');
}
const Explanation& find(const std::vector<Explanation>& explanations, const std::string& plan) {
  auto at = std::find_if(explanations.begin(), explanations.end(),
                         [&](const Explanation& e) { return starts_with(e.chosen, plan); });
  INFO(explanation_text(explanations));
  REQUIRE(at != explanations.end());
  return *at;
}

Value input(Region& body, std::vector<Dim> dims, const char* name = "x") {
  return body.add_parameter(firn::Type::tensor(DType::F32, std::move(dims)), name)->result();
}

void make_image(Region& body) {
  GraphBuilder b(body);
  std::vector<int64_t> indices;
  std::vector<double> weights(80, 0.5);
  for (int64_t i = 0; i < 80; ++i) indices.push_back(std::min<int64_t>(i % 40 / 2 + i / 40, 19));
  ResampledDim dim{2, Literal::of(DType::I32, {2, 40}, indices), Literal::of(DType::F32, {2, 40}, weights)};
  body.set_results({make_resample(b, input(body, {1, 3, 20}), {dim})});
}

void make_layer(Region& body) {
  GraphBuilder b(body);
  RecurrentOperands o;
  o.x = input(body, {3, 2, 5}, "x"), o.w = input(body, {9, 5}, "w"), o.r = input(body, {9, 9}, "r");
  o.b = input(body, {9}, "b"), o.h0 = input(body, {2, 9}, "h");
  Instruction* layer = make_rnn(b, o, {});
  body.set_results({layer->result(0), layer->result(1)});
}

std::string main_text(const std::string& parameters, const std::string& body, const std::string& type) {
  return "module @m { func @main(" + parameters + ") -> (" + type + ") { " + body + " return %r } }";
}
std::string image(int channels) {
  return "f32[1," + std::to_string(channels) + ",9,10]{0,1,2,3:1x8}";
}
std::string plain(int channels) {
  return "f32[1," + std::to_string(channels) + ",9,10]";
}

// One convolution of blocked channels, or what `code` makes of %i as %o.
std::string blocked_text(const std::string& parameters, const std::string& code, int in, int out) {
  return main_text("%x: " + plain(in) + parameters,
                   "%i = copy %x : " + image(in) + " " + code + " : " + image(out) +
                       " %r = copy %o : " + plain(out),
                   plain(out));
}

const std::string kMaximum = "region (%l: f32[], %h: f32[]) { %m = maximum %l, %h : f32[] return %m }";

std::string chain_text() {
  std::string weights = "%e: f32[36,8,1,1], %d: f32[36,1,3,3], %p: f32[12,36,1,1]";
  return blocked_text(
      ", " + weights,
      "%o = fusion %i, %e, %d, %p {kind = depthwise_chain, rows = 4} region (%a: " + image(8) + ", " +
          weights + ") { %b = convolution %a, %e {window = 1x1, groups = 1} : " + image(36) +
          " %c = convolution %b, %d {window = 3x3 pad 1_1x1_1, groups = 36} : " + image(36) +
          " %g = convolution %c, %p {window = 1x1, groups = 1} : " + image(12) + " return %g }",
      8, 12);
}

// A convolution and the sum of its result over all positions.
std::string sum_text(const std::string& positions) {
  std::string blocked = "," + positions + "]{0,1,2,3:1x8}", in = "f32[1,8" + blocked,
              out = "f32[1,20" + blocked;
  return main_text(
      "%x: f32[1,8," + positions + "], %w: f32[20,8,3,3]",
      "%i = copy %x : " + in + " %r = fusion %i, %w {kind = fused_spatial_sum} region (%a: " + in +
          ", %b: f32[20,8,3,3]) { %c = convolution %a, %b {window = 3x3 pad 1_1x1_1, groups = 1} : " + out +
          " %z = constant [0] : f32[] %s = reduce %c, %z {dims = [2, 3]} region (%l: f32[], " +
          "%h: f32[]) { %m = add %l, %h : f32[] return %m } : f32[1,20] return %s } : f32[1,20]",
      "f32[1,20]");
}

std::string attention_text() {
  return main_text(
      "%q: f32[2,11,16], %k: f32[2,37,16], %v: f32[2,37,8]",
      "%r = fusion %q, %k, %v {kind = attention} region (%a: f32[2,11,16], %b: f32[2,37,16], %c: "
      "f32[2,37,8]) {"
      " %s = dot %a, %b {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} : "
      "f32[2,11,37] %w = composite %s {name = softmax, dim = 2} region (%x: f32[2,11,37]) {"
      " %low = constant [-inf] : f32[] %n = reduce %x, %low {dims = [2]} " +
          kMaximum +
          " : f32[2,11] %nb = broadcast_in_dim %n {dims = [0, 1]} : f32[2,11,37] %d = subtract %x, %nb : "
          "f32[2,11,37] %e = exponential %d : f32[2,11,37] %z = constant [0] : f32[] %t = reduce %e, %z "
          "{dims "
          "= [2]} region (%l: f32[], %h: f32[]) { %m = add %l, %h : f32[] return %m } : f32[2,11] %tb = "
          "broadcast_in_dim %t {dims = [0, 1]} : f32[2,11,37] %y = divide %e, %tb : f32[2,11,37] return %y } "
          ": "
          "f32[2,11,37] %o = dot %w, %c {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract "
          "= "
          "[1]} : f32[2,11,8] return %o } : f32[2,11,8]",
      "f32[2,11,8]");
}

std::vector<Family> families() {
  return {
      {"direct",
       "direct tile 2x1 rows outermost",
       {},
       main_text("%x: f32[9,12], %w: f32[12,20]",
                 "%r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : "
                 "f32[9,20]",
                 "f32[9,20]")},
      {"direct",
       "direct tile 3x2 columns outermost",
       {},
       blocked_text(", %w: f32[24,16,3,3]", "%o = convolution %i, %w {window = 3x3 pad 1_1x1_1, groups = 1}",
                    16, 24)},
      {"direct",
       "planar",
       {},
       main_text("%x: f32[1,4,9,20], %w: f32[16,4,3,3]",
                 "%r = convolution %x, %w {window = 3x3 pad 1_1x1_1, groups = 1} : f32[1,16,9,20]",
                 "f32[1,16,9,20]")},
      {"polyphase",
       "polyphase tile 3x2 rows outermost",
       {},
       main_text("%x: " + plain(8),
                 "%i = copy %x : " + image(8) + " %w = " + random_constant(16 * 8 * 16, 7) +
                     " : f32[16,8,4,4] %o = convolution %i, %w {window = 4x4 pad 2_2x2_2 input_dilate 2x2, "
                     "groups = 1} : f32[1,16,18,20]{0,1,2,3:1x8} %r = copy %o : f32[1,16,18,20]",
                 "f32[1,16,18,20]")},
      {"winograd",
       "winograd 2x2 tile 2x1 batch 3",
       {},
       blocked_text("",
                    "%w = " + random_constant(32 * 32 * 9, 1) +
                        " : f32[32,32,3,3] %o = convolution %i, %w {window = 3x3 pad 1_1x1_1, groups = 1}",
                    32, 32)},
      {"depthwise",
       "depthwise tile 2 along 0 unrolled",
       {},
       blocked_text(", %w: f32[20,1,3,3]", "%o = convolution %i, %w {window = 3x3 pad 1_1x1_1, groups = 20}",
                    20, 20)},
      {"pooling",
       "pooling tile 2 along 0",
       {},
       blocked_text("",
                    "%n = constant [-inf] : f32[] %o = reduce_window %i, %n {window = 1x1x3x3 pad "
                    "0_0x0_0x1_1x1_1} " +
                        kMaximum,
                    16, 16)},
      {"row_pooling",
       "row_pooling lanes 2",
       {},
       main_text("%x: f32[3,9,10]",
                 "%n = constant [-inf] : f32[] %r = reduce_window %x, %n {window = 1x3x3} " + kMaximum +
                     " : f32[3,7,8]",
                 "f32[3,7,8]")},
      {"row_pooling",
       "elements lanes 4",
       {},
       main_text("%x: f32[3,9,10]",
                 "%n = constant [-inf] : f32[] %r = reduce_window %x, %n {window = 1x3x3} " + kMaximum +
                     " : f32[3,7,8]",
                 "f32[3,7,8]")},
      {"depthwise_chain", "depthwise_chain rows 2", {}, chain_text()},
      {"depthwise_chain", "inline", {}, chain_text()},
      {"fused_spatial_sum", "inline", {}, sum_text("9,10")},
      {"inline", "fused_spatial_sum", {}, sum_text("1,1")},
      {"fused_spatial_sum", "fused_spatial_sum accumulators 2", {}, sum_text("9,10")},
      {"attention", "attention tile 3x1 unroll 2 block 16 accumulators 2 packs_keys", {}, attention_text()},
      {"recurrent", "recurrent tile 2x1 accumulators 3 alternate_direction",
       [](Module&, Region& body) { make_layer(body); }},
      {"rows", "rows lanes 4 accumulators 2",
       [](Module&, Region& body) {
         GraphBuilder b(body);
         body.set_results({make_softmax(b, input(body, {5, 70}), 1)});
       }},
      {"elements",
       "elements lanes 2 unroll 1",
       {},
       main_text("%x: f32[5,37]", "%r = negate %x : f32[5,37]", "f32[5,37]")},
      {"elements",
       "elements lanes 8 accumulators 1",
       {},
       main_text("%x: f32[16,37]",
                 "%n = constant [-inf] : f32[] %r = reduce %x, %n {dims = [1]} " + kMaximum + " : f32[16]",
                 "f32[16]")},
      {"relayout",
       "relayout squares 4",
       {},
       main_text("%x: f32[20,9]", "%r = transpose %x {permutation = [1, 0]} : f32[9,20]", "f32[9,20]")},
      {"relayout",
       "elements lanes 4",
       {},
       main_text("%x: f32[20,9]", "%r = transpose %x {permutation = [1, 0]} : f32[9,20]", "f32[9,20]")},
      {"resample", "resample gathers lanes 4", [](Module&, Region& body) { make_image(body); }},
      {"sort",
       "sort",
       {},
       main_text("%x: i32[7,9]",
                 "%r = sort %x {dim = 0, stable = true} region (%a: i32[], %b: i32[]) { %q = compare %a, %b "
                 "{direction = gt} : bool[] return %q } : i32[7,9]",
                 "i32[7,9]")},
      {"top_k",
       "top_k sorts",
       {},
       main_text("%x: f32[9,19]",
                 "%s:2 = top_k %x {dim = 1, k = 4} : (f32[9,4], i64[9,4]) %r = copy %s#1 : i64[9,4]",
                 "i64[9,4]")},
      {"scan",
       "scan lanes 2",
       {},
       main_text(
           "%x: f32[9,19]",
           "%r = cumulative %x {dim = 0, exclusive = false, reverse = false, reducer = add} : f32[9,19]",
           "f32[9,19]")},
      {"arg_reduce",
       "arg_reduce lanes 1",
       {},
       main_text("%x: f32[9,19]", "%r = arg_reduce %x {dim = 0, kind = max, select_last = false} : i64[19]",
                 "i64[19]")},
      {"direct mac dot4 u8 i8 i32",
       "direct mac fma u8 i8 i32 tile 3x1 columns outermost",
       {},
       main_text("%x: u8[9,19], %w: i8[19,21]",
                 "%r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], "
                 "result = i32} : i32[9,21]",
                 "i32[9,21]")},
      {"direct mac dot2 bf16 bf16 f32",
       "direct mac dot2 bf16 bf16 f32 tile 2x1 rows outermost",
       {},
       main_text(
           "%x: bf16[1,6,9,10], %w: bf16[5,6,3,3]",
           "%r = convolution %x, %w {window = 3x3 pad 1_1x1_1, groups = 1, result = f32} : f32[1,5,9,10]",
           "f32[1,5,9,10]")},
      {"concatenate",
       "concatenate lanes 2 unroll 1",
       {},
       main_text("%x: f32[3,5], %y: f32[3,7]", "%r = concatenate %x, %y {dim = 1} : f32[3,12]", "f32[3,12]")},
      {"concatenate",
       "elements lanes 4",
       {},
       main_text("%x: f32[3,5], %y: f32[3,7]", "%r = concatenate %x, %y {dim = 1} : f32[3,12]", "f32[3,12]")},
  };
}

} // namespace

TEST_CASE("explanations of all families read back as databases", "[plan]") {
  for (const Family& family : families()) {
    INFO(family.plan);
    auto module = make_module(family);
    std::vector<Explanation> own = explain(*module, "");
    CHECK_FALSE(find(own, family.plan).overruled);
    std::vector<Explanation> again = explain(*module, explanation_text(own));
    REQUIRE(again.size() == own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      CHECK(to_string(again[i].chosen) == to_string(own[i].chosen));
      CHECK(again[i].refused.empty());
      CHECK(again[i].overruled);
    }
  }
}

TEST_CASE("databases overrule plans of all families", "[plan]") {
  for (const Family& family : families()) {
    INFO(family.plan << ": " << family.other);
    auto module = make_module(family);
    std::string signature = find(explain(*module, ""), family.plan).signature;
    std::vector<Explanation> forced = explain(*module, signature + " => " + family.other + "\n");
    auto at = std::find_if(forced.begin(), forced.end(),
                           [&](const Explanation& e) { return e.signature == signature; });
    REQUIRE(at != forced.end());
    CHECK(at->refused == "");
    CHECK(at->overruled);
    CHECK(starts_with(at->chosen, family.other));
  }
}

TEST_CASE("a database's plan is left aside where a like instruction cannot follow it", "[plan]") {
  // Two norms of one signature, of which one stands behind a dot in blocks of rows.
  auto module = std::make_unique<Module>("test");
  Region& body = module->add_function("main").body();
  GraphBuilder b(body);
  auto constant = [&](std::vector<int64_t> dims) {
    auto literal = std::make_shared<Literal>(DType::F32, dims);
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      literal->set_double(i, static_cast<double>(i % 17) * 0.25 - 1);
    return b.constant(literal);
  };
  using Ints = std::vector<int64_t>;
  Value x = input(body, {2, 351, 111}, "x"), y = input(body, {2, 351, 37}, "y");
  Value scale = constant({37}), bias = constant({37});
  Value accumulators = b.op(
      Opcode::Dot, {x, constant({111, 37})},
      {{"lhs_batch", Ints{}}, {"rhs_batch", Ints{}}, {"lhs_contract", Ints{2}}, {"rhs_contract", Ints{0}}});
  auto norm = [&](Value of) { return make_layer_norm(b, of, scale, bias, 2, 1e-5, DType::F32)->result(); };
  body.set_results({norm(accumulators), norm(y)});
  auto norms = [](const std::vector<Explanation>& explanations) {
    std::vector<Explanation> found;
    for (const Explanation& e : explanations)
      if (starts_with(e.chosen, "rows")) found.push_back(e);
    REQUIRE(found.size() == 2);
    return found;
  };
  std::vector<Explanation> own = norms(explain(*module, "", "x86-64"));
  CHECK(own[0].signature == own[1].signature);
  std::string joined = to_string(own[0].chosen), apart = to_string(own[1].chosen);
  CHECK(joined == apart + " in_producer");
  for (const std::string& plan : {joined, apart}) {
    std::vector<Explanation> forced =
        norms(explain(*module, own[0].signature + " => " + plan + "\n", "x86-64"));
    CHECK(to_string(forced[0].chosen) == plan);
    CHECK(forced[0].overruled);
    CHECK(to_string(forced[1].chosen) == apart);
    CHECK(forced[1].overruled == (plan == apart));
    CHECK(forced[1].refused.empty() == (plan == apart));
  }
  expect_lowered_module(*module, {.tolerance = 4e-6, .cpus = {"x86-64"}});
}

TEST_CASE("a chain that does not say its lines is computed member by member", "[plan]") {
  std::string text = chain_text(), attribute = ", rows = 4";
  text.erase(text.find(attribute), attribute.size());
  CHECK(lower_text(text, kCpu).kernels.size() > 1);
  expect_lowered_module(text, {.tolerance = 1e-4, .cpus = {kCpu}});
}
