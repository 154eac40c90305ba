// Plans as text.
#include "compiler/plan/kernel_plan.h"

#include "compiler/support/text_scanner.h"

#include <optional>

namespace firn::plan {
namespace {

std::string text_of(const WindowTiling& tiling) {
  std::string text = " tile " + std::to_string(tiling.pixels) + " along " + std::to_string(tiling.along);
  return tiling.straight ? text + " straight" : text;
}
std::string text_of(const DepthwisePlan& plan) {
  return "depthwise" + text_of(plan.tiling) + (plan.taps_in_registers ? " taps_in_registers" : "");
}
std::string text_of(const PoolingPlan& plan) {
  return "pooling" + text_of(plan.tiling);
}

// "tile 7"
bool read(TextScanner& scanner, const char* name, int64_t& value) {
  if (!scanner.expect(name)) return false;
  return scanner.integer(value) || scanner.fail("expected an integer");
}

bool read(TextScanner& scanner, WindowTiling& tiling) {
  if (!read(scanner, "tile", tiling.pixels) || !read(scanner, "along", tiling.along)) return false;
  tiling.straight = scanner.accept("straight");
  return true;
}

std::optional<KernelPlan> read_plan(TextScanner& scanner) {
  if (scanner.accept("depthwise")) {
    DepthwisePlan plan;
    if (!read(scanner, plan.tiling)) return std::nullopt;
    plan.taps_in_registers = scanner.accept("taps_in_registers");
    return plan;
  }
  if (scanner.accept("pooling")) {
    PoolingPlan plan;
    if (!read(scanner, plan.tiling)) return std::nullopt;
    return plan;
  }
  scanner.fail("'" + std::string(scanner.word()) + "' names no algorithm, wanted one of: depthwise, pooling");
  return std::nullopt;
}

} // namespace

std::string to_string(const KernelPlan& plan) {
  return std::visit([](const auto& of_family) { return text_of(of_family); }, plan);
}

Expected<KernelPlan> parse_kernel_plan(const std::string& name, std::string_view text) {
  TextScanner scanner(name, text);
  std::optional<KernelPlan> plan = read_plan(scanner);
  if (!plan || (!scanner.at_end() && !scanner.fail("expected the end of the plan"))) return scanner.error();
  return std::move(*plan);
}

} // namespace firn::plan
