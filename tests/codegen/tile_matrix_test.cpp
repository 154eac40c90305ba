// Tile matrices through code generation, and the interpreter for CPUs without them.
#include "tests/codegen/model_object.h"
#include "tests/codegen/tile_interpreter.h"

#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <random>

namespace firn::test {

using namespace kernel;

namespace {

constexpr int kRowBytes = 64, kLhsStride = 70, kSumsStride = 19;

Machine tile_target() {
  return target_of("x86_64-unknown-linux-gnu", "x86-64-v3", "+amx-tile,+amx-int8,+amx-bf16");
}

// sums += lhs x rhs of one product; rows of the lhs lie kLhsStride bytes apart.
Program product_program(OpKind kind, int rows, int groups, int columns) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "tiles";
  Scalar sum = kind == OpKind::TileDotBF16 ? Scalar::F32 : Scalar::I32;
  Builder b(*kernel);
  int lhs = b.add_parameter("lhs", Scalar::I8, kLhsStride * (rows - 1) + 4 * groups, false),
      rhs = b.add_parameter("rhs", Scalar::I8, int64_t{4} * columns * groups, false),
      start = b.add_parameter("start", sum, kSumsStride * rows, false),
      out = b.add_parameter("out", sum, kSumsStride * rows, true);
  kernel->tiles = {{rows, 4 * columns}, {rows, 4 * groups}, {groups, 4 * columns}};
  b.tile_zero(0);
  b.tile_load(0, start, 0, kSumsStride);
  b.tile_load(1, lhs, 0, kLhsStride);
  b.tile_load(2, rhs, 0, int64_t{4} * columns);
  b.tile_dot(kind, 0, 1, 2);
  b.tile_store(0, out, 0, kSumsStride);
  return program_of(std::move(kernel));
}

struct Shape {
  int rows, groups, columns;
};
constexpr Shape kShapes[] = {{16, 16, 16}, {1, 1, 1}, {7, 5, 16}, {16, 16, 3}, {13, 9, 11}};

int byte_of(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

float bf16_of(const std::vector<uint8_t>& bytes, size_t number) {
  uint32_t bits = static_cast<uint32_t>(bytes[2 * number] | bytes[2 * number + 1] << 8) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void put_bf16(std::vector<uint8_t>& bytes, size_t number, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bytes[2 * number] = static_cast<uint8_t>(bits >> 16);
  bytes[2 * number + 1] = static_cast<uint8_t>(bits >> 24);
}

} // namespace

TEST_CASE("tiles multiply bytes of all signs exactly", "[tiles]") {
  interpret_tiles();
  std::mt19937 random(1);
  struct Kind {
    OpKind op;
    bool lhs_signed, rhs_signed;
  };
  for (Kind kind : {Kind{OpKind::TileDotU8S8, false, true}, Kind{OpKind::TileDotS8U8, true, false},
                    Kind{OpKind::TileDotS8S8, true, true}, Kind{OpKind::TileDotU8U8, false, false}})
    for (Shape s : kShapes) {
      INFO(op_kind_info(kind.op).mnemonic << " " << s.rows << "x" << s.groups << "x" << s.columns);
      std::vector<uint8_t> lhs(static_cast<size_t>(kLhsStride * s.rows)),
          rhs(static_cast<size_t>(4 * s.columns * s.groups));
      std::vector<int32_t> start(static_cast<size_t>(kSumsStride * s.rows)), out(start.size(), 77);
      static constexpr uint8_t extremes[] = {255, 128, 127, 0};
      for (uint8_t& byte : lhs) byte = random() % 2 ? extremes[random() % 4] : static_cast<uint8_t>(random());
      for (uint8_t& byte : rhs) byte = random() % 2 ? extremes[random() % 4] : static_cast<uint8_t>(random());
      for (int32_t& sum : start) sum = static_cast<int32_t>(random()) / 4;
      take_tile_counts();
      LoadedObject(product_program(kind.op, s.rows, s.groups, s.columns), options_for(tile_target()))
          .run({lhs.data(), rhs.data(), start.data()}, {out.data()});
      if (tiles_are_interpreted()) {
        TileCounts counts = take_tile_counts();
        CHECK(counts.products == 1);
        CHECK(counts.loads == 3);
        CHECK(counts.configurations == 1);
        CHECK(counts.releases == 1);
        CHECK_FALSE(has_tile_configuration());
      }
      for (int m = 0; m < s.rows; ++m)
        for (int n = 0; n < kSumsStride; ++n) {
          auto place = static_cast<size_t>(m * kSumsStride + n);
          int32_t wanted = n < s.columns ? start[place] : 77;
          for (int k = 0; n < s.columns && k < 4 * s.groups; ++k)
            wanted += byte_of(lhs[static_cast<size_t>(m * kLhsStride + k)], kind.lhs_signed) *
                      byte_of(rhs[static_cast<size_t>(4 * (k / 4 * s.columns + n) + k % 4)], kind.rhs_signed);
          CHECK(out[place] == wanted);
        }
    }
}

TEST_CASE("tiles multiply bf16 and take subnormal numbers for zeros", "[tiles]") {
  interpret_tiles();
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (Shape s : kShapes) {
    INFO(s.rows << "x" << s.groups << "x" << s.columns);
    std::vector<uint8_t> lhs(static_cast<size_t>(kLhsStride * s.rows)),
        rhs(static_cast<size_t>(4 * s.columns * s.groups));
    for (size_t i = 0; i < lhs.size() / 2; ++i) put_bf16(lhs, i, i % 7 == 0 ? 1e-39F : uniform(random));
    for (size_t i = 0; i < rhs.size() / 2; ++i) put_bf16(rhs, i, uniform(random));
    std::vector<float> start(static_cast<size_t>(kSumsStride * s.rows)), out(start.size(), 77);
    for (float& sum : start) sum = uniform(random);
    LoadedObject(product_program(OpKind::TileDotBF16, s.rows, s.groups, s.columns),
                 options_for(tile_target()))
        .run({lhs.data(), rhs.data(), start.data()}, {out.data()});
    for (int m = 0; m < s.rows; ++m)
      for (int n = 0; n < s.columns; ++n) {
        double wanted = start[static_cast<size_t>(m * kSumsStride + n)];
        for (int k = 0; k < 2 * s.groups; ++k) {
          double a = bf16_of(lhs, static_cast<size_t>(m * kLhsStride / 2 + k));
          if (std::fabs(a) >= 1e-38)
            wanted += a * bf16_of(rhs, static_cast<size_t>(2 * (k / 2 * s.columns + n) + k % 2));
        }
        CHECK(out[static_cast<size_t>(m * kSumsStride + n)] == Approx(wanted).margin(1e-5));
      }
  }
}

TEST_CASE("the verifier refuses tiles that registers do not hold or products do not fit", "[tiles]") {
  auto error = [](const std::vector<MatrixTile>& tiles, const std::function<void(Builder&)>& code) {
    Kernel kernel;
    kernel.name = "wrong";
    Builder b(kernel);
    b.add_parameter("in", Scalar::I8, 1024, false);
    b.add_parameter("out", Scalar::I32, 256, true);
    kernel.tiles = tiles;
    code(b);
    Result result = verify(kernel);
    return result ? std::string() : result.error().message;
  };
  auto has = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  std::vector<MatrixTile> whole(3, MatrixTile{16, kRowBytes});
  CHECK(error(whole, [](Builder& b) {
          b.tile_load(1, 0, 0, kRowBytes);
          b.tile_dot(OpKind::TileDotU8S8, 0, 1, 2);
          b.tile_store(0, 1, 0, 16);
        }).empty());
  CHECK(has(error({{17, 64}}, [](Builder&) {}), "17 rows"));
  CHECK(has(error({{16, 66}}, [](Builder&) {}), "66 bytes"));
  CHECK(has(error(std::vector<MatrixTile>(9, MatrixTile{1, 4}), [](Builder&) {}), "9 tiles"));
  CHECK(has(error(whole, [](Builder& b) { b.tile_zero(3); }), "does not have"));
  CHECK(has(error(whole, [](Builder& b) { b.tile_load(0, 0, 1, kRowBytes); }), "accesses 1024 elements"));
  CHECK(has(error(whole, [](Builder& b) { b.tile_load(0, 0, 0, -1); }), "elements apart"));
  CHECK(has(error(whole, [](Builder& b) { b.tile_store(0, 0, 0, kRowBytes); }), "not marked written"));
  CHECK(has(error(whole, [](Builder& b) { b.tile_dot(OpKind::TileDotS8S8, 0, 1, 1); }), "three tiles"));
  CHECK(
      has(error({{16, 64}, {15, 64}, {16, 64}}, [](Builder& b) { b.tile_dot(OpKind::TileDotS8S8, 0, 1, 2); }),
          "do not fit"));
}

TEST_CASE("kernels with tiles are read as they are printed", "[tiles]") {
  Program program = product_program(OpKind::TileDotS8U8, 13, 9, 11);
  std::string text = print_program(program);
  CHECK(text.find("tile rows 9 bytes 44") != std::string::npos);
  auto parsed = parse_program("tiles.kir", text);
  REQUIRE(parsed);
  CHECK(print_program(*parsed) == text);
}

} // namespace firn::test
