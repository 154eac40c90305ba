// Arithmetic by tables: integers with their expected bits, floats against the host's IEEE arithmetic.
#include "tests/ptx/one_instruction.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

namespace firn::ptx::test {
namespace {

struct Row {
  const char* text;
  Signature signature;
  std::vector<uint64_t> values;
  uint64_t wanted;
};

const Signature k16{"b16", {"b16", "b16"}}, k32{"b32", {"b32", "b32"}}, k64{"b64", {"b64", "b64"}};
const Signature k32One{"b32", {"b32"}}, k64One{"b64", {"b64"}}, k16One{"b16", {"b16"}};
const Signature k16Three{"b16", {"b16", "b16", "b16"}}, k32Three{"b32", {"b32", "b32", "b32"}},
    k64Three{"b64", {"b64", "b64", "b64"}};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string error;
    INFO(row.text);
    CHECK(run_instruction(row.text, row.signature, row.values, &error) == row.wanted);
    CHECK(error == "");
  }
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint32_t kNan = 0x7fffffff;

// Values at the edges of f32, and some between.
std::vector<float> edge_floats() {
  std::vector<float> values = {
      0.0f,  -0.0f, 1.0f, -1.0f, 1.5f, 0x1p-126f, 0x1p-149f, -0x1.fffffep-127f, 0x1.fffffep127f,
      -kInf, kInf,  NAN,  3.0f,  0.1f, 1e30f,     -1e-30f};
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return values;
}

bool equal_bits(uint64_t found, float wanted) {
  return std::isnan(wanted) ? found == kNan : found == bits(wanted);
}

} // namespace

TEST_CASE("sums, differences, quotients and remainders of integers") {
  check({
      {"add.s32 %d, %a, %b;", k32, {0x7fffffff, 1}, 0x80000000},
      {"add.sat.s32 %d, %a, %b;", k32, {0x7fffffff, 1}, 0x7fffffff},
      {"sub.sat.s32 %d, %a, %b;", k32, {0x80000000, 1}, 0x80000000},
      {"add.u16 %d, %a, %b;", k16, {0xffff, 2}, 1},
      {"add.s64 %d, %a, %b;", k64, {~uint64_t{0}, 2}, 1},
      {"add.s32 %d, %a, -5;", k32One, {3}, 0xfffffffe},
      {"sub.u32 %d, %a, %b;", k32, {1, 2}, 0xffffffff},
      {"div.s32 %d, %a, %b;", k32, {static_cast<uint32_t>(-7), 2}, static_cast<uint32_t>(-3)},
      {"div.s32 %d, %a, %b;", k32, {0x80000000, 0xffffffff}, 0x80000000},
      {"div.u32 %d, %a, %b;", k32, {7, 0}, 0xffffffff},
      {"div.u64 %d, %a, %b;", k64, {uint64_t{1} << 40, 3}, (uint64_t{1} << 40) / 3},
      {"div.s16 %d, %a, %b;", k16, {0xfff9, 2}, 0xfffd},
      {"rem.s32 %d, %a, %b;", k32, {static_cast<uint32_t>(-7), 2}, 0xffffffff},
      {"rem.u32 %d, %a, %b;", k32, {7, 4}, 3},
      {"rem.s32 %d, %a, %b;", k32, {0x80000000, 0xffffffff}, 0},
      {"min.s32 %d, %a, %b;", k32, {0xffffffff, 1}, 0xffffffff},
      {"min.u32 %d, %a, %b;", k32, {0xffffffff, 1}, 1},
      {"max.s16 %d, %a, %b;", k16, {0xffff, 1}, 1},
      {"max.u64 %d, %a, %b;", k64, {~uint64_t{0}, 1}, ~uint64_t{0}},
      {"abs.s32 %d, %a;", k32One, {0xfffffffb}, 5},
      {"abs.s64 %d, %a;", k64One, {~uint64_t{0}}, 1},
      {"neg.s32 %d, %a;", k32One, {5}, 0xfffffffb},
      {"neg.s16 %d, %a;", k16One, {0x8000}, 0x8000},
      {"sad.s32 %d, %a, %b, %c;", k32Three, {0xfffffffe, 3, 10}, 15},
  });
}

