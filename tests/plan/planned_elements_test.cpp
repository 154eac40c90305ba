// Element loops, rows and scans by plans written by hand: lanes narrower and wider than registers, copies and
// accumulators that leave rests, boxes, walks in blocks. The lowered program of each gives the evaluator's
// results.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

const char* const kCpus[] = {"x86-64", "x86-64-v3", "native"};

// `body` has "PLAN" where the plan stands, and makes %r.
std::string module_text(const std::string& parameters, std::string body, const std::string& type,
                        const std::string& plan) {
  body.replace(body.find("PLAN"), 4, "plan = \"" + plan + "\"");
  return "module @m { func @main(" + parameters + ") -> (" + type + ") { " + body + " return %r } }";
}

struct Kernel {
  std::string parameters, body, type;
};
std::string module_text(const Kernel& kernel, const std::string& plan) {
  return module_text(kernel.parameters, kernel.body, kernel.type, plan);
}
void expect_followed(const Kernel& kernel, const std::vector<std::string>& plans) {
  for (const std::string& plan : plans)
    for (const char* cpu : kCpus) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(module_text(kernel, plan), {.tolerance = 1e-5, .cpus = {cpu}});
    }
}
bool fails(const Kernel& kernel, const std::string& plan, const std::string& why) {
  return lowering_error(module_text(kernel, plan)).find(why) != std::string::npos;
}

const std::string kSum = "region (%l: f32[], %h: f32[]) { %n = add %l, %h : f32[] return %n }";
const std::string kMaximum = "region (%l: f32[], %h: f32[]) { %n = maximum %l, %h : f32[] return %n }";

const Kernel kAdd = {"%x: f32[5,37], %y: f32[5,37]", "%r = add %x, %y {PLAN} : f32[5,37]", "f32[5,37]"};
const Kernel kReduce = {
    "%x: f32[3,2,71]",
    "%z = constant [0] : f32[] %r = reduce %x, %z {dims = [1, 2], PLAN} " + kSum + " : f32[3]", "f32[3]"};
const Kernel kColumns = {"%x: f32[23,19]",
                         "%z = constant [-inf] : f32[] %r = reduce %x, %z {dims = [0], PLAN} " + kMaximum +
                             " : f32[19]",
                         "f32[19]"};
const Kernel kPad = {"%x: f32[5,11]",
                     "%z = constant [1] : f32[] %r = pad %x, %z {low = [1, 2], high = [0, 7], interior = "
                     "[0, 0], PLAN} : f32[6,20]",
                     "f32[6,20]"};
const Kernel kWindow = {"%x: f32[2,3,9,10]",
                        "%z = constant [0] : f32[] %r = reduce_window %x, %z {window = 1x1x3x2, PLAN} " +
                            kSum + " : f32[2,3,7,9]",
                        "f32[2,3,7,9]"};

Kernel mean_over_positions(const std::string& cpu) {
  std::string blocked =
      "f32[2,24,5,7]{0,1,2,3:1x" + std::to_string(target_of("", cpu).cpu.channel_block()) + "}";
  return {"%x: f32[2,24,5,7]",
          "%b = copy %x : " + blocked +
              " %z = constant [0] : f32[] %r = reduce %b, %z {dims = [2, 3], PLAN} " + kSum + " : f32[2,24]",
          "f32[2,24]"};
}

// Softmax over one dim of two.
Kernel softmax(int dim) {
  std::string reduced = dim == 0 ? "f32[37]" : "f32[6]", kept = dim == 0 ? "[1]" : "[0]";
  std::string dims = "{dims = [" + std::to_string(dim) + "]} ";
  return {"%a: f32[6,37]",
          "%r = composite %a {name = softmax, dim = " + std::to_string(dim) +
              ", PLAN} region (%x: f32[6,37]) { %low = constant [-inf] : f32[] %m = reduce %x, %low " + dims +
              kMaximum + " : " + reduced + " %mb = broadcast_in_dim %m {dims = " + kept +
              "} : f32[6,37] %d = subtract %x, %mb : f32[6,37] %e = exponential %d : f32[6,37] %z = "
              "constant [0] : f32[] %t = reduce %e, %z " +
              dims + kSum + " : " + reduced + " %tb = broadcast_in_dim %t {dims = " + kept +
              "} : f32[6,37] %y = divide %e, %tb : f32[6,37] return %y } : f32[6,37]",
          "f32[6,37]"};
}

