// `firn compile`: a model file, ONNX, or a graph or kernels in text form, to object, header and manifest.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/codegen/codegen.h"
#include "compiler/frontend/onnx/import.h"
#include "compiler/kernel/kernel.h"
#include "compiler/load/visibility.h"
#include "compiler/memory/arena.h"
#include "compiler/plan/schedule.h"
#include "compiler/support/diagnostic.h"
#include "compiler/support/goals.h"
#include "compiler/target/cpu_list.h"
#include "compiler/training/training.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace firn::driver {

// The kind of output; every kind but Object stops the compilation after its stage.
enum class Emit { Object, Graph, Prepare, Kernel, Llvm, Assembly, Ptx, Report, Header, Manifest };

// Whether the object holds constants as the kernels read them, or the model's own, from which the program
// makes those before the first run.
enum class Weights : uint8_t { Embed, Init };

// Loads the code of verbs that run it: this process by itself, or the system's compiler and loader, by way of
// a shared library.
enum class Loader : uint8_t { InProcess, System };

struct Compilation;
class Stages;

struct CompileOptions {
  // Path of the ONNX file, or of a graph (.hlo) or kernels (.kir) in text form; "-": standard input.
  std::string model;
  // The model in memory instead of a file: ONNX, or a graph in text form, which is told by the ending .hlo of
  // `model` or by its first word. `model` is the name from which messages and outputs take theirs, such as
  // "digits.onnx". The compilation copies the bytes.
  std::optional<std::span<const std::byte>> model_bytes;
  std::string model_folder; // with model_bytes: where external data may lie; empty: the model may have none
  std::string weights_in;   // side file with the constants of a graph or kernels in text form; empty: none
  std::string entry;        // the function of a graph in text form to compile; empty: @main and all entries
  std::string output;       // stem: NAME.o, NAME.h, NAME.json; or the file of --emit. Empty: from the model
  Emit emit = Emit::Object;
  std::string class_name; // empty: from the model's file name
  onnx::ImportOptions import;
  std::optional<training::TrainingOptions> training;        // the model becomes a module with a training step
  std::vector<std::pair<std::string, std::string>> renames; // (new, old) names of inputs and outputs
  std::vector<std::string> link;        // files with the program's operators, for verbs that run code
  std::map<std::string, void*> symbols; // or the operators' addresses in this process
  std::vector<std::string> external;    // inputs and outputs without arena space
  std::string triple, cpu, features;
  // A GPU for which the program is made instead, such as sm_80 or sm_80:a100; empty: none. With
  // `gpu_as_loops` its kernels become loops for the CPU of `triple`, `cpu` and `features`, to try them.
  std::string gpu;
  bool gpu_as_loops = false;
  std::vector<std::string> cpus; // instead of cpu and features: several, with code for each in one object
  // Values of dims that vary, by name, for which the object has code of their own.
  std::vector<std::map<std::string, int64_t>> specializations;
  std::string variant; // the one of these whose code run, verify and bench take; empty: the first that can
  Goals goals;         // optimisation level, arithmetic, precision and threads
  Loader loader = Loader::InProcess; // System also if files are linked
  load::Visibility visibility;       // tools that see code which this process loads
  Weights weights = Weights::Embed;
  std::string schedule_db; // text file of schedules that overrule the cost model
  std::string passes = "default";
  std::string dump_folder; // graph text after every changing pass
  int rewrite_limit = -1;
  std::string weights_out; // side file of --emit=graph and --emit=kernel
  std::string depfile;
  std::optional<int64_t> flash_budget, ram_budget;
  // Bytes that the arena may take: memory_budget.h makes it fit.
  std::optional<int64_t> memory_budget;
  unsigned jobs = 0;        // threads that generate code; 0: as many as the machine runs at once
  std::string cache_folder; // keeps machine code for later compilations; empty: memory does, for this process
  std::vector<std::string> flags;                         // the flags as they were given, for the manifest
  std::function<void(const std::string& phase)> progress; // called when a phase begins
  // Ends the compilation with Fault::Stopped at the next pass or phase once it is true; may be null.
  const std::atomic<bool>* stop = nullptr;
  // Called when all files are complete and none is in its place yet: after a failure none will be.
  std::function<Result(const Compilation&)> announce;
  // Takes the text of an Emit that goes to no file.
  std::function<Result(const std::string& text)> print;

  // Takes the model at this path instead.
  void set_model_path(std::string path) {
    model = std::move(path);
    model_bytes.reset();
  }
};

// One phase of a compilation, for --time-passes.
struct Phase {
  std::string name;
  double seconds = 0;
  int64_t peak_bytes = 0; // peak of the process when the phase ended
};

