// What the frontend's tests do with a model: import, verify, evaluate, or collect the messages.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "tests/frontend/model_writer.h"

namespace firn::test {

struct Imported {
  std::unique_ptr<onnx::ImportedModel> model; // null after a failure
  std::string messages;                       // one per line
  Fault fault = Fault::None;                  // of the first message

  std::string text() const; // of the module; it is verified and must round-trip
};

Imported import_model(const Model& model, const onnx::ImportOptions& options = {});
Imported import_bytes(const std::string& bytes, const onnx::ImportOptions& options = {});

// Results of @main.
std::vector<LiteralRef> run(const Imported& imported, const std::vector<LiteralRef>& inputs);
// Whether a run is refused by what it finds.
bool ends_early(const Imported& imported, const std::vector<LiteralRef>& inputs);
std::vector<double> numbers(const LiteralRef& literal);
LiteralRef f32(std::vector<int64_t> dims, const std::vector<double>& values);
LiteralRef i64(std::vector<int64_t> dims, const std::vector<int64_t>& values);

bool contains(const std::string& text, const std::string& part);

} // namespace firn::test
