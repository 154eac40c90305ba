// Measures what this machine can do: the bounds that `firn bench` compares kernels with.
#pragma once

#include "compiler/target/machine.h"

namespace firn::driver {

struct MachineProbe {
  double flops_per_second = 1;        // fp32 multiply-adds counted as two, one thread
  double memory_bytes_per_second = 1; // reading far beyond the caches
  double cache_bytes_per_second = 1;  // reading half a megabyte again and again
};

// Measures with code for `target`, which this machine runs: the speed of other vectors is no bound for it.
// Takes a tenth of a second. The loops are programs of the kernel IR, compiled as models are.
MachineProbe probe_machine(const Machine& target);

} // namespace firn::driver
