// Reads the words of --gpu.
#include "compiler/driver/gpu_target.h"

#include "compiler/target/gpu_table.h"

#include <string_view>

namespace firn::driver {
namespace {

// Threads that share a kernel, where its plan decides how many items it has.
constexpr int kGpuThreads = 1024;

} // namespace

Result choose_gpu(const std::string& word, std::string& gpu, Goals& goals) {
  constexpr std::string_view kKind = "cuda";
  const bool is_named = word.starts_with(std::string(kKind) + ":");
  if (word != kKind && !is_named)
    return usage_error("--gpu wants cuda, or cuda:sm_80 and the like, found '" + word + "'");
  gpu = is_named ? word.substr(kKind.size() + 1) : "sm_80";
  goals.threads = kGpuThreads;
  auto known = find_gpu(gpu);
  return known ? Result() : Result(known.error());
}

} // namespace firn::driver
