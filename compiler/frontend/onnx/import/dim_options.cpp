// Looks up options of dims, and parses expressions of their names.
#include "compiler/frontend/onnx/import/dim_options.h"

#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"

#include <cctype>
#include <set>

namespace firn::onnx {
namespace {

// The option for a name of the model, or for the word that stands for it in messages.
template <class Value>
const Value* find_option(const std::map<std::string, Value>& options, const std::string& name) {
  auto found = options.find(name);
  if (found == options.end()) found = options.find(ImportState::word_of(name));
  return found == options.end() ? nullptr : &found->second;
}

// Whether the character can be in a name of an expression such as "past + seq".
bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

using ExtentOf = std::function<std::optional<IntExpr>(const std::string&)>;

// Recursive descent over sums of products of names, numbers and brackets. Gives nothing for text that does
// not parse.
class Joined {
public:
  Joined(const std::string& text, const ExtentOf& extent_of) : text_(text), extent_of_(extent_of) {}

  std::optional<IntExpr> parse() {
    auto value = sum(0);
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

private:
  // Limits on what names of a hostile model may say: nested brackets, numbers and coefficients, factors of a
  // term, characters of a name.
  static constexpr int kMaxDepth = 16;
  static constexpr int64_t kMaxNumber = 1 << 20;
  static constexpr size_t kMaxFactors = 3, kMaxName = 200;

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static bool is_small(const IntExpr& value) {
    if (!is_safe_dim(value) || value.constant_part() > kMaxNumber || value.constant_part() < -kMaxNumber)
      return false;
    for (const IntExpr::Term& term : value.terms())
      if (term.coefficient > kMaxNumber || term.coefficient < -kMaxNumber || term.atoms.size() > kMaxFactors)
        return false;
    return true;
  }
  static std::optional<IntExpr> checked(const IntExpr& value) {
    return is_small(value) ? std::optional(value) : std::nullopt;
  }

  std::optional<IntExpr> sum(int depth) {
    auto value = product(depth);
    while (value) {
      bool plus = accept('+');
      if (!plus && !accept('-')) break;
      auto next = product(depth);
      if (!next) return std::nullopt;
      value = checked(plus ? *value + *next : *value - *next);
    }
    return value;
  }

  std::optional<IntExpr> product(int depth) {
    auto value = factor(depth);
    while (value && accept('*')) {
      auto next = factor(depth);
      if (!next) return std::nullopt;
      value = checked(*value * *next);
    }
    return value;
  }

  std::optional<IntExpr> factor(int depth) {
    if (accept('(')) {
      if (depth == kMaxDepth) return std::nullopt;
      auto value = sum(depth + 1);
      return accept(')') ? value : std::nullopt;
    }
    std::string word;
    for (skip_blanks(); at_ < text_.size() && is_letter(text_[at_]); ++at_) word += text_[at_];
    if (word.empty() || word.size() > kMaxName) return std::nullopt;
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) {
      auto extent = extent_of_(word);
      return extent ? checked(*extent) : std::nullopt;
    }
    if (word.size() > 7 || word.find_first_not_of("0123456789") != word.npos) return std::nullopt;
    return checked(IntExpr(std::stoll(word)));
  }

  const std::string& text_;
  const ExtentOf& extent_of_;
  size_t at_ = 0;
};

// Names of dims replaced as the options say, also within expressions of names.
class DimNames {
public:
  explicit DimNames(const std::map<std::string, std::string>& names) : names_(names) {}

  // Replacements are followed from name to name; a cycle ends at the name where it began.
  std::string renamed(const std::string& name) { return renamed(name, names_.size()); }
  const std::set<std::string>& found() const { return found_; }

private:
  static constexpr size_t kMaxText = 1000; // limits the growth of nested replacements

  std::string renamed(const std::string& name, size_t steps) {
    const std::string* next = steps > 0 ? find_option(names_, name) : nullptr;
    if (!next) return steps > 0 ? with_parts_renamed(name, steps) : name;
    found_.insert(names_.count(name) ? name : ImportState::word_of(name));
    return renamed(*next, steps - 1);
  }

  std::string with_parts_renamed(const std::string& name, size_t steps) {
    std::string text;
    for (size_t at = 0; at < name.size() && text.size() < kMaxText;) {
      size_t end = at;
      while (end < name.size() && is_letter(name[end])) ++end;
      std::string word = name.substr(at, std::max<size_t>(end - at, 1));
      bool is_renamed = word.size() < name.size() && names_.count(word);
      text += is_renamed ? "(" + renamed(word, steps) + ")" : word;
      at += word.size();
    }
    return text.size() < kMaxText ? text : name;
  }

