// Which kernels become one.
#include "tests/kernel/sample_kernels.h"

#include <catch2/catch.hpp>

namespace firn::kernel {

TEST_CASE("kernels equal but for names become one, others stay, unused ones go") {
  Program program;
  program.kernels.push_back(sample_vectors("unused"));
  program.kernels.push_back(sample_control_flow("first"));
  program.kernels.push_back(sample_vectors("other"));
  program.kernels.push_back(sample_control_flow("second"));
  program.kernels[3]->parameters[0].name = "renamed";
  program.kernels[3]->location = "elsewhere";
  for (int kernel : {1, 2, 3, 3}) {
    Step step;
    step.kernel = kernel;
    program.steps.push_back(step);
  }
  Step branch;
  branch.kind = Step::Kind::If;
  branch.first = {program.steps[2]};
  program.steps.push_back(branch);
  merge_equal_kernels(program);
  REQUIRE(program.kernels.size() == 2);
  CHECK(program.kernels[0]->name == "first");
  CHECK(program.kernels[1]->name == "other");
  std::vector<int> called;
  for (const Step& step : program.steps) called.push_back(step.kernel);
  CHECK(called == std::vector<int>{0, 1, 0, 0, -1});
  CHECK(program.steps[4].first[0].kernel == 0);
}

TEST_CASE("kernels that differ in a constant stay apart") {
  Program program;
  for (double number : {1.0, 2.0}) {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = "k" + std::to_string(program.kernels.size());
    Builder b(*kernel);
    b.store(b.constant({Scalar::F32, 1}, number), b.add_parameter("y", Scalar::F32, 1, true), 0);
    Step step;
    step.kernel = static_cast<int>(program.kernels.size());
    program.steps.push_back(step);
    program.kernels.push_back(std::move(kernel));
  }
  merge_equal_kernels(program);
  CHECK(program.kernels.size() == 2);
}

} // namespace firn::kernel
