// See loss_function.h.
#include "compiler/training/loss_function.h"

#include "compiler/graph/composites.h"
#include "compiler/training/dropout.h"
#include "compiler/training/loss.h"
#include "compiler/training/slices.h"
#include "compiler/training/training_forms.h"

namespace firn::training {
namespace {

// Losses that take logits look through the model's own last activation.
Value logits_of(Value prediction, const std::string& loss) {
  const Instruction& def = *prediction.def;
  bool is_softmax = is_composite(def, "softmax") && def.attributes().integer("dim") == 1;
  bool is_logit_loss = (loss == "softmax_cross_entropy" && is_softmax) ||
                       (loss == "bce_with_logits" && def.is(Opcode::Logistic));
  return is_logit_loss ? def.operand(0) : prediction;
}

class LossFunction {
public:
  LossFunction(Function& function, const LossSource& source, const TrainingOptions& options)
      : function_(function), body_(function.body()), source_(source), options_(options) {
    const auto& parameters = source.main.body().parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i == source.inputs && source.target) target_ = add_parameter(source.labels, *source.target);
      arguments_.push_back(add_parameter(source.main.parameter_names[i], parameters[i]->type()));
    }
  }

  void write_evaluate() {
    inline_main();
    inline_training_forms(body_);
    finish_evaluate(loss());
  }

  // The sum of the loss and what it has to be divided by, of one slice.
  void write_slice() {
    inline_main();
    inline_training_forms(body_);
    LossSums sums = loss_sums();
    body_.set_results({sums.sum, sums.count});
    fix_to_slice(body_, *batch_symbol(*source_.target));
  }

  // A loop over slices of the batch carries the number of the slice and these sums.
  void write_evaluate(const Region& slice) {
    GraphBuilder builder(body_);
    const SymbolRef batch = batch_symbol(*source_.target);
    auto integer = [](GraphBuilder& b, int64_t value) {
      return b.constant(Literal::of<int64_t>(DType::I64, {}, {value}));
    };
    Value slices = count_slices(builder, target_, options_.micro_batch);
    std::vector<Value> carried{integer(builder, 0)};
    for (const Value& sum : slice.results()) carried.push_back(builder.scalar(sum.dtype(), 0));
    Instruction* loop = make_while(
        builder, carried,
        [&](GraphBuilder& b, const std::vector<Value>& now) {
          return std::vector<Value>{b.compare("lt", now[0], slices)};
        },
        [&](GraphBuilder& b, const std::vector<Value>& now) {
          std::vector<Value> rows, next{b.binary(Opcode::Add, now[0], integer(b, 1))};
          for (Instruction* each : body_.parameters())
            rows.push_back(slice_of(b, each->result(), *batch, now[0]));
          std::vector<Value> sums = b.region().inline_region(slice, rows);
          for (size_t i = 0; i < sums.size(); ++i) next.push_back(b.binary(Opcode::Add, now[i + 1], sums[i]));
          return next;
        });
    finish_evaluate(builder.binary(Opcode::Divide, loop->result(1), loop->result(2)));
  }

  void write_step_loss() {
    Value step_count = add_parameter("step_count", Type::tensor(DType::I64, {}));
    Value slice = add_parameter("slice", Type::tensor(DType::I64, {}));
    inline_main();
    SymbolRef batch = source_.target ? batch_symbol(*source_.target) : nullptr;
    const bool is_sliced = options_.micro_batch > 0;
    if (options_.drop)
      write_dropouts(body_, {options_.seed, step_count, is_sliced ? slice : Value(), batch.get()});
    if (!options_.freeze_norms) write_norms();
    inline_training_forms(body_);
    std::vector<Value> results;
    if (is_sliced) {
      LossSums sums = loss_sums();
      results = {sums.sum, sums.count};
    } else {
      results = {loss()};
    }
    results.insert(results.end(), arguments_.begin() + statistics_begin(), arguments_.end());
    body_.set_results(std::move(results));
    if (is_sliced) fix_to_slice(body_, *batch);
  }

private:
  Value add_parameter(const std::string& name, const Type& type) {
    names_.push_back(name);
    return body_.add_parameter(type, name)->result();
  }

