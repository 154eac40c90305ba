// Making programs of whole-buffer steps and interpreting them.
#include "tests/memory/planned_program.h"

#include "compiler/kernel/builder.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace firn::memory {

using kernel::Program;
using kernel::Space;
using kernel::Step;

int ProgramMaker::buffer(int units, Space space, int io_index) {
  kernel::Buffer buffer;
  buffer.name = "b" + std::to_string(program.buffers.size());
  buffer.space = space;
  buffer.bytes = units * 64;
  buffer.io_index = io_index;
  return program.add_buffer(buffer);
}

// A written parameter of its own element is written first, and that element read last where reading it then
// would be wrong in place.
Step ProgramMaker::call(const std::vector<int>& written, const std::vector<int>& read,
                        const std::vector<std::pair<int, int>>& in_place) {
  auto kernel = std::make_unique<kernel::Kernel>();
  kernel::Builder b(*kernel);
  Step step;
  step.kernel = static_cast<int>(program.kernels.size());
  for (bool writes : {true, false})
    for (int number : writes ? written : read) {
      int64_t elements = program.buffers[static_cast<size_t>(number)].bytes / 4;
      b.add_parameter("p", kernel::Scalar::F32, elements, writes);
      step.arguments.push_back({number, 0});
    }
  kernel::MachineType element{kernel::Scalar::F32, 1};
  int writes = static_cast<int>(written.size());
  for (int w = 0; w < writes; ++w) b.store(b.constant(element, 0), w, w);
  for (int w = 0; w < writes; ++w)
    for (int r = 0; r < static_cast<int>(read.size()); ++r)
      if (std::find(in_place.begin(), in_place.end(), std::pair{w, r}) == in_place.end())
        b.load(element, writes + r, w);
  program.kernels.push_back(std::move(kernel));
  return step;
}

Step if_step(int condition, std::vector<Step> then_steps, std::vector<Step> else_steps) {
  Step step;
  step.kind = Step::Kind::If;
  step.condition = {condition, 0};
  step.first = std::move(then_steps);
  step.second = std::move(else_steps);
  return step;
}

Step while_step(int condition, std::vector<Step> condition_steps, std::vector<Step> body) {
  Step step = if_step(condition, std::move(condition_steps), std::move(body));
  step.kind = Step::Kind::While;
  return step;
}

namespace {

// Memory is units of 64 bytes that hold one number each: what wrote them, hashed.
class Interpreter {
public:
  Interpreter(const Program& program, bool in_arena) : program_(program) {
    int64_t end = 0;
    for (const kernel::Buffer& buffer : program.buffers) {
      places_.push_back(in_arena ? buffer.offset / 64 : end);
      end += buffer.bytes / 64;
    }
    memory_.resize(static_cast<size_t>(in_arena ? program.arena_bytes / 64 : end));
    for (size_t i = 0; i < program.buffers.size(); ++i)
      if (program.buffers[i].space == Space::Input && places_[i] >= 0) write(static_cast<int>(i), 1000 + i);
  }

  std::vector<uint64_t> run() {
    run_all(program_.steps);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      Space space = program_.buffers[i].space;
      if (space == Space::Output || space == Space::Input) read(static_cast<int>(i));
    }
    return std::move(reads_);
  }

private:
  uint64_t read(int buffer) {
    auto [begin, count] = range(buffer);
    uint64_t value = memory_[begin];
    for (size_t i = 0; i < count; ++i)
      if (memory_[begin + i] != value) value = 0xbad;
    reads_.push_back(value);
    return value;
  }

  void write(int buffer, uint64_t value) {
    auto [begin, count] = range(buffer);
    for (size_t i = 0; i < count; ++i) memory_[begin + i] = value;
  }

  std::pair<size_t, size_t> range(int buffer) {
    auto number = static_cast<size_t>(buffer);
    REQUIRE(places_[number] >= 0);
    auto begin = static_cast<size_t>(places_[number]),
         count = static_cast<size_t>(program_.buffers[number].bytes / 64);
    REQUIRE(begin + count <= memory_.size());
    return {begin, count};
  }

  bool decide(int condition) { return (read(condition) + 7 * ++decisions_) % 3 != 0; }

  void run_all(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::Call) {
        run_call(step);
      } else if (step.kind == Step::Kind::If) {
        run_all(decide(step.condition.buffer) ? step.first : step.second);
      } else {
        for (int i = 0; i < 4; ++i) {
          run_all(step.first);
          if (!decide(step.condition.buffer)) break;
          run_all(step.second);
        }
      }
    }
  }

  void run_call(const Step& step) {
    const kernel::Kernel& kernel = *program_.kernels[static_cast<size_t>(step.kernel)];
    uint64_t value = ++calls_;
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (!kernel.parameters[i].written)
        value = (value ^ read(step.arguments[i].buffer)) * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < step.arguments.size(); ++i)
      if (kernel.parameters[i].written) write(step.arguments[i].buffer, value + i);
  }

  const Program& program_;
  std::vector<int64_t> places_;
  std::vector<uint64_t> memory_, reads_;
  uint64_t calls_ = 0, decisions_ = 0;
};

} // namespace

std::vector<uint64_t> reads_apart(const Program& program) {
  return Interpreter(program, false).run();
}
std::vector<uint64_t> reads_in_arena(const Program& program) {
  return Interpreter(program, true).run();
}

} // namespace firn::memory
