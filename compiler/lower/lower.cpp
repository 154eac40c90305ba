// The walk over @main: inputs and outputs get their buffers, values their places, instructions their
// kernels.
#include "compiler/lower/lower.h"

#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/computed_indices.h"
#include "compiler/graph/tree_ensemble.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/placement.h"
#include "compiler/lower/text/text.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/views.h"
#include "compiler/support/regex.h"

#include <algorithm>

namespace firn::lower {
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
      if (symbol->lower < 0 || symbol->upper > kernel::kLargestExtent ||
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
          (!has_machine_type(type.dtype) && !instruction->is(Opcode::Constant)))
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

void add_symbols(const Region& region, std::vector<SymbolRef>& symbols) {
  for (const auto& instruction : region.instructions()) {
    for (int i = 0; i < instruction->num_results(); ++i)
      for (const Dim& dim : instruction->type(i).dims)
        for (const SymbolRef& symbol : dim.extent.symbols()) symbols.push_back(symbol);
    for (int i = 0; i < instruction->num_regions(); ++i) add_symbols(instruction->region(i), symbols);
  }
}

// Symbols that a run counts.
void add_counts(const Region& region, std::vector<SymbolRef>& counts) {
  for (const auto& instruction : region.instructions()) {
    add_count(*instruction, counts);
    for (int i = 0; i < instruction->num_regions(); ++i) add_counts(instruction->region(i), counts);
  }
}

// The module's symbols that types of the region mention and no step counts, in the module's order.
std::vector<SymbolRef> used_symbols(const Module& module, const Region& region) {
  std::vector<SymbolRef> mentioned, counts, used;
  add_symbols(region, mentioned);
  add_counts(region, counts);
  auto is_in = [](const std::vector<SymbolRef>& symbols, const SymbolRef& symbol) {
    return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
  };
  for (const SymbolRef& symbol : module.symbols)
    if (is_in(mentioned, symbol) && !is_in(counts, symbol)) used.push_back(symbol);
  return used;
}

kernel::Buffer io_buffer(std::string name, kernel::Space space, const Type& type, int index) {
  kernel::Buffer buffer;
  buffer.name = std::move(name);
  buffer.space = space;
  buffer.bytes = bytes_at_bound(type);
  // Callers bind their own memory, which is aligned as C++ aligns its elements.
  buffer.alignment = kernel::caller_alignment(memory_scalar(type.dtype));
  buffer.io_index = index;
  return buffer;
}

// A result that could not be computed in its output buffer, and is copied there at the end.
struct ResultCopy {
  Value value;
  BufferSlice to;
};

class ModuleLowering {
public:
  ModuleLowering(const Module& module, const LoweringOptions& options)
      : module_(module), main_(module.main()), context_(program_, options) {
    program_.name = module.name();
  }

  Expected<kernel::Program> run() {
    const Region& body = main_.body();
    if (Result result = check_types(body, symbols_of_inputs(body)); !result) return result.error();
    for (size_t i = 0; i < body.parameters().size(); ++i)
      if (main_.is_state(i) && body.parameter(static_cast<int>(i)).dtype() == DType::String)
        return unsupported_error("state '" + name_at(main_.parameter_names, i, "input") +
                                 "': states of strings are not supported: a run's bytes end with it");
      else if (main_.is_state(i) && !body.parameter(static_cast<int>(i)).type().is_static())
        return unsupported_error("state '" + name_at(main_.parameter_names, i, "input") +
                                 "': dims of states that vary are not supported yet");
    program_.extents = used_symbols(module_, body);
    if (const plan::KernelPlans* given = context_.options().plans) {
      context_.set_plans(*given);
    } else {
      auto plans = plan::plan_module(module_, context_.plan_options());
      if (!plans) return plans.error();
      context_.set_plans(std::move(*plans));
    }
    place_views(context_, body);
    place_inputs();
    place_outputs();
    place_states();
    place_concatenations(context_, body);
    if (Result result = context_.lower_region(body, program_.steps); !result) return result.error();
    LoweringContext::Steps unroll;
    context_.with_steps(unroll, [&] {
      for (const ResultCopy& copy : copies_) emit_copy(context_, copy.value, copy.to, "");
      store_counted_extents();
      update_states();
    });
    for (kernel::Step& step : unroll) program_.steps.push_back(std::move(step));
    LoweringContext::Steps prologue = context_.take_prologue();
    program_.steps.insert(program_.steps.begin(), std::make_move_iterator(prologue.begin()),
                          std::make_move_iterator(prologue.end()));
    return std::move(program_);
  }

private:
  static std::string name_at(const std::vector<std::string>& names, size_t at, const char* fallback) {
    return at < names.size() && !names[at].empty() ? names[at] : fallback + std::to_string(at);
  }

