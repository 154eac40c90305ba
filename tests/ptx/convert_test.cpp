// Conversions by tables.
#include "tests/ptx/one_instruction.h"

#include <catch2/catch.hpp>

namespace firn::ptx::test {
namespace {

struct Row {
  const char* text;
  Signature signature;
  std::vector<uint64_t> values;
  uint64_t wanted;
};

const Signature k32{"b32", {"b32"}}, k32To64{"b64", {"b32"}}, k64To32{"b32", {"b64"}},
    k32To16{"b16", {"b32"}}, k16To32{"b32", {"b16"}};
const Signature kPack{"b32", {"b32", "b32"}}, kPackBytes{"b16", {"b32", "b32"}};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string error;
    INFO(row.text);
    CHECK(run_instruction(row.text, row.signature, row.values, &error) == row.wanted);
    CHECK(error == "");
  }
}

} // namespace

TEST_CASE("integers to integers") {
  check({
      {"cvt.s64.s32 %d, %a;", k32To64, {0xffffffff}, ~uint64_t{0}},
      {"cvt.u64.u32 %d, %a;", k32To64, {0xffffffff}, 0xffffffff},
      {"cvt.u32.u64 %d, %a;", k64To32, {0x123456789}, 0x23456789},
      {"cvt.s32.s8 %d, %a;", k32, {0x1ff}, 0xffffffff},
      {"cvt.u32.u8 %d, %a;", k32, {0x1ff}, 0xff},
      {"cvt.s16.s32 %d, %a;", k32, {0x18000}, 0xffff8000},
      {"cvt.u16.u32 %d, %a;", k32To16, {0x18000}, 0x8000},
      {"cvt.sat.s8.s32 %d, %a;", k32, {300}, 127},
      {"cvt.sat.u8.s32 %d, %a;", k32, {0xffffffff}, 0},
      {"cvt.sat.s8.s32 %d, %a;", k32, {static_cast<uint32_t>(-300)}, 0xffffff80},
      {"cvt.u32.u16 %d, %a;", k16To32, {0xffff}, 0xffff},
      {"cvt.s32.s16 %d, %a;", k16To32, {0xffff}, 0xffffffff},
  });
}

TEST_CASE("integers to floats and back") {
  check({
      {"cvt.rn.f32.s32 %d, %a;", k32, {0xffffffff}, bits(-1.0f)},
      {"cvt.rn.f32.u32 %d, %a;", k32, {0xffffffff}, bits(4294967296.0f)},
      {"cvt.rz.f32.u32 %d, %a;", k32, {0xffffffff}, bits(4294967040.0f)},
      {"cvt.rn.f32.u64 %d, %a;",
       k64To32,
       {(uint64_t{1} << 62) + (uint64_t{1} << 38) + 1},
       bits(0x1.000002p62f)},
      {"cvt.rn.f64.s64 %d, %a;", {"b64", {"b64"}}, {static_cast<uint64_t>(-3)}, bits(-3.0)},
      {"cvt.rn.f16.u16 %d, %a;", {"b16", {"b16"}}, {2049}, 0x6800},
      {"cvt.rn.bf16.s32 %d, %a;", k32To16, {257}, 0x4380},
      {"cvt.rni.s32.f32 %d, %a;", k32, {bits(2.5f)}, 2},
      {"cvt.rzi.s32.f32 %d, %a;", k32, {bits(-2.9f)}, static_cast<uint32_t>(-2)},
      {"cvt.rmi.s32.f32 %d, %a;", k32, {bits(-2.1f)}, static_cast<uint32_t>(-3)},
      {"cvt.rpi.u32.f32 %d, %a;", k32, {bits(2.1f)}, 3},
      {"cvt.rzi.u32.f32 %d, %a;", k32, {bits(-5.0f)}, 0},
      {"cvt.rzi.s32.f32 %d, %a;", k32, {bits(1e20f)}, 0x7fffffff},
      {"cvt.rzi.s32.f32 %d, %a;", k32, {0x7fc00000}, 0},
      {"cvt.rzi.s64.f64 %d, %a;", {"b64", {"b64"}}, {bits(-1e30)}, uint64_t{1} << 63},
      {"cvt.rni.s8.f32 %d, %a;", k32, {bits(200.0f)}, 127},
      {"cvt.rni.sat.u8.f32 %d, %a;", k32, {bits(300.0f)}, 255},
      {"cvt.rzi.u64.f32 %d, %a;", k32To64, {bits(0x1p63f)}, uint64_t{1} << 63},
      {"cvt.rzi.u16.f16 %d, %a;", {"b16", {"b16"}}, {0x4248}, 3},
  });
}

