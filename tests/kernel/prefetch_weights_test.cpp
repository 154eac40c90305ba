// Tests which calls prefetch weights for others, by the bytes a call waits for and the computing before it.
#include "compiler/kernel/builder.h"
#include "compiler/kernel/passes/pass.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::kernel;

namespace {

constexpr int64_t kMegabyte = 1 << 20;

// Multiplies `flops` / 2 times in loops of 8 x 16 and as many inner ones as it takes.
std::unique_ptr<Kernel> make_product(const std::string& name, int64_t flops, int64_t weight_bytes) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->flops = flops;
  Builder b(*kernel);
  int x = b.add_parameter("x", Scalar::F32, 1024, false);
  int w = b.add_parameter("w", Scalar::F32, weight_bytes / 4, false);
  int y = b.add_parameter("y", Scalar::F32, 1024, true);
  int scratch = b.add_scratch("sums", Scalar::F32, 16);
  MachineType wide{Scalar::F32, 16};
  IntExpr p = b.set_parallel(8);
  b.loop(0, 16, 1, [&](const IntExpr& i) {
    auto sum = b.loop_carried(0, flops / (2 * 16 * 8 * 16), 1, {b.constant(wide, 0)},
                              [&](const IntExpr&, const std::vector<Register>& in) {
                                Register scalar = b.splat(b.load({Scalar::F32, 1}, x, i + p), 16);
                                return std::vector{b.fma(scalar, b.load(wide, w, 0), in[0])};
                              });
    b.store(sum[0], scratch, 0);
    b.store(b.load(wide, scratch, 0), y, 0);
  });
  return kernel;
}

struct Chain {
  Program program;
  int value = 0;

  Chain() { value = add(Space::Input, 4096); }
  int add(Space space, int64_t bytes) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(program.buffers.size());
    buffer.space = space;
    buffer.bytes = bytes;
    buffer.io_index = space == Space::Input ? 0 : -1;
    if (space == Space::Weights) {
      buffer.offset = program.weight_bytes; // in the order of their use
      program.weight_bytes += bytes;
    }
    return program.add_buffer(buffer);
  }
  // Adds a product of its own kernel, fed by the one before.
  void product(int64_t flops, int64_t weight_bytes) {
    Step step;
    step.kernel = static_cast<int>(program.kernels.size());
    program.kernels.push_back(make_product("k" + std::to_string(step.kernel), flops, weight_bytes));
    int weights = add(Space::Weights, weight_bytes), next = add(Space::Arena, 4096);
    step.arguments = {{value, 0}, {weights, 0}, {next, 0}};
    value = next;
    program.steps.push_back(step);
  }
  void plan(const char* cpu = "sapphirerapids") {
    auto target = find_target("x86_64-linux-gnu", cpu, "");
    REQUIRE(target);
    prefetch_weights(program, KernelPassOptions(kDefaultGoals, &*target));
    INFO(print_program(program));
    REQUIRE(verify(program));
  }
  int64_t asked_at(size_t step) const {
    const Argument& argument = program.steps[step].arguments.at(3);
    return program.buffers[static_cast<size_t>(argument.buffer)].offset + argument.byte_offset;
  }
  bool asks(size_t step) const { return program.steps[step].arguments.size() > 3; }
};

int count_prefetches(const Block& block) {
  int count = 0;
  for (const auto& op : block.ops) {
    count += op->kind == OpKind::Prefetch;
    for (const Block& inner : op->blocks) count += count_prefetches(inner);
  }
  return count;
}

// The farthest byte asked for, with the line it is in.
int64_t reach(const Block& block) {
  int64_t end = 0;
  for (const auto& op : block.ops) {
    if (op->kind == OpKind::Prefetch) end = std::max(end, op->index.upper_bound() + 64);
    for (const Block& inner : op->blocks) end = std::max(end, reach(inner));
  }
  return end;
}

} // namespace

TEST_CASE("computing calls prefetch what the next call would wait for") {
  Chain chain;
  chain.product(64 << 20, 4096);
  chain.product(1 << 20, 512 << 10); // a million multiplications per half megabyte
  chain.product(64 << 20, 4 * kMegabyte);
  chain.plan();
  REQUIRE(chain.asks(0));
  CHECK(chain.asked_at(0) == 4096);
  const Kernel& kernel = *chain.program.kernels[0];
  CHECK(count_prefetches(kernel.body) > 0);
  int64_t end = reach(kernel.body);
  CHECK(end > 300 << 10);
  CHECK(end <= 512 << 10); // the third call's weights arrive while it computes
  CHECK_FALSE(chain.asks(1));
  CHECK_FALSE(chain.asks(2));
  // The code still refers to the scratch.
  CHECK(kernel.buffer(4).name == "sums");
}

