// See gradient_case.h.
#include "tests/gradients/gradient_case.h"

#include "compiler/graph/function_type.h"
#include "compiler/graph/verify.h"
#include "compiler/passes/gradient/finite_differences.h"
#include "compiler/passes/gradient/widen_to_f64.h"
#include "compiler/passes/pass.h"
#include "compiler/support/bind_symbols.h"

#include <cmath>
#include <numeric>

namespace firn::test {
namespace {

std::unique_ptr<Module> parsed(const std::string& text) {
  auto module = parse_module("case", text);
  if (!module) FAIL(module.error().message);
  Result valid = verify(**module);
  if (!valid) FAIL(valid.error().message);
  return std::move(*module);
}

Result derive(Module& module) {
  PipelineRun run;
  return run_passes(module, "differentiate", run);
}

// Inputs for the parameters of a function, at drawn extents of its symbols.
class Inputs {
public:
  explicit Inputs(std::mt19937_64& random) : random_(random) {}

  void draw_extents(const Module& module) {
    static constexpr int64_t kExtents[] = {0, 1, 2, 3, 5, 7};
    for (const SymbolRef& symbol : module.symbols) do
        symbols_[symbol.get()] = kExtents[random_() % std::size(kExtents)];
      while (symbols_[symbol.get()] < symbol->lower || symbols_[symbol.get()] > symbol->upper);
  }

  LiteralRef draw(const Type& type, const std::string& name) {
    std::vector<int64_t> dims;
    for (const Dim& dim : type.dims) dims.push_back(*resolve(dim.extent, symbols_));
    if (is_float(type.dtype)) return draw_floats(type.dtype, dims, name.substr(0, name.find('_')));
    auto literal = std::make_shared<Literal>(type.dtype, dims);
    for (int64_t i = 0; i < literal->num_elements(); ++i) literal->set_int(i, draw_integer(name));
    return literal;
  }

private:
  LiteralRef draw_floats(DType dtype, std::vector<int64_t> dims, const std::string& kind) {
    if (kind == "signed") return draw_signed(dtype, std::move(dims));
    if (kind == "distinct") return draw_distinct(dtype, std::move(dims));
    double low = -0.9, high = 0.9;
    if (kind == "positive") low = 0.3, high = 2;
    if (kind == "small") low = -0.2, high = 0.2;
    if (kind == "large") low = 1.3, high = 3;
    if (kind == "unit") low = 0.41, high = 0.5;
    if (kind == "ratio") low = 1.05, high = 1.15;
    return gradient::random_floats(dtype, std::move(dims), low, high, random_);
  }

  LiteralRef draw_signed(DType dtype, std::vector<int64_t> dims) {
    auto literal = std::make_shared<Literal>(dtype, std::move(dims));
    LiteralRef magnitudes = gradient::random_floats(dtype, literal->dims(), 0.3, 1.2, random_);
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      literal->set_double(i, random_() % 2 ? magnitudes->get_double(i) : -magnitudes->get_double(i));
    return literal;
  }

