// Writes the manifest with a small printer that places commas and indentation.
#include "compiler/artifact/manifest.h"

#include "compiler/artifact/interface.h"
#include "compiler/artifact/text_template.h"
#include "compiler/artifact/training_step.h"
#include "compiler/support/utf8.h"
#include "include/firn/abi.h"
#include "include/firn/cpu_features.h"

#include <array>
#include <cstdio>

namespace firn::artifact {
namespace {

class JsonPrinter {
public:
  void open(char bracket, std::string_view key = {}) {
    begin(key);
    text_ += bracket;
    ++depth_;
    is_first_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!is_first_) new_line();
    text_ += bracket;
    is_first_ = false;
  }
  void value(std::string_view key, int64_t number) { raw(key, std::to_string(number)); }
  void value(std::string_view key, std::string_view string) { raw(key, json_string(string)); }
  void raw(std::string_view key, const std::string& text) {
    begin(key);
    text_ += text;
    is_first_ = false;
  }
  // A list of objects, whose fields `print` gives.
  template <class Items, class Print> void objects(std::string_view key, const Items& items, Print print) {
    open('[', key);
    for (const auto& item : items) {
      open('{');
      print(item);
      close('}');
    }
    close(']');
  }
  std::string take() { return std::move(text_) + "\n"; }

private:
  void begin(std::string_view key) {
    if (depth_ > 0) {
      if (!is_first_) text_ += ",";
      new_line();
    }
    if (!key.empty()) text_ += json_string(key) + ": ";
  }
  void new_line() { text_ += "\n" + std::string(2 * depth_, ' '); }

