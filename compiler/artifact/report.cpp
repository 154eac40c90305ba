// The report and the budget check; see report.h.
#include "compiler/artifact/report.h"

#include "compiler/artifact/text_template.h"
#include "compiler/artifact/training_step.h"
#include "compiler/artifact/varying_dims.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace firn::artifact {
namespace {

std::string row(const std::string& name, const std::string& calls, const std::string& flops,
                const std::string& bytes, const std::string& code) {
  std::array<char, 320> line;
  std::snprintf(line.data(), line.size(), "%-44.200s %6s %12s %10s %10s\n", name.c_str(), calls.c_str(),
                flops.c_str(), bytes.c_str(), code.c_str());
  return line.data();
}

std::string kernel_table(const ModelDescription& model) {
  if (model.kernels.empty()) return "";
  std::vector<const KernelDescription*> kernels;
  for (const KernelDescription& kernel : model.kernels) kernels.push_back(&kernel);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto* lhs, const auto* rhs) { return lhs->flops > rhs->flops; });
  std::string text = row("kernel", "calls", "FLOP", "traffic", "code");
  for (const KernelDescription* kernel : kernels)
    text += row(comment_text(kernel->name), std::to_string(kernel->calls), human_count(kernel->flops),
                human_bytes(kernel->bytes), human_bytes(kernel->code_bytes));
  return text;
}

std::string ratio(int64_t value, int64_t bound) {
  std::array<char, 32> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.3f",
                bound == 0 ? 1.0 : static_cast<double>(value) / static_cast<double>(bound));
  return buffer.data();
}

// "; largest: conv1.weight 12.3 kB, fc.weight 4.0 kB"
std::string largest(std::vector<Contributor> contributors) {
  constexpr size_t shown = 5;
  std::stable_sort(contributors.begin(), contributors.end(),
                   [](const Contributor& lhs, const Contributor& rhs) { return lhs.bytes > rhs.bytes; });
  std::string text;
  for (size_t i = 0; i < contributors.size() && i < shown; ++i)
    text += (i == 0 ? "; largest: " : ", ") + contributors[i].name + " " + human_bytes(contributors[i].bytes);
  return text;
}

Result check(const char* what, int64_t used, const std::optional<int64_t>& budget,
             std::vector<Contributor> contributors) {
  return budget ? check_budget(what, used, *budget, std::move(contributors)) : Result();
}

std::string line(const std::string& name, const std::string& value) {
  return name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + value + "\n";
}

std::string trainer_lines(const ModelDescription& trainer) {
  std::string text =
      line("trainer",
           "arena " + with_separators(trainer.arena_bytes) + " B, lower bound " +
               with_separators(trainer.arena_lower_bound) + " B, with " +
               with_separators(moment_bytes(trainer)) + " B that the optimizer keeps" +
               (trainer.tape_bytes ? " and a tape of " + with_separators(*trainer.tape_bytes) + " B at most"
                                   : ""));
  for (const TrainingFunction& function : trainer.functions)
    text += line("@" + comment_text(function.name), human_count(function.flops) + "FLOP");
  return text;
}

// The fullest step, and what lives across it, largest first.
std::string peak_lines(const PeakDescription& peak) {
  constexpr size_t kMaxShown = 12;
  if (peak.alive.empty()) return "";
  std::string text =
      line("peak", with_separators(peak.bytes) + " B in step " + std::to_string(peak.step + 1) + " of " +
                       std::to_string(peak.steps) + ", " + comment_text(peak.computes));
  std::vector<PeakDescription::Alive> alive = peak.alive;
  std::stable_sort(alive.begin(), alive.end(),
                   [](const auto& a, const auto& b) { return a.what.bytes > b.what.bytes; });
  for (size_t i = 0; i < std::min(alive.size(), kMaxShown); ++i)
    text += line("", with_separators(alive[i].what.bytes) + " B of " + comment_text(alive[i].what.name) +
                         (alive[i].until.empty() ? ", to the end of the run"
                                                 : ", until " + comment_text(alive[i].until)));
  if (alive.size() > kMaxShown) text += line("", std::to_string(alive.size() - kMaxShown) + " more");
  return text;
}

} // namespace

