// Executables that a folder keeps from process to process.
#pragma once

#include "compiler/driver/loaded_executable.h"
#include "compiler/support/cache_folder.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace firn::driver {

// Whether the files are as they were.
bool are_current(const SourceFiles& files);

struct KeptExecutable {
  std::shared_ptr<const CachedBytes> bytes; // outlive the executable
  std::unique_ptr<LoadedExecutable> executable;
  SourceFiles files;
};

// The name under which a folder keeps the executable of a compilation. `content` tells the model from other
// versions of it, and everything that decides its code beside the CPUs and the build of Firn.
std::string kept_name(const CompileOptions& options, const std::string& content);
// Whether the code depends on files beside the model, of which kept_name() knows nothing.
bool depends_on_other_files(const CompileOptions& options);

// The executable that was kept under this name; nothing: there is none, it cannot be loaded, or files that it
// was made from have changed since. `memory` outlives it.
std::optional<KeptExecutable> find_kept(const CacheFolder& folder, const std::string& name,
                                        const CompileOptions& options, RunnerMemory& memory);
// Keeps what LoadedExecutable::load() gives to it. `folder` outlives the function.
std::function<void(const ExecutableArchive&)> keeper(const CacheFolder& folder, const std::string& name);

} // namespace firn::driver
