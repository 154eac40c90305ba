// Names of passes in lists, and the limit on rewrites.
#include "compiler/support/pass_list.h"

#include "compiler/support/nearest.h"
#include "compiler/support/words.h"

#include <algorithm>

namespace firn {

bool RewriteLimit::take_rewrite() const {
  if (!rewrites_left) return true;
  if (*rewrites_left <= 0) return false;
  --*rewrites_left;
  return true;
}

void PassRefusal::refuse(Diagnostic reason) const {
  FIRN_CHECK(refused, "a pass refused something outside a run");
  if (!*refused) *refused = std::move(reason);
}

std::string join_steps(std::span<const PassStep> steps, bool for_target) {
  std::string list;
  for (const PassStep& step : steps)
    if (for_target || !step.needs_target) list += (list.empty() ? "" : ",") + std::string(step.passes);
  return list;
}

Expected<std::vector<size_t>> parse_pass_list(const std::string& list,
                                              const std::vector<std::string>& known) {
  std::vector<size_t> numbers;
  for (const std::string& name : split(list, ',')) {
    if (name.empty() || name == "none") continue;
    auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      std::string near = nearest_words(name, known), names;
      for (const std::string& word : known) names += (names.empty() ? "" : ", ") + word;
      return usage_error("unknown pass '" + name + "', wanted one of: " + names +
                         (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    numbers.push_back(static_cast<size_t>(found - known.begin()));
  }
  return numbers;
}

} // namespace firn
