// The walk over an entry function: inputs and outputs get their buffers, values their places, instructions
// their kernels.
#include "compiler/lower/lower.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/placement.h"
#include "compiler/lower/text/text.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/views.h"

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

class EntryLowering {
public:
  EntryLowering(const Module& module, const Function& entry, const plan::KernelPlans& plans,
                const LoweringOptions& options)
      : module_(module), entry_(entry), context_(program_, plans, options) {
    program_.name = module.name();
  }

  Expected<kernel::Program> run() {
    const Region& body = entry_.body();
    program_.extents = used_symbols(module_, body);
    place_views(context_, body);
    place_inputs();
    place_outputs();
    place_states();
    place_concatenations(context_, body);
    context_.lower_region(body, program_.steps);
    LoweringContext::Steps epilogue;
    context_.with_steps(epilogue, [&] {
      for (const ResultCopy& copy : copies_) emit_copy(context_, copy.value, copy.to, "");
      store_counted_extents();
      update_states();
    });
    for (kernel::Step& step : epilogue) program_.steps.push_back(std::move(step));
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
    const Region& body = entry_.body();
    int inputs = 0, states = 0;
    for (size_t i = 0; i < body.parameters().size(); ++i) {
      Value parameter = body.parameter(static_cast<int>(i));
      std::string name = name_at(entry_.parameter_names, i, "input");
      bool is_state = entry_.is_state(i);
      kernel::Buffer buffer =
          is_state ? state_buffer(std::move(name), parameter.type(), states++)
                   : io_buffer(std::move(name), kernel::Space::Input, parameter.type(), inputs++);
      parameters_.push_back(program_.add_buffer(std::move(buffer)));
      context_.set_place(parameter, {parameters_.back(), 0});
    }
  }

  // In the instance or the block of parameters, where it is aligned as the arena is.
  kernel::Buffer state_buffer(std::string name, const Type& type, int index) {
    kernel::Buffer buffer;
    buffer.space = module_.is_parameter(name) ? kernel::Space::Parameters : kernel::Space::State;
    buffer.bytes = bytes_at_bound(type);
    buffer.io_index = index;
    if (const auto* initial = context_.options().initial_states; initial && initial->count(name)) {
      buffer.initial = context_.add_constant(initial->at(name), layout_packing(type, buffer.bytes), name);
    }
    buffer.name = std::move(name);
    return buffer;
  }

  void place_outputs() {
    const Region& body = entry_.body();
    int outputs = 0;
    for (size_t i = 0; i < body.results().size(); ++i) {
      if (entry_.updates_state(i)) continue;
      Value result = body.results()[i];
      std::string name = name_at(entry_.result_names, i, "output");
      int buffer =
          program_.add_buffer(io_buffer(std::move(name), kernel::Space::Output, result.type(), outputs++));
      if (!claim_place(context_, result, body, {buffer, 0})) copies_.push_back({result, {buffer, 0}});
    }
  }

  void place_states() {
    const Region& body = entry_.body();
    for (size_t i = 0; i < body.results().size(); ++i)
      if (entry_.updates_state(i) && body.results()[i].type().is_static())
        place_rolling_window(context_, body.results()[i], body.parameter(entry_.aliases[i]));
  }

  // Extents of outputs that only the run knows, for the caller.
  void store_counted_extents() {
    int output = 0;
    for (size_t i = 0; i < entry_.body().results().size(); ++i) {
      if (entry_.updates_state(i)) continue;
      const std::vector<Dim>& dims = entry_.body().results()[i].type().dims;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis].counted) store_extent(dims[axis].extent, output, static_cast<int>(axis));
      ++output;
    }
  }

  void store_extent(const IntExpr& extent, int output, int axis) {
    kernel::Buffer buffer;
    buffer.name = "extent";
    buffer.bytes = 8; // an i64
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
    const Region& body = entry_.body();
    struct Update {
      BufferSlice from, to;
      const Type& type;
    };
    std::vector<Update> updates;
    for (size_t i = 0; i < body.results().size(); ++i) {
      if (!entry_.updates_state(i)) continue;
      Value result = body.results()[i];
      Update update{
          context_.place_of(result), {parameters_[static_cast<size_t>(entry_.aliases[i])], 0}, result.type()};
      if (update.from == update.to) continue;
      if (is_state(program_.buffers[static_cast<size_t>(update.from.buffer)].space)) {
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
  const Function& entry_;
  kernel::Program program_;
  LoweringContext context_;
  std::vector<int> parameters_; // buffers of inputs and states, in order
  std::vector<ResultCopy> copies_;
};

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
    if (is_view_of_operand(instruction)) continue;
    if (is_read_in_place(instruction)) continue;
    lower_instruction(instruction);
  }
}

// Parameters of a fusion lie where its operands do, and what its region returns where its results do.
void LoweringContext::view_members(const Instruction& fusion) {
  const Region& region = fusion.region();
  for (int i = 0; i < fusion.num_operands(); ++i) set_view(region.parameter(i), fusion.operand(i));
  for (int i = 0; i < fusion.num_results(); ++i)
    set_view(region.results()[static_cast<size_t>(i)], result_of(fusion, i));
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
  return EntryLowering(module, entry, plans, options).run();
}

} // namespace firn::lower
