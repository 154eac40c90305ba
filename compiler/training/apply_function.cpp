// See apply_function.h.
#include "compiler/training/apply_function.h"

#include <algorithm>

namespace firn::training {
namespace {

class Application {
public:
  Application(DType element, const Numbers& numbers) : element_(element), numbers_(numbers) {}

  void bind(const Instruction* parameter, Value argument) {
    values_[{parameter, 0}] = argument;
    const std::vector<Dim>& dims = parameter->type().dims;
    for (size_t i = 0; i < dims.size(); ++i)
      for (const SymbolRef& symbol : dims[i].extent.symbols())
        extents_.emplace(symbol.get(), argument.type().dims[i].extent);
  }

  std::vector<Value> write(GraphBuilder& builder, const Region& region) {
    for (const auto& instruction : region.instructions())
      if (!instruction->is(Opcode::Parameter)) write_instruction(builder, *instruction);
    std::vector<Value> results;
    for (Value result : region.results()) results.push_back(at(result));
    return results;
  }

private:
  Value at(Value value) const { return values_.at({value.def, value.index}); }

  DType mapped(DType dtype) const { return dtype == DType::F32 ? element_ : dtype; }

  Type mapped(Type type) const {
    type.dtype = mapped(type.dtype);
    for (Dim& dim : type.dims)
      dim.extent = dim.extent.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
        auto found = extents_.find(&symbol);
        return found == extents_.end() ? std::nullopt : std::optional(found->second);
      });
    return type;
  }

  Attributes mapped(const Attributes& attributes) const {
    Attributes made;
    for (const auto& [name, value] : attributes) {
      if (const auto* dtype = std::get_if<DType>(&value))
        made.set(name, mapped(*dtype));
      else if (const auto* type = std::get_if<Type>(&value))
        made.set(name, mapped(*type));
      else
        made.set(name, value);
    }
    return made;
  }

  // A copy, which no other compilation shares.
  LiteralRef literal_of(const Instruction& constant) const {
    const Literal& given = *constant.literal();
    auto number = numbers_.find(constant.name());
    auto literal = std::make_shared<Literal>(mapped(given.dtype()), given.dims());
    bool is_option = number != numbers_.end() && given.dims().empty();
    for (int64_t i = 0; i < given.num_elements(); ++i) {
      if (is_float(given.dtype()))
        literal->set_double(i, is_option ? number->second : given.get_double(i));
      else
        literal->set_int(i, is_option ? static_cast<int64_t>(number->second) : given.get_int(i));
    }
    return literal;
  }

  // Operands of one shape.
  static std::vector<Value> broadcast(GraphBuilder& builder, std::vector<Value> operands) {
    std::vector<Dim> dims = operands[0].type().dims;
    for (Value operand : operands)
      if (auto both = broadcast_dims(dims, operand.type().dims)) dims = *both;
    for (Value& operand : operands) operand = builder.broadcast_to(operand, dims);
    return operands;
  }

  void write_instruction(GraphBuilder& builder, const Instruction& instruction) {
    if (instruction.is(Opcode::Constant)) {
      values_[{&instruction, 0}] = builder.constant(literal_of(instruction));
      return;
    }
    std::vector<Value> operands;
    for (Value operand : instruction.operands()) operands.push_back(at(operand));
    Attributes attributes = mapped(instruction.attributes());
    if (instruction.is(Opcode::Convert) && mapped(instruction.type().dtype) == operands[0].dtype()) {
      values_[{&instruction, 0}] = operands[0];
      return;
    }
    if (is_elementwise(instruction.opcode())) {
      operands = broadcast(builder, std::move(operands));
      values_[{&instruction, 0}] =
          builder.op(instruction.opcode(), std::move(operands), std::move(attributes));
      return;
    }
    std::vector<Type> types;
    for (int i = 0; i < instruction.num_results(); ++i) types.push_back(mapped(instruction.type(i)));
    Instruction* made = builder.make_typed(instruction.opcode(), std::move(operands), std::move(types),
                                           std::move(attributes));
    for (int i = 0; i < instruction.num_regions(); ++i)
      write_region(instruction.region(i), made->add_region());
    for (int i = 0; i < instruction.num_results(); ++i) values_[{&instruction, i}] = made->result(i);
  }

  void write_region(const Region& from, Region& to) {
    for (const Instruction* parameter : from.parameters())
      values_[{parameter, 0}] = to.add_parameter(mapped(parameter->type()), parameter->name())->result();
    GraphBuilder builder(to);
    to.set_results(write(builder, from));
  }

  DType element_;
  const Numbers& numbers_;
  std::map<std::pair<const Instruction*, int>, Value> values_;
  std::map<const Symbol*, IntExpr> extents_;
};

} // namespace

std::vector<Value> apply_function(GraphBuilder& builder, const Function& function,
                                  const std::vector<Value>& arguments, DType element,
                                  const Numbers& numbers) {
  Application application(element, numbers);
  const auto& parameters = function.body().parameters();
  for (size_t i = 0; i < parameters.size(); ++i) application.bind(parameters[i], arguments[i]);
  return application.write(builder, function.body());
}

} // namespace firn::training
