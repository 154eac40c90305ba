// Statements of a function that returns whether all went well; there is a compiler, and the path of a model
// whose batch varies.
#include <cstdio>
#include <firn/jit_trainer.h>

namespace {

firn::jit::Compiler compiler;
const char* const path = MODELS "/text_encoder/model.onnx";

bool fragment() {
  // THE FRAGMENT
  return static_cast<bool>(net.run());
}

} // namespace

int main() {
  return fragment() ? 0 : 1;
}
