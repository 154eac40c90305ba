// Frames of inlined functions, places of variables, rows of operands.
#include "compiler/ptx/decoder.h"

#include <algorithm>

namespace firn::ptx {
namespace {

constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxOps = 4'000'000;

int64_t align_up(int64_t value, int64_t align) {
  return (value + align - 1) / align * align;
}

const std::map<std::string_view, void (*)(Decoder&)>& decoders() {
  static const auto* table = [] {
    auto* made = new std::map<std::string_view, void (*)(Decoder&)>();
    for (auto part :
         {float_decoders(), integer_decoders(), bit_decoders(), compare_decoders(), convert_decoders(),
          move_decoders(), memory_decoders(), warp_decoders(), matrix_decoders(), control_decoders()})
      for (const OpcodeDecoder& row : part) made->emplace(row.opcode, row.decode);
    return made;
  }();
  return *table;
}

} // namespace

Decoder::Decoder(const Unit& unit, const std::map<std::string, Place, std::less<>>& globals, Kernel& kernel)
    : unit_(unit), globals_(globals), kernel_(kernel) {
  sink_ = new_row();
  predicate_sink_ = new_row();
  carry_ = new_row();
}

Result Decoder::decode(const Function& entry) {
  kernel_.name = entry.name;
  kernel_.parameters = entry.parameters;
  kernel_.max_threads = entry.max_threads;
  kernel_.required_threads = entry.required_threads;
  Frame frame{&entry, 0, {}, {}, {}};
  for (const Variable& parameter : entry.parameters) {
    int64_t offset = align_up(kernel_.parameter_bytes, parameter.align);
    kernel_.parameter_offsets.push_back(offset);
    kernel_.parameter_bytes = offset + parameter.size;
    frame.variables[parameter.name] = {Space::Param, static_cast<uint64_t>(offset), false};
  }
  decode_body(frame);
  if (!ok()) return *error_;
  add_dynamic_offset();
  return {};
}

void Decoder::decode_body(Frame& frame) {
  frame.first_row = kernel_.rows;
  kernel_.rows += static_cast<uint32_t>(frame.function->registers.size());
  frames_.push_back(&frame);
  place_variables(frame);
  std::vector<size_t> starts;
  for (const Instruction& instruction : frame.function->body) {
    starts.push_back(kernel_.ops.size());
    if (ok()) decode_instruction(instruction);
  }
  starts.push_back(kernel_.ops.size());
  if (frames_.size() == 1) { // a body without `ret` at its end
    Op op;
    op.execute = exit_op();
    op.op_class = OpClass::Control;
    op.line = frame.function->line;
    kernel_.ops.push_back(op);
  }
  resolve_branches(frame, starts);
  frames_.pop_back();
}

void Decoder::decode_instruction(const Instruction& instruction) {
  at_ = &instruction;
  taken_.assign(instruction.words.size(), false);
  auto found = decoders().find(instruction.opcode);
  if (found == decoders().end()) return unsupported_opcode();
  found->second(*this);
  auto unknown = std::find(taken_.begin(), taken_.end(), false);
  at_ = &instruction; // a call has decoded others meanwhile
  if (ok() && unknown != taken_.end())
    unsupported("the modifier '." + instruction.words[static_cast<size_t>(unknown - taken_.begin())] +
                "' of '" + words() + "' is not known");
  if (ok() && kernel_.ops.size() > kMaxOps) unsupported("a kernel of more than 4000000 operations");
}

void Decoder::resolve_branches(Frame& frame, const std::vector<size_t>& starts) {
  std::map<std::string_view, size_t> labels;
  for (const auto& [name, index] : frame.function->labels)
    labels[name] = starts[std::min<size_t>(index, starts.size() - 1)];
  for (const auto& [op, label] : frame.branches) {
    auto found = labels.find(label);
    if (found == labels.end())
      error_ =
          error_ ? error_
                 : model_error("line " + std::to_string(kernel_.ops[op].line) + ": no label '" + label + "'");
    else
      kernel_.ops[op].value = static_cast<int64_t>(found->second);
  }
  for (size_t op : frame.returns) kernel_.ops[op].value = static_cast<int64_t>(kernel_.ops.size());
}

Place Decoder::place(const Variable& variable) {
  bool is_shared = variable.space == Space::Shared;
  if (is_shared && variable.size == 0) return {Space::Shared, 0, true};
  int64_t& bytes = is_shared ? kernel_.shared_bytes : kernel_.local_bytes;
  int64_t offset = align_up(bytes, variable.align);
  bytes = offset + variable.size;
  if (!is_shared) bytes = align_up(bytes, 16);
  return {is_shared ? Space::Shared : Space::Local, static_cast<uint64_t>(offset), false};
}

void Decoder::place_variables(Frame& frame) {
  for (const Variable& variable : frame.function->variables) {
    if (variable.space == Space::Global || variable.space == Space::Const) {
      error_ = error_ ? error_
                      : unsupported_error("line " + std::to_string(variable.line) +
                                          ": a variable of space global or const inside of a function");
      return;
    }
    frame.variables[variable.name] = place(variable);
  }
}

std::optional<Place> Decoder::find(const std::string& name) {
  const auto& own = frames_.back()->variables;
  if (auto found = own.find(name); found != own.end()) return found->second;
  if (auto found = shared_.find(name); found != shared_.end()) return found->second;
  if (auto found = globals_.find(name); found != globals_.end()) return found->second;
  for (const Variable& variable : unit_.variables)
    if (variable.name == name && variable.space == Space::Shared) return shared_[name] = place(variable);
  return std::nullopt;
}

// Dynamic shared memory follows the static one, at a multiple of 16 bytes.
void Decoder::add_dynamic_offset() {
  kernel_.shared_bytes = align_up(kernel_.shared_bytes, 16);
  for (size_t i : dynamic_constants_)
    kernel_.constants[i].second += static_cast<uint64_t>(kernel_.shared_bytes);
  for (size_t i : dynamic_ops_) kernel_.ops[i].value += kernel_.shared_bytes;
}

void Decoder::branch(const std::string& label) {
  Op op = begin(OpClass::Control);
  op.execute = branch_op();
  frames_.back()->branches.emplace_back(kernel_.ops.size(), label);
  emit(op);
}

void Decoder::return_from_function() {
  Op op = begin(OpClass::Control);
  op.execute = frames_.size() == 1 ? exit_op() : branch_op();
  if (frames_.size() > 1) frames_.back()->returns.push_back(kernel_.ops.size());
  emit(op);
}

void Decoder::call(const std::string& name, std::span<const Operand> results,
                   std::span<const Operand> arguments) {
  auto function = std::find_if(unit_.functions.begin(), unit_.functions.end(), [&](const Function& f) {
    return f.name == name && f.is_defined && !f.is_entry;
  });
  if (function == unit_.functions.end())
    return unsupported("a call of '" + name + "', which the module does not define");
  if (frames_.size() > kMaxDepth) return unsupported("calls deeper than " + std::to_string(kMaxDepth));
  if (results.size() != function->results.size() || arguments.size() != function->parameters.size())
    return fail("a call of '" + name + "' with other numbers of arguments or results than it has");
  Frame frame{&*function, 0, {}, {}, {}};
  auto bind = [&](std::span<const Operand> given, const std::vector<Variable>& wanted) {
    for (size_t i = 0; i < given.size(); ++i) {
      auto place = given[i].kind == Operand::Kind::Symbol ? find(given[i].name) : std::nullopt;
      if (!place || place->space != Space::Local)
        return unsupported("an argument that is no variable of space param");
      frame.variables[wanted[i].name] = *place;
    }
  };
  bind(results, function->results);
  bind(arguments, function->parameters);
  if (at_->guard >= 0) return unsupported("a call under a predicate");
  std::vector<bool> taken = taken_;
  if (ok()) decode_body(frame);
  taken_ = taken;
}

Op Decoder::begin(OpClass op_class) const {
  Op op;
  op.op_class = op_class;
  op.line = at_->line;
  op.guard_is_negated = at_->guard_is_negated;
  if (at_->guard >= 0) op.guard = static_cast<int32_t>(frames_.back()->first_row) + at_->guard;
  return op;
}

void Decoder::emit(Op op) {
  if (address_is_dynamic_) dynamic_ops_.push_back(kernel_.ops.size());
  address_is_dynamic_ = false;
  kernel_.ops.push_back(op);
}

uint32_t Decoder::add_list(std::span<const uint32_t> rows) {
  auto first = static_cast<uint32_t>(kernel_.lists.size());
  kernel_.lists.insert(kernel_.lists.end(), rows.begin(), rows.end());
  return first;
}

void Decoder::note_access(Space space, int bytes) {
  if (space == Space::Shared || space == Space::Generic)
    kernel_.shared_granule = std::min(kernel_.shared_granule, bytes);
  if (space == Space::Global || space == Space::Generic)
    kernel_.global_granule = std::min(kernel_.global_granule, bytes);
}

void Decoder::fail(const std::string& text) {
  if (!error_) error_ = model_error("line " + std::to_string(at_->line) + ": " + text);
}

void Decoder::unsupported(const std::string& text) {
  if (!error_) error_ = unsupported_error("line " + std::to_string(at_->line) + ": " + text);
}

} // namespace firn::ptx
