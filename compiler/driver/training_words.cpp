// See training_words.h.
#include "compiler/driver/training_words.h"

#include "compiler/driver/read_graph.h"
#include "compiler/support/words.h"
#include "compiler/training/functions.h"

#include <cmath>
#include <cstdlib>
#include <set>

namespace firn::driver {
namespace {

constexpr std::string_view kOutput = "output:", kFreezeNorms = "freeze_norms";

Expected<double> number_of(const std::string& option, const std::string& key, const std::string& text) {
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return usage_error(option + ": " + key + "='" + text + "' is no number");
  return number;
}

Result read_functions(const std::string& path, training::TrainingOptions& options) {
  auto text = read_text(path);
  if (!text) return text.error();
  auto module = training::parse_functions(path, *text);
  if (!module) return module.error();
  options.functions = std::move(*module);
  return {};
}

Result read_class_weights(const std::string& text, training::TrainingOptions& options) {
  for (const std::string& word : split(text, ':')) {
    auto weight = number_of("--train", "class_weights", word);
    if (!weight) return weight.error();
    options.class_weights.push_back(*weight);
  }
  return {};
}

Result read_labels(const std::string& text, training::TrainingOptions& options) {
  if (text != "classes" && text != "probabilities")
    return usage_error("--train: labels='" + text + "', wants classes or probabilities");
  options.probabilities = text == "probabilities";
  return {};
}

Expected<int64_t> whole_number_of(const std::string& option, const std::string& key, const std::string& text,
                                  int64_t min) {
  constexpr double kLargest = 0x1p31;
  auto number = number_of(option, key, text);
  if (!number) return number.error();
  if (*number >= static_cast<double>(min) && *number <= kLargest && *number == std::floor(*number))
    return static_cast<int64_t>(*number);
  return usage_error(option + ": " + key + "='" + text + "', wants a whole number from " +
                     std::to_string(min) + " on");
}

Result read_seed(const std::string& text, training::TrainingOptions& options) {
  auto seed = whole_number_of("--train", "seed", text, 0);
  if (!seed) return seed.error();
  options.seed = *seed;
  return {};
}

Result read_dropout(const std::string& text, training::TrainingOptions& options) {
  if (text != "on" && text != "off") return usage_error("--train: dropout='" + text + "', wants on or off");
  options.drop = text == "on";
  return {};
}

Result read_number(const std::string& key, const std::string& text, training::TrainingOptions& options) {
  auto number = number_of("--train", key, text);
  if (!number) return number.error();
  if (key == "clip_norm")
    options.clip_norm = *number;
  else
    options.numbers[key] = *number;
  return {};
}

Result read_option(const std::string& key, const std::string& value, training::TrainingOptions& options) {
  if (key == "functions") return read_functions(value, options);
  if (key == "class_weights") return read_class_weights(value, options);
  if (key == "labels") return read_labels(value, options);
  if (key == "seed") return read_seed(value, options);
  if (key == "dropout") return read_dropout(value, options);
  if (key == "loss" && value.starts_with(kOutput))
    options.loss_output = value.substr(kOutput.size());
  else if (key == "loss")
    options.loss = value;
  else if (key == "optimizer")
    options.optimizer = value;
  else if (key == "prediction")
    options.prediction = value;
  else
    return read_number(key, value, options);
  return {};
}

} // namespace

Result parse_training(const std::string& text, training::TrainingOptions& options) {
  std::set<std::string> seen;
  for (const std::string& word : split(text, ',')) {
    size_t equals = word.find('=');
    if (word == kFreezeNorms) {
      options.freeze_norms = true;
      continue;
    }
    if (equals == std::string::npos || equals == 0)
      return usage_error("--train wants KEY=VALUE apart by commas, found '" + word + "'");
    std::string key = word.substr(0, equals);
    if (!seen.insert(key).second) return usage_error("--train: '" + key + "' is given twice");
    if (Result read = read_option(key, word.substr(equals + 1), options); !read) return read;
  }
  return {};
}

Result check_is_complete(const training::TrainingOptions& options) {
  const bool has_loss = !options.loss.empty() || !options.loss_output.empty();
  if (has_loss && !options.optimizer.empty()) return {};
  return usage_error(std::string("--train wants ") + (has_loss ? "optimizer" : "loss") + "=NAME");
}

std::optional<double> usual_learning_rate(const std::string& optimizer) {
  for (const char* adaptive : {"adam", "adamw", "rmsprop", "onnx_adam"})
    if (optimizer == adaptive) return 1e-3;
  for (const char* other :
       {"sgd", "momentum", "nesterov", "adagrad", "onnx_momentum", "onnx_nesterov", "onnx_adagrad"})
    if (optimizer == other) return 1e-2;
  return std::nullopt;
}

Result parse_adapters(const std::string& text, training::TrainingOptions& options) {
  size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size())
    return usage_error("--lora wants rank=N:NAME, found '" + text + "'");
  training::Adapters adapters;
  adapters.pattern = text.substr(colon + 1);
  for (const std::string& word : split(text.substr(0, colon), ',')) {
    size_t equals = word.find('=');
    std::string key = word.substr(0, equals),
                value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "rank") {
      auto rank = whole_number_of("--lora", key, value, 1);
      if (!rank) return rank.error();
      adapters.rank = *rank;
    } else if (key == "alpha") {
      auto alpha = number_of("--lora", key, value);
      if (!alpha) return alpha.error();
      if (!std::isfinite(*alpha)) return usage_error("--lora: alpha='" + value + "' is no finite number");
      adapters.alpha = *alpha;
    } else {
      return usage_error("--lora wants rank=N and perhaps alpha=X before the colon, found '" + word + "'");
    }
  }
  if (adapters.rank == 0) return usage_error("--lora wants rank=N, found '" + text + "'");
  if (text.substr(0, colon).find("alpha=") == std::string::npos)
    adapters.alpha = static_cast<double>(adapters.rank);
  options.adapters.push_back(std::move(adapters));
  return {};
}

} // namespace firn::driver
