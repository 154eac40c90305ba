// See kept_executable.h.
#include "compiler/driver/kept_executable.h"

#include "compiler/codegen/build_id.h"
#include "compiler/driver/variants.h"
#include "compiler/support/sha256.h"

#include <algorithm>

namespace firn::driver {

bool are_current(const SourceFiles& files) {
  return std::all_of(files.begin(), files.end(),
                     [](const auto& file) { return file_identity(file.first) == file.second; });
}

std::string kept_name(const CompileOptions& options, const std::string& content) {
  std::string text = codegen::build_id() + "\n" + content;
  if (auto targets = targets_of(options))
    for (const NamedTarget& cpu : *targets)
      text += "\n" + cpu.target.display_name() + " " + cpu.target.features;
  for (const auto& [name, address] : options.symbols) text += "\n" + name;
  return sha256_hex(std::as_bytes(std::span(text)));
}

bool depends_on_other_files(const CompileOptions& options) {
  return !options.schedule_db.empty() || !options.link.empty() || !options.weights_in.empty() ||
         !options.import.constants.empty();
}

std::optional<KeptExecutable> find_kept(const CacheFolder& folder, const std::string& name,
                                        const CompileOptions& options, RunnerMemory& memory) {
  KeptExecutable kept;
  kept.bytes = folder.find(name);
  if (!kept.bytes) return std::nullopt;
  auto archive = read_archive(kept.bytes->bytes());
  if (!archive || !are_current(archive->files)) return std::nullopt;
  kept.files = archive->files;
  auto executable = LoadedExecutable::restore(*archive, options.symbols, options.visibility, memory);
  if (!executable) return std::nullopt;
  kept.executable = std::move(*executable);
  return kept;
}

std::function<void(const ExecutableArchive&)> keeper(const CacheFolder& folder, const std::string& name) {
  return [&folder, name](const ExecutableArchive& archive) {
    std::string storage;
    folder.keep(name, pieces_of(archive, storage));
  };
}

} // namespace firn::driver
