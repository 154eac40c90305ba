// The options that several verbs share.
#include "tools/firn/compile_flags.h"

#include "compiler/driver/compile_text.h"
#include "compiler/driver/run.h"
#include "compiler/driver/runs_here.h"
#include "tools/firn/value_checks.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>

namespace firn::tool {
namespace {

bool parse_integer(const std::string& text, int64_t& value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != text.npos) return false;
  value = std::strtoll(text.c_str(), nullptr, 10);
  return true;
}

// "a=b" as its two parts.
std::optional<std::pair<std::string, std::string>> split_pair(const std::string& text) {
  size_t at = text.find('=');
  if (at == text.npos || at == 0 || at + 1 == text.size()) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

// "1|4|8"
Expected<onnx::DimRange> parse_values(const std::string& text) {
  onnx::DimRange range;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('|', at), text.size());
    int64_t value = 0;
    if (!parse_integer(text.substr(at, end - at), value))
      return usage_error("'" + text + "' is no list of whole numbers such as 1|4|8");
    range.values.push_back(value);
    at = end + 1;
  }
  std::sort(range.values.begin(), range.values.end());
  if (std::adjacent_find(range.values.begin(), range.values.end()) != range.values.end())
    return usage_error("'" + text + "' names a value twice");
  range.lower = range.values.front();
  range.upper = range.values.back();
  return range;
}

// "1..8", "32..512:32", "1|4|8"
Expected<onnx::DimRange> parse_range(const std::string& text) {
  if (text.find('|') != text.npos) return parse_values(text);
  onnx::DimRange range;
  size_t dots = text.find(".."), colon = std::min(text.find(':'), text.size());
  bool ok = dots < colon && parse_integer(text.substr(0, dots), range.lower) &&
            parse_integer(text.substr(dots + 2, colon - dots - 2), range.upper) &&
            (colon == text.size() || parse_integer(text.substr(colon + 1), range.multiple));
  if (!ok) return usage_error("'" + text + "' is no range such as 1..8 or 32..512:32");
  if (range.upper < range.lower) return usage_error("the range '" + text + "' ends before it begins");
  if (range.multiple == 0 || range.lower % range.multiple != 0 || range.upper % range.multiple != 0)
    return usage_error("the ends of '" + text + "' are no multiples of " + std::to_string(range.multiple));
  return range;
}

Result parse_dim(const std::string& word, onnx::ImportOptions& import) {
  auto pair = split_pair(word);
  if (!pair)
    return usage_error("--dim wants NAME=VALUE, NAME=1..8, NAME=32..512:32 or NAME=1|4|8, found '" + word +
                       "'");
  const auto& [name, text] = *pair;
  if (import.dims.count(name) || import.ranges.count(name))
    return usage_error("--dim " + word + ": dim '" + name + "' is given twice");
  if (text.find_first_of(".:|") == text.npos) {
    int64_t value = 0;
    if (!parse_integer(text, value))
      return usage_error("--dim " + word + ": '" + text + "' is not a whole number of 0 or more");
    import.dims[name] = value;
    return {};
  }
  auto range = parse_range(text);
  if (!range) return usage_error("--dim " + word + ": " + range.error().message);
  if (range->lower == range->upper)
    import.dims[name] = range->lower;
  else
    import.ranges[name] = std::move(*range);
  return {};
}

// NAME=8 or NAME=8,1,64
Result parse_bounds(const std::string& word, std::map<std::string, std::vector<int64_t>>& bounds) {
  size_t at = word.rfind('=');
  if (at == word.npos || at == 0) return usage_error("--max wants NAME=NUMBER, found '" + word + "'");
  std::vector<int64_t> each;
  for (size_t from = at + 1; from <= word.size();) {
    size_t end = std::min(word.find(',', from), word.size());
    int64_t most = 0;
    if (!parse_integer(word.substr(from, end - from), most) || most > int64_t{1} << 31)
      return usage_error("--max " + word + ": '" + word.substr(at + 1) +
                         "' is no list of whole numbers such as 8,1,64");
    each.push_back(most);
    from = end + 1;
  }
  if (!bounds.emplace(word.substr(0, at), std::move(each)).second)
    return usage_error("--max " + word + ": '" + word.substr(0, at) + "' is given twice");
  return {};
}

// NAME=VALUE,NAME=VALUE
Result parse_hot(const std::string& words, std::vector<std::map<std::string, int64_t>>& hot) {
  std::map<std::string, int64_t> values;
  for (size_t at = 0; at <= words.size();) {
    size_t end = std::min(words.find(',', at), words.size());
    if (Result parsed = parse_dim_value("--hot", words.substr(at, end - at), values); !parsed) return parsed;
    at = end + 1;
  }
  if (std::find(hot.begin(), hot.end(), values) != hot.end())
    return usage_error("--hot " + words + ": these values are given twice");
  hot.push_back(std::move(values));
  return {};
}

