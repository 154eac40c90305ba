// Dots of bytes, bf16 and other narrow types, whose products take several steps of the reduction: on every
// CPU with products of its own, against the evaluator.
#include "tests/lower/typed_cases.h"

#include <catch2/catch.hpp>

using namespace firn::test;

namespace {

void expect_dot(const DotCase& c, const std::vector<std::string>& cpus = kProductCpus) {
  expect_lowered_module(c.text(), options_for(c.types, cpus));
}

// Many dots as one program.
void expect_dots(const std::vector<DotCase>& cases, const std::vector<std::string>& cpus) {
  std::string parameters, results, body, returned;
  LoweredOptions options = options_for(cases[0].types, cpus);
  for (size_t i = 0; i < cases.size(); ++i) {
    const DotCase& c = cases[i];
    std::string number = std::to_string(i), comma = i ? ", " : "";
    parameters += comma + "%x" + number + ": " + c.types.lhs + dims_text({c.m, c.k});
    std::string w = "%w" + number, type = c.types.rhs + dims_text({c.k, c.n});
    if (c.constant)
      body += w + " = " + extreme_constant(c.types.rhs, c.k * c.n, 3) + " : " + type + "\n";
    else
      parameters += ", " + w + ": " + type;
    std::string y = c.types.result + dims_text({c.m, c.n});
    body += "%y" + number + " = dot %x" + number + ", " + w +
            " {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], result = " +
            c.types.result + "} : " + y + "\n";
    results += comma + y;
    returned += comma + "%y" + number;
    options.ranges["x" + number] = range_of(c.types.lhs);
    options.ranges["w" + number] = range_of(c.types.rhs);
  }
  expect_lowered_module("module @m { func @main(" + parameters + ") -> (" + results + ") {\n" + body +
                            "return " + returned + " } }",
                        options);
}

} // namespace

TEST_CASE("dots of narrow types are computed by tiles on every CPU", "[lower][typed]") {
  for (const Types& types : kProductTypes)
    for (bool constant : {true, false}) expect_dot({types, 5, 39, 21, constant});
}

TEST_CASE("dots of narrow types of any extents", "[lower][typed]") {
  for (const Types& types : {kUnlikeBytes, kUnlikeBytesSwapped, kI16Bytes, kBytesI16, kBf16})
    for (int64_t k : {1, 2, 3, 4, 5, 33}) {
      std::vector<DotCase> cases;
      for (int64_t m : {1, 17})
        for (int64_t n : {1, 5, 16, 33})
          for (bool constant : {true, false}) cases.push_back({types, m, k, n, constant});
      expect_dots(cases, kNativeCpus);
    }
  // One byte after the last one is another page's.
  for (const Types& types : {kUnlikeBytes, kI16Bytes, kBytesI16, kBf16})
    for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
      LoweredOptions options = options_for(types, kNativeCpus);
      options.placement = placement;
      expect_lowered_module(DotCase{types, 3, 11, 7}.text(), options);
    }
}

TEST_CASE("dots of rows of bytes read no byte beyond their operands", "[lower][typed]") {
  for (const Types& types : {kSignedBytes, kUnlikeBytes})
    for (int64_t k : {1, 15, 16, 33})
      for (bool constant : {true, false})
        for (Placement placement : {Placement::AtEnd, Placement::AtStart}) {
          LoweredOptions options = options_for(types, {"native", "x86-64"});
          options.placement = placement;
          const std::string plan =
              "direct mac dot16 " + types.lhs + " " + types.rhs + " i32 tile 2x1 columns outermost";
          expect_lowered_module(DotCase{types, 5, k, 7, constant, plan}.text(), options);
        }
}

TEST_CASE("dots of no elements", "[lower][typed]") {
  for (const Types& types : {kUnlikeBytes, kBf16})
    expect_dots({{types, 0, 5, 3}, {types, 3, 0, 5, false}, {types, 3, 5, 0, false}}, kNativeCpus);
}

TEST_CASE("dots of integers that have no product of several steps", "[lower][typed]") {
  for (const Types& types :
       {Types{"i32", "i32", "i32"}, Types{"i16", "i32", "i32"}, Types{"u16", "i16", "i32"},
        Types{"i8", "i32", "i32"}, Types{"u8", "i8", "i8"}, Types{"i32", "i8", "i64"}})
    for (bool constant : {true, false})
      expect_dot({types, 5, 13, 19, constant}, {"native", "x86-64", "cortex-a72", "cortex-m3"});
}

TEST_CASE("columns of i32 are read where they lie", "[lower][typed][plan]") {
  for (const char* plan : {"direct tile 4x2 columns outermost unpacked", "direct tile 3x1 rows outermost"})
    expect_dot({{"i16", "i32", "i32"}, 5, 13, 37, false, plan}, kNativeCpus);
}

