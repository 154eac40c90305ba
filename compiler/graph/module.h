// The graph IR: a Module of Functions whose Regions hold Instructions in SSA form. Instructions stand in an
// order in which every operand precedes its users. Ownership: module > function > region > instruction;
// values, operands and users are plain pointers into that tree.
#pragma once

#include "compiler/graph/attribute.h"
#include "compiler/graph/literal.h"
#include "compiler/graph/opcode.h"

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace firn {

class Function;
class Instruction;
class Module;
class Region;

// One result of an instruction. Default-made: no value.
struct Value {
  Instruction* def = nullptr;
  int index = 0;

  explicit operator bool() const { return def != nullptr; }
  bool operator==(const Value&) const = default;
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }
  int64_t dim(int axis) const { return type().dim(axis); }
};

class Instruction {
public:
  Opcode opcode() const { return opcode_; }
  bool is(Opcode opcode) const { return opcode_ == opcode; }
  Region* parent() const { return parent_; }

  const std::vector<Value>& operands() const { return operands_; }
  Value operand(int index) const { return operands_[static_cast<size_t>(index)]; }
  int num_operands() const { return static_cast<int>(operands_.size()); }
  void set_operand(int index, Value value);
  void set_operands(std::vector<Value> values);

  int num_results() const { return static_cast<int>(types_.size()); }
  const Type& type(int result = 0) const { return types_[static_cast<size_t>(result)]; }
  // Sets the types of all results, once regions decide them.
  void set_types(std::vector<Type> types) { types_ = std::move(types); }
  void set_type(Type type, int result = 0) { types_[static_cast<size_t>(result)] = std::move(type); }
  Value result(int index = 0) { return {this, index}; }

  // Instructions that use any result, once per operand slot, in no order that output may depend on. Uses as a
  // region's result (Region::results) are not listed here; see has_uses().
  const std::vector<Instruction*>& users() const { return users_; }
  bool has_uses() const;          // operand slots, region results, dims that it counts for other types
  int num_uses(int result) const; // operand slots and region results that name this result

  Attributes& attributes() { return attributes_; }
  const Attributes& attributes() const { return attributes_; }
  const LiteralRef& literal() const { return literal_; } // Constant
  void set_literal(LiteralRef literal) { literal_ = std::move(literal); }

  int num_regions() const { return static_cast<int>(regions_.size()); }
  Region& region(int index = 0) const { return *regions_[static_cast<size_t>(index)]; }
  Region& add_region();

  // The name in text: "%name". Unique within the function after printing; empty means numbered.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // Names of the ONNX nodes it came from, "a;b" when merged. Constants: the initializer's name.
  const std::string& location() const { return location_; }
  void set_location(std::string location) { location_ = std::move(location); }

  // Elementwise helpers for the words of composite and compare.
  const std::string& word(std::string_view attribute) const { return attributes_.word(attribute); }

private:
  friend class Region;
  Instruction() = default;
  void add_user(Instruction* user) { users_.push_back(user); }
  void remove_user(Instruction* user);

  Opcode opcode_ = Opcode::Constant;
  Region* parent_ = nullptr;
  std::list<std::unique_ptr<Instruction>>::iterator self_;
  std::vector<Value> operands_;
  std::vector<Type> types_;
  std::vector<Instruction*> users_;
  int result_uses_ = 0; // how often regions return a result of this instruction
  Attributes attributes_;
  LiteralRef literal_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::string name_, location_;
};

inline const Type& Value::type() const {
  return def->type(index);
}

// A list of instructions with parameters and results. Regions of `if` and `while` may use values of enclosing
// regions; those of fusion, composite, reduce, reduce_window, sort are isolated.
class Region {
public:
  using List = std::list<std::unique_ptr<Instruction>>;

  explicit Region(Instruction* owner, Function* function) : owner_(owner), function_(function) {}
  ~Region();
  Instruction* owner() const { return owner_; } // null for a function's body
  Function* function() const { return function_; }

  const std::vector<Instruction*>& parameters() const { return parameters_; }
  Value parameter(int index) const { return {parameters_[static_cast<size_t>(index)], 0}; }
  Instruction* add_parameter(Type type, std::string name = "");
  // Removes a parameter that nothing uses.
  void remove_parameter(int index);

  // Appends, or inserts before `before`. The caller keeps the order valid.
  Instruction* append(Opcode opcode, std::vector<Value> operands, std::vector<Type> types,
                      Attributes attributes = {}, Instruction* before = nullptr);
  Instruction* append_constant(LiteralRef literal, Instruction* before = nullptr);
  // Erases an instruction without uses.
  void erase(Instruction* instruction);
  void move_before(Instruction* instruction, Instruction* before); // within this region
  // Replaces every use of `from` (operands anywhere beneath its region, region results) by `to`.
  void replace_uses(Value from, Value to);

