// The functions that ship with Firn, and the forms of losses and optimizers.
#include "compiler/training/functions.h"

#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"
#include "compiler/training/functions/function_texts.h"

#include <algorithm>

namespace firn::training {
namespace {

constexpr int kOptimizerInputs = 4; // the element, its gradient, the learning rate, the number of the step

const Module& shipped(const std::string& file) {
  static const std::vector<std::unique_ptr<Module>> modules = [] {
    std::vector<std::unique_ptr<Module>> parsed;
    for (const FunctionText& text : kFunctionTexts) {
      auto module = parse_functions(text.name, text.content);
      FIRN_CHECK(module, module ? "" : module.error().message);
      parsed.push_back(std::move(*module));
    }
    return parsed;
  }();
  for (size_t i = 0; i < modules.size(); ++i)
    if (kFunctionTexts[i].name == file) return *modules[i];
  FIRN_UNREACHABLE("no functions ship as " + file);
}

void add_names(const Module& module, std::string& names) {
  for (const auto& function : module.functions()) names += (names.empty() ? "" : ", ") + function->name();
}

Expected<const Function*> find(const std::string& kind, const std::string& name, const Module* own,
                               std::initializer_list<const char*> files) {
  if (const Function* function = own ? own->find(name) : nullptr) return function;
  std::string names;
  if (own) add_names(*own, names);
  for (const char* file : files) {
    if (const Function* function = shipped(file).find(name)) return function;
    add_names(shipped(file), names);
  }
  return usage_error("there is no " + kind + " '" + name + "', but there are " + names);
}

Diagnostic malformed(const Function& function, const std::string& what) {
  return usage_error("@" + function.name() + " " + what);
}

bool is_scalar_of(const Type& type, DType dtype) {
  return type.is_scalar() && type.dtype == dtype;
}

// The extent is one symbol and nothing else.
bool is_symbol(const Dim& dim) {
  std::vector<SymbolRef> symbols = dim.extent.symbols();
  return !dim.counted && symbols.size() == 1 && dim.extent == IntExpr::symbol(symbols[0]);
}

// A function that is applied to all elements has no other ops than those that compute one element.
Result check_elementwise(const Function& function) {
  for (const auto& instruction : function.body().instructions()) {
    Opcode opcode = instruction->opcode();
    if (opcode == Opcode::Parameter || opcode == Opcode::Constant || is_elementwise(opcode)) continue;
    return malformed(function, "computes " + std::string(opcode_name(opcode)) +
                                   ": a function of scalars is applied to every element, and has "
                                   "elementwise ops and constants alone");
  }
  return {};
}

// A call, which another module could not follow, or a constant that is text, complex or without its bytes.
const Instruction* find_foreign(const Region& region) {
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Call)) return instruction.get();
    if (const LiteralRef& literal = instruction->literal())
      if (literal->is_opaque() || literal->dtype() == DType::String || is_complex(literal->dtype()))
        return instruction.get();
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (const Instruction* foreign = find_foreign(instruction->region(i))) return foreign;
  }
  return nullptr;
}

Result check_no_foreign(const Function& function) {
  const Instruction* foreign = find_foreign(function.body());
  if (!foreign) return {};
  return malformed(function, "has '" + print_instruction(*foreign) +
                                 "': losses and optimizers have no calls, and no constants but numbers");
}

Result check_optimizer(const Function& function) {
  const Region& body = function.body();
  const DType inputs[kOptimizerInputs] = {DType::F32, DType::F32, DType::F64, DType::I64};
  bool fits = body.parameters().size() >= kOptimizerInputs &&
              body.results().size() + kOptimizerInputs == body.parameters().size() + 1;
  for (size_t i = 0; fits && i < body.parameters().size(); ++i)
    fits = is_scalar_of(body.parameters()[i]->type(), i < kOptimizerInputs ? inputs[i] : DType::F32);
  for (size_t i = 0; fits && i < body.results().size(); ++i)
    fits = is_scalar_of(body.results()[i].type(), DType::F32);
  if (!fits)
    return malformed(function,
                     "is no optimizer: wants (parameter: f32[], gradient: f32[], rate: f64[], step: i64[], "
                     "kept: f32[]...) -> (f32[], f32[]...), a result for the parameter and for all that is "
                     "kept");
  return check_elementwise(function);
}

