// Identifier making; the rules are in identifiers.h.
#include "compiler/artifact/identifiers.h"

#include "compiler/artifact/reserved_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace firn::artifact {
namespace {

// Members of the generated class and functions of the C part.
constexpr std::array members = std::to_array<std::string_view>({
    "Arena",
    "Facts",
    "Inputs",
    "Outputs",
    "Weights",
    "arena_alignment",
    "arena_bytes",
    "bind_input",
    "bind_output",
    "embedded",
    "flops",
    "info",
    "init",
    "init_for",
    "input_count",
    "input_data",
    "instance_",
    "model_sha256",
    "output_count",
    "output_data",
    "prepare",
    "reset",
    "run",
    "run_with",
    "raw_weight_bytes",
    "tape_bytes",
    "stack_bytes",
    "status",
    "weight_bytes",
    "weights_hash",
    "prepared_weight_bytes",
});

// Further members of models with dims that vary; the setters of single dims are not among them.
constexpr std::array dim_members = std::to_array<std::string_view>({
    "Dims",
    "dim_count",
    "dim_table",
    "dims",
    "get_dims",
    "input_extent",
    "output_extent",
    "refusal",
    "set_dim",
    "set_dims",
});

// Further members of models with a training step, of its class and of its parameters.
constexpr std::array training_members = std::to_array<std::string_view>({
    "Parameters",
    "Trainer",
    "load",
    "load_state",
    "moment_bytes",
    "parameter_bytes",
    "save",
    "save_state",
    "saved_bytes",
    "saved_state_bytes",
});

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// A tensor called arena is renamed: its macro would be PREFIX_ARENA_BYTES, which the model itself has.
bool is_member(std::string_view name) {
  return std::find(members.begin(), members.end(), name) != members.end() || lower_case(name) == "arena";
}

// Letters, digits and single underscores, a letter first.
bool is_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (char c : text) {
    if (!is_letter(c) && !is_digit(c) && c != '_') return false;
  }
  return text.find("__") == std::string_view::npos;
}

// `name` with what an identifier cannot hold replaced; `role` ("input") stands in for missing letters.
std::string cleaned(std::string_view name, std::string_view role) {
  constexpr size_t longest = 128;
  std::string result;
  for (char c : name) {
    const char kept = is_letter(c) || is_digit(c) ? c : '_';
    if (kept == '_' && (result.empty() || result.back() == '_')) continue;
    result += kept;
    if (result.size() == longest) break;
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty()) return std::string(role);
  return is_digit(result[0]) ? std::string(role) + "_" + result : result;
}

// Identifiers in use, in lower case, with the functions that they imply.
class TakenNames {
public:
  void take_function(const std::string& name) { names_.insert(lower_case(name)); }
  bool has(std::string_view name) const { return names_.count(lower_case(name)); }
  bool is_free(const std::string& identifier, const TensorDescription& tensor) const {
    if (is_member(identifier)) return false;
    for (const std::string& name : implied(identifier, tensor))
      if (names_.count(name)) return false;
    return true;
  }
  void take(const std::string& identifier, const TensorDescription& tensor) {
    for (std::string& name : implied(identifier, tensor)) names_.insert(std::move(name));
  }

private:
  static std::vector<std::string> implied(const std::string& identifier, const TensorDescription& tensor) {
    const std::string name = lower_case(identifier);
    std::vector<std::string> names = {name, "bind_" + name};
    for (const CountedDim& counted : tensor.counted_dims)
      names.push_back(name + "_dim" + std::to_string(counted.axis));
    for (size_t axis = 0; axis < tensor.dims.size(); ++axis)
      if (!tensor.dims[axis].is_constant()) names.push_back(name + "_dim" + std::to_string(axis));
    return names;
  }

  std::set<std::string> names_;
};

