// The table of CPUs: what LLVM's feature lists do not tell, which is caches, pipes and the usual triple.
#pragma once

#include "compiler/target/machine.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace firn {

struct CpuRow {
  std::string_view name; // LLVM's
  Arch arch;
  std::string_view triple;    // the one a bare -mcpu means on a host of another architecture
  int vector_bits;            // widest vector worth using; 0: scalar code only
  int fma_latency, fma_pipes; // for FMAs of such vectors
  int64_t l1_kib, l2_kib, l3_kib;
  double l2_bytes_per_cycle, l3_bytes_per_cycle, memory_bytes_per_cycle;
  int memory_streams = 0; // see Machine
  // The instruction for pairs of bf16 takes longer than FMAs of the f32 that they widen to.
  bool slow_bf16_pairs = false;
  double loads_per_cycle = 2; // loads of vectors
};
std::span<const CpuRow> cpu_table();
// The row of that name, or null.
const CpuRow* find_cpu_row(std::string_view name, Arch arch);

// A CPU feature by LLVM's name and its bit in Machine::required_cpu_features. The numbers are those of
// include/firn/cpu_features.h, which this folder does not include; a test compares them.
struct CpuFeature {
  std::string_view name;
  int bit;
};
std::span<const CpuFeature> cpu_features(Arch arch);

// x86 features that tell a CPU better than its model number, which virtual machines hide or change: the
// oldest CPU that has each, the newest first.
struct TellingFeature {
  std::string_view feature, cpu;
};
std::span<const TellingFeature> telling_features();

// Features worth naming in -mattr, by what they make faster or smaller.
struct NamedFeatures {
  std::string_view architecture;              // the prefix of its triples
  std::string_view triple;                    // one with these features
  std::span<const std::string_view> features; // "+a" or "-a"
};
std::span<const NamedFeatures> named_features();

} // namespace firn