TEST_CASE("products of integers") {
  check({
      {"mul.lo.s32 %d, %a, %b;", k32, {0x10001, 0x10001}, 0x20001},
      {"mul.hi.u32 %d, %a, %b;", k32, {0xffffffff, 0xffffffff}, 0xfffffffe},
      {"mul.hi.s32 %d, %a, %b;", k32, {0xffffffff, 2}, 0xffffffff},
      {"mul.hi.u64 %d, %a, %b;", k64, {~uint64_t{0}, 2}, 1},
      {"mul.hi.s16 %d, %a, %b;", k16, {0x4000, 4}, 1},
      {"mul.lo.u16 %d, %a, %b;", k16, {0xffff, 0xffff}, 1},
      {"mul.wide.s32 %d, %a, %b;", {"b64", {"b32", "b32"}}, {0xffffffff, 4}, static_cast<uint64_t>(-4)},
      {"mul.wide.u32 %d, %a, %b;", {"b64", {"b32", "b32"}}, {0xffffffff, 4}, 0x3fffffffc},
      {"mul.wide.u16 %d, %a, %b;", {"b32", {"b16", "b16"}}, {0xffff, 0xffff}, 0xfffe0001},
      {"mul.wide.s16 %d, %a, %b;", {"b32", {"b16", "b16"}}, {0xffff, 5}, 0xfffffffb},
      {"mad.lo.s32 %d, %a, %b, %c;", k32Three, {3, 5, 0xffffffff}, 14},
      {"mad.hi.u32 %d, %a, %b, %c;", k32Three, {0x80000000, 6, 7}, 10},
      {"mad.lo.u64 %d, %a, %b, %c;", k64Three, {3, 5, 7}, 22},
      {"mad.lo.u16 %d, %a, %b, %c;", k16Three, {0x100, 0x100, 7}, 7},
      {"mad.wide.s32 %d, %a, %b, %c;", {"b64", {"b32", "b32", "b64"}}, {0xffffffff, 4, 3}, ~uint64_t{0}},
      {"mad.wide.u16 %d, %a, %b, %c;", {"b32", {"b16", "b16", "b32"}}, {2, 3, 0x10000}, 0x10006},
      {"mul24.lo.u32 %d, %a, %b;", k32, {0xff000003, 5}, 15},
      {"mad24.lo.s32 %d, %a, %b, %c;", k32Three, {0x00ffffff, 5, 2}, 0xfffffffd},
      {"dp4a.s32.s32 %d, %a, %b, %c;", k32Three, {0xff020304, 0x01010101, 10}, 18},
      {"dp4a.u32.s32 %d, %a, %b, %c;", k32Three, {0xff000000, 0xff000000, 0}, static_cast<uint32_t>(-255)},
      {"dp2a.lo.s32.u32 %d, %a, %b, %c;", k32Three, {0xffff0002, 0x05060304, 1}, 6},
      {"dp2a.hi.u32.u32 %d, %a, %b, %c;", k32Three, {0x00010002, 0x05060304, 1}, 18},
  });
}

TEST_CASE("arithmetic of many words") {
  check({
      {"add.cc.u32 %d, %a, %b; addc.u32 %d, 0, 0;", k32, {0xffffffff, 1}, 1},
      {"add.cc.u32 %d, %a, %b; addc.u32 %d, 5, 0;", k32, {0xfffffffe, 1}, 5},
      {"sub.cc.u32 %d, %a, %b; subc.u32 %d, 7, 0;", k32, {1, 2}, 6},
      {"mad.lo.cc.u32 %d, %a, %b, 1; madc.hi.u32 %d, %a, %b, 0;", k32, {0xffffffff, 0xffffffff}, 0xfffffffe},
      {"mad.lo.cc.u32 %d, %a, %b, -1; madc.hi.u32 %d, %a, %b, 0;", k32, {0xffffffff, 0xffffffff}, 0xffffffff},
      {"add.cc.u64 %d, %a, %b; addc.cc.u64 %d, %a, 0; addc.u64 %d, 0, 0;", k64, {~uint64_t{0}, 1}, 1},
  });
}

