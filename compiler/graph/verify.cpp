// The verifier. It checks, for every function:
//   - order: instructions precede their users within a region; operands come from the same region or, inside
//     the regions of if and while, from an enclosing one; other regions use only what is inside them
//   - parameters open their region, in the order of its parameter list
//   - every use is in the use list of what it uses, and no use list has more
//   - arity, and attributes: present where the op needs them, of the right kind, words known
//     (verify_attributes.cpp)
//   - result types equal what infer_types gives; where it gives none, verify_types.cpp says what must hold; a
//     constant's literal has the constant's type
//   - regions: present where the op has them, with parameters that fit the operands and results that fit the
//     results; fusions of a known kind, which hold what it promises (verify_fusion.cpp)
//   - composites have the operands, attributes and results of their name (verify_composites.cpp)
//   - dims use symbols of the module, whose names are unique
//   - declared gradients have no body, and name a differentiable result and parameters of what they are
//     gradients of; adjoint rules have the type that the function's asks for (function_type.h)
//   - the module's parameters have unique names, and are states of the functions that have them
//   - functions have unique names; names of parameters and results, and aliases, fit the signature
#include "compiler/graph/verify.h"

#include "compiler/graph/function_type.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/graph/infer_type.h"
#include "compiler/graph/verify_attributes.h"
#include "compiler/graph/verify_composites.h"
#include "compiler/graph/verify_fusion.h"
#include "compiler/graph/verify_types.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace firn {
namespace {

class Verifier {
public:
  explicit Verifier(const Function& function) : function_(function) {}

  std::optional<std::string> run() {
    if (auto wrong = check_signature()) return wrong;
    if (auto wrong = check_gradient(function_)) return wrong;
    collect_uses(function_.body());
    check_region(function_.body());
    return error_;
  }

private:
  void fail(const Instruction& instruction, const std::string& what) {
    if (!error_) error_ = what + " in: " + print_instruction(instruction);
  }

  std::optional<std::string> check_signature() const {
    const Region& body = function_.body();
    auto fits = [](size_t names, size_t values) { return names == 0 || names == values; };
    if (!fits(function_.parameter_names.size(), body.parameters().size()))
      return "function has wrong parameter names";
    if (!fits(function_.result_names.size(), body.results().size())) return "function has wrong result names";
    if (!fits(function_.aliases.size(), body.results().size())) return "function has wrong aliases";
    std::set<int> used;
    for (size_t i = 0; i < function_.aliases.size(); ++i) {
      int alias = function_.aliases[i];
      if (alias == -1) continue;
      if (alias < -1 || alias >= static_cast<int>(body.parameters().size()))
        return "alias of a parameter that is not there";
      if (!used.insert(alias).second) return "two results alias parameter " + std::to_string(alias);
      const Value& result = body.results()[i];
      if (result && !(result.type() == body.parameter(alias).type()))
        return "result " + std::to_string(i) + " aliases a parameter of another type";
    }
    return std::nullopt;
  }

  // All operand slots, by what they use.
  void collect_uses(const Region& region) {
    for (const auto& instruction : region.instructions()) {
      for (const Value& operand : instruction->operands())
        if (operand.def) uses_[operand.def].push_back(instruction.get());
      for (int i = 0; i < instruction->num_regions(); ++i) collect_uses(instruction->region(i));
    }
  }

  void check_region(const Region& region) {
    size_t parameters = 0;
    std::set<const Instruction*> here;
    for (const auto& owned : region.instructions()) {
      const Instruction& instruction = *owned;
      if (error_) return;
      if (instruction.parent() != &region) return fail(instruction, "instruction with another parent");
      if (instruction.is(Opcode::Parameter)) {
        const auto& listed = region.parameters();
        bool in_order =
            parameters < listed.size() && listed[parameters] == &instruction && here.size() == parameters;
        if (!in_order) return fail(instruction, "parameter out of order or not in the region's list");
        ++parameters;
      }
      for (const Value& operand : instruction.operands()) check_use(instruction, operand);
      check_users(instruction);
      if (!error_) check_instruction(instruction);
      defined_.insert(&instruction);
      here.insert(&instruction);
    }
    if (parameters != region.parameters().size() && !error_)
      error_ = "region's parameter list differs from its instructions";
    for (const Value& result : region.results())
      if (!error_ &&
          (!result.def || !defined_.count(result.def) || result.index >= result.def->num_results()))
        error_ = "region returns a value that is not defined in it";
    for (const Instruction* instruction : here) defined_.erase(instruction);
  }

