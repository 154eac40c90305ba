// Writes the main tile loop of every gate kernel and CPU as FOLDER/NAME.CPU.s, for tools/record_mca.sh: the
// loop with the most FMAs, without its jump, so that it can be analysed as straight code that repeats.
#define CATCH_CONFIG_RUNNER
#include "tests/gates/gate_kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>

using namespace firn::test;

static void write_loops(const std::string& folder) {
  for (const GateKernel& kernel : gate_kernels())
    for (const std::string& cpu : gate_cpus()) {
      GateCode code = compile_gate_kernel(kernel, cpu);
      if (code.loops.empty()) continue;
      auto weight = [](const AssemblyLoop& loop) { return std::pair(loop.broadcasts > 0, loop.fmas); };
      const AssemblyLoop& main =
          *std::max_element(code.loops.begin(), code.loops.end(),
                            [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
      std::string name = kernel.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      std::ofstream file(folder + "/" + name + "." + cpu + ".s");
      file << "# " << main.fmas << " " << code.algorithm << "\n";
      for (size_t i = 0; i + 1 < main.lines.size(); ++i)
        if (main.lines[i][0] != 'j') file << main.lines[i] << "\n";
    }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_gate_loops FOLDER\n");
    return 2;
  }
  write_loops(argv[1]);
  return 0;
}
