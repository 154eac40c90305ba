// Graphs in text form as objects that run on strings, each of which ends at a page that may not be touched,
// or begins behind one.
#pragma once

#include "compiler/driver/compile.h"

#include <functional>

namespace firn::test {

using Literals = std::vector<LiteralRef>;

struct TextOptions {
  std::vector<std::string> cpus = {"x86-64", "x86-64-v3"}; // on x86-64; else the machine's own
  int64_t text_bytes = 4096;
  std::vector<onnx::DimRange> ranges = {};
};

LiteralRef strings(std::vector<int64_t> dims, std::vector<std::string> values);

// Runs @main of a module in the evaluator and as objects for all CPUs, at -O3 and -Os; the results must be
// equal, and the inputs survive.
void expect_like_evaluator(const std::string& module, const Literals& inputs,
                           const TextOptions& options = {});
// The message with which a run of the object ends; empty: it does not fail.
std::string run_error(const std::string& module, const Literals& inputs, const TextOptions& options = {});
// Runs one object several times, and returns the message of each run.
std::vector<std::string> run_errors(const std::string& module, const std::vector<Literals>& runs,
                                    const TextOptions& options = {});
// The message with which the compilation ends.
std::string compile_error(const std::string& module);

} // namespace firn::test