TEST_CASE("what is asked for stays within half of the second cache level") {
  Chain chain;
  chain.product(1 << 30, 4096);
  chain.product(1 << 20, 16 * kMegabyte);
  chain.plan();
  REQUIRE(chain.asks(0));
  int64_t end = reach(chain.program.kernels[0]->body);
  CHECK(end > kMegabyte / 2);
  CHECK(end <= kMegabyte + 4096);
}

TEST_CASE("several calls share what one alone cannot fetch, in order") {
  Chain chain;
  chain.product(4 << 20, 4096);
  chain.product(4 << 20, 4096);
  chain.product(1 << 20, 4 * kMegabyte);
  chain.plan();
  REQUIRE(chain.asks(0));
  REQUIRE(chain.asks(1));
  CHECK(chain.asked_at(0) < chain.asked_at(1));
  CHECK(chain.asked_at(1) - chain.asked_at(0) <= reach(chain.program.kernels[0]->body));
}

TEST_CASE("calls of one kernel ask from places of their own") {
  Chain chain;
  for (int i = 0; i < 3; ++i) {
    chain.product(64 << 20, 4096);
    chain.product(1 << 20, (i + 1) * kMegabyte);
  }
  merge_equal_kernels(chain.program, {});
  REQUIRE(chain.program.kernels.size() == 4);
  chain.plan();
  for (size_t step : {0, 2, 4}) {
    REQUIRE(chain.asks(step));
    const Argument& own = chain.program.steps[step].arguments[1];
    int64_t next = chain.program.buffers[static_cast<size_t>(own.buffer)].offset + 4096;
    CHECK(chain.asked_at(step) <= next);
    CHECK(chain.asked_at(step) >= next - 8192); // one that wants a little less starts a little before
    CHECK_FALSE(chain.asks(step + 1));
  }
}

TEST_CASE("a call that wants less than others of its kernel asks again for what has come") {
  Chain chain;
  chain.product(1 << 20, 4 * kMegabyte);
  for (int64_t bytes : {64 << 10, 4 << 20}) {
    chain.product(64 << 20, kMegabyte);
    chain.product(1 << 20, bytes);
  }
  merge_equal_kernels(chain.program, {});
  REQUIRE(chain.program.kernels.size() == 3);
  chain.plan();
  REQUIRE(chain.asks(1));
  REQUIRE(chain.asks(3));
  int64_t max = reach(chain.program.kernels[1]->body), own = 4 * kMegabyte, small = own + kMegabyte;
  CHECK(max > 512 << 10);
  CHECK(chain.asked_at(1) < small);
  CHECK(chain.asked_at(1) + max <= small + (64 << 10) + 4096);
  CHECK(chain.asked_at(1) + max >= small + (64 << 10));
  CHECK(chain.asked_at(3) == small + (64 << 10) + kMegabyte);
}

TEST_CASE("small weights are asked for though the call that reads them computes for long") {
  Chain chain;
  for (int64_t bytes : {4 << 10, 256 << 10, 4 << 20}) chain.product(256 << 20, bytes);
  chain.plan();
  CHECK(chain.asks(0));
  CHECK_FALSE(chain.asks(1)); // weights that take more than the cache has to spare arrive while they are read
}

TEST_CASE("nothing is asked for where weights stay in the cache or nobody waits") {
  Chain small;
  small.product(64 << 20, 4096);
  small.product(1 << 20, kMegabyte);
  small.plan();
  CHECK_FALSE(small.asks(0)); // all of it fits

  Chain busy;
  for (int i = 0; i < 4; ++i) busy.product(256 << 20, kMegabyte);
  busy.plan();
  for (size_t i = 0; i < 4; ++i) CHECK_FALSE(busy.asks(i));

  Chain idle; // a vector times matrices: no time to ask in
  for (int i = 0; i < 4; ++i) idle.product(1 << 18, 4 * kMegabyte);
  idle.plan();
  for (size_t i = 0; i < 4; ++i) CHECK_FALSE(idle.asks(i));
}
