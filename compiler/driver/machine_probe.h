// What this machine can do, measured: the bounds that `firn bench` compares kernels with.
#pragma once

#include "compiler/target/target_info.h"

namespace firn::driver {

struct MachineProbe {
  double flops_per_second = 1;        // fp32 multiply-adds counted as two, one thread
  double memory_bytes_per_second = 1; // reading far beyond the caches
  double cache_bytes_per_second = 1;  // reading half a megabyte again and again
};

// With code for `target`, which this machine runs: what other vectors could do is no bound for it. Takes a
// tenth of a second. The loops are programs of the kernel IR, compiled as models are.
MachineProbe probe_machine(const TargetInfo& target);

} // namespace firn::driver
