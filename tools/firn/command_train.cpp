// The verb `train`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/train_progress.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/train/train.h"
#include "compiler/support/diagnostic_text.h"

#include <CLI/CLI.hpp>
#include <climits>
#include <csignal>
#include <cstdio>
#include <memory>

namespace firn::tool {
namespace {

constexpr int kSignalCodes = 128; // exit codes of programs that a signal ends begin behind it

// While it lives, the first signal that asks the process to end asks the training instead; a second one ends
// the process as ever.
class StopOnSignals {
public:
  StopOnSignals() {
    struct sigaction action {};
    action.sa_handler = [](int number) {
      requested_ = true;
      signal_ = number;
      restore();
    };
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~StopOnSignals() { restore(); }
  StopOnSignals(const StopOnSignals&) = delete;

  static const std::atomic<bool>* requested() { return &requested_; }
  static int signal() { return signal_; }

private:
  static void restore() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  static constexpr int kSignals[] = {SIGINT, SIGTERM};
  static inline struct sigaction before_[std::size(kSignals)];
  static inline std::atomic<bool> requested_{false};
  static inline volatile std::sig_atomic_t signal_ = 0;
};

struct TrainCommand {
  CompileFlags flags;
  driver::TrainOptions options;
  std::optional<int64_t> batch;
  bool in_order = false, quiet = false;
};

int run(TrainCommand& command) {
  if (Result done = command.flags.finish(); !done) return report(done.error());
  driver::TrainOptions& options = command.options;
  options.compile = command.flags.options;
  options.batch = command.batch;
  options.shuffles = !command.in_order;
  const std::string& model = options.compile.model;
  TrainProgress progress(command.quiet);
  options.note = [&](const std::string& line) { progress.note(line); };
  options.warn = [&](const std::string& warning) {
    std::fputs(warning_text(shown_file(model), warning).c_str(), stderr);
  };
  options.step = [&](const driver::StepReport& step) { progress.show_step(step); };
  options.epoch = [&](const driver::EpochReport& epoch) { progress.show_epoch(epoch); };
  options.stop = StopOnSignals::requested();
  DiagnosticList diagnostics;
  StopOnSignals signals;
  auto end = driver::train_model(options, diagnostics);
  progress.clear();
  if (!end) return report(diagnostics, model);
  return *end == driver::TrainingEnd::Complete ? 0 : kSignalCodes + StopOnSignals::signal();
}

} // namespace

void add_train_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<TrainCommand>();
  driver::TrainOptions& options = command->options;
  CLI::App* verb = app.add_subcommand("train", "Train a model on examples, in this process");
  verb->add_option("model", command->flags.options.model,
                   "the ONNX model, or a graph in text form (.hlo); -: standard input")
      ->required();
  verb->add_option("--data", options.data,
                   "examples: a folder with an array NAME.npy for each input and labels.npy, whose first "
                   "axes are the examples, or with data.npz that holds them, or such a file")
      ->required();
  verb->add_option("--save", options.save,
                   "what is trained: tensors by name in .npz or .safetensors, or .onnx, the model with "
                   "them; FILE.state beside it has what --resume wants; written after each epoch")
      ->required();
  verb->add_option("--resume", options.resume,
                   "go on with the training that --save FILE has left: as if it had not been interrupted, "
                   "if the other options are the same");
  verb->add_option("--epochs", options.epochs,
                   "how often each example is trained on, before --resume and behind it; default 1")
      ->check(whole_between(1, INT_MAX));
  verb->add_option("--batch", command->batch,
                   "examples of a step; default: as many as the model takes, up to 32")
      ->check(whole_between(1, INT_MAX));
  verb->add_option("--learning-rate", options.learning_rate,
                   "default: 0.001 for adam, adamw and rmsprop, 0.01 for others")
      ->check(number_between(0, 1e9, /*above=*/true));
  verb->add_option("--validation", options.validation,
                   "examples that are not trained on, for a loss, and the accuracy of classes, after each "
                   "epoch: a fraction such as 0.1 of the data, or a folder or .npz file like it");
  verb->add_flag("--in-order", command->in_order,
                 "take examples in their order; default: another one in each epoch, which --seed decides");
  verb->add_option("--seed", options.seed,
                   "decides the order of examples, and which ones --validation holds back; default 0")
      ->check(whole_between(0, INT_MAX));
  verb->add_flag("-q,--quiet", command->quiet, "print nothing but warnings and errors");
  command->flags.add_training_to(*verb, /*has_defaults=*/true);
  command->flags.add_to(*verb);
  command->flags.add_text_to(*verb);
  command->flags.add_variant_to(*verb);
  command->flags.add_generation_to(*verb, /*jobs=*/true);
  verb->footer("Ctrl-C (SIGINT, or SIGTERM) ends a training behind the step under way: it is saved, and the "
               "exit code is 130 (143).\nA loss that is not finite ends it with exit code 1; what the step "
               "before has left is saved.\nExamples:\n"
               "  firn train digits.onnx --data digits --epochs 3 --validation 0.1 --save weights.npz\n"
               "  firn train net.onnx --train loss=mse,optimizer=sgd --trainable 'fc.*' --data data.npz "
               "--save trained.onnx");
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

} // namespace firn::tool