  void check_use(const Instruction& user, const Value& operand) {
    if (!operand.def) return fail(user, "null operand");
    if (!defined_.count(operand.def)) return fail(user, "operand is not defined before its use");
    if (operand.index < 0 || operand.index >= operand.def->num_results())
      return fail(user, "operand names a result that is not there");
  }

  void check_users(const Instruction& instruction) {
    std::vector<const Instruction*> listed(instruction.users().begin(), instruction.users().end());
    std::vector<const Instruction*>& actual = uses_[&instruction];
    std::sort(listed.begin(), listed.end());
    std::sort(actual.begin(), actual.end());
    if (listed != actual) fail(instruction, "use list differs from the uses");
  }

  void check_instruction(const Instruction& instruction) {
    const OpInfo& info = op_info(instruction.opcode());
    if (info.arity >= 0 && instruction.num_operands() != info.arity)
      return fail(instruction, "wrong operand count");
    int regions_wanted = num_regions(region_form(instruction.opcode()));
    bool needs_region = regions_wanted > 0;
    if (needs_region != (instruction.num_regions() > 0))
      return fail(instruction, needs_region ? "region is missing" : "region on an op without");
    if (instruction.num_regions() != regions_wanted)
      return fail(instruction, "op with " + std::to_string(instruction.num_regions()) + " regions, wants " +
                                   std::to_string(regions_wanted));
    if (auto wrong = check_attributes(instruction)) return fail(instruction, *wrong);
    for (int i = 0; i < instruction.num_results(); ++i)
      if (!has_known_symbols(instruction.type(i)))
        return fail(instruction, "type with a symbol that is not the module's");
    if (auto wrong = check_given_types(instruction)) return fail(instruction, *wrong);
    std::vector<const Region*> regions;
    for (int i = 0; i < instruction.num_regions(); ++i) regions.push_back(&instruction.region(i));
    auto types = infer_types(instruction.opcode(), instruction.operands(), instruction.attributes(), regions);
    if (!types) return fail(instruction, types.error().message);
    if (!types->empty() || needs_region) {
      if (static_cast<int>(types->size()) != instruction.num_results())
        return fail(instruction, "wrong result count");
      for (size_t i = 0; i < types->size(); ++i)
        if (!compatible((*types)[i], instruction.type(static_cast<int>(i)), instruction))
          return fail(instruction, "result type differs from the inferred " + (*types)[i].to_string());
    }
    check_regions(instruction);
    if (!error_ && instruction.is(Opcode::Composite))
      if (auto wrong = check_composite(instruction)) fail(instruction, *wrong);
    if (!error_ && instruction.is(Opcode::Fusion))
      if (auto wrong = check_fusion(instruction)) fail(instruction, *wrong);
  }

  // Layouts of ops other than elementwise ones are free: the layout pass decides them.
  static bool compatible(const Type& inferred, const Type& actual, const Instruction& instruction) {
    if (!inferred.is_tensor() || !actual.is_tensor()) return inferred == actual;
    if (inferred.dtype != actual.dtype || inferred.dims.size() != actual.dims.size()) return false;
    for (size_t i = 0; i < inferred.dims.size(); ++i)
      if (!(inferred.dims[i].extent == actual.dims[i].extent)) return false;
    return !is_elementwise(instruction.opcode()) || inferred.layout == actual.layout;
  }