std::string unique_identifier(const TensorDescription& tensor, std::string_view role,
                              std::string_view class_word, const TakenNames& taken) {
  const std::string base = cleaned(tensor.name, role);
  const auto is_reserved = [&](const std::string& name) {
    return is_reserved_name(name) || is_member(name) || name == class_word;
  };
  for (int number = 1;; ++number) {
    std::string candidate = number == 1 ? base : base + "_" + std::to_string(number);
    if (is_reserved(candidate)) candidate += "_";
    if (taken.is_free(candidate, tensor)) return candidate;
  }
}

std::string_view last_component(std::string_view class_name) {
  const size_t at = class_name.rfind("::");
  return at == std::string_view::npos ? class_name : class_name.substr(at + 2);
}

using Renames = std::vector<std::pair<std::string, std::string>>;

bool is_tensor(const ModelDescription& model, const std::string& name) {
  for (const auto* tensors : {&model.inputs, &model.outputs, &model.states})
    for (const TensorDescription& tensor : *tensors)
      if (tensor.name == name) return true;
  return false;
}

// The dim that a rename speaks of: of a name that a tensor has too it is that one's.
DimDescription* renamed_dim(ModelDescription& model, const std::string& old_name) {
  if (is_tensor(model, old_name)) return nullptr;
  for (DimDescription& dim : model.dims)
    if (dim.name == old_name) return &dim;
  return nullptr;
}

Diagnostic unusable_name(const std::string& new_name, const std::string& old_name, const std::string& why) {
  return usage_error("name '" + new_name + "=" + old_name + "': '" + new_name + "' " + why);
}

// Whether C++ takes the new name at all.
Result check_new_name(const std::string& new_name, const std::string& old_name, std::string_view class_word) {
  if (is_identifier(new_name) && is_reserved_name(new_name))
    return unusable_name(new_name, old_name,
                         "is a keyword, a macro, or written like one; lower-case words are safe");
  if (!is_identifier(new_name) || new_name == class_word)
    return unusable_name(new_name, old_name, "is not usable as a C++ name");
  return {};
}

Result rename_dims(ModelDescription& model, const Renames& renames, std::string_view class_word,
                   std::set<std::string>& used) {
  for (const auto& [new_name, old_name] : renames) {
    DimDescription* dim = renamed_dim(model, old_name);
    if (!dim) continue;
    if (Result usable = check_new_name(new_name, old_name, class_word); !usable) return usable;
    if (!used.insert(lower_case(new_name)).second)
      return unusable_name(new_name, old_name, "is already taken");
    dim->identifier = new_name;
  }
  return {};
}

// Names of the members of Dims, and of functions that set them.
Result assign_dim_identifiers(ModelDescription& model, const Renames& renames, std::string_view class_word,
                              TakenNames& taken) {
  if (model.dims.empty()) return {};
  for (std::string_view name : dim_members) taken.take_function(std::string(name));
  std::set<std::string> used = {"dim", "dims"}; // set_dim(), set_dims()
  for (DimDescription& dim : model.dims) dim.identifier.clear();
  if (Result renamed = rename_dims(model, renames, class_word, used); !renamed) return renamed;
  for (DimDescription& dim : model.dims) {
    const std::string base = dim.identifier.empty() ? cleaned(dim.name, "dim") : "";
    for (int number = 1; !base.empty(); ++number) {
      dim.identifier = number == 1 ? base : base + "_" + std::to_string(number);
      if (is_reserved_name(dim.identifier)) dim.identifier += "_";
      if (used.insert(lower_case(dim.identifier)).second) break;
    }
    taken.take_function("set_" + dim.identifier);
  }
  if (taken.has(class_word))
    return usage_error("class name '" + model.class_name + "': '" + std::string(class_word) +
                       "' is a member of classes of models with dims that vary");
  return {};
}

// Functions of a training step get names that no member has.
void take_training_members(ModelDescription& model, TakenNames& taken) {
  for (std::string_view name : training_members) taken.take_function(std::string(name));
  for (TrainingFunction& function : model.functions) {
    function.name = cleaned(function.name, "function");
    while (is_reserved_name(function.name) || is_member(function.name) || taken.has(function.name))
      function.name += "_";
    for (const char* suffix : {"", "_flops", "_with"}) taken.take_function(function.name + suffix);
    taken.take_function("run_" + function.name);
  }
}

} // namespace

