// The whole flow of the compiler, level by level: the map of Firn.
#include "compiler/driver/compile.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/phase_timer.h"
#include "compiler/driver/write_outputs.h"
#include "compiler/graph/text.h"
#include "compiler/memory/early_weights.h"
#include "compiler/memory/plan.h"
#include "compiler/memory/prepare.h"
#include "compiler/passes/pass.h"
#include "compiler/support/output_set.h"

#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

// Runs the passes, dumping the graph after each that changed it.
Result optimise(Compilation& c, const CompileOptions& options) {
  PipelineRun run;
  run.options.target = &c.target;
  run.options.optimize_size = options.opt_level >= codegen::OptLevel::Os;
  run.options.strict_math = options.math == lower::Math::Strict;
  run.options.rewrite_limit = options.rewrite_limit;
  Result dumped;
  if (!options.dump_folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.dump_folder, error);
    run.after_pass = [&](int number, const std::string& name, bool changed, const Module& module) {
      if (!changed || !dumped) return;
      char prefix[16];
      std::snprintf(prefix, sizeof prefix, "%04d.", number);
      dumped = write_file(options.dump_folder + "/" + prefix + name + ".hlo", print_module(module));
    };
  }
  std::string passes = options.passes == "default" ? default_pipeline(/*for_target=*/true) : options.passes;
  Result done = run_passes(*c.module, passes, run);
  for (const PassTiming& pass : run.timings)
    if (pass.seconds >= 0.001) c.phases.push_back({"  " + pass.name, pass.seconds, 0});
  return done ? dumped : done;
}

// Every level up to the planned program. False with the reason in `diagnostics`.
bool compile_program(const CompileOptions& options, Compilation& c, PhaseTimer& timer,
                     DiagnosticList& diagnostics) {
  auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), false; };
  auto target = find_target(options.triple, options.cpu, options.features);
  if (!target) return diagnostics.add(target.error()), false;
  c.target = *target;

  timer.begin("import");
  auto imported = import_model(options, diagnostics);
  if (!imported) return false;
  c.facts = std::move(imported->facts);
  c.module = std::move(imported->module);
  c.initial_states = std::move(imported->initial_states);
  if (Result known = check_names(options, c.module->main()); !known) return failed(known.error());

  timer.begin("passes");
  if (Result done = optimise(c, options); !done) return failed(done.error());
  if (options.emit == Emit::Graph) return true;

  timer.begin("lower");
  lower::Options lowering{c.target, options.opt_level >= codegen::OptLevel::Os, options.math,
                          options.winograd};
  lowering.explanations = &c.explanations;
  lowering.initial_states = &c.initial_states;
  std::optional<plan::ScheduleDatabase> schedules;
  if (!options.schedule_db.empty()) {
    auto read = plan::ScheduleDatabase::read(options.schedule_db);
    if (!read) return diagnostics.add(read.error()), false;
    schedules = std::move(*read);
    lowering.schedules = &*schedules;
  }
  auto program = lower::lower_module(*c.module, lowering);
  if (!program) return failed(program.error());
  c.program = std::move(*program);

  timer.begin("plan memory");
  memory::place_constants(c.program);
  c.peak_buffers = memory::plan_arena(c.program, plan_options(options, *c.module));
  kernel::merge_equal_kernels(c.program);
  if (options.opt_level < codegen::OptLevel::Os) memory::prefetch_weights(c.program, c.target);
  if (Result valid = kernel::verify(c.program); !valid) return failed(valid.error());
  if (options.winograd == lower::Winograd::Init && memory::has_raw_forms(c.program))
    c.prepare = memory::make_prepare_program(c.program, c.target);
  if (Result described = describe(options, c); !described) return failed(described.error());
  c.codegen = codegen_options(options, c);
  return true;
}

} // namespace

std::unique_ptr<Compilation> compile_in_memory(const CompileOptions& options, DiagnosticList& diagnostics) {
  auto compilation = std::make_unique<Compilation>();
  PhaseTimer timer(*compilation, options);
  if (!compile_program(options, *compilation, timer, diagnostics)) return nullptr;
  timer.end();
  return compilation;
}

std::unique_ptr<Compilation> compile(const CompileOptions& options, DiagnosticList& diagnostics) {
  auto compilation = std::make_unique<Compilation>();
  PhaseTimer timer(*compilation, options);
  if (!compile_program(options, *compilation, timer, diagnostics)) return nullptr;
  timer.begin("generate code");
  if (Result written = write_outputs(options, *compilation); !written) {
    diagnostics.add(written.error());
    return nullptr;
  }
  timer.end();
  return compilation;
}

} // namespace firn::driver
