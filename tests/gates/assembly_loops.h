// The loops of x86-64 assembly as code generation prints it (AT&T syntax, with comments on loops and spills),
// and counts of their instructions, which tell good code from bad without running it.
#pragma once

#include <string>
#include <vector>

namespace firn::test {

// The blocks of a loop that are in no loop within it.
struct AssemblyLoop {
  std::string function, label;
  int height = 0;                 // loops within each other inside it; 0: an innermost one
  std::vector<std::string> lines; // instructions, the jump included
  int fmas = 0;                   // a product and a sum in two instructions count as one
  int accumulators = 0;           // registers that they write
  int loads = 0;                  // vector instructions that read memory, FMAs included; prefetches are none
  int broadcasts = 0;             // loads that spread an element of a tensor, or a few, over a vector
  int scalars = 0;                // instructions without vectors, prefetches apart: addresses and control
  int spills = 0;                 // spills of vectors to the stack, and reloads of them
  int scalar_spills = 0;          // spills and reloads of other registers
  // Reloads of vectors that these blocks do not spill: loads of values that do not change in the loop.
  int stack_reads = 0;
  std::string first_spill; // the instruction

  // Whether the loop is long enough to be a tile's, so that it decides speed.
  bool is_hot() const { return fmas >= 8; }
  // "firn.k.dot_0 .LBB0_2: 56 FMAs into 28 accumulators, 32 loads, 0 spills, 0 stack reads"
  std::string to_string() const;
};

std::vector<AssemblyLoop> loops_of(const std::string& assembly);
std::vector<AssemblyLoop> innermost_loops(const std::string& assembly);

} // namespace firn::test
