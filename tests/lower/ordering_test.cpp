// Sorting, selection, running sums and writes at computed places.
#include "tests/lower/lowered_program.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {
const std::string kLess = "region (%a: f32[], %b: f32[], %c: i64[], %d: i64[]) { "
                          "%q = compare %a, %b {direction = lt} : bool[] return %q }";
} // namespace

TEST_CASE("sorts carry operands along", "[lower]") {
  for (int n : {1, 2, 3, 8, 37, 200}) {
    std::string dims = "[3," + std::to_string(n) + "]";
    for (const char* result : {"%s#0 : f32", "%s#1 : i64"}) {
      std::string type = std::string(result).substr(7) + dims;
      expect_lowered("%x: i32" + dims,
                     "%f = convert %x {to = f32} : f32" + dims + " %p = iota {dim = 1} : i64" + dims +
                         " %s:2 = sort %f, %p {dim = 1, stable = true} " + kLess + " : (f32" + dims +
                         ", i64" + dims + ") %r = copy " + result + dims,
                     type, {.tolerance = 0, .cpus = {"x86-64-v3"}});
    }
  }
  expect_lowered("%x: i8[7,5]",
                 "%r = sort %x {dim = 0, stable = true} region (%a: i8[], %b: i8[]) { "
                 "%q = compare %a, %b {direction = gt} : bool[] return %q } : i8[7,5]",
                 "i8[7,5]");
}

TEST_CASE("top_k prefers lower indices among equals", "[lower]") {
  for (const char* result : {"%s#0 : i32", "%s#1 : i64"})
    for (const char* largest : {"true", "false"}) {
      std::string type = std::string(result).substr(7);
      expect_lowered("%x: i32[3,41]",
                     std::string("%s:2 = top_k %x {dim = 1, k = 7, largest = ") + largest +
                         "} : (i32[3,7], i64[3,7]) %r = copy " + result + "[3,7]",
                     type + "[3,7]");
      expect_lowered("%x: i32[9,4]",
                     std::string("%s:2 = top_k %x {dim = 0, k = 2, largest = ") + largest +
                         "} : (i32[2,4], i64[2,4]) %r = copy " + result + "[2,4]",
                     type + "[2,4]");
    }
}

namespace {

// Both results, of the largest and of the smallest, exactly.
void expect_top_k(const std::string& parameters, const std::string& dtype, const std::string& operand,
                  const std::string& dims, int dim, int k) {
  std::string kept = dim == 0 ? "[" + std::to_string(k) + dims.substr(dims.find_first_of(",]"))
                              : dims.substr(0, dims.find(',') + 1) + std::to_string(k) + "]";
  for (const char* largest : {"true", "false"})
    for (int result : {0, 1}) {
      std::string type = (result == 0 ? dtype : "i64") + kept;
      expect_lowered(parameters,
                     operand + " %s:2 = top_k %v {dim = " + std::to_string(dim) +
                         ", k = " + std::to_string(k) + ", largest = " + largest + "} : (" + dtype + kept +
                         ", i64" + kept + ") %r = copy %s#" + std::to_string(result) + " : " + type,
                     type, {.tolerance = 0});
    }
}

} // namespace