std::string write_report(const ModelDescription& model) {
  std::string text;
  if (model.raw_weight_bytes)
    text += line("raw weights", with_separators(*model.raw_weight_bytes) + " B in the object, " +
                                    (model.raw_in_place ? "read there" : "prepared in memory"));
  text += line("weights", with_separators(model.weight_bytes) + " B, " + with_separators(model.parameters) +
                              " parameters");
  for (const CpuDescription& cpu : model.cpus)
    text += line(cpu.name, cpu.own_weight_bytes == 0 ? "reads the weights in the form that others do"
                                                     : "has " + with_separators(cpu.own_weight_bytes) +
                                                           " B of weights in a form of its own");
  for (const SpecializationDescription& specializations : model.specializations)
    text += line("hot " + specializations.name,
                 with_separators(specializations.code_bytes) + " B of code of its own, " +
                     with_separators(specializations.own_weight_bytes) + " B of weights");
  if (model.shared_kernels > 0)
    text += line("all CPUs", "run " + std::to_string(model.shared_kernels) +
                                 " kernels that take little time in the code for " + model.cpus.back().name);
  text += line("code", with_separators(model.code_bytes) + " B");
  text += line("arena", with_separators(model.arena_bytes) + " B, lower bound " +
                            with_separators(model.arena_lower_bound) + " B, ratio " +
                            ratio(model.arena_bytes, model.arena_lower_bound));
  text += peak_lines(model.peak);
  if (model.parameter_bytes > 0)
    text += line("parameters", with_separators(model.parameter_bytes) + " B in RAM");
  if (has_trainer(model)) text += trainer_lines(trainer_of(model));
  if (model.tape_bytes)
    text += line("tape", "at most " + with_separators(*model.tape_bytes) +
                             " B of the arena, kept for the backward computation");
  text += line("stack", with_separators(model.stack_bytes) + " B");
  text +=
      line("when linked", "functions of the runtime that the program uses, and the stack of run()'s callers");
  text += line("work", human_count(model.flops) + (model.dims.empty() ? "FLOP" : "FLOP at the bounds"));
  if (!model.dims.empty()) text += line("dims", dims_text(model));
  text += line("target", model.triple + ", " + model.cpu);
  const std::string kernels = kernel_table(model);
  return kernels.empty() ? text : text + "\n" + kernels;
}

Result check_budget(const std::string& what, int64_t used, int64_t budget,
                    std::vector<Contributor> contributors) {
  if (used <= budget) return {};
  return model_error(what + " of " + with_separators(used) + " B exceeds the budget of " +
                     with_separators(budget) + " B by " + with_separators(used - budget) + " B" +
                     largest(std::move(contributors)));
}

Result check_budgets(const ModelDescription& model, const Budgets& budgets) {
  std::vector<Contributor> flash = model.weights;
  for (const KernelDescription& kernel : model.kernels)
    flash.push_back({"code of " + kernel.name, kernel.code_bytes});
  if (Result result = check("flash use", model.embedded_weight_bytes() + model.code_bytes,
                            budgets.flash_bytes, std::move(flash));
      !result)
    return result;
  std::vector<Contributor> ram;
  for (const PeakDescription::Alive& each : model.peak.alive) ram.push_back(each.what);
  ram.push_back({"stack", model.stack_bytes});
  int64_t prepared = model.prepared_weight_bytes();
  if (prepared > 0) ram.push_back({"prepared weights", prepared});
  if (model.parameter_bytes > 0) ram.push_back({"parameters", model.parameter_bytes});
  // A program that trains may run the model in turns, in an arena that is no larger as a rule.
  int64_t arena = model.arena_bytes;
  if (has_trainer(model)) {
    const int64_t trainer = trainer_of(model).arena_bytes;
    ram.push_back({"the arena of the training step", trainer});
    arena = std::max(arena, trainer);
  }
  return check("RAM use", arena + model.parameter_bytes + model.stack_bytes + prepared, budgets.ram_bytes,
               std::move(ram));
}

std::optional<int64_t> parse_byte_count(const std::string& text) {
  constexpr std::pair<const char*, int> kSuffixes[] = {{"", 0}, {"K", 10}, {"k", 10}, {"M", 20}, {"G", 30}};
  constexpr size_t kMaxDigits = 9; // behind the point
  int64_t value = 0, part = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto [at, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || value < 0 || at == begin || *begin == '-') return std::nullopt;
  std::string suffix(at, end);
  int64_t scale = 1; // ten to the power of the fraction's digits
  if (suffix.starts_with(".")) {
    const size_t digits = suffix.find_first_not_of("0123456789", 1);
    const size_t length = std::min(digits, suffix.size()) - 1;
    if (length == 0 || length > kMaxDigits || digits == std::string::npos) return std::nullopt;
    std::from_chars(suffix.data() + 1, suffix.data() + 1 + length, part);
    for (size_t i = 0; i < length; ++i) scale *= 10;
    suffix.erase(0, length + 1);
  }
  for (const auto& [name, shift] : kSuffixes)
    if (suffix == name && value <= (INT64_MAX >> shift) - 1)
      return (value << shift) + (part << shift) / scale;
  return std::nullopt;
}

} // namespace firn::artifact
