// One step per constant, in the order of their offsets.
#include "compiler/kernel/passes/prepare_program.h"

#include "compiler/kernel/builder.h"

#include <algorithm>

namespace firn::kernel {
namespace {

std::unique_ptr<Kernel> make_copy(int64_t bytes, int lanes) {
  auto kernel = std::make_unique<Kernel>();
  kernel->algorithm = "copy";
  Builder b(*kernel);
  int raw = b.add_parameter("raw", Scalar::I8, bytes, /*written=*/false);
  int packed = b.add_parameter("packed", Scalar::I8, bytes, /*written=*/true);
  int64_t whole = bytes / lanes * lanes;
  b.loop(0, whole, lanes, [&](const IntExpr& at) {
    b.store(b.load({Scalar::I8, lanes}, raw, at, lanes), packed, at, lanes);
  });
  b.loop(whole, bytes, 1, [&](const IntExpr& at) { b.store(b.load({Scalar::I8, 1}, raw, at), packed, at); });
  return kernel;
}

int add_buffer(Program& program, const Buffer& packed, Space space, int64_t bytes) {
  Buffer buffer;
  buffer.name = packed.name;
  buffer.space = space;
  buffer.bytes = bytes;
  buffer.offset = space == Space::Arena ? packed.offset : -1;
  return program.add_buffer(std::move(buffer));
}

} // namespace

bool has_raw_forms(const Program& program) {
  return std::any_of(program.constants.begin(), program.constants.end(),
                     [](const Constant& constant) { return constant.raw.has_value(); });
}

Program make_prepare_program(const Program& program, const TargetInfo& target) {
  Program prepare;
  prepare.name = program.name + ".prepare";
  prepare.arena_bytes = prepare.arena_lower_bound = program.weight_bytes;
  int lanes = std::min(target.lanes(8), 64);
  for (const Constant& constant : program.constants) {
    const Buffer& packed = program.buffers[static_cast<size_t>(constant.buffer)];
    FIRN_CHECK(packed.offset >= 0, "constant '" + packed.name + "' has no place");
    if (packed.bytes == 0) continue;
    int64_t raw_bytes = constant.raw ? constant.raw->bytes : packed.bytes;
    int from = add_buffer(prepare, packed, Space::Weights, raw_bytes);
    int to = add_buffer(prepare, packed, Space::Arena, packed.bytes);
    prepare.constants.push_back({from, constant.raw ? constant.raw->fill : constant.fill, {}});
    auto kernel = constant.raw ? constant.raw->make_expansion() : make_copy(packed.bytes, lanes);
    kernel->name = "prepare_" + std::to_string(prepare.kernels.size());
    kernel->location = packed.name;
    kernel->bytes = raw_bytes + packed.bytes;
    Step step;
    step.kernel = static_cast<int>(prepare.kernels.size());
    step.arguments = {{from, 0}, {to, 0}};
    step.location = packed.name;
    prepare.kernels.push_back(std::move(kernel));
    prepare.steps.push_back(std::move(step));
  }
  return prepare;
}

} // namespace firn::kernel
