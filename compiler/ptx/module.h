// PTX that can be run: parse() decodes a module, launch() runs one of its kernels on memory of the host and
// finds what a GPU would let pass: races, accesses beyond buffers, reads of what was never written, barriers
// that not all threads reach, asynchronous copies that nobody waits for.
//
// The memory model. Two accesses to one byte, one of which writes, are a race unless one happens before the
// other. Within a block that is so for accesses of one thread, and across a barrier (bar.sync, barrier.sync)
// or bar.warp.sync that both threads take part in; a shuffle, a vote or lanes in lockstep order nothing.
// Nothing orders the blocks of a launch. Accesses that are both strong (volatile, relaxed, acquire, release,
// atomic) are no race. A fence alone orders nothing here: it needs a strong access on either side, and code
// that hands weak data over so is reported.
#pragma once

#include "compiler/ptx/memory.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace firn::ptx {

struct Program;

class Module {
public:
  explicit Module(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  std::vector<std::string> kernels() const;
  // The address of a variable of the module and its bytes; 0 if there is none of the name.
  uint64_t variable(const std::string& name) const;
  // Memory of the module's own variables, for copies to and from them.
  Memory& variables() const;
  const Program& program() const { return *program_; }

private:
  std::shared_ptr<Program> program_;
};

// Decodes a module. What the interpreter does not know is an error with its line, not left out.
Expected<Module> parse(std::string_view text);

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

// The values of a kernel's parameters, in their order.
class Arguments {
public:
  template <class T> Arguments& add(const T& value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    values_.emplace_back(bytes, bytes + sizeof(T));
    return *this;
  }
  Arguments& add_bytes(const void* data, size_t bytes) {
    const auto* begin = static_cast<const uint8_t*>(data);
    values_.emplace_back(begin, begin + bytes);
    return *this;
  }
  const std::vector<std::vector<uint8_t>>& values() const { return values_; }

private:
  std::vector<std::vector<uint8_t>> values_;
};

struct Options {
  enum class Copies { Earliest, Latest };
  Copies copies = Copies::Latest; // the moment when cp.async writes: at once, or when it is waited for
  uint64_t seed = 0;              // order of blocks and warps; 0: ascending
  bool check_races = true;
  uint64_t max_shared_bytes = 232448; // static and dynamic bytes of a block
  uint64_t max_instructions = 0;      // limit for all warps, which ends endless loops; 0: none
};

struct Statistics {
  std::array<uint64_t, 8> lane_instructions{}; // by OpClass
  uint64_t warp_instructions = 0;
  uint64_t barriers = 0; // completed by a block
  uint64_t global_bytes_read = 0, global_bytes_written = 0;
  uint64_t shared_bytes_read = 0, shared_bytes_written = 0;
  uint64_t async_bytes = 0;    // copied by cp.async
  uint64_t bank_conflicts = 0; // further passes of shared memory
  uint64_t sectors = 0;        // 32-byte parts of global memory that warps touched
  uint64_t excess_sectors = 0; // beyond those that the bytes need
  uint64_t divergent_branches = 0;
  uint64_t lanes() const {
    uint64_t total = 0;
    for (uint64_t count : lane_instructions) total += count;
    return total;
  }
};

// Runs a kernel to its end. `shared_bytes` is dynamic shared memory. Errors name kernel, block, thread and
// line of PTX; memory is then as the kernel left it.
Expected<Statistics> launch(const Module& module, const std::string& kernel, Dim3 grid, Dim3 block,
                            uint64_t shared_bytes, const Arguments& arguments, Memory& memory,
                            const Options& options = {});

} // namespace firn::ptx
