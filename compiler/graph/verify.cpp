// The verifier. It checks, for every function:
//   - instructions precede their users within a region; operands come from the same region, or, inside the regions of
//     if and while, from an enclosing one; fusion, composite and reduction regions use only what is inside them
//   - every use is in the use list of what it uses, and no use list has more
//   - operand counts fit the op table; types equal what infer_types gives, where it gives any
//   - reshape keeps the element count, broadcast_in_dim maps dims to equal or larger ones, constants have a literal of
//     their type, iota's dim is in range
//   - regions: present where the op has them, with parameters that fit the operands and results that fit the results
//   - names of parameters and results, and aliases, fit the function's signature
#include "compiler/graph/verify.h"

#include "compiler/graph/infer_type.h"
#include "compiler/graph/text.h"

#include <algorithm>
#include <map>
#include <set>

namespace firn {
namespace {

class Verifier {
public:
  explicit Verifier(const Function& function) : function_(function) {}

  std::optional<std::string> run() {
    const Region& body = function_.body();
    auto fits = [](size_t names, size_t values) { return names == 0 || names == values; };
    if (!fits(function_.parameter_names.size(), body.parameters().size())) return "function has wrong parameter names";
    if (!fits(function_.result_names.size(), body.results().size())) return "function has wrong result names";
    if (!fits(function_.aliases.size(), body.results().size())) return "function has wrong aliases";
    for (int alias : function_.aliases)
      if (alias < -1 || alias >= static_cast<int>(body.parameters().size())) return "alias of a parameter that is not there";
    check_region(body);
    return error_;
  }

private:
  void fail(const Instruction& instruction, const std::string& what) {
    if (!error_) error_ = what + " in: " + print_instruction(instruction);
  }

  void check_region(const Region& region) {
    size_t parameters = 0;
    std::set<const Instruction*> here;
    for (const auto& owned : region.instructions()) {
      const Instruction& instruction = *owned;
      if (error_) return;
      if (instruction.parent() != &region) return fail(instruction, "instruction with another parent");
      if (instruction.is(Opcode::Parameter)) ++parameters;
      for (const Value& operand : instruction.operands()) check_use(instruction, operand);
      check_users(instruction);
      if (!error_) check_instruction(instruction);
      defined_.insert(&instruction);
      here.insert(&instruction);
    }
    if (parameters != region.parameters().size() && !error_) error_ = "region's parameter list differs from its instructions";
    for (const Value& result : region.results())
      if (!error_ && (!result.def || !defined_.count(result.def) || result.index >= result.def->num_results()))
        error_ = "region returns a value that is not defined in it";
    for (const Instruction* instruction : here) defined_.erase(instruction);
  }

  void check_use(const Instruction& user, const Value& operand) {
    if (!operand.def) return fail(user, "null operand");
    if (!defined_.count(operand.def)) return fail(user, "operand is not defined before its use");
    if (operand.index < 0 || operand.index >= operand.def->num_results()) return fail(user, "operand names a result that is not there");
    const auto& users = operand.def->users();
    if (std::find(users.begin(), users.end(), &user) == users.end()) fail(user, "use list lacks a use");
  }

  void check_users(const Instruction& instruction) {
    std::map<const Instruction*, int> uses;
    for (const Instruction* user : instruction.users()) ++uses[user];
    for (auto [user, count] : uses) {
      int slots = 0;
      for (const Value& operand : user->operands()) slots += operand.def == &instruction;
      if (slots != count) fail(instruction, "use list differs from the uses");
    }
  }

  void check_instruction(const Instruction& instruction) {
    const OpInfo& info = op_info(instruction.opcode());
    if (info.arity >= 0 && instruction.num_operands() != info.arity) return fail(instruction, "wrong operand count");
    bool wants_region = has_trait(instruction.opcode(), HasRegion);
    if (wants_region != (instruction.num_regions() > 0)) return fail(instruction, wants_region ? "region is missing" : "region on an op without");
    check_special(instruction);
    if (error_) return;
    std::vector<const Region*> regions;
    for (int i = 0; i < instruction.num_regions(); ++i) regions.push_back(&instruction.region(i));
    auto types = infer_types(instruction.opcode(), instruction.operands(), instruction.attributes(), regions);
    if (!types) return fail(instruction, types.error().message);
    if (!types->empty() || wants_region) {
      if (static_cast<int>(types->size()) != instruction.num_results()) return fail(instruction, "wrong result count");
      for (size_t i = 0; i < types->size(); ++i)
        if (!compatible((*types)[i], instruction.type(static_cast<int>(i)), instruction))
          return fail(instruction, "result type differs from the inferred " + (*types)[i].to_string());
    }
    check_regions(instruction);
  }

  // Layouts of ops other than elementwise ones are free: the layout pass decides them.
  static bool compatible(const Type& inferred, const Type& actual, const Instruction& instruction) {
    if (!inferred.is_tensor() || !actual.is_tensor()) return inferred == actual;
    if (inferred.dtype != actual.dtype || inferred.dims.size() != actual.dims.size()) return false;
    for (size_t i = 0; i < inferred.dims.size(); ++i)
      if (!(inferred.dims[i].extent == actual.dims[i].extent)) return false;
    return !is_elementwise(instruction.opcode()) || inferred.layout == actual.layout;
  }

