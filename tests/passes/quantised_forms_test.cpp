// Checks which dtypes models of each form multiply once all passes have run, and how large their weights are.
// Results do not show that: weights that an object holds as floats give the same values.
#include "compiler/frontend/onnx/import.h"
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/recurrent_cells.h"
#include "compiler/lower/lower.h"
#include "compiler/memory/arena.h"
#include "compiler/passes/pass.h"
#include "tests/lower/plan_and_lower.h"
#include "tests/passes/quantised_forms.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::test;

namespace {

constexpr const char* kCpus[] = {"x86-64-v3", "x86-64-v4+avx512vnni",
                                 "x86-64-v4+avx512vnni+avx512bf16+amx-tile+amx-int8+amx-bf16", "cortex-a76",
                                 "neoverse-v2"};
constexpr double kGrowth = 1.1;       // panels are as wide as vectors
constexpr int64_t kOtherBytes = 1024; // zero points times sums of weights, a table or two

struct Contraction {
  double products = 0; // how many
  Multiplies multiplies = Multiplies::Floats;
  std::string text;
};

struct Outcome {
  std::string failure; // message of the failed compilation; empty: it succeeded
  std::vector<Contraction> contractions;
  int64_t bytes = 0;
};

Contraction contraction_of(const Instruction& i) {
  const Type &lhs = i.operand(0).type(), &rhs = i.operand(1).type();
  Contraction found;
  auto elements = [](const Type& type) {
    double count = 1;
    for (const Dim& dim : type.dims) count *= static_cast<double>(dim.value());
    return count;
  };
  if (i.is(Opcode::Convolution))
    found.products = elements(i.type()) * elements(rhs) / static_cast<double>(i.type().dim(1));
  else if (i.is(Opcode::Dot)) {
    found.products = elements(i.type());
    for (int64_t dim : i.attributes().ints("lhs_contract"))
      found.products *= static_cast<double>(lhs.dim(static_cast<int>(dim)));
  } else
    found.products = elements(lhs) * static_cast<double>(rhs.dim(0));
  if (is_integer(lhs.dtype) && is_integer(rhs.dtype) && bit_width(lhs.dtype) <= 16 &&
      bit_width(rhs.dtype) <= 16)
    found.multiplies = Multiplies::Integers;
  else if (bit_width(lhs.dtype) <= 8 || bit_width(rhs.dtype) <= 8)
    found.multiplies = Multiplies::NarrowWeights;
  found.text = std::string(dtype_name(lhs.dtype)) + " by " + std::string(dtype_name(rhs.dtype)) + " to " +
               std::string(dtype_name(i.type().dtype));
  return found;
}

Contraction contraction_of(const RecurrentLayer& layer) {
  const Type& r = layer.operands.r.type();
  Contraction found;
  found.products = static_cast<double>(r.num_elements()) * static_cast<double>(layer.steps().value());
  found.multiplies = bit_width(r.dtype) <= 8 ? Multiplies::NarrowWeights : Multiplies::Floats;
  found.text = "states by " + std::string(dtype_name(r.dtype));
  return found;
}

void collect(const Region& region, std::vector<Contraction>& found) {
  for (const auto& i : region.instructions()) {
    if (i->is(Opcode::Dot) || i->is(Opcode::Convolution) || is_blocked_dot(*i))
      found.push_back(contraction_of(*i));
    if (auto layer = read_recurrent(*i)) found.push_back(contraction_of(*layer));
    if (i->is(Opcode::Composite)) continue; // the body says what it means, not how it is computed
    for (int r = 0; r < i->num_regions(); ++r) collect(i->region(r), found);
  }
}

Outcome compile(const std::string& model, const Machine& target) {
  DiagnosticList diagnostics;
  auto imported = onnx::import_onnx_bytes("form.onnx", model, {}, diagnostics);
  if (!imported) return {diagnostics.messages()[0].message, {}, 0};
  Module& module = *imported->module;
  PipelineRun run;
  run.options.target = &target;
  if (Result done = run_passes(module, default_pipeline(module, /*for_target=*/true), run); !done)
    return {done.error().message, {}, 0};
  Outcome outcome;
  collect(module.main().body(), outcome.contractions);
  auto program = firn::test::plan_and_lower(module, {target});
  if (!program) return {program.error().message, {}, 0};
  memory::place_constants(*program);
  outcome.bytes = program->weight_bytes;
  return outcome;
}

// The fault of the outcome; empty: none. Small products beside the layer's, of sums and zero points, may have
// any factors.
std::string wrong_products(const Outcome& outcome, Multiplies expected) {
  if (!outcome.failure.empty()) return outcome.failure;
  double max = 0;
  for (const Contraction& each : outcome.contractions) max = std::max(max, each.products);
  if (max == 0 && expected != Multiplies::Nothing) return "nothing is multiplied";
  for (const Contraction& each : outcome.contractions)
    if (each.products > max / 16 && each.multiplies > expected) return "multiplies " + each.text;
  return "";
}

// The bytes that an object may hold. Zero points add, per channel or block, themselves, sums of weights, and
// products of both to the scales.
int64_t max_bytes(const QuantisedModel& model, const Case& of) {
  const int64_t weights = model.weight_bytes(), others = model.bytes() - weights;
  const bool adds = of.has_zero_points() || of.weights.scale_per == Per::Block;
  return kOtherBytes + static_cast<int64_t>(kGrowth * growth_of(of) * static_cast<double>(weights)) +
         others * (adds ? 3 : 1);
}

void check(const Form& form, const Case& of, const Machine& target) {
  QuantisedModel model(of.activations, of.weights);
  const std::string result = form.build(model);
  Outcome outcome = compile(model.encode(result), target);
  if (std::string wrong = wrong_products(outcome, form.multiplies); !wrong.empty())
    FAIL_CHECK(of.text() << ": " << wrong);
  else if (outcome.bytes > max_bytes(model, of))
    FAIL_CHECK(of.text() << ": holds " << outcome.bytes << " bytes of weights, of " << model.bytes()
                         << " in the model; most: " << max_bytes(model, of));
}

} // namespace

TEST_CASE("quantised models multiply integers, and weights are as small as in the model") {
  for (const char* cpu : kCpus) {
    auto target = find_target("", cpu, "");
    REQUIRE(target);
    for (const Form& form : quantised_forms())
      for (const Activations& activations : form.activations)
        for (DType dtype : form.weights)
          for (Per per : form.scales)
            for (ZeroPoints zeros : form.zero_points) {
              const Case each{form.name, activations, {dtype, zeros, per}, cpu};
              if (!exception_of(each)) check(form, each, *target);
            }
  }
}
