// See specializations.h. The module stays the same one, with numbers in the place of symbols while a program
// is made: plans of the same instructions keep the form in which constants are packed.
#include "compiler/driver/specializations.h"

#include "compiler/driver/variants.h"
#include "compiler/graph/fixed_dims.h"
#include "compiler/plan/plan_function.h"

#include <algorithm>

namespace firn::driver {
namespace {

using Values = std::map<std::string, int64_t>;

bool allows(const onnx::DimRange& range, int64_t value) {
  if (value < range.lower || value > range.upper || value % range.multiple != 0) return false;
  return range.values.empty() ||
         std::find(range.values.begin(), range.values.end(), value) != range.values.end();
}

std::string to_text(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
  return text;
}

Expected<std::map<const Symbol*, int64_t>> symbol_values(const Values& values, const CompileOptions& options,
                                                         const Compilation& c) {
  std::map<const Symbol*, int64_t> result;
  for (const auto& [name, value] : values) {
    auto named = [&name = name](const onnx::VaryingDim& dim) { return dim.name == name; };
    auto dim = std::find_if(c.dims.begin(), c.dims.end(), named);
    auto given = options.import.dims.find(name); // ranges of one value are numbers too
    if (dim == c.dims.end() && given == options.import.dims.end())
      return usage_error("--hot " + to_text(values) + ": no dim '" + name +
                         "' varies; give it a range: --dim " + name + "=1.." + std::to_string(value));
    if (dim == c.dims.end() ? given->second != value : !allows(dim->range, value))
      return usage_error("--hot " + to_text(values) + ": " + std::to_string(value) +
                         " is not among the values that --dim gives '" + name + "'");
    if (dim != c.dims.end()) result[dim->symbol.get()] = value / dim->range.multiple;
  }
  return result;
}

} // namespace

Result add_specializations(const CompileOptions& options, Compilation& c, Stages& stages) {
  for (const Values& values : options.specializations) {
    auto fixed = symbol_values(values, options, c);
    if (!fixed) return fixed.error();
    std::vector<std::pair<size_t, int64_t>> extents;
    for (size_t i = 0; i < c.program.extents.size(); ++i)
      if (auto found = fixed->find(c.program.extents[i].get()); found != fixed->end())
        extents.emplace_back(i, found->second);
    if (extents.empty()) continue; // the program depends on none of them
    FixedDims dims(*c.module, *fixed);
    for (size_t cpu = 0; cpu < c.cpus.size(); ++cpu) {
      plan::PlanOptions planning{c.cpus[cpu].target, options.goals, c.schedules ? &*c.schedules : nullptr};
      planning.packed_as = c.plans.data();
      planning.ignores_written = true;
      auto plans = plan::plan_function(c.module->main(), planning);
      if (!plans) return plans.error();
      ProgramSource further = further_source(options, c, cpu);
      ProgramSource source{further.module,   further.entry, *plans,
                           further.lowering, further.arena, further.holder};
      source.suffix = ".hot" + std::to_string(c.specializations.size());
      auto made = make_program(source, stages);
      if (!made) return made.error();
      c.specializations.push_back(
          {to_text(values), cpu, extents, std::move(made->program), made->own_weight_bytes});
    }
  }
  return {};
}

} // namespace firn::driver
