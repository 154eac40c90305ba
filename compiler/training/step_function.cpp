// @step: loss and gradients by a call of a declared gradient, then an update of every state.
#include "compiler/training/step_function.h"

#include "compiler/training/functions.h"

#include <algorithm>
#include <numeric>

namespace firn::training {
namespace {

constexpr const char* kGradients = "step_gradients";
constexpr double kNormEpsilon = 1e-6; // PyTorch's, where norms are clipped

class StepFunction {
public:
  StepFunction(Module& module, const StepParts& parts, const TrainingOptions& options)
      : parts_(parts), options_(options), step_(module.add_function("step")), builder_(step_.body()),
        tensors_(parts.evaluate.body().parameters().size() - parts.inputs) {}

  void write() {
    add_parameters();
    std::vector<Value> gradients = call_gradients();
    if (options_.clip_norm > 0) clip(gradients);
    Value count = add_state("step_count", Type::tensor(DType::I64, {}));
    Value number = builder_.binary(Opcode::Add, count, integer(1));
    for (size_t i = 0; i < tensors_; ++i) update(i, gradients[i], number);
    set_next(count, number);
    return_results();
  }

private:
  Value integer(int64_t value) { return builder_.constant(Literal::of<int64_t>(DType::I64, {}, {value})); }
  Value number(DType dtype, double value) { return builder_.scalar(dtype, value); }
  Value multiply(Value lhs, Value rhs) { return builder_.binary(Opcode::Multiply, lhs, rhs); }

  Value tensor(size_t index) { return step_.body().parameter(static_cast<int>(parts_.inputs + 1 + index)); }

  Value add_parameter(const std::string& name, const Type& type) {
    step_.parameter_names.push_back(name);
    return step_.body().add_parameter(type, name)->result();
  }

  Value add_state(const std::string& wanted, const Type& type) {
    return add_parameter(parts_.unused_name(wanted), type);
  }

  // The parameters of @evaluate with the learning rate before the trained tensors.
  void add_parameters() {
    const auto& given = parts_.evaluate.body().parameters();
    bool has_f64 = std::any_of(given.begin() + static_cast<std::ptrdiff_t>(parts_.inputs), given.end(),
                               [](const Instruction* each) { return each->type().dtype == DType::F64; });
    for (size_t i = 0; i < given.size(); ++i) {
      if (i == parts_.inputs)
        rate_ = add_state("learning_rate", Type::tensor(has_f64 ? DType::F64 : DType::F32, {}));
      Value added = add_parameter(parts_.evaluate.parameter_names[i], given[i]->type());
      arguments_.push_back(added);
    }
    wide_rate_ = builder_.convert(rate_, DType::F64);
  }

  // Gradients by the trained tensors; sets the loss, and whether it is a number.
  std::vector<Value> call_gradients() {
    Module& module = *step_.module();
    GradientOf declared{parts_.evaluate.name(), 0, {}, {0}, /*seedable=*/false, options_.straight_through};
    std::vector<Type> types;
    for (size_t i = 0; i < tensors_; ++i) {
      declared.wrt.push_back(static_cast<int>(parts_.inputs + i));
      types.push_back(tensor(i).type());
    }
    types.push_back(parts_.evaluate.body().results()[0].type());
    module.add_function(kGradients).gradient = std::move(declared);
    Instruction* call = builder_.make_typed(Opcode::Call, arguments_, std::move(types),
                                            {{"callee", std::string(kGradients)}});
    std::vector<Value> gradients;
    for (size_t i = 0; i < tensors_; ++i) gradients.push_back(call->result(static_cast<int>(i)));
    loss_ = call->result(static_cast<int>(tensors_));
    is_broken_ = builder_.binary(Opcode::Or, builder_.unary(Opcode::IsNaN, loss_),
                                 builder_.unary(Opcode::IsInf, loss_));
    return gradients;
  }

  // Scales the gradients so that the norm of all of them together is at most clip_norm.
  void clip(std::vector<Value>& gradients) {
    Value sum;
    for (Value gradient : gradients) {
      std::vector<int64_t> dims(static_cast<size_t>(gradient.rank()));
      std::iota(dims.begin(), dims.end(), 0);
      Value squares = builder_.reduce(Opcode::Add, multiply(gradient, gradient), dims, /*keep_dims=*/false);
      squares = builder_.convert(squares, rate_.dtype());
      sum = sum ? builder_.binary(Opcode::Add, sum, squares) : squares;
    }
    DType dtype = rate_.dtype();
    Value norm = builder_.binary(Opcode::Add, builder_.unary(Opcode::Sqrt, sum), number(dtype, kNormEpsilon));
    Value factor = builder_.binary(Opcode::Divide, number(dtype, options_.clip_norm), norm);
    factor = builder_.binary(Opcode::Minimum, factor, number(dtype, 1));
    for (Value& gradient : gradients)
      gradient = multiply(gradient, builder_.convert(factor, gradient.dtype()));
  }

  void update(size_t index, Value gradient, Value step_number) {
    Value parameter = tensor(index);
    const DType dtype = parameter.dtype();
    const std::string& name = parts_.evaluate.parameter_names[parts_.inputs + index];
    auto decay = options_.numbers.find("weight_decay");
    bool decays_itself = options_of(parts_.optimizer).count("weight_decay") != 0;
    if (!decays_itself && decay != options_.numbers.end() && decay->second != 0)
      gradient = builder_.binary(Opcode::Add, gradient, multiply(parameter, number(dtype, decay->second)));
    std::vector<Value> arguments{parameter, gradient, wide_rate_, step_number};
    for (const std::string& kept : kept_names(parts_.optimizer))
      arguments.push_back(add_state(name + "." + kept, parameter.type()));
    std::vector<Value> updated =
        apply_function(builder_, parts_.optimizer, arguments, dtype, options_.numbers);
    set_next(parameter, updated[0]);
    for (size_t i = 1; i < updated.size(); ++i) set_next(arguments[i + 3], updated[i]);
  }

  // States stay what they are if the loss is no number. A result that does not depend on the elements of the
  // tensor, which a user's function may give, is broadcast to them.
  void set_next(Value state, Value next) {
    next_.push_back({state, builder_.select(is_broken_, state, next)});
  }

  void return_results() {
    std::vector<Value> results{loss_};
    step_.result_names = {parts_.evaluate.result_names[0]};
    step_.aliases = {-1};
    const auto& parameters = step_.body().parameters();
    for (const auto& [state, next] : next_) {
      auto place = std::find(parameters.begin(), parameters.end(), state.def) - parameters.begin();
      results.push_back(next);
      step_.result_names.push_back("next " + step_.parameter_names[static_cast<size_t>(place)]);
      step_.aliases.push_back(static_cast<int>(place));
    }
    step_.body().set_results(std::move(results));
  }

  const StepParts& parts_;
  const TrainingOptions& options_;
  Function& step_;
  GraphBuilder builder_;
  size_t tensors_;
  std::vector<Value> arguments_; // for the gradients
  Value rate_, wide_rate_, loss_, is_broken_;
  std::vector<std::pair<Value, Value>> next_; // states, and what they become
};

} // namespace

void add_step_function(Module& module, const StepParts& parts, const TrainingOptions& options) {
  StepFunction(module, parts, options).write();
}

} // namespace firn::training
