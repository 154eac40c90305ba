// The instruction that a kernel is built around: a fusion's convolution, dot or window reduction, whose
// results the rest of the fusion turns, element by element, into what is stored.
#pragma once

#include "compiler/graph/module.h"

#include <optional>

namespace firn::plan {

struct KernelRoot {
  const Instruction* op = nullptr;
  // Outside of the fusion, and constants where they are known as such; a pooling's second one is within.
  Value operands[2];
  Value scales = {}, row_scales = {}, row_starts = {}; // of a blocked dot, likewise
};

// The dot, blocked dot or convolution of an instruction: itself, or that of a fusion with code per element
// behind it.
std::optional<KernelRoot> find_contraction(const Instruction& instruction);
// Likewise a window reduction of one operand.
std::optional<KernelRoot> find_pooling(const Instruction& instruction);

// What a parameter of the fusions and composites around an instruction is given, if that is a constant; other
// values as they are.
Value constant_of(Value value);

// Whether the value is known at compile time, bytes and all.
bool is_packable_constant(Value value);

// Whether the instruction is a fusion whose members may have kernels of their own.
bool is_fusion_of_kernels(const Instruction& instruction);
// Whether kernels come from the instructions within, rather than from the instruction: of control flow, of
// fusions of several kernels, and of composites that are lowered as their bodies.
bool holds_kernels(const Instruction& instruction);
// Whether element loops can compute the instruction: every element of its results is code of its own.
bool has_element_form(const Instruction& instruction);
// Whether a fusion computes transcendental functions of its root's results.
bool has_long_epilogue(const Instruction& instruction);

} // namespace firn::plan
