// The options that several verbs share.
#include "tools/firn/compile_flags.h"

#include "compiler/driver/compile_text.h"
#include "compiler/driver/gpu_target.h"
#include "compiler/driver/runs_here.h"
#include "compiler/driver/training_words.h"
#include "compiler/support/words.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/value_checks.h"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace firn::tool {
namespace {

// Sets `value` to what `word` names, which the parser has checked, and records the flag; an empty word
// leaves both alone.
template <class Value>
void choose(const char* option, const std::string& word, Value& value, std::vector<std::string>& flags,
            std::initializer_list<std::pair<const char*, std::type_identity_t<Value>>> choices) {
  for (const auto& [choice, meaning] : choices)
    if (word == choice) value = meaning;
  if (!word.empty()) flags.push_back(option + word);
}

// "a,b,c"
Result read_cpus(CompileFlags& flags) {
  if (flags.cpus.empty()) return {};
  for (std::string& cpu : split(flags.cpus, ',')) {
    if (cpu.empty())
      return usage_error("--multiversion wants CPUs apart by commas, found '" + flags.cpus + "'");
    flags.options.cpus.push_back(std::move(cpu));
  }
  flags.options.flags.push_back("--multiversion=" + flags.cpus);
  return {};
}

Result read_text_bytes(CompileFlags& flags) {
  if (flags.text_bytes.empty()) return {};
  auto bytes = driver::parse_size(flags.text_bytes);
  constexpr int64_t kMax = int64_t{1} << 30;
  if (!bytes || *bytes > kMax)
    return usage_error("--text-bytes: '" + flags.text_bytes + "' is no size such as 4K, up to 1024M");
  flags.options.goals.text_bytes = *bytes;
  flags.options.flags.push_back("--text-bytes=" + flags.text_bytes);
  return {};
}

// The words of flags that may be repeated; those that shape the code are recorded.
Result read_repeated(const CompileFlags& flags, driver::CompileOptions& options) {
  struct Repeated {
    const char* flag;
    const std::vector<std::string>& words;
    Result (*parse)(const std::string& word, driver::CompileOptions& options);
  };
  const Repeated all[] = {{"--dim", flags.dims, parse_dim},
                          {"--max", flags.bounds, parse_bounds},
                          {"--hot", flags.specializations, parse_specialization},
                          {"--shape", flags.shapes, parse_shape},
                          {"--length", flags.lengths, parse_length},
                          {"--custom-op", flags.custom, parse_custom},
                          {"--value", flags.values, parse_value},
                          {"--const", flags.constants, parse_constant},
                          {"--state", flags.states, parse_state}};
  for (const Repeated& each : all)
    for (const std::string& word : each.words) {
      if (Result parsed = each.parse(word, options); !parsed) return parsed;
      options.flags.push_back(each.flag + ("=" + word));
    }
  for (const std::string& word : flags.names)
    if (Result parsed = parse_name(word, options); !parsed) return parsed;
  return {};
}

} // namespace

void add_level_options(CLI::App& verb, std::string& opt_level, std::string& math) {
  verb.add_option("--optimize", opt_level, "0, 1, 2, 3, s or z (also -O3); default 3; z is the same as s")
      ->check(one_of({"0", "1", "2", "3", "s", "z"}));
  verb.add_option("--math", math, "float rules: default or strict")->check(one_of({"default", "strict"}));
}

void add_threads_option(CLI::App& verb, int& threads) {
  verb.add_option("--threads", threads,
                  "how many threads of an executor run() makes use of at most; default 1: it computes on the "
                  "caller's alone")
      ->check(whole_between(1, 256));
}

CLI::Option* add_gpu_option(CLI::App& verb, std::string& gpu) {
  return verb
      .add_option("--gpu", gpu,
                  "the program of a GPU: cuda, or cuda:sm_80, or with a part, for which kernels are shaped: "
                  "cuda:sm_86:rtx3090")
      ->excludes("--target")
      ->excludes("--mcpu")
      ->excludes("--mattr")
      ->excludes("--threads");
}

void CompileFlags::add_gpu_to(CLI::App& verb) {
  add_gpu_option(verb, gpu)->excludes("--multiversion");
}

static Result read_gpu(CompileFlags& flags) {
  if (flags.gpu.empty()) return {};
  flags.options.flags.push_back("--gpu=" + flags.gpu);
  return driver::choose_gpu(flags.gpu, flags.options.gpu, flags.options.goals);
}

void CompileFlags::add_visibility_to(CLI::App& verb) {
  verb.add_option("--visible-to", visible_to,
                  "tools that see the kernels of loaded code, comma-separated: debugger (GDB, LLDB), perf "
                  "(/tmp/perf-PID.map)")
      ->delimiter(',')
      ->check(one_of({"debugger", "perf"}));
}

