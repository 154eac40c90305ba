// Kernels that between them use every part of the kernel IR's syntax.
#pragma once

#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

namespace firn::kernel {

inline std::unique_ptr<Kernel> sample_control_flow(const std::string& name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->flops = 12;
  kernel->bytes = 34;
  kernel->algorithm = "sample";
  kernel->location = "/net/\"odd\" name";
  Builder b(*kernel);
  MachineType f32{Scalar::F32, 1}, wide{Scalar::F32, 16}, i32{Scalar::I32, 1};
  int x = b.add_parameter("x", Scalar::F32, 4096, false);
  int n = b.add_parameter("n", Scalar::I32, 1, false, 4);
  int y = b.add_parameter("y", Scalar::F32, 4096, true);
  int t = b.add_scratch("t", Scalar::F32, 64);
  IntExpr p = b.set_parallel(4);
  IntExpr count = b.symbolic(b.load(i32, n, 0), 0, 32, "count");
  std::vector<Register> zero = {b.constant(wide, -0.0), b.constant({Scalar::I64, 1}, 5)};
  auto sums = b.loop_carried(
      0, count, 1, zero,
      [&](const IntExpr& i, const std::vector<Register>& carried) {
        Register v = b.load(wide, x, 1024 * p + 16 * i, 64);
        b.prefetch(x, 1024 * p + 16 * i + 64, true);
        b.store(v, t, 16 * floor_mod(i, 4), 64);
        return std::vector<Register>{b.fma(v, v, carried[0]), carried[1]};
      },
      4);
  Register total = b.reduce(OpKind::ReduceFAdd, sums[0]);
  Register big = b.compare(OpKind::FCmp, Predicate::Gt, total, b.constant(f32, 1e10));
  Register chosen = b.if_then_else(
      big, [&] { return std::vector<Register>{b.unary(OpKind::FSqrt, total)}; },
      [&] { return std::vector<Register>{b.binary(OpKind::FDiv, total, b.constant(f32, 3))}; })[0];
  Register halved = b.while_loop(
      {chosen},
      [&](const std::vector<Register>& v) {
        return b.compare(OpKind::FCmp, Predicate::Ge, v[0], b.constant(f32, 1));
      },
      [&](const std::vector<Register>& v) {
        return std::vector<Register>{b.binary(OpKind::FMul, v[0], b.constant(f32, 0.5))};
      })[0];
  Register mask = b.lane_mask(16, count - floor_div(count, 16) * 16);
  b.store_masked(b.splat(halved, 16), y, min(1024 * p, 3000), mask);
  b.store(b.load(wide, t, 0), y, 1024 * p + 512);
  b.prefetch(t, 512, /*into_l2=*/true);
  kernel->in_place = {{y, x, Overwriting::Pointwise, 16384}};
  return kernel;
}

inline std::unique_ptr<Kernel> sample_vectors(const std::string& name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  Builder b(*kernel);
  int a = b.add_parameter("a", Scalar::I8, 256, false), w = b.add_parameter("w", Scalar::BF16, 256, false);
  int out = b.add_parameter("out", Scalar::I32, 256, true);
  Register bytes = b.load({Scalar::I8, 64}, a, 0), sum = b.constant_int({Scalar::I32, 16}, 0);
  Register dot = b.emit(OpKind::DotU8S8, {sum, bytes, bytes}, {Scalar::I32, 16});
  Register pairs = b.load({Scalar::BF16, 32}, w, 0);
  Register real =
      b.emit(OpKind::DotBF16, {b.constant({Scalar::F32, 16}, 0.25), pairs, pairs}, {Scalar::F32, 16});
  Register rounded = b.cast(OpKind::FToSISat, b.unary(OpKind::FRoundEven, real), Scalar::I32);
  Register mixed = b.shuffle(dot, rounded, {0, 16, 1, 17});
  mixed = b.insert(mixed, b.extract(dot, 5), 2);
  std::vector<int64_t> lanes(16);
  for (int i = 0; i < 16; ++i) lanes[static_cast<size_t>(i)] = 3 * i % 16;
  Register offsets = b.constant_lanes({Scalar::I32, 16}, lanes);
  Register negative = b.compare(OpKind::SCmp, Predicate::Lt, dot, sum);
  b.scatter(b.select(negative, sum, dot), out, 16, offsets, negative);
  b.store(b.gather({Scalar::I8, 16}, a, 7, offsets), out, 64);
  b.store(mixed, out, 0);
  b.kernel().body.ops.push_back(std::make_unique<Op>());
  Op& call = *b.kernel().body.ops.back();
  call.kind = OpKind::CallRuntime;
  call.callee = "firn_rt2_sort";
  call.buffers = {a, out};
  call.operands = {b.extract(dot, 0)};
  std::swap(b.kernel().body.ops[b.kernel().body.ops.size() - 1],
            b.kernel().body.ops[b.kernel().body.ops.size() - 2]);
  return kernel;
}

inline Program sample_program() {
  Program program;
  program.name = "sample";
  program.arena_bytes = 65536;
  program.arena_lower_bound = 60000;
  program.weight_bytes = 1024;
  auto add = [&](std::string name, Space space, int64_t bytes, int64_t offset, int io = -1) {
    Buffer buffer;
    buffer.name = std::move(name);
    buffer.space = space;
    buffer.bytes = bytes;
    buffer.offset = offset;
    buffer.io_index = io;
    return program.add_buffer(buffer);
  };
  int input = add("in", Space::Input, 16384, -1, 0), output = add("out", Space::Output, 16384, 0, 0);
  int middle = add("mid", Space::Arena, 16384, 16384), flag = add("flag", Space::Arena, 64, 32768);
  int weights = add("w", Space::Weights, 1024, 0), bytes = add("bytes", Space::Arena, 256, 40960);
  program.buffers[static_cast<size_t>(middle)].location = "/net/conv";
  program.buffers[static_cast<size_t>(add("past", Space::State, 256, 41216, 0))].initial = weights;
  program.buffers[static_cast<size_t>(add("trained", Space::Parameters, 256, 0, 1))].initial = weights;
  Constant constant;
  constant.buffer = weights;
  program.constants.push_back(std::move(constant));
  program.kernels.push_back(sample_control_flow("flow"));
  program.kernels.push_back(sample_vectors("vectors"));
  Step call;
  call.kernel = 0;
  call.arguments = {{input, 0}, {flag, 0}, {middle, 0}};
  call.location = "/net/conv";
  Step vectors;
  vectors.kernel = 1;
  vectors.arguments = {{bytes, 0}, {weights, 512}, {output, 0}};
  Step branch;
  branch.kind = Step::Kind::If;
  branch.condition = {flag, 3};
  branch.first = {call};
  branch.second = {vectors, call};
  Step loop;
  loop.kind = Step::Kind::While;
  loop.condition = {flag, 0};
  loop.first = {vectors};
  loop.second = {branch};
  program.steps = {call, loop, branch};
  return program;
}

// Gives "good" for a program of one kernel that verifies, else the message.
inline std::string verify_text(const std::string& head, const std::string& kernel) {
  std::string text =
      "program \"p\" arena 4096 lower_bound 0 weights 64 {\n" + head + "}\nkernel \"k\" {\n" + kernel + "}\n";
  auto parsed = parse_program("t", text);
  if (!parsed) return "parse: " + parsed.error().message;
  Result result = verify(*parsed);
  if (result) return "good";
  CHECK(result.error().fault == Fault::Internal);
  return result.error().message;
}

inline void rejects(const std::string& kernel, const std::string& message) {
  std::string got = verify_text("", kernel);
  INFO(kernel);
  CHECK_THAT(got, Catch::Contains(message));
}

} // namespace firn::kernel
