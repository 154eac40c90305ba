// Logic, shifts, fields, comparisons and moves by tables.
#include "tests/ptx/one_instruction.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace firn::ptx::test {
namespace {

struct Row {
  const char* text;
  Signature signature;
  std::vector<uint64_t> values;
  uint64_t wanted;
};

const Signature k32{"b32", {"b32", "b32"}}, k32One{"b32", {"b32"}}, k64{"b64", {"b64", "b64"}},
    k64One{"b64", {"b64"}};
const Signature k32Three{"b32", {"b32", "b32", "b32"}}, kPred{"pred", {"b32", "b32"}};
const Signature kWideShift{"b64", {"b64", "b32"}}, kPreds{"pred", {"pred", "pred"}};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string error;
    INFO(row.text);
    CHECK(run_instruction(row.text, row.signature, row.values, &error) == row.wanted);
    CHECK(error == "");
  }
}

} // namespace

TEST_CASE("logic") {
  check({
      {"and.b32 %d, %a, %b;", k32, {0xff00ff00, 0x0ff00ff0}, 0x0f000f00},
      {"or.b64 %d, %a, %b;", k64, {uint64_t{1} << 63, 1}, (uint64_t{1} << 63) | 1},
      {"xor.b16 %d, %a, %b;", {"b16", {"b16", "b16"}}, {0xff, 0x0f}, 0xf0},
      {"not.b32 %d, %a;", k32One, {0xff}, 0xffffff00},
      {"cnot.b32 %d, %a;", k32One, {0}, 1},
      {"cnot.b32 %d, %a;", k32One, {7}, 0},
      {"and.pred %d, %a, %b;", kPreds, {1, 1}, 1},
      {"and.pred %d, %a, %b;", kPreds, {1, 0}, 0},
      {"or.pred %d, %a, %b;", kPreds, {1, 0}, 1},
      {"xor.pred %d, %a, %b;", kPreds, {1, 1}, 0},
      {"not.pred %d, %a;", {"pred", {"pred"}}, {1}, 0},
      {"mov.pred %d, %a;", {"pred", {"pred"}}, {1}, 1},
      {"lop3.b32 %d, %a, %b, %c, 0x96;", k32Three, {0xf0, 0xcc, 0xaa}, 0x96},
      {"lop3.b32 %d, %a, %b, %c, 0xe8;", k32Three, {0xf0, 0xcc, 0xaa}, 0xe8},
  });
}

TEST_CASE("shifts and fields") {
  check({
      {"shl.b32 %d, %a, %b;", k32, {1, 31}, 0x80000000},
      {"shl.b32 %d, %a, %b;", k32, {1, 32}, 0},
      {"shl.b64 %d, %a, %b;", kWideShift, {1, 40}, uint64_t{1} << 40},
      {"shr.u32 %d, %a, %b;", k32, {0x80000000, 31}, 1},
      {"shr.s32 %d, %a, %b;", k32, {0x80000000, 40}, 0xffffffff},
      {"shr.u64 %d, %a, %b;", kWideShift, {uint64_t{1} << 63, 64}, 0},
      {"shr.s64 %d, %a, 1;", k64One, {~uint64_t{0}}, ~uint64_t{0}},
      {"shr.s16 %d, %a, %b;", {"b16", {"b16", "b32"}}, {0x8000, 3}, 0xf000},
      {"shf.l.wrap.b32 %d, %a, %b, %c;", k32Three, {0x80000001, 0x12345678, 36}, 0x23456788},
      {"shf.r.wrap.b32 %d, %a, %b, %c;", k32Three, {0x12345678, 0x9, 4}, 0x91234567},
      {"shf.r.clamp.b32 %d, %a, %b, %c;", k32Three, {0x12345678, 0x9, 50}, 0x9},
      {"bfe.u32 %d, %a, %b, %c;", k32Three, {0xabcd1234, 8, 12}, 0xd12},
      {"bfe.s32 %d, %a, %b, %c;", k32Three, {0xabcd1234, 16, 16}, 0xffffabcd},
      {"bfe.s32 %d, %a, %b, %c;", k32Three, {0x80000000, 28, 20}, 0xfffffff8},
      {"bfe.u32 %d, %a, %b, %c;", k32Three, {0xffffffff, 40, 4}, 0},
      {"bfe.s32 %d, %a, %b, %c;", k32Three, {0xffffffff, 3, 0}, 0},
      {"bfi.b32 %d, %a, %b, 8, 4;", k32, {0x5, 0xffffffff}, 0xfffff5ff},
      {"bfi.b32 %d, %a, %b, 0, 32;", k32, {0x5, 0xffffffff}, 5},
      {"brev.b32 %d, %a;", k32One, {1}, 0x80000000},
      {"brev.b64 %d, %a;", k64One, {2}, uint64_t{1} << 62},
      {"clz.b32 %d, %a;", k32One, {0}, 32},
      {"clz.b64 %d, %a;", {"b32", {"b64"}}, {1}, 63},
      {"popc.b32 %d, %a;", k32One, {0xff01}, 9},
      {"popc.b64 %d, %a;", {"b32", {"b64"}}, {~uint64_t{0}}, 64},
      {"bfind.u32 %d, %a;", k32One, {0x100}, 8},
      {"bfind.shiftamt.u32 %d, %a;", k32One, {0x100}, 23},
      {"bfind.s32 %d, %a;", k32One, {0xffffffff}, 0xffffffff},
      {"prmt.b32 %d, %a, %b, %c;", k32Three, {0x33221100, 0x77665544, 0x7531}, 0x77553311},
      {"prmt.b32 %d, %a, %b, 0x8;", k32, {0x80, 0}, 0x000000ff | 0x80808000},
      {"prmt.b32.rc8 %d, %a, %b, 2;", k32, {0x33221100, 0}, 0x22222222},
  });
}