void CompileFlags::add_variant_to(CLI::App& verb) {
  verb.add_option("--link", options.link,
                  "a file that defines the functions of --custom-op: C or C++, an object or a library; "
                  "repeatable")
      ->take_all();
  verb.add_option(
          "--loader", loader,
          "what loads the code: in-process (default), or system, the C compiler and a shared library, "
          "as with --link")
      ->check(one_of({"in-process", "system"}));
  add_visibility_to(verb);
  verb.add_option(
          "--variant", options.variant,
          "with --multiversion: the CPU whose code runs; default: the best that this machine can follow")
      ->needs("--multiversion");
}

// The target machine.
static void add_target_options(CLI::App& verb, CompileFlags& flags) {
  verb.add_option("--target", flags.options.triple,
                  "target triple, e.g. aarch64-linux-gnu; default: this machine's");
  verb.add_option(
      "--mcpu", flags.options.cpu,
      "CPU, e.g. x86-64-v3 (the default on x86-64, for every verb), cortex-m4, or native: all that "
      "this machine has (also -mcpu=)");
  verb.add_option("--mattr", flags.options.features,
                  "CPU features added and taken away, e.g. +avx512bf16,-fma (also -mattr=)")
      ->join(',');
  verb.add_option(
          "--multiversion", flags.cpus,
          "code for several CPUs in one object, comma-separated, e.g. x86-64-v2,x86-64-v3,x86-64-v4 or "
          "armv8-a,armv8.2-a+dotprod: the program takes the best that its own CPU can follow")
      ->excludes("--mcpu")
      ->excludes("--mattr");
}

// Properties of the code.
static void add_code_options(CLI::App& verb, CompileFlags& flags) {
  add_level_options(verb, flags.opt_level, flags.math);
  verb.add_option("--precision", flags.precision,
                  "f32 (default) or bf16: multiply weights and activations as bf16, and add in f32")
      ->check(one_of({"f32", "bf16"}));
  verb.add_option(
          "--weight-type", flags.weight_type,
          "bf16, i8 or i4: hold the constant matrices of products that wait for them in fewer bits; "
          "i8 with a scale for each column, i4 for each 32 steps of one; recurrent layers take i8 for i4 and "
          "stay f32 for bf16; default: as the model has them")
      ->check(one_of({"bf16", "i8", "i4"}));
  verb.add_option("--weights", flags.weights,
                  "embed (default: the object holds weights as the kernels read them) or init (it holds the "
                  "model's own, from which the program makes those before the first run)")
      ->check(one_of({"embed", "init"}));
  verb.add_flag(
      "--no-winograd", flags.no_winograd,
      "no convolution uses Winograd's algorithm; by default those do where it pays for the bytes of "
      "its filters");
  verb.add_flag("--check-indices", flags.options.goals.check_indices,
                "run() reports indices out of range, which are clamped without a word by default");
  verb.add_option("--text-bytes", flags.text_bytes,
                  "room for the strings that one run makes, such as joined ones, e.g. 4K; default 64K");
  verb.add_option("--text-pieces", flags.options.import.text_pieces,
                  "the most pieces into which a string is split where the model does not say; default 64")
      ->check(whole_between(1, 1 << 20));
  add_threads_option(verb, flags.options.goals.threads);
  verb.add_option(
      "--memory-budget", flags.memory_budget,
      "bytes that the arena may take, e.g. 200K: values are computed again rather than kept until "
      "it fits");
  verb.add_option("--schedule-db", flags.options.schedule_db,
                  "plans that overrule the cost model, in lines as --explain prints them");
}

// Dims, shapes and values that the model leaves open.
static void add_specializations_option(CLI::App& verb, CompileFlags& flags) {
  verb.add_option(
          "--hot", flags.specializations,
          "values of dims that vary for which the object has code of their own, over the same "
          "weights: NAME=VALUE, or NAME=VALUE,NAME=VALUE for both at once; repeatable, the first that "
          "fits a run is taken")
      ->take_all();
}

