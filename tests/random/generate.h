// Draws a graph from a seed, and the setting that it is compiled and run in.
#pragma once

#include "compiler/driver/compile.h"
#include "tests/random/test_graph.h"

namespace firn::test {

// One CPU and one set of options, and where the memory of a run lies.
struct Setting {
  std::string cpu;
  std::vector<std::string> cpus; // instead of one: several in one object, the code of each is run
  firn::OptLevel opt_level = firn::OptLevel::O3;
  firn::Math math = firn::Math::Default;
  driver::Weights weights = driver::Weights::Embed;
  bool no_winograd = false;
  bool check_indices = false;
  int threads = 1;           // the object shares every kernel among so many at most
  bool external = false;     // inputs and outputs have memory of their own, not the arena's
  bool guard_before = false; // memory that must not be touched lies right before, not after, each block
  int specializations = -1;  // the run for whose dims, if any vary, the object has code of its own; -1: none
  std::string to_string() const; // flags of `firn verify`
};

struct TestCase {
  TestGraph graph;
  Setting setting;
  // The dims of the run setting.specializations, for which the object has code of its own; empty: none vary.
  std::map<std::string, int64_t> specializations() const;
  std::string flags() const; // flags of `firn verify` for graph and setting
  std::string refusal;       // why the importer or the evaluator refused a node that ought to be valid
};

TestCase generate_case(uint64_t seed);
// The setting alone, without generating the graph.
Setting draw_setting(uint64_t seed);

// CPUs of the table that this machine can run, "native" among them, and kTileCpu if its vectors are.
const std::vector<std::string>& runnable_cpus();
// A CPU with AMX, whose instructions are interpreted on machines without it.
inline constexpr const char* kTileCpu = "x86-64-v4+amx-tile+amx-int8+amx-bf16";
// From here on all settings are for this one.
void draw_only(const std::string& cpu);

} // namespace firn::test
