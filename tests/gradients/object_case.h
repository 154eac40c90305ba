// Gradients as compiled code in this process, between guard pages.
#pragma once

#include "compiler/support/goals.h"
#include "tests/gradients/gradient_case.h"

namespace firn::test {

struct ObjectSetting {
  std::string cpu = "x86-64-v3";
  OptLevel opt_level = OptLevel::O3;
  Math math = Math::Default;
};

// The text with all of `from` replaced by `to`, f64 by f32 say.
std::string replaced(std::string text, const std::string& from, const std::string& to);

// Compiles a function of a module in text form and runs it on drawn inputs, by one thread and by several.
// Results have the same bits for any number of threads and are the evaluator's, but for 2e-5 of a tensor's
// largest element.
void check_object(const std::string& text, const std::string& function, const ObjectSetting& setting);

// Results of the compiled function.
std::vector<LiteralRef> run_object(const std::string& text, const std::string& function,
                                   const std::vector<LiteralRef>& inputs);

} // namespace firn::test