TEST_CASE("comparisons, ordered and not") {
  const uint64_t nan = 0x7fffffff, one = 0x3f800000, two = 0x40000000;
  check({
      {"setp.lt.s32 %d, %a, %b;", kPred, {0xffffffff, 1}, 1},
      {"setp.lt.u32 %d, %a, %b;", kPred, {0xffffffff, 1}, 0},
      {"setp.hi.u32 %d, %a, %b;", kPred, {0xffffffff, 1}, 1},
      {"setp.ls.u32 %d, %a, %b;", kPred, {1, 1}, 1},
      {"setp.ge.s64 %d, %a, %b;", {"pred", {"b64", "b64"}}, {~uint64_t{0}, 0}, 0},
      {"setp.eq.b16 %d, %a, %b;", {"pred", {"b16", "b16"}}, {5, 5}, 1},
      {"setp.eq.f32 %d, %a, %b;", kPred, {nan, nan}, 0},
      {"setp.ne.f32 %d, %a, %b;", kPred, {nan, one}, 0},
      {"setp.neu.f32 %d, %a, %b;", kPred, {nan, one}, 1},
      {"setp.ltu.f32 %d, %a, %b;", kPred, {nan, one}, 1},
      {"setp.ltu.f32 %d, %a, %b;", kPred, {two, one}, 0},
      {"setp.geu.f32 %d, %a, %b;", kPred, {one, two}, 0},
      {"setp.gt.f32 %d, %a, %b;", kPred, {two, one}, 1},
      {"setp.num.f32 %d, %a, %b;", kPred, {two, nan}, 0},
      {"setp.nan.f32 %d, %a, %b;", kPred, {two, nan}, 1},
      {"setp.gt.ftz.f32 %d, %a, %b;", kPred, {1, 0}, 0},
      {"setp.gt.f32 %d, %a, %b;", kPred, {1, 0}, 1},
      {"setp.lt.f16 %d, %a, %b;", {"pred", {"b16", "b16"}}, {0xbc00, 0x3c00}, 1},
      {"setp.lt.bf16 %d, %a, %b;", {"pred", {"b16", "b16"}}, {0xbf80, 0x3f80}, 1},
      {"setp.lt.and.s32 %d, %a, %b, %c;", {"pred", {"b32", "b32", "pred"}}, {1, 2, 0}, 0},
      {"setp.lt.or.s32 %d, %a, %b, !%c;", {"pred", {"b32", "b32", "pred"}}, {2, 1, 0}, 1},
      {".reg .pred %q; setp.lt.s32 %q|%d, %a, %b;", kPred, {1, 2}, 0},
      {".reg .pred %q; setp.lt.f16x2 %q|%d, %a, %b;", kPred, {0x3c004000, 0x40003c00}, 1},
      {"set.lt.u32.s32 %d, %a, %b;", k32, {1, 2}, 0xffffffff},
      {"set.gt.f32.f32 %d, %a, %b;", k32, {two, one}, one},
      {"selp.b32 %d, %a, %b, %c;", {"b32", {"b32", "b32", "pred"}}, {1, 2, 1}, 1},
      {"selp.f32 %d, %a, %b, %c;", {"b32", {"b32", "b32", "pred"}}, {1, 2, 0}, 2},
      {"slct.b32.s32 %d, %a, %b, %c;", k32Three, {1, 2, 0xffffffff}, 2},
      {"slct.f32.f32 %d, %a, %b, %c;", k32Three, {1, 2, 0x80000000}, 1},
      {"testp.subnormal.f32 %d, %a;", {"pred", {"b32"}}, {1}, 1},
      {"testp.finite.f32 %d, %a;", {"pred", {"b32"}}, {0x7f800000}, 0},
  });
}

TEST_CASE("moves") {
  check({
      {"mov.b64 %d, {%a, %b};", {"b64", {"b32", "b32"}}, {1, 2}, 0x200000001},
      {"mov.b32 %d, {%a, %b};", {"b32", {"b16", "b16"}}, {1, 2}, 0x20001},
      {"mov.b64 {%d, _}, %a;", {"b32", {"b64"}}, {0x200000001}, 1},
      {"mov.b64 {_, %d}, %a;", {"b32", {"b64"}}, {0x200000001}, 2},
      {"mov.b32 {_, %d}, %a;", {"b16", {"b32"}}, {0x50004}, 5},
      {"mov.u32 %d, %ntid.x;", k32One, {0}, 1},
      {"mov.u32 %d, %laneid;", k32One, {7}, 0},
      {"mov.u32 %d, WARP_SZ;", k32One, {7}, 32},
      {"mov.f32 %d, 0f3F800000;", k32One, {7}, 0x3f800000},
      {"mov.f64 %d, 0d3FF0000000000000;", k64One, {7}, 0x3ff0000000000000},
      {"mov.b32 %d, -1;", k32One, {7}, 0xffffffff},
      {".reg .pred %q; isspacep.global %q, %in; selp.b32 %d, 5, 6, %q;", k32One, {7}, 5},
      {".reg .pred %q; isspacep.shared %q, %in; selp.b32 %d, 5, 6, %q;", k32One, {7}, 6},
  });
}

} // namespace firn::ptx::test