  void check_special(const Instruction& instruction) {
    switch (instruction.opcode()) {
    case Opcode::Constant: {
      const LiteralRef& literal = instruction.literal();
      if (!literal) return fail(instruction, "constant without a literal");
      const Type& type = instruction.type();
      if (!type.is_static() || literal->dtype() != type.dtype || literal->dims() != type.static_dims())
        return fail(instruction, "constant's literal has another type");
      return;
    }
    case Opcode::Reshape: return check_reshape(instruction);
    case Opcode::BroadcastInDim: return check_broadcast(instruction);
    case Opcode::Iota: {
      const Attribute* dim = instruction.attributes().find("dim");
      const auto* axis = dim ? std::get_if<int64_t>(dim) : nullptr;
      if (!axis || *axis < 0 || *axis >= instruction.type().rank()) fail(instruction, "dim is missing or out of range");
      return;
    }
    default: return;
    }
  }

  void check_reshape(const Instruction& instruction) {
    const Type &from = instruction.operand(0).type(), &to = instruction.type();
    if (instruction.num_results() != 1 || from.dtype != to.dtype) return fail(instruction, "reshape changes the dtype");
    IntExpr before = 1, after = 1;
    for (const Dim& dim : from.dims) before = before * dim.extent;
    for (const Dim& dim : to.dims) after = after * dim.extent;
    if (before.is_constant() && after.is_constant() && before != after) fail(instruction, "reshape changes the element count");
  }

  void check_broadcast(const Instruction& instruction) {
    const Type &from = instruction.operand(0).type(), &to = instruction.type();
    const Attribute* found = instruction.attributes().find("dims");
    const auto* map = found ? std::get_if<std::vector<int64_t>>(found) : nullptr;
    if (!map || static_cast<int>(map->size()) != from.rank() || from.dtype != to.dtype)
      return fail(instruction, "broadcast's dims do not fit the operand");
    int64_t previous = -1;
    for (size_t i = 0; i < map->size(); ++i) {
      int64_t axis = (*map)[i];
      if (axis <= previous || axis >= to.rank()) return fail(instruction, "broadcast's dims are not increasing or out of range");
      previous = axis;
      const Dim &operand = from.dims[i], &result = to.dims[static_cast<size_t>(axis)];
      if (!(operand.extent == result.extent) && !(operand.is_static() && operand.value() == 1))
        return fail(instruction, "broadcast of dim " + std::to_string(i) + " changes its extent");
    }
  }

  void check_regions(const Instruction& instruction) {
    bool captures = instruction.is(Opcode::If) || instruction.is(Opcode::While);
    std::set<const Instruction*> outside;
    if (!captures) std::swap(outside, defined_);
    for (int i = 0; i < instruction.num_regions() && !error_; ++i) {
      check_region(instruction.region(i));
      if (!error_) check_signature(instruction, i);
    }
    if (!captures) std::swap(outside, defined_);
  }

  void check_signature(const Instruction& instruction, int number) {
    const Region& region = instruction.region(number);
    std::vector<Type> parameters, results;
    switch (instruction.opcode()) {
    case Opcode::Fusion: case Opcode::Composite: case Opcode::While:
      for (const Value& operand : instruction.operands()) parameters.push_back(operand.type());
      for (int i = 0; i < instruction.num_results(); ++i) results.push_back(instruction.type(i));
      if (instruction.is(Opcode::While) && number == 0) results = {Type::tensor(DType::Bool, {})};
      break;
    case Opcode::If:
      for (int i = 0; i < instruction.num_results(); ++i) results.push_back(instruction.type(i));
      break;
    case Opcode::Reduce: case Opcode::ReduceWindow: case Opcode::Sort: {
      size_t n = static_cast<size_t>(instruction.num_results());
      for (size_t i = 0; i < 2 * n; ++i) {
        bool pairs = instruction.is(Opcode::Sort);  // lhs and rhs of each operand in turn
        parameters.push_back(Type::tensor(instruction.operand(static_cast<int>(pairs ? i / 2 : i % n)).dtype(), {}));
      }
      for (size_t i = 0; i < n; ++i) results.push_back(Type::tensor(instruction.operand(static_cast<int>(i)).dtype(), {}));
      if (instruction.is(Opcode::Sort)) results = {Type::tensor(DType::Bool, {})};
      break;
    }
    default: return;
    }
    if (region.parameters().size() != parameters.size() || region.results().size() != results.size())
      return fail(instruction, "region has a wrong number of parameters or results");
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!(region.parameters()[i]->type() == parameters[i]))
        return fail(instruction, "region's parameter " + std::to_string(i) + " is " + region.parameters()[i]->type().to_string() + ", wants " + parameters[i].to_string());
    for (size_t i = 0; i < results.size(); ++i)
      if (!(region.results()[i].type() == results[i]))
        return fail(instruction, "region's result " + std::to_string(i) + " is " + region.results()[i].type().to_string() + ", wants " + results[i].to_string());
  }

  const Function& function_;
  std::set<const Instruction*> defined_;
  std::optional<std::string> error_;
};

} // namespace

Result verify(const Module& module) {
  for (const auto& function : module.functions())
    if (auto error = Verifier(*function).run()) return Diagnostic{Fault::Internal, "@" + function->name() + ": " + *error};
  return {};
}

} // namespace firn
