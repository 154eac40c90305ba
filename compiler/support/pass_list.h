// Running lists of passes: what passes over graphs and passes over kernels have in common.
#pragma once

#include "compiler/support/diagnostic.h"

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace firn {

// How many changes passes may make: to bisect.
struct RewriteLimit {
  int rewrite_limit = -1;       // -1: none; else stop after so many
  int* rewrites_left = nullptr; // set by run_pass_list when there is a limit: what is left of it

  // Asked before every rewrite: whether the limit allows one more. Counts it.
  bool take_rewrite() const;
};

// How a pass ends a run: with what a model asks for and Firn does not do.
struct PassRefusal {
  std::optional<Diagnostic>* refused = nullptr; // set by run_pass_list
  void refuse(Diagnostic reason) const;         // the first reason counts
};

struct PassTiming {
  std::string name;
  double seconds;
  bool changed;
};

// One pass over units of a level of the compiler, such as the modules of the graph IR.
template <class Unit, class Options> struct PassRow {
  const char* name; // kebab-case, as on the command line
  const char* summary;
  bool (*run)(Unit& unit, const Options& options); // whether it changed anything
};

// The passes of a level, and what checks and shows its units.
template <class Unit, class Options> struct PassLevel {
  std::vector<PassRow<Unit, Options>> passes;
  Result (*verify)(const Unit& unit);
  std::string (*print)(const Unit& unit);
};

// One run of a list. Options derive from RewriteLimit and PassRefusal.
template <class Unit, class Options> struct PassListRun {
  Options options = Options();
  // Called after every pass with its name, and whether it changed the unit: dumps hang here.
  std::function<void(const std::string& name, bool changed, const Unit& unit)> after_pass = {};
  std::vector<PassTiming> timings = {};
  // Compares the printed unit around every pass that reports no change: a check for tests.
  bool check_reports = false;
};

// One step of a default list and the reason for its place.
struct PassStep {
  const char* passes; // comma-separated
  bool needs_target;
  const char* reason;
};
// The steps as one list, with or without those that need a target.
std::string join_steps(std::span<const PassStep> steps, bool for_target);

// The numbers of the passes that a comma-separated list names, empty words and "none" left out. An unknown
// name is a usage error.
Expected<std::vector<size_t>> parse_pass_list(const std::string& list, const std::vector<std::string>& known);

// Runs one pass, times it, and checks what it left behind.
template <class Unit, class Options>
Result run_listed_pass(Unit& unit, const PassLevel<Unit, Options>& level, const PassRow<Unit, Options>& pass,
                       const Options& options, PassListRun<Unit, Options>& run) {
  std::string before = run.check_reports ? level.print(unit) : std::string();
  auto start = std::chrono::steady_clock::now();
  bool changed = false;
  try {
    changed = pass.run(unit, options);
  } catch (const InternalFailure& failure) {
    throw InternalFailure(std::string("in pass ") + pass.name + ", " + failure.message());
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  run.timings.push_back({pass.name, elapsed.count(), changed});
  if (options.refused && *options.refused) return **options.refused;
  if (run.check_reports && !changed && level.print(unit) != before)
    return internal_error(std::string("pass ") + pass.name + " reports no change but made one");
  if (changed)
    if (Result valid = level.verify(unit); !valid)
      return internal_error(std::string("after pass ") + pass.name + ": " + valid.error().message);
  if (run.after_pass) run.after_pass(pass.name, changed, unit);
  return {};
}

// Runs the passes that `list` names, verifying after each that changed something. A broken unit is
// Fault::Internal naming the pass; what a pass refuses ends the run with its reason.
template <class Unit, class Options>
Result run_pass_list(Unit& unit, const PassLevel<Unit, Options>& level, const std::string& list,
                     PassListRun<Unit, Options>& run) {
  std::vector<std::string> known;
  for (const PassRow<Unit, Options>& pass : level.passes) known.push_back(pass.name);
  auto numbers = parse_pass_list(list, known);
  if (!numbers) return numbers.error();
  Options options = run.options;
  int rewrites_left = options.rewrite_limit;
  if (options.rewrite_limit >= 0) options.rewrites_left = &rewrites_left;
  std::optional<Diagnostic> refused;
  options.refused = &refused;
  for (size_t pass : *numbers)
    if (Result done = run_listed_pass(unit, level, level.passes[pass], options, run); !done) return done;
  return {};
}

} // namespace firn