  bool has_known_symbols(const Type& type) const {
    if (!type.is_tensor()) return has_known_symbols(*type.element);
    const auto& known = function_.module()->symbols;
    for (const Dim& dim : type.dims)
      for (const SymbolRef& symbol : dim.extent.symbols())
        if (std::find(known.begin(), known.end(), symbol) == known.end()) return false;
    return true;
  }

  void check_regions(const Instruction& instruction) {
    bool captures = has_trait(instruction.opcode(), Captures);
    std::set<const Instruction*> outside;
    if (!captures) std::swap(outside, defined_);
    for (int i = 0; i < instruction.num_regions() && !error_; ++i) {
      check_region(instruction.region(i));
      if (!error_) check_region_signature(instruction, i);
    }
    if (!captures) std::swap(outside, defined_);
  }

  void check_region_signature(const Instruction& instruction, int number) {
    const Region& region = instruction.region(number);
    std::vector<Type> parameters, results;
    const Type truth = Type::tensor(DType::Bool, {});
    auto scalar_of = [&](int operand) { return Type::tensor(instruction.operand(operand).dtype(), {}); };
    switch (region_form(instruction.opcode())) {
    case RegionForm::None: return;
    case RegionForm::Body:
    case RegionForm::Loop:
      for (const Value& operand : instruction.operands()) parameters.push_back(operand.type());
      [[fallthrough]];
    case RegionForm::Branches:
      for (int i = 0; i < instruction.num_results(); ++i) results.push_back(instruction.type(i));
      if (region_form(instruction.opcode()) == RegionForm::Loop && number == 0) results = {truth};
      break;
    case RegionForm::Reducer:
      for (int i = 0; i < instruction.num_results(); ++i) results.push_back(scalar_of(i));
      parameters = results;
      parameters.insert(parameters.end(), results.begin(), results.end());
      break;
    case RegionForm::Comparator:
      for (int i = 0; i < instruction.num_results(); ++i)
        parameters.insert(parameters.end(), 2, scalar_of(i));
      results = {truth};
      break;
    case RegionForm::SelectAndScatter:
      parameters.assign(2, scalar_of(0));
      results = {number == 0 ? truth : scalar_of(0)};
      break;
    }
    if (region.parameters().size() != parameters.size() || region.results().size() != results.size())
      return fail(instruction, "region has a wrong number of parameters or results");
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!(region.parameters()[i]->type() == parameters[i]))
        return fail(instruction, "region's parameter " + std::to_string(i) + " is " +
                                     region.parameters()[i]->type().to_string() + ", wants " +
                                     parameters[i].to_string());
    for (size_t i = 0; i < results.size(); ++i)
      if (!(region.results()[i].type() == results[i]))
        return fail(instruction, "region's result " + std::to_string(i) + " is " +
                                     region.results()[i].type().to_string() + ", wants " +
                                     results[i].to_string());
  }

  const Function& function_;
  std::unordered_map<const Instruction*, std::vector<const Instruction*>> uses_;
  std::set<const Instruction*> defined_;
  std::optional<std::string> error_;
};

Result check_parameters(const Module& module) {
  std::set<std::string_view> names;
  for (const std::string& name : module.parameters)
    if (!names.insert(name).second) return internal_error("two parameters are named '" + name + "'");
  for (const auto& function : module.functions())
    for (size_t i = 0; i < function->parameter_names.size(); ++i)
      if (names.count(function->parameter_names[i]) && !function->is_state(i))
        return internal_error("@" + function->name() + ": '" + function->parameter_names[i] +
                              "' is a parameter of the module, but no state");
  return {};
}

} // namespace

Result verify(const Module& module) {
  std::set<std::string_view> names;
  for (const SymbolRef& symbol : module.symbols)
    if (!names.insert(symbol->name).second)
      return internal_error("two symbols are named '" + symbol->name + "'");
  names.clear();
  for (const auto& function : module.functions())
    if (!names.insert(function->name()).second)
      return internal_error("two functions are named @" + function->name());
  for (const auto& function : module.functions())
    if (auto error = Verifier(*function).run()) return internal_error("@" + function->name() + ": " + *error);
  return check_parameters(module);
}

} // namespace firn
