// Facts about the machine that Firn compiles for, derived from one table of CPUs and LLVM's features. Kernels
// are shaped by these numbers alone; code generation passes triple, processor and features on to LLVM.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

enum class Arch : uint8_t { X86_64, AArch64, Arm, Nvptx, Other };

// The cache line of every CPU in the table; a few have lines twice as long, which come in halves.
inline constexpr int64_t kCacheLineBytes = 64;
// How far ahead of a stream its lines are prefetched: far enough to hide the latency of memory, and within
// reach of a page.
inline constexpr int64_t kPrefetchAheadBytes = 4096;
// Cycles of handing tasks to threads that spin and waiting for the last of them: about two microseconds.
inline constexpr double kSharedCallCycles = 6000;
// Cycles of a barrier between running threads: about a microsecond, most of it for the slowest.
inline constexpr double kBarrierCycles = 3000;

// A CPU as its kernels see it: registers, instructions, and how near memory is.
struct CpuFacts {
  int vector_bits = 256; // bits of a vector in kernels: the widest profitable register; 0: scalar code only
  // Registers that make a vector of vector_bits: several if an object holds code for several CPUs, which
  // share their layouts and so have vectors as long as the widest one's.
  int vector_parts = 1;
  int vector_element_bits = 64; // bits of the widest elements that vectors compute with
  int vector_registers = 16;    // architectural vector (or float) registers
  bool has_fma = true;          // fused multiply-add on f32 and f64
  bool has_f16_arithmetic = false;
  bool has_f16_conversion = false;
  bool has_float = true;               // hardware f32
  bool has_double = true;              // hardware f64
  bool has_masked_memory = false;      // cheap masked vector loads and stores (AVX-512, SVE)
  bool has_scalar_operands = false;    // a factor of a vector's FMA may be a general register (MVE)
  bool has_embedded_broadcast = false; // a load that broadcasts one element as an operand of an FMA (AVX-512)
  int fma_latency = 4, fma_pipes = 2;
  double loads_per_cycle = 2;
  int integer_registers = 11; // general ones, beside those that addresses and counters take

  // Instructions that code is made without if the CPU lacks them.
  bool has_rounding = true;             // floor, ceil and trunc of floats
  bool has_round_even = true;           // rounding of floats to nearest, ties to even
  bool has_ieee_minimum = false;        // minimum and maximum that keep NaN and tell -0 from +0
  bool has_reciprocal_estimate = false; // reciprocals of vectors of f32 to 14 bits (vrcp14ps)
  bool has_integer_division = true;     // division of 32 bits
  bool has_long_shifts = true;          // shifts and multiplications of 64 bits need no library
  bool has_leading_zeros = true;        // counting leading zeros needs no library

  // Instructions that multiply and add several steps of a reduction (mac.h): bits of the widest register
  // that each has, 0 for none.
  int unlike_dot4_bits = 0; // bytes of unlike sign (vpdpbusd, usdot)
  int like_dot4_bits = 0;   // bytes of like sign (sdot, udot)
  // Bytes of like sign, the products of all lanes of which are added to one sum in a general register
  // (vmladava).
  int reducing_dot_bits = 0;
  int dot2_bits = 0;      // signed 16-bit integers (pmaddwd, smlad), or additions of pairs of them (sadalp)
  int byte_pair_bits = 0; // bytes of unlike sign, two of whose products are summed in 16 bits (pmaddubsw)
  int bf16_dot2_bits = 0; // pairs of bf16 (vdpbf16ps, bfdot)
  // Bits of the widest register of f32 that an instruction rounds to bf16, subnormal numbers to zeros
  // (vcvtneps2bf16); 0: there is none.
  int bf16_rounding_bits = 0;
  bool has_tile_matrices = false; // tiles of bytes and bf16 (AMX), on systems that grant them
  bool has_word_tables = false;   // words looked up in registers, 16 to a table (vpermps)
  bool has_byte_tables = false;   // bytes looked up in registers, 128 to a table (vpermi2b)
  // How many vectors of words become bytes together in fewer instructions than each by itself, if their rows
  // lie beside each other (packs of 512 bits).
  int narrowed_together = 1;

  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 8 << 20;
  double l1_bytes_per_cycle = 128, l2_bytes_per_cycle = 48, l3_bytes_per_cycle = 26,
         memory_bytes_per_cycle = 10;
  // The number of streams that one core reads from memory fastest without software prefetch: several if
  // hardware prefetchers stop at the end of a page and wait for the next one's start. 1: one is as fast as
  // several; 0: not measured.
  int memory_streams = 0;

