// See strict_floats.h.
#include "compiler/target/strict_floats.h"

namespace firn {

bool vectors_flush_subnormals(const Machine& machine) {
  return machine.arch == Arch::Arm && machine.cpu.vector_bits > 0;
}

// Cores with MVE have the DSP extension and 32 registers of f32 as well.
Machine with_strict_floats(Machine machine) {
  if (!vectors_flush_subnormals(machine)) return machine;
  machine.cpu.vector_bits = 0;
  machine.cpu.vector_element_bits = 64;
  machine.cpu.vector_registers = 32;
  machine.cpu.has_masked_memory = machine.cpu.has_scalar_operands = false;
  machine.cpu.reducing_dot_bits = 0;
  machine.cpu.dot2_bits = 32;
  return machine;
}

} // namespace firn