// x / sqrt(mean of squares), without exponentials.
const Kernel kNorm = {
    "%a: f32[3,150], %s: f32[150]",
    "%r = composite %a, %s {name = rms_norm, dim = 1, epsilon = 0.0, stash = f32, PLAN} region (%x: "
    "f32[3,150], %w: f32[150]) { %q = multiply %x, %x : "
    "f32[3,150] %z = constant [0] : f32[] %t = reduce %q, %z {dims = [1]} " +
        kSum +
        " : f32[3] %i = rsqrt %t : f32[3] %b = broadcast_in_dim %i {dims = [0]} : f32[3,150] %y = multiply "
        "%x, %b : f32[3,150] %c = broadcast_in_dim %w {dims = [1]} : f32[3,150] %o = multiply %y, %c : "
        "f32[3,150] return %o } : f32[3,150]",
    "f32[3,150]"};

Kernel scan(int dim) {
  return {"%x: f32[9,19]",
          "%r = cumulative %x {dim = " + std::to_string(dim) +
              ", exclusive = false, reverse = true, reducer = add, PLAN} : f32[9,19]",
          "f32[9,19]"};
}
Kernel arg_max(int dim) {
  return {"%x: f32[9,19]",
          "%r = arg_reduce %x {dim = " + std::to_string(dim) +
              ", kind = max, select_last = true, PLAN} : i64[" + (dim == 0 ? "19]" : "9]"),
          dim == 0 ? "i64[19]" : "i64[9]"};
}

} // namespace

TEST_CASE("element loops follow plans written by hand", "[plan]") {
  expect_followed(kAdd, {"elements", "elements lanes 1 unroll 1", "elements lanes 2 unroll 3",
                         "elements lanes 4 unroll 8", "elements lanes 16 unroll 2"});
  expect_followed(kPad, {"elements lanes 4 partitions 1", "elements lanes 4 partitions 2",
                         "elements lanes 8 partitions 9"});
  expect_followed(kWindow, {"elements lanes 4 max_unrolled_window 1",
                            "elements lanes 1 max_unrolled_window 3", "elements lanes 8"});
  CHECK(fails(kAdd, "elements lanes 3", "a power of two up to"));
  CHECK(fails(kAdd, "elements lanes 1024", "a power of two up to"));
  CHECK(fails(kAdd, "elements lanes 4 in_blocks", "no operand of a reduction lies in blocks"));
  CHECK(fails(kAdd, "rows", "no composite of reductions along rows"));
  CHECK(fails(softmax(1), "elements", "no code per element"));
}

TEST_CASE("reductions within elements follow plans written by hand", "[plan]") {
  const std::vector<std::string> plans = {
      "elements lanes 1 accumulators 1", "elements lanes 4 accumulators 1", "elements lanes 4 accumulators 3",
      "elements lanes 2 accumulators 8", "elements lanes 8 accumulators 2", "elements lanes 4 strided"};
  expect_followed(kReduce, plans);
  expect_followed(kColumns, plans);
  for (const char* cpu : kCpus)
    for (const char* plan : {"elements lanes 4", "elements lanes 4 in_blocks",
                             "elements lanes 2 accumulators 1 in_blocks", "elements lanes 16 in_blocks"}) {
      INFO(cpu << ": " << plan);
      expect_lowered_module(module_text(mean_over_positions(cpu), plan), {.tolerance = 1e-5, .cpus = {cpu}});
    }
}

