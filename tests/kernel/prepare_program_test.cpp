// The program that prepares weights: where it reads and where it writes them, and its text.
#include "compiler/kernel/passes/prepare_program.h"

#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::kernel;

namespace {

int add_buffer(Program& program, const std::string& name, Space space, int64_t bytes, int io_index = -1) {
  Buffer buffer;
  buffer.name = name;
  buffer.space = space;
  buffer.bytes = bytes;
  buffer.io_index = io_index;
  if (space == Space::Weights) {
    buffer.offset = program.weight_bytes;
    program.weight_bytes += (bytes + 63) / 64 * 64;
  }
  return program.add_buffer(buffer);
}

ConstantSource source(const std::string& name, int64_t elements) {
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(4 * elements), std::byte{7});
  return {name, Scalar::F32, {elements}, bytes, *bytes};
}

// A bias as it is, filters that become twice as many, nothing, and a scale with zeros behind it.
Program packed_program() {
  Program program;
  program.name = "m";
  Packing twice{4, 64, 32, {}, {}};
  twice.boxes.push_back({0, 0, {{32, 2, 1}, {2, 1, 0}}, {}, 0});
  for (auto& [name, elements, packing] : {std::tuple{"bias", 25, padded_copy(4, 25, 25)},
                                          {"filters", 32, twice},
                                          {"none", 0, padded_copy(4, 0, 0)},
                                          {"scale", 9, padded_copy(4, 9, 16)}}) {
    int number = add_buffer(program, name, Space::Weights, 4 * packing.packed_elements);
    program.constants.push_back({number, source(name, elements), packing});
  }
  return program;
}

// A function of three inputs and as many results, as @prepare of that program would be lowered.
Program lowered_prepare() {
  Program prepare;
  prepare.name = "m.prepare";
  int64_t sizes[] = {100, 256, 64}, source_sizes[] = {100, 128, 36};
  for (int i = 0; i < 3; ++i) {
    int from = add_buffer(prepare, "in", Space::Input, source_sizes[i], i),
        to = add_buffer(prepare, "out", Space::Output, sizes[i], i);
    auto kernel = std::make_unique<Kernel>();
    kernel->name = "pack_" + std::to_string(10 + i);
    Builder b(*kernel);
    int in = b.add_parameter("in", Scalar::F32, source_sizes[i] / 4, false),
        out = b.add_parameter("out", Scalar::F32, sizes[i] / 4, true);
    b.loop(0, sizes[i] / 4, 1, [&](const IntExpr& at) {
      b.store(b.load({Scalar::F32, 1}, in, min(at, IntExpr(source_sizes[i] / 4 - 1))), out, at);
    });
    Step step;
    step.kernel = i;
    step.arguments = {{from, 0}, {to, 0}};
    prepare.kernels.push_back(std::move(kernel));
    prepare.steps.push_back(std::move(step));
  }
  return prepare;
}

} // namespace

TEST_CASE("weights are prepared where the program reads them") {
  Program program = packed_program(), prepare = lowered_prepare();
  bind_prepare(prepare,
               {program.constants[0].source, program.constants[1].source, program.constants[3].source},
               program);
  INFO(print_program(prepare));
  CHECK(verify(prepare));
  CHECK(prepare.arena_bytes == program.weight_bytes);
  REQUIRE(prepare.constants.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const Buffer &from = prepare.buffers[static_cast<size_t>(prepare.steps[i].arguments[0].buffer)],
                 &to = prepare.buffers[static_cast<size_t>(prepare.steps[i].arguments[1].buffer)];
    CHECK(from.space == Space::Weights);
    CHECK(to.space == Space::Arena);
    CHECK(to.offset == program.buffers[i < 2 ? i : 3].offset);
    CHECK(from.name == program.buffers[i < 2 ? i : 3].name);
    std::vector<std::byte> bytes(static_cast<size_t>(from.bytes));
    write_constant(prepare.constants[i], bytes);
    CHECK(bytes == std::vector<std::byte>(bytes.size(), std::byte{7}));
    CHECK(prepare.kernels[i]->name == "prepare_" + std::to_string(i));
  }
  auto parsed = parse_program("prepare.kir", print_program(prepare));
  REQUIRE(parsed);
  CHECK(print_program(*parsed) == print_program(prepare));
}

TEST_CASE("weights that kernels read as the model has them need no program") {
  Program program = packed_program();
  CHECK(needs_preparing(program));
  program.constants.erase(program.constants.begin() + 1);
  CHECK_FALSE(needs_preparing(program));
  CHECK_FALSE(needs_preparing(Program()));
}

TEST_CASE("constants are written from their sources, zeros behind them") {
  Program program = packed_program();
  std::vector<std::byte> scale(64, std::byte{1}), filters(256);
  write_constant(program.constants[3], scale);
  for (size_t i = 0; i < scale.size(); ++i)
    CHECK(scale[i] == std::byte{static_cast<unsigned char>(i < 36 ? 7 : 0)});
  write_constant(program.constants[1], filters);
  CHECK(filters == std::vector<std::byte>(256, std::byte{7}));
}
