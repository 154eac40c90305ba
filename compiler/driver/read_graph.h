// Graphs in text form (.hlo), as `firn opt` and `firn compile` read them.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/support/diagnostic.h"

#include <memory>
#include <string>

namespace firn::driver {

// Whether a model's path names a graph in text form rather than an ONNX model.
bool is_graph_text(const std::string& path);

struct GraphText {
  std::unique_ptr<Module> module; // verified
  std::string sha256;             // of the text
};

// Reads the text at `path` ("-": standard input) with the large constants of the side file `weights` (empty:
// none; constants without their bytes are opaque). Messages begin with the place in the text.
Expected<GraphText> read_graph(const std::string& path, const std::string& weights);

} // namespace firn::driver