  std::string text_;
  size_t depth_ = 0;
  bool is_first_ = true;
};

std::string inline_list(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

// Numbers, and expressions as strings.
std::string dim_list(const TensorDescription& tensor) {
  std::string text = "[";
  for (const IntExpr& dim : tensor.dims)
    text += (text == "[" ? "" : ", ") + (dim.is_constant() ? dim.to_string() : json_string(dim.to_string()));
  return text + "]";
}

void print_dims(JsonPrinter& json, const ModelDescription& model) {
  if (model.dims.empty()) return;
  json.objects("dims", model.dims, [&](const DimDescription& dim) {
    json.value("name", std::string_view(dim.name));
    json.value("symbol", std::string_view(dim.symbol->name));
    json.value("identifier", std::string_view(dim.identifier));
    json.value("lower", dim.symbol->lower);
    json.value("upper", dim.symbol->upper);
    json.value("multiple", dim.multiple);
    if (!dim.allowed.empty()) json.raw("allowed", inline_list(dim.allowed));
  });
}

void print_tensors(JsonPrinter& json, std::string_view key, const std::vector<TensorDescription>& tensors) {
  json.objects(key, tensors, [&](const TensorDescription& tensor) {
    json.value("name", std::string_view(tensor.name));
    json.value("identifier", std::string_view(tensor.identifier));
    json.value("dtype", dtype_name(tensor.dtype));
    json.raw("dims", dim_list(tensor));
    if (!tensor.counted_dims.empty()) {
      std::vector<int64_t> axes;
      for (const CountedDim& counted : tensor.counted_dims)
        axes.push_back(static_cast<int64_t>(counted.axis));
      json.raw("counted_dims", inline_list(axes));
    }
    json.value("bytes", tensor.byte_size());
    json.raw(tensor.is_parameter ? "parameter_offset" : "arena_offset",
             tensor.arena_offset ? std::to_string(*tensor.arena_offset) : "null");
  });
}

std::vector<std::string_view> feature_names(int32_t architecture, uint64_t features) {
  std::vector<std::string_view> names;
#define FIRN_ADD_NAME(number, name, llvm, ...)                                                               \
  if ((features >> number & 1) != 0) names.push_back(llvm);
  if (architecture == FIRN_ARCH_X86_64) {
    FIRN_X86_64_FEATURES(FIRN_ADD_NAME)
  } else if (architecture == FIRN_ARCH_AARCH64) {
    FIRN_AARCH64_FEATURES(FIRN_ADD_NAME)
  } else if (architecture == FIRN_ARCH_ARM) {
    FIRN_ARM_FEATURES(FIRN_ADD_NAME)
  }
#undef FIRN_ADD_NAME
  return names;
}

void print_features(JsonPrinter& json, int32_t architecture, uint64_t features) {
  json.open('[', "required_features");
  for (std::string_view name : feature_names(architecture, features)) json.value({}, name);
  json.close(']');
}

void print_target(JsonPrinter& json, const ModelDescription& model) {
  json.open('{', "target");
  json.value("triple", std::string_view(model.triple));
  json.value("cpu", std::string_view(model.cpu));
  print_features(json, model.architecture, model.required_features);
  if (!model.cpus.empty())
    json.objects("cpus", model.cpus, [&](const CpuDescription& cpu) {
      json.value("cpu", std::string_view(cpu.name));
      print_features(json, model.architecture, cpu.required_features);
      json.value("own_weight_bytes", cpu.own_weight_bytes);
    });
  json.close('}');
}

void print_sizes(JsonPrinter& json, const ModelDescription& model) {
  json.open('{', "sizes");
  if (!model.specializations.empty())
    json.objects("hot", model.specializations, [&](const SpecializationDescription& specializations) {
      json.value("values", std::string_view(specializations.name));
      json.value("code_bytes", specializations.code_bytes);
      json.value("own_weight_bytes", specializations.own_weight_bytes);
    });
  json.value("arena_bytes", model.arena_bytes);
  json.value("arena_alignment", model.arena_alignment);
  json.value("arena_lower_bound", model.arena_lower_bound);
  if (model.parameter_bytes > 0) json.value("parameter_bytes", model.parameter_bytes);
  if (model.tape_bytes) json.value("tape_bytes", *model.tape_bytes);
  json.value("weight_bytes", model.weight_bytes);
  if (model.weights_hash) json.value("weights_hash", hex_text(*model.weights_hash));
  if (model.raw_weight_bytes) {
    json.value("raw_weight_bytes", *model.raw_weight_bytes);
    json.value("prepared_weight_bytes", model.prepared_weight_bytes());
  }
  json.value("code_bytes", model.code_bytes);
  json.value("object_bytes", model.object_bytes);
  json.value("stack_bytes", model.stack_bytes);
  json.value("parameters", model.parameters);
  json.value("flops", model.flops);
  json.close('}');
}

// The layout of the weights that prepare() is given, and which of them may change.
void print_raw_weights(JsonPrinter& json, const ModelDescription& model) {
  if (!model.raw_weight_bytes) return;
  json.objects("raw_weights", model.raw_weights, [&](const RawWeights& tensor) {
    json.value("name", std::string_view(tensor.name));
    json.value("type", std::string_view(tensor.type));
    json.value("offset", tensor.offset);
    json.value("bytes", tensor.bytes);
    json.raw("may_change", tensor.may_change ? "true" : "false");
  });
}

void print_kernels(JsonPrinter& json, const ModelDescription& model) {
  json.objects("kernels", model.kernels, [&](const KernelDescription& kernel) {
    json.value("name", std::string_view(kernel.name));
    json.value("calls", kernel.calls);
    json.value("flops", kernel.flops);
    json.value("bytes", kernel.bytes);
    json.value("code_bytes", kernel.code_bytes);
  });
}

// The functions beside @main, with classes of their own.
void print_entries(JsonPrinter& json, const ModelDescription& model) {
  if (model.entries.empty()) return;
  json.objects("entries", model.entries, [&](const ModelDescription& entry) {
    json.value("name", std::string_view(entry.entry));
    json.value("class", std::string_view(entry.class_name));
    json.value("run_symbol", symbol_names(entry).run);
    print_dims(json, entry);
    print_tensors(json, "inputs", entry.inputs);
    print_tensors(json, "outputs", entry.outputs);
    print_tensors(json, "states", entry.states);
    json.value("flops", entry.flops);
    print_kernels(json, entry);
  });
}

// The class over the functions of a training step.
void print_trainer(JsonPrinter& json, const ModelDescription& model) {
  if (!has_trainer(model)) return;
  const ModelDescription trainer = trainer_of(model);
  json.open('{', "trainer");
  json.value("class", std::string_view(trainer.class_name));
  json.value("arena_bytes", trainer.arena_bytes);
  json.value("arena_lower_bound", trainer.arena_lower_bound);
  json.value("moment_bytes", moment_bytes(trainer));
  if (trainer.tape_bytes) json.value("tape_bytes", *trainer.tape_bytes);
  json.value("saved_bytes", saved_tensors(parameter_tensors(model)).bytes);
  json.value("saved_state_bytes", saved_tensors(arena_states(trainer)).bytes);
  json.objects("functions", trainer.functions, [&](const TrainingFunction& function) {
    json.value("name", std::string_view(function.name));
    json.value("run_symbol", std::string_view(function.run_symbol));
    json.value("flops", function.flops);
  });
  json.close('}');
}

} // namespace

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t from = at;
    const char c = text[at];
    const auto character = decode_utf8(text, at);
    const bool is_surrogate = character && *character >= 0xd800 && *character < 0xe000;
    if (!character || is_surrogate) {
      result += "\\ufffd";
      at = from + 1;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      result += escape.data();
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += text.substr(from, at - from);
    }
  }
  return result + "\"";
}

std::string write_manifest(const ModelDescription& model) {
  const SymbolNames symbols = symbol_names(model);
  JsonPrinter json;
  json.open('{');
  json.value("firn_version", std::string_view(model.firn_version));
  json.value("abi", int64_t{FIRN_ABI});
  json.value("model", std::string_view(model.model_name));
  json.value("source", base_name(model.source_file));
  json.value("sha256", std::string_view(model.source_sha256));
  json.value("class", std::string_view(model.class_name));
  json.value("hash", symbols.hash);
  json.value("run_symbol", symbols.run);
  json.value("weights_symbol", symbols.weights);
  if (!symbols.prepare.empty()) json.value("prepare_symbol", symbols.prepare);
  print_target(json, model);
  json.open('[', "flags");
  for (const std::string& flag : model.flags) json.value({}, flag);
  json.close(']');
  print_dims(json, model);
  print_tensors(json, "inputs", model.inputs);
  print_tensors(json, "outputs", model.outputs);
  print_tensors(json, "states", model.states);
  print_sizes(json, model);
  print_raw_weights(json, model);
  print_kernels(json, model);
  print_entries(json, model);
  print_trainer(json, model);
  json.close('}');
  return json.take();
}

} // namespace firn::artifact
