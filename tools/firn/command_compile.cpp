// The verb `compile`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/standard_output.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/against.h"
#include "compiler/driver/compile_text.h"
#include "compiler/support/diagnostic_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <memory>
#include <set>
#include <unistd.h>

namespace firn::tool {
namespace {

constexpr std::pair<const char*, driver::Emit> kEmits[] = {
    {"obj", driver::Emit::Object},       {"graph", driver::Emit::Graph},   {"prepare", driver::Emit::Prepare},
    {"kernel", driver::Emit::Kernel},    {"llvm", driver::Emit::Llvm},     {"asm", driver::Emit::Assembly},
    {"ptx", driver::Emit::Ptx},          {"report", driver::Emit::Report}, {"header", driver::Emit::Header},
    {"manifest", driver::Emit::Manifest}};

std::vector<std::string> emit_names() {
  std::vector<std::string> names;
  for (auto [name, kind] : kEmits) names.emplace_back(name);
  return names;
}

struct CompileCommand {
  CompileFlags flags;
  std::string emit = "obj", flash_budget, ram_budget;
  std::string explain; // empty, "true" or "all"
  bool time_passes = false, report = false, quiet = false, json = false;
};

// Options that would have no effect on what --emit asks for.
Result check_emit(const CompileCommand& command) {
  const driver::CompileOptions& options = command.flags.options;
  using driver::Emit;
  bool is_object = options.emit == Emit::Object, is_graph = options.emit == Emit::Graph;
  bool has_sizes = is_object || options.emit == Emit::Header || options.emit == Emit::Manifest;
  struct Rule {
    const char* option;
    bool given, has_effect;
    const char* wanted;
  };
  for (const Rule& rule :
       {Rule{"--depfile", !options.depfile.empty(), is_object, "obj"},
        Rule{"--json", command.json, is_object, "obj"},
        Rule{"--weights-out", !options.weights_out.empty(), is_graph || options.emit == Emit::Kernel,
             "graph or kernel"},
        Rule{"--flash-budget", !command.flash_budget.empty(), has_sizes, "obj, header or manifest"},
        Rule{"--ram-budget", !command.ram_budget.empty(), has_sizes, "obj, header or manifest"},
        Rule{"--report", command.report, has_sizes, "obj, header or manifest"},
        Rule{"--explain", !command.explain.empty(), !is_graph, "anything but graph"}})
    if (rule.given && !rule.has_effect)
      return usage_error(std::string(rule.option) + " has no effect with --emit=" + command.emit +
                         ": it goes with " + rule.wanted);
  const bool is_of_gpu = options.emit == Emit::Ptx || options.emit == Emit::Report;
  if (!options.gpu.empty() && !is_of_gpu && !is_graph && options.emit != Emit::Kernel)
    return usage_error("--gpu goes with --emit=graph, kernel, ptx or report, and not yet with " +
                       command.emit);
  if (options.gpu.empty() && is_of_gpu)
    return usage_error("--emit=" + command.emit +
                       " is of a GPU's program, which --gpu names: --gpu=cuda:sm_80");
  return {};
}

Result finish(CompileCommand& command) {
  if (Result done = command.flags.finish(); !done) return done;
  driver::CompileOptions& options = command.flags.options;
  if (options.training && !options.entry.empty())
    return usage_error("--train gives an object all its functions: --entry goes with firn bench --train");
  for (auto [name, kind] : kEmits)
    if (command.emit == name) options.emit = kind;
  if (Result checked = check_emit(command); !checked) return checked;
  std::set<std::string> external;
  for (std::string& name : options.external) { // by the name in the model or the one that --name gives
    auto renamed = std::find_if(options.renames.begin(), options.renames.end(),
                                [&](const auto& pair) { return pair.first == name; });
    if (renamed != options.renames.end()) name = renamed->second;
  }
  for (const std::string& name : options.external)
    if (!external.insert(name).second) return usage_error("--external: '" + name + "' is given twice");
  if (Result read = read_size("--flash-budget", command.flash_budget, options.flash_budget); !read)
    return read;
  return read_size("--ram-budget", command.ram_budget, options.ram_budget);
}

// Facts go to standard output, unless that is where the text of --emit goes.
Result print_facts(const CompileCommand& command, const driver::Compilation& compilation) {
  const driver::CompileOptions& options = command.flags.options;
  for (const std::string& warning : compilation.facts.warnings)
    std::fputs(warning_text(shown_file(options.model), warning).c_str(), stderr);
  bool is_object = options.emit == driver::Emit::Object;
  std::string text;
  if (command.json)
    text += driver::manifest_text(compilation);
  else if (is_object && !command.quiet)
    text += driver::summary_text(compilation);
  if (command.report) text += driver::report_text(compilation) + driver::stated_text(options);
  if (!command.explain.empty())
    text += driver::plans_text(options, compilation, command.explain == "all") +
            driver::kernels_text(compilation);
  if (command.time_passes) text += driver::timing_text(compilation);
  if (is_object) return print(text);
  std::fputs(text.c_str(), stderr);
  return {};
}

int run(CompileCommand& command) {
  if (Result done = finish(command); !done) return report(done.error());
  driver::CompileOptions& options = command.flags.options;
  bool on_terminal = ::isatty(2) != 0;
  auto start = std::chrono::steady_clock::now();
  // Progress only on a terminal, and only once a second has passed.
  if (on_terminal && !command.quiet)
    options.progress = [start,
                        name = options.model.substr(options.model.rfind('/') + 1)](const std::string& phase) {
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(1))
        std::fprintf(stderr, "\r\033[K%s: %s ...", name.c_str(), phase.c_str());
    };
  auto end_progress = [&] {
    if (on_terminal && !command.quiet) std::fputs("\r\033[K", stderr);
  };
  options.announce = [&](const driver::Compilation& compilation) {
    end_progress();
    return print_facts(command, compilation);
  };
  options.print = print;
  DiagnosticList diagnostics;
  auto compilation = driver::compile(options, diagnostics);
  if (!compilation) {
    end_progress();
    int code = report(diagnostics, options.model);
    std::fprintf(stderr, "%zu error%s; nothing was written\n", diagnostics.count(),
                 diagnostics.count() == 1 ? "" : "s");
    return code;
  }
  return 0;
}

} // namespace

