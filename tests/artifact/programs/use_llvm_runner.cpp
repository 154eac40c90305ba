// LLVM's own ReleaseModeModelRunner on a Firn model: features by name in, the decision out.
#include "digits.h"
#include "expect.h"

#include <firn/tfcompile.h>

#include <llvm/Analysis/ReleaseModeModelRunner.h>
#include <llvm/IR/LLVMContext.h>
#include <vector>

int main() {
  llvm::LLVMContext context;
  const std::vector<llvm::TensorSpec> features = {
      llvm::TensorSpec::createSpec<float>("image", {1, 1, 28, 28}),
      llvm::TensorSpec::createSpec<float>("a feature that the model lacks", {3}),
  };
  llvm::ReleaseModeModelRunner<firn::TfCompiled<vision::Digits>> runner(context, features, "probabilities");
  float* image = runner.getTensor<float>(0);
  for (int i = 0; i < 784; ++i) image[i] = 0.0f;
  image[0] = 3.0f;
  runner.getTensor<float>(1)[2] = 1.0f;
  EXPECT(runner.evaluate<float>() == 3.5f);
  image[0] = 4.0f;
  EXPECT(runner.evaluate<float>() == 4.5f);
  return failures;
}