TEST_CASE("f32 as the host computes it") {
  const Signature two{"f32", {"f32", "f32"}};
  for (float a : edge_floats())
    for (float b : edge_floats()) {
      INFO(a << " and " << b);
      auto run = [&](const char* text) { return run_instruction(text, two, {bits(a), bits(b)}); };
      CHECK(equal_bits(run("add.f32 %d, %a, %b;"), a + b));
      CHECK(equal_bits(run("sub.rn.f32 %d, %a, %b;"), a - b));
      CHECK(equal_bits(run("mul.f32 %d, %a, %b;"), a * b));
      CHECK(equal_bits(run("div.rn.f32 %d, %a, %b;"), a / b));
      CHECK(equal_bits(run("fma.rn.f32 %d, %a, %b, %b;"), std::fma(a, b, b)));
    }
  for (float a : edge_floats()) {
    CHECK(equal_bits(run_instruction("sqrt.rn.f32 %d, %a;", {"f32", {"f32"}}, {bits(a)}), std::sqrt(a)));
    CHECK(equal_bits(run_instruction("rcp.rn.f32 %d, %a;", {"f32", {"f32"}}, {bits(a)}), 1 / a));
  }
}

TEST_CASE("rounding, flushing and limiting") {
  const Signature two{"f32", {"f32", "f32"}}, one{"f32", {"f32"}};
  const uint64_t third = bits(1.0f), three = bits(3.0f), tiny = bits(0x1p-149f);
  check({
      {"div.rz.f32 %d, %a, %b;", two, {third, three}, 0x3eaaaaaa},
      {"div.rp.f32 %d, %a, %b;", two, {third, three}, 0x3eaaaaab},
      {"div.rm.f32 %d, %a, %b;", two, {bits(-1.0f), three}, 0xbeaaaaab},
      {"add.rp.f32 %d, %a, %b;", two, {third, tiny}, 0x3f800001},
      {"add.rm.f32 %d, %a, %b;", two, {third, tiny}, 0x3f800000},
      {"add.rm.f32 %d, %a, %b;", two, {third, bits(-0x1p-149f)}, 0x3f7fffff},
      {"mul.rz.f32 %d, %a, %b;", two, {bits(0x1.fffffep127f), three}, 0x7f7fffff},
      {"fma.rz.f32 %d, %a, %b, %a;", two, {third, tiny}, 0x3f800000},
      {"fma.rp.f32 %d, %a, %b, %a;", two, {third, tiny}, 0x3f800001},
      {"sqrt.rm.f32 %d, %a;", one, {bits(2.0f)}, 0x3fb504f3},
      {"sqrt.rp.f32 %d, %a;", one, {bits(2.0f)}, 0x3fb504f4},
      {"add.ftz.f32 %d, %a, %a;", one, {tiny}, 0},
      {"mul.ftz.f32 %d, %a, %b;", two, {bits(-0x1p-100f), bits(0x1p-40f)}, 0x80000000},
      {"mul.f32 %d, %a, %b;", two, {bits(-0x1p-100f), bits(0x1p-40f)}, bits(-0x1p-140f)},
      {"add.sat.f32 %d, %a, %a;", one, {bits(0.75f)}, bits(1.0f)},
      {"add.sat.f32 %d, %a, %a;", one, {bits(-2.0f)}, 0},
      {"add.sat.f32 %d, %a, %a;", one, {kNan}, 0},
      {"fma.rn.sat.f32 %d, %a, %a, %a;", one, {bits(0.25f)}, bits(0.3125f)},
  });
}

