// The GPU that --gpu names.
#pragma once

#include "compiler/support/diagnostic.h"
#include "compiler/support/goals.h"

#include <string>

namespace firn::driver {

// Reads "cuda", "cuda:sm_80" or "cuda:sm_86:rtx3090": sets `gpu` to what find_gpu() takes, sm_80 where no
// number is given, and has plans make as many items as employ a GPU.
Result choose_gpu(const std::string& word, std::string& gpu, Goals& goals);

} // namespace firn::driver
