// Texts about a compilation.
#include "compiler/driver/compile_text.h"

#include "compiler/artifact/header_types.h"
#include "compiler/artifact/manifest.h"
#include "compiler/artifact/report.h"
#include "compiler/artifact/training_step.h"
#include "compiler/artifact/varying_dims.h"
#include "compiler/driver/stages.h"
#include "compiler/plan/explain_candidates.h"
#include "compiler/plan/winograd/plan.h"
#include "compiler/target/cpu_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace firn::driver {
namespace {

std::string format(const char* pattern, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// "9.8 kB", "4.7 M": three digits and a power of 1000.
std::string scaled(double value, const char* unit) {
  const char* prefixes[] = {"", "k", "M", "G", "T"};
  int power = 0;
  while (value >= 1000 && power < 4) value /= 1000, ++power;
  return format(power == 0 ? "%.0f %s%s" : "%.1f %s%s", value, prefixes[power], unit);
}

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string signature(const std::vector<artifact::TensorDescription>& tensors) {
  std::string text;
  for (const auto& tensor : tensors) text += (text.empty() ? "" : ", ") + artifact::type_text(tensor);
  return text;
}

// "weights 46.8 MB", "raw weights 46.8 MB, prepared 180.1 MB", "weights 46.8 MB, read in place"
std::string weights_text(const artifact::ModelDescription& d) {
  std::string packed = scaled(static_cast<double>(d.weight_bytes), "B");
  if (!d.raw_weight_bytes) return "weights " + packed;
  if (d.raw_in_place) return "weights " + packed + ", read in place";
  return "raw weights " + scaled(static_cast<double>(*d.raw_weight_bytes), "B") + ", prepared " +
         scaled(static_cast<double>(d.prepared_weight_bytes()), "B");
}

// How many convolutions use Winograd's algorithm, what their filters cost, and how to have it otherwise;
// empty if it would make none faster.
std::string winograd_text(const Compilation& c) {
  int used = 0, left_out = 0;
  int64_t added = 0;
  for (const plan::Explanation& explanation : c.explanations) {
    used += explanation.chosen.is<plan::WinogradPlan>();
    left_out += explanation.left_out;
    added += explanation.added_bytes;
  }
  if (used + left_out == 0) return "";
  std::string flags;
  if (used > 0) flags = c.prepare ? " (--no-winograd: none)" : " (--weights=init: +0 B; --no-winograd: none)";
  return format("  Winograd's algorithm for %d of %d convolutions that it makes faster: +", used,
                used + left_out) +
         scaled(static_cast<double>(added), "B") + (c.prepare ? " of prepared weights" : " of weights") +
         flags + "\n";
}

std::string training_text(const artifact::ModelDescription& d) {
  std::string text;
  if (d.parameter_bytes > 0) text += ", parameters " + scaled(static_cast<double>(d.parameter_bytes), "B");
  if (artifact::has_trainer(d)) {
    const artifact::ModelDescription trainer = artifact::trainer_of(d);
    text += ", trainer " + scaled(static_cast<double>(trainer.arena_bytes), "B");
    if (trainer.tape_bytes) text += " with tape " + scaled(static_cast<double>(*trainer.tape_bytes), "B");
  }
  return text;
}

} // namespace

std::string summary_text(const Compilation& c) {
  const artifact::ModelDescription& d = c.description;
  std::string text =
      std::filesystem::path(d.source_file).filename().string() + "  " + signature(d.inputs) + " -> " +
      signature(d.outputs) + (d.states.empty() ? "" : ", state " + signature(d.states)) +
      (d.dims.empty() ? "" : ", " + artifact::dims_text(d)) + "  " + with_commas(d.node_count) + " nodes, " +
      scaled(static_cast<double>(d.flops), "FLOP") + ", " + with_commas(d.parameters) + " parameters\n";
  for (const std::string& file : c.files) {
    std::string detail;
    if (file.ends_with(".o"))
      detail = scaled(static_cast<double>(d.object_bytes), "B") + "  (" + weights_text(d) + ", code " +
               scaled(static_cast<double>(d.code_bytes), "B") + ")";
    else if (file.ends_with(".h"))
      detail = "arena " + scaled(static_cast<double>(d.arena_bytes), "B") + " (lower bound " +
               scaled(static_cast<double>(d.arena_lower_bound), "B") + ")" + training_text(d) +
               (d.tape_bytes ? ", tape " + scaled(static_cast<double>(*d.tape_bytes), "B") : "") +
               ", stack " + scaled(static_cast<double>(d.stack_bytes), "B");
    else
      detail = "manifest";
    text += "  " + file + std::string(file.size() < 20 ? 20 - file.size() : 1, ' ') + detail + "\n";
  }
  for (const artifact::SpecializationDescription& specializations : d.specializations)
    text += "  for " + specializations.name + " code of its own, " +
            scaled(static_cast<double>(specializations.code_bytes), "B") + ", and weights, " +
            scaled(static_cast<double>(specializations.own_weight_bytes), "B") + "\n";
  return text + winograd_text(c) +
         format("compiled for %s in %.2f s, %.0f MB\n", d.cpu.c_str(), c.seconds,
                static_cast<double>(peak_resident_bytes()) / 1e6);
}

std::string timing_text(const Compilation& c) {
  std::string text = "phase                              seconds    peak MB\n";
  for (const Phase& phase : c.phases) {
    text += format("%-32s %9.3f", phase.name.c_str(), phase.seconds);
    text += phase.peak_bytes > 0 ? format(" %10.0f\n", static_cast<double>(phase.peak_bytes) / 1e6) : "\n";
  }
  text +=
      format("%-32s %9.3f %10.0f\n", "total", c.seconds, static_cast<double>(peak_resident_bytes()) / 1e6);
  if (c.object.parts > 0)
    text += format("machine code of %lld kernels, %lld of them from the cache\n",
                   static_cast<long long>(c.object.parts), static_cast<long long>(c.object.cached_parts));
  return text;
}

namespace {

// "packed w5 (9216 of 2304 f32, transformed)"; empty for a constant that lies as the model has it.
std::string packing_text(const kernel::Constant& constant) {
  const Packing& packing = constant.packing;
  if (is_padded_copy(packing)) return "";
  std::string text = format("%lld of %lld ", static_cast<long long>(packing.packed_elements),
                            static_cast<long long>(packing.source_elements));
  text.append(scalar_name(constant.source.element));
  if (packing.transform) text.append(", transformed");
  return std::string("; packed ").append(constant.source.name).append(" (").append(text).append(")");
}

void add_kernel_lines(const kernel::Program& program, const std::vector<kernel::Step>& steps,
                      std::string& text) {
  for (const kernel::Step& step : steps) {
    add_kernel_lines(program, step.first, text);
    add_kernel_lines(program, step.second, text);
    if (step.kind != kernel::Step::Kind::Call) continue;
    const kernel::Kernel& kernel = *program.kernels[static_cast<size_t>(step.kernel)];
    text.append("# ").append(kernel.name);
    if (!step.location.empty()) text.append(" (").append(step.location).append(")");
    text.append(": ").append(kernel.algorithm).append("; items ").append(kernel.parallel_count.to_string());
    if (kernel.tasks > 1) text += ", tasks " + std::to_string(kernel.tasks);
    int64_t scratch = 0;
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      if (kernel.parameters[i].per_task) scratch += kernel::task_stride(kernel.parameters[i]);
      if (kernel.parameters[i].size == 0) continue; // it is prefetched, not read
      for (const kernel::Constant& constant : program.constants)
        if (constant.buffer == step.arguments[i].buffer) text += packing_text(constant);
    }
    if (scratch > 0) text += "; scratch of a task " + scaled(static_cast<double>(scratch), "B");
    text += "\n";
  }
}

} // namespace

