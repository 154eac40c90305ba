// Texts that `firn compile` prints for people: the summary, --time-passes, --report.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// The lines of api "firn compile": signature, files with sizes, time and memory.
std::string summary_text(const Compilation& compilation);
// One row per phase with seconds and peak memory.
std::string timing_text(const Compilation& compilation);
// Sizes, arena against its lower bound, kernels.
std::string report_text(const Compilation& compilation);
// The second part of --explain: every step's kernel with the items that threads may share, the tasks they are
// shared by, scratch per task, and how the constants that it reads are packed. Lines are comments of the
// schedule database.
std::string kernels_text(const Compilation& compilation);
// The plans of kernels as lines of a schedule database, with what was weighed; `all`: with all candidates of
// each kernel too.
std::string plans_text(const CompileOptions& options, const Compilation& compilation, bool all);
// The manifest, as written to NAME.json.
std::string manifest_text(const Compilation& compilation);
// "64K", "1M", "2G" (powers of 1024) or plain bytes; nothing for other text.
std::optional<int64_t> parse_size(const std::string& text);
// The features that are worth naming in -mattr, a line per architecture.
std::string feature_help();

} // namespace firn::driver