  const std::map<std::string, std::string>& names_;
  std::set<std::string> found_;
};

// Whether the word is a number that int64_t holds: one of 18 digits at most.
bool is_number(const std::string& word) {
  return !word.empty() && word.size() <= 18 && word.find_first_not_of("0123456789") == word.npos;
}

// Takes the shape `words`, given for an input, into `names`: the model's name of each dim is to be replaced
// by the given word in all inputs. A number of the model must be given as it is.
Result name_shape(wire::ValueInfoProto& input, const std::vector<std::string>& words,
                  std::map<std::string, std::string>& names) {
  std::string label = "graph input '" + input.name() + "'";
  if (!input.type().has_tensor_type()) return usage_error("--shape: " + label + " is no tensor");
  auto& tensor = *input.mutable_type()->mutable_tensor_type();
  if (!tensor.has_shape())
    for (size_t i = 0; i < words.size(); ++i) tensor.mutable_shape()->add_dim();
  if (tensor.shape().dim_size() != static_cast<int>(words.size()))
    return usage_error(label + " has rank " + std::to_string(tensor.shape().dim_size()) +
                       ", the shape given has " + std::to_string(words.size()));
  for (size_t i = 0; i < words.size(); ++i) {
    const auto& dim = tensor.shape().dim(static_cast<int>(i));
    std::string own = dim.has_dim_value()
                          ? std::to_string(dim.dim_value())
                          : DimOptions::name_of(input.name(), static_cast<int>(i), dim.dim_param());
    bool fits = dim.has_dim_value()
                    ? own == words[i]
                    : own == words[i] || names.emplace(own, words[i]).first->second == words[i];
    if (!fits)
      return usage_error(label + ": dim " + std::to_string(i) + " cannot be " + words[i] +
                         ", the model or another option says otherwise");
  }
  return {};
}

} // namespace

Result rename_dims(wire::GraphProto& graph, const ImportOptions& options) {
  std::map<std::string, std::string> all = options.dim_names;
  for (wire::ValueInfoProto& input : *graph.mutable_input())
    if (auto given = options.named_shapes.find(input.name()); given != options.named_shapes.end())
      if (Result named = name_shape(input, given->second, all); !named) return named;
  DimNames names(all);
  for (wire::ValueInfoProto& input : *graph.mutable_input()) {
    if (!input.type().tensor_type().has_shape()) continue;
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (shape.dim(i).has_dim_value()) continue;
      std::string name = DimOptions::name_of(input.name(), i, shape.dim(i).dim_param());
      std::string renamed = names.renamed(name);
      if (renamed == name) continue;
      if (is_number(renamed))
        shape.mutable_dim(i)->set_dim_value(std::stoll(renamed));
      else
        shape.mutable_dim(i)->set_dim_param(renamed);
    }
  }
  for (const auto& [name, value] : options.dim_names)
    if (!names.found().count(name))
      return usage_error("--dim " + name + "=" + value + ": the model has no symbolic dim '" + name + "'");
  return {};
}

const int64_t* DimOptions::number(const std::string& name) const {
  return find_option(numbers_, name);
}

const DimRange* DimOptions::range(const std::string& name) const {
  return find_option(options_.ranges, name);
}

bool DimOptions::bind(const std::string& name, int64_t value) {
  return numbers_.emplace(name, value).first->second == value;
}

std::optional<std::vector<std::string>> DimOptions::parts(const std::string& name) const {
  if (is_known(name)) return std::nullopt;
  return joined_names(name, [&](const std::string& part) { return is_known(part); });
}

std::optional<std::vector<std::string>>
joined_names(const std::string& name, const std::function<bool(const std::string&)>& is_known) {
  std::vector<std::string> names;
  auto joined = joined_dim(name, [&](const std::string& part) -> std::optional<IntExpr> {
    names.push_back(part);
    return is_known(part) ? std::optional(IntExpr(1)) : std::nullopt; // any extent: only names are asked for
  });
  return joined && !names.empty() ? std::optional(std::move(names)) : std::nullopt;
}

std::optional<IntExpr> joined_dim(const std::string& name, const ExtentOf& extent_of) {
  return Joined(name, extent_of).parse();
}

} // namespace firn::onnx
