// The facts that runs of a model need, as bytes: a model that was compiled before is described without its
// graph.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/support/diagnostic.h"

#include <string>
#include <string_view>

namespace firn::artifact {

// Tensors, dims that vary, sizes of memory, threads and CPUs. Facts for people alone (kernels, contributors,
// entries) are not among them. The bytes are for the Firn that wrote them, on the same kind of machine.
std::string write_description(const ModelDescription& description);
// A usage error where the bytes are not whole.
Expected<ModelDescription> read_description(std::string_view bytes);

} // namespace firn::artifact
