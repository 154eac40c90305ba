// Checks of result types that are stated, not inferred.
#include "compiler/graph/verify_types.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/graph/custom_call.h"
#include "compiler/graph/function_type.h"

namespace firn {
namespace {

using Wrong = std::optional<std::string>;

bool is_scalar_of(const Type& type, DType dtype) {
  return type.is_scalar() && type.dtype == dtype;
}
bool is_vector_of(const Type& type, DType dtype) {
  return type.is_tensor() && type.rank() == 1 && type.dtype == dtype;
}

// The product of dims, unless it may leave the range that expressions can hold.
std::optional<IntExpr> product(const std::vector<Dim>& dims) {
  __int128 largest = 1;
  size_t terms = 1;
  for (const Dim& dim : dims) {
    __int128 sum = dim.extent.constant_part() < 0 ? -dim.extent.constant_part() : dim.extent.constant_part();
    for (const IntExpr::Term& term : dim.extent.terms())
      sum += term.coefficient < 0 ? -term.coefficient : term.coefficient;
    terms *= dim.extent.terms().size() + 1;
    largest *= sum > 0 ? sum : 1;
    if (largest > (int64_t(1) << 58) || terms > 64) return std::nullopt;
  }
  IntExpr count = 1;
  for (const Dim& dim : dims) count = count * dim.extent;
  return count;
}

Wrong check_constant(const Instruction& instruction) {
  const LiteralRef& literal = instruction.literal();
  if (!literal) return "constant without a literal";
  const Type& type = instruction.type();
  if (!type.is_static() || literal->dtype() != type.dtype || literal->dims() != type.static_dims())
    return "constant's literal is " + literal->type().to_string();
  return std::nullopt;
}

Wrong check_reshape(const Instruction& instruction) {
  const Type &from = instruction.operand(0).type(), &to = instruction.type();
  if (from.dtype != to.dtype) return "reshape changes the dtype";
  auto before = product(from.dims), after = product(to.dims);
  // Counted and symbolic extents may be equal without being of one form.
  if (before && after && before->is_constant() && after->is_constant() && *before != *after)
    return "reshape changes the element count";
  return std::nullopt;
}

Wrong check_broadcast(const Instruction& instruction) {
  const Type &from = instruction.operand(0).type(), &to = instruction.type();
  const auto& map = instruction.attributes().ints("dims");
  if (static_cast<int>(map.size()) != from.rank() || from.dtype != to.dtype)
    return "broadcast's dims or dtype do not fit the operand";
  int64_t previous = -1;
  for (size_t i = 0; i < map.size(); ++i) {
    if (map[i] <= previous || map[i] >= to.rank())
      return "broadcast's dims are not increasing or out of range";
    previous = map[i];
    const Dim &operand = from.dims[i], &result = to.dims[static_cast<size_t>(map[i])];
    if (!(operand.extent == result.extent) && !(operand.extent == IntExpr(1)))
      return "broadcast of dim " + std::to_string(i) + " changes its extent";
  }
  return std::nullopt;
}

// A parameter's type is checked with its region.
Wrong check_parameter(const Instruction&) {
  return std::nullopt;
}

Wrong check_iota(const Instruction& instruction) {
  int64_t dim = instruction.attributes().integer("dim");
  if (!instruction.type().is_tensor() || dim < 0 || dim >= instruction.type().rank())
    return "dim is out of range";
  if (instruction.type().dtype == DType::String) return "iota of strings";
  return std::nullopt;
}

Wrong check_bitcast(const Instruction& instruction) {
  const Type &from = instruction.operand(0).type(), &to = instruction.type();
  if (from.dtype == DType::String || to.dtype == DType::String) return "bitcast of strings";
  if (!from.is_static() || !to.is_static()) return std::nullopt;
  if (from.num_elements() * bit_width(from.dtype) != to.num_elements() * bit_width(to.dtype))
    return "bitcast changes the number of bits";
  return std::nullopt;
}

// Operands after the first are vectors or scalars that say the shape; the dtype stays.
Wrong check_dynamic(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if (instruction.num_operands() != (opcode == Opcode::DynamicPad ? 4 : 2)) return "wrong operand count";
  const Type &operand = instruction.operand(0).type(), &result = instruction.type();
  if (operand.dtype != result.dtype) return "result has another dtype than the operand";
  int first = 1;
  if (opcode == Opcode::DynamicPad) {
    if (!is_scalar_of(instruction.operand(1).type(), operand.dtype))
      return "padding value is no scalar of the dtype";
    if (result.rank() != operand.rank()) return "result has another rank than the operand";
    first = 2;
  }
  for (int i = first; i < instruction.num_operands(); ++i) {
    const Type& vector = instruction.operand(i).type();
    if (!is_vector_of(vector, DType::I64)) return "operand " + std::to_string(i) + " is no i64 vector";
    // A shape vector shorter than the result's rank is ONNX's Expand.
    bool exact = opcode != Opcode::DynamicBroadcast && vector.dims[0].is_static();
    if (exact && vector.dim(0) != result.rank())
      return "result's rank differs from the length of operand " + std::to_string(i);
  }
  return std::nullopt;
}

Wrong check_dynamic_iota(const Instruction& instruction) {
  if (instruction.num_operands() != 3) return "wrong operand count";
  if (!is_vector_of(instruction.type(), instruction.type().dtype)) return "result is no vector";
  for (const Value& operand : instruction.operands())
    if (!is_scalar_of(operand.type(), instruction.type().dtype))
      return "operands want to be scalars of the result's dtype";
  return std::nullopt;
}

Wrong check_non_zero(const Instruction& instruction) {
  if (instruction.num_results() != 2) return "wrong result count";
  const Type& indices = instruction.type(0);
  bool fits = indices.is_tensor() && indices.dtype == DType::I64 && indices.rank() == 2 &&
              indices.dims[0] == Dim(instruction.operand(0).rank()) &&
              is_scalar_of(instruction.type(1), DType::I64);
  return fits ? Wrong() : "results want to be i64[rank, n] and an i64 scalar";
}

Wrong check_random(const Instruction& instruction) {
  if (instruction.num_operands() != 2 && instruction.num_operands() != 3) return "wrong operand count";
  for (int i = 0; i < 2; ++i)
    if (!instruction.operand(i).type().is_scalar()) return "bounds want to be scalars";
  if (instruction.num_operands() == 3 && !is_vector_of(instruction.operand(2).type(), DType::I64))
    return "shape is no i64 vector";
  return std::nullopt;
}

Wrong check_call(const Instruction& instruction) {
  const std::string& name = instruction.attributes().text("callee");
  const Function* callee = instruction.parent()->function()->module()->find(name);
  if (!callee) return "no function @" + name;
  auto type = function_type(*callee);
  if (!type) return type.error().message;
  if (static_cast<int>(type->parameters.size()) != instruction.num_operands() ||
      static_cast<int>(type->results.size()) != instruction.num_results())
    return "@" + name + " has another number of parameters or results";
  for (int i = 0; i < instruction.num_operands(); ++i)
    if (!(type->parameters[static_cast<size_t>(i)] == instruction.operand(i).type()))
      return "@" + name + " has another type of parameter " + std::to_string(i);
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!(type->results[static_cast<size_t>(i)] == instruction.type(i)))
      return "@" + name + " has another type of result " + std::to_string(i);
  return std::nullopt;
}

// Dims of elements may differ from the container's: its element type says their bound.
bool is_element(const Type& container, const Type& element) {
  return container.element->kind == element.kind && container.element->dtype == element.dtype;
}

Wrong check_sequence(const Instruction& instruction) {
  const Type& result = instruction.type();
  if (instruction.is(Opcode::SequenceMake)) {
    if (result.kind != Type::Kind::Sequence) return "result is no sequence";
    for (const Value& operand : instruction.operands())
      if (!is_element(result, operand.type()))
        return "operand " + operand.type().to_string() + " is no element of the result";
    return std::nullopt;
  }
  const Type& sequence = instruction.operand(0).type();
  if (sequence.kind != Type::Kind::Sequence)
    return "operand is " + sequence.to_string() + ", wants a sequence";
  int position = instruction.num_operands() - 1;
  if (position > 0 && !is_scalar_of(instruction.operand(position).type(), DType::I64))
    return "position is no i64 scalar";
  switch (instruction.opcode()) {
  case Opcode::SequenceLength: return is_scalar_of(result, DType::I64) ? Wrong() : "result is no i64 scalar";
  case Opcode::SequenceAt:
    return is_element(sequence, result) ? Wrong() : "result is no element of the sequence";
  case Opcode::SequenceInsert:
    if (!is_element(sequence, instruction.operand(1).type()))
      return "inserts what is no element of the sequence";
    break;
  default: break;
  }
  bool fits = result.kind == Type::Kind::Sequence && is_element(result, *sequence.element);
  return fits ? Wrong() : "result is no sequence of the operand's elements";
}

Wrong check_optional(const Instruction& instruction) {
  const Type& result = instruction.type();
  switch (instruction.opcode()) {
  case Opcode::OptionalHas: return is_scalar_of(result, DType::Bool) ? Wrong() : "result is no bool scalar";
  case Opcode::OptionalGet: {
    const Type& operand = instruction.operand(0).type();
    const Type& element = operand.kind == Type::Kind::Optional ? *operand.element : operand;
    return element.kind == result.kind && element.dtype == result.dtype
               ? Wrong()
               : "result is not what the optional holds";
  }
  default:
    if (result.kind != Type::Kind::Optional) return "result is no optional";
    if (instruction.num_operands() > 1) return "wrong operand count";
    if (instruction.num_operands() == 1 && !is_element(result, instruction.operand(0).type()))
      return "operand is not what the optional holds";
    return std::nullopt;
  }
}

Wrong check_custom(const Instruction& instruction) {
  return check_custom_call(instruction);
}

using Check = Wrong (*)(const Instruction&);

// The check of each op; null if its types are inferred.
constexpr Check kChecks[] = {
#define FIRN_infer(rule) nullptr
#define FIRN_given(rule) check_##rule
#define FIRN_OP(enumerator, mnemonic, arity, cls, types, traits) FIRN_##types,
#include "compiler/graph/ops.def"
#undef FIRN_infer
#undef FIRN_given
};

} // namespace

std::optional<std::string> check_given_types(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  if (is_checked_clamp(instruction) && instruction.type() != Type::tensor(DType::I64, {}))
    return "a clamp that is checked wants i64 scalars";
  if (opcode != Opcode::Constant && instruction.literal()) return "literal on an op that is no constant";
  Check check = kChecks[static_cast<size_t>(opcode)];
  if (!check) return std::nullopt;
  if (opcode == Opcode::Call || opcode == Opcode::Custom || opcode == Opcode::NonZero)
    return check(instruction); // these checks count results themselves
  if (instruction.num_results() != 1) return "wrong result count";
  bool is_tensor = op_info(opcode).op_class != OpClass::Container && opcode != Opcode::Parameter;
  if (is_tensor && !instruction.type().is_tensor()) return "result is no tensor";
  return check(instruction);
}

} // namespace firn
