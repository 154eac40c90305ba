// Timing of compiled models: whole runs by the clock, kernels by time stamps in a profiled build of the same
// program.
#include "compiler/driver/bench.h"

#include "compiler/artifact/manifest.h"
#include "compiler/driver/guarded.h"
#include "compiler/driver/machine_probe.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/runs_here.h"
#include "compiler/driver/seeded_inputs.h"
#include "compiler/driver/task_clock.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <thread>

namespace firn::driver {
namespace {

using Clock = std::chrono::steady_clock;

struct Times {
  double median = 0, min = 0; // seconds per run
};

Times time_runs(ObjectRunner& runner, double seconds) {
  std::vector<double> times;
  size_t repeat = 1;
  auto timed = [&] {
    auto start = Clock::now();
    for (size_t i = 0; i < repeat; ++i) runner.run_again();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  while (timed() < 20e-6) repeat *= 2;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (times.size() < 5 || Clock::now() < end) times.push_back(timed() / static_cast<double>(repeat));
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0]};
}

// One line of the table: a step of the program. Seconds that threads wait for each other in it add up over
// the threads.
struct Row {
  std::string name;
  double seconds = 0, share = 0, bound_seconds = 0, waited_seconds = 0;
  bool compute_bound = false;
  bool has_bound = true; // the known work of the kernel is that of this run
  size_t tasks = 1;
};

Row described(const kernel::Program& program, const kernel::Step& step, const MachineProbe& probe) {
  using Kind = kernel::Step::Kind;
  if (step.kind == Kind::Checked || step.kind == Kind::When || step.kind == Kind::Share)
    return described(program, step.first[0], probe);
  Row row;
  if (step.kind == Kind::Concurrent) {
    for (const kernel::Step& call : step.first) {
      Row one = described(program, call, probe);
      row.name += (row.name.empty() ? "" : " | ") + one.name;
      row.bound_seconds += one.bound_seconds;
      row.compute_bound = one.compute_bound;
    }
    return row;
  }
  if (step.kind != Kind::Call) {
    row.name = step.kind == Kind::If ? "if" : step.kind == Kind::Bind ? "count" : "while";
    return row;
  }
  const kernel::Kernel& kernel = *program.kernels[static_cast<size_t>(step.kernel)];
  int64_t bytes = 0;
  for (const kernel::BufferParameter& parameter : kernel.parameters)
    bytes += parameter.size * kernel::scalar_bytes(parameter.element);
  double compute = static_cast<double>(kernel.flops) / probe.flops_per_second;
  double memory = static_cast<double>(bytes) / probe.cache_bytes_per_second;
  row.compute_bound = compute > memory;
  row.bound_seconds = std::max(compute, memory);
  row.name = (step.location.empty() ? kernel.name : step.location) + " " +
             (kernel.algorithm.empty() ? kernel.name : kernel.algorithm);
  return row;
}

// A row per step. A step's seconds are its share of the profile times the run's seconds.
std::vector<Row> kernel_rows(const Compilation& c, const ActualDims& dims, const SharedProfile& profile,
                             double seconds, const MachineProbe& probe) {
  std::vector<Row> rows;
  double profiled = std::accumulate(profile.steps.begin(), profile.steps.end(), 0.0);
  const kernel::Program& program = c.program_at(c.run_variant, dims.extents);
  std::span<const kernel::Step> steps = kernel::work_steps(program);
  for (size_t i = 0; i < steps.size() && i < profile.steps.size(); ++i) {
    rows.push_back(described(program, steps[i], probe));
    rows.back().share = profiled > 0 ? profile.steps[i] / profiled : 0;
    rows.back().seconds = rows.back().share * seconds;
    rows.back().waited_seconds = profile.steps[i] * (c.description.threads - 1);
  }
  for (const SharedCall& call : profile.calls) {
    Row& row = rows[call.step];
    row.tasks = std::max(row.tasks, call.tasks.size());
    row.waited_seconds -= call.work() - call.span;
  }
  return rows;
}

double waited_seconds(const std::vector<Row>& rows) {
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [](double sum, const Row& row) { return sum + row.waited_seconds; });
}

// The time that threads would take, each with a core of its own: a step lasts as long as the thread with most
// to do.
struct Simulation {
  double barrier = 0, alone = 0, together = 0; // seconds
  double clock = 0;                            // measured with as many threads, if the machine has the cores
  std::vector<double> steps_alone, steps_together;
};

