// Chooses forms by what is known of their kernels.
#include "compiler/plan/graph_forms.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/convolution_phases.h"
#include "compiler/graph/producers.h"
#include "compiler/plan/contraction/tiling.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/mac_instruction.h"

#include <set>
#include <vector>

namespace firn::plan {
namespace {

constexpr int64_t kFewChannels = 8; // channels of an input: fewer leave most of a block empty
constexpr int64_t kLongSum = 256;   // terms of a sum that make storing a whole block cheap beside them
// Vectors of filters from which on slicing is a small part of the products' time.
constexpr int64_t kMinSlicedVectors = 64;
// kItemsPerThread: results per thread from which on threads share a reduction as it is. kMaxParts: most parts
// per thread.
constexpr int64_t kItemsPerThread = 4, kMaxParts = 64;

// The number of positions, at the bounds.
int64_t positions_of(const Type& type) {
  int64_t count = 1;
  for (size_t d = 2; d < type.dims.size(); ++d) count *= type.dims[d].extent.upper_bound();
  return count;
}

// Whether folding can turn the value into a constant.
bool is_known(Value value) {
  std::set<const Instruction*> seen{value.def};
  for (std::vector<const Instruction*> todo{value.def}; !todo.empty();) {
    const Instruction& instruction = *todo.back();
    todo.pop_back();
    bool is_constant = instruction.is(Opcode::Constant);
    if (is_constant ? instruction.literal()->is_opaque()
                    : instruction.num_operands() == 0 || instruction.num_regions() > 0)
      return false;
    for (Value operand : instruction.operands())
      if (seen.insert(operand.def).second) todo.push_back(operand.def);
  }
  return true;
}

} // namespace

bool saves_memory(const Machine& target) {
  return target.cpu.l2_bytes == 0 && (target.cpu.vector_bits == 0 || !target.cpu.has_caches());
}

bool has_vectors(const Machine& target) {
  return target.cpu.lanes(32) > 1;
}

bool multiplies_floats(const Machine& target) {
  return target.cpu.has_float;
}

bool fuses_multiply_adds(const Machine& target) {
  return target.cpu.has_fma;
}

bool needs_signed_weights(const Machine& target) {
  return dot4_facts(target, Factor::U8, Factor::S8).form == MacForm::Native &&
         dot4_facts(target, Factor::U8, Factor::U8).form != MacForm::Native;
}

bool needs_unsigned_activations(const Machine& target) {
  return dot4_facts(target, Factor::U8, Factor::S8).form == MacForm::Native &&
         dot4_facts(target, Factor::S8, Factor::S8).form != MacForm::Native;
}

int channel_block(const Machine& target) {
  return target.cpu.channel_block();
}

bool has_channel_blocks(const Machine& target) {
  return !target.gpu;
}

bool multiplies_rows_of_bytes(const Machine& target) {
  return target.cpu.reducing_dot_bits > 0;
}

bool prefers_channel_blocks(const Instruction& convolution, int block) {
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  if (!filter.is_static() || !input.dims[1].is_static() || !convolution.type().dims[1].is_static() ||
      !accumulator_of(input.dtype, filter.dtype, convolution.type().dtype) ||
      positions_of(convolution.type()) == 1)
    return false;
  for (const WindowDim& dim : convolution.attributes().window().dims)
    if (dim.input_dilation != 1) return has_polyphase_kernel(convolution, block);
  int64_t groups = convolution.attributes().integer("groups", 1), filters = filter.dim(0) / groups;
  // With few filters most of a block is unused. That hardly matters if sums over windows are long, and blocks
  // allow Winograd's algorithm.
  int64_t taps = positions_of(filter);
  if (groups == 1)
    return 2 * filters >= block ||
           (taps > 1 && taps * filter.dim(1) >= kLongSum && !lines_fill_vectors(convolution, block));
  if (has_groups_within_blocks(convolution, block))
    return accumulates_in_f32(input.dtype) || accumulates_bytes_in_f32(convolution);
  return filters % block == 0 && filter.dim(1) % block == 0;
}

bool has_channels_for_blocks(const Instruction& convolution, const Machine& target) {
  int64_t channels = convolution.operand(0).dim(1);
  if (channels >= kFewChannels) return true;
  auto mac = choose_mac(convolution, target, /*strict=*/false);
  return mac && mac->k_group() > 1 && channels > 1;
}

bool has_groups_within_blocks(const Instruction& convolution, int block) {
  int64_t groups = convolution.attributes().integer("groups", 1);
  const Type& filter = convolution.operand(1).type();
  if (groups == 1) return false;
  bool is_depthwise = filter.dim(1) == 1 && filter.dim(0) == groups;
  bool is_narrow =
      filter.dim(0) == groups * filter.dim(1) && filter.dim(1) < block && block % filter.dim(1) == 0;
  return is_depthwise || is_narrow;
}

bool groups_want_dots(const Instruction& convolution, int block) {
  const Type& filter = convolution.operand(1).type();
  int64_t channels = filter.dim(1), filters = filter.dim(0) / convolution.attributes().integer("groups", 1);
  int64_t positions = convolution.type().num_elements() / filter.dim(0);
  bool whole = channels % block == 0 && filters % block == 0;
  bool within = channels == filters && block % channels == 0;
  return !whole && !within && positions >= block;
}

bool lines_fill_vectors(const Instruction& convolution, int lanes) {
  const Type& result = convolution.type();
  return convolution.attributes().window().dims.back().stride == 1 &&
         result.dims.back().extent.upper_bound() >= lanes;
}

bool has_polyphase_kernel(const Instruction& convolution, int block) {
  auto phases = ConvolutionPhases::of(convolution);
  if (!phases || convolution.attributes().integer("groups", 1) != 1) return false;
  DType lhs = convolution.operand(0).dtype(), rhs = convolution.operand(1).dtype();
  if (!accumulator_of(lhs, rhs, convolution.type().dtype)) return false;
  return convolution.operand(1).dim(0) % block == 0 && is_known(convolution.operand(1));
}

bool is_slicing_profitable(int64_t filters, const Machine& target) {
  return has_vectors(target) && filters >= kMinSlicedVectors * channel_block(target);
}

// Whether a sum over channels and positions adds values that a convolution has in registers: its kernel takes
// sums over positions alone.
bool sums_convolution(const Instruction& reduce) {
  Value operand = reduce.operand(0);
  auto all = static_cast<size_t>(operand.rank()) - 1;
  if (operand.rank() < 3 || simple_reducer(reduce) != Opcode::Add ||
      reduce.attributes().ints("dims").size() != all || reduce.attributes().ints("dims")[0] != 1)
    return false;
  return !walk_producers(operand, [&](Value value, int) {
    if (value.type().dims != operand.type().dims) return Walk::Past;
    if (value.def->is(Opcode::Convolution)) return Walk::Stop;
    return is_elementwise(value.def->opcode()) ? Walk::Into : Walk::Past;
  });
}

// The outermost reduced dim is left to the second step, so that the first reduces memory that lies together.
// The dim is cut if it is long, so that the second step has little to do, or if it alone is reduced.
std::optional<ReductionSplit> split_of_reduction(const Instruction& reduce, const Machine& target,
                                                 int threads) {
  const Type& operand = reduce.operand(0).type();
  const std::vector<int64_t>& dims = reduce.attributes().ints("dims");
  if (!operand.is_static() || operand.num_elements() == 0 || dims.empty()) return std::nullopt;
  if (sums_convolution(reduce)) return ReductionSplit{1, operand.dim(1)};
  if (threads <= 1 || reduce.type().num_elements() >= kItemsPerThread * threads) return std::nullopt;
  double cycles = predicted_cycles(reduce, target, 0);
  if (cycles * (1 - 1.0 / threads) < kSharedCallCycles) return std::nullopt;
  int64_t dim = *std::min_element(dims.begin(), dims.end());
  int64_t extent = operand.dim(static_cast<int>(dim)), max = kMaxParts * threads;
  bool is_alone = dims.size() == 1;
  if (is_alone && dim != operand.rank() - 1) return std::nullopt;
  if (!is_alone && extent >= threads && extent <= max) return ReductionSplit{dim, extent};
  for (int64_t parts = std::min(max, extent - 1); parts >= threads; --parts)
    if (extent % parts == 0) return ReductionSplit{dim, parts};
  return std::nullopt;
}

bool spills_last_level(const Type& map, const Machine& target) {
  return static_cast<int64_t>(map.at_bound().physical_byte_size()) >
         share_of(target.cpu.l2_bytes, cache_share::kHandedOn);
}

std::optional<size_t> dim_to_unfold(const Instruction& convolution, const Machine& target, bool strict) {
  constexpr int64_t kMinGain = 2;      // times fewer products: fewer do not pay for the copies
  constexpr int64_t kMaxUnfolded = 16; // positions, each of which is a kernel that copies
  const Type &input = convolution.operand(0).type(), &filters = convolution.operand(1).type();
  if ((has_vectors(target) && !multiplies_rows_of_bytes(target)) || !input.is_static() ||
      !filters.is_static() || convolution.type().num_elements() == 0 ||
      convolution.attributes().integer("groups", 1) != 1)
    return std::nullopt;
  auto mac = choose_mac(convolution, target, strict);
  const std::vector<WindowDim> window = convolution.attributes().window().dims;
  const int64_t channels = filters.dim(1), group = mac ? mac->k_group() : 1;
  if (group == 1 || channels >= group) return std::nullopt;
  std::optional<size_t> best;
  int64_t max_gain = 0;
  for (size_t i = window.size(); i-- > 0;) {
    const WindowDim& dim = window[i];
    if (dim.size < 2 || dim.size > kMaxUnfolded || dim.input_dilation != 1 || dim.pad_low < 0 ||
        dim.pad_high < 0)
      continue;
    // Groups of steps that a line of the window takes for one of its positions in the other dims.
    const int64_t groups = (channels * dim.size + group - 1) / group, gain = dim.size / groups;
    if (gain < kMinGain || gain <= max_gain) continue;
    best = i;
    max_gain = gain;
  }
  return best;
}

} // namespace firn::plan
