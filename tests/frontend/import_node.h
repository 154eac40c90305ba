// Models of one node whose dims vary.
#pragma once

#include "tests/frontend/import_case.h"

namespace firn::test {

// Options with each named dim in [min, 9].
inline onnx::ImportOptions in_ranges(const std::vector<const char*>& names, int64_t min = 1) {
  onnx::ImportOptions options;
  for (const char* name : names) options.ranges[name] = {min, 9, 1, {}};
  return options;
}

// y = made(inputs)
inline Imported import_node(const Message& made, const std::vector<Message>& inputs,
                            const onnx::ImportOptions& options) {
  Model model;
  model.graph.inputs = inputs;
  model.graph.outputs = {value("y", F32, {})};
  model.graph.nodes = {made};
  model.opsets = {{"", 29}, {"com.microsoft", 1}};
  return import_model(model, options);
}

} // namespace firn::test
