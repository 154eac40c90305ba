// The interpreter's flow: functions, regions, control ops, the checks around every instruction, and the entry
// points.
#include "compiler/graph/evaluate.h"

#include "compiler/graph/evaluate_interpreter.h"

namespace firn {
namespace evaluation {

Dims OpCall::ints(std::string_view name) const {
  const Attribute* attribute = attributes().find(name);
  const auto* values = attribute ? std::get_if<std::vector<int64_t>>(attribute) : nullptr;
  return values ? *values : Dims{};
}

Expected<Dims> OpCall::extents(const Type& type) const {
  Dims dims;
  for (const Dim& dim : type.dims) {
    auto extent = resolve(dim.extent, interpreter_.symbols());
    if (!extent) return unsupported("extent " + dim.extent.to_string() + " is not known");
    if (*extent < 0) return fail("extent " + dim.extent.to_string() + " is negative");
    dims.push_back(*extent);
  }
  return dims;
}

std::string instruction_label(const Instruction& instruction) {
  std::string place = instruction.location();
  if (place.empty() && !instruction.name().empty()) place = "%" + instruction.name();
  std::string opcode(opcode_name(instruction.opcode()));
  return place.empty() ? opcode : place + " (" + opcode + ")";
}

Diagnostic OpCall::fail(const std::string& message) const {
  return model_error(instruction_label(instruction_) + ": " + message);
}
Diagnostic OpCall::unsupported(const std::string& message) const {
  return unsupported_error(instruction_label(instruction_) + ": " + message);
}

Result OpCall::check_size(DType dtype, const Dims& dims) const {
  auto count = checked_num_elements(dims);
  size_t limit = interpreter_.limits().max_literal_bytes;
  size_t element = dtype == DType::String ? sizeof(std::string) : 1;
  if (!count || static_cast<size_t>(*count) > limit / element ||
      byte_size(dtype, static_cast<size_t>(*count)) > limit)
    return fail("a result would take more than " + std::to_string(limit >> 20) + " MiB");
  return {};
}

Expected<std::shared_ptr<Literal>> OpCall::allocate(DType dtype, Dims dims) const {
  if (Result fits = check_size(dtype, dims); !fits) return fits.error();
  return std::make_shared<Literal>(dtype, std::move(dims));
}

Result OpCall::spend(double steps) const {
  if (!interpreter_.spend(steps)) return fail("takes too many steps");
  return {};
}

Expected<Values> OpCall::run_region(int region, Values arguments) const {
  return interpreter_.run_region(instruction_.region(region), std::move(arguments));
}

int64_t product(const Dims& dims, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= dims[i];
  return count;
}

bool Interpreter::spend(double steps) {
  steps_ += steps;
  return limits_.max_steps < 0 || steps_ <= limits_.max_steps;
}

namespace {

// Calls f with every definition that an instruction uses, in its regions too.
template <class F> void for_each_use(const Instruction& instruction, F f) {
  for (Value operand : instruction.operands()) f(operand.def);
  for (int i = 0; i < instruction.num_regions(); ++i) {
    const Region& region = instruction.region(i);
    for (const auto& inner : region.instructions()) for_each_use(*inner, f);
    for (Value result : region.results()) f(result.def);
  }
}

} // namespace

const std::vector<Interpreter::Step>& Interpreter::plan(const Region& region) {
  auto [found, added] = plans_.try_emplace(&region);
  std::vector<Step>& steps = found->second;
  if (!added) return steps;
  std::unordered_map<const Instruction*, size_t> last_use;
  for (const auto& instruction : region.instructions()) {
    size_t index = steps.size();
    last_use[instruction.get()] = index;
    for_each_use(*instruction, [&](const Instruction* def) {
      if (def->parent() == &region) last_use[def] = index;
    });
    steps.push_back({instruction.get(), {}});
  }
  for (Value result : region.results()) last_use.erase(result.def);
  for (const auto& [def, index] : last_use) steps[index].dead.push_back(def);
  return steps;
}

Result Interpreter::bind_parameters(const Region& region, Values arguments) {
  const auto& parameters = region.parameters();
  FIRN_CHECK(parameters.size() == arguments.size(), "region entered with a wrong number of arguments");
  for (size_t i = 0; i < parameters.size(); ++i) {
    Values value{std::move(arguments[i])};
    if (Result ok = check_results(*parameters[i], value); !ok) return ok;
    values_[parameters[i]] = std::move(value);
  }
  return {};
}

Expected<Values> Interpreter::run_region(const Region& region, Values arguments) {
  if (Result ok = bind_parameters(region, std::move(arguments)); !ok) return ok.error();
  for (const Step& current : plan(region)) {
    if (!current.instruction->is(Opcode::Parameter))
      if (Result ok = step(*current.instruction); !ok) return ok.error();
    for (const Instruction* dead : current.dead) values_.erase(dead);
  }
  Values results;
  for (Value result : region.results()) {
    auto found = values_.find(result.def);
    FIRN_CHECK(found != values_.end(), "region result has no value");
    results.push_back(found->second[static_cast<size_t>(result.index)]);
  }
  for (Value result : region.results())
    if (result.def->parent() == &region) values_.erase(result.def);
  return results;
}

Result Interpreter::step(const Instruction& instruction) {
  Values operands;
  for (Value operand : instruction.operands()) {
    auto found = values_.find(operand.def);
    FIRN_CHECK(found != values_.end(), instruction_label(instruction) + " uses a value that does not exist");
    operands.push_back(found->second[static_cast<size_t>(operand.index)]);
  }
  auto results = run_instruction(instruction, operands);
  if (!results) return results.error();
  values_[&instruction] = std::move(*results);
  return {};
}

Expected<Values> Interpreter::run_instruction(const Instruction& instruction, const Values& operands) {
  OpCall call(instruction, operands, *this);
  if (Result ok = call.spend(1); !ok) return ok.error();
  if (Result ok = check_operands(call); !ok) return ok.error();
  auto results = dispatch(call);
  if (!results) return results;
  if (Result ok = check_results(instruction, *results); !ok) return ok.error();
  return results;
}

Result Interpreter::check_operands(const OpCall& call) const {
  const OpInfo& info = op_info(call.opcode());
  if (info.arity >= 0 && call.num_operands() != info.arity)
    return call.fail("wants " + std::to_string(info.arity) + " operands, has " +
                     std::to_string(call.num_operands()));
  bool any_kind = info.op_class == OpClass::Container || info.op_class == OpClass::Control;
  for (int i = 0; i < call.num_operands(); ++i) {
    const RuntimeValue& value = call.value(i);
    if (value.kind != Type::Kind::Tensor) {
      if (!any_kind) return call.fail("operand " + std::to_string(i) + " is not a tensor");
      continue;
    }
    if (!value.tensor) return call.fail("operand " + std::to_string(i) + " has no value");
    if (value.tensor->is_opaque())
      return call.fail("operand " + std::to_string(i) + " is a constant without its bytes");
  }
  return {};
}

// The types of results are promises that every level below relies on. A counted extent becomes known here.
Result Interpreter::check_dims(const Type& type, const Literal& literal, const std::string& label) {
  if (literal.dtype() != type.dtype || literal.dims().size() != type.dims.size())
    return model_error(label + ": gives " + describe(literal) + ", its type says " + type.to_string());
  for (size_t i = 0; i < type.dims.size(); ++i) {
    const Dim& dim = type.dims[i];
    int64_t actual = literal.dims()[i];
    if (dim.extent.is_constant() && dim.extent.value() == actual) continue;
    auto extent = resolve(dim.extent, symbols_);
    std::vector<SymbolRef> symbols = dim.extent.symbols();
    bool bare = symbols.size() == 1 && dim.extent == IntExpr::symbol(symbols[0]);
    if (bare && (dim.counted || !extent)) {
      if (actual < symbols[0]->lower || actual > symbols[0]->upper)
        return model_error(label + ": extent " + std::to_string(actual) + " of dim " + std::to_string(i) +
                           " is beyond the bounds of " + type.to_string());
      symbols_[symbols[0].get()] = actual;
    } else if (extent && *extent != actual) {
      return model_error(label + ": gives " + describe(literal) + ", its type says " + type.to_string());
    }
  }
  return {};
}

Result Interpreter::check_results(const Instruction& instruction, const Values& results) {
  if (results.size() != static_cast<size_t>(instruction.num_results()))
    return model_error(instruction_label(instruction) + ": gives " + std::to_string(results.size()) +
                       " results, its type says " + std::to_string(instruction.num_results()));
  for (int i = 0; i < instruction.num_results(); ++i) {
    const Type& type = instruction.type(i);
    const RuntimeValue& value = results[static_cast<size_t>(i)];
    if (value.kind != type.kind)
      return model_error(instruction_label(instruction) + ": gives a value of another kind than " +
                         type.to_string());
    if (!type.is_tensor() || !value.tensor) continue;
    if (Result ok = check_dims(type, *value.tensor, instruction_label(instruction)); !ok) return ok;
  }
  return {};
}

Expected<Values> Interpreter::evaluate_if(const OpCall& call) {
  const Literal& condition = call.tensor(0);
  if (condition.num_elements() != 1)
    return call.fail("the condition must be a scalar, it is " + describe(condition));
  if (call.instruction().num_regions() != 2) return call.fail("wants two regions");
  return call.run_region(condition.get_int(0) != 0 ? 0 : 1, {});
}

Expected<Values> Interpreter::evaluate_while(const OpCall& call) {
  if (call.instruction().num_regions() != 2) return call.fail("wants two regions");
  Values carried;
  for (int i = 0; i < call.num_operands(); ++i) carried.push_back(call.value(i));
  for (;;) {
    auto condition = call.run_region(0, carried);
    if (!condition) return condition;
    const LiteralRef& flag = condition->front().tensor;
    if (condition->size() != 1 || !flag || flag->num_elements() != 1)
      return call.fail("the condition must be a scalar");
    if (flag->get_int(0) == 0) return carried;
    auto next = call.run_region(1, std::move(carried));
    if (!next) return next;
    carried = std::move(*next);
  }
}

Expected<Values> Interpreter::evaluate_call(const OpCall& call) {
  const Attribute* callee_name = call.attributes().find("callee");
  const auto* text = callee_name ? std::get_if<std::string>(callee_name) : nullptr;
  if (!text) return call.fail("has no callee");
  const std::string& name = *text;
  const Function* callee = call.instruction().parent()->function()->module()->find(name);
  if (!callee) return call.fail("no function @" + name);
  constexpr int deepest = 100;
  if (depth_ >= deepest) return call.fail("calls nest deeper than " + std::to_string(deepest));
  Values arguments;
  for (int i = 0; i < call.num_operands(); ++i) arguments.push_back(call.value(i));
  return Interpreter(limits_, depth_ + 1).run_function(*callee, std::move(arguments));
}

Expected<Values> Interpreter::run_function(const Function& function, Values arguments) {
  if (function.gradient)
    return unsupported_error("@" + function.name() +
                             " is a declared gradient: the pass differentiate writes its body");
  if (Result ok = bind_inputs(function, arguments, symbols_); !ok) return ok.error();
  return run_region(function.body(), std::move(arguments));
}

Expected<Values> Interpreter::dispatch(const OpCall& call) {
  const OpInfo& info = op_info(call.opcode());
  bool isolated = call.opcode() == Opcode::Composite || call.opcode() == Opcode::Fusion;
  if (!limits_.control &&
      (info.op_class == OpClass::Random || (info.op_class == OpClass::Control && !isolated)))
    return call.unsupported("is not evaluated at compile time");
  switch (call.opcode()) {
  case Opcode::Convert: return evaluate_convert(call);
  case Opcode::Constant:
    if (!call.instruction().literal() || call.instruction().literal()->is_opaque())
      return call.fail("constant without its bytes");
    return one(Literal::plain(call.instruction().literal()));
  case Opcode::Gather:
  case Opcode::GatherElements:
  case Opcode::GatherND: return evaluate_gather(call);
  case Opcode::ScatterElements:
  case Opcode::ScatterND: return evaluate_scatter(call);
  case Opcode::Reduce: return evaluate_reduce(call);
  case Opcode::ReduceWindow: return evaluate_reduce_window(call);
  case Opcode::SelectAndScatter: return evaluate_select_and_scatter(call);
  case Opcode::ArgReduce: return evaluate_arg_reduce(call);
  case Opcode::Cumulative: return evaluate_cumulative(call);
  case Opcode::Sort: return evaluate_sort(call);
  case Opcode::TopK: return evaluate_top_k(call);
  case Opcode::Dot: return evaluate_dot(call);
  case Opcode::Convolution: return evaluate_convolution(call);
  case Opcode::Quantize: return evaluate_quantize(call);
  case Opcode::Dequantize: return evaluate_dequantize(call);
  case Opcode::If: return evaluate_if(call);
  case Opcode::While: return evaluate_while(call);
  case Opcode::Call: return evaluate_call(call);
  case Opcode::Composite:
  case Opcode::Fusion: {
    Values arguments;
    for (int i = 0; i < call.num_operands(); ++i) arguments.push_back(call.value(i));
    if (call.instruction().num_regions() != 1) return call.fail("wants one region");
    if (call.instruction().region().parameters().size() != arguments.size())
      return call.fail("its region has another number of parameters");
    return call.run_region(0, std::move(arguments));
  }
  case Opcode::DynamicBroadcast:
  case Opcode::DynamicPad:
  case Opcode::DynamicReshape: return evaluate_movement(call);
  case Opcode::DimSize:
  case Opcode::DynamicIota:
  case Opcode::Iota:
  case Opcode::NonZero: return evaluate_shape(call);
  case Opcode::RngUniform: return evaluate_random(call);
  default: break;
  }
  if (is_elementwise(call.opcode())) return evaluate_elementwise(call);
  if (info.op_class == OpClass::Movement) return evaluate_movement(call);
  if (info.op_class == OpClass::Container) return evaluate_container(call);
  if (info.op_class == OpClass::Text) return evaluate_text(call);
  return call.unsupported("is not evaluated");
}

} // namespace evaluation

Expected<std::vector<RuntimeValue>> evaluate_function(const Function& function,
                                                      std::vector<RuntimeValue> arguments) {
  return evaluation::Interpreter(evaluation::Limits()).run_function(function, std::move(arguments));
}

Expected<std::vector<RuntimeValue>> evaluate_values(const Module& module, std::vector<RuntimeValue> inputs) {
  if (const Function* prepare = module.find("prepare")) {
    size_t raw = prepare->body().parameters().size();
    if (inputs.size() < raw) return model_error("@prepare wants " + std::to_string(raw) + " inputs");
    std::vector<RuntimeValue> weights(inputs.end() - static_cast<std::ptrdiff_t>(raw), inputs.end());
    inputs.resize(inputs.size() - raw);
    auto packed = evaluate_function(*prepare, std::move(weights));
    if (!packed) return packed;
    for (RuntimeValue& value : *packed) inputs.push_back(std::move(value));
  }
  return evaluate_function(module.main(), std::move(inputs));
}

namespace {

Expected<std::vector<LiteralRef>> tensors_only(const std::vector<RuntimeValue>& values) {
  std::vector<LiteralRef> literals;
  for (const RuntimeValue& value : values) {
    if (value.kind != Type::Kind::Tensor) return unsupported_error("a result is a sequence or an optional");
    literals.push_back(value.tensor);
  }
  return literals;
}

} // namespace

Expected<std::vector<LiteralRef>> evaluate(const Module& module, const std::vector<LiteralRef>& inputs) {
  auto results = evaluate_values(module, {inputs.begin(), inputs.end()});
  if (!results) return results.error();
  return tensors_only(*results);
}

std::optional<std::vector<LiteralRef>> evaluate_instruction(const Instruction& instruction,
                                                            const std::vector<LiteralRef>& operands,
                                                            size_t max_bytes) {
  evaluation::Limits limits{max_bytes, 50'000'000, false};
  auto results =
      evaluation::Interpreter(limits).run_instruction(instruction, {operands.begin(), operands.end()});
  if (!results) return {};
  auto literals = tensors_only(*results);
  if (!literals) return {};
  return *literals;
}

} // namespace firn
