// The options that compile, run, verify, bench and inspect share.
#pragma once

#include "compiler/driver/compile.h"

#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace firn::tool {

// Raw words of the command line, turned into CompileOptions by finish(). A word is empty, and a list is, if
// its option is not given.
struct CompileFlags {
  driver::CompileOptions options;
  // --optimize, --multiversion for `cpus`, and others by their names.
  std::string opt_level, weights, weight_type, math, precision, cpus, text_bytes, loader, training,
      memory_budget, gpu;
  std::vector<std::string> visible_to;
  bool no_winograd = false, has_training_defaults = false;
  int64_t micro_batch = 0; // 0: not given
  // --dim, --hot for specializations, --max for bounds, --shape, --length, --const, --name, --state,
  // --custom-op, --value, --trainable, --gradients, --lora: each may be repeated.
  std::vector<std::string> dims, specializations, bounds, shapes, lengths, constants, names, states, custom,
      values, trainable, gradients, adapters;

  // Target, optimisation, dims. `verb` keeps a reference to this object.
  void add_to(CLI::App& verb);
  // Adds the part of these that says what the model is and which passes it takes, for verbs without code.
  void add_model_to(CLI::App& verb);
  // Adds --train and what belongs to it. With defaults, loss and optimizer may be left out, which the verb
  // chooses.
  void add_training_to(CLI::App& verb, bool has_defaults = false);
  // Adds --gpu, of verbs that make or try a GPU's program.
  void add_gpu_to(CLI::App& verb);
  // Adds what goes with graphs in text form.
  void add_text_to(CLI::App& verb);
  // Adds --visible-to, of what loads code.
  void add_visibility_to(CLI::App& verb);
  // Adds the options of verbs that run code, --visible-to among them; called after add_to().
  void add_variant_to(CLI::App& verb);
  // Adds --cache, and with `jobs` also --jobs, of verbs that generate code.
  void add_generation_to(CLI::App& verb, bool jobs);
  // Fills `options`; an unusable word is a usage error.
  Result finish();
};

// Adds -O and --math, which every verb that runs passes has.
void add_level_options(CLI::App& verb, std::string& opt_level, std::string& math);
// --threads.
void add_threads_option(CLI::App& verb, int& threads);
// --gpu, in verbs with options for a CPU.
CLI::Option* add_gpu_option(CLI::App& verb, std::string& gpu);

} // namespace firn::tool
