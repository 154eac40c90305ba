// See describe_dims.h.
#include "compiler/driver/describe_dims.h"

#include <algorithm>
#include <numeric>

namespace firn::driver {
namespace {

// The name of the graph's symbol without the suffix for its multiple.
std::string public_name(const onnx::VaryingDim& dim) {
  std::string suffix = "_by_" + std::to_string(dim.range.multiple), name = dim.symbol->name;
  if (dim.range.multiple > 1 && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

} // namespace

Result describe_dims(const kernel::Program& program, const std::vector<onnx::VaryingDim>& dims,
                     artifact::ModelDescription& description) {
  for (const SymbolRef& symbol : program.extents) {
    auto dim =
        std::find_if(dims.begin(), dims.end(), [&](const auto& each) { return each.symbol == symbol; });
    if (dim == dims.end())
      return unsupported_error("dim '" + symbol->name + "' varies, but no input decides it");
    bool same = dim->range.multiple == 1;
    description.dims.push_back(
        {same ? symbol
              : std::make_shared<Symbol>(Symbol{public_name(*dim), dim->range.lower, dim->range.upper}),
         dim->name, "", dim->range.multiple, dim->range.values});
  }
  return {};
}

// With value = multiple * symbol, c * symbol is c / multiple * value, or c / g * (value / (multiple / g)) for
// a common divisor g.
IntExpr public_extent(const IntExpr& extent, const kernel::Program& program,
                      const artifact::ModelDescription& description) {
  IntExpr result = extent;
  for (size_t i = 0; i < program.extents.size(); ++i) {
    const SymbolRef& symbol = program.extents[i];
    const artifact::DimDescription& dim = description.dims[i];
    if (dim.symbol == symbol) continue;
    IntExpr value = IntExpr::symbol(dim.symbol);
    if (auto factor = result.linear_coefficient(*symbol)) {
      int64_t common = std::gcd(*factor, dim.multiple);
      result = result - IntExpr(*factor) * IntExpr::symbol(symbol) +
               IntExpr(*factor / common) * floor_div(value, dim.multiple / common);
    }
    result = result.substitute([&](const Symbol& each) -> std::optional<IntExpr> {
      if (&each != symbol.get()) return {};
      return floor_div(value, dim.multiple);
    });
  }
  return result;
}

} // namespace firn::driver