// NAME=1,2,3, or NAME=FILE.
Result parse_constant(const std::string& word, onnx::ImportOptions& import) {
  auto pair = split_pair(word);
  if (!pair) return usage_error("--const wants NAME=VALUE or NAME=FILE, found '" + word + "'");
  const auto& [name, value] = *pair;
  if (import.is_fixed(name)) return usage_error("--const " + word + ": input '" + name + "' is given twice");
  if (!value.ends_with(".npy") && !value.ends_with(".pb")) {
    import.constant_texts[name] = value;
    return {};
  }
  auto tensor = driver::read_tensor(value);
  if (!tensor) return tensor.error();
  import.constants[name] = *tensor;
  import.shapes.emplace(name, (*tensor)->dims());
  return {};
}

// NAME=3 or NAME=none.
Result parse_length(const std::string& word, onnx::ImportOptions& import) {
  auto pair = split_pair(word);
  int64_t length = onnx::kAbsent;
  if (!pair || (pair->second != "none" && !parse_integer(pair->second, length)))
    return usage_error("--length wants NAME=NUMBER or NAME=none, found '" + word + "'");
  if (!import.lengths.emplace(pair->first, length).second)
    return usage_error("--length " + word + ": input '" + pair->first + "' is given twice");
  return {};
}

bool is_identifier(const std::string& text) {
  auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), is_letter);
}

// com.acme:Pool=symbol or com.acme:Pool=symbol:64K, the size of the workspace.
Result parse_custom(const std::string& word, onnx::ImportOptions& import) {
  auto pair = split_pair(word);
  size_t colon = pair ? pair->first.find(':') : std::string::npos;
  if (!pair || colon == std::string::npos || colon == 0 || colon + 1 == pair->first.size())
    return usage_error("--custom-op wants DOMAIN:NAME=SYMBOL or DOMAIN:NAME=SYMBOL:BYTES, found '" + word +
                       "'");
  onnx::CustomOperator custom{pair->first, pair->second.substr(0, pair->second.find(':'))};
  if (!is_identifier(custom.symbol))
    return usage_error("--custom-op " + word + ": '" + custom.symbol + "' is no name of a C function");
  if (custom.symbol.size() < pair->second.size()) {
    auto bytes = driver::parse_size(pair->second.substr(custom.symbol.size() + 1));
    constexpr int64_t kMost = int64_t{1} << 40;
    if (!bytes || *bytes > kMost)
      return usage_error("--custom-op " + word + ": the workspace is no size such as 64K, up to 1T");
    custom.workspace = *bytes;
  }
  if (!import.custom.emplace(pair->first, custom).second)
    return usage_error("--custom-op " + word + ": " + pair->first + " is given twice");
  return {};
}

// NAME=2x3x224: extents apart by 'x'.
Result parse_shape(const std::string& word, onnx::ImportOptions& import) {
  auto pair = split_pair(word);
  if (!pair) return usage_error("--shape wants NAME=EXTENTxEXTENT..., found '" + word + "'");
  std::vector<int64_t> extents;
  for (size_t at = 0; at <= pair->second.size();) {
    size_t end = std::min(pair->second.find('x', at), pair->second.size());
    int64_t extent = 0;
    if (!parse_integer(pair->second.substr(at, end - at), extent))
      return usage_error("--shape " + word + ": '" + pair->second + "' is no shape such as 1x3x224x224");
    extents.push_back(extent);
    at = end + 1;
  }
  if (!import.shapes.emplace(pair->first, extents).second)
    return usage_error("--shape " + word + ": the shape of '" + pair->first + "' is given twice");
  return {};
}

// Fails if two of the words before '=' (or, `after` it) are one.
Result check_distinct(const char* option, const std::vector<std::pair<std::string, std::string>>& pairs,
                      bool after) {
  std::set<std::string> seen;
  for (const auto& pair : pairs) {
    const std::string& name = after ? pair.second : pair.first;
    if (!seen.insert(name).second)
      return usage_error(std::string(option) + ": '" + name + "' is given twice");
  }
  return {};
}

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
  std::string& text = flags.cpus;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    if (end == at) return usage_error("--multiversion wants CPUs apart by commas, found '" + text + "'");
    flags.options.cpus.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (flags.options.cpus.empty()) return {};
  flags.options.flags.push_back("--multiversion=" + text);
  return {};
}

} // namespace

Result parse_dim_value(const char* option, const std::string& word, std::map<std::string, int64_t>& values) {
  auto pair = split_pair(word);
  int64_t value = 0;
  if (!pair || !parse_integer(pair->second, value))
    return usage_error(std::string(option) + " wants NAME=VALUE, found '" + word + "'");
  if (!values.emplace(pair->first, value).second)
    return usage_error(std::string(option) + " " + word + ": dim '" + pair->first + "' is given twice");
  return {};
}

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

