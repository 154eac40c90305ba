// Recognises convolutions over buffered lines, and chooses how many lines are buffered.
#include "compiler/plan/windows/line_buffer.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/plan/windows/windows.h"

#include <algorithm>

namespace firn::plan {
namespace {

constexpr int kRank = 4;
// The buffer's share of what the convolution reads and writes. Lines that two strips read are made twice, so
// that low strips take time, and high ones memory.
constexpr int64_t kBufferShare = 16;
// The share where lines are results of a convolution, which cost more to make twice.
constexpr int64_t kProducedShare = 4;

bool is_map(const Type& type) {
  return type.rank() == kRank && type.is_static() && type.num_elements() > 0 && type.layout.strides.empty() &&
         type.layout.blocks.size() <= 1;
}

// The convolution whose kernel can walk lines of its map; the map is left to the caller.
std::optional<LineBuffer> line_walk(const Instruction& member, const PlanOptions& options) {
  const Instruction* convolution = convolution_of(member);
  if (!convolution || !is_map(convolution->operand(0).type()) || !member.type().is_static())
    return std::nullopt;
  LineBuffer buffer;
  buffer.convolution = &member;
  if (walks_lines_of_blocks(member, options))
    buffer.block = window_lanes(options.target);
  else if (!walks_lines(member, options))
    return std::nullopt;
  const Type& map = convolution->operand(0).type();
  bool has_whole_blocks = map.layout.blocks.size() == 1 && map.dim(1) % map.layout.blocks[0].size == 0;
  if (buffer.block > 0 && !has_whole_blocks) return std::nullopt;
  buffer.across = convolution->attributes().window().dims[0];
  return buffer;
}

bool is_pointwise(const Instruction& convolution) {
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  return std::all_of(window.begin(), window.end(), [](const WindowDim& dim) { return dim.size == 1; });
}

// Whether the spatial dims alone are padded, by a number that is known, and none of them is cut.
bool pads_lines(const Instruction& pad) {
  if (!pad.is(Opcode::Pad) || !is_map(pad.type())) return false;
  const Literal* value =
      pad.operand(1).def->is(Opcode::Constant) ? pad.operand(1).def->literal().get() : nullptr;
  if (!value || !value->values_may_be_used()) return false;
  for (const char* name : {"low", "high", "interior"}) {
    std::vector<int64_t> counts = pad.attributes().ints(name);
    if (counts[0] != 0 || counts[1] != 0 || counts[2] < 0 || counts[3] < 0) return false;
  }
  std::vector<int64_t> interior = pad.attributes().ints("interior");
  return interior[2] == 0 && interior[3] == 0;
}

// Whether the kernel of `producer` can make lines of the map that `pad` makes for such a walk, whose channels
// lie in the blocks that it filters at once.
bool makes_lines(const Instruction& producer, const Instruction& pad, const LineBuffer& walk,
                 const PlanOptions& options) {
  const std::vector<WindowDim>& window = convolution_of(*walk.convolution)->attributes().window().dims;
  bool is_inside = std::all_of(window.begin(), window.end(),
                               [](const WindowDim& dim) { return dim.pad_low == 0 && dim.pad_high == 0; });
  const bool by_blocks = walk.block > 0 && pad.type().layout.blocks.size() == 1 &&
                         pad.type().layout.blocks[0].size == walk.block;
  return by_blocks && is_inside && pads_lines(pad) && producer.type() == pad.operand(0).type() &&
         is_map(producer.type()) && walks_lines(producer, options);
}

int64_t bytes(const Type& type) {
  return static_cast<int64_t>(type.physical_byte_size());
}

} // namespace

int64_t LineBuffer::covered(int64_t rows) const {
  const Type& type = convolution_of(*convolution)->operand(0).type();
  return std::min((rows - 1) * across.stride + across.dilated_size(),
                  type.dim(2) + across.pad_low + across.pad_high);
}

Type LineBuffer::part(int64_t rows) const {
  Type part = convolution_of(*convolution)->operand(0).type();
  part.dims[0] = Dim(1);
  if (block > 0 && !producer) {
    part.dims[1] = Dim(block);
    part.layout.blocks[0].size = block;
  }
  part.dims[2] = Dim(covered(rows));
  return part;
}

std::optional<LineBuffer> find_line_buffer(const Instruction& fusion, const PlanOptions& options) {
  if (!has_fusion_kind(fusion, FusionKind::LineBuffer)) return std::nullopt;
  const Instruction& member = *fusion_members(fusion).back();
  std::optional<LineBuffer> buffer = line_walk(member, options);
  if (!buffer) return std::nullopt;
  Value input = convolution_of(member)->operand(0);
  buffer->map = convolution_of(member) == &member ? input : outside_of(member, input);
  const Instruction& first = *fusion_members(fusion)[0];
  if (&first == &member || !convolution_of(first)) return buffer;
  const Instruction& pad = *buffer->map.def;
  if (!pad.is(Opcode::Pad) || pad.operand(0).def != &first || !makes_lines(first, pad, *buffer, options))
    return std::nullopt;
  buffer->producer = &first;
  return buffer;
}

int64_t rows_to_buffer(const Instruction& producer, const Instruction& pad, const Instruction& convolution,
                       const PlanOptions& options) {
  if (!saves_memory(options.target)) return 0;
  std::optional<LineBuffer> buffer = line_walk(convolution, options);
  const Instruction* op = convolution_of(producer);
  if (!buffer || !op || !is_byte(producer.type().dtype) || !makes_lines(producer, pad, *buffer, options))
    return 0;
  buffer->producer = &producer;
  const int64_t input = bytes(op->operand(0).type()), result = bytes(convolution.type()),
                before = std::max(input + bytes(producer.type()), bytes(producer.type()) + result);
  const int64_t height = convolution.type().dim(2);
  int64_t rows = height;
  while (rows > 1 && bytes(buffer->part(rows)) > (input + result) / kProducedShare) --rows;
  // A loop takes longer whose strips make many lines twice: it has to save a quarter.
  return input + result + bytes(buffer->part(rows)) < before / 4 * 3 ? rows : 0;
}

int64_t rows_to_buffer(const Instruction& convolution, const PlanOptions& options) {
  if (!saves_memory(options.target)) return 0;
  std::optional<LineBuffer> buffer = line_walk(convolution, options);
  const Instruction* op = convolution_of(convolution);
  if (!buffer || is_pointwise(*op) || !is_byte(op->operand(0).dtype())) return 0;
  const int64_t room = (bytes(op->operand(0).type()) + bytes(convolution.type())) / kBufferShare;
  const int64_t height = convolution.type().dim(2);
  int64_t rows = height;
  while (rows > 1 && bytes(buffer->part(rows)) > room) --rows;
  int64_t strips = (height + rows - 1) / rows;
  rows = (height + strips - 1) / strips;
  return bytes(buffer->part(rows)) < bytes(op->operand(0).type()) ? rows : 0;
}

std::string complete(LineBufferPlan& plan, const Instruction& fusion, const PlanOptions& options) {
  std::optional<LineBuffer> buffer = find_line_buffer(fusion, options);
  if (!buffer) return "this is no convolution over lines of a map that its kernel can walk";
  int64_t rows = buffer->convolution->type().dim(2);
  if (plan.rows < 1 || plan.rows > rows) return "a strip has 1 to " + std::to_string(rows) + " rows";
  if (plan.code.lanes == 0)
    plan.code.lanes = element_code(value_bits(buffer->map.dtype()), options.target).lanes;
  return check_lanes(plan.code.lanes, options.target);
}

} // namespace firn::plan
