// The kernels whose machine code the gates watch: one contraction each, written as graph text, compiled for
// CPUs that need not be this machine's.
#pragma once

#include "compiler/lower/lower.h"
#include "tests/gates/assembly_loops.h"

#include <functional>

namespace firn::test {

// Elements from -0.5 to 0.5, the same ones every time.
LiteralRef random_literal(const std::vector<int64_t>& dims);

struct GateKernel {
  std::string name;
  std::function<std::unique_ptr<Module>(int block)> module; // with blocked layouts of that many channels
  int64_t columns = 0; // extent along lanes that register tiles divide; 0: the kernel has no such tile
};

// A module with attention of `heads` heads over `rows` positions each; `attributes` of the fusion, each
// behind ", ".
std::string attention_text(int64_t heads, int64_t rows, int64_t depth, const std::string& attributes);

// The assembly of a module in text form, as the cost model has it.
std::string assembly_of(const std::string& module, const Machine& target);

const std::vector<GateKernel>& gate_kernels();
const std::vector<std::string>& gate_cpus();

// The register tile that a kernel's plan promises.
struct PromisedTile {
  int rows = 0, vectors = 0, accumulator_splits = 1;
  int rest_vectors = 0; // vectors of the last column group; 0: it is a full one
};

struct GateCode {
  std::string algorithm;
  PromisedTile tile;               // rows is 0 without a register tile or FMAs
  std::vector<AssemblyLoop> loops; // innermost ones of the kernel, hot or not
};

// Compiles for `cpu` and picks the kernel with the most work. `schedule`, if not empty, overrules the cost
// model: "direct tile 4x2".
GateCode compile_gate_kernel(const GateKernel& kernel, const std::string& cpu,
                             const std::string& schedule = "");

} // namespace firn::test