// The code for one more CPU than the compilation's target.
struct Variant {
  NamedTarget cpu;
  kernel::Program program;
  int64_t own_weight_bytes = 0; // bytes of constants that lie in a form of its own
};

// The code for runs in which dims that vary have certain values.
struct SpecializedProgram {
  std::string values;                              // "batch=1,seq=128"
  size_t variant = 0;                              // the CPU, as of Compilation::run_variant
  std::vector<std::pair<size_t, int64_t>> extents; // numbers of Program::extents, and what they are
  kernel::Program program;
  int64_t own_weight_bytes = 0; // bytes of constants that lie in a form of its own
};

// The programs of one more function of the module than @main, over the same weights.
struct EntryPrograms {
  const Function* function = nullptr;
  std::vector<plan::KernelPlans> plans; // by CPU
  kernel::Program program;              // for the first CPU
  std::vector<Variant> variants;        // for the others
};

// Everything that a compilation found and made. Later members are empty when --emit stopped before them.
struct Compilation {
  std::vector<NamedTarget> cpus;                   // the most able first
  std::optional<plan::ScheduleDatabase> schedules; // the database of --schedule-db
  std::vector<plan::KernelPlans> plans;            // plans of @main, by CPU
  onnx::ModelFacts facts;
  std::unique_ptr<Module> module; // after the passes; of kernels in text form: no more than their interface
  std::map<std::string, LiteralRef> initial_states; // by parameter of @main; others start from zeros
  std::vector<onnx::VaryingDim> dims;               // dims that vary among the parameters of @main
  kernel::Program program;                          // planned; has the constants of all CPUs
  memory::ArenaPeak peak;                           // when the arena of `program` is fullest
  std::unique_ptr<Module> prepare_module; // @prepare, which makes the constants of `program`, if it is wanted
  std::optional<kernel::Program>
      prepare; // @prepare lowered, for Weights::Init; none: there is nothing to make
  artifact::ModelDescription description;
  Machine target;                                  // the most able of several CPUs
  std::string cpu_name;                            // its name, as it was asked for
  std::vector<Variant> variants;                   // the others, the least able last
  std::vector<SpecializedProgram> specializations; // in the order of preference
  std::vector<EntryPrograms> entries;              // the functions beside @main, in the module's order
  // Places that several entry functions agree on: of their states, or, if the module has parameters, of all
  // that the functions beside @main have in common, as these share an arena then in which @main does not run.
  memory::SharedLayout shared;
  memory::SharedLayout parameters;      // the block of parameters
  std::vector<std::string> link;        // CompileOptions::link
  std::map<std::string, void*> symbols; // CompileOptions::symbols
  Loader loader = Loader::InProcess;    // CompileOptions::loader
  load::Visibility visibility;          // CompileOptions::visibility
  // Whether the functions beside @main share an arena of their own, as those of a training step do.
  bool has_trainer() const { return !module->parameters.empty() && module->entries().size() > 1; }
  size_t run_variant = 0; // firn_rt2_call::variant of what run, verify and bench take
  // By firn_rt2_call::variant.
  const kernel::Program& program_of(size_t variant) const {
    return variant == 0 ? program : variants[variant - 1].program;
  }
  // The program that a run with these extents takes.
  const kernel::Program& program_at(size_t variant, const std::vector<size_t>& extents) const;
  std::optional<Machine> loops_target; // the CPU that runs a GPU's kernels as loops
  // The machine for which code is generated.
  const Machine& code_target() const { return loops_target ? *loops_target : target; }
  const Machine& target_of(size_t variant) const {
    return variant == 0 ? target : variants[variant - 1].cpu.target;
  }
  const std::string& name_of(size_t variant) const {
    return variant == 0 ? cpu_name : variants[variant - 1].cpu.name;
  }
  std::shared_ptr<codegen::CodeCache> code_cache;
  codegen::CodegenOptions codegen;
  codegen::ObjectFacts object;
  std::vector<plan::Explanation>
      explanations; // reasons for the plans of kernels, in the order of the program
  std::vector<Phase> phases;
  std::vector<std::string> files; // written, in order
  double seconds = 0;
};

// Runs the whole flow. Null with the reasons in `diagnostics` when something failed; nothing is written
// then.
std::unique_ptr<Compilation> compile(const CompileOptions& options, DiagnosticList& diagnostics);

// Runs the flow up to the planned program and then `finish`, which may begin further stages.
std::unique_ptr<Compilation> compile_then(const CompileOptions& options, DiagnosticList& diagnostics,
                                          const std::function<Result(Compilation&, Stages&)>& finish);

// Everything up to the planned program, without writing files: what run, verify and bench start from.
std::unique_ptr<Compilation> compile_in_memory(const CompileOptions& options, DiagnosticList& diagnostics);

} // namespace firn::driver
