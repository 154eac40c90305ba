// The library as a program in C++17 without exceptions uses it: use_jit MODEL.
#include <algorithm>
#include <cstdio>
#include <firn/jit.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  firn::jit::Compiler compiler;
  firn::jit::Model model = compiler.compile(argv[1], firn::jit::ModelOptions().strict_math());
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  firn::jit::Instance net(*model);
  auto image = net.input<float>("image");
  std::fill(image.begin(), image.end(), 0.5F);
  if (firn::jit::Status status = net.run(); !status) {
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
  auto scores = net.output<float>("probabilities");
  std::printf("%d\n", static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
  return scores.size() == 10 ? 0 : 1;
}