std::string plans_text(const CompileOptions& options, const Compilation& c, bool all) {
  constexpr size_t kMaxOfAlgorithm = 8;
  std::vector<plan::Explanation> explanations = c.explanations;
  if (all && !c.plans.empty())
    plan::add_candidates(c.plans[0], {c.target, options.goals}, kMaxOfAlgorithm, explanations);
  return plan::explanation_text(explanations);
}

std::string kernels_text(const Compilation& c) {
  std::string text = "# kernels, in the order of the program\n";
  add_kernel_lines(c.program, c.program.steps, text);
  for (const Variant& variant : c.variants) {
    text += "# kernels for " + variant.cpu.name + "\n";
    add_kernel_lines(variant.program, variant.program.steps, text);
  }
  return text;
}

std::string report_text(const Compilation& c) {
  return artifact::write_report(c.description);
}

std::string manifest_text(const Compilation& c) {
  return artifact::write_manifest(c.description);
}

std::optional<int64_t> parse_size(const std::string& text) {
  return artifact::parse_byte_count(text);
}

std::string feature_help() {
  std::string text =
      "Features for -mattr, which takes LLVM's names; a CPU that has them is often the better choice:\n";
  for (const NamedFeatures& row : named_features()) {
    text += format("  %-8s", std::string(row.architecture).c_str());
    for (std::string_view feature : row.features) text += " " + std::string(feature);
    text += "\n";
  }
  return text;
}

} // namespace firn::driver
