// Turns the instructions of a kernel, and of the functions that it calls, into operations of the machine.
#pragma once

#include "compiler/ptx/execute.h"
#include "compiler/ptx/program.h"
#include "compiler/support/diagnostic.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn::ptx {

// The address of a variable of a kernel: an offset in its space, for global variables the address.
struct Place {
  Space space = Space::Global;
  uint64_t offset = 0;
  bool is_dynamic = false; // lies behind the static shared memory, whose size is known at the end
};

// One instruction at a time is decoded: the functions below speak of that one. The first error stays.
class Decoder {
public:
  Decoder(const Unit& unit, const std::map<std::string, Place, std::less<>>& globals, Kernel& kernel);

  Result decode(const Function& entry);

  // Modifiers: each is taken once, and what nobody took is refused at the end.
  bool take(std::string_view word);
  std::optional<Type> take_type();
  Type expect_type(); // fails if there is none
  Rounding take_rounding(Rounding otherwise = Rounding::Nearest);
  const std::string& opcode() const { return at_->opcode; }
  std::string words() const; // for messages: the whole opcode

  // Operands.
  bool expect_operands(size_t min, size_t max);
  bool expect_operands(size_t count) { return expect_operands(count, count); }
  size_t operands() const { return at_->operands.size(); }
  const Operand& operand(size_t i) const { return at_->operands[i]; }
  uint32_t source(const Operand& operand,
                  Type type); // its row; the type's size has to be that of the register
  uint32_t source(size_t i, Type type) { return source(at_->operands[i], type); }
  uint32_t target(const Operand& operand, Type type);
  uint32_t target(size_t i, Type type) { return target(at_->operands[i], type); }
  // Registers wider than the type are allowed, for loads, stores and conversions.
  uint32_t wide_source(const Operand& operand, Type type);
  uint32_t wide_target(const Operand& operand, Type type);
  int register_size(const Operand& operand) const; // bytes; 0 if it is no register
  void address(const Operand& operand, Op& op);    // fills in a, value and is_short for the op's space
  uint32_t constant(uint64_t value);
  uint32_t new_row() { return kernel_.rows++; }
  uint32_t carry_row() const { return carry_; }
  uint32_t sink(Type type) { return type == Type::Pred ? predicate_sink_ : sink_; }

  Op begin(OpClass op_class) const; // with guard and line of the instruction
  void emit(Op op);
  uint32_t add_list(std::span<const uint32_t> rows);
  void note_access(Space space, int bytes); // for the granules of the race checks

  void branch(const std::string& label);
  void return_from_function();
  void call(const std::string& function, std::span<const Operand> results,
            std::span<const Operand> arguments);

  void fail(const std::string& text);        // a module that is not PTX
  void unsupported(const std::string& text); // PTX that the interpreter does not know
  void unsupported_opcode() { unsupported("'" + words() + "' is not known"); }
  bool ok() const { return !error_; }

  std::optional<Place> find(const std::string& name);

private:
  struct Frame {
    const Function* function;
    uint32_t first_row;
    std::map<std::string, Place, std::less<>> variables;
    std::vector<std::pair<size_t, std::string>> branches; // operations whose target is a label
    std::vector<size_t> returns;
  };

  void decode_body(Frame& frame);
  void decode_instruction(const Instruction& instruction);
  void place_variables(Frame& frame);
  void resolve_branches(Frame& frame, const std::vector<size_t>& starts);
  Place place(const Variable& variable);
  void add_dynamic_offset();
  uint32_t register_row(const Operand& operand) const;
  Type register_type(const Operand& operand) const;
  uint32_t immediate(const Operand& operand, Type type);
  uint32_t symbol(const Operand& operand, Type type);
  uint32_t negated(uint32_t row);

  const Unit& unit_;
  const std::map<std::string, Place, std::less<>>& globals_;
  Kernel& kernel_;
  std::map<uint64_t, uint32_t> constants_;
  std::map<Special, uint32_t> specials_;
  std::map<std::string, Place, std::less<>> shared_; // the module's variables that the kernel names
  std::vector<size_t> dynamic_constants_, dynamic_ops_;
  std::vector<Frame*> frames_;
  const Instruction* at_ = nullptr;
  std::vector<bool> taken_;
  bool address_is_dynamic_ = false;
  uint32_t sink_, predicate_sink_, carry_;
  std::optional<Diagnostic> error_;
};

struct OpcodeDecoder {
  std::string_view opcode;
  void (*decode)(Decoder& decoder);
};

// The tables of the files decode_*.cpp.
std::span<const OpcodeDecoder> float_decoders();
std::span<const OpcodeDecoder> integer_decoders();
std::span<const OpcodeDecoder> bit_decoders();
std::span<const OpcodeDecoder> compare_decoders();
std::span<const OpcodeDecoder> convert_decoders();
std::span<const OpcodeDecoder> move_decoders();
std::span<const OpcodeDecoder> memory_decoders();
std::span<const OpcodeDecoder> warp_decoders();
std::span<const OpcodeDecoder> matrix_decoders();
std::span<const OpcodeDecoder> control_decoders();

// add, sub, mul, mad, fma, min, max, abs and neg exist for integers and floats.
bool is_float_like(Type type); // one number or a pair
void decode_float_arithmetic(Decoder& decoder, Type type);
// add, sub and mad that write the carry (.cc), and addc, subc and madc, which read it.
void decode_carry(Decoder& decoder, Type type, bool reads, bool writes);

Execute negate_predicate_op(); // d = !a

} // namespace firn::ptx
