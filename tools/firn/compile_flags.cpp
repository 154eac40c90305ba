// The options that several verbs share.
#include "tools/firn/compile_flags.h"

#include <CLI/CLI.hpp>

namespace firn::tool {
namespace {

bool parse_integer(const std::string& text, int64_t& value) {
  if (text.empty() || text.size() > 18) return false;
  char* end = nullptr;
  value = std::strtoll(text.c_str(), &end, 10);
  return *end == 0;
}

// "a=b" as its two parts.
std::optional<std::pair<std::string, std::string>> split_pair(const std::string& text) {
  size_t at = text.find('=');
  if (at == text.npos || at == 0 || at + 1 == text.size()) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Result parse_dim(const std::string& word, onnx::ImportOptions& import) {
  auto pair = split_pair(word);
  if (!pair) return usage_error("--dim wants NAME=VALUE, found '" + word + "'");
  if (pair->second.find("..") != std::string::npos)
    return usage_error("--dim " + word + ": ranges of dims are not supported yet, give one value");
  int64_t value = 0;
  if (!parse_integer(pair->second, value) || value < 0)
    return usage_error("--dim " + word + ": '" + pair->second + "' is not a whole number of 0 or more");
  import.dims[pair->first] = value;
  return {};
}

} // namespace

void CompileFlags::add_to(CLI::App& verb) {
  verb.add_option("--target", options.triple,
                  "target triple, e.g. aarch64-linux-gnu; default: this machine's");
  verb.add_option("--mcpu", options.cpu, "CPU, e.g. x86-64-v3, native, cortex-m4 (also -mcpu=)");
  verb.add_option("--mattr", options.features, "extra CPU features, e.g. +avx512bf16 (also -mattr=)");
  verb.add_option("--optimize", opt_level, "0, 1, 2, 3, s or z (also -O3); default 3");
  verb.add_option("--math", math, "float rules: default, strict or fast");
  verb.add_option("--winograd", winograd,
                  "filters of Winograd convolutions: embed (default), init (made before the first run: a "
                  "smaller object) or off");
  verb.add_option("--schedule-db", options.schedule_db,
                  "schedules that overrule the cost model, as --explain prints them");
  verb.add_option("--dim", dims, "value of a symbolic dim: NAME=VALUE; repeatable")->take_all();
  verb.add_option("--passes", options.passes, "passes to run instead of the default ones, comma-separated");
  verb.add_flag("--initializers-are-inputs", options.import.initializers_are_inputs,
                "keep initializers that are also graph inputs as inputs");
}

Result CompileFlags::finish() {
  using codegen::OptLevel;
  if (!opt_level.empty()) {
    const std::pair<const char*, OptLevel> levels[] = {{"0", OptLevel::O0}, {"1", OptLevel::O1},
                                                       {"2", OptLevel::O2}, {"3", OptLevel::O3},
                                                       {"s", OptLevel::Os}, {"z", OptLevel::Oz}};
    bool known = false;
    for (auto [name, level] : levels)
      if (opt_level == name) options.opt_level = level, known = true;
    if (!known)
      return usage_error("unknown optimisation level -O" + opt_level + ": wanted 0, 1, 2, 3, s or z");
    options.flags.push_back("-O" + opt_level);
  }
  if (!math.empty()) {
    if (math == "default")
      options.math = lower::Math::Default;
    else if (math == "strict")
      options.math = lower::Math::Strict;
    else if (math == "fast")
      options.math = lower::Math::Fast;
    else
      return usage_error("unknown --math=" + math + ": wanted default, strict or fast");
    options.flags.push_back("--math=" + math);
  }
  if (!winograd.empty()) {
    if (winograd == "embed")
      options.winograd = lower::Winograd::Embed;
    else if (winograd == "init")
      options.winograd = lower::Winograd::Init;
    else if (winograd == "off")
      options.winograd = lower::Winograd::Off;
    else
      return usage_error("unknown --winograd=" + winograd + ": wanted embed, init or off");
    options.flags.push_back("--winograd=" + winograd);
  }
  if (!options.schedule_db.empty()) options.flags.push_back("--schedule-db");
  for (const std::string& word : dims) {
    if (Result parsed = parse_dim(word, options.import); !parsed) return parsed;
    options.flags.push_back("--dim=" + word);
  }
  for (const std::string& word : names) {
    auto pair = split_pair(word);
    if (!pair) return usage_error("--name wants NEW=OLD, found '" + word + "'");
    options.renames.push_back(*pair);
  }
  return {};
}

} // namespace firn::tool