TEST_CASE("the least and the greatest, signs") {
  const Signature two{"f32", {"f32", "f32"}}, one{"f32", {"f32"}};
  const uint64_t zero = 0, minus = 0x80000000;
  check({
      {"min.f32 %d, %a, %b;", two, {zero, minus}, minus},
      {"min.f32 %d, %a, %b;", two, {minus, zero}, minus},
      {"max.f32 %d, %a, %b;", two, {minus, zero}, zero},
      {"max.f32 %d, %a, %b;", two, {kNan, bits(2.0f)}, bits(2.0f)},
      {"max.NaN.f32 %d, %a, %b;", two, {bits(2.0f), kNan}, kNan},
      {"min.NaN.f32 %d, %a, %b;", two, {bits(2.0f), bits(-2.0f)}, bits(-2.0f)},
      {"abs.f32 %d, %a;", one, {bits(-2.0f)}, bits(2.0f)},
      {"neg.f32 %d, %a;", one, {bits(2.0f)}, bits(-2.0f)},
      {"neg.ftz.f32 %d, %a;", one, {bits(0x1p-149f)}, minus},
      {"copysign.f32 %d, %a, %b;", two, {bits(-1.0f), bits(3.0f)}, bits(-3.0f)},
      {"min.f64 %d, %a, %b;", {"b64", {"b64", "b64"}}, {bits(1.0), bits(-1.0)}, bits(-1.0)},
      {"abs.f64 %d, %a;", k64One, {bits(-1.5)}, bits(1.5)},
      {"neg.f16x2 %d, %a;", k32One, {0x3c00bc00}, 0xbc003c00},
      {"abs.bf16 %d, %a;", k16One, {0xbf80}, 0x3f80},
  });
}

TEST_CASE("f64") {
  const Signature two{"f64", {"f64", "f64"}};
  for (double a : {1.0, -0.1, 1e300, 4.9e-324, 3.0})
    for (double b : {1.0, 0.3, -1e300, 2.2e-308}) {
      auto run = [&](const char* text) {
        return run_instruction(text, {"b64", {"b64", "b64"}}, {bits(a), bits(b)});
      };
      CHECK(run("add.f64 %d, %a, %b;") == bits(a + b));
      CHECK(run("mul.rn.f64 %d, %a, %b;") == bits(a * b));
      CHECK(run("div.rn.f64 %d, %a, %b;") == bits(a / b));
      CHECK(run("fma.rn.f64 %d, %a, %b, %a;") == bits(std::fma(a, b, a)));
    }
  CHECK(run_instruction("add.rp.f64 %d, %a, %b;", {"b64", {"b64", "b64"}}, {bits(1.0), bits(1e-30)}) ==
        bits(std::nextafter(1.0, 2.0)));
  CHECK(run_instruction("sqrt.rn.f64 %d, %a;", k64One, {bits(2.0)}) == bits(std::sqrt(2.0)));
}

TEST_CASE("approximations are the true value rounded") {
  const Signature one{"f32", {"f32"}};
  for (float a : {0.3f, 1.0f, 2.5f, 7.0f, 0.01f}) {
    auto run = [&](const char* text) { return run_instruction(text, one, {bits(a)}); };
    CHECK(run("ex2.approx.f32 %d, %a;") == bits(static_cast<float>(std::exp2(double{a}))));
    CHECK(run("ex2.approx.ftz.f32 %d, %a;") == bits(static_cast<float>(std::exp2(double{a}))));
    CHECK(run("lg2.approx.f32 %d, %a;") == bits(static_cast<float>(std::log2(double{a}))));
    CHECK(run("sin.approx.f32 %d, %a;") == bits(static_cast<float>(std::sin(double{a}))));
    CHECK(run("cos.approx.ftz.f32 %d, %a;") == bits(static_cast<float>(std::cos(double{a}))));
    CHECK(run("tanh.approx.f32 %d, %a;") == bits(static_cast<float>(std::tanh(double{a}))));
    CHECK(run("rsqrt.approx.f32 %d, %a;") == bits(static_cast<float>(1 / std::sqrt(double{a}))));
    CHECK(run("rcp.approx.ftz.f32 %d, %a;") == bits(1 / a));
    CHECK(run("sqrt.approx.f32 %d, %a;") == bits(std::sqrt(a)));
    CHECK(run("div.approx.f32 %d, %a, 0f40400000;") == bits(a / 3));
    CHECK(run("div.full.f32 %d, %a, 0f40400000;") == bits(a / 3));
  }
  CHECK(run_instruction("ex2.approx.ftz.f32 %d, %a;", one, {bits(-130.0f)}) == 0);
  CHECK(run_instruction("ex2.approx.f32 %d, %a;", one, {bits(-130.0f)}) == bits(0x1p-130f));
}

