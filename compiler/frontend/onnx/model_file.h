// The import of a model whose bytes are at hand: a file that is open, or bytes in memory.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "compiler/support/mapped_file.h"

namespace firn::onnx {

struct ModelFile {
  std::shared_ptr<const MappedFile> file;
  std::string folder; // external data lies beneath it; empty: the model may have none
};

// The model at `path`, with the folder that holds it; "-": standard input, without a folder.
Expected<ModelFile> open_model(const std::string& path);

// These take a model where the functions of import.h take its path.
std::unique_ptr<ImportedModel> import_onnx(const ModelFile& model, const ImportOptions& options,
                                           DiagnosticList& diagnostics);
Expected<ModelFacts> inspect_onnx(const ModelFile& model, const ImportOptions& options = {});

} // namespace firn::onnx