void add_compile_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<CompileCommand>();
  driver::CompileOptions& options = command->flags.options;
  CLI::App* verb = app.add_subcommand("compile", "Compile a model into an object, a header and a manifest");
  verb->add_option("model", options.model,
                   "the ONNX model, or a graph (.hlo) or kernels (.kir) in text form; -: standard input")
      ->required();
  verb->add_option("-o,--output", options.output,
                   "stem of the files to write: STEM.o, STEM.h, STEM.json; a folder, if it ends with /");
  verb->add_option("--class", options.class_name,
                   "the C++ class, e.g. vision::Digits; default: from the file's name");
  verb->add_option("--name", command->flags.names,
                   "rename an input, an output or a dim that varies: NEW=OLD; repeatable")
      ->take_all();
  verb->add_option("--external", options.external,
                   "input or output without arena space: it must be bound; repeatable")
      ->take_all();
  command->flags.add_to(*verb);
  command->flags.add_gpu_to(*verb);
  command->flags.add_generation_to(*verb, /*jobs=*/true);
  command->flags.add_text_to(*verb);
  command->flags.add_training_to(*verb);
  verb->add_option(
          "--emit", command->emit,
          "obj, or as text to -o or standard output: graph, prepare (the graph that makes the weights that "
          "kernels read), kernel, llvm, asm, header or manifest; with --gpu: ptx, or report, what its "
          "kernels take")
      ->check(one_of(emit_names()));
  verb->add_option(
      "--weights-out", options.weights_out,
      "with --emit=graph: write large constants here; with --emit=kernel: the weights that kernels read");
  verb->add_option("--dump-passes", options.dump_folder,
                   "write the graph or the kernels after every changing pass into this folder");
  verb->add_option("--rewrite-limit", options.rewrite_limit,
                   "stop passes after this many rewrites, to bisect")
      ->check(whole_between(0, INT_MAX));
  verb->add_option("--depfile", options.depfile, "write a dependency file for make and ninja");
  verb->add_option("--flash-budget", command->flash_budget, "fail if weights and code exceed this, e.g. 64K");
  verb->add_option("--ram-budget", command->ram_budget, "fail if arena and stack exceed this, e.g. 20K");
  CLI::Option* time_passes =
      verb->add_flag("--time-passes", command->time_passes,
                     "print seconds and peak memory per phase, and how many kernels the cache had");
  CLI::Option* sizes = verb->add_flag("--report", command->report,
                                      "print sizes, the arena's lower bound and kernels, and the error of "
                                      "--precision and --weight-type");
  CLI::Option* explain =
      verb->add_flag("--explain", command->explain,
                     "print the plan of every kernel and what the cost model weighed; --explain=all: also "
                     "the plans that each algorithm has to choose from, with their predicted cycles")
          ->check([](const std::string& word) {
            return word == "true" || word == "all"
                       ? ""
                       : "wanted --explain or --explain=all, found '" + word + "'";
          });
  verb->add_flag("--json", command->json, "print the manifest instead of the summary")
      ->excludes(time_passes)
      ->excludes(sizes)
      ->excludes(explain);
  verb->add_flag("-q,--quiet", command->quiet, "print nothing but errors");
  verb->footer(
      driver::feature_help() +
      std::string("Examples:\n"
                  "  firn compile digits.onnx -o build/digits --class vision::Digits\n"
                  "  firn compile net.onnx -mcpu=native -O3 --dim batch=1 --time-passes\n"
                  "  firn compile net.onnx --target aarch64-linux-gnu -o build/net\n"
                  "  firn compile net.onnx --target arm-none-eabihf -mcpu=cortex-m4 -Os --flash-budget=256K\n"
                  "  firn compile graph.hlo --weights-in graph.weights -o build/net\n"
                  "  firn compile net.onnx --emit=kernel -o net.kir --weights-out net.weights\n"
                  "  firn compile net.kir --weights-in net.weights -o build/net\n") +
      kExitCodes);
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

} // namespace firn::tool
