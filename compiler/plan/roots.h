// The instruction that a kernel is built around: a fusion's convolution, dot or window reduction, whose
// results the rest of the fusion turns, element by element, into what is stored.
#pragma once

#include "compiler/graph/module.h"

#include <optional>

namespace firn::plan {

struct KernelRoot {
  const Instruction* op = nullptr;
  // Outside the fusion, and constants if they are known as such; a pooling's second operand is inside.
  Value operands[2];
  Value scales = {}, row_scales = {}, row_starts = {}; // operands of a blocked dot, likewise
};

// The dot, blocked dot or convolution of an instruction: itself, or the root of a fusion with code per
// element behind it.
std::optional<KernelRoot> find_contraction(const Instruction& instruction);
// The window reduction of one operand, likewise.
std::optional<KernelRoot> find_pooling(const Instruction& instruction);

// The constant that a parameter of the surrounding fusions and composites stands for; any other value as it
// is.
Value constant_of(Value value);

// Whether the value and all its bytes are known at compile time.
bool is_packable_constant(Value value);

// Whether the instruction is a fusion whose members may have kernels of their own.
bool is_fusion_of_kernels(const Instruction& instruction);
// Whether the instructions inside have kernels, rather than the instruction: control flow, fusions of several
// kernels, and composites that are lowered as their bodies.
bool holds_kernels(const Instruction& instruction);
// Whether element loops can compute the instruction: every element of its results has code of its own.
bool has_element_form(const Instruction& instruction);
// Whether a fusion applies transcendental functions to its root's results.
bool has_long_epilogue(const Instruction& instruction);

} // namespace firn::plan
