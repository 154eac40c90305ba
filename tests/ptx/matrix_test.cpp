// Products of matrices by mma.sync against plain loops, with fragments as the PTX manual lays them out.
#include "compiler/ptx/floats.h"
#include "compiler/ptx/module.h"

#include <catch2/catch.hpp>

namespace firn::ptx {
namespace {

const std::string kHead = ".version 8.4\n.target sm_90\n.address_size 64\n";

struct Product {
  const char* words; // behind "mma.sync.aligned."
  int m, n, k, a, b, c;
  const char* kind; // type of the factors
};

std::string registers(const char* name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return text + "}";
}

// Loads the registers of each lane from three buffers, multiplies, and stores D.
std::string kernel(const Product& p) {
  std::string text = kHead + ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {\n"
                             ".reg .b32 %a<4>, %b<2>, %c<4>, %t; .reg .b64 %rd<5>;\nmov.u32 %t, %tid.x;\n";
  auto lines = [&](const char* name, int count, bool store) {
    text += "ld.param.u64 %rd1, [" + std::string(name) + "]; mul.wide.u32 %rd2, %t, " +
            std::to_string(4 * count) + "; add.u64 %rd1, %rd1, %rd2;\n";
    for (int i = 0; i < count; ++i) {
      std::string reg = "%" + std::string(name) + std::to_string(i),
                  at = "[%rd1+" + std::to_string(4 * i) + "]";
      text += store ? "st.global.b32 " + at + ", " + reg + ";\n" : "ld.global.b32 " + reg + ", " + at + ";\n";
    }
  };
  lines("a", p.a, false);
  lines("b", p.b, false);
  lines("c", p.c, false);
  text += "mma.sync.aligned." + std::string(p.words) + " " + registers("%c", p.c) + ", " +
          registers("%a", p.a) + ", " + registers("%b", p.b) + ", " + registers("%c", p.c) + ";\n";
  lines("c", p.c, true);
  return text + "ret;\n}\n";
}

// The bits of a small integer as an element of a kind.
uint32_t element(const std::string& kind, int value) {
  if (kind == "f16") return narrow(value, kF16);
  if (kind == "bf16") return narrow(value, kBF16);
  if (kind == "tf32") return static_cast<uint32_t>(Bits<float>::to(static_cast<float>(value)));
  if (kind == "e4m3") return narrow(value, kE4M3);
  return static_cast<uint8_t>(value);
}

int bits_of(const std::string& kind) {
  return kind == "tf32" ? 32 : kind == "f16" || kind == "bf16" ? 16 : 8;
}

int value_a(int row, int k) {
  return (row * 5 + k * 3) % 7 - 3;
}
int value_b(int k, int column) {
  return (k * 2 + column * 3) % 5 - 2;
}
int value_c(int row, int column) {
  return row - column;
}

// Words of a factor: register r of a lane holds rows of its group (and 8 below), and e neighbours along k.
template <class F>
std::vector<uint32_t> factor_words(const std::string& kind, int count, bool has_halves, F&& value) {
  int e = 32 / bits_of(kind);
  std::vector<uint32_t> words(static_cast<size_t>(32 * count));
  for (int lane = 0; lane < 32; ++lane)
    for (int r = 0; r < count; ++r)
      for (int i = 0; i < e; ++i) {
        int outer = lane / 4 + (has_halves && r % 2 ? 8 : 0),
            k = lane % 4 * e + i + (has_halves ? r / 2 : r) * 4 * e;
        words[static_cast<size_t>(lane * count + r)] |= element(kind, value(outer, k)) << (i * bits_of(kind));
      }
  return words;
}

void check(const Product& p) {
  INFO(p.words);
  auto module = parse(kernel(p));
  if (!module) FAIL(module.error().message);
  bool is_integer = std::string(p.kind) == "s8", is_half = p.c * 4 < p.m;
  auto c_bits = [&](int value) {
    return is_integer ? static_cast<uint32_t>(value)
           : is_half  ? narrow(value, kF16)
                      : static_cast<uint32_t>(Bits<float>::to(static_cast<float>(value)));
  };
  auto c_words = [&](auto value) {
    std::vector<uint32_t> words(static_cast<size_t>(32 * p.c));
    for (int lane = 0; lane < 32; ++lane)
      for (int r = 0; r < p.c; ++r)
        for (int half = 0; half < (is_half ? 2 : 1); ++half)
          words[static_cast<size_t>(lane * p.c + r)] |=
              c_bits(value(lane / 4 + 8 * (is_half ? r : r / 2), lane % 4 * 2 + (is_half ? half : r % 2)))
              << (16 * half);
    return words;
  };
  Memory memory;
  uint64_t a = memory.allocate("a", factor_words(p.kind, p.a, p.m == 16, value_a));
  uint64_t b = memory.allocate(
      "b", factor_words(p.kind, p.b, false, [](int column, int k) { return value_b(k, column); }));
  uint64_t c = memory.allocate("c", c_words(value_c));
  auto done = launch(*module, "k", {}, {32, 1, 1}, 0, Arguments().add(a).add(b).add(c), memory);
  if (!done) FAIL(done.error().message);
  auto product = [&](int row, int column) {
    int sum = value_c(row, column);
    for (int k = 0; k < p.k; ++k) sum += value_a(row, k) * value_b(k, column);
    return sum;
  };
  CHECK(memory.read<uint32_t>(c, static_cast<size_t>(32 * p.c)) == c_words(product));
}

} // namespace

TEST_CASE("products of matrices in every shape") {
  for (const Product& p : {
           Product{"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, 2, 1, 4, "f16"},
           Product{"m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, 4, 2, 4, "f16"},
           Product{"m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, 4, 2, 2, "f16"},
           Product{"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 8, 2, 1, 4, "bf16"},
           Product{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, 4, 2, 4, "bf16"},
           Product{"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, 2, 1, 4, "tf32"},
           Product{"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, 4, 2, 4, "tf32"},
           Product{"m8n8k16.row.col.s32.s8.s8.s32", 8, 8, 16, 1, 1, 2, "s8"},
           Product{"m16n8k16.row.col.s32.s8.s8.s32", 16, 8, 16, 2, 1, 4, "s8"},
           Product{"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 8, 32, 4, 2, 4, "s8"},
           Product{"m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 8, 32, 4, 2, 4, "e4m3"},
       })
    check(p);
}

TEST_CASE("a product by part of a warp is found") {
  Product p{"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, 2, 1, 4, "f16"};
  auto module = parse(kernel(p));
  REQUIRE(module);
  Memory memory;
  std::vector<uint32_t> zeros(128);
  uint64_t a = memory.allocate("a", zeros), b = memory.allocate("b", zeros), c = memory.allocate("c", zeros);
  auto done = launch(*module, "k", {}, {16, 1, 1}, 0, Arguments().add(a).add(b).add(c), memory);
  REQUIRE(!done);
  CHECK_THAT(done.error().message, Catch::Contains("by a part of its lanes"));
}

TEST_CASE("ldmatrix and stmatrix, transposed and not") {
  // Row r of the matrix holds the halves 8 r to 8 r + 7.
  auto module = parse(kHead + R"(.visible .entry k(.param .u64 out) {
    .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .align 16 .b8 s[256];
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;
    shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r2; shl.b32 %r4, %r1, 1; mad.lo.u32 %r4, %r4, 65537, 65536; st.shared.u32 [%r3], %r4;
    bar.sync 0;
    and.b32 %r5, %r1, 7; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r2;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r7}, [%r5];
    stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r5+128], {%r7};
    bar.sync 0;
    ld.shared.u32 %r8, [%r3+128];
    mul.wide.u32 %rd2, %r1, 12; add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r6; st.global.u32 [%rd1+4], %r7; st.global.u32 [%rd1+8], %r8; ret; })");
  if (!module) FAIL(module.error().message);
  Memory memory;
  uint64_t out = memory.allocate("out", 32 * 12);
  auto done = launch(*module, "k", {}, {32, 1, 1}, 0, Arguments().add(out), memory);
  if (!done) FAIL(done.error().message);
  auto words = memory.read<uint32_t>(out, 96);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t row = lane / 4, column = lane % 4 * 2;
    CHECK(words[3 * lane] == ((8 * row + column) | (8 * row + column + 1) << 16));
    CHECK(words[3 * lane + 1] == ((8 * column + row) | (8 * (column + 1) + row) << 16));
    CHECK(words[3 * lane + 2] == ((2 * lane) | (2 * lane + 1) << 16)); // transposed twice
  }
}

} // namespace firn::ptx
