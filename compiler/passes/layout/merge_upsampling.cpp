// Repetitions of rows and columns as one broadcast, in the form that blocked layouts can follow.
#include "compiler/passes/layout/merge_upsampling.h"

#include "compiler/graph/builder.h"
#include "compiler/passes/match.h"
#include "compiler/passes/reshape_groups.h"

#include <optional>
#include <vector>

namespace firn {
namespace {

std::vector<int64_t> without_units(const Type& type) {
  std::vector<int64_t> dims;
  for (int64_t extent : type.static_dims())
    if (extent != 1) dims.push_back(extent);
  return dims;
}

// A value that repeats each element of `source` along one dim `factor` times in a row. `dim` does not count
// dims of extent 1.
struct Repeat {
  Value source;
  size_t dim;
  int64_t factor;
};

std::optional<Repeat> match_repeat(Value value) {
  if (!value.def->is(Opcode::Reshape)) return std::nullopt;
  const Instruction& broadcast = *value.def->operand(0).def;
  if (!broadcast.is(Opcode::BroadcastInDim) || !broadcast.type().is_static()) return std::nullopt;
  Value source = broadcast.operand(0);
  const std::vector<int64_t>& map = broadcast.attributes().ints("dims");
  std::vector<int64_t> joined; // extents with the repetition in the dim before it
  std::optional<size_t> dim;
  int64_t factor = 1;
  for (int d = 0; d < broadcast.type().rank(); ++d) {
    int64_t extent = broadcast.type().dim(d);
    if (extent == 1) continue;
    size_t from = 0;
    while (from < map.size() && map[from] != d) ++from;
    if (from < map.size() && source.dim(static_cast<int>(from)) == extent) {
      joined.push_back(extent);
      continue;
    }
    if (from < map.size() || dim || joined.empty()) return std::nullopt;
    dim = joined.size() - 1;
    factor = extent;
    joined.back() *= factor;
  }
  if (!dim || joined != without_units(value.type())) return std::nullopt;
  bool units = source.def->is(Opcode::Reshape) &&
               changes_only_units(source.def->operand(0).type().dims, source.type().dims);
  return Repeat{units ? source.def->operand(0) : source, *dim, factor};
}

// broadcast [n, c, h, w] to [n, c, h, fh, w, fw], reshaped: the value if it is rows and columns repeated.
Value merged(Value value, const std::function<bool(Value)>& wanted) {
  std::vector<int64_t> dims = without_units(value.type()), factors(dims.size(), 1);
  Value source = value;
  while (auto repeat = match_repeat(source)) {
    if (without_units(repeat->source.type()).size() != dims.size()) return {};
    factors[repeat->dim] *= repeat->factor;
    source = repeat->source;
  }
  if (source == value || source.rank() != value.rank() || !wanted(source)) return {};
  std::vector<Dim> expanded;
  std::vector<int64_t> map;
  size_t at = 0;
  for (int d = 0; d < source.rank(); ++d) {
    int64_t factor = source.dim(d) == 1 ? 1 : factors[at++];
    if (source.dim(d) * factor != value.dim(d) || (d < 2 && factor != 1)) return {};
    map.push_back(static_cast<int64_t>(expanded.size()));
    expanded.push_back(Dim(source.dim(d)));
    if (factor != 1) expanded.push_back(Dim(factor));
  }
  Region& region = *value.def->parent();
  Type type = source.type();
  type.dims = std::move(expanded);
  Instruction* broadcast =
      region.append(Opcode::BroadcastInDim, {source}, {type}, {{"dims", map}}, value.def);
  Instruction* reshape = region.append(Opcode::Reshape, {broadcast->result()}, {value.type()}, {}, value.def);
  for (Instruction* made : {broadcast, reshape}) made->set_location(value.def->location());
  return reshape->result();
}

} // namespace

bool merge_upsampling(Region& region, const std::function<bool(Value)>& wanted) {
  bool changed = false;
  std::vector<Instruction*> all = region.snapshot();
  // Whole chains before their parts.
  for (size_t i = all.size(); i-- > 0;) {
    Instruction& instruction = *all[i];
    bool repeats = instruction.is(Opcode::Reshape) && instruction.has_uses() &&
                   instruction.type().is_static() && instruction.type().rank() == 4;
    if (repeats)
      if (Value value = merged(instruction.result(), wanted)) {
        region.replace_uses(instruction.result(), value);
        changed = true;
      }
    if (changed && !instruction.has_uses() &&
        (instruction.is(Opcode::Reshape) || instruction.is(Opcode::BroadcastInDim)))
      region.erase(&instruction);
  }
  return changed;
}

} // namespace firn