TEST_CASE("dots of narrow types whose steps do not lie side by side", "[lower][typed]") {
  for (const Types& types : kProductTypes)
    for (bool constant : {true, false}) {
      DotCase c{types, 6, 11, 18, constant};
      c.lhs_transposed = true;
      expect_dot(c, {"native", "x86-64", "neoverse-n1", "cortex-m4"});
      c.rhs_transposed = true;
      expect_dot(c, kNativeCpus);
      c.lhs_transposed = false;
      expect_dot(c, kNativeCpus);
    }
}

TEST_CASE("dots of narrow types with batches and several contracted dims", "[lower][typed]") {
  for (const Types& types : {kUnlikeBytes, kUnlikeBytesSwapped, kBf16}) {
    LoweredOptions options = options_for(types, kNativeCpus);
    std::string result = types.result + "[3,5,9]";
    expect_lowered_module("module @m { func @main(%x: " + types.lhs + "[3,5,7], %w: " + types.rhs +
                              "[3,7,9]) -> (" + result +
                              ") { %y = dot %x, %w {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], "
                              "rhs_contract = [1], result = " +
                              types.result + "} : " + result + " return %y } }",
                          options);
    // The lhs' last dim is contracted first.
    result = types.result + "[5,6]";
    expect_lowered_module("module @m { func @main(%x: " + types.lhs + "[3,5,7], %w: " + types.rhs +
                              "[7,6,3]) -> (" + result +
                              ") { %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [2, 0], "
                              "rhs_contract = [0, 2], result = " +
                              types.result + "} : " + result + " return %y } }",
                          options);
  }
}

TEST_CASE("dots of narrow types follow plans written by hand", "[lower][typed][plan]") {
  for (const Types& types : {kUnlikeBytes, kSignedBytes, kI16Bytes, kBf16}) {
    std::string own = are_bytes(types) ? "dot4 " : "dot2 ";
    std::string operands = types.lhs + " " + types.rhs + " " + types.result;
    const std::string plans[] = {"direct",
                                 "direct mac " + own + operands,
                                 "direct mac fma " + operands + " tile 3x2",
                                 "direct mac " + own + operands + " tile 5x3 rows outermost",
                                 "direct tile 13x1 splits 4 columns outermost",
                                 "direct tile 3x2 splits 2 rows outermost",
                                 "direct tile 4x1 columns outermost split_k 3",
                                 "direct tile 2x2 columns outermost row_block 6",
                                 "direct tile 3x1 columns outermost split_k 2 row_block 3",
                                 "direct tile 6x2 columns outermost optimize_size",
                                 "direct tile 4x2 columns outermost swap_operands",
                                 "direct tile 3x1 columns outermost split_m 4",
                                 "elements"};
    for (const std::string& plan : plans)
      for (bool constant : {true, false}) {
        INFO(plan);
        expect_dot({types, 13, 30, 37, constant, plan}, {"native", "x86-64-v3"});
      }
  }
}

TEST_CASE("sums of bytes are dequantised and quantised in the epilogue", "[lower][typed]") {
  std::string head = "module @m { func @main(%x: u8[7,22], %s: f32[19], %b: i32[19]) -> (",
              dot = ") { %w = " + extreme_constant("i8", 22 * 19, 9) +
                    " : i8[22,19] %r = fusion %x, %w, %s, %b {kind = contraction} region (%p: u8[7,22], %q: "
                    "i8[22,19], %t: f32[19], %d: i32[19]) { %y = dot %p, %q {lhs_batch = [], rhs_batch = [], "
                    "lhs_contract = [1], rhs_contract = [0], result = i32} : i32[7,19] %e = broadcast_in_dim "
                    "%d {dims = [1]} : i32[7,19] %a = add %y, %e : i32[7,19] %f = convert %a {to = f32} : "
                    "f32[7,19] %u = broadcast_in_dim %t {dims = [1]} : f32[7,19] %m = multiply %f, %u : "
                    "f32[7,19] ";
  LoweredOptions options = options_for(kUnlikeBytes, kProductCpus);
  std::erase(options.cpus, "cortex-m3");
  options.tolerance = 1e-6;
  options.ranges["s"] = {-1e-2, 1e-2};
  options.ranges["b"] = {-1e5, 1e5};
  for (std::string function : {"tanh", "sine", "cosine", "tan"})
    expect_lowered_module(head + "f32[7,19]" + dot + "%z = " + function +
                              " %m : f32[7,19] return %z } : f32[7,19] return %r } }",
                          options);
  for (std::string dtype : {"u8", "i8"}) {
    std::string type = dtype + "[7,19]", low = dtype == "u8" ? "0" : "-128",
                high = dtype == "u8" ? "255" : "127";
    expect_lowered_module(head + type + dot + "%z = narrow %m {high = " + high + ", low = " + low +
                              ", to = " + dtype + "} : " + type + " return %z } : " + type + " return %r } }",
                          options);
  }
}

