// The whole flow of the compiler, level by level: the map of Firn.
#include "compiler/driver/compile.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/entries.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/import_kernels.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/make_program.h"
#include "compiler/driver/memory_budget.h"
#include "compiler/driver/prepare_weights.h"
#include "compiler/driver/process_cache.h"
#include "compiler/driver/program_interface.h"
#include "compiler/driver/specializations.h"
#include "compiler/driver/variants.h"
#include "compiler/driver/write_outputs.h"
#include "compiler/target/assumed_version.h"

#include <algorithm>

namespace firn::driver {
namespace {

// A compilation under way. Steps return false with the reasons in `diagnostics`.
struct Flow {
  const CompileOptions& options;
  Compilation& c;
  Stages& stages;
  DiagnosticList& diagnostics;
  bool has_kernels = false; // the model is kernels in text form, which the road makes of others

  bool check(const Result& done) const { return done || (diagnostics.add(done.error()), false); }
};

bool find_cpus(Flow& flow) {
  auto cpus = targets_of(flow.options);
  if (!cpus) return flow.check(cpus.error());
  Compilation& c = flow.c;
  c.cpus = std::move(*cpus);
  c.target = c.cpus[0].target;
  c.cpu_name = c.cpus[0].name;
  if (!flow.options.gpu_as_loops) return true;
  auto cpu = find_target(flow.options.triple, flow.options.cpu, flow.options.features);
  if (!cpu) return flow.check(cpu.error());
  c.loops_target = std::move(*cpu);
  return true;
}

// Whether the machine runs kernels in text form as they are.
Result check_kernel(const kernel::Kernel& kernel, const Machine& target) {
  const std::string name = "kernel '" + kernel.name + "' ";
  if (!kernel.tiles.empty() && !target.cpu.has_tile_matrices)
    return unsupported_error(name + "multiplies tile matrices, which " + target.display_name() + " (" +
                             target.triple + ") does not have");
  if (kernel.threads > 0 && !target.gpu)
    return unsupported_error(name + "is of a GPU's threads, which " + target.display_name() +
                             " does not have; --passes=gpu-to-loops of firn opt makes loops of it");
  if (kernel.threads == 0 && target.gpu)
    return unsupported_error(name + "is of a CPU, and " + target.display_name() +
                             " runs kernels of threads; --passes=spread-items of firn opt makes one of it");
  return {};
}

bool read_kernels(Flow& flow) {
  auto kernels = import_kernels(flow.options);
  if (!kernels) return flow.check(kernels.error());
  Compilation& c = flow.c;
  for (const auto& kernel : kernels->program.kernels)
    if (Result runs = check_kernel(*kernel, c.target); !runs) return flow.check(runs);
  c.program = std::move(kernels->program);
  c.module = std::move(kernels->module);
  c.facts = std::move(kernels->facts);
  c.dims = std::move(kernels->dims);
  return flow.check(check_names(flow.options, c.module->main(), c.dims));
}

bool import(Flow& flow) {
  Compilation& c = flow.c;
  flow.has_kernels = is_kernel_text(flow.options);
  if (flow.has_kernels) return read_kernels(flow);
  auto imported = import_model(flow.options, flow.diagnostics);
  if (!imported) return false;
  c.facts = std::move(imported->facts);
  c.module = std::move(imported->module);
  c.initial_states = std::move(imported->initial_states);
  c.dims = std::move(imported->dims);
  if (std::string version = assumed_version(flow.options.triple, c.cpu_name); !version.empty())
    c.facts.warnings.push_back("the target names no version of its system: the object is for " + version +
                               " and later");
  return flow.check(check_names(flow.options, c.module->main(), c.dims));
}

bool read_schedules(Flow& flow) {
  if (flow.options.schedule_db.empty()) return true;
  auto read = plan::ScheduleDatabase::read(flow.options.schedule_db);
  if (!read) return flow.check(read.error());
  flow.c.schedules = std::move(*read);
  return true;
}

bool run_graph_passes(Flow& flow) {
  Compilation& c = flow.c;
  PassOptions options(flow.options.goals, &c.target);
  options.cpus = c.cpus;
  options.schedules = c.schedules ? &*c.schedules : nullptr;
  options.explanations = &c.explanations;
  options.rewrite_limit = flow.options.rewrite_limit;
  std::string passes = flow.options.passes == "default" ? default_pipeline(*c.module, /*for_target=*/true)
                                                        : flow.options.passes;
  if (!flow.check(flow.stages.run(*c.module, passes, options))) return false;
  if (flow.options.emit == Emit::Graph) return true;
  for (const Function* entry : c.module->entries())
    if (entry->gradient)
      return flow.check(Result(usage_error("@" + entry->name() + " is a declared gradient, which --passes=" +
                                           passes + " does not derive: differentiate does")));
  return true;
}

bool place_shared(Flow& flow) {
  return flow.check(place_shared(flow.options, flow.c));
}

bool fit_memory(Flow& flow) {
  return flow.check(fit_memory_budget(flow.options, flow.c, flow.stages));
}

bool plan_kernels(Flow& flow) {
  auto plans = plan_entry(flow.options, flow.c, flow.c.module->main());
  if (!plans) return flow.check(plans.error());
  flow.c.plans = std::move(*plans);
  return true;
}

bool make_first_program(Flow& flow) {
  auto made = make_program(main_source(flow.options, flow.c, 0), flow.stages);
  if (!made) return flow.check(made.error());
  flow.c.program = std::move(made->program);
  flow.c.program.interface = interface_of(flow.c.module->main(), flow.c.dims, flow.c.program);
  flow.c.peak = std::move(made->peak);
  return true;
}

bool make_further_programs(Flow& flow) {
  return flow.check(add_variants(flow.options, flow.c, flow.stages)) &&
         flow.check(add_specializations(flow.options, flow.c, flow.stages)) &&
         flow.check(add_entries(flow.options, flow.c, flow.stages)) &&
         flow.check(prepare_weights(flow.options, flow.c, flow.stages));
}

bool describe_model(Flow& flow) {
  Compilation& c = flow.c;
  if (c.schedules)
    for (std::string& line : c.schedules->idle_lines()) c.facts.warnings.push_back(std::move(line));
  if (!flow.check(describe(flow.options, c))) return false;
  c.codegen = codegen_options(flow.options, c);
  auto [cache, warning] = process_cache(flow.options.cache_folder);
  if (!warning.empty()) c.facts.warnings.push_back(std::move(warning));
  c.code_cache = std::move(cache);
  c.codegen.cache = c.code_cache.get();
  return true;
}

// The road from a model to its planned programs. --emit=graph leaves it when the passes have run, and kernels
// in text form enter it at its end.
constexpr struct {
  const char* stage; // name for --time-passes; null: part of the stage before
  bool (*run)(Flow& flow);
} kRoad[] = {
    {nullptr, find_cpus},
    {"import", import},               // bytes -> graph IR
    {"passes", read_schedules},       //
    {nullptr, run_graph_passes},      // graph IR -> fused and laid out, with plans for every CPU
    {nullptr, place_shared},          // parameters and states that entries have in common
    {nullptr, fit_memory},            // -> with values computed again, within a budget
    {"plan", plan_kernels},           // -> complete plans for every CPU
    {"lower", make_first_program},    // -> kernel IR, its constants and buffers placed
    {nullptr, make_further_programs}, // kernel IR for other CPUs, values of dims, entries and @prepare
    {"describe", describe_model},     // -> what headers, manifests and code generation are told
};

bool travel(Flow flow) {
  for (const auto& [stage, run] : kRoad) {
    if (flow.has_kernels && run != describe_model) continue;
    if (stage) flow.stages.begin(stage);
    if (!run(flow)) return false;
    if (flow.options.emit == Emit::Graph && run == fit_memory) break;
  }
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

// A failed check names the stage.
std::unique_ptr<Compilation> compile_then(const CompileOptions& options, DiagnosticList& diagnostics,
                                          const std::function<Result(Compilation&, Stages&)>& finish) {
  auto compilation = std::make_unique<Compilation>();
  Stages stages(options, *compilation);
  return guarded(options.model, diagnostics, nullptr, [&]() -> std::unique_ptr<Compilation> {
    try {
      Flow flow{options, *compilation, stages, diagnostics};
      if (!travel(flow) || !flow.check(finish(*compilation, stages))) return nullptr;
      return std::move(compilation);
    } catch (const InternalFailure& failure) {
      throw InternalFailure("in stage '" + stages.running() + "', " + failure.message());
    } catch (const Stopped&) {
      diagnostics.add(stopped_error());
      return nullptr;
    }
  });
}

std::unique_ptr<Compilation> compile_in_memory(const CompileOptions& options, DiagnosticList& diagnostics) {
  return compile_then(options, diagnostics, [&](Compilation& compilation, Stages& stages) -> Result {
    stages.end();
    auto variant = variant_to_run(options);
    if (!variant) return variant.error();
    compilation.run_variant = *variant;
    compilation.link = options.link;
    compilation.symbols = options.symbols;
    compilation.loader = options.loader;
    compilation.visibility = options.visibility;
    return {};
  });
}

std::unique_ptr<Compilation> compile(const CompileOptions& options, DiagnosticList& diagnostics) {
  return compile_then(options, diagnostics, [&](Compilation& compilation, Stages& stages) {
    stages.begin("generate code");
    CompileOptions writing = options;
    writing.announce = [&](const Compilation& complete) -> Result {
      stages.end();
      return options.announce ? options.announce(complete) : Result();
    };
    return write_outputs(writing, compilation);
  });
}

} // namespace firn::driver