TEST_CASE("the plan says how many accumulators a reduction has", "[plan]") {
  auto additions = [](const std::string& plan) {
    auto program = lower_text(module_text(kReduce, plan), "x86-64-v3");
    return count_ops(program.kernels[0]->body, firn::kernel::OpKind::FAdd);
  };
  CHECK(additions("elements lanes 4 accumulators 4") > additions("elements lanes 4 accumulators 2"));
  CHECK(additions("elements lanes 4 accumulators 2") > additions("elements lanes 4 accumulators 1"));
  CHECK(additions("elements") == additions("elements lanes 8 accumulators 4"));
}

TEST_CASE("rows follow plans written by hand", "[plan]") {
  for (int dim : {0, 1})
    expect_followed(softmax(dim),
                    {"rows", "rows lanes 1", "rows lanes 4 unroll 1 accumulators 1 stores_exponentials",
                     "rows lanes 2 unroll 5 accumulators 7", "rows lanes 4 strided stores_exponentials",
                     "rows lanes 16 stores_exponentials", "rows lanes 4 stores_exponentials fast_exp",
                     "rows lanes 16 unroll 1 stores_exponentials fast_exp"});
  CHECK(fails(softmax(1), "rows lanes 4 fast_exp", "no terms of a softmax"));
  CHECK(fails(kNorm, "rows lanes 4 fast_exp", "no terms of a softmax"));
  expect_followed(kNorm, {"rows", "rows lanes 1 accumulators 2", "rows lanes 8 unroll 4 accumulators 8",
                          "rows lanes 4 accumulators 3"});
  CHECK(fails(kNorm, "rows lanes 4 stores_exponentials", "no reduction has exponentials"));
  CHECK(fails(kNorm, "rows lanes 6", "a power of two up to"));
  CHECK(fails(kNorm, "rows in_producer", "no dot makes blocks of its rows"));
}

TEST_CASE("scans follow plans written by hand", "[plan]") {
  for (int dim : {0, 1}) {
    expect_followed(scan(dim), {"scan", "scan lanes 1", "scan lanes 2", "scan lanes 16"});
    expect_followed(arg_max(dim), {"arg_reduce", "arg_reduce lanes 1", "arg_reduce lanes 4"});
  }
  expect_followed(scan(0), {"scan lanes 1 by_rows", "scan lanes 8 by_rows"});
  CHECK(fails(scan(1), "scan lanes 8 by_rows", "running values of rows are those of a plain result"));
  CHECK(fails(scan(0), "scan lanes 5", "a power of two up to"));
  CHECK(fails(scan(0), "arg_reduce", "another operation"));
  CHECK(fails(arg_max(0), "scan", "another operation"));
  CHECK(fails(scan(0), "elements", "no code per element"));
}

TEST_CASE("sorts follow plans written by hand", "[plan]") {
  const Kernel sort = {
      "%x: i32[7,9]",
      "%r = sort %x {dim = 0, stable = true, PLAN} region (%a: i32[], %b: i32[]) { %q = compare "
      "%a, %b {direction = gt} : bool[] return %q } : i32[7,9]",
      "i32[7,9]"};
  const Kernel top = {
      "%x: f32[9,21]",
      "%s:2 = top_k %x {dim = 1, k = 3, largest = true, PLAN} : (f32[9,3], i64[9,3]) %r = copy "
      "%s#1 : i64[9,3]",
      "i64[9,3]"};
  expect_followed(sort, {"sort"});
  expect_followed(top, {"top_k", "top_k sorts", "top_k selects lanes 1", "top_k selects lanes 4",
                        "top_k selects lanes 2 held 4", "top_k selects lanes 1 held 13 vectors 4"});
  CHECK(fails(sort, "top_k", "another operation"));
  CHECK(fails(top, "sort", "another operation"));
  CHECK(fails(top, "top_k selects lanes 3", "a power of two"));
}
