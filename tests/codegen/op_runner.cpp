// See op_runner.h.
#include "tests/codegen/op_runner.h"

#include <catch2/catch.hpp>

namespace firn::test {

using namespace kernel;

std::vector<Machine> runnable_targets() {
  std::vector<Machine> targets = {target_of("x86_64-linux-gnu", "x86-64")};
  Machine host = host_target();
  if (host.cpu.vector_bits >= 256) targets.push_back(target_of("x86_64-linux-gnu", "x86-64-v3"));
  targets.push_back(host);
  for (const char* cpu :
       {"cortex-a72", "cortex-m0", "cortex-m4", "cortex-m7", "cortex-m55", "generic-rv64"}) {
    Machine target = target_of("", cpu);
    if (EmulatedObject::available(target)) targets.push_back(target);
  }
  return targets;
}

std::vector<std::vector<char>> run_ops(const Machine& target, int lanes, const std::vector<Scalar>& types,
                                       const std::vector<std::vector<char>>& operands, Scalar result,
                                       const EmitOps& emit, bool flushes_bf16, int64_t unroll) {
  int64_t rows = static_cast<int64_t>(operands[0].size()) / scalar_bytes(types[0]);
  REQUIRE(rows % lanes == 0);
  // Counts the results first, as outputs are parameters.
  size_t results = 0;
  {
    Kernel scratch;
    Builder b(scratch);
    std::vector<Register> values;
    for (Scalar type : types) {
      values.push_back(b.load({type, lanes}, b.add_parameter("x", type, rows, false), 0));
    }
    results = emit(b, values).size();
  }
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "ops";
  Builder b(*kernel);
  for (Scalar type : types) b.add_parameter("in", type, rows, false);
  int out = b.add_parameter("out", result, rows * static_cast<int64_t>(results), true);
  auto body = [&](const IntExpr& i) {
    std::vector<Register> values;
    for (size_t k = 0; k < types.size(); ++k)
      values.push_back(b.load({types[k], lanes}, static_cast<int>(k), i));
    std::vector<Register> emitted = emit(b, values);
    for (size_t r = 0; r < emitted.size(); ++r) b.store(emitted[r], out, i + static_cast<int64_t>(r) * rows);
  };
  b.loop(0, rows, lanes, body, unroll);
  Program program = program_of(std::move(kernel));
  std::vector<char> all(static_cast<size_t>(rows) * results * static_cast<size_t>(scalar_bytes(result)));
  codegen::CodegenOptions options = options_for(target);
  options.flushes_bf16 = flushes_bf16;
  if (target.arch == Arch::X86_64) {
    std::vector<const void*> inputs;
    for (const auto& operand : operands) inputs.push_back(operand.data());
    LoadedObject object(program, options);
    REQUIRE(object.run(inputs, {all.data()}) == 0);
  } else {
    std::vector<std::vector<char>> outputs = {all};
    EmulatedObject(program, options).run(operands, outputs);
    all = outputs[0];
  }
  std::vector<std::vector<char>> split;
  size_t size = all.size() / results;
  for (size_t r = 0; r < results; ++r) {
    auto start = all.begin() + static_cast<std::ptrdiff_t>(r * size);
    split.emplace_back(start, start + static_cast<std::ptrdiff_t>(size));
  }
  return split;
}

} // namespace firn::test
