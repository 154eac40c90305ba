// Names with features, and the order of CPUs in one object.
#include "compiler/target/cpu_list.h"

#include <algorithm>
#include <bit>

namespace firn {
namespace {

// "v8.2a" of "armv8.2-a"; empty for other names.
std::string arm_architecture(std::string_view name) {
  bool is_one = (name.starts_with("armv8") || name.starts_with("armv9")) && name.ends_with("-a");
  return is_one ? std::string(name.substr(3, name.size() - 5)) + "a" : "";
}

// "+a,+b" of "+a+b".
std::string feature_list(std::string_view text) {
  std::string list;
  for (char c : text) list += c == '+' && !list.empty() ? std::string(",+") : std::string(1, c);
  return list;
}

Result check_pair(const NamedTarget& first, const NamedTarget& second) {
  const TargetInfo &a = first.target, &b = second.target;
  if (a.triple != b.triple)
    return usage_error("one object has code for one platform: " + first.name + " is of " + a.triple + ", " +
                       second.name + " of " + b.triple);
  if (a.required_cpu_features == b.required_cpu_features)
    return usage_error(first.name + " and " + second.name +
                       " ask for the same features: code for the second would never be chosen");
  if ((a.vector_bits == 0) != (b.vector_bits == 0))
    return usage_error("one object has code for CPUs with vectors, or for CPUs without: " + first.name +
                       " and " + second.name + " differ");
  return {};
}

} // namespace

Expected<NamedTarget> find_named_target(std::string_view triple, std::string_view name) {
  size_t end = std::min(name.find('+'), name.size());
  std::string cpu(name.substr(0, end)), features = feature_list(name.substr(end));
  if (std::string version = arm_architecture(cpu); !version.empty()) {
    cpu = "generic";
    features = "+" + version + (features.empty() ? "" : "," + features);
    if (triple.empty()) triple = "aarch64-unknown-linux-gnu";
  }
  auto target = find_target(triple, cpu, features);
  if (!target) return target.error();
  return NamedTarget{std::string(name), std::move(*target)};
}

Expected<std::vector<NamedTarget>> find_targets(std::string_view triple, std::span<const std::string> names) {
  std::vector<NamedTarget> targets;
  for (const std::string& name : names) {
    auto target = find_named_target(triple, name);
    if (!target) return target.error();
    for (const NamedTarget& other : targets)
      if (Result fits = check_pair(other, *target); !fits) return fits.error();
    targets.push_back(std::move(*target));
  }
  std::stable_sort(targets.begin(), targets.end(), [](const NamedTarget& a, const NamedTarget& b) {
    if (a.target.vector_bits != b.target.vector_bits) return a.target.vector_bits > b.target.vector_bits;
    return std::popcount(a.target.required_cpu_features) > std::popcount(b.target.required_cpu_features);
  });
  for (size_t i = 1; i < targets.size(); ++i)
    if (targets[i].target.vector_bits > 0)
      targets[i].target = with_vectors_of(targets[i].target, targets[0].target);
  return targets;
}

} // namespace firn
