// Shuffles, reductions; masked, gathered and scattered memory.
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

namespace firn::test {

using namespace kernel;

// Runs a kernel that `build` makes with input "in" (f32 or i32 words) and output "out" on every target.
template <class In, class Out>
static std::vector<std::pair<Machine, std::vector<Out>>>
run_everywhere(Scalar in_type, const std::vector<In>& in, Scalar out_type, size_t out_size,
               const std::function<void(Builder&)>& build, bool needs_float = true) {
  std::vector<std::pair<Machine, std::vector<Out>>> answers;
  for (const Machine& target : runnable_targets()) {
    if (needs_float && !target.cpu.has_float) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->name = "kernel_under_test";
    Builder b(*kernel);
    b.add_parameter("in", in_type, static_cast<int64_t>(in.size()), false, 4);
    b.add_parameter("out", out_type, static_cast<int64_t>(out_size), true, 4);
    build(b);
    Program program = program_of(std::move(kernel));
    std::vector<Out> out(out_size);
    if (target.arch == Arch::X86_64) {
      LoadedObject(program, options_for(target)).run({in.data()}, {out.data()});
    } else {
      std::vector<std::vector<char>> outputs = {bytes_of(out)};
      EmulatedObject(program, options_for(target)).run({bytes_of(in)}, outputs);
      out = numbers_of<Out>(outputs[0]);
    }
    answers.emplace_back(target, out);
  }
  return answers;
}

static std::vector<float> ramp(size_t n) {
  std::vector<float> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(i) + 0.5f;
  return numbers;
}

TEST_CASE("lanes are shuffled, inserted and extracted", "[vector]") {
  auto in = ramp(16);
  auto answers = run_everywhere<float, float>(Scalar::F32, in, Scalar::F32, 16, [](Builder& b) {
    MachineType wide{Scalar::F32, 8};
    Register x = b.load(wide, 0, 0), y = b.load(wide, 0, 8);
    b.store(b.shuffle(x, y, {0, 8, 1, 9, 15, 7, 3, 3}), 1, 0);
    Register one = b.insert(x, b.extract(y, 5), 2);
    b.store(b.shuffle(one, one, {2, 1, 0}), 1, 8);
    b.store(b.shuffle(x, y, {14}), 1, 11);
    Register pair = b.shuffle(b.load({Scalar::F32, 1}, 0, 4), b.load({Scalar::F32, 1}, 0, 5), {1, 0});
    b.store(pair, 1, 12);
    b.store(b.splat(b.load({Scalar::F32, 1}, 0, 6), 2), 1, 14);
  });
  std::vector<float> want = {0.5f,  8.5f, 1.5f, 9.5f,  15.5f, 7.5f, 3.5f, 3.5f,
                             13.5f, 1.5f, 0.5f, 14.5f, 5.5f,  4.5f, 6.5f, 6.5f};
  for (const auto& [target, got] : answers) {
    INFO(target.processor);
    CHECK(got == want);
  }
}

TEST_CASE("tables are looked up by the low bits of numbers", "[vector]") {
  std::vector<int32_t> numbers;
  for (int i = 0; i < 25; ++i) numbers.push_back(i * 0x1234567 - (1 << 30));
  // Whole registers and others, one of a single lane, and a table of fewer entries.
  auto answers = run_everywhere<int32_t, float>(Scalar::I32, numbers, Scalar::F32, 29, [](Builder& b) {
    auto table = [&](int count) {
      std::vector<int64_t> values;
      for (int i = 0; i < count; ++i) values.push_back(7 * i - 40);
      return b.cast(OpKind::SIToF, b.constant_lanes({Scalar::I32, count}, values), Scalar::F32);
    };
    auto look_up = [&](int entries, int lanes, int first, int place) {
      Register numbers = b.load({Scalar::I32, lanes}, 0, first);
      b.store(b.emit(OpKind::LookUp, {table(entries), numbers}, {Scalar::F32, lanes}), 1, place);
    };
    look_up(16, 16, 0, 0);
    look_up(16, 8, 16, 16);
    look_up(16, 1, 24, 24);
    look_up(4, 4, 3, 25);
  });
  for (const auto& [target, got] : answers) {
    INFO(target.processor);
    for (size_t i = 0; i < got.size(); ++i) {
      auto bits = static_cast<uint32_t>(numbers[i < 25 ? i : i - 22]);
      CHECK(got[i] == static_cast<float>(7 * (bits % (i < 25 ? 16 : 4))) - 40);
    }
  }
}

TEST_CASE("reductions are a fixed tree, also over odd lanes", "[vector]") {
  std::vector<float> in = {1e8f, 1, -1e8f, 2, 3, -4, 5, 6, 7, -8, 9, 10, 11, 12, 13, 14};
  auto tree = [&](size_t n) {
    std::vector<float> v(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    size_t full = 1;
    while (full < n) full *= 2;
    v.resize(full, -0.0f);
    for (size_t half = full / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) v[i] += v[i + half];
    return v[0];
  };
  auto answers = run_everywhere<float, float>(Scalar::F32, in, Scalar::F32, 6, [](Builder& b) {
    Register x = b.load({Scalar::F32, 16}, 0, 0);
    b.store(b.reduce(OpKind::ReduceFAdd, x), 1, 0);
    b.store(b.reduce(OpKind::ReduceFMax, x), 1, 1);
    b.store(b.reduce(OpKind::ReduceFMin, x), 1, 2);
    b.store(b.reduce(OpKind::ReduceFAdd, b.load({Scalar::F32, 6}, 0, 0)), 1, 3);
    b.store(b.reduce(OpKind::ReduceFMul, b.load({Scalar::F32, 3}, 0, 3)), 1, 4);
    Register words = b.cast(OpKind::FToSI, b.load({Scalar::F32, 8}, 0, 8), Scalar::I32);
    b.store(b.cast(OpKind::SIToF, b.reduce(OpKind::ReduceIAdd, words), Scalar::F32), 1, 5);
  });
  for (const auto& [target, got] : answers) {
    INFO(target.processor);
    CHECK(got == std::vector<float>{tree(16), 1e8f, -1e8f, tree(6), -24, 68});
  }
}

TEST_CASE("a NaN survives maximum and minimum reductions", "[vector]") {
  std::vector<float> in(16, 1.0f);
  in[11] = NAN;
  auto answers = run_everywhere<float, float>(Scalar::F32, in, Scalar::F32, 2, [](Builder& b) {
    Register x = b.load({Scalar::F32, 16}, 0, 0);
    b.store(b.reduce(OpKind::ReduceFMax, x), 1, 0);
    b.store(b.reduce(OpKind::ReduceFMin, x), 1, 1);
  });
  for (const auto& [target, got] : answers) {
    INFO(target.processor);
    CHECK((std::isnan(got[0]) && std::isnan(got[1])));
  }
}

// The mask is computed, so that nothing folds; memory behind the masked lanes must stay untouched.
TEST_CASE("masked loads and stores touch the chosen lanes alone", "[memory]") {
  auto in = ramp(40);
  in[39] = 5; // how many lanes
  auto answers = run_everywhere<float, float>(Scalar::F32, in, Scalar::F32, 64, [](Builder& b) {
    MachineType wide{Scalar::F32, 16};
    Register count = b.cast(OpKind::FToSI, b.load({Scalar::F32, 1}, 0, 39), Scalar::I32);
    IntExpr n = b.symbolic(count, 0, 16);
    Register mask = b.lane_mask(16, n);
    b.store(b.constant(wide, -1), 1, 0);
    b.store_masked(b.load(wide, 0, 0), 1, 0, mask);
    b.store(b.load_masked(wide, 0, 16, mask), 1, 16);
    b.store(b.load_masked(wide, 0, 16, mask, b.constant(wide, 7)), 1, 32);
    b.store_masked(b.constant(wide, 2), 1, 48, b.lane_mask(16, 3));
    Register one = b.compare(OpKind::SCmp, Predicate::Gt, count, b.constant_int({Scalar::I32, 1}, 4));
    b.store_masked(b.load_masked({Scalar::F32, 1}, 0, 3, one), 1, 60, one);
  });
  for (const auto& [target, got] : answers) {
    INFO(target.processor);
    for (size_t i = 0; i < 16; ++i) {
      CHECK(got[i] == (i < 5 ? in[i] : -1));
      CHECK(got[16 + i] == (i < 5 ? in[16 + i] : 0));
      CHECK(got[32 + i] == (i < 5 ? in[16 + i] : 7));
      CHECK(got[48 + i] == (i < 3 ? 2.0f : i == 12 ? 3.5f : 0.0f));
    }
  }
}

TEST_CASE("gathers and scatters follow their offsets; later lanes win", "[memory]") {
  std::vector<int32_t> in(64);
  for (size_t i = 0; i < 64; ++i) in[i] = static_cast<int32_t>(i * i);
  auto answers = run_everywhere<int32_t, int32_t>(
      Scalar::I32, in, Scalar::I32, 64,
      [](Builder& b) {
        MachineType wide{Scalar::I32, 8};
        Register offsets = b.constant_lanes(wide, {7, -3, 0, 21, 4, 4, 9, 1});
        Register mask = b.constant_lanes({Scalar::I1, 8}, {1, 1, 0, 1, 1, 1, 0, 1});
        b.store(b.gather(wide, 0, 10, offsets), 1, 0);
        b.store(b.gather(wide, 0, 10, offsets, mask), 1, 8);
        b.scatter(b.load(wide, 0, 0), 1, 30, offsets, mask);
        Register far = b.cast(OpKind::SExt, offsets, Scalar::I64);
        b.store(b.gather(wide, 0, 20, far), 1, 16);
        b.store(b.gather({Scalar::I32, 1}, 0, 2, b.index(5)), 1, 63);
      },
      /*needs_float=*/false);
  const int64_t offsets[] = {7, -3, 0, 21, 4, 4, 9, 1};
  for (const auto& [target, got] : answers) {
    INFO(target.processor);
    std::vector<int32_t> want(64);
    for (size_t i = 0; i < 8; ++i) {
      size_t at = static_cast<size_t>(10 + offsets[i]);
      bool on = i != 2 && i != 6;
      want[i] = in[at];
      want[8 + i] = on ? in[at] : 0;
      want[16 + i] = in[at + 10];
      if (on) want[at + 20] = in[i];
    }
    want[63] = in[7];
    CHECK(got == want);
  }
}

TEST_CASE("joined bytes are permuted by the instruction for one register", "[ops]") {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "permute";
  Builder b(*kernel);
  int in = b.add_parameter("in", Scalar::I8, 64, false), out = b.add_parameter("out", Scalar::I8, 64, true);
  auto joined = [&](Register low, Register high) {
    std::vector<int64_t> order(2 * static_cast<size_t>(b.type(low).lanes));
    std::iota(order.begin(), order.end(), 0);
    return b.shuffle(low, high, std::move(order));
  };
  std::vector<Register> lines;
  for (int64_t i = 0; i < 4; ++i) lines.push_back(b.load({Scalar::I8, 16}, in, (3 - i) * 16));
  Register all = joined(joined(lines[0], lines[1]), joined(lines[2], lines[3]));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 64; ++i) order.push_back((37 * i + 5) % 64);
  b.store(b.shuffle(all, all, std::move(order)), out, 0);
  auto text = codegen::emit_assembly(program_of(std::move(kernel)),
                                     options_for(target_of("x86_64-linux-gnu", "sapphirerapids")));
  REQUIRE(text);
  CHECK(text->find("vpermb") != std::string::npos);
  CHECK(text->find("vpermt2b") == std::string::npos);
}

} // namespace firn::test