Simulation simulate(const SharedProfile& profile, size_t threads) {
  Simulation simulation;
  simulation.barrier = measure_barrier(threads);
  simulation.steps_alone = profile.steps;
  for (const SharedCall& call : profile.calls) simulation.steps_alone[call.step] -= call.span - call.work();
  simulation.steps_together = simulation.steps_alone;
  for (const SharedCall& call : profile.calls)
    simulation.steps_together[call.step] += call.longest() + simulation.barrier - call.work();
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    simulation.alone += simulation.steps_alone[i];
    simulation.together += simulation.steps_together[i];
  }
  return simulation;
}

std::string kernel_header(const char* columns) {
  char line[160];
  std::snprintf(line, sizeof line, "%-60s %s\n", "kernel", columns);
  return line;
}

std::vector<Row> longest_first(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

std::string head(const BenchOptions& options, const Compilation& c, const ActualDims& dims,
                 const Times& times, const MachineProbe& probe) {
  char line[320];
  double flops = static_cast<double>(c.description.flops);
  std::snprintf(line, sizeof line, "probe: %.0f GFLOP/s fp32, %.0f GB/s memory, %.0f GB/s cache, 1 thread\n",
                probe.flops_per_second / 1e9, probe.memory_bytes_per_second / 1e9,
                probe.cache_bytes_per_second / 1e9);
  std::string text = line + ("code for " + cpu_note(options.compile)) + "\n";
  std::string name = std::filesystem::path(options.compile.model).stem().string();
  std::snprintf(line, sizeof line, "%-24s %.4g ms   (min %.4g)", name.c_str(), times.median * 1e3,
                times.min * 1e3);
  text += line;
  for (const artifact::DimDescription& dim : c.description.dims)
    text += "   " + dim.name + "=" + std::to_string(dims.values.at(dim.symbol.get()));
  std::snprintf(line, sizeof line, "   %.1f GFLOP/s = %.0f %% of the FMA peak", flops / times.median / 1e9,
                100 * flops / times.median / probe.flops_per_second);
  return text + (options.at.empty() ? line : "") + "\n";
}

std::string table(const Compilation& c, const std::vector<Row>& rows) {
  char line[320];
  std::string text;
  bool shared = c.description.threads > 1;
  double profiled = 0;
  for (const Row& row : rows) profiled += row.seconds;
  if (shared) {
    std::snprintf(line, sizeof line, "%d threads wait for each other %.1f %% of their time\n",
                  c.description.threads, 100 * waited_seconds(rows) / (profiled * c.description.threads));
    text += line;
  }
  text += kernel_header(shared ? "       time    share  bound    of bound  tasks  waiting"
                               : "       time    share  bound    of bound");
  for (const Row& row : longest_first(rows)) {
    std::snprintf(line, sizeof line, "%-60.60s %8.4f ms %6.1f %%  ", row.name.c_str(), row.seconds * 1e3,
                  row.share * 100);
    text += line;
    std::snprintf(line, sizeof line, "%-8s %6.0f %%", row.compute_bound ? "compute" : "memory",
                  row.seconds > 0 ? 100 * row.bound_seconds / row.seconds : 0);
    text += row.has_bound ? line : "   -";
    if (shared) {
      std::snprintf(line, sizeof line, " %6zu %6.1f %%", row.tasks,
                    row.seconds > 0 ? 100 * row.waited_seconds / (row.seconds * c.description.threads) : 0);
      text += line;
    }
    text += "\n";
  }
  return text;
}

std::string table(const Compilation& c, const Simulation& simulation, std::vector<Row> rows) {
  char line[320];
  int threads = c.description.threads;
  std::snprintf(line, sizeof line,
                "%d threads, simulated   %.4g ms   one thread %.4g ms   efficiency %.3f   barrier %.2f us\n",
                threads, simulation.together * 1e3, simulation.alone * 1e3,
                simulation.alone / (threads * simulation.together), simulation.barrier * 1e6);
  std::string text = line;
  if (simulation.clock > 0) {
    std::snprintf(line, sizeof line, "%d threads, by the clock %.4g ms\n", threads, simulation.clock * 1e3);
    text += line;
  }
  text += kernel_header(" one thread     threads  tasks  efficiency");
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].seconds = simulation.steps_together[i];
    rows[i].bound_seconds = simulation.steps_alone[i];
  }
  for (const Row& row : longest_first(std::move(rows))) {
    std::snprintf(line, sizeof line, "%-60.60s %8.4f ms %8.4f ms %6zu %11.3f\n", row.name.c_str(),
                  row.bound_seconds * 1e3, row.seconds * 1e3, row.tasks,
                  row.seconds > 0 ? row.bound_seconds / (threads * row.seconds) : 0);
    text += line;
  }
  return text;
}