static void add_model_options(CLI::App& verb, CompileFlags& flags) {
  verb.add_option(
          "--dim", flags.dims,
          "value of a symbolic dim, NAME=VALUE, or for one object the values that it may have: NAME=1..8, "
          "NAME=32..512:32 (multiples) or NAME=1|4|8; or what it always is, another dim or a sum or product "
          "of some: NAME=OTHER, NAME=past+seq; repeatable")
      ->take_all();
  verb.add_option(
          "--max", flags.bounds,
          "how large integers may be that only a run knows and that decide shapes, by the name of the "
          "value: NAME=8, or NAME=8,1,64 for each element; a larger one ends a run; repeatable")
      ->take_all();
  verb.add_option("--shape", flags.shapes,
                  "shape of an input whose shape the model leaves open: NAME=1x3x224x224, or with names for "
                  "its dims, NAME=nx3x224x224, of which --dim speaks; repeatable")
      ->take_all();
  verb.add_option(
          "--length", flags.lengths,
          "how many elements an input has that is a sequence, NAME=3, or that an optional holds nothing, "
          "NAME=none; elements are inputs NAME_0, NAME_1, ...; repeatable")
      ->take_all();
  verb.add_option(
          "--const", flags.constants,
          "fix an input, such as one that decides shapes: NAME=1,2,3 or NAME=FILE (.npy, .pb); repeatable")
      ->take_all();
  verb.add_option("--custom-op", flags.custom,
                  "an operator that a function of the program computes, DOMAIN:NAME=SYMBOL, or "
                  "DOMAIN:NAME=SYMBOL:64K with so many bytes of workspace (firn/custom_op.h); repeatable")
      ->take_all();
  verb.add_option("--value", flags.values,
                  "the type of a value that such an operator gives, where the model does not say it: "
                  "NAME=f32[1,8]; repeatable")
      ->take_all();
  verb.add_option(
          "--state", flags.states,
          "state kept from run to run: PAST=PRESENT, the input that is the output's value in the next "
          "run; repeatable")
      ->take_all();
  verb.add_flag("--initializers-are-inputs", flags.options.import.initializers_are_inputs,
                "keep initializers that are also graph inputs as inputs");
  verb.add_flag("--straight-through", flags.options.import.straight_through,
                "operators Gradient take what rounds, as quantised values are, for the identity within its "
                "range; otherwise its derivative is 0");
}

void CompileFlags::add_to(CLI::App& verb) {
  add_target_options(verb, *this);
  add_code_options(verb, *this);
  add_specializations_option(verb, *this);
  add_model_to(verb);
}

void CompileFlags::add_model_to(CLI::App& verb) {
  add_model_options(verb, *this);
  verb.add_option("--passes", options.passes,
                  "passes to run instead of the default ones, comma-separated; none: none");
}

void CompileFlags::add_generation_to(CLI::App& verb, bool jobs) {
  if (jobs)
    verb.add_option("--jobs", options.jobs,
                    "threads that generate code, which changes no byte; default: one for each core")
        ->check(whole_between(1, 1024));
  verb.add_option("--cache", options.cache_folder,
                  "a folder that keeps machine code for later compilations, up to 1 GB")
      ->check(not_empty());
}

void CompileFlags::add_text_to(CLI::App& verb) {
  verb.add_option("--weights-in", options.weights_in,
                  "side file with the large constants of a graph, or the weights of kernels, in text form");
  verb.add_option(
      "--entry", options.entry,
      "the function of a graph in text form that is the model, such as a declared gradient, or with "
      "bench --train one of the functions that a step has; default: @main, and for compile all that are "
      "not called");
}

void CompileFlags::add_training_to(CLI::App& verb, bool has_defaults) {
  has_training_defaults = has_defaults;
  const std::string what =
      has_defaults ? "how it is trained, which labels decide where this does not: for integers "
                     "softmax_cross_entropy, for floats mse, by adam; "
                   : "give the object functions @step and @evaluate, and keep trained tensors as states: ";
  CLI::Option* train = verb.add_option(
      "--train", training,
      what + "loss=NAME,optimizer=NAME[,weight_decay=W][,clip_norm=N]...; losses: softmax_cross_entropy, "
             "bce_with_logits, mse, l1, huber, or output:NAME, one that the model computes; optimizers: "
             "sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop, and ONNX's; functions=FILE has others "
             "in text form");
  std::vector<CLI::Option*> details;
  details.push_back(
      verb.add_option("--trainable", trainable,
                      "with --train: the tensors to train, by name or pattern (fc.*), LAST=2, BIASES or "
                      "NORMS; repeatable; default: all floats with dims")
          ->take_all());
  details.push_back(
      verb.add_option("--gradients", gradients,
                      "with --train: also give gradients as outputs 'gradient NAME' of @step, by name or "
                      "pattern; kept: of all trained tensors; repeatable")
          ->take_all());
  details.push_back(
      verb.add_option("--lora", adapters,
                      "with --train: rank=N[,alpha=X]:NAME trains adapters x A B * X / N of that rank beside "
                      "the weights of products with this name or pattern, which stay as they are, quantised "
                      "or not; repeatable; trains nothing else unless --trainable says so")
          ->take_all());
  details.push_back(
      verb.add_option("--micro-batch", micro_batch,
                      "with --train: process N rows of the batch at once and add up their gradients, in an "
                      "arena for N rows; the batch varies by multiples of N (--dim batch=N..MAX:N)")
          ->check(whole_between(1, kLargestExtent)));
  if (has_defaults) return;
  for (CLI::Option* detail : details) detail->needs(train);
}

