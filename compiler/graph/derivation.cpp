// See derivation.h.
#include "compiler/graph/derivation.h"

#include <algorithm>

namespace firn {
namespace {

const Instruction* constant_beneath(Value operand) {
  const Instruction* def = operand.def;
  while (def->is(Opcode::BroadcastInDim)) def = def->operand(0).def;
  return def->is(Opcode::Constant) ? def : nullptr;
}

std::vector<Type> types_of(const Instruction& instruction) {
  std::vector<Type> types;
  for (int i = 0; i < instruction.num_results(); ++i) types.push_back(instruction.type(i));
  return types;
}

// The function of one instruction, whose parameters are the constants that may change.
class Recording {
public:
  explicit Recording(const std::string& name)
      : module_(std::make_shared<Module>(name)), body_(module_->add_function("derive").body()) {}

  Instruction* copy(const Instruction& original) {
    std::vector<Value> operands;
    for (Value operand : original.operands()) operands.push_back(value_of(operand));
    Instruction* made =
        body_.append(original.opcode(), std::move(operands), types_of(original), original.attributes());
    made->set_location(original.location());
    for (int i = 0; i < original.num_regions(); ++i) copy_region(original.region(i), made->add_region());
    return made;
  }

  std::vector<std::shared_ptr<const Derivation>> finish(Instruction* made) {
    std::vector<Value> results;
    for (int i = 0; i < made->num_results(); ++i) results.push_back(made->result(i));
    body_.set_results(std::move(results));
    std::vector<std::shared_ptr<const Derivation>> derivations;
    for (int i = 0; i < made->num_results(); ++i)
      derivations.push_back(std::make_shared<Derivation>(Derivation{module_, i, operands_, names_}));
    return derivations;
  }

private:
  Value value_of(Value operand) {
    const Instruction& def = *operand.def;
    if (!def.is(Opcode::Constant)) return copy(def)->result(operand.index);
    if (def.literal()->values_may_be_used()) return body_.append_constant(def.literal())->result();
    auto known = std::find(operands_.begin(), operands_.end(), def.literal());
    if (known != operands_.end()) return body_.parameter(static_cast<int>(known - operands_.begin()));
    operands_.push_back(def.literal());
    names_.push_back(def.location());
    return body_.add_parameter(def.type())->result();
  }

  static void copy_region(const Region& from, Region& to) {
    std::vector<Value> parameters;
    for (const Instruction* parameter : from.parameters())
      parameters.push_back(to.add_parameter(parameter->type(), parameter->name())->result());
    to.set_results(to.inline_region(from, parameters));
  }

  std::shared_ptr<Module> module_;
  Region& body_;
  std::vector<LiteralRef> operands_;
  std::vector<std::string> names_;
};

} // namespace

bool is_derivable(const Type& type) {
  return type.is_tensor() && type.dtype != DType::String && !is_complex(type.dtype) &&
         bit_width(type.dtype) >= 8;
}

std::vector<std::shared_ptr<const Derivation>> derivations_of(const Instruction& instruction) {
  auto may_change = [](Value operand) {
    const Instruction* constant = constant_beneath(operand);
    return constant && !constant->literal()->values_may_be_used();
  };
  const std::vector<Value>& operands = instruction.operands();
  if (std::none_of(operands.begin(), operands.end(), may_change)) return {};
  auto is_known = [](Value operand) { return operand.def->is(Opcode::Iota) || constant_beneath(operand); };
  if (!std::all_of(operands.begin(), operands.end(), is_known)) return {};
  for (Value operand : operands)
    if (!is_derivable(operand.type())) return {};
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!is_derivable(instruction.type(i))) return {};
  Recording recording(std::string(opcode_name(instruction.opcode())));
  return recording.finish(recording.copy(instruction));
}

LiteralRef derived_from(const Instruction& source, const LiteralRef& values, const ComputeValue& compute) {
  if (source.literal()->values_may_be_used()) return values;
  if (!is_derivable(source.type()) || !is_derivable(values->type())) {
    source.literal()->fix_values();
    return values;
  }
  auto module = std::make_shared<Module>("derived");
  Region& body = module->add_function("derive").body();
  Value parameter = body.add_parameter(source.type())->result();
  GraphBuilder builder(body);
  body.set_results({compute(builder, parameter)});
  return Literal::derived(
      values, std::make_shared<Derivation>(Derivation{module, 0, {source.literal()}, {source.location()}}));
}

} // namespace firn