std::string json(const Compilation& c, const ActualDims& dims, const Times& times,
                 const std::vector<Row>& rows, const Simulation* simulation) {
  char number[160];
  std::snprintf(number, sizeof number, "%.9g, \"min_s\": %.9g", times.median, times.min);
  std::string text = "{\"median_s\": " + std::string(number) +
                     ", \"cpu\": " + artifact::json_string(c.name_of(c.run_variant)) +
                     ", \"flops\": " + std::to_string(c.description.flops) +
                     ", \"threads\": " + std::to_string(c.description.threads);
  if (simulation) {
    std::snprintf(number, sizeof number,
                  ", \"simulated_s\": %.9g, \"simulated_efficiency\": %.4f, \"barrier_s\": %.9g",
                  simulation->together, simulation->alone / (c.description.threads * simulation->together),
                  simulation->barrier);
    text += number;
  }
  std::string sizes;
  for (const artifact::DimDescription& dim : c.description.dims)
    sizes += (sizes.empty() ? "" : ", ") + artifact::json_string(dim.name) + ": " +
             std::to_string(dims.values.at(dim.symbol.get()));
  if (!sizes.empty()) text += ", \"dims\": {" + sizes + "}";
  text += ", \"kernels\": [";
  bool first = true;
  for (const Row& row : longest_first(rows)) {
    std::snprintf(number, sizeof number, "%.9g, \"tasks\": %zu, \"waited_s\": %.9g", row.seconds, row.tasks,
                  row.waited_seconds);
    text += (first ? "" : ", ") + ("{\"name\": " + artifact::json_string(row.name)) +
            ", \"seconds\": " + number + "}";
    first = false;
  }
  return text + "]}\n";
}

Expected<std::string> time_program(const BenchOptions& options, const std::unique_ptr<Compilation>& c) {
  auto dims = dims_at(c->description, options.at);
  if (!dims) return dims.error();
  auto runner = ObjectRunner::create(*c);
  if (!runner) return runner.error();
  std::vector<LiteralRef> inputs = seeded_inputs(*c, *dims, /*seed=*/1);
  if (auto first = (*runner)->run(inputs); !first) return first.error();
  MachineProbe probe = probe_machine(c->target_of(c->run_variant));
  auto threads = static_cast<size_t>(c->description.threads);
  bool has_cores = threads <= std::thread::hardware_concurrency();
  double clock = 0;
  if (options.simulate && has_cores) clock = time_runs(**runner, options.seconds).median;
  if (options.simulate) (*runner)->lend(nullptr);
  Times times = time_runs(**runner, options.seconds);

  c->codegen.profile = true;
  auto profiled = ObjectRunner::create(*c);
  if (!profiled) return profiled.error();
  if (auto first = (*profiled)->run(inputs); !first) return first.error();
  const firn_executor* pool = options.simulate ? nullptr : (*profiled)->executor();
  SharedProfile profile = profile_tasks(**profiled, pool, threads, options.seconds / 2);
  std::vector<Row> rows = kernel_rows(*c, *dims, profile, times.median, probe);
  for (Row& row : rows) row.has_bound = options.at.empty();
  std::optional<Simulation> simulation;
  if (options.simulate) {
    simulation = simulate(profile, threads);
    simulation->clock = clock;
  }
  if (options.json) return json(*c, *dims, times, rows, simulation ? &*simulation : nullptr);
  return head(options, *c, *dims, times, probe) +
         (simulation ? table(*c, *simulation, rows) : table(*c, rows));
}

} // namespace

static std::optional<std::string> time_model(const BenchOptions& options, DiagnosticList& diagnostics) {
  if (Result runs = check_runs_here(options.compile); !runs)
    return diagnostics.add(runs.error()), std::nullopt;
  auto c = compile_in_memory(options.compile, diagnostics);
  if (!c) return std::nullopt;
  auto text = time_program(options, c);
  if (!text) return diagnostics.add(text.error()), std::nullopt;
  return *text;
}

std::optional<std::string> bench(const BenchOptions& options, DiagnosticList& diagnostics) {
  return guarded(options.compile.model, diagnostics, std::nullopt,
                 [&] { return time_model(options, diagnostics); });
}

} // namespace firn::driver
