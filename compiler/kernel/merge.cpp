// Kernels that differ in names alone become one: a network's repeated layers share their code. What one of
// them promises of memory in place holds for equal code.
#include "compiler/kernel/text.h"

#include <algorithm>
#include <unordered_map>

namespace firn::kernel {

namespace {

void renumber(std::vector<Step>& steps, const std::vector<int>& numbers) {
  for (Step& step : steps) {
    if (step.kind == Step::Kind::Call) step.kernel = numbers[static_cast<size_t>(step.kernel)];
    renumber(step.first, numbers);
    renumber(step.second, numbers);
  }
}

void mark_called(const std::vector<Step>& steps, std::vector<bool>& called) {
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::Call) called[static_cast<size_t>(step.kernel)] = true;
    mark_called(step.first, called);
    mark_called(step.second, called);
  }
}

void add_promises(const std::vector<InPlace>& from, std::vector<InPlace>& to) {
  for (const InPlace& pair : from)
    if (std::find(to.begin(), to.end(), pair) == to.end()) to.push_back(pair);
}

} // namespace

void merge_equal_kernels(Program& program) {
  std::vector<bool> called(program.kernels.size());
  mark_called(program.steps, called);
  std::unordered_map<std::string, int> by_text;
  std::vector<int> numbers(program.kernels.size(), -1);
  std::vector<std::unique_ptr<Kernel>> kept;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (!called[i]) continue;
    auto [found, is_new] = by_text.try_emplace(kernel_text(*program.kernels[i], /*anonymous=*/true),
                                               static_cast<int>(kept.size()));
    numbers[i] = found->second;
    if (is_new)
      kept.push_back(std::move(program.kernels[i]));
    else
      add_promises(program.kernels[i]->in_place, kept[static_cast<size_t>(found->second)]->in_place);
  }
  program.kernels = std::move(kept);
  renumber(program.steps, numbers);
}

} // namespace firn::kernel