  // Signed numbers that differ by more than the steps of differences.
  LiteralRef draw_distinct(DType dtype, std::vector<int64_t> dims) {
    auto literal = std::make_shared<Literal>(dtype, std::move(dims));
    std::vector<int64_t> order(static_cast<size_t>(literal->num_elements()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (size_t i = 0; i < order.size(); ++i) {
      double place = (2 * static_cast<double>(order[i]) + 1) / static_cast<double>(order.size()) - 1;
      literal->set_double(static_cast<int64_t>(i), place < 0 ? 0.9 * place - 0.3 : 0.9 * place + 0.3);
    }
    return literal;
  }

  int64_t draw_integer(const std::string& name) {
    std::string kind = name.substr(0, name.find('_'));
    auto number = [&](size_t from) { return static_cast<int64_t>(std::stoi(kind.substr(from))); };
    if (kind.starts_with("index"))
      return static_cast<int64_t>(random_() % static_cast<uint64_t>(2 * number(5))) - number(5);
    if (kind.starts_with("start"))
      return static_cast<int64_t>(random_() % static_cast<uint64_t>(number(5) + 1));
    return static_cast<int64_t>(random_() % 2);
  }

  std::mt19937_64& random_;
  SymbolTable symbols_;
};

std::vector<int> differentiable(const std::vector<Type>& types) {
  std::vector<int> numbers;
  for (size_t i = 0; i < types.size(); ++i)
    if (is_differentiable(types[i])) numbers.push_back(static_cast<int>(i));
  return numbers;
}

// Declares the gradients of each float result of a function by all float parameters.
std::vector<Declared> declare_gradients(Module& module, const std::string& name) {
  std::vector<Declared> all;
  FunctionType type = *function_type(*module.find(name));
  for (int from : differentiable(type.results)) {
    std::string gradient = name + "_" + std::to_string(from);
    module.add_function(gradient).gradient =
        GradientOf{name, from, differentiable(type.parameters), {}, /*seedable=*/true};
    all.push_back({name, gradient, from});
  }
  return all;
}

bool is_declared(const std::vector<Declared>& all, const std::string& name) {
  return std::any_of(all.begin(), all.end(), [&](const Declared& each) { return each.gradient == name; });
}

double dot(const Literal& x, const Literal& y) {
  double sum = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) sum += x.get_double(i) * y.get_double(i);
  return sum;
}

// A gradient is linear in its seed u: that of <v, gradient> by u is the Jacobian times v, and <u, J v> has to
// be <v, gradient>, without any differences.
void check_transposition(const gradient::ComparedGradient& compared, std::mt19937_64& random) {
  std::vector<RuntimeValue> arguments(compared.inputs.begin(), compared.inputs.end());
  auto first = evaluate_function(compared.primal, arguments);
  REQUIRE(first);
  const Literal& gradient = *(*first)[static_cast<size_t>(compared.from)].tensor;
  LiteralRef v = gradient::random_floats(gradient.dtype(), gradient.dims(), -1, 1, random);
  arguments.push_back(v);
  auto second = evaluate_function(compared.gradient, arguments);
  REQUIRE(second);
  double transposed = dot(*v, gradient), forward = dot(*compared.inputs.back(), *second->back().tensor);
  CHECK(std::fabs(transposed - forward) <= 1e-13 * (1 + std::fabs(transposed)));
}

} // namespace

std::string text_of(const std::vector<TestParameter>& parameters, const CompositeBody& body) {
  Module module("m");
  Region& region = module.add_function("f").body();
  std::vector<Value> values;
  for (const TestParameter& each : parameters)
    values.push_back(region.add_parameter(Type::tensor_of(each.dtype, each.dims), each.name)->result());
  GraphBuilder builder(region);
  region.set_results(body(builder, values));
  gradient::widen_to_f64(module);
  return print_module(module);
}

std::vector<Declared> declare_both_orders(Module& module, const std::string& function) {
  std::vector<Declared> all = declare_gradients(module, function);
  for (size_t i = 0, first_order = all.size(); i < first_order; ++i)
    for (const Declared& each : declare_gradients(module, all[i].gradient)) all.push_back(each);
  return all;
}

std::vector<LiteralRef> draw_inputs(const Module& module, const Function& function, std::mt19937_64& random) {
  Inputs inputs(random);
  inputs.draw_extents(module);
  std::vector<LiteralRef> literals;
  std::vector<std::string> names = parameter_names(function);
  for (const Instruction* parameter : function.body().parameters())
    literals.push_back(inputs.draw(parameter->type(), names[literals.size()]));
  return literals;
}

std::unique_ptr<Module> differentiated(const std::string& text) {
  auto module = parsed(text);
  Result done = derive(*module);
  if (!done) FAIL(done.error().message);
  return module;
}

std::string refusal(const std::string& text) {
  auto module = parsed(text);
  Result done = derive(*module);
  REQUIRE_FALSE(done);
  CHECK(done.error().fault == Fault::Unsupported);
  return done.error().message;
}

std::vector<LiteralRef> literals_of(const Function& function, const std::vector<std::string>& inputs) {
  std::vector<LiteralRef> literals;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string type = function.body().parameters()[i]->type().to_string();
    auto module = parsed("module @l { func @main() -> (" + type + ") { %r = constant [" + inputs[i] +
                         "] : " + type + " return %r } }");
    literals.push_back(module->main().body().results()[0].def->literal());
  }
  return literals;
}

std::vector<LiteralRef> run(const Module& module, const std::string& function,
                            const std::vector<std::string>& inputs) {
  const Function& target = *module.find(function);
  std::vector<LiteralRef> arguments = literals_of(target, inputs), literals;
  auto results = evaluate_function(target, {arguments.begin(), arguments.end()});
  if (!results) FAIL(results.error().message);
  for (const RuntimeValue& value : *results) literals.push_back(value.tensor);
  return literals;
}

std::vector<double> elements(const Literal& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.num_elements(); ++i) values.push_back(literal.get_double(i));
  return values;
}

void check_by_differences(const std::string& text, const std::string& function, int draws) {
  auto module = parsed(text);
  std::vector<Declared> all = declare_both_orders(*module, function);
  Result done = derive(*module);
  if (!done) FAIL(done.error().message);
  std::mt19937_64 random(1);
  for (int draw = 0; draw < draws; ++draw) {
    Inputs inputs(random);
    inputs.draw_extents(*module);
    for (const Declared& each : all) {
      const Function &primal = *module->find(each.primal), &gradient = *module->find(each.gradient);
      gradient::ComparedGradient compared{primal, gradient, each.from, {}, {}};
      std::vector<std::string> names = parameter_names(primal);
      for (const Instruction* parameter : primal.body().parameters())
        compared.inputs.push_back(inputs.draw(parameter->type(), names[compared.inputs.size()]));
      compared.wrt = differentiable(function_type(primal)->parameters);
      auto derivative = gradient::compare_along(compared, random);
      if (!derivative) FAIL(each.gradient + ": " + derivative.error().message);
      INFO("draw " << draw << " of @" << each.gradient << ": " << derivative->by_gradient
                   << ", by differences " << derivative->by_differences);
      CHECK(derivative->error() < 1e-8);
      if (is_declared(all, each.primal)) check_transposition(compared, random);
    }
  }
}

} // namespace firn::test
