// Graphs (.hlo) and kernels (.kir) in text form, as `firn opt` and `firn compile` read them.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/diagnostic.h"
#include "compiler/support/mapped_file.h"

#include <memory>
#include <string>
#include <string_view>

namespace firn::driver {

struct GraphText {
  std::unique_ptr<Module> module; // verified
  std::string sha256;             // hash of the text
};

// The bytes of a file as text.
std::string_view text_of(const MappedFile& file);
// The content of the file at `path`; "-": standard input.
Expected<std::string> read_text(const std::string& path);

// Parses the text of a graph, which was at `path`, with the large constants of the side file `weights`
// (empty: none; constants without their bytes are opaque). Messages begin with the place in the text.
Expected<GraphText> parse_graph(const std::string& path, const std::string& text, const std::string& weights);
// Parses the graph that the file holds.
Expected<GraphText> read_graph(const MappedFile& file, const std::string& weights);

// Whether a text, which was at `path`, holds kernels: the name ends in .kir, or a program opens the text.
bool is_kernel_text(const std::string& path, const std::string& text);
// Parses and verifies the text of kernels.
Expected<kernel::Program> parse_kernels(const std::string& path, const std::string& text);

} // namespace firn::driver
