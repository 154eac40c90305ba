// Timing of compiled models: whole runs by the clock, kernels by time stamps in a profiled build of the same
// program.
#include "compiler/driver/bench.h"

#include "compiler/artifact/manifest.h"
#include "compiler/driver/machine_probe.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/runs_here.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

namespace firn::driver {
namespace {

using Clock = std::chrono::steady_clock;

struct Times {
  double median = 0, least = 0; // seconds per run
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

// Normal floats, small integers: inputs of no meaning but ordinary size. States go on from run to run.
std::vector<LiteralRef> random_inputs(const Compilation& c) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<LiteralRef> inputs;
  const Function& main = c.module->main();
  for (size_t p = 0; p < main.body().parameters().size(); ++p) {
    const Type& type = main.body().parameters()[p]->type();
    inputs.push_back(nullptr);
    if (main.is_state(p)) continue;
    auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      if (is_float(type.dtype))
        literal->set_double(i, normal(random));
      else
        literal->set_int(i, static_cast<int64_t>(random() % 2));
    inputs.back() = std::move(literal);
  }
  return inputs;
}

// One line of the table: all calls of kernels that one place of the model led to.
struct Row {
  std::string name;
  double seconds = 0, share = 0, bound_seconds = 0;
  bool compute_bound = false;
};

// Seconds of every step from the profile, made absolute by the run's own time.
std::vector<Row> kernel_rows(const Compilation& c, const std::vector<double>& step_shares, double seconds,
                             const MachineProbe& probe) {
  std::vector<Row> rows;
  size_t number = 0;
  for (const kernel::Step& step : c.program.steps) {
    double share = number < step_shares.size() ? step_shares[number] : 0;
    ++number;
    Row row;
    row.share = share;
    row.seconds = share * seconds;
    if (step.kind == kernel::Step::Kind::Call) {
      const kernel::Kernel& kernel = *c.program.kernels[static_cast<size_t>(step.kernel)];
      int64_t bytes = 0;
      for (const kernel::BufferParameter& parameter : kernel.parameters)
        bytes += parameter.size * kernel::scalar_bytes(parameter.element);
      double compute = static_cast<double>(kernel.flops) / probe.flops_per_second;
      double memory = static_cast<double>(bytes) / probe.cache_bytes_per_second;
      row.compute_bound = compute > memory;
      row.bound_seconds = std::max(compute, memory);
      row.name = (step.location.empty() ? kernel.name : step.location) + " " +
                 (kernel.algorithm.empty() ? kernel.name : kernel.algorithm);
    } else {
      row.name = step.kind == kernel::Step::Kind::If ? "if" : "while";
    }
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
  return rows;
}

std::string table(const BenchOptions& options, const Compilation& c, const Times& times,
                  const std::vector<Row>& rows, const MachineProbe& probe) {
  char line[320];
  double flops = static_cast<double>(c.description.flops);
  std::snprintf(line, sizeof line, "probe: %.0f GFLOP/s fp32, %.0f GB/s memory, %.0f GB/s cache, 1 thread\n",
                probe.flops_per_second / 1e9, probe.memory_bytes_per_second / 1e9,
                probe.cache_bytes_per_second / 1e9);
  std::string text = line;
  text += "code for " + cpu_note(options.compile) + "\n";
  std::string name = std::filesystem::path(options.compile.model).stem().string();
  std::snprintf(line, sizeof line, "%-24s %.4g ms   (min %.4g)   %.1f GFLOP/s = %.0f %% of the FMA peak\n",
                name.c_str(), times.median * 1e3, times.least * 1e3, flops / times.median / 1e9,
                100 * flops / times.median / probe.flops_per_second);
  text += line;
  std::snprintf(line, sizeof line, "%-60s %11s %8s  %-8s %8s\n", "kernel", "time", "share", "bound",
                "of bound");
  text += line;
  for (const Row& row : rows) {
    std::snprintf(line, sizeof line, "%-60.60s %8.4f ms %6.1f %%  %-8s %6.0f %%\n", row.name.c_str(),
                  row.seconds * 1e3, row.share * 100, row.compute_bound ? "compute" : "memory",
                  row.seconds > 0 ? 100 * row.bound_seconds / row.seconds : 0);
    text += line;
  }
  return text;
}

std::string json(const Compilation& c, const Times& times, const std::vector<Row>& rows) {
  char number[64];
  std::snprintf(number, sizeof number, "%.9g, \"min_s\": %.9g", times.median, times.least);
  std::string text = "{\"median_s\": " + std::string(number) +
                     ", \"cpu\": " + artifact::json_string(c.target.display_name()) +
                     ", \"flops\": " + std::to_string(c.description.flops) + ", \"kernels\": [";
  for (size_t i = 0; i < rows.size(); ++i) {
    std::snprintf(number, sizeof number, "%.9g", rows[i].seconds);
    text += (i ? ", " : "") + ("{\"name\": " + artifact::json_string(rows[i].name)) +
            ", \"seconds\": " + number + "}";
  }
  return text + "]}\n";
}

Expected<std::string> time_program(const BenchOptions& options, const std::unique_ptr<Compilation>& c) {
  auto runner = ObjectRunner::create(*c);
  if (!runner) return runner.error();
  std::vector<LiteralRef> inputs = random_inputs(*c);
  if (auto first = (*runner)->run(inputs); !first) return first.error();
  MachineProbe probe = probe_machine(c->target);
  Times times = time_runs(**runner, options.seconds);

  c->codegen.profile = true;
  auto profiled = ObjectRunner::create(*c);
  if (!profiled) return profiled.error();
  if (auto first = (*profiled)->run(inputs); !first) return first.error();
  std::vector<double> shares = (*profiled)->profile(options.seconds / 2);
  std::vector<Row> rows = kernel_rows(*c, shares, times.median, probe);
  return options.json ? json(*c, times, rows) : table(options, *c, times, rows, probe);
}

} // namespace

std::optional<std::string> bench(const BenchOptions& options, DiagnosticList& diagnostics) {
  if (Result runs = check_runs_here(options.compile); !runs)
    return diagnostics.add(runs.error()), std::nullopt;
  auto c = compile_in_memory(options.compile, diagnostics);
  if (!c) return std::nullopt;
  auto text = time_program(options, c);
  if (!text) return diagnostics.add(text.error()), std::nullopt;
  return *text;
}

} // namespace firn::driver
