// The innermost loops of x86-64 assembly as code generation prints it (AT&T syntax), and what the
// instructions of each do: what tells good code from bad without running it.
#pragma once

#include <string>
#include <vector>

namespace firn::test {

// From a label to the jump back to it, no other loop between.
struct AssemblyLoop {
  std::string function, label;
  std::vector<std::string> lines; // instructions, the jump included
  int fmas = 0;                   // products and sums of their own make one
  int accumulators = 0;           // registers that they write
  int loads = 0;                  // vector instructions that read memory, FMAs included; prefetches are none
  int broadcasts = 0;             // those of them that spread one element of a tensor over a vector
  int scalars = 0;                // instructions without vectors, prefetches apart: addresses and control
  int spills = 0;                 // of vectors, and reloads of them
  int stack_reads =
      0; // reloads of what the loop does not spill: what never changes in it, loads like any other

  // Where speed is decided: long enough to be a tile's.
  bool is_hot() const { return fmas >= 8; }
  // "firn.k.dot_0 .LBB0_2: 56 FMAs into 28 accumulators, 32 loads, 0 spills, 0 stack reads"
  std::string to_string() const;
};

std::vector<AssemblyLoop> innermost_loops(const std::string& assembly);

} // namespace firn::test
