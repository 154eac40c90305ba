// The order of CPUs in one object, and which of them fit together.
#include "compiler/target/cpu_list.h"

#include <algorithm>
#include <bit>

namespace firn {
namespace {

Result check_pair(const NamedTarget& first, const NamedTarget& second) {
  const Machine &a = first.target, &b = second.target;
  if (a.triple != b.triple)
    return usage_error("one object has code for one platform: " + first.name + " is of " + a.triple + ", " +
                       second.name + " of " + b.triple);
  if (a.required_cpu_features == b.required_cpu_features)
    return usage_error(first.name + " and " + second.name +
                       " ask for the same features: code for the second would never be chosen");
  if ((a.cpu.vector_bits == 0) != (b.cpu.vector_bits == 0))
    return usage_error("one object has code for CPUs with vectors, or for CPUs without: " + first.name +
                       " and " + second.name + " differ");
  return {};
}

} // namespace

Expected<std::vector<NamedTarget>> find_targets(std::string_view triple, std::span<const std::string> names) {
  std::vector<NamedTarget> targets;
  for (const std::string& name : names) {
    auto target = find_target(triple, name, "");
    if (!target) return target.error();
    NamedTarget named{name, std::move(*target)};
    for (const NamedTarget& other : targets)
      if (Result fits = check_pair(other, named); !fits) return fits.error();
    targets.push_back(std::move(named));
  }
  std::stable_sort(targets.begin(), targets.end(), [](const NamedTarget& a, const NamedTarget& b) {
    if (a.target.cpu.vector_bits != b.target.cpu.vector_bits)
      return a.target.cpu.vector_bits > b.target.cpu.vector_bits;
    return std::popcount(a.target.required_cpu_features) > std::popcount(b.target.required_cpu_features);
  });
  for (size_t i = 1; i < targets.size(); ++i)
    if (targets[i].target.cpu.vector_bits > 0)
      targets[i].target = with_vectors_of(targets[i].target, targets[0].target);
  return targets;
}

} // namespace firn
