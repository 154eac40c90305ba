// Names of C and C++ made from names of models: accessors, class names and the prefix of the C functions.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/support/diagnostic.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace firn::artifact {

// Sets the identifier of every dim and tensor, unique in the model. Characters that identifiers cannot hold
// become '_', runs of '_' shrink to one and vanish at both ends, names of digits are prefixed with "input_"
// or its like. Reserved names (reserved_names.h) and members of the generated class get a '_' behind them,
// clashes (compared without case, because macros are upper case) a number. `renames` are pairs (new, old):
// the tensor or dim called `old` in the model gets exactly `new`, a dim if there is no tensor of that name;
// an unusable new or an unknown old name is a usage error.
Result assign_identifiers(ModelDescription& model,
                          const std::vector<std::pair<std::string, std::string>>& renames = {});

// Checks "ns::Name": identifiers that are not reserved (reserved_names.h), and no member of the class itself.
Result check_class_name(std::string_view class_name);
// A class name for a model without one: "mobilenet-v2.onnx" -> "MobilenetV2".
std::string default_class_name(std::string_view source_file);

// The prefix of C functions and symbols: "vision::MobileNetV2" -> "vision_mobile_net_v2". Prefixes that C's
// libraries may use, all of one word among them, get "_model" behind them: "Index" -> "index_model".
std::string symbol_prefix(std::string_view class_name);
std::string upper_case(std::string_view text);

} // namespace firn::artifact