void CompileFlags::add_variant_to(CLI::App& verb) {
  verb.add_option("--link", options.link,
                  "a file that defines the functions of --custom-op: C or C++, an object or a library; "
                  "repeatable")
      ->take_all();
  verb.add_option(
          "--variant", options.variant,
          "with --multiversion: the CPU whose code runs; default: the best that this machine can follow")
      ->needs("--multiversion");
}

void CompileFlags::add_to(CLI::App& verb) {
  verb.add_option("--target", options.triple,
                  "target triple, e.g. aarch64-linux-gnu; default: this machine's");
  verb.add_option(
      "--mcpu", options.cpu,
      "CPU, e.g. x86-64-v3 (the default on x86-64, for every verb), cortex-m4, or native: all that "
      "this machine has (also -mcpu=)");
  verb.add_option("--mattr", options.features,
                  "CPU features added and taken away, e.g. +avx512bf16,-fma (also -mattr=)")
      ->join(',');
  verb.add_option(
          "--multiversion", cpus,
          "code for several CPUs in one object, comma-separated, e.g. x86-64-v2,x86-64-v3,x86-64-v4 or "
          "armv8-a,armv8.2-a+dotprod: the program takes the best that its own CPU can follow")
      ->excludes("--mcpu")
      ->excludes("--mattr");
  add_level_options(verb, opt_level, math);
  verb.add_option("--precision", precision,
                  "f32 (default) or bf16: multiply weights and activations as bf16, and add in f32")
      ->check(one_of({"f32", "bf16"}));
  verb.add_option(
          "--weight-type", weight_type,
          "bf16, i8 or i4: hold the constant matrices of products that wait for them in fewer bits; "
          "i8 with a scale for each column, i4 for each 32 steps of one; default: as the model has them")
      ->check(one_of({"bf16", "i8", "i4"}));
  verb.add_option("--weights", weights,
                  "embed (default: the object holds weights as the kernels read them) or init (it holds the "
                  "model's own, from which the program makes those before the first run)")
      ->check(one_of({"embed", "init"}));
  verb.add_flag(
      "--no-winograd", options.no_winograd,
      "no convolution uses Winograd's algorithm; by default those do where it pays for the bytes of "
      "its filters");
  verb.add_flag("--check-indices", options.check_indices,
                "run() reports indices out of range, which are clamped without a word by default");
  verb.add_option("--text-bytes", text_bytes,
                  "room for the strings that one run makes, such as joined ones, e.g. 4K; default 64K");
  verb.add_option("--text-pieces", options.import.text_pieces,
                  "the most pieces into which a string is split where the model does not say; default 64")
      ->check(whole_between(1, 1 << 20));
  add_threads_option(verb, options.threads);
  verb.add_option("--schedule-db", options.schedule_db,
                  "plans that overrule the cost model, in lines as --explain prints them");
  verb.add_option(
          "--dim", dims,
          "value of a symbolic dim, NAME=VALUE, or for one object the values that it may have: NAME=1..8, "
          "NAME=32..512:32 (multiples) or NAME=1|4|8; repeatable")
      ->take_all();
  verb.add_option(
          "--hot", hot,
          "values of dims that vary for which the object has code of their own, over the same "
          "weights: NAME=VALUE, or NAME=VALUE,NAME=VALUE for both at once; repeatable, the first that "
          "fits a run is taken")
      ->take_all();
  verb.add_option(
          "--max", bounds,
          "how large integers may be that only a run knows and that decide shapes, by the name of the "
          "value: NAME=8, or NAME=8,1,64 for each element; a larger one ends a run; repeatable")
      ->take_all();
  verb.add_option("--shape", shapes,
                  "shape of an input whose shape the model leaves open: NAME=1x3x224x224; repeatable")
      ->take_all();
  verb.add_option(
          "--length", lengths,
          "how many elements an input has that is a sequence, NAME=3, or that an optional holds nothing, "
          "NAME=none; elements are inputs NAME_0, NAME_1, ...; repeatable")
      ->take_all();
  verb.add_option(
          "--const", constants,
          "fix an input, such as one that decides shapes: NAME=1,2,3 or NAME=FILE (.npy, .pb); repeatable")
      ->take_all();
  verb.add_option("--custom-op", custom,
                  "an operator that a function of the program computes, DOMAIN:NAME=SYMBOL, or "
                  "DOMAIN:NAME=SYMBOL:64K with so many bytes of workspace (firn/custom_op.h); repeatable")
      ->take_all();
  verb.add_option("--value", values,
                  "the type of a value that such an operator gives, where the model does not say it: "
                  "NAME=f32[1,8]; repeatable")
      ->take_all();
  verb.add_option(
          "--state", states,
          "state kept from run to run: PAST=PRESENT, the input that is the output's value in the next "
          "run; repeatable")
      ->take_all();
  verb.add_option("--passes", options.passes,
                  "passes to run instead of the default ones, comma-separated; none: none");
  verb.add_flag("--initializers-are-inputs", options.import.initializers_are_inputs,
                "keep initializers that are also graph inputs as inputs");
}

