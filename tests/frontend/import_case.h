// Helpers of the frontend's tests: import a model, verify and evaluate it, or collect the messages.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "tests/frontend/model_writer.h"

namespace firn::test {

struct Imported {
  std::unique_ptr<onnx::ImportedModel> model; // null after a failure
  std::string messages;                       // one per line
  Fault fault = Fault::None;                  // fault of the first message

  std::string text() const; // text of the module, which is verified and must round-trip
};

Imported import_model(const Model& model, const onnx::ImportOptions& options = {});
Imported import_bytes(const std::string& bytes, const onnx::ImportOptions& options = {});

// Results of @main.
std::vector<LiteralRef> run(const Imported& imported, const std::vector<LiteralRef>& inputs);
// Whether a run on these inputs ends with an error.
bool ends_early(const Imported& imported, const std::vector<LiteralRef>& inputs);
std::vector<double> numbers(const LiteralRef& literal);
LiteralRef f32(std::vector<int64_t> dims, const std::vector<double>& values);
LiteralRef i64(std::vector<int64_t> dims, const std::vector<int64_t>& values);

bool contains(const std::string& text, const std::string& part);

} // namespace firn::test
