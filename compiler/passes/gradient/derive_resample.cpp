// The adjoint of resampling is resampling by transposed tables: each element of x gathers the cotangents of
// the results that have read it, in the order of these. Nothing is scattered.
#include "compiler/graph/composites.h"
#include "compiler/graph/resample.h"
#include "compiler/passes/gradient/adjoints.h"

#include <algorithm>

namespace firn::gradient {
namespace {

struct Tap {
  int64_t result;
  double weight;
};

// The results that read each element of a line of `extent`, in ascending order, with their weights in sum.
std::vector<std::vector<Tap>> readers(const ResampledDim& dim, int64_t extent) {
  std::vector<std::vector<Tap>> taps(static_cast<size_t>(extent));
  for (int64_t i = 0; i < dim.extent(); ++i)
    for (int64_t t = 0; t < dim.taps(); ++t) {
      double weight = dim.weights->get_double(t * dim.extent() + i);
      int64_t read = std::clamp<int64_t>(dim.indices->get_int(t * dim.extent() + i), 0, extent - 1);
      std::vector<Tap>& own = taps[static_cast<size_t>(read)];
      if (weight == 0) continue;
      if (!own.empty() && own.back().result == i)
        own.back().weight += weight;
      else
        own.push_back({i, weight});
    }
  return taps;
}

int64_t max_taps(const std::vector<std::vector<Tap>>& taps) {
  size_t max = 1;
  for (const auto& each : taps) max = std::max(max, each.size());
  return static_cast<int64_t>(max);
}

// Elements with fewer taps than others repeat one of their own with weight 0: no other result reaches them.
ResampledDim transposed(const ResampledDim& dim, int64_t extent) {
  std::vector<std::vector<Tap>> taps = readers(dim, extent);
  int64_t count = max_taps(taps);
  auto indices = std::make_shared<Literal>(DType::I32, std::vector<int64_t>{count, extent});
  auto weights = std::make_shared<Literal>(dim.weights->dtype(), std::vector<int64_t>{count, extent});
  for (int64_t j = 0; j < extent; ++j)
    for (int64_t t = 0; t < count; ++t) {
      const std::vector<Tap>& own = taps[static_cast<size_t>(j)];
      bool is_own = t < static_cast<int64_t>(own.size());
      indices->set_int(t * extent + j, own.empty() ? 0 : own[is_own ? static_cast<size_t>(t) : 0].result);
      weights->set_double(t * extent + j, is_own ? own[static_cast<size_t>(t)].weight : 0);
    }
  return {dim.dim, indices, weights};
}

bool is_table(const Instruction& instruction) {
  return instruction.is(Opcode::Constant) && !instruction.literal()->is_opaque() &&
         instruction.literal()->dims().size() == 2;
}

// The tables of a resampling of static extents that are not 0; nothing if they are computed, or if the
// operands are not those of such a composite.
std::optional<std::vector<ResampledDim>> tables_of(const Instruction& resample) {
  std::vector<ResampledDim> dims;
  const std::vector<int64_t>& numbers = resample.attributes().ints("dims");
  if (resample.num_operands() != static_cast<int>(1 + 2 * numbers.size())) return std::nullopt;
  for (int64_t number : numbers) {
    auto operand = static_cast<int>(2 * dims.size());
    const Instruction &indices = *resample.operand(operand + 1).def,
                      &weights = *resample.operand(operand + 2).def;
    if (number < 0 || number >= resample.operand(0).rank()) return std::nullopt;
    const Dim& extent = resample.operand(0).type().dims[static_cast<size_t>(number)];
    bool is_known = extent.is_static() && extent.value() > 0 && is_table(indices) && is_table(weights) &&
                    is_integer(indices.type().dtype) && is_float(weights.type().dtype) &&
                    indices.literal()->dims() == weights.literal()->dims();
    if (!is_known) return std::nullopt;
    dims.push_back({static_cast<int>(number), indices.literal(), weights.literal()});
  }
  return dims;
}

} // namespace

bool has_resample_rule(const Instruction& resample) {
  constexpr int64_t kMaxGrowth = 4; // beyond it, most of what a transposed table says is that weights are 0
  if (!is_composite(resample, "resample")) return false;
  auto dims = tables_of(resample);
  return dims && std::all_of(dims->begin(), dims->end(), [&](const ResampledDim& dim) {
           int64_t extent = resample.operand(0).type().dim(dim.dim);
           int64_t taps = max_taps(readers(dim, extent));
           return taps * extent <= kMaxGrowth * (dim.taps() * dim.extent() + extent);
         });
}

void derive_resample(VectorJacobian& v) {
  std::vector<ResampledDim> forward = *tables_of(v.primal), back;
  for (const ResampledDim& dim : forward)
    back.insert(back.begin(), transposed(dim, v.x().type().dim(dim.dim)));
  v.give(0, make_resample(v.b, v.dy(), back));
}

} // namespace firn::gradient
