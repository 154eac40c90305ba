// The whole flow of the compiler, level by level: the map of Firn.
#include "compiler/driver/compile.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/phase_timer.h"
#include "compiler/driver/specializations.h"
#include "compiler/driver/variants.h"
#include "compiler/driver/write_outputs.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/kernel/passes/prepare_program.h"
#include "compiler/lower/prepare.h"
#include "compiler/memory/arena.h"
#include "compiler/passes/pass.h"
#include "compiler/support/output_set.h"
#include "compiler/target/assumed_version.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

// Writes the text of a module or program after every pass that changed it into the folder of --dump-passes.
class Dumps {
public:
  explicit Dumps(const CompileOptions& options) : folder_(options.dump_folder) {
    std::error_code error;
    if (!folder_.empty()) std::filesystem::create_directories(folder_, error);
  }
  template <class Unit> auto writer(const char* extension, std::string (*print)(const Unit&)) {
    return [this, extension, print](const std::string& name, bool changed, const Unit& unit) {
      ++number_;
      if (folder_.empty() || !changed || !result) return;
      char prefix[16];
      std::snprintf(prefix, sizeof prefix, "%04d.", number_);
      result = write_file(folder_ + "/" + prefix + name + extension, print(unit));
    };
  }
  Result result;

private:
  const std::string& folder_;
  int number_ = 0; // of the last pass
};

void add_timings(Compilation& c, const std::vector<PassTiming>& timings) {
  for (const PassTiming& pass : timings)
    if (pass.seconds >= 0.001) c.phases.push_back({"  " + pass.name, pass.seconds, 0});
}

// Weights that are prepared where the program runs have the same filters as embedded ones.
plan::Winograd winograd_of(const CompileOptions& options) {
  return options.no_winograd ? plan::Winograd::Off : plan::Winograd::WithinBytes;
}

Result run_graph_passes(Compilation& c, const CompileOptions& options,
                        const plan::ScheduleDatabase* schedules, Dumps& dumps) {
  PipelineRun run;
  run.options.winograd = winograd_of(options);
  run.options.schedules = schedules;
  run.options.explanations = &c.explanations;
  run.options.target = &c.target;
  run.options.optimize_size = options.opt_level >= codegen::OptLevel::Os;
  run.options.strict_math = options.math == lower::Math::Strict;
  run.options.bf16_products = options.precision == Precision::BF16;
  run.options.weight_type = options.weight_type;
  run.options.threads = options.threads;
  run.options.rewrite_limit = options.rewrite_limit;
  run.after_pass = dumps.writer(".hlo", print_module);
  std::string passes = options.passes == "default" ? default_pipeline(/*for_target=*/true) : options.passes;
  Result done = run_passes(*c.module, passes, run);
  add_timings(c, run.timings);
  return done ? dumps.result : done;
}

Result run_kernel_passes(Compilation& c, const CompileOptions& options, const TargetInfo& baseline,
                         const std::string& passes, Dumps& dumps) {
  kernel::KernelPipelineRun run;
  run.options.target = &c.target;
  run.options.baseline = &baseline;
  run.options.threads = options.threads;
  run.options.share_all = options.share_all;
  run.options.optimize_size = options.opt_level >= codegen::OptLevel::Os;
  run.after_pass = dumps.writer(".kir", kernel::print_program);
  Result done = kernel::run_kernel_passes(c.program, passes, run);
  add_timings(c, run.timings);
  return done ? dumps.result : done;
}

// The program that makes the constants of c.program, which have their places.
Result lower_prepare(Compilation& c, const lower::LoweringOptions& options) {
  lower::LoweringOptions serial = options;                               // it runs once
  if (!c.variants.empty()) serial.target = c.variants.back().cpu.target; // on any of the CPUs
  serial.explanations = nullptr;
  serial.plans = nullptr; // those of another module
  serial.schedules = nullptr;
  serial.threads = 1;
  serial.check_indices = false; // Firn's own are in range
  PipelineRun passes;
  passes.options.target = &serial.target;
  passes.options.winograd = plan::Winograd::Off;
  if (Result done = run_passes(*c.prepare_module, kPreparingPasses, passes); !done) return done;
  auto prepare = lower::lower_module(*c.prepare_module, serial);
  if (!prepare) return prepare.error();
  const Function& function = c.prepare_module->main();
  memory::plan_arena(*prepare, {std::vector<bool>(function.body().parameters().size(), true),
                                std::vector<bool>(function.body().results().size(), true)});
  kernel::bind_prepare(*prepare, lower::prepare_sources(c.program), c.program);
  memory::place_constants(*prepare);
  c.prepare = std::move(*prepare);
  // Nothing is gained by prefetching.
  kernel::KernelPipelineRun run;
  return kernel::run_kernel_passes(*c.prepare, "merge-equal-kernels", run);
}

