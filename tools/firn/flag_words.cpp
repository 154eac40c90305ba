// Reads words of the command line into the options of a compilation.
#include "tools/firn/flag_words.h"

#include "compiler/driver/compile_text.h"
#include "compiler/driver/given_inputs.h"
#include "compiler/driver/run.h"
#include "compiler/support/words.h"

#include <algorithm>

namespace firn::tool {
namespace {

bool parse_integer(const std::string& text, int64_t& value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != text.npos) return false;
  value = std::strtoll(text.c_str(), nullptr, 10);
  return true;
}

// "1,2,3", with a separator of its own.
bool parse_integers(const std::string& text, char separator, std::vector<int64_t>& values) {
  for (const std::string& word : split(text, separator)) {
    int64_t value = 0;
    if (!parse_integer(word, value)) return false;
    values.push_back(value);
  }
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
  if (!parse_integers(text, '|', range.values))
    return usage_error("'" + text + "' is no list of whole numbers such as 1|4|8");
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

// Joins a pair whose names are each on their side of no other one.
Result add_pair(const char* flag, std::pair<std::string, std::string> pair,
                std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [first, second] : pairs)
    if (first == pair.first || second == pair.second)
      return usage_error(std::string(flag) + ": '" + (first == pair.first ? first : second) +
                         "' is given twice");
  pairs.push_back(std::move(pair));
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

Result parse_dim(const std::string& word, driver::CompileOptions& options) {
  onnx::ImportOptions& import = options.import;
  auto pair = split_pair(word);
  if (!pair)
    return usage_error(
        "--dim wants NAME=VALUE, NAME=1..8, NAME=32..512:32, NAME=1|4|8 or NAME=OTHER, found '" + word + "'");
  const auto& [name, text] = *pair;
  if (import.dims.count(name) || import.ranges.count(name) || import.dim_names.count(name))
    return usage_error("--dim " + word + ": dim '" + name + "' is given twice");
  if (driver::is_dim_name(text)) {
    import.dim_names[name] = text;
    return {};
  }
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

Result parse_bounds(const std::string& word, driver::CompileOptions& options) {
  size_t at = word.rfind('=');
  if (at == word.npos || at == 0) return usage_error("--max wants NAME=NUMBER, found '" + word + "'");
  std::vector<int64_t> each;
  if (!parse_integers(word.substr(at + 1), ',', each) ||
      *std::max_element(each.begin(), each.end()) > int64_t{1} << 31)
    return usage_error("--max " + word + ": '" + word.substr(at + 1) +
                       "' is no list of whole numbers such as 8,1,64");
  if (!options.import.bounds.emplace(word.substr(0, at), std::move(each)).second)
    return usage_error("--max " + word + ": '" + word.substr(0, at) + "' is given twice");
  return {};
}

Result parse_specialization(const std::string& word, driver::CompileOptions& options) {
  std::map<std::string, int64_t> values;
  for (const std::string& each : split(word, ','))
    if (Result parsed = parse_dim_value("--hot", each, values); !parsed) return parsed;
  if (std::find(options.specializations.begin(), options.specializations.end(), values) !=
      options.specializations.end())
    return usage_error("--hot " + word + ": these values are given twice");
  options.specializations.push_back(std::move(values));
  return {};
}

Result parse_constant(const std::string& word, driver::CompileOptions& options) {
  onnx::ImportOptions& import = options.import;
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

Result parse_length(const std::string& word, driver::CompileOptions& options) {
  onnx::ImportOptions& import = options.import;
  auto pair = split_pair(word);
  int64_t length = onnx::kAbsent;
  if (!pair || (pair->second != "none" && !parse_integer(pair->second, length)))
    return usage_error("--length wants NAME=NUMBER or NAME=none, found '" + word + "'");
  if (!import.lengths.emplace(pair->first, length).second)
    return usage_error("--length " + word + ": input '" + pair->first + "' is given twice");
  return {};
}

Result parse_custom(const std::string& word, driver::CompileOptions& options) {
  onnx::ImportOptions& import = options.import;
  auto pair = split_pair(word);
  size_t colon = pair ? pair->first.find(':') : std::string::npos;
  if (!pair || colon == std::string::npos || colon == 0 || colon + 1 == pair->first.size())
    return usage_error("--custom-op wants DOMAIN:NAME=SYMBOL or DOMAIN:NAME=SYMBOL:BYTES, found '" + word +
                       "'");
  onnx::CustomOperator custom{pair->first, pair->second.substr(0, pair->second.find(':'))};
  if (!is_c_identifier(custom.symbol))
    return usage_error("--custom-op " + word + ": '" + custom.symbol + "' is no name of a C function");
  if (custom.symbol.size() < pair->second.size()) {
    auto bytes = driver::parse_size(pair->second.substr(custom.symbol.size() + 1));
    if (!bytes || *bytes > kMaxCustomWorkspace)
      return usage_error("--custom-op " + word + ": the workspace is no size such as 64K, up to 1T");
    custom.workspace = *bytes;
  }
  if (!import.custom.emplace(pair->first, custom).second)
    return usage_error("--custom-op " + word + ": " + pair->first + " is given twice");
  return {};
}

Result parse_shape(const std::string& word, driver::CompileOptions& options) {
  onnx::ImportOptions& import = options.import;
  auto pair = split_pair(word);
  if (!pair) return usage_error("--shape wants NAME=EXTENTxEXTENT..., found '" + word + "'");
  const auto& [name, text] = *pair;
  if (import.shapes.count(name) || import.named_shapes.count(name))
    return usage_error("--shape " + word + ": the shape of '" + name + "' is given twice");
  std::vector<int64_t> extents;
  if (parse_integers(text, 'x', extents)) {
    import.shapes[name] = extents;
    return {};
  }
  std::vector<std::string> words = split(text, 'x');
  for (const std::string& each : words)
    if (int64_t extent = 0; !parse_integer(each, extent) && !is_c_identifier(each))
      return usage_error("--shape " + word + ": '" + text +
                         "' is no shape such as 1x3x224x224, or nx3x224x224 with names for dims");
  import.named_shapes[name] = std::move(words);
  return {};
}

Result parse_value(const std::string& word, driver::CompileOptions& options) {
  auto pair = split_pair(word);
  if (!pair || !options.import.values.insert(*pair).second)
    return usage_error("--value wants NAME=TYPE, each name once, found '" + word + "'");
  return {};
}

Result parse_state(const std::string& word, driver::CompileOptions& options) {
  auto pair = split_pair(word);
  if (!pair) return usage_error("--state wants PAST=PRESENT, found '" + word + "'");
  return add_pair("--state", std::move(*pair), options.import.states);
}

Result parse_name(const std::string& word, driver::CompileOptions& options) {
  auto pair = split_pair(word);
  if (!pair) return usage_error("--name wants NEW=OLD, found '" + word + "'");
  return add_pair("--name", std::move(*pair), options.renames);
}

} // namespace firn::tool
