// What this machine can do, measured: the bounds that `firn bench` compares kernels with.
#pragma once

namespace firn::driver {

struct MachineProbe {
  double flops_per_second = 1;        // fp32 multiply-adds counted as two, one thread, code for this CPU
  double memory_bytes_per_second = 1; // reading far beyond the caches
  double cache_bytes_per_second = 1;  // reading half a megabyte again and again
};

// Takes a tenth of a second. The multiply-add loop is a program of the kernel IR, compiled as models are.
MachineProbe probe_machine();

} // namespace firn::driver
