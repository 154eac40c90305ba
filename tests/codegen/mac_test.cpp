// Products of several steps on every CPU that computes them in its own way.
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

namespace firn::test {

using namespace kernel;

namespace {

constexpr int kWidths[] = {1, 3, 4, 8, 12, 16, 32};
constexpr int kMax = 32;

// All of runnable_targets(), and those between them with other instructions for products.
std::vector<Machine> mac_targets() {
  std::vector<Machine> targets = runnable_targets();
  Machine host = host_target();
  for (const char* cpu : {"sandybridge", "x86-64-v4", "alderlake", "cascadelake"})
    if (Machine target = target_of("x86_64-linux-gnu", cpu);
        !(target.required_cpu_features & ~host.required_cpu_features))
      targets.push_back(target);
  for (const char* features : {"+dotprod", "+i8mm", "+dotprod,+i8mm,+bf16"})
    if (Machine target = target_of("aarch64-linux-gnu", "", features); EmulatedObject::available(target))
      targets.push_back(target);
  return targets;
}

// Sums of kMax lanes for every width, one after the other.
template <class In, class Out>
std::vector<Out> run_product(const Machine& target, OpKind kind, Scalar factor, const std::vector<In>& a,
                             const std::vector<In>& b, MachineType sum_type, double start) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "product";
  Builder builder(*kernel);
  builder.add_parameter("a", factor, static_cast<int64_t>(a.size()), false);
  builder.add_parameter("b", factor, static_cast<int64_t>(b.size()), false);
  builder.add_parameter("out", sum_type.scalar, kMax * static_cast<int64_t>(std::size(kWidths)), true);
  int group = static_cast<int>(a.size()) / kMax;
  int64_t place = 0;
  for (int lanes : kWidths) {
    MachineType type = sum_type.with_lanes(lanes);
    Register x = builder.load({factor, group * lanes}, 0, 0), y = builder.load({factor, group * lanes}, 1, 0);
    builder.store(builder.emit(kind, {builder.constant(type, start), x, y}, type), 2, place);
    place += kMax;
  }
  Program program = program_of(std::move(kernel));
  std::vector<Out> out(kMax * std::size(kWidths));
  if (target.arch == Arch::X86_64) {
    LoadedObject(program, options_for(target)).run({a.data(), b.data()}, {out.data()});
    return out;
  }
  std::vector<std::vector<char>> outputs = {bytes_of(out)};
  EmulatedObject(program, options_for(target)).run({bytes_of(a), bytes_of(b)}, outputs);
  return numbers_of<Out>(outputs[0]);
}

template <class Out, class Wanted>
void expect_sums(const Machine& target, const std::vector<Out>& got, Wanted wanted) {
  for (size_t i = 0; i < std::size(kWidths); ++i)
    for (int lane = 0; lane < kWidths[i]; ++lane) {
      INFO(target.processor << " " << target.features << ", " << kWidths[i] << " lanes, lane " << lane);
      CHECK(got[kMax * i + static_cast<size_t>(lane)] == wanted(static_cast<size_t>(lane)));
    }
}

} // namespace

TEST_CASE("dots of bytes are exact: no product or pair of them saturates", "[product]") {
  std::mt19937 random(1);
  std::vector<uint8_t> a(4 * kMax), b(4 * kMax);
  // The largest magnitudes of either sign first, together; then anything.
  static constexpr uint8_t extremes[] = {255, 128, 127, 0};
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = i < 64 ? extremes[i / 16] : static_cast<uint8_t>(random());
    b[i] = i < 64 ? extremes[i / 4 % 4] : static_cast<uint8_t>(random());
  }
  struct Case {
    OpKind kind;
    bool lhs_signed, rhs_signed;
  };
  for (const Machine& target : mac_targets())
    for (Case c : {Case{OpKind::DotU8S8, false, true}, Case{OpKind::DotS8S8, true, true},
                   Case{OpKind::DotU8U8, false, false}}) {
      auto number = [](uint8_t byte, bool is_signed) {
        return is_signed ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte);
      };
      INFO(op_kind_info(c.kind).mnemonic);
      auto got = run_product<uint8_t, int32_t>(target, c.kind, Scalar::I8, a, b, {Scalar::I32, 1}, 1000);
      expect_sums(target, got, [&](size_t lane) {
        int32_t sum = 1000;
        for (size_t k = 4 * lane; k < 4 * lane + 4; ++k)
          sum += number(a[k], c.lhs_signed) * number(b[k], c.rhs_signed);
        return sum;
      });
    }
}

