// The object of a compilation as code that this process can call.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/support/temporary_folder.h"

#include <memory>
#include <string>

namespace firn::driver {

// Code in memory, until the destructor unloads it.
class LoadedCode {
public:
  virtual ~LoadedCode() = default;
  // The address of one of the object's functions; null if it has none of that name.
  virtual void* symbol(const std::string& name) const = 0;
};

// Generates code for a compilation that compile_in_memory made for this host, notes the facts about the
// object in it, and loads the object: in this process alone, or by the system's tools where the compilation's
// loader or files of the program ask for that.
Expected<std::unique_ptr<LoadedCode>> load_code(Compilation& compilation);

// The steps of loading in this process: the bytes of the object, without weights unless these are prepared,
// and code of such bytes. `symbols` are the program's operators by their names.
bool is_loaded_by_system(const Compilation& compilation);
Expected<std::string> generate_code(Compilation& compilation);
Expected<std::unique_ptr<LoadedCode>> load_object(const artifact::ModelDescription& description,
                                                  size_t variant, const std::map<std::string, void*>& symbols,
                                                  std::string_view object);

} // namespace firn::driver
