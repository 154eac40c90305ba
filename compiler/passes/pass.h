// Passes over the graph IR: one row in passes.def, one file, one documented function each.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/target_machine.h"

#include <functional>
#include <string>
#include <vector>

namespace firn {

struct PassOptions {
  const TargetMachine* target = nullptr; // null: target-independent passes only
  bool optimize_size = false;
  bool strict_math = false;
  int64_t fold_bytes_limit =
      64 << 20;           // constants larger than this are not made by folding unless inputs were as large
  int rewrite_limit = -1; // -1: none; else stop after so many rewrites, to bisect
  int* rewrites_left = nullptr; // set by run_passes when there is a limit: what is left of it

  // Asked before every rewrite: whether the limit allows one more. Counts it.
  bool take_rewrite() const {
    if (!rewrites_left) return true;
    if (*rewrites_left <= 0) return false;
    --*rewrites_left;
    return true;
  }
};

// Runs over the whole module and tells whether it changed anything.
using PassFunction = bool (*)(Module& module, const PassOptions& options);

struct PassInfo {
  const char* name; // kebab-case, as on the command line
  const char* summary;
  PassFunction run;
};
const std::vector<PassInfo>& all_passes();

struct PassTiming {
  std::string name;
  double seconds;
  bool changed;
};

struct PipelineRun {
  PassOptions options;
  // Called after every pass with its number, name, and whether it changed the module: dumps hang here.
  std::function<void(int number, const std::string& name, bool changed, const Module& module)> after_pass;
  std::vector<PassTiming> timings;
  // Compares the printed module around every pass that reports no change: a check for tests.
  bool check_reports = false;
};

// Runs the named passes ("fold-constants,eliminate-dead-code", "none"), verifying after each that changed
// something.
// An unknown name is a usage error; a broken module is Fault::Internal naming the pass.
Result run_passes(Module& module, const std::string& names, PipelineRun& run);
// The list that `firn compile` runs, as such a string, for a target-independent or a compiling pipeline.
std::string default_pipeline(bool for_target);

} // namespace firn