Result assign_identifiers(ModelDescription& model,
                          const std::vector<std::pair<std::string, std::string>>& renames) {
  struct Group {
    std::vector<TensorDescription>& tensors;
    std::string_view role;
  };
  const Group groups[] = {{model.inputs, "input"}, {model.outputs, "output"}, {model.states, "state"}};
  const std::string_view class_word = last_component(model.class_name);
  TakenNames taken;
  if (model.parameter_bytes > 0) take_training_members(model, taken);
  if (Result assigned = assign_dim_identifiers(model, renames, class_word, taken); !assigned) return assigned;
  for (const Group& group : groups) {
    for (TensorDescription& tensor : group.tensors) tensor.identifier.clear();
  }
  for (const auto& [new_name, old_name] : renames) {
    if (renamed_dim(model, old_name)) continue;
    TensorDescription* found = nullptr;
    for (const Group& group : groups) {
      for (TensorDescription& tensor : group.tensors) {
        if (!found && tensor.name == old_name && tensor.identifier.empty()) found = &tensor;
      }
    }
    if (!found)
      return usage_error("name '" + new_name + "=" + old_name +
                         "': the model has no input, output, state or dim that varies '" + old_name +
                         "' left to rename");
    if (Result usable = check_new_name(new_name, old_name, class_word); !usable) return usable;
    if (!taken.is_free(new_name, *found)) return unusable_name(new_name, old_name, "is already taken");
    found->identifier = new_name;
    taken.take(new_name, *found);
  }
  for (const Group& group : groups) {
    for (TensorDescription& tensor : group.tensors) {
      if (!tensor.identifier.empty()) continue;
      tensor.identifier = unique_identifier(tensor, group.role, class_word, taken);
      taken.take(tensor.identifier, tensor);
    }
  }
  return {};
}

Result check_class_name(std::string_view class_name) {
  std::string_view rest = class_name;
  while (true) {
    const size_t at = rest.find("::");
    const std::string_view word = rest.substr(0, at);
    const bool is_class = at == std::string_view::npos;
    if (!is_identifier(word) || is_reserved_class_word(word) || (is_class && is_member(word)))
      return usage_error("class name '" + std::string(class_name) + "': '" + std::string(word) +
                         "' is not usable as a C++ name");
    if (is_class) return {};
    rest = rest.substr(at + 2);
  }
}

std::string default_class_name(std::string_view source_file) {
  const size_t slash = source_file.find_last_of("/\\");
  std::string_view stem = slash == std::string_view::npos ? source_file : source_file.substr(slash + 1);
  stem = stem.substr(0, stem.rfind('.'));
  std::string result;
  bool starts_word = true;
  for (char c : stem) {
    if (!is_letter(c) && !is_digit(c)) {
      starts_word = true;
      continue;
    }
    result += starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts_word = false;
  }
  if (result.empty() || is_digit(result[0])) result = "Model" + result;
  return check_class_name(result) && !is_reserved_name(result) ? result : result + "Model";
}

std::string symbol_prefix(std::string_view class_name) {
  std::string result;
  for (size_t i = 0; i < class_name.size(); ++i) {
    const char c = class_name[i];
    if (c == ':') {
      if (result.back() != '_') result += '_';
      continue;
    }
    const bool is_upper = c >= 'A' && c <= 'Z';
    const char next = i + 1 < class_name.size() ? class_name[i + 1] : '\0';
    const char last = i > 0 ? class_name[i - 1] : ':';
    const bool after_word = (last >= 'a' && last <= 'z') || is_digit(last);
    const bool starts_word = last >= 'A' && last <= 'Z' && next >= 'a' && next <= 'z';
    if (is_upper && !result.empty() && result.back() != '_' && (after_word || starts_word)) result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return is_reserved_prefix(result) ? result + "_model" : result;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

} // namespace firn::artifact
