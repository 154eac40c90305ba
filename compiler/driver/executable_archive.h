// Loaded executables as bytes, from which they are loaded again without their model: description, code and
// weights as the code reads them.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/support/diagnostic.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace firn::driver {

// Files beside the model's own that an executable was made from, with their identities (file_identity()).
using SourceFiles = std::vector<std::pair<std::string, std::string>>;

struct ExecutableArchive {
  artifact::ModelDescription description;
  std::string manifest;
  std::string run_symbol, weights_symbol, prepare_symbol; // no prepare_symbol: there is nothing to make
  uint64_t variant = 0;                                   // firn_rt2_call::variant
  SourceFiles files;
  std::string_view object;
  std::span<const std::byte> weights; // at a multiple of 64 from the first byte; empty: the object holds them
};

// The bytes in pieces, of which some are the archive's own and some lie in `storage`.
std::vector<std::string_view> pieces_of(const ExecutableArchive& archive, std::string& storage);
// An archive whose object and weights lie in `bytes`. A usage error where these are not whole.
Expected<ExecutableArchive> read_archive(std::span<const std::byte> bytes);

// The text that tells a file from its other versions: device, inode, size and time of the last change. It is
// empty if there is no such regular file.
std::string file_identity(const std::string& path);
// Files with their identities.
SourceFiles file_identities(const std::vector<std::string>& paths);

} // namespace firn::driver