// Every level up to the planned program. False with the reason in `diagnostics`.
bool compile_program(const CompileOptions& options, Compilation& c, PhaseTimer& timer,
                     DiagnosticList& diagnostics) {
  auto failed = [&](const Diagnostic& error) { return diagnostics.add(error), false; };
  auto cpus = targets_of(options);
  if (!cpus) return failed(cpus.error());
  c.target = (*cpus)[0].target;
  c.cpu_name = (*cpus)[0].name;

  timer.begin("import");
  auto imported = import_model(options, diagnostics);
  if (!imported) return false;
  c.facts = std::move(imported->facts);
  c.module = std::move(imported->module);
  c.initial_states = std::move(imported->initial_states);
  c.dims = std::move(imported->dims);
  if (Result known = check_names(options, c.module->main(), c.dims); !known) return failed(known.error());

  if (std::string version = assumed_version(options.triple, c.cpu_name); !version.empty())
    c.facts.warnings.push_back("the target names no version of its system: the object is for " + version +
                               " and later");

  Dumps dumps(options);
  timer.begin("passes");
  std::optional<plan::ScheduleDatabase> database;
  if (!options.schedule_db.empty()) {
    auto read = plan::ScheduleDatabase::read(options.schedule_db);
    if (!read) return failed(read.error());
    database = std::move(*read);
  }
  const plan::ScheduleDatabase* schedules = database ? &*database : nullptr;
  if (Result done = run_graph_passes(c, options, schedules, dumps); !done) return failed(done.error());
  if (options.emit == Emit::Graph) return true;

  timer.begin("lower");
  lower::LoweringOptions lowering{c.target, options.opt_level >= codegen::OptLevel::Os, options.math,
                                  winograd_of(options)};
  lowering.explanations = &c.explanations;
  lowering.initial_states = &c.initial_states;
  lowering.schedules = schedules;
  lowering.threads = options.threads;
  lowering.check_indices = options.check_indices;
  lowering.text_bytes = options.text_bytes;
  const TargetInfo baseline = cpus->back().target;
  lowering.baseline = &baseline;
  auto plans = plan_cpus(c, lowering, *cpus);
  if (!plans) return failed(plans.error());
  lowering.plans = plans->data();
  auto program = lower::lower_module(*c.module, lowering);
  if (!program) return failed(program.error());
  c.program = std::move(*program);

  if (options.threads > 1)
    if (Result done = run_kernel_passes(c, options, baseline, kernel::kSharingPasses, dumps); !done)
      return failed(done.error());

  timer.begin("plan memory");
  memory::place_constants(c.program);
  c.peak_buffers = memory::plan_arena(c.program, plan_options(options, *c.module));
  if (Result valid = kernel::verify(c.program); !valid) return failed(valid.error());
  timer.begin("kernel passes");
  std::string kernel_passes = kernel::default_kernel_pipeline(/*for_target=*/true);
  if (Result done = run_kernel_passes(c, options, baseline, kernel_passes, dumps); !done)
    return failed(done.error());
  for (size_t i = 1; i < cpus->size(); ++i)
    if (Result added = add_variant(options, lowering, std::move((*cpus)[i]), (*plans)[i], c); !added)
      return failed(added.error());
  if (Result added = add_specializations(options, lowering, *plans, c); !added) return failed(added.error());
  bool prepares = options.weights == Weights::Init && lower::needs_preparing(c.program);
  if (prepares || options.emit == Emit::Prepare) c.prepare_module = lower::make_prepare_module(c.program);
  if (prepares)
    if (Result done = lower_prepare(c, lowering); !done) return failed(done.error());
  if (database)
    for (std::string& line : database->idle_lines()) c.facts.warnings.push_back(std::move(line));
  if (Result described = describe(options, c); !described) return failed(described.error());
  c.codegen = codegen_options(options, c);
  return true;
}

} // namespace

const kernel::Program& Compilation::program_at(size_t variant, const std::vector<size_t>& extents) const {
  for (const SpecializedProgram& each : specializations)
    if (each.variant == variant &&
        std::all_of(each.extents.begin(), each.extents.end(), [&](const auto& wanted) {
          return extents[wanted.first] == static_cast<size_t>(wanted.second);
        }))
      return each.program;
  return program_of(variant);
}

std::unique_ptr<Compilation> compile_in_memory(const CompileOptions& options, DiagnosticList& diagnostics) {
  auto compilation = std::make_unique<Compilation>();
  PhaseTimer timer(*compilation, options);
  if (!compile_program(options, *compilation, timer, diagnostics)) return nullptr;
  timer.end();
  auto variant = variant_to_run(options);
  if (!variant) return diagnostics.add(variant.error()), nullptr;
  compilation->run_variant = *variant;
  compilation->link = options.link;
  return compilation;
}

std::unique_ptr<Compilation> compile(const CompileOptions& options, DiagnosticList& diagnostics) {
  auto compilation = std::make_unique<Compilation>();
  PhaseTimer timer(*compilation, options);
  if (!compile_program(options, *compilation, timer, diagnostics)) return nullptr;
  timer.begin("generate code");
  CompileOptions writing = options;
  writing.announce = [&](const Compilation& complete) -> Result {
    timer.end();
    return options.announce ? options.announce(complete) : Result();
  };
  if (Result written = write_outputs(writing, *compilation); !written) {
    diagnostics.add(written.error());
    return nullptr;
  }
  return compilation;
}

} // namespace firn::driver
