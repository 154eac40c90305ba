// See training.h: @main with its trained tensors as states, and @evaluate.
#include "compiler/graph/composites.h"
#include "compiler/support/whole_number.h"
#include "compiler/training/functions.h"
#include "compiler/training/loss.h"
#include "compiler/training/step_function.h"

#include <algorithm>
#include <cmath>

namespace firn::training {
namespace {

std::string name_at(const std::vector<std::string>& names, size_t at, const char* fallback) {
  return at < names.size() && !names[at].empty() ? names[at] : fallback + std::to_string(at);
}

class TrainingModule {
public:
  TrainingModule(Module& module, const TrainingOptions& options)
      : module_(module), main_(module.main()), options_(options) {}

  Expected<TrainingStep> make() {
    if (Result fits = check_module(); !fits) return fits.error();
    name_interface();
    if (Result found = find_functions(); !found) return found.error();
    if (Result found = find_prediction(); !found) return found.error();
    if (Result checked = check_numbers(); !checked) return checked.error();
    auto tensors = choose_trained_tensors(main_, main_.body().results()[prediction_], options_.trainable);
    if (!tensors) return tensors.error();
    free_inputs_ = main_.body().parameters().size();
    make_states(*tensors);
    Function& evaluate = add_evaluate();
    StepParts parts{evaluate, evaluate.body().parameters().size() - tensors->size(), *optimizer_,
                    [this](const std::string& wanted) { return unused_name(wanted); }};
    add_step_function(module_, parts, options_);
    module_.entry.clear();
    return std::move(step_);
  }

private:
  Result check_module() const {
    if (main_.name() != "main") return usage_error("the graph has no function @main");
    if (module_.functions().size() > 1)
      return usage_error("the graph has functions beside @" + main_.name() +
                         ", as gradients that the model computes itself: a training step wants @main alone");
    for (int alias : main_.aliases)
      if (alias >= 0)
        return usage_error("input '" + main_.parameter_names[static_cast<size_t>(alias)] +
                           "' is a state of the model: a training step wants a model without states");
    return {};
  }

  // Inputs and outputs of a graph in text form may lack names.
  void name_interface() {
    std::vector<std::string> inputs, outputs;
    for (size_t i = 0; i < main_.body().parameters().size(); ++i) {
      const std::string& in_text = main_.body().parameters()[i]->name();
      inputs.push_back(main_.parameter_names.empty() && !in_text.empty()
                           ? in_text
                           : name_at(main_.parameter_names, i, "input"));
    }
    for (size_t i = 0; i < main_.body().results().size(); ++i)
      outputs.push_back(name_at(main_.result_names, i, "output"));
    main_.parameter_names = std::move(inputs);
    main_.result_names = std::move(outputs);
    used_.insert(main_.parameter_names.begin(), main_.parameter_names.end());
    used_.insert(main_.result_names.begin(), main_.result_names.end());
  }

  std::string unused_name(const std::string& wanted) {
    std::string name = wanted;
    for (int suffix = 2; !used_.insert(name).second; ++suffix) name = wanted + "_" + std::to_string(suffix);
    return name;
  }

  Result find_functions() {
    auto optimizer = find_optimizer(options_.optimizer, options_.functions.get());
    if (!optimizer) return optimizer.error();
    optimizer_ = *optimizer;
    if (options_.loss.empty() == options_.loss_output.empty())
      return usage_error("a training step wants one loss: a function, or an output of the model");
    if (options_.loss.empty()) return {};
    if (options_.probabilities && !options_.class_weights.empty())
      return usage_error("weights of classes do not go with probabilities of classes");
    std::string name = options_.loss + (options_.probabilities            ? "_probabilities"
                                        : !options_.class_weights.empty() ? "_weighted"
                                                                          : "");
    auto loss = find_loss(name, options_.functions.get());
    if (!loss) return loss.error();
    loss_ = *loss;
    return {};
  }

  Result find_prediction() {
    const std::string& wanted = loss_ ? options_.prediction : options_.loss_output;
    auto found = std::find(main_.result_names.begin(), main_.result_names.end(), wanted);
    if (wanted.empty()) found = main_.result_names.begin();
    if (found == main_.result_names.end()) {
      std::string names;
      for (const std::string& name : main_.result_names) names += (names.empty() ? "'" : ", '") + name + "'";
      return usage_error("the model has no output '" + wanted + "'; it has " +
                         (names.empty() ? "none" : names));
    }
    prediction_ = static_cast<size_t>(found - main_.result_names.begin());
    const Type& type = main_.body().results()[prediction_].type();
    if (!loss_) {
      if (type.is_scalar() && (type.dtype == DType::F32 || type.dtype == DType::F64)) return {};
      return usage_error("output '" + *found + "' is " + type.to_string() +
                         ": a loss is a scalar of f32 or f64");
    }
    auto target = target_type(*loss_, *found, type);
    if (!target) return target.error();
    target_ = *target;
    return check_class_weights(*loss_, type, options_.class_weights);
  }