static Result read_text_bytes(CompileFlags& flags) {
  if (flags.text_bytes.empty()) return {};
  auto bytes = driver::parse_size(flags.text_bytes);
  constexpr int64_t kMost = int64_t{1} << 30;
  if (!bytes || *bytes > kMost)
    return usage_error("--text-bytes: '" + flags.text_bytes + "' is no size such as 4K, up to 1024M");
  flags.options.text_bytes = *bytes;
  flags.options.flags.push_back("--text-bytes=" + flags.text_bytes);
  return {};
}

Result CompileFlags::finish() {
  using codegen::OptLevel;
  using driver::Precision, driver::Weights, lower::Math, plan::WeightType;
  std::vector<std::string>& flags = options.flags;
  choose("-O", opt_level, options.opt_level, flags,
         {{"0", OptLevel::O0},
          {"1", OptLevel::O1},
          {"2", OptLevel::O2},
          {"3", OptLevel::O3},
          {"s", OptLevel::Os},
          {"z", OptLevel::Os}});
  choose("--math=", math, options.math, flags, {{"default", Math::Default}, {"strict", Math::Strict}});
  choose("--precision=", precision, options.precision, flags,
         {{"f32", Precision::F32}, {"bf16", Precision::BF16}});
  choose("--weight-type=", weight_type, options.weight_type, flags,
         {{"bf16", WeightType::BF16}, {"i8", WeightType::I8}, {"i4", WeightType::I4}});
  choose("--weights=", weights, options.weights, flags, {{"embed", Weights::Embed}, {"init", Weights::Init}});
  if (options.precision == Precision::BF16 && options.math == Math::Strict)
    return usage_error("--precision=bf16 and --math=strict exclude each other");
  if (options.weight_type != WeightType::AsGiven && options.math == Math::Strict)
    return usage_error("--weight-type=" + weight_type + " and --math=strict exclude each other");
  if (Result read = read_cpus(*this); !read) return read;
  if (options.no_winograd) flags.push_back("--no-winograd");
  if (options.check_indices) flags.push_back("--check-indices");
  if (Result read = read_text_bytes(*this); !read) return read;
  if (int64_t most = options.import.text_pieces; most != onnx::ImportOptions().text_pieces)
    flags.push_back("--text-pieces=" + std::to_string(most));
  if (options.threads > 1) flags.push_back("--threads=" + std::to_string(options.threads));
  if (!options.schedule_db.empty()) options.flags.push_back("--schedule-db");
  for (const std::string& word : dims) {
    if (Result parsed = parse_dim(word, options.import); !parsed) return parsed;
    options.flags.push_back("--dim=" + word);
  }
  for (const std::string& word : bounds) {
    if (Result parsed = parse_bounds(word, options.import.bounds); !parsed) return parsed;
    options.flags.push_back("--max=" + word);
  }
  for (const std::string& word : hot) {
    if (Result parsed = parse_hot(word, options.hot); !parsed) return parsed;
    options.flags.push_back("--hot=" + word);
  }
  for (const std::string& word : shapes) {
    if (Result parsed = parse_shape(word, options.import); !parsed) return parsed;
    options.flags.push_back("--shape=" + word);
  }
  for (const std::string& word : lengths) {
    if (Result parsed = parse_length(word, options.import); !parsed) return parsed;
    options.flags.push_back("--length=" + word);
  }
  for (const std::string& path : options.link)
    if (!std::filesystem::exists(path)) return usage_error("--link " + path + ": there is no such file");
  for (const std::string& word : custom) {
    if (Result parsed = parse_custom(word, options.import); !parsed) return parsed;
    options.flags.push_back("--custom-op=" + word);
  }
  for (const std::string& word : values) {
    auto pair = split_pair(word);
    if (!pair || !options.import.values.insert(*pair).second)
      return usage_error("--value wants NAME=TYPE, each name once, found '" + word + "'");
    options.flags.push_back("--value=" + word);
  }
  for (const std::string& word : constants) {
    if (Result parsed = parse_constant(word, options.import); !parsed) return parsed;
    options.flags.push_back("--const=" + word);
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
  for (bool after : {false, true}) {
    if (Result checked = check_distinct("--state", options.import.states, after); !checked) return checked;
    if (Result checked = check_distinct("--name", options.renames, after); !checked) return checked;
  }
  return driver::check_target(options);
}

} // namespace firn::tool
