// @step: loss and gradients by a call of a declared gradient, then an update of every state.
#include "compiler/training/step_function.h"

#include "compiler/graph/composites.h"
#include "compiler/training/functions.h"
#include "compiler/training/slices.h"

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
        tensors_(parts.source.trained) {}

  void write() {
    add_parameters();
    Value count = add_state("step_count", Type::tensor(DType::I64, {}));
    declare_gradients();
    std::vector<Value> gradients = options_.micro_batch > 0 ? add_up_slices(count) : whole_batch(count);
    is_broken_ = builder_.binary(Opcode::Or, builder_.unary(Opcode::IsNaN, loss_),
                                 builder_.unary(Opcode::IsInf, loss_));
    keep(gradients);
    if (options_.clip_norm > 0) clip(gradients);
    Value number = builder_.binary(Opcode::Add, count, integer(1));
    for (size_t i = 0; i < tensors_; ++i) update(i, gradients[i], number);
    set_next(count, guarded(count, number));
    for (size_t i = 0; i < statistics_.size(); ++i) {
      Value statistic = state(tensors_ + i);
      set_next(statistic, guarded(statistic, statistics_[i]));
    }
    return_results();
  }

private:
  Value integer(int64_t value) { return builder_.constant(Literal::of<int64_t>(DType::I64, {}, {value})); }
  Value number(DType dtype, double value) { return builder_.scalar(dtype, value); }
  Value multiply(Value lhs, Value rhs) { return builder_.binary(Opcode::Multiply, lhs, rhs); }

  Value state(size_t index) { return step_.body().parameter(static_cast<int>(parts_.inputs() + 1 + index)); }

  const std::string& tensor_name(size_t index) const {
    return parts_.evaluate.parameter_names[parts_.inputs() + index];
  }

  Value add_parameter(const std::string& name, const Type& type) {
    step_.parameter_names.push_back(name);
    return step_.body().add_parameter(type, name)->result();
  }

  Value add_state(const std::string& wanted, const Type& type) {
    return add_parameter(parts_.unused_name(wanted), type);
  }

  // The parameters of @evaluate with the learning rate before the states.
  void add_parameters() {
    const auto& given = parts_.evaluate.body().parameters();
    bool has_f64 = std::any_of(given.begin() + static_cast<std::ptrdiff_t>(parts_.inputs()), given.end(),
                               [](const Instruction* each) { return each->type().dtype == DType::F64; });
    for (size_t i = 0; i < given.size(); ++i) {
      if (i == parts_.inputs())
        rate_ = add_state("learning_rate", Type::tensor(has_f64 ? DType::F64 : DType::F32, {}));
      Value added = add_parameter(parts_.evaluate.parameter_names[i], given[i]->type());
      arguments_.push_back(added);
    }
    wide_rate_ = builder_.convert(rate_, DType::F64);
  }

  // The function gives the gradients, then what the function that it is a gradient of computes: the loss,
  // with slices what divides it, and running statistics.
  void declare_gradients() {
    GradientOf declared{parts_.loss.name(), 0, {}, {}, /*seedable=*/false, options_.straight_through};
    for (size_t i = 0; i < tensors_; ++i) {
      declared.wrt.push_back(static_cast<int>(parts_.inputs() + i));
      types_.push_back(state(i).type());
    }
    const std::vector<Value>& results = parts_.loss.body().results();
    for (size_t i = 0; i < (parts_.has_step_loss() ? results.size() : 1); ++i) {
      declared.keeping.push_back(static_cast<int>(i));
      types_.push_back(results[i].type());
    }
    step_.module()->add_function(kGradients).gradient = std::move(declared);
  }

  // All results, of the gradients' function.
  std::vector<Value> call(GraphBuilder& builder, std::vector<Value> arguments, Value step_count,
                          Value slice) {
    if (parts_.has_step_loss()) arguments.insert(arguments.end(), {step_count, slice});
    Instruction* made =
        builder.make_typed(Opcode::Call, std::move(arguments), types_, {{"callee", std::string(kGradients)}});
    std::vector<Value> results;
    for (size_t i = 0; i < types_.size(); ++i) results.push_back(made->result(static_cast<int>(i)));
    return results;
  }

  // Gradients by the trained tensors. Sets the loss and what the running statistics become.
  std::vector<Value> whole_batch(Value step_count) {
    std::vector<Value> results = call(builder_, arguments_, step_count, integer(0));
    auto loss = results.begin() + static_cast<std::ptrdiff_t>(tensors_);
    loss_ = *loss;
    statistics_.assign(loss + 1, results.end());
    return {results.begin(), loss};
  }

  // Does so by slices of the batch: a loop carries the number of the slice, the sums of gradients, of the
  // loss and of what divides all of these, and running statistics.
  std::vector<Value> add_up_slices(Value step_count) {
    const Symbol& batch = *batch_symbol(*parts_.source.target);
    Value slices = count_slices(builder_, arguments_[parts_.inputs() - 1], options_.micro_batch);
    std::vector<Value> carried{integer(0)};
    for (const Type& type : types_) {
      const size_t number = carried.size() - 1, first = types_.size() - parts_.statistics();
      carried.push_back(number < first ? builder_.broadcast_to(builder_.scalar(type.dtype, 0), type.dims)
                                       : state(tensors_ + number - first));
    }
    Instruction* loop = make_while(
        builder_, carried,
        [&](GraphBuilder& b, const std::vector<Value>& now) {
          return std::vector<Value>{b.compare("lt", now[0], slices)};
        },
        [&](GraphBuilder& b, const std::vector<Value>& now) {
          return after_slice(b, now, step_count, batch);
        });
    std::vector<Value> sums;
    for (int i = 1; i < loop->num_results(); ++i) sums.push_back(loop->result(i));
    Value divisor = sums[tensors_ + 1];
    loss_ = builder_.binary(Opcode::Divide, sums[tensors_], divisor);
    statistics_.assign(sums.begin() + static_cast<std::ptrdiff_t>(tensors_ + 2), sums.end());
    sums.resize(tensors_);
    for (Value& sum : sums)
      sum = builder_.binary(Opcode::Divide, sum, builder_.convert(divisor, sum.dtype()));
    return sums;
  }

  std::vector<Value> after_slice(GraphBuilder& b, const std::vector<Value>& now, Value step_count,
                                 const Symbol& batch) {
    const size_t sums = types_.size() - parts_.statistics();
    std::vector<Value> arguments = arguments_;
    for (size_t i = 0; i < parts_.inputs(); ++i) arguments[i] = slice_of(b, arguments[i], batch, now[0]);
    for (size_t i = 0; i < parts_.statistics(); ++i)
      arguments[parts_.inputs() + tensors_ + i] = now[1 + sums + i];
    std::vector<Value> given = call(b, std::move(arguments), step_count, now[0]);
    std::vector<Value> next{
        b.binary(Opcode::Add, now[0], b.constant(Literal::of<int64_t>(DType::I64, {}, {1})))};
    for (size_t i = 0; i < given.size(); ++i)
      next.push_back(i < sums ? b.binary(Opcode::Add, now[i + 1], given[i]) : given[i]);
    return next;
  }

  // Gradients as the loss gives them, which whoever averages them over many devices clips and decays himself.
  void keep(const std::vector<Value>& gradients) {
    for (size_t i = 0; i < tensors_; ++i) {
      const std::string& name = tensor_name(i);
      if (std::any_of(options_.kept_gradients.begin(), options_.kept_gradients.end(),
                      [&](const std::string& pattern) { return matches_pattern(pattern, name); }))
        kept_.emplace_back(parts_.unused_name("gradient " + name), gradients[i]);
    }
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
    Value parameter = state(index);
    const DType dtype = parameter.dtype();
    const std::string& name = tensor_name(index);
    auto decay = options_.numbers.find("weight_decay");
    bool decays_itself = options_of(parts_.optimizer).count("weight_decay") != 0;
    if (!decays_itself && decay != options_.numbers.end() && decay->second != 0)
      gradient = builder_.binary(Opcode::Add, gradient, multiply(parameter, number(dtype, decay->second)));
    std::vector<Value> arguments{parameter, gradient, wide_rate_, step_number};
    for (const std::string& kept : kept_names(parts_.optimizer))
      arguments.push_back(add_state(name + "." + kept, parameter.type()));
    const Instruction* before = step_.body().instructions().back().get();
    std::vector<Value> updated =
        apply_function(builder_, parts_.optimizer, arguments, dtype, options_.numbers);
    for (size_t i = 1; i < updated.size(); ++i)
      updated[i] = guarded_first(arguments[i + 3], updated[i], before);
    set_next(parameter, guarded(parameter, updated[0]));
    for (size_t i = 1; i < updated.size(); ++i) set_next(arguments[i + 3], updated[i]);
  }

  // States stay what they are if the loss is no number. A result that does not depend on the elements of the
  // tensor, which a user's function may give, is broadcast to them.
  Value guarded(Value state, Value next) { return builder_.select(is_broken_, state, next); }

  // Does so right behind an instruction that follows `before`, so that what is computed from it reads the
  // state: the element would otherwise need what the optimizer keeps, unguarded, in memory of its own.
  Value guarded_first(Value state, Value next, const Instruction* before) {
    Region& body = step_.body();
    auto place =
        std::find_if(body.instructions().rbegin(), body.instructions().rend(),
                     [&](const auto& each) { return each.get() == next.def || each.get() == before; });
    if (place->get() != next.def || next.def == before || !(next.type() == state.type()))
      return guarded(state, next);
    auto behind = place.base();
    GraphBuilder builder(body, behind == body.instructions().end() ? nullptr : behind->get());
    Value select = builder.select(is_broken_, state, next);
    body.replace_uses(next, select);
    for (int i = 0; i < select.def->num_operands(); ++i)
      if (select.def->operand(i) == select) select.def->set_operand(i, next);
    return select;
  }

  void set_next(Value state, Value next) { next_.push_back({state, next}); }

  void return_results() {
    std::vector<Value> results{loss_};
    step_.result_names = {parts_.evaluate.result_names[0]};
    for (const auto& [name, gradient] : kept_) {
      results.push_back(gradient);
      step_.result_names.push_back(name);
    }
    step_.aliases.assign(results.size(), -1);
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
  std::vector<Value> arguments_;  // for the gradients
  std::vector<Type> types_;       // results of the gradients' function
  std::vector<Value> statistics_; // the running statistics after the step
  Value rate_, wide_rate_, loss_, is_broken_;
  std::vector<std::pair<std::string, Value>> kept_; // names of results, and gradients
  std::vector<std::pair<Value, Value>> next_;       // states, and what they become
};

} // namespace

void add_step_function(Module& module, const StepParts& parts, const TrainingOptions& options) {
  StepFunction(module, parts, options).write();
}

} // namespace firn::training
