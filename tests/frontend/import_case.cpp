// Importing of test models, with the checks that every module must pass.
#include "tests/frontend/import_case.h"

#include "compiler/graph/evaluate.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/graph/verify.h"

#include <catch2/catch.hpp>

namespace firn::test {

Imported import_bytes(const std::string& bytes, const onnx::ImportOptions& options) {
  DiagnosticList diagnostics;
  Imported imported;
  imported.model = onnx::import_onnx_bytes("test.onnx", bytes, options, diagnostics);
  for (const Diagnostic& each : diagnostics.messages()) imported.messages += each.message + "\n";
  if (!diagnostics.empty()) imported.fault = diagnostics.messages()[0].fault;
  // Either a module or a reason why there is none.
  CHECK(diagnostics.empty() == (imported.model != nullptr));
  return imported;
}

Imported import_model(const Model& model, const onnx::ImportOptions& options) {
  return import_bytes(model.encode(), options);
}

std::string Imported::text() const {
  INFO(messages);
  REQUIRE(model);
  Result verified = verify(*model->module);
  if (!verified) FAIL(verified.error().message);
  std::string text = print_module(*model->module);
  auto literals = read_literals(MappedFile::from_bytes("weights", write_literals(*model->module)));
  REQUIRE(literals);
  auto parsed = parse_module("test.hlo", text, *literals);
  if (!parsed) FAIL(parsed.error().message);
  CHECK(print_module(**parsed) == text);
  return text;
}

std::vector<LiteralRef> run(const Imported& imported, const std::vector<LiteralRef>& inputs) {
  (void)imported.text();
  auto results = evaluate(*imported.model->module, inputs);
  if (!results) FAIL(results.error().message);
  return *results;
}

bool ends_early(const Imported& imported, const std::vector<LiteralRef>& inputs) {
  return !evaluate(*imported.model->module, inputs);
}

std::vector<double> numbers(const LiteralRef& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal->num_elements(); ++i) values.push_back(literal->get_double(i));
  return values;
}

LiteralRef f32(std::vector<int64_t> dims, const std::vector<double>& values) {
  return Literal::of(DType::F32, std::move(dims), values);
}
LiteralRef i64(std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  return Literal::of(DType::I64, std::move(dims), values);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace firn::test
