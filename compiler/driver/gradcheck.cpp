// See gradcheck.h.
#include "compiler/driver/gradcheck.h"

#include "compiler/driver/import_model.h"
#include "compiler/graph/function_type.h"
#include "compiler/passes/gradient/finite_differences.h"
#include "compiler/passes/gradient/widen_to_f64.h"
#include "compiler/passes/pass.h"
#include "compiler/support/bind_symbols.h"

#include <algorithm>
#include <cstdio>

namespace firn::driver {
namespace {

constexpr double kTolerance = 1e-6;
// A step may cross a kink, such as that of relu: smaller ones are tried then, as long as rounding allows.
constexpr double kSteps[] = {0x1p-10, 0x1p-15, 0x1p-20};
constexpr int64_t kDrawnExtent = 3; // for dims that vary, if their bounds allow it

// A parameter of @main that derivatives are taken by, with the value of the initializer that it was.
struct Variable {
  std::string name;
  int parameter;
  LiteralRef value; // null: an input
};

class Gradcheck {
public:
  Gradcheck(const GradcheckOptions& options, Module& module)
      : options_(options), module_(module), main_(module.main()), random_(options.seed) {}

  Expected<GradcheckResult> run() {
    gradient::widen_to_f64(module_);
    if (Result found = find_variables(); !found) return found.error();
    declare();
    PipelineRun run;
    if (Result done = run_passes(module_, passes(), run); !done) return done.error();
    if (Result drawn = draw_inputs(); !drawn) return drawn.error();
    for (int from : results_)
      for (size_t i = 0; i < variables_.size(); ++i)
        if (Result compared = compare(from, i); !compared) return compared.error();
    return result_;
  }

private:
  // The passes of a compilation up to differentiate, or those that are asked for and differentiate.
  std::string passes() const {
    const std::string& asked_for = options_.compile.passes;
    return asked_for == "default" ? pipeline_through_differentiate() : asked_for + ",differentiate";
  }

  bool is_wanted(const std::string& name) const {
    const auto& wrt = options_.wrt;
    return wrt.empty() || std::find(wrt.begin(), wrt.end(), name) != wrt.end();
  }

  // Floats among the inputs, and initializers, which become parameters behind them.
  Result find_variables() {
    Region& body = main_.body();
    auto inputs = static_cast<int>(body.parameters().size());
    for (int i = 0; i < inputs; ++i) {
      auto index = static_cast<size_t>(i);
      bool is_named = index < main_.parameter_names.size();
      std::string name = is_named ? main_.parameter_names[index] : body.parameters()[index]->name();
      if (is_differentiable(body.parameter(i).type()) && is_wanted(name))
        variables_.push_back({name, i, nullptr});
    }
    for (Instruction* constant : body.snapshot()) {
      if (!constant->is(Opcode::Constant) || constant->location().empty()) continue;
      bool is_weight = is_differentiable(constant->type()) && constant->type().rank() > 0;
      if (!is_weight || !is_wanted(constant->location())) continue;
      variables_.push_back(
          {constant->location(), static_cast<int>(body.parameters().size()), constant->literal()});
      Instruction* parameter = body.add_parameter(constant->type(), constant->name());
      body.replace_uses(constant->result(), parameter->result());
    }
    main_.parameter_names.clear();
    for (const std::string& name : options_.wrt)
      if (std::none_of(variables_.begin(), variables_.end(),
                       [&](const Variable& v) { return v.name == name; }))
        return usage_error("--wrt names '" + name + "', which is no float input and no float initializer");
    if (variables_.empty()) return usage_error("the model has neither float inputs nor float initializers");
    return {};
  }

  std::string gradient_name(int from) const { return "gradient of result " + std::to_string(from); }

  void declare() {
    std::vector<int> wrt;
    for (const Variable& variable : variables_) wrt.push_back(variable.parameter);
    for (size_t i = 0; i < main_.body().results().size(); ++i) {
      if (!is_differentiable(main_.body().results()[i].type())) continue;
      results_.push_back(static_cast<int>(i));
      module_.add_function(gradient_name(results_.back())).gradient =
          GradientOf{main_.name(), results_.back(), wrt, {}, /*seedable=*/true, /*straight_through=*/false};
    }
  }

