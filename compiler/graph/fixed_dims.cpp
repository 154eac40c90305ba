// See fixed_dims.h.
#include "compiler/graph/fixed_dims.h"

#include <functional>
#include <utility>

namespace firn {

FixedDims::FixedDims(Module& module, std::map<const Symbol*, int64_t> values) : values_(std::move(values)) {
  for (const auto& function : module.functions()) fix(function->body());
}

FixedDims::~FixedDims() {
  for (Result& each : results_) each.instruction->set_type(std::move(each.type), each.number);
  for (Range& each : ranges_) each.instruction->attributes().set(each.attribute, std::move(each.type));
}

bool fix_dims(Type& type, const std::map<const Symbol*, int64_t>& values) {
  bool changed = false;
  for (Dim& dim : type.dims) {
    IntExpr extent = dim.extent.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
      auto found = values.find(&symbol);
      return found == values.end() ? std::nullopt : std::optional(IntExpr(found->second));
    });
    if (extent == dim.extent) continue;
    dim.extent = std::move(extent);
    changed = true;
  }
  return changed;
}

namespace {

using OnResult = std::function<void(Instruction&, int number, Type fixed)>;
using OnRange = std::function<void(Instruction&, const std::string& attribute, Type fixed)>;

// Calls back for every type of a result or an attribute that changes.
void visit_fixed(const Region& region, const std::map<const Symbol*, int64_t>& values, const OnResult& result,
                 const OnRange& range) {
  for (const auto& instruction : region.instructions()) {
    for (int i = 0; i < instruction->num_results(); ++i)
      if (Type type = instruction->type(i); fix_dims(type, values)) result(*instruction, i, std::move(type));
    std::vector<std::pair<std::string, Type>> ranges;
    for (const auto& [name, value] : instruction->attributes())
      if (const Type* type = std::get_if<Type>(&value)) ranges.emplace_back(name, *type);
    for (auto& [name, type] : ranges)
      if (fix_dims(type, values)) range(*instruction, name, std::move(type));
    for (int i = 0; i < instruction->num_regions(); ++i)
      visit_fixed(instruction->region(i), values, result, range);
  }
}

} // namespace

void fix_dims(Region& region, const std::map<const Symbol*, int64_t>& values) {
  visit_fixed(
      region, values,
      [](Instruction& instruction, int number, Type fixed) {
        instruction.set_type(std::move(fixed), number);
      },
      [](Instruction& instruction, const std::string& attribute, Type fixed) {
        instruction.attributes().set(attribute, std::move(fixed));
      });
}

void FixedDims::fix(Region& region) {
  visit_fixed(
      region, values_,
      [&](Instruction& instruction, int number, Type fixed) {
        results_.push_back({&instruction, number, instruction.type(number)});
        instruction.set_type(std::move(fixed), number);
      },
      [&](Instruction& instruction, const std::string& attribute, Type fixed) {
        ranges_.push_back(
            {&instruction, attribute, std::get<Type>(*instruction.attributes().find(attribute))});
        instruction.attributes().set(attribute, std::move(fixed));
      });
}

} // namespace firn
