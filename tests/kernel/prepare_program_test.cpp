// The program that prepares weights: where it puts them, what it shares, and its text.
#include "compiler/kernel/passes/prepare_program.h"

#include "compiler/kernel/builder.h"
#include "compiler/kernel/passes/pass.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::kernel;

namespace {

int weights(Program& program, const std::string& name, int64_t bytes) {
  Buffer buffer;
  buffer.name = name;
  buffer.space = Space::Weights;
  buffer.bytes = bytes;
  buffer.offset = program.weight_bytes;
  program.weight_bytes += (bytes + 63) / 64 * 64;
  int number = program.add_buffer(buffer);
  program.constants.push_back(
      {number, [](std::span<std::byte> out) { std::fill(out.begin(), out.end(), std::byte{7}); }, {}});
  return number;
}

// A kernel that writes every float it reads twice.
std::unique_ptr<Kernel> make_doubling(int64_t count) {
  auto kernel = std::make_unique<Kernel>();
  Builder b(*kernel);
  int raw = b.add_parameter("raw", Scalar::F32, count, false),
      packed = b.add_parameter("packed", Scalar::F32, 2 * count, true);
  b.loop(0, 2 * count, 1, [&](const IntExpr& i) {
    b.store(b.load({Scalar::F32, 1}, raw, floor_div(i, 2)), packed, i);
  });
  return kernel;
}

// Reads three constants; the second has a raw form of half its size.
Program reading_program() {
  Program program;
  program.name = "m";
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "read";
  Step step;
  step.kernel = 0;
  Builder b(*kernel);
  for (auto [name, bytes] : {std::pair{"bias", 100}, {"filters", 256}, {"scale", 100}, {"shift", 36}}) {
    step.arguments.push_back({weights(program, name, bytes), 0});
    b.add_parameter(name, Scalar::I8, bytes, false);
  }
  program.constants[1].raw = RawForm{128, [](std::span<std::byte>) {}, [] { return make_doubling(32); }};
  program.kernels.push_back(std::move(kernel));
  program.steps.push_back(step);
  return program;
}

} // namespace

TEST_CASE("weights are prepared where the program reads them") {
  Program program = reading_program();
  auto target = find_target("x86_64-linux-gnu", "x86-64-v3", "");
  REQUIRE(target);
  Program prepare = make_prepare_program(program, *target);
  INFO(print_program(prepare));
  CHECK(verify(prepare));
  CHECK(prepare.arena_bytes == program.weight_bytes);
  REQUIRE(prepare.steps.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const Buffer &from = prepare.buffers[static_cast<size_t>(prepare.steps[i].arguments[0].buffer)],
                 &to = prepare.buffers[static_cast<size_t>(prepare.steps[i].arguments[1].buffer)];
    CHECK(from.space == Space::Weights);
    CHECK(to.space == Space::Arena);
    CHECK(to.offset == program.buffers[i].offset);
    CHECK(from.bytes == (i == 1 ? 128 : to.bytes));
  }
  // Copies of equal size can share a kernel.
  merge_equal_kernels(prepare, {});
  CHECK(prepare.kernels.size() == 3);
  CHECK(prepare.steps[0].kernel == prepare.steps[2].kernel);
  auto parsed = parse_program("prepare.kir", print_program(prepare));
  REQUIRE(parsed);
  CHECK(print_program(*parsed) == print_program(prepare));
}

TEST_CASE("a program without constants has nothing to prepare") {
  Program program;
  auto target = find_target("", "cortex-m4", "");
  REQUIRE(target);
  Program prepare = make_prepare_program(program, *target);
  CHECK(verify(prepare));
  CHECK(prepare.steps.empty());
  CHECK(prepare.arena_bytes == 0);
}
