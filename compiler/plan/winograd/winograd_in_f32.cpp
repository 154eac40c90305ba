// Compares Winograd's algorithm with products of bf16: the choice of choose_winograd.h, against other direct
// sums.
#include "compiler/plan/winograd/winograd_in_f32.h"

#include "compiler/plan/contraction/convolution.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/winograd/choose_winograd.h"

namespace firn::plan {
namespace {

// The share of a direct convolution's time in bf16 that Winograd's algorithm may take, as maps around it have
// more bytes.
constexpr double kWorthIt = 0.95;

Type in_blocks(Type type, int block) {
  for (int d = 0; d < type.rank(); ++d) type.layout.order.push_back(d);
  type.layout.blocks = {{1, block}};
  return type;
}

// Whether channels are in whole blocks, as both algorithms would compute them.
bool lies_in_blocks(const Instruction& convolution, int block) {
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  return input.dtype == DType::F32 && input.is_static() && input.layout.is_plain() &&
         is_packable_constant(convolution.operand(1)) && filter.dim(0) % block == 0 &&
         filter.dim(1) % block == 0 && prefers_channel_blocks(convolution, block);
}

std::optional<WinogradCandidate> candidate_of(const Instruction& convolution, const Machine& target,
                                              int64_t weight_bytes) {
  const MacInstruction narrow{MacKind::Dot2, DType::BF16, DType::BF16, DType::F32};
  auto direct = ConvolutionGeometry::of(convolution, convolution.type(), narrow, /*by_rows=*/false,
                                        /*whole_rows=*/false);
  if (!direct) return std::nullopt;
  Type input = in_blocks(convolution.operand(0).type(), target.cpu.lanes(32)),
       result = in_blocks(convolution.type(), target.cpu.lanes(32));
  WinogradCandidate candidate;
  WinogradRequest request{convolution, result, target, weight_bytes, nullptr};
  request.input = &input;
  candidate.plans = plan_winograd(request);
  if (candidate.plans.empty()) return std::nullopt;
  candidate.filter = convolution.operand(1).def->literal();
  double bytes = static_cast<double>(convolution.operand(1).type().byte_size()) / 2;
  candidate.direct_cycles = kWorthIt * overlapped(choose_tiling(direct->shape, target).cycles,
                                                  stream_cycles(bytes, 1, target, weight_bytes));
  return candidate;
}

} // namespace

std::set<const Instruction*> faster_by_winograd(const Region& region, const PlanOptions& options) {
  const Machine& target = options.target;
  std::set<const Instruction*> faster;
  if (options.goals.winograd == Winograd::Off || options.goals.optimize_size() ||
      options.goals.strict_math() || target.cpu.bf16_dot2_bits == 0 || target.cpu.has_tile_matrices)
    return faster;
  int64_t weight_bytes = constant_bytes(region) / 2;
  double network_cycles = 0;
  std::vector<WinogradCandidate> candidates;
  std::vector<const Instruction*> convolutions;
  for (const auto& instruction : region.instructions()) {
    network_cycles += predicted_cycles(*instruction, target, weight_bytes) / 2;
    if (!instruction->is(Opcode::Convolution) || !lies_in_blocks(*instruction, channel_block(target)))
      continue;
    if (auto candidate = candidate_of(*instruction, target, weight_bytes)) {
      candidates.push_back(std::move(*candidate));
      convolutions.push_back(instruction.get());
    }
  }
  auto choices = choose_winograd(std::move(candidates), network_cycles, weight_bytes);
  for (size_t i = 0; i < choices.size(); ++i)
    if (choices[i].plan) faster.insert(convolutions[i]);
  return faster;
}

} // namespace firn::plan
