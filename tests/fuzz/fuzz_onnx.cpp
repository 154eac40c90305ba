// Bytes as an ONNX model: loader and importer end in a message, or in a module that verifies.
#include "compiler/frontend/onnx/import.h"
#include "compiler/graph/verify.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firn;
  DiagnosticList diagnostics;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  auto imported = onnx::import_onnx_bytes("fuzz.onnx", std::move(bytes), {}, diagnostics);
  if (!imported && diagnostics.empty()) {
    std::fprintf(stderr, "refused without a message\n");
    std::abort();
  }
  if (!imported) return 0;
  if (Result valid = verify(*imported->module); !valid) {
    std::fprintf(stderr, "%s\n", valid.error().message.c_str());
    std::abort();
  }
  return 0;
}