  // Inputs and states are numbered apart.
  void place_inputs() {
    const Region& body = main_.body();
    int inputs = 0, states = 0;
    for (size_t i = 0; i < body.parameters().size(); ++i) {
      Value parameter = body.parameter(static_cast<int>(i));
      std::string name = name_at(main_.parameter_names, i, "input");
      bool is_state = main_.is_state(i);
      kernel::Buffer buffer =
          is_state ? state_buffer(std::move(name), parameter.type(), states++)
                   : io_buffer(std::move(name), kernel::Space::Input, parameter.type(), inputs++);
      parameters_.push_back(program_.add_buffer(std::move(buffer)));
      context_.set_place(parameter, {parameters_.back(), 0});
    }
  }

  // In the instance, where it is aligned as the arena is.
  kernel::Buffer state_buffer(std::string name, const Type& type, int index) {
    kernel::Buffer buffer;
    buffer.space = kernel::Space::State;
    buffer.bytes = bytes_at_bound(type);
    buffer.io_index = index;
    if (const auto* initial = context_.options().initial_states; initial && initial->count(name)) {
      buffer.initial = context_.add_constant(initial->at(name), layout_packing(type, buffer.bytes), name);
    }
    buffer.name = std::move(name);
    return buffer;
  }

  void place_outputs() {
    const Region& body = main_.body();
    int outputs = 0;
    for (size_t i = 0; i < body.results().size(); ++i) {
      if (main_.updates_state(i)) continue;
      Value result = body.results()[i];
      std::string name = name_at(main_.result_names, i, "output");
      int buffer =
          program_.add_buffer(io_buffer(std::move(name), kernel::Space::Output, result.type(), outputs++));
      if (!claim_place(context_, result, body, {buffer, 0})) copies_.push_back({result, {buffer, 0}});
    }
  }

  void place_states() {
    const Region& body = main_.body();
    for (size_t i = 0; i < body.results().size(); ++i)
      if (main_.updates_state(i) && body.results()[i].type().is_static())
        place_rolling_window(context_, body.results()[i], body.parameter(main_.aliases[i]));
  }

  // Extents of outputs that only the run knows, for the caller.
  void store_counted_extents() {
    int output = 0;
    for (size_t i = 0; i < main_.body().results().size(); ++i) {
      if (main_.updates_state(i)) continue;
      const std::vector<Dim>& dims = main_.body().results()[i].type().dims;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis].counted) store_extent(dims[axis].extent, output, static_cast<int>(axis));
      ++output;
    }
  }

  void store_extent(const IntExpr& extent, int output, int axis) {
    kernel::Buffer buffer;
    buffer.name = "extent";
    buffer.bytes = 8;
    buffer.extent_of = output;
    buffer.extent_axis = axis;
    int number = program_.add_buffer(std::move(buffer));
    KernelMaker maker(context_, "", "extent");
    int out = maker.parameter({number, 0}, kernel::Scalar::I64, 1, /*written=*/true, "extent");
    kernel::Builder& b = maker.builder();
    b.store(b.cast(kernel::OpKind::IndexCast, b.index(extent), kernel::Scalar::I64), out, 0);
    maker.finish();
  }

  // New values of states are computed elsewhere and copied when nothing reads the old ones any more; which
  // of the copies are needed is the memory planner's to say (memory/in_place.h). What one state hands to
  // another is saved first.
  void update_states() {
    const Region& body = main_.body();
    struct Update {
      BufferSlice from, to;
      const Type& type;
    };
    std::vector<Update> updates;
    for (size_t i = 0; i < body.results().size(); ++i) {
      if (!main_.updates_state(i)) continue;
      Value result = body.results()[i];
      Update update{
          context_.place_of(result), {parameters_[static_cast<size_t>(main_.aliases[i])], 0}, result.type()};
      if (update.from == update.to) continue;
      if (program_.buffers[static_cast<size_t>(update.from.buffer)].space == kernel::Space::State) {
        int64_t bytes = static_cast<int64_t>(update.type.physical_byte_size());
        BufferSlice saved{context_.add_scratch_buffer(bytes, "saved"), 0};
        emit_copy(context_, update.from, saved, update.type, "");
        update.from = saved;
      }
      updates.push_back(update);
    }
    for (const Update& update : updates) emit_copy(context_, update.from, update.to, update.type, "");
  }

  const Module& module_;
  const Function& main_;
  kernel::Program program_;
  LoweringContext context_;
  std::vector<int> parameters_; // buffers of inputs and states, in order
  std::vector<ResultCopy> copies_;
};

} // namespace

