// The verb `opt`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/gpu_target.h"
#include "compiler/driver/opt.h"

#include <CLI/CLI.hpp>
#include <climits>
#include <memory>
#include <string>

namespace firn::tool {
void add_opt_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<driver::OptOptions>();
  CLI::App* verb = app.add_subcommand("opt", "Run passes on a graph or on kernels in text form (.hlo, .kir)");
  verb->add_option("input", options->input, "graph or kernels to read; - for standard input")->required();
  CLI::Option* passes = verb->add_option(
      "--passes", options->passes, "comma-separated names of passes over graphs or kernels, or 'default'");
  verb->add_option("--weights-in", options->weights_in, "side file with the graph's large constants");
  CLI::Option* weights_out =
      verb->add_option("--weights-out", options->weights_out, "write the result's large constants here");
  verb->add_option("--target", options->triple, "target triple for passes that depend on the target");
  verb->add_option(
      "--mcpu", options->cpu,
      "CPU for passes that depend on the target; without it and --target, 'default' is the list of "
      "those that do not (also -mcpu=)");
  verb->add_option("--mattr", options->features,
                   "CPU features added and taken away, e.g. +avx512bf16,-fma (also -mattr=)")
      ->join(',');
  auto level = std::make_shared<std::string>(), math = std::make_shared<std::string>();
  add_level_options(*verb, *level, *math);
  add_threads_option(*verb, options->goals.threads);
  auto gpu = std::make_shared<std::string>();
  add_gpu_option(*verb, *gpu);
  auto budget = std::make_shared<std::string>();
  verb->add_option("--memory-budget", *budget, "bytes for rematerialize, e.g. 200K");
  CLI::Option* limit =
      verb->add_option("--rewrite-limit", options->rewrite_limit, "stop after this many changes, to bisect");
  limit->check(whole_between(0, INT_MAX));
  CLI::Option* lower = verb->add_flag("--lower", options->lower,
                                      "print the kernels of the graph's @main as its plans say, after the "
                                      "passes over graphs; needs a target");
  verb->add_flag("--verify-only", options->verify_only, "only parse, verify and print")
      ->excludes(passes)
      ->excludes(lower)
      ->excludes(weights_out)
      ->excludes(limit);
  verb->footer(
      "Example:\n  firn opt --passes=fold-constants,eliminate-dead-code graph.hlo\n"
      "  firn opt --passes=merge-equal-kernels kernels.kir\n"
      "  firn opt --lower -mcpu=x86-64-v3 graph.hlo\n"
      "  firn opt --passes=default -mcpu=x86-64-v3 -Os --math=strict graph.hlo\n"
      "  firn compile model.onnx --emit=graph --passes=none -o graph.hlo --weights-out graph.weights");
  verb->callback([options, level, math, gpu, budget, &action] {
    if (*level == "s" || *level == "z") options->goals.opt_level = firn::OptLevel::Os;
    if (*math == "strict") options->goals.math = firn::Math::Strict;
    action = [options, gpu, budget] {
      if (!gpu->empty())
        if (Result read = driver::choose_gpu(*gpu, options->gpu, options->goals); !read)
          return report(read.error());
      if (Result read = read_size("--memory-budget", *budget, options->memory_budget); !read)
        return report(read.error());
      auto text = driver::opt(*options);
      return text ? print_result(*text) : report(text.error(), options->input);
    };
  });
}

} // namespace firn::tool