TEST_CASE("f16 and bf16 are rounded once") {
  check({
      {"add.f16 %d, %a, %b;", k16, {0x3c00, 0x1000}, 0x3c00}, // 1 + 2^-11 ties to even
      {"add.rn.f16 %d, %a, %b;", k16, {0x3c01, 0x1000}, 0x3c02},
      {"mul.f16 %d, %a, %b;", k16, {0x7bff, 0x4000}, 0x7c00},
      {"mul.f16 %d, %a, %b;", k16, {0x0001, 0x3800}, 0x0000},
      {"sub.f16 %d, %a, %b;", k16, {0x3c00, 0x3c00}, 0x0000},
      {"add.f16 %d, %a, %b;", k16, {0x7c00, 0xfc00}, 0x7fff},
      {"fma.rn.f16 %d, %a, %b, %c;", k16Three, {0x3c01, 0x3c01, 0x8000}, 0x3c02},
      // The product is a tie that would become even; the tiny addend decides.
      {"fma.rn.f16 %d, %a, %b, %c;", k16Three, {0x3c01, 0x3e00, 0x8001}, 0x3e01},
      {"fma.rn.bf16 %d, %a, %b, %c;", k16Three, {0x3f81, 0x3fc0, 0x8380}, 0x3fc1},
      {"fma.rn.bf16 %d, %a, %b, %c;", k16Three, {0x3f81, 0x3fc0, 0x0380}, 0x3fc2},
      {"add.f16x2 %d, %a, %b;", k32, {0x3c004000, 0x3c003c00}, 0x40004200},
      {"fma.rn.f16x2 %d, %a, %b, %c;", k32Three, {0x40003c00, 0x40003c00, 0x3c003c00}, 0x45004000},
      {"add.rn.bf16 %d, %a, %b;", k16, {0x3f80, 0x3b80}, 0x3f80},
      {"add.rn.bf16 %d, %a, %b;", k16, {0x3f81, 0x3b80}, 0x3f82},
      {"fma.rn.bf16 %d, %a, %b, %c;", k16Three, {0x3f80, 0x3b80, 0x3f80}, 0x3f80},
      {"mul.rn.bf16x2 %d, %a, %b;", k32, {0x40003f80, 0x40404040}, 0x40c04040},
      {"fma.rn.bf16x2 %d, %a, %b, %c;", k32Three, {0x3f803f80, 0x3b803b80, 0x3f813f80}, 0x3f823f80},
      {"min.f16 %d, %a, %b;", k16, {0xc000, 0x3c00}, 0xc000},
      {"max.NaN.bf16 %d, %a, %b;", k16, {0x7fc0, 0x3f80}, 0x7fff},
      {"add.sat.f16 %d, %a, %a;", k16One, {0x3c00}, 0x3c00},
      {"ex2.approx.f16 %d, %a;", k16One, {0x4000}, 0x4400},
      {"tanh.approx.bf16 %d, %a;", k16One, {0x0000}, 0x0000},
  });
}

TEST_CASE("what would depend on order, or is not known, is refused with its line") {
  std::string error;
  run_instruction("add.s32.foo %d, %a, %b;", k32, {1, 2}, &error);
  CHECK(error == "line 14: the modifier '.foo' of 'add.s32.foo' is not known");
  run_instruction("frobnicate.b32 %d, %a, %b;", k32, {1, 2}, &error);
  CHECK(error == "line 14: 'frobnicate.b32' is not known");
  run_instruction("atom.global.add.f32 %d, [%in], %a;", k32, {1, 2}, &error);
  CHECK(error.find("depends on the order of threads") != std::string::npos);
  run_instruction("add.s64 %d, %a, %b;", k32, {1, 2}, &error);
  CHECK(error == "line 14: a register of type b32, wanted s64");
}

} // namespace firn::ptx::test
