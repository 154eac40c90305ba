// The machine that code is made for, and whether this one can run it.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Names of targets, CPUs and features that are not known are usage errors that list choices.
Result check_target(const CompileOptions& options);
// A usage error if code for the target of `options` cannot run on this machine, with what it lacks.
Result check_runs_here(const CompileOptions& options);
// Says what `host` lacks to run code for `target`; empty if nothing.
std::string lacks_for(const Machine& target, const Machine& host);
// The CPU's name for messages, "x86-64-v3", with how to get another if that is the default.
std::string cpu_note(const CompileOptions& options);

} // namespace firn::driver
