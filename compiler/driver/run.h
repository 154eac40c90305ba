// `firn run`: one inference on tensors from files.
#pragma once

#include "compiler/driver/verify.h"

#include <functional>

namespace firn::driver {

struct RunOptions {
  CompileOptions compile;
  Engine engine = Engine::Object;
  std::vector<std::pair<std::string, std::string>> inputs; // name and file (.npy or .pb)
  std::string output_dir;                                  // outputs as NAME.npy; empty: in the text
  // Called with the text before files are written; after its failure none will be. May be empty.
  std::function<Result(const std::string& text)> print;
  std::function<void(const std::string& line)>
      note; // called with what a person may want to know; may be empty
};

// Prints a text: each output's type and first values, or the names of the files that are then written.
// False, with the reasons in `diagnostics`, if that failed.
bool run(const RunOptions& options, DiagnosticList& diagnostics);

// A tensor of a .npy or .pb file; `type`, a text such as "f8e5m2[3]" or empty if unknown, is the type of
// bytes for which NumPy has none.
Expected<LiteralRef> read_tensor(const std::string& path, const std::string& type = "");

// NumPy's .npy files, format versions 1 to 3, little-endian, row- or column-major. `wanted`: the type of
// bytes for which NumPy has none.
Expected<LiteralRef> read_npy(const std::string& path, DType wanted);
// Reads a .npy file that takes `size` bytes at `offset` of another file, such as an archive.
Expected<LiteralRef> read_npy(const std::shared_ptr<const MappedFile>& file, size_t offset, size_t size,
                              const std::string& path, DType wanted);
// The bytes of a .npy file; `path` is for messages.
Expected<std::string> npy_bytes(const std::string& path, const Literal& literal);

} // namespace firn::driver
