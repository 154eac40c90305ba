// The table of GPUs: parts that are common, one row each, with what the plans of their kernels go by.
#pragma once

#include "compiler/target/machine.h"

#include <span>
#include <string_view>

namespace firn {

struct GpuRow {
  std::string_view part; // lower case, as --gpu names it
  int sm;                // compute capability, major times ten plus minor
  GpuFacts facts;        // all but `sm` and `part`, which the row says
};

// Sorted by `sm`; the first row of each is the part that stands for it where none is named.
std::span<const GpuRow> gpu_table();

// Blocks that an SM runs at the same time by its room for warps, registers and shared memory: at least one.
int64_t resident_blocks(const GpuFacts& gpu, int threads, int registers_per_thread, int64_t shared_bytes);

// The machine that "sm_80" or "sm_80:a100" names. Kernels are made of scalar code, one piece for each thread.
// An unknown name is a usage error that lists the choices.
Expected<Machine> find_gpu(std::string_view name);

} // namespace firn
