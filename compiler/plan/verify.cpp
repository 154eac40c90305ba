// Refuses what no kernel computes, before anything is lowered.
#include "compiler/plan/verify.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/computed_indices.h"
#include "compiler/graph/tree_ensemble.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/views.h"
#include "compiler/support/regex.h"

#include <algorithm>

namespace firn::plan {
namespace {

std::string describe(const Instruction& instruction) {
  std::string text = std::string(opcode_name(instruction.opcode()));
  if (instruction.is(Opcode::Composite)) text += " " + instruction.attributes().word("name");
  if (instruction.is(Opcode::Fusion)) text += " " + instruction.attributes().word("kind", "");
  return (instruction.location().empty() ? "instruction" : instruction.location()) + " (" + text + ")";
}

// Whether every dim is a number or an expression over bounded symbols, and all of a counted one are known.
bool has_planned_extents(const Type& type, const std::vector<SymbolRef>& known) {
  std::vector<int64_t> bounds;
  for (const Dim& dim : type.dims) {
    for (const SymbolRef& symbol : dim.extent.symbols())
      if (symbol->lower < 0 || symbol->upper > kLargestExtent ||
          (dim.counted && std::find(known.begin(), known.end(), symbol) == known.end()))
        return false;
    bounds.push_back(dim.extent.upper_bound());
  }
  return checked_num_elements(bounds).has_value();
}

bool may_be_negative(const Type& type) {
  return std::any_of(type.dims.begin(), type.dims.end(),
                     [](const Dim& dim) { return dim.extent.lower_bound() < 0; });
}

// Floats and integers of 64 bits are read and written; of others the frontend makes these.
bool casts_text(const Instruction& instruction) {
  if (!instruction.is(Opcode::Convert)) return false;
  DType from = instruction.operand(0).dtype(), to = instruction.type().dtype;
  if (from == to) return true;
  DType number = from == DType::String ? to : from;
  return number == DType::F32 || number == DType::F64 || number == DType::I64 ||
         (from == DType::U64 && to == DType::String);
}

// Strings are moved, chosen among, and what ops on text make of them.
bool takes_strings(const Instruction& instruction) {
  switch (op_info(instruction.opcode()).op_class) {
  case OpClass::Control:
  case OpClass::Text: return true;
  case OpClass::Movement: return instruction.attributes().word("reduction", "none") == "none";
  case OpClass::Shape: return !instruction.is(Opcode::NonZero);
  case OpClass::Leaf: return instruction.is(Opcode::Parameter) || instruction.is(Opcode::Constant);
  default:
    return instruction.is(Opcode::Compare) || instruction.is(Opcode::Select) || casts_text(instruction);
  }
}

// Whether legalise-narrow-types leaves instructions with operands or results of such a type: no code
// computes in types of 8 bits and fewer but in integers of 8, and packed elements are converted alone.
bool takes_type(const Instruction& instruction, DType dtype, bool is_result) {
  if (dtype == DType::String) return takes_strings(instruction);
  if (!is_sub_byte(dtype) && !is_small_float(dtype)) return true;
  if (instruction.is(Opcode::Convert) || instruction.is(Opcode::BitcastConvert)) return true;
  if (instruction.is(Opcode::Parameter) || instruction.is(Opcode::Constant)) return true;
  bool has_region = instruction.is(Opcode::Fusion) || is_blocked_dot(instruction);
  if (is_sub_byte(dtype)) return has_region && !is_result;
  OpClass op_class = op_info(instruction.opcode()).op_class;
  if (op_class == OpClass::Movement) return instruction.attributes().word("reduction", "none") == "none";
  return op_class == OpClass::Control || op_class == OpClass::Shape || instruction.is(Opcode::Select);
}

// Whether a constant of strings takes more bytes than offsets within them can say.
bool is_too_long(const Instruction& instruction) {
  if (!instruction.is(Opcode::Constant) || instruction.type().dtype != DType::String) return false;
  int64_t bytes = 0;
  for (const std::string& each : instruction.literal()->string_values())
    bytes += static_cast<int64_t>(each.size());
  return bytes > kMaxTextBytes;
}

// Why a pattern has no table; empty: it has, or there is no pattern.
std::string lacks_table(const Instruction& instruction) {
  if (!instruction.is(Opcode::TextMatch)) return "";
  auto regex = parse_regex(std::get<std::string>(*instruction.attributes().find("pattern")));
  if (!regex) return regex.error().message;
  auto table = make_regex_table(*regex);
  return table ? "" : table.error().message;
}

// The symbol that the instruction counts, if it does.
void add_count(const Instruction& instruction, std::vector<SymbolRef>& counts) {
  if (!instruction.is(Opcode::NonZero)) return;
  for (const SymbolRef& symbol : instruction.type().dims[1].extent.symbols()) counts.push_back(symbol);
}

// Only values whose shape is known when they are computed and whose elements machines know can be lowered.
// `known`: the symbols known where the region begins.
Result check_types(const Region& region, std::vector<SymbolRef> known) {
  for (const auto& instruction : region.instructions()) {
    add_count(*instruction, known);
    for (Value operand : instruction->operands())
      if (operand.type().is_tensor() && !takes_type(*instruction, operand.dtype(), /*is_result=*/false))
        return unsupported_error(describe(*instruction) + ": no code can be made for operands of type " +
                                 operand.type().to_string());
    for (int i = 0; i < instruction->num_results(); ++i) {
      const Type& type = instruction->type(i);
      if (!type.is_tensor() || !takes_type(*instruction, type.dtype, /*is_result=*/true) ||
          (is_complex(type.dtype) && !instruction->is(Opcode::Constant)))
        return unsupported_error(describe(*instruction) + ": no code can be made for values of type " +
                                 type.to_string());
      if (!type.is_static() && !has_planned_extents(type, known))
        return unsupported_error(describe(*instruction) + ": the shape of " + type.to_string() +
                                 " depends on data, only a run knows it");
      if (may_be_negative(type))
        return unsupported_error(describe(*instruction) + ": a dim of " + type.to_string() +
                                 " may be negative, by the bounds of its symbols");
    }
    if (std::string lack = lacks_table(*instruction); !lack.empty())
      return unsupported_error(describe(*instruction) + ": the pattern cannot be compiled: " + lack);
    if (is_too_long(*instruction))
      return unsupported_error(describe(*instruction) + ": its strings take more than " +
                               std::to_string(kMaxTextBytes) + " bytes");
    if (read_tree_ensemble(*instruction)) continue; // whose kernel does without the loop of its body
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (Result result = check_types(instruction->region(i), known); !result) return result;
  }
  return {};
}

// The symbols that inputs decide.
std::vector<SymbolRef> symbols_of_inputs(const Region& region) {
  std::vector<SymbolRef> symbols;
  for (const Instruction* parameter : region.parameters())
    for (const Dim& dim : parameter->type().dims)
      if (!dim.counted)
        for (const SymbolRef& symbol : dim.extent.symbols()) symbols.push_back(symbol);
  return symbols;
}

std::string name_at(const std::vector<std::string>& names, size_t at, const char* fallback) {
  return at < names.size() && !names[at].empty() ? names[at] : fallback + std::to_string(at);
}

Result check_states(const Function& entry) {
  for (size_t i = 0; i < entry.body().parameters().size(); ++i) {
    if (!entry.is_state(i)) continue;
    Value state = entry.body().parameter(static_cast<int>(i));
    std::string place = "state '" + name_at(entry.parameter_names, i, "input") + "': ";
    if (state.dtype() == DType::String)
      return unsupported_error(place + "states of strings are not supported: a run's bytes end with it");
    if (!state.type().is_static())
      return unsupported_error(place + "dims of states that vary are not supported yet");
  }
  return {};
}

// Every instruction that is computed has a plan, or instructions within that have.
Result check_planned(const Region& region, const KernelPlans& plans) {
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Constant) || instruction->is(Opcode::Parameter)) continue;
    const KernelPlan* plan = plans.find(*instruction);
    bool is_view = instruction->num_results() == 1 && instruction->num_operands() > 0 &&
                   view_offset(*instruction).has_value();
    if (plan || is_view || is_dead(*instruction)) continue;
    if (!holds_kernels(*instruction))
      return unsupported_error(describe(*instruction) + (has_static_types(*instruction)
                                                             ? ": there is no kernel for this operation yet"
                                                             : ": there is no kernel yet for this operation "
                                                               "with dims that vary"));
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (Result result = check_planned(instruction->region(i), plans); !result) return result;
  }
  return {};
}

} // namespace

Result verify(const Function& entry, const KernelPlans& plans) {
  const Region& body = entry.body();
  if (Result result = check_types(body, symbols_of_inputs(body)); !result) return result;
  if (Result result = check_states(entry); !result) return result;
  return check_planned(body, plans);
}

} // namespace firn::plan