  void finish_evaluate(Value loss) {
    std::vector<Value> results{loss};
    function_.parameter_names = names_;
    function_.result_names = {source_.name};
    function_.aliases = {-1};
    for (size_t i = source_.inputs; i < arguments_.size(); ++i) {
      results.push_back(arguments_[i]);
      function_.result_names.push_back("next " + source_.main.parameter_names[i]);
      function_.aliases.push_back(static_cast<int>(i + (source_.target ? 1 : 0)));
    }
    body_.set_results(std::move(results));
  }

  // Its results are results of the body while rewrites may replace them.
  void inline_main() { body_.set_results(body_.inline_region(source_.main.body(), arguments_)); }

  Value prediction() const { return body_.results()[source_.prediction]; }

  LossSums loss_sums() {
    GraphBuilder builder(body_);
    return write_loss_sums(builder, *source_.loss, logits_of(prediction(), options_.loss), target_,
                           options_.class_weights, options_.numbers);
  }

  Value loss() {
    if (!source_.loss) return prediction();
    LossSums sums = loss_sums();
    return GraphBuilder(body_).binary(Opcode::Divide, sums.sum, sums.count);
  }

  std::ptrdiff_t statistics_begin() const {
    return static_cast<std::ptrdiff_t>(source_.inputs + source_.trained);
  }

  // The number of the argument that is this running statistic; nothing: it is none that moves.
  std::optional<size_t> statistic(Value value) const {
    for (size_t i = source_.inputs + source_.trained; i < given_.size(); ++i)
      if (given_[i] == value) return i;
    return std::nullopt;
  }

  // Norms that go by the batch. A norm that stands twice in the model moves its statistics twice.
  void write_norms() {
    given_ = arguments_;
    for (Instruction* norm : body_.snapshot()) {
      if (!is_running_norm(*norm)) continue;
      auto mean = statistic(norm->operand(kNormMean)), variance = statistic(norm->operand(kNormVariance));
      if (!mean || !variance) continue;
      GraphBuilder b(body_, norm);
      const int rank = norm->operand(0).rank();
      Instruction* by_batch = make_batch_norm(
          b, norm->operand(0), per_channel(b, norm->operand(kNormScale), rank),
          per_channel(b, norm->operand(kNormBias), rank), norm->attributes().number("epsilon", 0));
      const double momentum = norm->attributes().number("momentum", 0);
      move(b, *mean, by_batch->result(1), momentum);
      move(b, *variance, by_batch->result(2), momentum);
      body_.replace_uses(norm->result(), by_batch->result());
      body_.erase(norm);
    }
  }

  // ONNX's rule, by the variance of a population: momentum * old + (1 - momentum) * that of the batch.
  void move(GraphBuilder& b, size_t number, Value batch, double momentum) {
    Value& running = arguments_[number];
    Value old = b.binary(Opcode::Multiply, running, b.scalar(running.dtype(), momentum));
    Value measured = b.reshape(batch, running.type().dims);
    running = b.binary(Opcode::Add, old,
                       b.binary(Opcode::Multiply, measured, b.scalar(running.dtype(), 1 - momentum)));
  }

  Function& function_;
  Region& body_;
  const LossSource& source_;
  const TrainingOptions& options_;
  std::vector<std::string> names_;
  std::vector<Value> arguments_; // for @main; write_norms() makes of running statistics what they are next
  std::vector<Value> given_;     // the arguments before that
  Value target_;
};

} // namespace

Function& add_evaluate(Module& module, const LossSource& source, const TrainingOptions& options) {
  Function& function = module.add_function("evaluate");
  LossFunction evaluate(function, source, options);
  if (options.micro_batch == 0) {
    evaluate.write_evaluate();
    return function;
  }
  Function& slice = module.add_function("evaluate_slice");
  LossFunction(slice, source, options).write_slice();
  evaluate.write_evaluate(slice.body());
  module.erase_functions([&](const Function& each) { return &each == &slice; });
  return function;
}

Function& add_step_loss(Module& module, const LossSource& source, const TrainingOptions& options) {
  Function& function = module.add_function("step_loss");
  function.is_private = true;
  LossFunction(function, source, options).write_step_loss();
  return function;
}

} // namespace firn::training
