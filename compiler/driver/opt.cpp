// Text in, passes, text out: how single passes are run, tested and bisected.
#include "compiler/driver/opt.h"

#include "compiler/driver/read_graph.h"
#include "compiler/graph/text.h"
#include "compiler/passes/pass.h"
#include "compiler/support/output_set.h"
#include "compiler/target/target_machine.h"

namespace firn::driver {

Expected<std::string> opt(const OptOptions& options) {
  auto graph = read_graph(options.input, options.weights);
  if (!graph) return graph.error();
  Module& module = *graph->module;
  if (options.verify_only) return print_module(module);

  PipelineRun run;
  TargetMachine target;
  bool for_target = !options.cpu.empty() || !options.triple.empty() || !options.features.empty();
  if (for_target) {
    auto found = find_target(options.triple, options.cpu, options.features);
    if (!found) return found.error();
    target = *found;
    run.options.target = &target;
  }
  run.options.optimize_size = options.optimize_size;
  run.options.strict_math = options.strict_math;
  run.options.rewrite_limit = options.rewrite_limit;
  std::string passes = options.passes == "default" ? default_pipeline(for_target) : options.passes;
  if (Result done = run_passes(module, passes, run); !done) return done.error();
  if (!options.weights_out.empty())
    if (Result written = write_file(options.weights_out, write_literals(module)); !written)
      return written.error();
  return print_module(module);
}

} // namespace firn::driver
