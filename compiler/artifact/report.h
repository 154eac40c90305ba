// Text about a compiled model for people: the report of --report, and budgets.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/support/diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace firn::artifact {

// Several lines: sizes, arena against its lower bound, and a table of kernels by FLOP.
std::string write_report(const ModelDescription& model);

struct Budgets {
  std::optional<int64_t> flash_bytes; // embedded weights and code
  std::optional<int64_t> ram_bytes;   // arena, stack and prepared weights
};

// An error that names what exceeds its budget, by how much, and the largest contributors.
Result check_budgets(const ModelDescription& model, const Budgets& budgets);

// Such an error if `used` bytes of what is named, such as "RAM use", exceed the budget.
Result check_budget(const std::string& what, int64_t used, int64_t budget,
                    std::vector<Contributor> contributors);

// "64K", "1.5M", "2G" (powers of 1024; a fraction of a byte is dropped) or a plain number of bytes; nothing
// for other text.
std::optional<int64_t> parse_byte_count(const std::string& text);

} // namespace firn::artifact