  // Every number is an option of the loss, of the optimizer, or the decay of weights.
  Result check_numbers() const {
    std::map<std::string, DType> known = options_of(*optimizer_);
    if (loss_) known.merge(options_of(*loss_));
    known.emplace("weight_decay", DType::F64);
    if (!(options_.clip_norm >= 0)) return usage_error("clip_norm is negative or no number");
    for (const auto& [name, value] : options_.numbers) {
      auto option = known.find(name);
      if (option == known.end()) return unknown_option(name, known);
      if (Result fits = check_number(name, value, option->second); !fits) return fits;
    }
    return {};
  }

  Diagnostic unknown_option(const std::string& name, const std::map<std::string, DType>& known) const {
    std::string names;
    for (const auto& [each, dtype] : known) names += (names.empty() ? "'" : ", '") + each + "'";
    return usage_error("neither the loss nor the optimizer '" + optimizer_->name() + "' has an option '" +
                       name + "'; there are " + names);
  }

  static Result check_number(const std::string& name, double value, DType dtype) {
    constexpr double kLargestWhole = 0x1p53;
    if (!std::isfinite(value)) return usage_error("option '" + name + "' is no finite number");
    if (is_float(dtype) || (is_whole(value) && std::fabs(value) <= kLargestWhole)) return {};
    return usage_error("option '" + name + "' is " + std::to_string(value) + ", wants a whole number");
  }

  // Constants become parameters of @main, which leaves them as they are.
  void make_states(const std::vector<TrainedTensor>& tensors) {
    Region& body = main_.body();
    std::vector<Value> results = body.results();
    main_.aliases.assign(results.size(), -1);
    for (const TrainedTensor& tensor : tensors) {
      std::string name = unused_name(tensor.name);
      step_.initial_states[name] = tensor.constant->literal();
      module_.parameters.push_back(name);
      main_.aliases.push_back(static_cast<int>(body.parameters().size()));
      Instruction* parameter = body.add_parameter(tensor.constant->type(), name);
      for (Value& result : results)
        if (result.def == tensor.constant) result = parameter->result();
      results.push_back(parameter->result());
      body.replace_uses(tensor.constant->result(), parameter->result());
      body.erase(tensor.constant);
      main_.parameter_names.push_back(name);
      main_.result_names.push_back("next " + name);
    }
    body.set_results(std::move(results));
  }

  // Losses that take logits look through the model's own last activation.
  Value logits_of(Value prediction) const {
    const Instruction& def = *prediction.def;
    bool is_softmax = is_composite(def, "softmax") && def.attributes().integer("dim") == 1;
    bool is_logit_loss = (options_.loss == "softmax_cross_entropy" && is_softmax) ||
                         (options_.loss == "bce_with_logits" && def.is(Opcode::Logistic));
    return is_logit_loss ? def.operand(0) : prediction;
  }

  Function& add_evaluate() {
    Function& evaluate = module_.add_function("evaluate");
    Region& body = evaluate.body();
    std::vector<Value> arguments;
    Value target;
    auto add = [&](const std::string& name, const Type& type) {
      evaluate.parameter_names.push_back(name);
      return body.add_parameter(type, name)->result();
    };
    const auto& parameters = main_.body().parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i == free_inputs_ && target_) target = add(unused_name("labels"), *target_);
      arguments.push_back(add(main_.parameter_names[i], parameters[i]->type()));
    }
    std::vector<Value> outputs = body.inline_region(main_.body(), arguments);
    Value prediction = outputs[prediction_], loss = prediction;
    GraphBuilder builder(body);
    if (loss_)
      loss = write_loss(builder, *loss_, logits_of(prediction), target, options_.class_weights,
                        options_.numbers);
    std::vector<Value> results{loss};
    evaluate.result_names = {loss_ ? unused_name("loss") : main_.result_names[prediction_]};
    evaluate.aliases = {-1};
    for (size_t i = free_inputs_; i < arguments.size(); ++i) {
      results.push_back(arguments[i]);
      evaluate.result_names.push_back("next " + main_.parameter_names[i]);
      evaluate.aliases.push_back(static_cast<int>(i + (target ? 1 : 0)));
    }
    body.set_results(std::move(results));
    return evaluate;
  }

  Module& module_;
  Function& main_;
  const TrainingOptions& options_;
  const Function *optimizer_ = nullptr, *loss_ = nullptr; // no loss: an output of the model is the loss
  size_t prediction_ = 0, free_inputs_ = 0;               // inputs of @main that are no trained tensors
  std::optional<Type> target_;
  std::set<std::string> used_; // names of inputs, outputs and states
  TrainingStep step_;
};

} // namespace

Expected<TrainingStep> make_training_step(Module& module, const TrainingOptions& options) {
  return TrainingModule(module, options).make();
}

} // namespace firn::training