TEST_CASE("dots of rows of bytes add all products to one sum", "[product]") {
  constexpr int64_t kRows = 24;
  std::mt19937 random(9);
  std::vector<uint8_t> a(kDotRow * kRows), b(a.size());
  static constexpr uint8_t extremes[] = {255, 128, 127, 0};
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t row = i / kDotRow;
    a[i] = row < 16 ? extremes[row / 4] : static_cast<uint8_t>(random());
    b[i] = row < 16 ? extremes[row % 4] : static_cast<uint8_t>(random());
  }
  struct Case {
    OpKind kind;
    bool lhs_signed, rhs_signed;
  };
  for (const Machine& target : runnable_targets())
    for (Case c : {Case{OpKind::DotU8S8, false, true}, Case{OpKind::DotS8S8, true, true},
                   Case{OpKind::DotU8U8, false, false}}) {
      INFO(target.processor << " " << op_kind_info(c.kind).mnemonic);
      auto kernel = std::make_unique<Kernel>();
      kernel->name = "rows";
      Builder builder(*kernel);
      builder.add_parameter("a", Scalar::I8, kDotRow * kRows, false);
      builder.add_parameter("b", Scalar::I8, kDotRow * kRows, false);
      builder.add_parameter("out", Scalar::I32, kRows, true);
      const MachineType sum{Scalar::I32, 1};
      for (int64_t row = 0; row < kRows; ++row) {
        Register x = builder.load({Scalar::I8, kDotRow}, 0, row * kDotRow),
                 y = builder.load({Scalar::I8, kDotRow}, 1, row * kDotRow);
        builder.store(builder.emit(c.kind, {builder.constant(sum, -7), x, y}, sum), 2, row);
      }
      Program program = program_of(std::move(kernel));
      std::vector<int32_t> out(kRows);
      if (target.arch == Arch::X86_64) {
        LoadedObject(program, options_for(target)).run({a.data(), b.data()}, {out.data()});
      } else {
        std::vector<std::vector<char>> outputs = {bytes_of(out)};
        EmulatedObject(program, options_for(target)).run({bytes_of(a), bytes_of(b)}, outputs);
        out = numbers_of<int32_t>(outputs[0]);
      }
      auto number = [](uint8_t byte, bool is_signed) {
        return is_signed ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte);
      };
      for (size_t row = 0; row < kRows; ++row) {
        int32_t wanted = -7;
        for (size_t i = kDotRow * row; i < kDotRow * (row + 1); ++i)
          wanted += number(a[i], c.lhs_signed) * number(b[i], c.rhs_signed);
        CHECK(out[row] == wanted);
      }
    }
}

TEST_CASE("products of lanes of bytes are exact", "[product]") {
  std::mt19937 random(6);
  std::vector<uint8_t> a(kMax), b(kMax);
  static constexpr uint8_t extremes[] = {255, 128, 127, 0};
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = i < 16 ? extremes[i / 4] : static_cast<uint8_t>(random());
    b[i] = i < 16 ? extremes[i % 4] : static_cast<uint8_t>(random());
  }
  struct Case {
    OpKind kind;
    bool lhs_signed, rhs_signed;
  };
  for (const Machine& target : mac_targets())
    for (Case c : {Case{OpKind::MacU8S8, false, true}, Case{OpKind::MacS8S8, true, true},
                   Case{OpKind::MacU8U8, false, false}}) {
      auto number = [](uint8_t byte, bool is_signed) {
        return is_signed ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte);
      };
      INFO(op_kind_info(c.kind).mnemonic);
      auto got = run_product<uint8_t, int32_t>(target, c.kind, Scalar::I8, a, b, {Scalar::I32, 1}, 1000);
      expect_sums(target, got, [&](size_t lane) {
        return 1000 + number(a[lane], c.lhs_signed) * number(b[lane], c.rhs_signed);
      });
    }
}

TEST_CASE("dots of bytes whose pairs of products fit 16 bits are exact to the last of these", "[product]") {
  std::mt19937 random(3);
  std::vector<uint8_t> a(4 * kMax), b(4 * kMax);
  static constexpr int8_t pairs[][2] = {{64, 64}, {-64, -64}, {127, 1}, {-128, 0}, {127, -128}, {-1, -127}};
  for (size_t i = 0; i < a.size(); i += 2) {
    a[i] = a[i + 1] = i < 64 ? 255 : static_cast<uint8_t>(random());
    b[i] = static_cast<uint8_t>(pairs[i / 2 % 6][0]), b[i + 1] = static_cast<uint8_t>(pairs[i / 2 % 6][1]);
  }
  for (const Machine& target : mac_targets()) {
    auto got =
        run_product<uint8_t, int32_t>(target, OpKind::DotU8S8Narrow, Scalar::I8, a, b, {Scalar::I32, 1}, -5);
    expect_sums(target, got, [&](size_t lane) {
      int32_t sum = -5;
      for (size_t k = 4 * lane; k < 4 * lane + 4; ++k) sum += a[k] * static_cast<int8_t>(b[k]);
      return sum;
    });
  }
}

TEST_CASE("dots of i16 are exact, and wrap like sums of i32", "[product]") {
  std::mt19937 random(2);
  std::vector<int16_t> a(2 * kMax), b(2 * kMax);
  static constexpr int16_t extremes[] = {-32768, 32767, -1, 255};
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = i < 16 ? extremes[i / 4] : static_cast<int16_t>(random());
    b[i] = i < 16 ? extremes[i % 4] : static_cast<int16_t>(random());
  }
  for (const Machine& target : mac_targets()) {
    auto got =
        run_product<int16_t, int32_t>(target, OpKind::DotS16, Scalar::I16, a, b, {Scalar::I32, 1}, 1000);
    expect_sums(target, got, [&](size_t lane) {
      uint32_t sum = 1000;
      for (size_t k = 2 * lane; k < 2 * lane + 2; ++k) sum += static_cast<uint32_t>(a[k] * b[k]);
      return static_cast<int32_t>(sum);
    });
  }
}

TEST_CASE("dots of bf16 are exact on small integers", "[product]") {
  auto value = [](size_t i) { return static_cast<float>(i % 11) - 5; };
  std::vector<uint16_t> a(2 * kMax), b(2 * kMax);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value(i)) >> 16);
    b[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value(3 * i + 1)) >> 16);
  }
  for (const Machine& target : mac_targets()) {
    if (!target.cpu.has_float) continue;
    auto got =
        run_product<uint16_t, float>(target, OpKind::DotBF16, Scalar::BF16, a, b, {Scalar::F32, 1}, 0.5);
    expect_sums(target, got, [&](size_t lane) {
      return 0.5f + value(2 * lane) * value(6 * lane + 1) + value(2 * lane + 1) * value(6 * lane + 4);
    });
  }
}

} // namespace firn::test
