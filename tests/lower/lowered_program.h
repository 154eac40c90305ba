// Programs in .hlo text, lowered, compiled and run in this process on random inputs, against the evaluator.
// An access outside of a buffer, input or output fails the test: each lies between guard pages.
#pragma once

#include "compiler/graph/hlo_text.h"
#include "compiler/lower/lower.h"
#include "tests/lower/guarded_block.h"

#include <map>
#include <string>
#include <vector>

namespace firn::test {

struct Range {
  double low, high;
};

struct LoweredOptions {
  double tolerance = 1e-6;                  // times the largest expected magnitude; 0: bitwise
  std::map<std::string, Range> ranges = {}; // by name of the input; others: [-2, 2], integers in [-5, 5]
  // "CPU", "CPU FEATURES", or "CPU in CPU": code for the first in an object that has code for the second,
  // which is wider, as well. Objects for another architecture than the host's run in an emulator, without
  // guard pages, or not at all if there is none.
  std::vector<std::string> cpus = {"x86-64", "x86-64-v3", "native", "x86-64-v3 in x86-64-v4"};
  Placement placement = Placement::AtEnd; // place of every buffer between guard pages
  bool optimize_size = false;
  firn::Math math = firn::Math::Default;
  // The values of a module's symbols by name, for one run after the other. Inputs and outputs end where the
  // values have them end.
  std::vector<std::map<std::string, int64_t>> extents = {};
  int threads = 1; // kernels are cut into items for so many, and tasks run backwards
};
// All tables of CPUs whose code this machine runs.
std::vector<std::string> runnable_cpus();

// The program after lowering, verified and planned; fails the test if that fails.
kernel::Program lower_text(const std::string& text, const std::string& cpu,
                           firn::Winograd winograd = firn::Winograd::All);
kernel::Program lower_program(const Module& module, const std::string& cpu);
// `parameters`: "%x: f32[3]"; `body`: instructions whose last result is named %r; `type`: of %r.
void expect_lowered(const std::string& parameters, const std::string& body, const std::string& type,
                    const LoweredOptions& options = {});
// A whole module; constants too large for text need it as it is.
// With states (results that alias parameters) several runs are compared, each from what the last one left.
void expect_lowered_module(const std::string& text, const LoweredOptions& options = {});
void expect_lowered_module(const Module& module, const LoweredOptions& options = {});
// How many ops of a kind the block holds, those of blocks inside it too.
int64_t count_ops(const kernel::Block& block, kernel::OpKind kind);
// "constant [...]" with that many elements in [-1, 1].
std::string random_constant(int64_t count, unsigned seed);
// The message of the diagnostic with which lowering is refused.
std::string lowering_error(const std::string& text, const std::string& cpu = "x86-64-v3");

} // namespace firn::test
