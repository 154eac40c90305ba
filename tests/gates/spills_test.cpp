// Checks every loop of every kernel of the gate networks: innermost loops spill no registers.
#include "tests/gates/assembly_loops.h"
#include "tests/gates/gate_kernels.h"
#include "tests/gates/gate_networks.h"

#include <catch2/catch.hpp>

#include <sstream>

using namespace firn::test;

namespace {

// Whether the CPU has sixteen vector registers: unrolling some steps of a reduction spills a few sums there,
// but a loop around every step costs more.
bool has_few_registers(const std::string& cpu) {
  return cpu == "x86-64" || cpu == "x86-64-v3";
}

// Spills that the blocks of a loop may have: none with 32 registers. With 16 registers innermost loops may
// spill in reductions, and the loops right around them, once per tile, as much as the table says.
int spills_allowed(const AssemblyLoop& loop, const std::string& cpu) {
  if (!has_few_registers(cpu)) return 0;
  if (loop.height == 0) return loop.broadcasts > 0 ? loop.fmas : 0;
  struct Allowance {
    const char* kind;
    int spills;
  };
  constexpr Allowance kAllowances[] = {
      {"convolution", 6}, // a line's mask or an address, beside sums that take all registers
      {"depthwise", 14},  // taps that stay for all tiles, and sums of lines without neighbours
      {"dot", 10},        // up to four vectors of a long epilogue side by side
      {"softmax", 5},     // the rest of a row behind its vectors
  };
  for (const Allowance& allowance : kAllowances)
    if (loop.function.rfind(std::string("firn.k.") + allowance.kind, 0) == 0) return allowance.spills;
  return 0;
}

// The loops of kernels that spill more than they may, one line each; empty if none does. Loops further out
// than those around innermost loops run too rarely for spills to matter.
std::string spilling_loops(const std::string& assembly, const std::string& cpu) {
  std::ostringstream text;
  for (const AssemblyLoop& loop : loops_of(assembly)) {
    if (loop.function.rfind("firn.k.", 0) != 0 || loop.height > 1) continue;
    int scalar = loop.height == 0 ? loop.scalar_spills : 0;
    if (loop.spills > spills_allowed(loop, cpu) || scalar > 0)
      text << loop.to_string() << ", height " << loop.height << ": " << loop.first_spill << "\n";
  }
  return text.str();
}

} // namespace

TEST_CASE("no loop of any kernel spills", "[gates]") {
  for (const GateNetwork& network : gate_networks())
    for (const std::string& cpu : gate_cpus()) {
      DYNAMIC_SECTION(network.name << " on " << cpu) {
        CHECK(spilling_loops(compile_network(network, cpu), cpu) == "");
      }
    }
}
