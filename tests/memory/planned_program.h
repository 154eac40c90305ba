// Programs made of steps that read and write whole buffers, and an interpreter that runs them once in
// separate memory and once in the planned arena, to see that every read finds what the last write left.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::memory {

// A program under construction. Buffers are 64-byte units.
class ProgramMaker {
public:
  kernel::Program program;

  int buffer(int units, kernel::Space space = kernel::Space::Arena, int io_index = -1);
  // A call whose kernel reads `read` and writes `written`, in this order of arguments: written ones first.
  // With `in_place` the pairs (written, read), by position in their lists, may share memory.
  kernel::Step call(const std::vector<int>& written, const std::vector<int>& read,
                    const std::vector<std::pair<int, int>>& in_place = {});
};

kernel::Step if_step(int condition, std::vector<kernel::Step> then_steps,
                     std::vector<kernel::Step> else_steps);
kernel::Step while_step(int condition, std::vector<kernel::Step> condition_steps,
                        std::vector<kernel::Step> body);

// The contents of every argument read, in the order of execution: with all buffers apart, and in the planned
// arena. The run's own counter decides conditions, so that both runs take the same way.
std::vector<uint64_t> reads_apart(const kernel::Program& program);
std::vector<uint64_t> reads_in_arena(const kernel::Program& program);

} // namespace firn::memory
