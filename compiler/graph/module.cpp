// Bookkeeping of the graph IR: use lists, insertion, erasure, replacement, inlining.
#include "compiler/graph/module.h"

#include "compiler/graph/named_symbols.h"
#include "compiler/support/diagnostic.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace firn {

void Instruction::set_operand(int index, Value value) {
  Value& slot = operands_[static_cast<size_t>(index)];
  if (slot.def) slot.def->remove_user(this);
  slot = value;
  if (value.def) value.def->add_user(this);
}

void Instruction::set_operands(std::vector<Value> values) {
  for (Value& old : operands_)
    if (old.def) old.def->remove_user(this);
  operands_ = std::move(values);
  for (Value& value : operands_)
    if (value.def) value.def->add_user(this);
}

void Instruction::remove_user(Instruction* user) {
  // Search from the end: instructions mostly go in the reverse order of their making.
  auto found = std::find(users_.rbegin(), users_.rend(), user);
  FIRN_CHECK(found != users_.rend(), "use list lacks a user");
  *found = users_.back();
  users_.pop_back();
}

namespace {

int region_result_uses(const Region& region, const Instruction* def, int result) {
  int count = 0;
  for (const Value& value : region.results())
    if (value.def == def && value.index == result) ++count;
  return count;
}

// Uses as results of the defining region and of regions nested in it (if and while may return outer values).
int result_uses(const Region& region, const Instruction* def, int result) {
  int count = region_result_uses(region, def, result);
  for (const auto& instruction : region.instructions())
    if (has_trait(instruction->opcode(), Captures))
      for (int i = 0; i < instruction->num_regions(); ++i)
        count += result_uses(instruction->region(i), def, result);
  return count;
}

bool is_named(const Symbol& symbol, const Region& region, const Instruction* counter) {
  for (const auto& instruction : region.instructions()) {
    if (instruction.get() == counter) continue;
    for (const SymbolRef& each : named_symbols(*instruction))
      if (each.get() == &symbol) return true;
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (is_named(symbol, instruction->region(i), counter)) return true;
  }
  return false;
}

// Whether the types of values that use none of its results name the symbol that it counts, such as a constant
// broadcast to that extent.
bool counts_for_types(const Instruction& instruction) {
  if (!instruction.is(Opcode::NonZero)) return false;
  for (const SymbolRef& symbol : named_symbols(instruction))
    if (is_named(*symbol, *instruction.parent(), &instruction)) return true;
  return false;
}

} // namespace

bool Instruction::has_uses() const {
  return !users_.empty() || result_uses_ > 0 || counts_for_types(*this);
}

int Instruction::num_uses(int result) const {
  if (num_results() == 1) return static_cast<int>(users_.size()) + result_uses_; // asked of every reader
  int count = result_uses_ > 0 ? result_uses(*parent_, this, result) : 0;
  std::vector<const Instruction*> distinct(users_.begin(), users_.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const Instruction* user : distinct)
    for (const Value& operand : user->operands())
      if (operand.def == this && operand.index == result) ++count;
  return count;
}

Region& Instruction::add_region() {
  regions_.push_back(std::make_unique<Region>(this, parent_->function()));
  return *regions_.back();
}

Region::~Region() {
  set_results({});
  // Uses are dropped before the instructions, so that the order of destruction does not matter.
  for (auto& instruction : instructions_) instruction->regions_.clear();
  for (auto at = instructions_.rbegin(); at != instructions_.rend(); ++at) (*at)->set_operands({});
}

void Region::set_results(std::vector<Value> results) {
  for (Value& old : results_)
    if (old.def) --old.def->result_uses_;
  results_ = std::move(results);
  for (Value& value : results_)
    if (value.def) ++value.def->result_uses_;
}

void Region::set_result(int index, Value value) {
  Value& slot = results_[static_cast<size_t>(index)];
  if (slot.def) --slot.def->result_uses_;
  slot = value;
  if (value.def) ++value.def->result_uses_;
}

Instruction* Region::append(Opcode opcode, std::vector<Value> operands, std::vector<Type> types,
                            Attributes attributes, Instruction* before) {
  auto owned = std::unique_ptr<Instruction>(new Instruction);
  Instruction* made = owned.get();
  made->opcode_ = opcode;
  made->parent_ = this;
  made->types_ = std::move(types);
  made->attributes_ = std::move(attributes);
  FIRN_CHECK(!before || before->parent_ == this, "insertion before an instruction of another region");
  made->self_ = instructions_.insert(before ? before->self_ : instructions_.end(), std::move(owned));
  made->set_operands(std::move(operands));
  return made;
}

Instruction* Region::add_parameter(Type type, std::string name) {
  Instruction* before = nullptr;
  for (auto& instruction : instructions_)
    if (!instruction->is(Opcode::Parameter)) {
      before = instruction.get();
      break;
    }
  Instruction* made = append(Opcode::Parameter, {}, {std::move(type)}, {}, before);
  made->set_name(std::move(name));
  parameters_.push_back(made);
  return made;
}

void Region::remove_parameter(int index) {
  Instruction* parameter = parameters_[static_cast<size_t>(index)];
  parameters_.erase(parameters_.begin() + index);
  erase(parameter);
}

Instruction* Region::append_constant(LiteralRef literal, Instruction* before) {
  Instruction* made = append(Opcode::Constant, {}, {literal->type()}, {}, before);
  made->set_literal(std::move(literal));
  return made;
}

void Region::erase(Instruction* instruction) {
  FIRN_CHECK(instruction->parent_ == this, "erasing an instruction of another region");
  FIRN_CHECK(!instruction->has_uses(), "erasing an instruction that is used: " + instruction->name());
  instruction->regions_.clear();
  instruction->set_operands({});
  instructions_.erase(instruction->self_);
}

