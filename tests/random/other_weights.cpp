// See other_weights.h.
#include "tests/random/other_weights.h"

#include "compiler/driver/tensor_error.h"
#include "compiler/graph/evaluate.h"
#include "tests/random/random_source.h"

#include <algorithm>
#include <cstring>

namespace firn::test {
namespace {

using artifact::RawWeights;

// The elements in another order, and bytes also at the ends of their range. Floats stay as large as they
// were, so that results lose no more by rounding.
LiteralRef other_elements(const Literal& own, RandomSource& random) {
  auto made = std::make_shared<Literal>(own.dtype(), own.dims());
  const int64_t count = own.num_elements();
  const size_t bytes = static_cast<size_t>(bit_width(own.dtype())) / 8;
  const int64_t distance = random.between(1, count - 1);
  std::byte* to = made->mutable_bytes().data();
  for (int64_t i = 0; i < count; ++i) {
    const auto from = static_cast<size_t>((i + distance) % count);
    std::memcpy(to + static_cast<size_t>(i) * bytes, own.bytes().data() + from * bytes, bytes);
  }
  if (!is_integer(own.dtype()) || bytes > 1) return made;
  const bool all_extreme = random.chance(0.3);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t low = is_signed(own.dtype()) ? -128 : 0, high = low + 255;
    if (all_extreme || random.chance(0.3)) made->set_int(i, random.chance(0.5) ? low : high);
  }
  return made;
}

// The error that sums in another order may have by rounding: some steps of the type.
double rounding(DType dtype) {
  return dtype == DType::BF16 ? 4e-2 : dtype == DType::F16 ? 5e-3 : 2e-3;
}

// Whether rounding in another order may change results by whole steps.
bool has_steps(const TestCase& test) {
  bool rounds = false, counts = false;
  for (const auto& [name, value] : test.graph.runs[0]) {
    rounds |= value.error > 0;
    counts |= !is_float(value.literal->dtype()) && !value.known;
  }
  return rounds && counts;
}

// Puts other weights into the graph and into `raw`; false if there are none that may change.
bool change_weights(TestGraph& graph, const driver::Compilation& c, RandomSource& random,
                    std::span<std::byte> raw) {
  bool changed = false;
  for (const std::string& name : graph.constants) {
    const LiteralRef own = graph.value(name).literal;
    if (own->num_elements() < 2 || own->dtype() == DType::String || bit_width(own->dtype()) < 8) continue;
    auto is_it = [&](const RawWeights& tensor) { return tensor.name == name; };
    const auto& all = c.description.raw_weights;
    auto found = std::find_if(all.begin(), all.end(), is_it);
    if (found == all.end() || !found->may_change || std::count_if(all.begin(), all.end(), is_it) > 1)
      continue;
    const LiteralRef other = other_elements(*own, random);
    if (static_cast<size_t>(found->bytes) < other->bytes().size()) continue;
    std::copy(other->bytes().begin(), other->bytes().end(), raw.begin() + found->offset);
    for (Values& values : graph.runs) values[name].literal = other;
    changed = true;
  }
  return changed;
}

Verdict check_refusal(const driver::Compilation& c, driver::ObjectRunner& runner, std::span<std::byte> raw) {
  for (const RawWeights& tensor : c.description.raw_weights) {
    if (tensor.may_change || tensor.bytes == 0) continue;
    std::byte& changed = raw[static_cast<size_t>(tensor.offset)];
    changed ^= std::byte{1};
    bool taken = static_cast<bool>(runner.refit(raw));
    changed ^= std::byte{1};
    if (taken) return {"unrefused", "other values of '" + tensor.name + "' are taken"};
    break;
  }
  return {};
}

} // namespace

Verdict check_other_weights(const TestCase& test, const driver::Compilation& compilation,
                            driver::ObjectRunner& runner, GuardedHeap& memory) {
  if (!compilation.description.raw_weight_bytes || !test.graph.states.empty()) return {};
  TestCase other = test;
  RandomSource random(test.graph.nodes.size() +
                      static_cast<size_t>(*compilation.description.raw_weight_bytes));
  std::span<const std::byte> own = runner.own_weights();
  std::span<std::byte> raw(memory.allocate(static_cast<int64_t>(own.size()), 64), own.size());
  std::copy(own.begin(), own.end(), raw.begin());
  if (Verdict verdict = check_refusal(compilation, runner, raw); !verdict.passed()) return verdict;
  if (!change_weights(other.graph, compilation, random, raw)) return {};

  DiagnosticList diagnostics;
  auto imported =
      onnx::import_onnx_bytes("model.onnx", other.graph.encode(), other.graph.import_options(), diagnostics);
  if (!imported) return {}; // these weights are none that the graph can have
  std::vector<LiteralRef> inputs;
  for (const std::string& name : imported->module->main().parameter_names)
    inputs.push_back(other.graph.value(name).literal);
  auto want = evaluate(*imported->module, inputs);
  if (!want) return {};
  if (Result fits = runner.refit(raw); !fits) return {"refitted", fits.error().message};
  runner.lend(nullptr);
  auto got = runner.run(inputs);
  if (!got) return {"refitted", got.error().message};
  const bool steps = has_steps(test);
  for (size_t i = 0; i < got->size(); ++i) {
    if (steps && !is_float((*want)[i]->dtype())) continue;
    const double allowed = steps ? 0.25 : rounding((*want)[i]->dtype());
    std::string why;
    const double error = driver::tensor_error(*(*got)[i], *(*want)[i], why);
    if (error <= allowed) continue;
    return {"refitted", "with other weights, result " + std::to_string(i) + " " +
                            (*want)[i]->type().to_string() + ": error " + std::to_string(error) + ": " + why};
  }
  return memory.is_intact() ? Verdict{}
                            : Verdict{"outside", "preparing other weights wrote outside of memory"};
}

} // namespace firn::test
