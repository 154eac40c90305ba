// Forms by what their kernels are known to do.
#include "compiler/plan/graph_forms.h"

#include "compiler/graph/convolution_phases.h"
#include "compiler/plan/contraction.h"
#include "compiler/plan/cost_model.h"

#include <set>
#include <vector>

namespace firn::plan {
namespace {

constexpr int64_t kFewChannels = 8; // of an input: fewer leave most of a block empty
constexpr int64_t kLongSum = 256;   // terms of an element, beside which storing a whole block is cheap
// Vectors of filters from which on slicing is a small part of the products' time.
constexpr int64_t kMinSlicedVectors = 64;

// At most.
int64_t positions_of(const Type& type) {
  int64_t count = 1;
  for (size_t d = 2; d < type.dims.size(); ++d) count *= type.dims[d].extent.upper_bound();
  return count;
}

// Folding leaves a constant of it.
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

bool wants_channel_blocks(const Instruction& convolution, int block) {
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  if (!filter.is_static() || !input.dims[1].is_static() || !convolution.type().dims[1].is_static() ||
      !accumulator_of(input.dtype, filter.dtype, convolution.type().dtype) ||
      positions_of(convolution.type()) == 1)
    return false;
  for (const WindowDim& dim : convolution.attributes().window().dims)
    if (dim.input_dilation != 1) return has_polyphase_kernel(convolution, block);
  int64_t groups = convolution.attributes().integer("groups", 1), filters = filter.dim(0) / groups;
  // With few filters most of a block is unused. Where sums over windows are long that hardly matters, and
  // blocks allow Winograd's algorithm.
  int64_t taps = positions_of(filter);
  if (groups == 1)
    return 2 * filters >= block ||
           (taps > 1 && taps * filter.dim(1) >= kLongSum && !lines_fill_vectors(convolution, block));
  if (has_groups_within_blocks(convolution, block))
    return sums_in_f32(input.dtype) || sums_bytes_in_f32(convolution);
  return filters % block == 0 && filter.dim(1) % block == 0;
}

bool has_channels_for_blocks(const Instruction& convolution, const TargetInfo& target) {
  int64_t channels = convolution.operand(0).dim(1);
  if (channels >= kFewChannels) return true;
  auto product = choose_product(convolution, target, /*strict=*/false);
  return product && product->k_group() > 1 && channels > 1;
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
  if (!convolution.type().is_static() || !convolution.operand(0).type().is_static()) return false;
  auto phases = ConvolutionPhases::of(convolution);
  if (!phases || convolution.attributes().integer("groups", 1) != 1) return false;
  for (const Type* type :
       {&convolution.operand(0).type(), &convolution.operand(1).type(), &convolution.type()})
    if (!sums_in_f32(type->dtype)) return false;
  return convolution.operand(1).dim(0) % block == 0 && is_known(convolution.operand(1));
}

bool slicing_pays(int64_t filters, const TargetInfo& target) {
  return filters >= kMinSlicedVectors * target.channel_block();
}

bool is_read_from_afar(const Type& map, const TargetInfo& target) {
  return static_cast<int64_t>(map.at_bound().physical_byte_size()) >
         share_of(target.l2_bytes, cache_share::kHandedOn);
}

} // namespace firn::plan
