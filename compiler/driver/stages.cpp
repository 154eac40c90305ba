// Time, memory, progress and dumps of a compilation's stages.
#include "compiler/driver/stages.h"

#include "compiler/graph/hlo_text.h"
#include "compiler/support/output_set.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace firn::driver {

int64_t peak_resident_bytes() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

Stages::Stages(const CompileOptions& options, Compilation& compilation)
    : options_(options), compilation_(compilation), start_(Clock::now()), begun_(start_) {
  std::error_code error;
  if (!options.dump_folder.empty()) std::filesystem::create_directories(options.dump_folder, error);
}

void Stages::end_if_stopped() const {
  if (options_.stop && *options_.stop) throw Stopped();
}

void Stages::begin(std::string name) {
  end_if_stopped();
  end();
  running_ = std::move(name);
  if (options_.progress) options_.progress(running_);
}

// A stage or pass that runs again, for another program, adds to its row.
void Stages::add_time(const std::string& name, double seconds, int64_t peak_bytes) {
  for (Phase& phase : compilation_.phases)
    if (phase.name == name) {
      phase.seconds += seconds;
      phase.peak_bytes = std::max(phase.peak_bytes, peak_bytes);
      return;
    }
  compilation_.phases.push_back({name, seconds, peak_bytes});
}

void Stages::end() {
  auto now = Clock::now();
  if (!running_.empty())
    add_time(running_, std::chrono::duration<double>(now - begun_).count(), peak_resident_bytes());
  running_.clear();
  begun_ = now;
  compilation_.seconds = std::chrono::duration<double>(now - start_).count();
}

template <class Unit> auto Stages::dump(const char* extension, std::string (*print)(const Unit&)) {
  return [this, extension, print](const std::string& name, bool changed, const Unit& unit) {
    ++dumped_;
    end_if_stopped();
    if (options_.dump_folder.empty() || !changed || !written_) return;
    char prefix[16];
    std::snprintf(prefix, sizeof prefix, "%04d.", dumped_);
    written_ = write_file(options_.dump_folder + "/" + prefix + name + extension, print(unit));
  };
}

void Stages::add_timings(const std::vector<PassTiming>& timings) {
  for (const PassTiming& pass : timings)
    if (pass.seconds >= 0.001) add_time("  " + pass.name, pass.seconds, 0);
}

Result Stages::run(Module& module, const std::string& passes, const PassOptions& options) {
  PipelineRun run{options, dump(".hlo", print_module)};
  Result done = run_passes(module, passes, run);
  add_timings(run.timings);
  return done ? written_ : done;
}

Result Stages::run(kernel::Program& program, const std::string& passes,
                   const kernel::KernelPassOptions& options) {
  kernel::KernelPipelineRun run{options, dump(".kir", kernel::print_program)};
  Result done = kernel::run_kernel_passes(program, passes, run);
  add_timings(run.timings);
  return done ? written_ : done;
}

} // namespace firn::driver