Result LoweringContext::lower_region(const Region& region, Steps& steps) {
  Result result;
  with_steps(steps, [&] { result = lower_instructions(region); });
  return result;
}

Result LoweringContext::lower_instructions(const Region& region) {
  for (const auto& pointer : region.instructions()) {
    const Instruction& instruction = *pointer;
    if (instruction.is(Opcode::Constant) || instruction.is(Opcode::Parameter)) continue;
    if (is_dead(instruction)) continue;
    // A view is not computed; a value that lies in another's buffer is.
    if (is_view_of_operand(instruction)) continue;
    if (is_read_in_place(instruction)) continue;
    if (Result result = lower_instruction(instruction); !result) return result;
  }
  return {};
}

// Parameters and results of a fusion are what is outside of it.
void LoweringContext::view_members(const Instruction& fusion) {
  const Region& region = fusion.region();
  for (int i = 0; i < fusion.num_operands(); ++i) set_view(region.parameter(i), fusion.operand(i));
  for (int i = 0; i < fusion.num_results(); ++i)
    set_view(region.results()[static_cast<size_t>(i)], result_of(fusion, i));
}

Result LoweringContext::emit_plain(const Instruction& instruction, plan::FixedPlan plan) {
  using Algorithm = plan::FixedPlan::Algorithm;
  switch (plan.algorithm) {
  case Algorithm::FusedSpatialSum: return emit_fused_spatial_sum(*this, instruction);
  case Algorithm::Inline: return lower_instructions(instruction.region());
  case Algorithm::Concatenate: emit_concatenate(*this, instruction); break;
  case Algorithm::UpdateSlice: emit_update_slice(*this, instruction); break;
  case Algorithm::ScatterElements: emit_scatter_elements(*this, instruction); break;
  case Algorithm::ScatterND: emit_scatter_nd(*this, instruction); break;
  case Algorithm::NonZero: emit_non_zero(*this, instruction); break;
  case Algorithm::Sort: emit_sort(*this, instruction); break;
  case Algorithm::Text: emit_text(*this, instruction); break;
  case Algorithm::Custom: emit_custom(*this, instruction); break;
  case Algorithm::Pack: emit_pack_constant(*this, instruction); break;
  case Algorithm::PackElements: emit_pack_elements(*this, instruction); break;
  }
  return {};
}

Result LoweringContext::emit(const Instruction& instruction, const plan::KernelPlan& plan) {
  if (const auto* plain = std::get_if<plan::FixedPlan>(&plan)) return emit_plain(instruction, *plain);
  std::visit(
      [&](const auto& of_family) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(of_family)>, plan::FixedPlan>)
          emit_planned(*this, instruction, of_family);
      },
      plan);
  return {};
}

Result LoweringContext::lower_instruction(const Instruction& instruction) {
  if (instruction.is(Opcode::If)) return emit_if(*this, instruction);
  if (instruction.is(Opcode::While)) return emit_while(*this, instruction);
  bool has_members = plan::holds_kernels(instruction);
  if (has_members && instruction.is(Opcode::Fusion)) view_members(instruction);
  if (const plan::KernelPlan* plan = plans_.find(instruction)) {
    is_for_baseline_ = plans_.is_for_baseline(instruction);
    Result result = emit(instruction, *plan);
    is_for_baseline_ = false;
    return result;
  }
  if (has_members) return lower_instructions(instruction.region());
  return unsupported_error(describe(instruction) + (plan::has_static_types(instruction)
                                                        ? ": there is no kernel for this operation yet"
                                                        : ": there is no kernel yet for this operation "
                                                          "with dims that vary"));
}

Expected<kernel::Program> lower_module(const Module& module, const LoweringOptions& options) {
  return ModuleLowering(module, options).run();
}

} // namespace firn::lower
