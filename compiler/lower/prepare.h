// @prepare: the function that makes the constants of a program, as its kernels read them, from the model's
// own.
#pragma once

#include "compiler/lower/lower.h"

#include <memory>

namespace firn::lower {

// Whether any constant is not, byte for byte, what its source is (kernel/passes/prepare_program.h), or its
// source is computed from tensors of the model that may change. If not, the model's own can be read in place.
bool needs_preparing(const kernel::Program& program);

// A module with the function @prepare: a parameter for every tensor of the model that the constants are made
// from, and a result for every constant that has bytes, in their order, flat. Constants that the compiler
// folded are computed as it did (graph/derivation.h), unless their values were used.
std::unique_ptr<Module> make_prepare_module(const kernel::Program& program);

// The tensors that the parameters stand for, in their order.
std::vector<kernel::ConstantSource> prepare_sources(const kernel::Program& program);

} // namespace firn::lower
