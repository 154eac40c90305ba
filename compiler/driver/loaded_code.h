// The object of a compilation as code that this process can call.
#pragma once

#include "compiler/driver/compile.h"

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

// Whether the compilation's loader, or files of the program, ask for the system's tools.
bool is_loaded_by_system(const Compilation& compilation);
// Generates code for a compilation that compile_in_memory made for this host, notes the facts about the
// object in it, and has the system's tools link and load it.
Expected<std::unique_ptr<LoadedCode>> load_by_system(Compilation& compilation);
// Generates code likewise, as the bytes of an object for load_object(). They hold weights only if these are
// prepared.
Expected<std::string> generate_code(Compilation& compilation);

// Loads an object in this process alone. `symbols` are the program's operators by their names.
Expected<std::unique_ptr<LoadedCode>> load_object(const artifact::ModelDescription& description,
                                                  size_t variant, const std::map<std::string, void*>& symbols,
                                                  const load::Visibility& visibility,
                                                  std::string_view object);

} // namespace firn::driver