TEST_CASE("floats to floats") {
  check({
      {"cvt.rn.f16.f32 %d, %a;", k32To16, {bits(1.00048828125f)}, 0x3c00},
      {"cvt.rn.f16.f32 %d, %a;", k32To16, {bits(65520.0f)}, 0x7c00},
      {"cvt.rz.f16.f32 %d, %a;", k32To16, {bits(65520.0f)}, 0x7bff},
      {"cvt.rn.f16.f32 %d, %a;", k32To16, {bits(0x1p-25f)}, 0x0000},
      {"cvt.rn.f16.f32 %d, %a;", k32To16, {bits(0x1.8p-25f)}, 0x0001},
      {"cvt.f32.f16 %d, %a;", k16To32, {0x0001}, bits(0x1p-24f)},
      {"cvt.f32.f16 %d, %a;", k16To32, {0xfc00}, bits(-__builtin_inff())},
      {"cvt.rn.bf16.f32 %d, %a;", k32To16, {0x3f808000}, 0x3f80},
      {"cvt.rn.bf16.f32 %d, %a;", k32To16, {0x3f818000}, 0x3f82},
      {"cvt.f32.bf16 %d, %a;", k16To32, {0x3f81}, 0x3f810000},
      {"cvt.f64.f32 %d, %a;", k32To64, {bits(1.5f)}, bits(1.5)},
      {"cvt.rn.f32.f64 %d, %a;", k64To32, {bits(0.1)}, bits(0.1f)},
      {"cvt.rz.f32.f64 %d, %a;", k64To32, {bits(0.1)}, 0x3dcccccc},
      {"cvt.rp.f32.f64 %d, %a;", k64To32, {bits(1e-60)}, 1},
      {"cvt.rni.f32.f32 %d, %a;", k32, {bits(-0.4f)}, 0x80000000},
      {"cvt.rpi.f32.f32 %d, %a;", k32, {bits(1.2f)}, bits(2.0f)},
      {"cvt.sat.f32.f32 %d, %a;", k32, {bits(1.2f)}, bits(1.0f)},
      {"cvt.rna.tf32.f32 %d, %a;", k32, {0x3f801000}, 0x3f802000},
      {"cvt.rn.tf32.f32 %d, %a;", k32, {0x3f801000}, 0x3f800000},
      {"cvt.rn.ftz.f16.f32 %d, %a;", k32To16, {1}, 0},
  });
}

TEST_CASE("pairs and bytes") {
  check({
      {"cvt.rn.f16x2.f32 %d, %a, %b;", kPack, {bits(1.0f), bits(2.0f)}, 0x3c004000},
      {"cvt.rn.bf16x2.f32 %d, %a, %b;", kPack, {bits(1.0f), bits(2.0f)}, 0x3f804000},
      {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", kPack, {bits(-1.0f), bits(2.0f)}, 0x00004000},
      {"cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", kPackBytes, {bits(1.0f), bits(1000.0f)}, 0x387e},
      {"cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", kPackBytes, {bits(1.0f), bits(-1e9f)}, 0x3cfb},
      {"cvt.rn.f16x2.e4m3x2 %d, %a;", k16To32, {0x387e}, 0x3c005f00},
      {"cvt.rn.f16x2.e5m2x2 %d, %a;", k16To32, {0x3c7c}, 0x3c007c00},
  });
}

} // namespace firn::ptx::test