  // Channels per block of the blocked convolution layout: the f32 lanes of one vector, at least 4.
  int channel_block() const { return vector_bits >= 128 ? vector_bits / 32 : 4; }
  // Lanes of a full vector of elements of that many bits (1 without vectors of them).
  int lanes(int element_bits) const { return has_vectors_of(element_bits) ? vector_bits / element_bits : 1; }
  // Bits and lanes of one register: for code whose order of elements no layout decides.
  int register_bits() const { return vector_bits / vector_parts; }
  int register_lanes(int element_bits) const {
    return has_vectors_of(element_bits) ? register_bits() / element_bits : 1;
  }
  bool has_vectors_of(int element_bits) const {
    return vector_bits > 0 && element_bits <= vector_element_bits;
  }

  // Whether memory is read by way of caches: without them a request for data ahead of its use gains nothing.
  bool has_caches() const { return l1_bytes > 0; }
};

// Threads of a warp, which run in step.
inline constexpr int kWarpThreads = 32;
inline constexpr int kMaxBlockThreads = 1024;

// A GPU as its kernels see it. Rates are those of one SM, a multiprocessor, and count a product and its
// addition as one.
struct GpuFacts {
  int sm = 0;            // compute capability, major times ten plus minor
  std::string_view part; // the part that stands for it
  int sms = 0;
  int warps_per_sm = 0, blocks_per_sm = 0; // at the same time
  int64_t registers_per_sm = 65536;        // each has 32 bits
  int registers_per_thread = 255;
  int64_t shared_bytes_per_sm = 0, shared_bytes_per_block = 0;
  int fma_per_cycle = 0; // f32
  // Matrix instructions; 0: there are none.
  int tf32_per_cycle = 0, half_per_cycle = 0, bytes_per_cycle = 0;
  double gigahertz = 0;
  int64_t l2_bytes = 0;
  double memory_gigabytes_per_second = 0;
  double launch_microseconds = 2; // from the end of one kernel to the start of the next
  double barrier_cycles = 30;     // in which the warps of a block wait for each other
};

// A machine: what every one has, the facts of its CPU, and those of its GPU if kernels run there: `cpu` then
// tells what one thread of it can do.
struct Machine {
  std::string triple;    // normalised, e.g. x86_64-unknown-linux-gnu
  std::string processor; // LLVM's name of the CPU, e.g. x86-64-v3, znver4, cortex-m4
  std::string features;  // LLVM's feature string, "+a,-b"; may be empty
  Arch arch = Arch::X86_64;
  int pointer_bits = 64;
  // Bytes to which buffers, weights and code are aligned: those of a cache line, which the widest vector does
  // not exceed; those of the widest element on microcontrollers, which have neither.
  int buffer_alignment = kCacheLineBytes;
  CpuFacts cpu;
  std::optional<GpuFacts> gpu;

  // Bits of include/firn/abi.h that the running CPU must have; the class constructor checks them.
  uint64_t required_cpu_features = 0;
  std::string display_name() const { return gpu ? "sm_" + std::to_string(gpu->sm) : processor; }
};

// `triple` empty: the host's. `cpu` empty: the default of the architecture (x86-64-v3, armv8-a generic, ...);
// "native": the host's cpu with its features; armv8-a, armv8.2-a, armv9-a, ...: any of that architecture, on
// AArch64 where no triple says otherwise. Features may follow: "x86-64-v3+avxvnni". `features`: further ones
// of LLVM, "+f16c,-fma". Unknown names are usage errors that list choices.
Expected<Machine> find_target(std::string_view triple, std::string_view cpu, std::string_view features);

// The machine with vectors as long as those of `widest`, of the same architecture and with wider registers or
// equal ones.
Machine with_vectors_of(Machine machine, const Machine& widest);

} // namespace firn
