// Code by way of the system's own tools: its compiler links the object into a shared library, with files of
// the program, and its loader loads that.
#pragma once

#include "compiler/driver/loaded_code.h"
#include "compiler/support/temporary_folder.h"

namespace firn::driver {

// The compiler that a variable of the environment names, else `usual`.
std::string compiler_named_by(const char* variable, const char* usual);
// Whether the emitted object calls the runtime's part for strings.
bool calls_text(const Compilation& compilation);
// A usage error where it calls functions of the program and no file is given that defines them.
Result check_program_files(const Compilation& compilation);

// Links and loads the object of a compilation, which lies in the folder.
Expected<std::unique_ptr<LoadedCode>> link_and_load(const Compilation& compilation,
                                                    const TemporaryFolder& folder, const std::string& object);

} // namespace firn::driver