TEST_CASE("strict numerics multiply bf16 in f32 where the CPU's instructions flush", "[lower][typed]") {
  DotCase c{kBf16, 5, 9, 7};
  LoweredOptions options = options_for(kBf16, kNativeCpus);
  options.math = firn::Math::Strict;
  options.ranges["x"] = {-1e-38, 1e-38};
  c.constant = false;
  options.tolerance = 1e-6;
  expect_lowered_module(c.text(), options);
}

TEST_CASE("plans name products, and those that types do not have are refused", "[lower][typed][plan]") {
  auto has = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  auto error = [](const Types& types, const std::string& plan) {
    return lowering_error(DotCase{types, 5, 9, 7, true, plan}.text());
  };
  CHECK(has(error(kUnlikeBytes, "direct mac dot4 i8 i8 i32"), "it multiplies u8 and i8 and sums in i32"));
  CHECK(has(error(kUnlikeBytes, "direct mac dot4 u8 i8 f32"), "it multiplies u8 and i8 and sums in i32"));
  CHECK(
      has(error(kUnlikeBytes, "direct mac dot2 u8 i8 i32"), "dot4 and dot16 are of bytes, and dot2 of bf16"));
  CHECK(has(error(kBf16, "direct mac dot4 bf16 bf16 f32"), "dot4 and dot16 are of bytes"));
  CHECK(has(error(kUnlikeBytes, "direct mac tile_matrix u8 i8 i32"), "the CPU has no tile matrices"));
  CHECK(has(error(kUnlikeBytes, "direct mac dot4 u8 i8 i32 accumulators tile_registers"),
            "elsewhere than in registers"));
  CHECK(has(error({"i8", "i8", "i8"}, "direct"), "register tiles do not sum such products"));
  CHECK(has(error(kUnlikeBytes, "direct tile 3x2 columns outermost unpacked"), "do not lie together"));
  CHECK(has(error(kUnlikeBytes, "direct tile 3x2 columns outermost split_k 4"),
            "split_k would leave parts without any"));
}

TEST_CASE("pairs of products that always fit 16 bits are summed there", "[lower][typed][plan]") {
  // 255 * 128 and -255 * 128 are the last that do; where one pair does not fit, or nobody knows, none is.
  auto text = [](const std::string& last, bool transposed, const std::string& plan) {
    std::string values = "64, 64, -128, 127, 127, 1, -64, -64, 0, " + last;
    std::string w = transposed ? "i8[1,10]" : "i8[10,1]", dim = transposed ? "1" : "0";
    return "module @m { func @main(%x: u8[7,10]) -> (i32[7,1]) { %w = constant [" + values + "] : " + w +
           " %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [" + dim +
           "], result = i32" + plan + "} : i32[7,1] return %y } }";
  };
  auto products = [&](const std::string& module, const std::string& cpu) {
    return count_ops(lower_text(module, cpu).kernels[0]->body, firn::kernel::OpKind::DotU8S8Narrow);
  };
  for (bool transposed : {false, true}) {
    CHECK(products(text("-128", transposed, ""), "x86-64-v3") > 0);
    CHECK(products(text("-128", transposed, ""), "icelake-server") == 0);
    CHECK(products(text("-128", transposed, ""), "x86-64") == 0);
    LoweredOptions options = options_for(kUnlikeBytes, kNativeCpus);
    options.ranges["x"] = {255, 255};
    expect_lowered_module(text("-128", transposed, ""), options);
    options = options_for(kUnlikeBytes, kNativeCpus);
    expect_lowered_module(text("-128", transposed, ""), options);
  }
  auto beyond = [](const std::string& first, const std::string& second) {
    return "module @m { func @main(%x: u8[7,2]) -> (i32[7,1]) { %w = constant [" + first + ", " + second +
           "] : i8[2,1] %y = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
           "[0], result = i32} : i32[7,1] return %y } }";
  };
  CHECK(products(beyond("64", "64"), "x86-64-v3") > 0);
  CHECK(products(beyond("64", "65"), "x86-64-v3") == 0);
  CHECK(products(beyond("-127", "-1"), "x86-64-v3") > 0);
  CHECK(products(beyond("-128", "-1"), "x86-64-v3") == 0);
  std::string known = text("-128", false, ", plan = \"direct mac dot4_narrow u8 i8 i32 tile 3x1\"");
  CHECK(products(known, "x86-64-v3") > 0);
  std::string unknown = DotCase{kUnlikeBytes, 5, 8, 7, false, "direct mac dot4_narrow u8 i8 i32"}.text();
  CHECK(lowering_error(unknown).find("not all pairs of its products are known to fit 16 bits") !=
        std::string::npos);
}
