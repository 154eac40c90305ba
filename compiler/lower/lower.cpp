// The walk over an entry function: values get their places, and then instructions their kernels.
#include "compiler/lower/lower.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/entry_values.h"
#include "compiler/memory/placement.h"
#include "compiler/plan/roots.h"

#include <algorithm>

namespace firn::lower {
namespace {

// The symbols that types in the region mention, with repetitions.
void add_symbols(const Region& region, std::vector<SymbolRef>& symbols) {
  for (const auto& instruction : region.instructions()) {
    for (int i = 0; i < instruction->num_results(); ++i)
      for (const Dim& dim : instruction->type(i).dims)
        for (const SymbolRef& symbol : dim.extent.symbols()) symbols.push_back(symbol);
    for (int i = 0; i < instruction->num_regions(); ++i) add_symbols(instruction->region(i), symbols);
  }
}

// The symbol that the instruction counts, if it does.
void add_count(const Instruction& instruction, std::vector<SymbolRef>& counts) {
  if (!instruction.is(Opcode::NonZero)) return;
  for (const SymbolRef& symbol : instruction.type().dims[1].extent.symbols()) counts.push_back(symbol);
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

} // namespace

void LoweringContext::lower_region(const Region& region, Steps& steps) {
  with_steps(steps, [&] { lower_instructions(region); });
}

void LoweringContext::lower_instructions(const Region& region) {
  for (const auto& pointer : region.instructions()) {
    const Instruction& instruction = *pointer;
    if (instruction.is(Opcode::Constant) || instruction.is(Opcode::Parameter)) continue;
    if (is_dead(instruction)) continue;
    // A view is not computed; a value that lies in another's buffer is.
    if (places_.is_view_of_operand(instruction)) continue;
    if (places_.is_read_in_place(instruction)) continue;
    lower_instruction(instruction);
  }
}

// Parameters of a fusion lie where its operands do, and what its region returns where its results do.
void LoweringContext::view_members(const Instruction& fusion) {
  const Region& region = fusion.region();
  for (int i = 0; i < fusion.num_operands(); ++i) places_.set_view(region.parameter(i), fusion.operand(i));
  for (int i = 0; i < fusion.num_results(); ++i)
    places_.set_view(region.results()[static_cast<size_t>(i)], result_of(fusion, i));
}

void emit_inline(LoweringContext& context, const Instruction& instruction, const plan::FixedPlan&) {
  context.lower_instructions(instruction.region());
}

void LoweringContext::emit(const Instruction& instruction, const plan::KernelPlan& plan) {
  switch (plan.algorithm()) {
#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help)                                         \
  case plan::Algorithm::Name:                                                                                \
    return emit_##word(*this, instruction, *plan.get_if<plan::Plan>());
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM
  }
}

void LoweringContext::lower_instruction(const Instruction& instruction) {
  if (instruction.is(Opcode::If)) return emit_if(*this, instruction);
  if (instruction.is(Opcode::While)) return emit_while(*this, instruction);
  bool has_members = plan::holds_kernels(instruction);
  if (has_members && instruction.is(Opcode::Fusion)) view_members(instruction);
  if (const plan::KernelPlan* plan = plans_.find(instruction)) {
    is_for_baseline_ = plans_.is_for_baseline(instruction);
    emit(instruction, *plan);
    is_for_baseline_ = false;
    return;
  }
  FIRN_CHECK(has_members, "plan::verify lets through an instruction without a plan");
  lower_instructions(instruction.region());
}

Expected<kernel::Program> lower_module(const Module& module, const Function& entry,
                                       const plan::KernelPlans& plans, const LoweringOptions& options) {
  const Region& body = entry.body();
  kernel::Program program;
  program.name = module.name();
  program.extents = used_symbols(module, body);
  LoweringContext context(program, plans, options);
  EntryValues values(module, entry, context);
  memory::place_views(context.places(), plans, body);
  values.place();
  memory::place_concatenations(context.places(), plans, body);
  context.lower_region(body, program.steps);
  LoweringContext::Steps epilogue;
  context.with_steps(epilogue, [&] { values.finish(); });
  for (kernel::Step& step : epilogue) program.steps.push_back(std::move(step));
  LoweringContext::Steps prologue = context.take_prologue();
  program.steps.insert(program.steps.begin(), std::make_move_iterator(prologue.begin()),
                       std::make_move_iterator(prologue.end()));
  return program;
}

} // namespace firn::lower
