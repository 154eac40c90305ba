// Reads text, side file, module and program.
#include "compiler/driver/read_graph.h"

#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"
#include "compiler/support/mapped_file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/text_scanner.h"

#include <span>

namespace firn::driver {
namespace {

Expected<LiteralTable> read_side_file(const std::string& path) {
  if (path.empty()) return LiteralTable{};
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return read_literals(*file);
}

} // namespace

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Expected<std::string> read_text(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return std::string(text_of(**file));
}

Expected<GraphText> parse_graph(const std::string& path, const std::string& text,
                                const std::string& weights) {
  auto literals = read_side_file(weights);
  if (!literals) return literals.error();
  auto module = parse_module(path, text, *literals);
  if (!module) return module.error();
  if (Result valid = verify(**module); !valid) return model_error(path + ": " + valid.error().message);
  return GraphText{std::move(*module), sha256_hex(std::as_bytes(std::span(text)))};
}

Expected<GraphText> read_graph(const MappedFile& file, const std::string& weights) {
  return parse_graph(file.path(), std::string(text_of(file)), weights);
}

bool is_kernel_text(const std::string& path, const std::string& text) {
  return path.ends_with(".kir") || TextScanner(path, text).next_is("program");
}

Expected<kernel::Program> parse_kernels(const std::string& path, const std::string& text) {
  auto program = kernel::parse_program(path, text);
  if (!program) return program.error();
  if (Result valid = kernel::verify(*program); !valid)
    return model_error(path + ": " + valid.error().message);
  return program;
}

} // namespace firn::driver
