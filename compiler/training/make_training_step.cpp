// See training.h: what is trained, and @main with its states.
#include "compiler/support/whole_number.h"
#include "compiler/training/adapters.h"
#include "compiler/training/dropout.h"
#include "compiler/training/functions.h"
#include "compiler/training/loss.h"
#include "compiler/training/slices.h"
#include "compiler/training/step_function.h"
#include "compiler/training/training_forms.h"

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
    auto selection = add_adapters();
    if (!selection) return selection.error();
    auto tensors = choose_trained_tensors(main_, main_.body().results()[prediction_], *selection);
    if (!tensors) return tensors.error();
    if (Result known = check_kept_gradients(*tensors); !known) return known.error();
    if (Result fits = check_micro_batch(); !fits) return fits.error();
    const size_t inputs = main_.body().parameters().size();
    std::vector<TrainedTensor> states = *tensors, statistics = running_statistics(*tensors);
    states.insert(states.end(), statistics.begin(), statistics.end());
    make_states(states);
    LossSource source{main_, inputs, tensors->size(), prediction_, loss_, target_, "", ""};
    if (target_) source.labels = unused_name("labels");
    source.name = loss_ ? unused_name("loss") : main_.result_names[prediction_];
    add_functions(source);
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

  Result check_kept_gradients(const std::vector<TrainedTensor>& tensors) const {
    for (const std::string& pattern : options_.kept_gradients) {
      std::string names;
      bool is_found = false;
      for (const TrainedTensor& tensor : tensors) {
        is_found = is_found || matches_pattern(pattern, tensor.name);
        names += (names.empty() ? "'" : ", '") + tensor.name + "'";
      }
      if (!is_found)
        return usage_error("'" + pattern + "' names no trained tensor whose gradient there is; there are " +
                           names);
    }
    return {};
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

  // Adds adapters, and says what is trained then: their tensors beside what patterns choose.
  Expected<Selection> add_adapters() {
    Selection selection = options_.trainable;
    if (options_.adapters.empty()) return selection;
    auto tensors = training::add_adapters(main_, options_.adapters, options_.seed);
    if (!tensors) return tensors.error();
    selection.frozen = std::move(tensors->stay_as_they_are);
    for (const std::string& name : tensors->added) {
      selection.patterns.push_back(name);
      if (selection.initializers) selection.initializers->insert(name);
    }
    return selection;
  }

  // Statistics of the norms of which a step trains scale or bias, each once.
  std::vector<TrainedTensor> running_statistics(const std::vector<TrainedTensor>& tensors) const {
    std::set<const Instruction*> trained, seen;
    for (const TrainedTensor& tensor : tensors) trained.insert(tensor.constant);
    std::vector<TrainedTensor> statistics;
    for (const auto& norm : main_.body().instructions()) {
      if (options_.freeze_norms || !is_running_norm(*norm)) continue;
      auto def = [&](int operand) { return norm->operand(operand).def; };
      auto is_fixed = [&](int operand) {
        return def(operand)->is(Opcode::Constant) && !trained.count(def(operand));
      };
      bool is_trained = trained.count(def(kNormScale)) || trained.count(def(kNormBias));
      if (!is_trained || !is_fixed(kNormMean) || !is_fixed(kNormVariance)) continue;
      for (int operand : {kNormMean, kNormVariance})
        if (seen.insert(def(operand)).second)
          statistics.push_back({name_of_constant(*def(operand)), def(operand)});
    }
    return statistics;
  }

  Result check_micro_batch() const {
    if (options_.micro_batch == 0) return {};
    if (!target_)
      return usage_error("micro-batches want a loss that Firn knows: how the model's own, output '" +
                         main_.result_names[prediction_] + "', is made of those of slices, it does not say");
    if (weighs_by_predictions(*loss_))
      return usage_error("the loss '" + loss_->name() +
                         "' weighs rows by their predictions, which micro-batches do not take");
    std::vector<Type> types;
    for (const Instruction* parameter : main_.body().parameters()) types.push_back(parameter->type());
    return check_slices(main_.parameter_names, types, *target_, options_.micro_batch);
  }

  void add_functions(const LossSource& source) {
    Function& evaluate = add_evaluate(module_, source, options_);
    const Function* loss = &evaluate;
    bool has_statistics = main_.body().parameters().size() > source.inputs + source.trained;
    bool drops = options_.drop && has_dropouts(main_.body());
    if (has_statistics || drops || options_.micro_batch > 0) loss = &add_step_loss(module_, source, options_);
    add_step_function(module_,
                      {source, evaluate, *loss, *optimizer_,
                       [this](const std::string& wanted) { return unused_name(wanted); }},
                      options_);
    inline_training_forms(main_.body());
  }

  Module& module_;
  Function& main_;
  const TrainingOptions& options_;
  const Function *optimizer_ = nullptr, *loss_ = nullptr; // no loss: an output of the model is the loss
  size_t prediction_ = 0;
  std::optional<Type> target_;
  std::set<std::string> used_; // names of inputs, outputs and states
  TrainingStep step_;
};

} // namespace

Expected<TrainingStep> make_training_step(Module& module, const TrainingOptions& options) {
  return TrainingModule(module, options).make();
}

} // namespace firn::training
