// The outputs of a compilation: its files, all of which are put into place or none, and their contents.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/support/byte_sink.h"

namespace firn::driver {

// Generates code as options.emit wants and writes what belongs to it; fills compilation.object and .files.
Result write_outputs(const CompileOptions& options, Compilation& compilation);

struct ObjectTexts {
  std::string header, manifest;
};

// Writes the object to `sink` and returns the texts that go with it; fills compilation.object. Fails if it
// exceeds a budget of the options.
Expected<ObjectTexts> write_object(const CompileOptions& options, Compilation& compilation, ByteSink& sink);

} // namespace firn::driver
