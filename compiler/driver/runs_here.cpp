// Compares the triple and the CPU features of targets with those of this machine.
#include "compiler/driver/runs_here.h"

#include "compiler/driver/variants.h"

#include "compiler/target/cpu_table.h"

namespace firn::driver {
namespace {

// "x86_64-unknown-linux-gnu" without the vendor, whose name does not matter.
std::string without_vendor(const std::string& triple) {
  size_t first = triple.find('-'), second = triple.find('-', first + 1);
  return second == triple.npos ? triple : triple.substr(0, first) + triple.substr(second);
}

} // namespace

Result check_target(const CompileOptions& options) {
  auto targets = targets_of(options);
  return targets ? Result() : targets.error();
}

std::string lacks_for(const Machine& target, const Machine& host) {
  if (without_vendor(target.triple) != without_vendor(host.triple))
    return "code for " + target.triple + " does not run on this machine, which is " + host.triple;
  uint64_t missing = target.required_cpu_features & ~host.required_cpu_features;
  std::string names;
  for (const CpuFeature& feature : cpu_features(target.arch))
    if (missing >> feature.bit & 1) names += (names.empty() ? "" : ", ") + std::string(feature.name);
  if (names.empty()) return "";
  return "code for " + target.display_name() + " does not run on this machine, which lacks " + names +
         "; -mcpu=native makes code for this machine";
}

Result check_runs_here(const CompileOptions& options) {
  if (!options.cpus.empty()) {
    auto variant = variant_to_run(options);
    return variant ? Result() : variant.error();
  }
  auto target = find_target(options.triple, options.cpu, options.features);
  if (!target) return target.error();
  auto host = find_target("", "native", "");
  if (!host) return host.error();
  std::string lacking = lacks_for(*target, *host);
  return lacking.empty() ? Result() : usage_error(lacking);
}

std::string cpu_note(const CompileOptions& options) {
  if (!options.cpus.empty()) {
    auto cpus = find_targets(options.triple, options.cpus);
    auto variant = variant_to_run(options);
    return cpus && variant
               ? (*cpus)[*variant].name + " of an object for " + std::to_string(cpus->size()) + " CPUs"
               : options.variant;
  }
  auto target = find_target(options.triple, options.cpu, options.features);
  return (target ? target->display_name() : options.cpu) +
         (options.cpu.empty() ? " (the default; -mcpu=native for all that this machine has)" : "");
}

} // namespace firn::driver