  Result draw_inputs() {
    SymbolTable symbols;
    for (const SymbolRef& symbol : module_.symbols)
      symbols[symbol.get()] = std::clamp(kDrawnExtent, symbol->lower, symbol->upper);
    for (const Instruction* parameter : main_.body().parameters()) {
      if (!parameter->type().is_tensor() || parameter->type().dtype == DType::String)
        return unsupported_error("input '" + parameter->name() + "' is " + parameter->type().to_string() +
                                 ": gradcheck wants tensors of numbers");
      std::vector<int64_t> dims;
      for (const Dim& dim : parameter->type().dims) dims.push_back(resolve(dim.extent, symbols).value_or(0));
      inputs_.push_back(draw(parameter->type().dtype, dims));
    }
    for (const Variable& variable : variables_)
      if (variable.value) inputs_[static_cast<size_t>(variable.parameter)] = variable.value;
    return {};
  }

  LiteralRef draw(DType dtype, const std::vector<int64_t>& dims) {
    if (is_float(dtype)) return gradient::random_floats(dtype, dims, -1, 1, random_);
    auto literal = std::make_shared<Literal>(dtype, dims);
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      literal->set_int(i, static_cast<int64_t>(random_() % 2));
    return literal;
  }

  // All elements of one variable along a direction, then some of them alone.
  Result compare(int from, size_t which) {
    const Variable& variable = variables_[which];
    std::vector<int> wrt;
    for (const Variable& each : variables_) wrt.push_back(each.parameter);
    gradient::ComparedGradient compared{main_, *module_.find(gradient_name(from)), from, wrt, inputs_};
    int64_t count = inputs_[static_cast<size_t>(variable.parameter)]->num_elements();
    for (int64_t sample = -1; sample < std::min<int64_t>(options_.samples, count); ++sample) {
      bool all_elements = sample < 0;
      int64_t element = all_elements ? -1
                        : count <= options_.samples
                            ? sample
                            : static_cast<int64_t>(random_() % static_cast<uint64_t>(count));
      uint64_t seed = random_();
      gradient::DirectionalDerivative best;
      for (double step : kSteps) {
        compared.step = step;
        std::mt19937_64 same(seed);
        auto found = gradient::compare_element(compared, which, element, same);
        if (!found) return found.error();
        if (step == kSteps[0] || found->error() < best.error()) best = *found;
        if (best.error() < kTolerance) break;
      }
      ++result_.checked;
      if (best.error() < kTolerance) continue;
      ++result_.wrong;
      if (Result printed = report(variable.name, element, from, best); !printed) return printed;
    }
    return {};
  }

  Result report(const std::string& name, int64_t element, int from,
                const gradient::DirectionalDerivative& derivative) {
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, ": %.10g, by differences %.10g\n", derivative.by_gradient,
                  derivative.by_differences);
    std::string place = element < 0 ? "along a direction" : "element " + std::to_string(element);
    return options_.print("d result " + std::to_string(from) + " / d " + name + ", " + place + numbers);
  }

  const GradcheckOptions& options_;
  Module& module_;
  Function& main_;
  std::mt19937_64 random_;
  std::vector<Variable> variables_;
  std::vector<int> results_;
  std::vector<LiteralRef> inputs_;
  GradcheckResult result_;
};

} // namespace

std::optional<GradcheckResult> gradcheck(const GradcheckOptions& options, DiagnosticList& diagnostics) {
  CompileOptions compile = options.compile;
  compile.emit = Emit::Graph; // dims may vary: numbers are drawn for them
  auto imported = import_model(compile, diagnostics);
  if (!imported) return std::nullopt;
  auto result = Gradcheck(options, *imported->module).run();
  if (!result) return diagnostics.add(result.error()), std::nullopt;
  Result printed = options.print(std::to_string(result->checked) + " derivatives checked, " +
                                 std::to_string(result->wrong) + " wrong\n");
  if (!printed) return diagnostics.add(printed.error()), std::nullopt;
  return *result;
}

} // namespace firn::driver