// --train with what belongs to it.
static Result read_training(CompileFlags& flags) {
  if (flags.training.empty() && !flags.has_training_defaults) return {};
  training::TrainingOptions& training = flags.options.training.emplace();
  if (!flags.training.empty())
    if (Result parsed = driver::parse_training(flags.training, training); !parsed) return parsed;
  if (!flags.has_training_defaults)
    if (Result complete = driver::check_is_complete(training); !complete) return complete;
  training.trainable.patterns = flags.trainable;
  flags.options.flags.push_back("--train=" + flags.training);
  for (const std::string& pattern : flags.trainable) flags.options.flags.push_back("--trainable=" + pattern);
  for (const std::string& text : flags.adapters) {
    if (Result parsed = driver::parse_adapters(text, training); !parsed) return parsed;
    flags.options.flags.push_back("--lora=" + text);
  }
  training.micro_batch = flags.micro_batch;
  if (flags.micro_batch > 0)
    flags.options.flags.push_back("--micro-batch=" + std::to_string(flags.micro_batch));
  for (const std::string& pattern : flags.gradients) {
    training.kept_gradients.push_back(pattern == "kept" ? "*" : pattern);
    flags.options.flags.push_back("--gradients=" + pattern);
  }
  return {};
}

Result CompileFlags::finish() {
  using firn::OptLevel;
  using firn::Precision, driver::Weights, firn::Math, firn::WeightType;
  std::vector<std::string>& flags = options.flags;
  choose("-O", opt_level, options.goals.opt_level, flags,
         {{"0", OptLevel::O0},
          {"1", OptLevel::O1},
          {"2", OptLevel::O2},
          {"3", OptLevel::O3},
          {"s", OptLevel::Os},
          {"z", OptLevel::Os}});
  choose("--math=", math, options.goals.math, flags, {{"default", Math::Default}, {"strict", Math::Strict}});
  choose("--precision=", precision, options.goals.precision, flags,
         {{"f32", Precision::F32}, {"bf16", Precision::BF16}});
  choose("--weight-type=", weight_type, options.goals.weight_type, flags,
         {{"bf16", WeightType::BF16}, {"i8", WeightType::I8}, {"i4", WeightType::I4}});
  choose("--weights=", weights, options.weights, flags, {{"embed", Weights::Embed}, {"init", Weights::Init}});
  if (options.goals.precision == Precision::BF16 && options.goals.math == Math::Strict)
    return usage_error("--precision=bf16 and --math=strict exclude each other");
  if (options.goals.weight_type != WeightType::AsGiven && options.goals.math == Math::Strict)
    return usage_error("--weight-type=" + weight_type + " and --math=strict exclude each other");
  if (Result read = read_cpus(*this); !read) return read;
  if (Result read = read_gpu(*this); !read) return read;
  if (no_winograd) options.goals.winograd = firn::Winograd::Off;
  if (no_winograd) flags.push_back("--no-winograd");
  if (options.goals.check_indices) flags.push_back("--check-indices");
  if (Result read = read_text_bytes(*this); !read) return read;
  if (int64_t max = options.import.text_pieces; max != onnx::ImportOptions().text_pieces)
    flags.push_back("--text-pieces=" + std::to_string(max));
  if (options.goals.threads > 1 && gpu.empty())
    flags.push_back("--threads=" + std::to_string(options.goals.threads));
  if (!options.schedule_db.empty()) options.flags.push_back("--schedule-db");
  if (Result read = read_size("--memory-budget", memory_budget, options.memory_budget); !read) return read;
  if (!memory_budget.empty()) flags.push_back("--memory-budget=" + memory_budget);
  for (const std::string& path : options.link)
    if (!std::filesystem::exists(path)) return usage_error("--link " + path + ": there is no such file");
  if (loader == "system") options.loader = driver::Loader::System;
  for (const std::string& tool : visible_to)
    (tool == "perf" ? options.visibility.perf : options.visibility.debugger) = true;
  if (Result read = read_repeated(*this, options); !read) return read;
  if (Result read = read_training(*this); !read) return read;
  if (!gpu.empty())
    for (auto [flag, is_given] : {std::pair{"--weights=init", options.weights == Weights::Init},
                                  {"--hot", !options.specializations.empty()},
                                  {"--train", options.training.has_value()}})
      if (is_given) return usage_error(std::string(flag) + " does not go with --gpu yet");
  return driver::check_target(options);
}

} // namespace firn::tool
