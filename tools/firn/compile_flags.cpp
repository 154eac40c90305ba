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

struct OptionName {
  const char* kind; // before the option in messages
  const char* option;
};

// Sets `value` to what `word` names and records the flag; an empty word leaves both alone.
template <class Value>
Result choose(OptionName name, const std::string& word, Value& value, std::vector<std::string>& flags,
              std::initializer_list<std::pair<const char*, std::type_identity_t<Value>>> choices) {
  if (word.empty()) return {};
  std::string wanted;
  size_t left = choices.size();
  for (const auto& [choice, meaning] : choices) {
    if (word == choice) {
      value = meaning;
      flags.push_back(name.option + word);
      return {};
    }
    --left;
    wanted += choice + std::string(left > 1 ? ", " : left == 1 ? " or " : "");
  }
  return usage_error("unknown " + std::string(name.kind) + name.option + word + ": wanted " + wanted);
}

} // namespace

void CompileFlags::add_to(CLI::App& verb) {
  verb.add_option("--target", options.triple,
                  "target triple, e.g. aarch64-linux-gnu; default: this machine's");
  verb.add_option("--mcpu", options.cpu, "CPU, e.g. x86-64-v3, native, cortex-m4 (also -mcpu=)");
  verb.add_option("--mattr", options.features,
                  "CPU features added and taken away, e.g. +avx512bf16,-fma (also -mattr=)")
      ->join(',');
  verb.add_option("--optimize", opt_level, "0, 1, 2, 3, s or z (also -O3); default 3; z is the same as s");
  verb.add_option("--math", math, "float rules: default, strict or fast");
  verb.add_option("--winograd", winograd,
                  "filters of Winograd convolutions: embed (default), init (made before the first run: a "
                  "smaller object) or off");
  verb.add_option("--schedule-db", options.schedule_db,
                  "schedules that overrule the cost model, as --explain prints them");
  verb.add_option("--dim", dims, "value of a symbolic dim: NAME=VALUE; repeatable")->take_all();
  verb.add_option(
          "--state", states,
          "state kept from run to run: PAST=PRESENT, the input that is the output's value in the next "
          "run; repeatable")
      ->take_all();
  verb.add_option("--passes", options.passes, "passes to run instead of the default ones, comma-separated");
  verb.add_flag("--initializers-are-inputs", options.import.initializers_are_inputs,
                "keep initializers that are also graph inputs as inputs");
}

Result CompileFlags::finish() {
  using codegen::OptLevel;
  using lower::Math, lower::Winograd;
  std::vector<std::string>& flags = options.flags;
  Result chosen = choose({"optimisation level ", "-O"}, opt_level, options.opt_level, flags,
                         {{"0", OptLevel::O0},
                          {"1", OptLevel::O1},
                          {"2", OptLevel::O2},
                          {"3", OptLevel::O3},
                          {"s", OptLevel::Os},
                          {"z", OptLevel::Os}});
  if (!chosen) return chosen;
  chosen = choose({"", "--math="}, math, options.math, flags,
                  {{"default", Math::Default}, {"strict", Math::Strict}, {"fast", Math::Fast}});
  if (!chosen) return chosen;
  chosen = choose({"", "--winograd="}, winograd, options.winograd, flags,
                  {{"embed", Winograd::Embed}, {"init", Winograd::Init}, {"off", Winograd::Off}});
  if (!chosen) return chosen;
  if (!options.schedule_db.empty()) options.flags.push_back("--schedule-db");
  for (const std::string& word : dims) {
    if (Result parsed = parse_dim(word, options.import); !parsed) return parsed;
    options.flags.push_back("--dim=" + word);
  }
  for (const std::string& word : states) {
    auto pair = split_pair(word);
    if (!pair) return usage_error("--state wants PAST=PRESENT, found '" + word + "'");
    options.import.states.push_back(*pair);
    options.flags.push_back("--state=" + word);
  }
  for (const std::string& word : names) {
    auto pair = split_pair(word);
    if (!pair) return usage_error("--name wants NEW=OLD, found '" + word + "'");
    options.renames.push_back(*pair);
  }
  return {};
}

} // namespace firn::tool
