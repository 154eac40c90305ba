// Launches: checks of limits and arguments, blocks in their order, statistics.
#include "compiler/ptx/block.h"
#include "compiler/ptx/module.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace firn::ptx {
namespace {

std::string text_of(const std::array<int64_t, 3>& threads) {
  return std::to_string(threads[0]) + " x " + std::to_string(threads[1]) + " x " + std::to_string(threads[2]);
}

std::string text_of(Dim3 dim) {
  return text_of(std::array<int64_t, 3>{dim.x, dim.y, dim.z});
}

Result check_limits(const Kernel& kernel, Dim3 grid, Dim3 block, uint64_t shared_bytes,
                    const Options& options) {
  auto fail = [&](const std::string& text) { return usage_error("kernel '" + kernel.name + "': " + text); };
  if (grid.count() == 0 || block.count() == 0) return fail("a launch without threads");
  if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffff)
    return fail("a grid of " + text_of(grid) + " blocks");
  if (block.count() > 1024 || block.z > 64) return fail("a block of " + text_of(block) + " threads");
  const auto& max = kernel.max_threads;
  if (max[0] != 0 && static_cast<int64_t>(block.count()) > max[0] * max[1] * max[2])
    return fail("a block of " + text_of(block) + " threads, at most " + text_of(max) + " are declared");
  const auto& required = kernel.required_threads;
  bool is_required = std::array<int64_t, 3>{block.x, block.y, block.z} == required;
  if (required[0] != 0 && !is_required)
    return fail("a block of " + text_of(block) + " threads, " + text_of(required) + " are declared");
  uint64_t shared = static_cast<uint64_t>(kernel.shared_bytes) + shared_bytes;
  if (shared > options.max_shared_bytes)
    return fail(std::to_string(shared) + " bytes of shared memory, at most " +
                std::to_string(options.max_shared_bytes) + " are there");
  return {};
}

Expected<std::vector<uint8_t>> pack_arguments(const Kernel& kernel, const Arguments& arguments) {
  const auto& values = arguments.values();
  if (values.size() != kernel.parameters.size())
    return usage_error("kernel '" + kernel.name + "': " + std::to_string(values.size()) + " arguments for " +
                       std::to_string(kernel.parameters.size()) + " parameters");
  std::vector<uint8_t> bytes(static_cast<size_t>(kernel.parameter_bytes));
  for (size_t i = 0; i < values.size(); ++i) {
    const Variable& parameter = kernel.parameters[i];
    if (values[i].size() != static_cast<size_t>(parameter.size))
      return usage_error("kernel '" + kernel.name + "': argument " + std::to_string(i) + " has " +
                         std::to_string(values[i].size()) + " bytes, its parameter " +
                         std::to_string(parameter.size));
    if (!values[i].empty())
      std::memcpy(bytes.data() + kernel.parameter_offsets[i], values[i].data(), values[i].size());
  }
  return bytes;
}

void add_counts(Launch& launch) {
  for (size_t i = 0; i < launch.kernel.ops.size(); ++i) {
    auto op_class = static_cast<size_t>(launch.kernel.ops[i].op_class);
    launch.statistics.lane_instructions[op_class] += launch.lane_counts[i];
    launch.statistics.warp_instructions += launch.warp_counts[i];
  }
}

bool run_blocks(Launch& launch) {
  std::vector<uint64_t> order(launch.grid.count());
  std::iota(order.begin(), order.end(), 0);
  if (launch.options.seed != 0) std::shuffle(order.begin(), order.end(), launch.random);
  for (uint64_t i : order) {
    uint64_t x = launch.grid.x, y = launch.grid.y;
    Dim3 position{static_cast<uint32_t>(i % x), static_cast<uint32_t>(i / x % y),
                  static_cast<uint32_t>(i / x / y)};
    Block block(launch, static_cast<uint32_t>(i + 1), position);
    if (!block.run()) return false;
  }
  return true;
}

} // namespace

Expected<Statistics> launch(const Module& module, const std::string& name, Dim3 grid, Dim3 block,
                            uint64_t shared_bytes, const Arguments& arguments, Memory& memory,
                            const Options& options) {
  const auto& kernels = module.program().kernels;
  auto found =
      std::find_if(kernels.begin(), kernels.end(), [&](const Kernel& kernel) { return kernel.name == name; });
  if (found == kernels.end()) return usage_error("the module has no kernel '" + name + "'");
  const Kernel& kernel = *found;
  if (auto checked = check_limits(kernel, grid, block, shared_bytes, options); !checked)
    return checked.error();
  auto parameters = pack_arguments(kernel, arguments);
  if (!parameters) return parameters.error();
  Launch state{kernel,
               memory,
               module.variables(),
               options,
               grid,
               block,
               shared_bytes,
               std::move(*parameters),
               GlobalShadow(kernel.global_granule),
               GlobalShadow(kernel.global_granule),
               std::mt19937_64(options.seed),
               {},
               std::vector<uint64_t>(kernel.ops.size()),
               std::vector<uint64_t>(kernel.ops.size()),
               0,
               ""};
  if (!run_blocks(state)) return internal_error(state.error);
  add_counts(state);
  return state.statistics;
}

} // namespace firn::ptx
