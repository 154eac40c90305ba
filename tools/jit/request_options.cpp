// Words to options, by the parser of the command line.
#include "tools/jit/request_options.h"

#include "tools/firn/command_line.h"
#include "tools/firn/compile_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace firn::library {
namespace {

Result parse(const std::vector<std::string>& words, tool::CompileFlags& flags) {
  CLI::App verb("", "compile");
  flags.add_to(verb);
  flags.add_visibility_to(verb);
  flags.add_text_to(verb);
  flags.add_training_to(verb);
  verb.add_option("--name", flags.names)->take_all();
  verb.add_option("--external", flags.options.external)->take_all();
  std::vector<std::string> arguments;
  for (const std::string& word : words) arguments.push_back(tool::normalised_argument(word));
  std::reverse(arguments.begin(), arguments.end()); // CLI11 takes them from the back
  try {
    verb.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return tool::refused_arguments(verb, error);
  }
  return flags.finish();
}

} // namespace

Expected<driver::CompileOptions> options_of(const Request& request) {
  tool::CompileFlags flags;
  if (Result parsed = parse(request.words, flags); !parsed) return parsed.error();
  driver::CompileOptions& options = flags.options;
  options.model = request.model;
  options.model_bytes = request.bytes;
  options.symbols = request.symbols;
  options.stop = request.stop;
  options.progress = request.progress;
  if (options.cpu.empty() && options.cpus.empty()) options.cpu = "native";
  if (!options.triple.empty()) return usage_error("--target: code for this process is for this machine");
  return std::move(options);
}

} // namespace firn::library
