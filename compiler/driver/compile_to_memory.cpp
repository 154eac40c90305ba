// Follows the road of compile() to a sink in memory.
#include "compiler/driver/compile_to_memory.h"

#include "compiler/driver/stages.h"
#include "compiler/driver/write_outputs.h"

namespace firn::driver {

std::optional<MemoryOutputs> compile_to_memory(const CompileOptions& options, DiagnosticList& diagnostics) {
  if (options.emit != Emit::Object || !options.depfile.empty()) {
    diagnostics.add(usage_error("a compilation to memory gives an object, its header and its manifest, no " +
                                std::string(options.depfile.empty() ? "text of --emit" : "--depfile")));
    return std::nullopt;
  }
  MemoryOutputs outputs;
  outputs.compilation = compile_then(options, diagnostics, [&](Compilation& c, Stages& stages) -> Result {
    stages.begin("generate code");
    MemorySink object;
    auto texts = write_object(options, c, object);
    if (!texts) return texts.error();
    stages.end();
    outputs.object = object.take();
    outputs.header = std::move(texts->header);
    outputs.manifest = std::move(texts->manifest);
    return options.announce ? options.announce(c) : Result();
  });
  if (!outputs.compilation) return std::nullopt;
  return outputs;
}

} // namespace firn::driver