// Prediction, target, and perhaps weights of classes.
Result check_row_loss(const Function& function) {
  const Region& body = function.body();
  auto is_floats = [](const Type& type, int rank) {
    return type.is_tensor() && type.dtype == DType::F32 && type.rank() == rank;
  };
  const auto& p = body.parameters();
  bool fits = p.size() >= 2 && p.size() <= 3 && is_floats(p[0]->type(), 2) &&
              (is_floats(p[1]->type(), 2) || (p[1]->type().is_tensor() && p[1]->type().rank() == 1));
  if (fits) {
    const std::vector<Dim>& rows = p[0]->type().dims;
    fits = is_symbol(rows[0]) && is_symbol(rows[1]) && !(rows[0] == rows[1]) &&
           p[1]->type().dims[0] == rows[0] && (p[1]->type().rank() == 1 || p[1]->type().dims[1] == rows[1]) &&
           (p.size() == 2 || p[2]->type() == Type::tensor(DType::F32, {rows[1]}));
    const auto& results = body.results();
    fits = fits && !results.empty() && results.size() <= 2;
    for (size_t i = 0; fits && i < results.size(); ++i)
      fits = results[i].type() == Type::tensor(DType::F32, {rows[0]});
  }
  if (!fits)
    return malformed(function, "is no loss of rows: wants (prediction: f32[n,c], target: i64[n] or f32[n,c], "
                               "weights of classes: f32[c]?) -> (f32[n], f32[n]?)");
  return {};
}

Result check_loss(const Function& function) {
  const Region& body = function.body();
  if (takes_rows(function)) return check_row_loss(function);
  bool fits = body.parameters().size() == 2 && body.results().size() == 1 &&
              is_scalar_of(body.results()[0].type(), DType::F32);
  for (size_t i = 0; fits && i < 2; ++i) fits = is_scalar_of(body.parameters()[i]->type(), DType::F32);
  if (!fits)
    return malformed(function, "is no loss: wants (prediction: f32[], target: f32[]) -> (f32[]), or a loss "
                               "of rows f32[n,c]");
  return check_elementwise(function);
}

} // namespace

Expected<const Function*> find_optimizer(const std::string& name, const Module* own) {
  auto found = find("optimizer", name, own, {"optimizers.hlo", "onnx_optimizers.hlo"});
  if (!found) return found;
  if (Result fits = check_optimizer(**found); !fits) return fits.error();
  if (Result fits = check_no_foreign(**found); !fits) return fits.error();
  return found;
}

Expected<const Function*> find_loss(const std::string& name, const Module* own) {
  auto found = find("loss", name, own, {"losses.hlo"});
  if (!found) return found;
  if (Result fits = check_loss(**found); !fits) return fits.error();
  if (Result fits = check_no_foreign(**found); !fits) return fits.error();
  return found;
}

const Function& shipped_optimizer(const std::string& name) {
  auto found = find_optimizer(name, nullptr);
  FIRN_CHECK(found, found ? "" : found.error().message);
  return **found;
}

std::vector<std::string> kept_names(const Function& optimizer) {
  std::vector<std::string> names;
  for (const Instruction* parameter : optimizer.body().parameters()) names.push_back(parameter->name());
  names.erase(names.begin(), names.begin() + kOptimizerInputs);
  return names;
}

bool takes_rows(const Function& loss) {
  const auto& parameters = loss.body().parameters();
  return !parameters.empty() && parameters[0]->type().rank() > 0;
}

std::map<std::string, DType> options_of(const Function& function) {
  std::map<std::string, DType> options;
  for (const auto& instruction : function.body().instructions()) {
    const std::string& name = instruction->name();
    bool is_number = instruction->is(Opcode::Constant) && instruction->type().is_scalar();
    if (is_number && !name.empty() && (name[0] < '0' || name[0] > '9'))
      options.emplace(name, instruction->type().dtype);
  }
  return options;
}

Expected<std::unique_ptr<Module>> parse_functions(const std::string& file, const std::string& text) {
  auto module = parse_module(file, text);
  if (!module) return module.error();
  if (Result verified = verify(**module); !verified)
    return usage_error(file + ": " + verified.error().message);
  for (const auto& function : (*module)->functions())
    if (function->gradient) return usage_error(file + ": @" + function->name() + " has no body");
  return module;
}

} // namespace firn::training