void Region::move_before(Instruction* instruction, Instruction* before) {
  FIRN_CHECK(instruction->parent_ == this && before->parent_ == this, "moving between regions");
  instructions_.splice(before->self_, instructions_, instruction->self_);
}

namespace {

void replace_region_results(Region& region, Value from, Value to) {
  for (size_t i = 0; i < region.results().size(); ++i)
    if (region.results()[i] == from) region.set_result(static_cast<int>(i), to);
  for (auto& instruction : region.instructions())
    if (has_trait(instruction->opcode(), Captures))
      for (int i = 0; i < instruction->num_regions(); ++i)
        replace_region_results(instruction->region(i), from, to);
}

} // namespace

void Region::replace_uses(Value from, Value to) {
  FIRN_CHECK(from.def->parent() == this, "replacing a value of another region");
  std::vector<Instruction*> users = from.def->users();
  for (Instruction* user : users)
    for (int i = 0; i < user->num_operands(); ++i)
      if (user->operand(i) == from) user->set_operand(i, to);
  if (from.def->result_uses_ > 0) replace_region_results(*this, from, to);
}

std::vector<Instruction*> Region::snapshot() const {
  std::vector<Instruction*> all;
  for (const auto& instruction : instructions_) all.push_back(instruction.get());
  return all;
}

namespace {

using ValueMap = std::unordered_map<const Instruction*, Instruction*>;

Value mapped(const ValueMap& map, const std::unordered_map<const Instruction*, Value>& parameters,
             Value value) {
  if (auto found = parameters.find(value.def); found != parameters.end()) return found->second;
  auto found = map.find(value.def);
  return found == map.end() ? value : Value{found->second, value.index}; // values from outside stay
}

// Copies the instructions of `from` that are not its parameters into `to`.
void clone_instructions(const Region& from, Region& to, Instruction* before, ValueMap& map,
                        std::unordered_map<const Instruction*, Value>& parameters) {
  for (const auto& original : from.instructions()) {
    if (original->is(Opcode::Parameter)) continue;
    std::vector<Value> operands;
    for (const Value& operand : original->operands()) operands.push_back(mapped(map, parameters, operand));
    std::vector<Type> types;
    for (int i = 0; i < original->num_results(); ++i) types.push_back(original->type(i));
    Instruction* copy =
        to.append(original->opcode(), std::move(operands), std::move(types), original->attributes(), before);
    copy->set_literal(original->literal());
    copy->set_name(original->name());
    copy->set_location(original->location());
    map[original.get()] = copy;
    for (int i = 0; i < original->num_regions(); ++i) {
      Region& nested = copy->add_region();
      for (Instruction* parameter : original->region(i).parameters())
        parameters[parameter] = nested.add_parameter(parameter->type(), parameter->name())->result();
      clone_instructions(original->region(i), nested, nullptr, map, parameters);
      std::vector<Value> results;
      for (const Value& result : original->region(i).results())
        results.push_back(mapped(map, parameters, result));
      nested.set_results(std::move(results));
    }
  }
}

} // namespace

std::vector<Value> Region::inline_region(const Region& from, const std::vector<Value>& arguments,
                                         Instruction* before) {
  FIRN_CHECK(arguments.size() == from.parameters().size(), "inlining with a wrong number of arguments");
  ValueMap map;
  std::unordered_map<const Instruction*, Value> parameters;
  for (size_t i = 0; i < arguments.size(); ++i) parameters[from.parameters()[i]] = arguments[i];
  clone_instructions(from, *this, before, map, parameters);
  std::vector<Value> results;
  for (const Value& result : from.results()) results.push_back(mapped(map, parameters, result));
  return results;
}

Function* Module::find(std::string_view name) const {
  for (const auto& function : functions_)
    if (function->name() == name) return function.get();
  return nullptr;
}

Function& Module::main() const {
  Function* function = find(entry.empty() ? "main" : entry);
  if (!function && entry.empty() && functions_.size() == 1) return *functions_[0];
  FIRN_CHECK(function, "module without @main");
  return *function;
}

bool Module::declares_gradients() const {
  return std::any_of(functions_.begin(), functions_.end(), [](const auto& each) { return each->gradient; });
}

std::vector<Function*> Module::entries() const {
  if (!entry.empty()) return {&main()};
  std::set<std::string> called;
  auto visit = [&](auto& self, const Region& region) -> void {
    for (const auto& instruction : region.instructions()) {
      if (instruction->is(Opcode::Call)) called.insert(instruction->attributes().text("callee"));
      for (int i = 0; i < instruction->num_regions(); ++i) self(self, instruction->region(i));
    }
  };
  for (const auto& function : functions_) {
    visit(visit, function->body());
    if (!function->adjoint_rule.empty()) called.insert(function->adjoint_rule);
  }
  std::vector<Function*> entries = {&main()};
  for (const auto& function : functions_)
    if (function.get() != entries[0] && !function->is_private && !called.count(function->name()))
      entries.push_back(function.get());
  return entries;
}

Function& Module::add_function(std::string name) {
  functions_.push_back(std::make_unique<Function>(this, std::move(name)));
  return *functions_.back();
}

void Module::erase_functions(const std::function<bool(const Function&)>& is_unwanted) {
  std::erase_if(functions_, [&](const auto& function) { return is_unwanted(*function); });
}

SymbolRef Module::find_symbol(std::string_view name) const {
  for (const SymbolRef& symbol : symbols)
    if (symbol->name == name) return symbol;
  return nullptr;
}

} // namespace firn
