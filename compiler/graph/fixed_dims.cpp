// See fixed_dims.h.
#include "compiler/graph/fixed_dims.h"

#include <utility>

namespace firn {

FixedDims::FixedDims(Module& module, std::map<const Symbol*, int64_t> values) : values_(std::move(values)) {
  for (const auto& function : module.functions()) fix(function->body());
}

FixedDims::~FixedDims() {
  for (Result& each : results_) each.instruction->set_type(std::move(each.type), each.number);
  for (Range& each : ranges_) each.instruction->attributes().set(each.attribute, std::move(each.type));
}

bool FixedDims::fix(Type& type) const {
  bool changed = false;
  for (Dim& dim : type.dims) {
    IntExpr extent = dim.extent.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
      auto found = values_.find(&symbol);
      return found == values_.end() ? std::nullopt : std::optional(IntExpr(found->second));
    });
    if (extent == dim.extent) continue;
    dim.extent = std::move(extent);
    changed = true;
  }
  return changed;
}

void FixedDims::fix(Region& region) {
  for (const auto& instruction : region.instructions()) {
    for (int i = 0; i < instruction->num_results(); ++i) {
      Type type = instruction->type(i);
      if (!fix(type)) continue;
      results_.push_back({instruction.get(), i, instruction->type(i)});
      instruction->set_type(std::move(type), i);
    }
    std::vector<std::pair<std::string, Type>> ranges;
    for (const auto& [name, value] : instruction->attributes())
      if (const Type* type = std::get_if<Type>(&value)) ranges.emplace_back(name, *type);
    for (auto& [name, type] : ranges) {
      Type before = type;
      if (!fix(type)) continue;
      ranges_.push_back({instruction.get(), name, std::move(before)});
      instruction->attributes().set(name, std::move(type));
    }
    for (int i = 0; i < instruction->num_regions(); ++i) fix(instruction->region(i));
  }
}

} // namespace firn