TEST_CASE("top_k of every type that has an order", "[lower]") {
  for (const char* dtype :
       {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64"}) {
    std::string dims = "[3,37]", type = dtype + dims;
    expect_top_k("%x: i32" + dims, dtype, "%v = convert %x {to = " + std::string(dtype) + "} : " + type, dims,
                 1, 9);
  }
  expect_top_k("%x: u64[70]", "u64",
               "%m = constant [9223372036854775805] : u64[] %b = broadcast_in_dim %m {dims = []} : "
               "u64[70] %v = add %x, %b : u64[70]",
               "[70]", 0, 5);
}

TEST_CASE("top_k takes NaN for the largest, and zeros for equal", "[lower]") {
  for (int k : {1, 3, 7, 12})
    expect_top_k("", "f32", "%v = constant [0, -0, nan, inf, -inf, 1, -1, nan, -0, 0, 2, -inf] : f32[12]",
                 "[12]", 0, k);
}

TEST_CASE("top_k of lines longer than what is held of them", "[lower]") {
  for (int k : {1, 2, 70, 256}) { // whatever comes enters; nothing does; equal ones come late
    expect_top_k("", "f32", "%v = iota {dim = 0} : f32[5003]", "[5003]", 0, k);
    expect_top_k("", "f64", "%i = iota {dim = 0} : f64[5003] %v = negate %i : f64[5003]", "[5003]", 0, k);
    expect_top_k("%v: i16[4099]", "i16", "", "[4099]", 0, k);
  }
  expect_top_k("%v: f32[2,4099]", "f32", "", "[2,4099]", 1, 300); // sorts
  expect_top_k("%v: f32[4099,3]", "f32", "", "[4099,3]", 0, 33);
}

TEST_CASE("arg_reduce over inner and outer dims", "[lower]") {
  for (const char* kind : {"max", "min"})
    for (const char* last : {"true", "false"}) {
      std::string attributes = std::string(", kind = ") + kind + ", select_last = " + last + "}";
      expect_lowered("%x: i32[5,23]", "%r = arg_reduce %x {dim = 1" + attributes + " : i64[5]", "i64[5]");
      expect_lowered("%x: i32[5,23]", "%r = arg_reduce %x {dim = 0" + attributes + " : i64[23]", "i64[23]");
      expect_lowered("%x: f32[5,23]", "%r = arg_reduce %x {dim = 1" + attributes + " : i64[5]", "i64[5]");
    }
}

TEST_CASE("running sums", "[lower]") {
  for (const char* mode : {"exclusive = false, reverse = false", "exclusive = true, reverse = false",
                           "exclusive = true, reverse = true"})
    for (const char* dim : {"0", "1"})
      expect_lowered("%x: f32[9,19]",
                     std::string("%r = cumulative %x {dim = ") + dim + ", " + mode +
                         ", reducer = add} : f32[9,19]",
                     "f32[9,19]", {.tolerance = 1e-5});
}

TEST_CASE("updates at computed places", "[lower]") {
  LoweredOptions options = {.tolerance = 0, .ranges = {{"i", {-4, 3}}, {"j", {0, 30}}}};
  expect_lowered("%x: f32[4,37], %u: f32[2,9], %i: i64[], %j: i64[]",
                 "%r = dynamic_update_slice %x, %u, %i, %j : f32[4,37]", "f32[4,37]", options);
  for (const char* reduction : {"none", "add", "multiply", "maximum", "minimum"}) {
    expect_lowered("%x: i32[4,9], %i: i64[3,9], %u: i32[3,9]",
                   std::string("%r = scatter_elements %x, %i, %u {axis = 0, reduction = ") + reduction +
                       "} : i32[4,9]",
                   "i32[4,9]", options);
    expect_lowered("%x: f32[4,4,9], %i: i64[5,2], %u: f32[5,9]",
                   std::string("%r = scatter_nd %x, %i, %u {reduction = ") + reduction + "} : f32[4,4,9]",
                   "f32[4,4,9]", {.tolerance = 1e-6, .ranges = options.ranges});
  }
}

TEST_CASE("threads share sorts, selections and running sums by lines", "[lower]") {
  struct Case {
    std::string body, type;
  };
  const Case cases[] = {
      {"%r = sort %x {dim = 1, stable = true} region (%a: f32[], %b: f32[]) { "
       "%q = compare %a, %b {direction = lt} : bool[] return %q } : f32[23,97]",
       "f32[23,97]"},
      {"%s:2 = top_k %x {dim = 0, k = 3, largest = true} : (f32[3,97], i64[3,97]) %r = copy %s#1 : i64[3,97]",
       "i64[3,97]"},
      {"%r = cumulative %x {dim = 1, exclusive = false, reverse = false, reducer = add} : f32[23,97]",
       "f32[23,97]"},
      {"%r = arg_reduce %x {dim = 1, kind = max, select_last = false} : i64[23]", "i64[23]"},
  };
  for (const Case& c : cases) {
    expect_lowered("%x: f32[23,97]", c.body, c.type, {.cpus = {"x86-64-v3"}, .threads = 3});
    auto module = firn::parse_module("test", "module @m { func @main(%x: f32[23,97]) -> (" + c.type + ") { " +
                                                 c.body + " return %r } }");
    if (!module) FAIL(module.error().message);
    auto target = firn::find_target("x86_64-linux-gnu", "x86-64-v3", "");
    REQUIRE(target);
    auto program = firn::test::plan_and_lower(**module, {*target, {.threads = 3}});
    REQUIRE(program);
    INFO(firn::kernel::print_program(*program));
    CHECK(program->kernels[0]->max_iterations() > 1);
  }
}
