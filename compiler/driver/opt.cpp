// Text in, passes, text out: how single passes are run, tested and bisected.
#include "compiler/driver/opt.h"

#include "compiler/driver/guarded.h"
#include "compiler/driver/read_graph.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/plan_function.h"
#include "compiler/plan/verify.h"
#include "compiler/support/output_set.h"
#include "compiler/target/gpu_table.h"

namespace firn::driver {

namespace {

// The target of the options, if they name one.
Expected<std::optional<Machine>> target_of(const OptOptions& options) {
  if (!options.gpu.empty()) {
    auto gpu = find_gpu(options.gpu);
    if (!gpu) return gpu.error();
    return std::optional(*gpu);
  }
  if (options.cpu.empty() && options.triple.empty() && options.features.empty())
    return std::optional<Machine>();
  auto found = find_target(options.triple, options.cpu, options.features);
  if (!found) return found.error();
  return std::optional(*found);
}

// The kernels of @main before any pass over kernels, by the plans in its text and the cost model's for the
// rest.
Expected<std::string> print_lowered(const Module& module, const Machine& target, const Goals& goals) {
  const Function& main = module.main();
  auto plans = plan::plan_function(main, {target, goals});
  if (!plans) return plans.error();
  if (Result valid = plan::verify(main, *plans); !valid) return valid.error();
  auto program = lower::lower_module(module, main, *plans, {target, goals});
  if (!program) return program.error();
  return kernel::print_program(*program);
}

Expected<std::string> opt_graph(const OptOptions& options, const std::string& text) {
  auto graph = parse_graph(options.input, text, options.weights_in);
  if (!graph) return graph.error();
  Module& module = *graph->module;
  if (options.verify_only) return print_module(module);

  auto target = target_of(options);
  if (!target) return target.error();
  if (options.lower && !*target)
    return usage_error("--lower makes kernels for a target: name it with --target or --mcpu");
  PipelineRun run{PassOptions(options.goals, *target ? &**target : nullptr)};
  run.options.rewrite_limit = options.rewrite_limit;
  run.options.memory_budget = options.memory_budget;
  std::string passes =
      options.passes == "default" ? default_pipeline(module, run.options.target != nullptr) : options.passes;
  if (Result done = run_passes(module, passes, run); !done) return done.error();
  if (!options.weights_out.empty())
    if (Result written = write_file(options.weights_out, write_literals(module)); !written)
      return written.error();
  return options.lower ? print_lowered(module, **target, options.goals) : print_module(module);
}

Expected<std::string> opt_kernels(const OptOptions& options, const std::string& text) {
  for (auto [name, is_given] : {std::pair{"--weights-in", !options.weights_in.empty()},
                                {"--weights-out", !options.weights_out.empty()},
                                {"--memory-budget", options.memory_budget.has_value()},
                                {"--lower", options.lower},
                                {"--math", options.goals.strict_math()}})
    if (is_given) return usage_error(std::string(name) + " goes with a graph in text form, not with kernels");
  auto program = parse_kernels(options.input, text);
  if (!program) return program.error();
  if (options.verify_only) return kernel::print_program(*program);

  auto target = target_of(options);
  if (!target) return target.error();
  kernel::KernelPipelineRun run{kernel::KernelPassOptions(options.goals, *target ? &**target : nullptr)};
  run.options.rewrite_limit = options.rewrite_limit;
  std::string passes = options.passes == "default"
                           ? kernel::default_kernel_pipeline(run.options.target != nullptr)
                           : options.passes;
  if (Result done = kernel::run_kernel_passes(*program, passes, run); !done) return done.error();
  return kernel::print_program(*program);
}

} // namespace

static Expected<std::string> run_listed(const OptOptions& options) {
  auto text = read_text(options.input);
  if (!text) return text.error();
  return is_kernel_text(options.input, *text) ? opt_kernels(options, *text) : opt_graph(options, *text);
}

Expected<std::string> opt(const OptOptions& options) {
  return guarded(options.input, [&] { return run_listed(options); });
}

} // namespace firn::driver