  const std::vector<Value>& results() const { return results_; }
  void set_results(std::vector<Value> results);
  void set_result(int index, Value value);

  List& instructions() { return instructions_; }
  const List& instructions() const { return instructions_; }
  // The instructions as plain pointers: safe to iterate while instructions are added or the current one is
  // erased.
  std::vector<Instruction*> snapshot() const;

  // Copies instructions and results of `from` to the end of this region, before `before` if given;
  // `arguments` stand for its parameters. Returns what stands for its results. With `from` isolated this is
  // inlining.
  std::vector<Value> inline_region(const Region& from, const std::vector<Value>& arguments,
                                   Instruction* before = nullptr);

private:
  Instruction* owner_;
  Function* function_;
  std::vector<Instruction*> parameters_; // also the first instructions of the list
  List instructions_;
  std::vector<Value> results_;
};

// Says that a function is the vector-Jacobian product of another one, without saying how it is computed: the
// pass `differentiate` writes the body. Its parameters are the callee's, and with `seedable` one more, the
// cotangent of result `from`; without it that is 1 everywhere. Its results are the gradients of the
// parameters `wrt`, then the callee's results `keeping`. With `straight_through` what rounds and what clamps
// rounded numbers has the derivative 1 within its range, not 0, on the way through integers too.
struct GradientOf {
  std::string callee;
  int from = 0;
  std::vector<int> wrt, keeping;
  bool seedable = false, straight_through = false;
  bool operator==(const GradientOf&) const = default;
};

// A function: named parameters and results, with the inputs that outputs may overwrite.
class Function {
public:
  Function(Module* module, std::string name)
      : module_(module), name_(std::move(name)), body_(nullptr, this) {}
  Module* module() const { return module_; }
  const std::string& name() const { return name_; }
  Region& body() { return body_; }
  const Region& body() const { return body_; }

  // The public names of parameters and results, in order: what the model calls its inputs and outputs.
  std::vector<std::string> parameter_names, result_names;
  // Output i lives in the memory of input aliases[i]; -1: in its own. Such an input is state: in @main the
  // instance keeps it from run to run, and neither of the pair is the caller's.
  std::vector<int> aliases;
  bool is_state(size_t parameter) const {
    return std::find(aliases.begin(), aliases.end(), static_cast<int>(parameter)) != aliases.end();
  }
  bool updates_state(size_t result) const { return result < aliases.size() && aliases[result] >= 0; }

  // Set: the function is declared to be a gradient, and its body is empty (function_type() says its type).
  std::optional<GradientOf> gradient;
  // There for the functions that name it: no entry of a program.
  bool is_private = false;
  // The function that computes the gradients of this one in place of a derivation; empty: none. It takes the
  // parameters, the results and a cotangent for each float result, and gives one for each float parameter.
  std::string adjoint_rule;
  // Bytes, at the bounds of dims, of what the forward computation of a gradient keeps for the backward one
  // (differentiate writes it); nothing: the function holds no gradient, or a dim has no bound. A kernel that
  // computes such a value anew where it is read needs less.
  std::optional<int64_t> tape_bytes;

private:
  Module* module_;
  std::string name_;
  Region body_;
};

class Module {
public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Function>>& functions() const { return functions_; }
  Function* find(std::string_view name) const; // "main", "prepare"; null if absent
  Function& main() const;                      // the function `entry`, or else @main, or the only function
  // The functions that a program can run: @main first, then the others that are not private, that no call
  // names and that are no adjoint rule; `entry` alone if it is named.
  std::vector<Function*> entries() const;
  std::string entry; // the name of the one function to compile; empty: @main and the others
  Function& add_function(std::string name);
  // Whether a function is declared to be a gradient, and not derived yet. Rewrites that keep values wait
  // until then if they change derivatives, which are a matter of choice where values tie.
  bool declares_gradients() const;
  // Removes the functions of which the predicate is true. Nothing that stays names them.
  void erase_functions(const std::function<bool(const Function&)>& is_unwanted);
  // Names of states that lie in a block of their own (firn_rt2_call::parameters), which instances of all
  // entry functions share: the tensors that a training step changes. Each is a state of @main.
  std::vector<std::string> parameters;
  bool is_parameter(std::string_view state) const {
    return std::find(parameters.begin(), parameters.end(), state) != parameters.end();
  }
  // Symbols of dims by name, shared by all functions.
  std::vector<SymbolRef> symbols;
  SymbolRef find_symbol(std::string_view name) const;

private:
  std::string name_;
  std::vector<std::unique_ptr<Function>> functions_;
};

} // namespace firn
