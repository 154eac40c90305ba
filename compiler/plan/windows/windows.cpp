// Cuts walks over windows into tiles.
#include "compiler/plan/windows/windows.h"

#include "compiler/graph/builder.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/mac_instruction.h"
#include "compiler/plan/roots.h"

#include <algorithm>
#include <bit>

namespace firn::plan {
namespace {

// Pixels of a depthwise tile: enough to hide the latency of FMAs, few enough for their registers.
constexpr int64_t kMinPixels = 6, kMaxPixels = 14;
// Pixels of a tile whose CPU has so few registers that they hold no more sums beside a line of taps.
constexpr int64_t kFewRegisters = 8, kMinPixelsOfFew = 3;
// Pixels of a depthwise tile whose window is a loop: at an edge, each pixel has loops of its own.
constexpr int64_t kRolledPixels = 8;
constexpr int64_t kSmallCodePixels = 6; // pixels if small code comes before speed
// FMAs of one tile that are emitted as straight code; products that are added separately count twice.
constexpr int64_t kMaxUnrolledFmas = 160;
constexpr int64_t kMaxPooledPixels = 8;
// Window positions of one pooling tile that are emitted as straight code.
constexpr int64_t kMaxUnrolledSteps = 200;
constexpr int64_t kMaxRowWindow = 16; // positions of a row window that is straight code
constexpr int64_t kShortLine = 6;     // positions; tiles lie along a longer dim, if there is one

// The channels of a block if the layout is plain apart from these blocks; else 0.
int channel_block(const Type& type) {
  const Layout& layout = type.layout;
  bool is_blocked = layout.blocks.size() == 1 && layout.blocks[0].dim == 1 && layout.strides.empty() &&
                    std::is_sorted(layout.order.begin(), layout.order.end());
  return is_blocked ? layout.blocks[0].size : 0;
}

// Whether windows walk blocks that are whole vectors.
bool has_window_tiles(const Type& input, const Type& result, const std::vector<WindowDim>& window,
                      int lanes) {
  int block = channel_block(input);
  return block > 0 && block % lanes == 0 && channel_block(result) == block && lanes >= 2 && !window.empty() &&
         input.at_bound().num_elements() > 0 && result.at_bound().num_elements() > 0 &&
         std::all_of(window.begin(), window.end(),
                     [](const WindowDim& dim) { return dim.input_dilation == 1; });
}

// On machines without vectors each lane of a pixel takes registers of its own.
constexpr int64_t kScalarPixels = 4, kScalarIntegerPixels = 1;

// Whether byte channels are multiplied one by one in i32, as machines without vectors do.
bool multiplies_channels(const Instruction& convolution, const Machine& target) {
  return target.cpu.vector_bits == 0 && is_byte(convolution.operand(0).dtype()) &&
         is_byte(convolution.operand(1).dtype()) && convolution.type().dtype == DType::I32 &&
         convolution.operand(1).dim(1) == 1;
}

int64_t size_of(const std::vector<WindowDim>& window) {
  int64_t size = 1;
  for (const WindowDim& dim : window) size *= dim.size;
  return size;
}

// The last spatial dim, unless it is too short to keep the pipes busy and another is longer. The bounds
// decide for extents that vary.
int64_t tiled_dim(const Type& result, size_t dims) {
  auto extent = [bound = result.at_bound()](int64_t dim) { return bound.dim(static_cast<int>(dim) + 2); };
  int64_t along = static_cast<int64_t>(dims) - 1;
  if (extent(along) < kShortLine)
    for (int64_t dim = 0; dim < static_cast<int64_t>(dims); ++dim)
      if (extent(dim) > extent(along)) along = dim;
  return along;
}

bool is_rolled(const Type& result, const std::vector<WindowDim>& window) {
  return window[static_cast<size_t>(tiled_dim(result, window.size()))].size > kMaxUnrolledWindow;
}

// Cuts a result into tiles of at most `max_pixels`. Straight code holds at most `max_body_k` products,
// `k_extent` of them for a window.
WindowTiling cut(const Type& result, const std::vector<WindowDim>& window, int64_t max_pixels,
                 int64_t k_extent, int64_t max_body_k) {
  WindowTiling tiling;
  tiling.along = tiled_dim(result, window.size());
  tiling.rolled = is_rolled(result, window);
  if (tiling.rolled) max_pixels = std::min(max_pixels, kRolledPixels);
  int64_t extent = result.at_bound().dim(static_cast<int>(tiling.along) + 2);
  int64_t tiles = (extent + max_pixels - 1) / max_pixels;
  tiling.pixels = (extent + tiles - 1) / tiles;
  tiling.unrolled = !tiling.rolled && k_extent * tiling.pixels <= max_body_k;
  return tiling;
}

// Constants that the epilogue keeps in registers. A long epilogue has a loop and all registers of its own.
int64_t epilogue_constants(const Instruction& instruction) {
  if (!instruction.is(Opcode::Fusion) || has_long_epilogue(instruction)) return 0;
  int64_t count = 0;
  for (const auto& inner : instruction.region().instructions()) {
    switch (inner->opcode()) {
    case Opcode::Add:
    case Opcode::Multiply:
    case Opcode::Maximum:
    case Opcode::Minimum: count += 1; break;
    case Opcode::Clamp:
    case Opcode::MultiplyAdd: count += 2; break;
    case Opcode::Narrow: count += inner->attributes().integer("zero", 0) == 0 ? 2 : 3; break;
    default: break;
    }
  }
  return std::min<int64_t>(count, 6);
}

// The convolution, if its groups have so few channels that they divide a vector.
const Instruction* depthwise_convolution(const Instruction& instruction, const PlanOptions& options) {
  auto root = find_contraction(instruction);
  if (!root || !root->op->is(Opcode::Convolution)) return nullptr;
  const Instruction& convolution = *root->op;
  const Type &input = convolution.operand(0).type(), &filter = convolution.operand(1).type();
  if (!filter.is_static()) return nullptr;
  int64_t groups = convolution.attributes().integer("groups", 1);
  int64_t lanes = window_lanes(options.target), channels = filter.dim(1);
  bool narrow = groups > 1 && channels > 0 && filter.dim(0) == groups * channels && lanes % channels == 0 &&
                channels != lanes;
  bool in_f32 = accumulates_bytes_in_f32(convolution) && options.target.cpu.vector_bits > 0;
  bool typed = (in_f32 || multiplies_channels(convolution, options.target) ||
                (accumulates_in_f32(input.dtype) && input.dtype == filter.dtype &&
                 accumulates_in_f32(convolution.type().dtype))) &&
               filter.layout.is_plain();
  bool tiled = channel_block(input) % lanes == 0 &&
               has_window_tiles(input, instruction.type(), convolution.attributes().window().dims,
                                static_cast<int>(lanes));
  return narrow && typed && tiled ? &convolution : nullptr;
}

// Whether a product of several steps can take as many lines of the convolution's windows.
bool has_row_groups(const Instruction& convolution, const MacInstruction& mac) {
  return mac.kind == MacKind::Dot4 && check_mac(mac, convolution).empty() &&
         convolution.operand(1).dim(1) == 1 && convolution.attributes().window().dims.size() == 2;
}

// Chooses products of bytes if they are one instruction and save steps; else those of f32.
MacInstruction choose_row_mac(const Instruction& convolution, const Type& result, const Machine& target) {
  std::optional<MacInstruction> mac = choose_mac(convolution, target, /*strict=*/false);
  if (!mac || !has_row_groups(convolution, *mac)) return {};
  MacFacts facts = facts_of(*mac, target);
  if (facts.form != MacForm::Native || facts.register_bits < target.cpu.register_bits()) return {};
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  int64_t along = tiled_dim(result, window.size()), map_rows = window[static_cast<size_t>(1 - along)].size;
  // Lines in groups are straight code, and so are the positions along them.
  bool is_short = map_rows <= kMaxUnrolledWindow && !is_rolled(result, window);
  return is_short && map_rows > 1 ? *mac : MacInstruction{};
}

bool starts_from(const Instruction& reduce, const Literal& identity) {
  const Instruction& initial = *reduce.operand(1).def;
  return initial.is(Opcode::Constant) && !initial.literal()->is_opaque() &&
         initial.literal()->num_elements() == 1 && initial.literal()->get_double(0) == identity.get_double(0);
}

// Whether a window reduction is by maximum, minimum or sum, and starts from that reducer's identity.
bool is_simple_pooling(const Instruction& pooling) {
  DType dtype = pooling.type().dtype;
  std::optional<Opcode> reducer = simple_reducer(pooling);
  return reducer && (*reducer == Opcode::Maximum || *reducer == Opcode::Minimum || *reducer == Opcode::Add) &&
         starts_from(pooling, *reducer_identity(*reducer, dtype));
}

std::string check(const WindowTiling& tiling, const Type& result, size_t dims) {
  if (tiling.along < 0 || tiling.along >= static_cast<int64_t>(dims))
    return "tiles lie along a spatial dim, of which there are " + std::to_string(dims);
  int64_t extent = result.at_bound().dim(static_cast<int>(tiling.along) + 2);
  if (tiling.pixels < 1 || tiling.pixels > extent)
    return "a tile has 1 to " + std::to_string(extent) + " pixels of its line";
  return "";
}

// Taps pass through registers, of which a pixel's channels take most.
DepthwisePlan plan_scalar_depthwise(const Instruction& instruction, const Instruction& convolution,
                                    const PlanOptions& options) {
  const std::vector<WindowDim>& window = convolution.attributes().window().dims;
  bool in_integers = multiplies_channels(convolution, options.target);
  int64_t k_extent = size_of(window) * convolution.operand(1).dim(1);
  DepthwisePlan plan;
  if (in_integers)
    plan.mac = {MacKind::Fma, convolution.operand(0).dtype(), convolution.operand(1).dtype(), DType::I32};
  plan.tiling = cut(instruction.type(), window, in_integers ? kScalarIntegerPixels : kScalarPixels, k_extent,
                    options.goals.optimize_size() ? 0 : kMaxUnrolledFmas / 4);
  // A tile of one pixel keeps no pipe busy along a longer dim either, and other kernels walk lines.
  if (plan.tiling.pixels == 1 && window.back().size <= kMaxUnrolledWindow) {
    plan.tiling.along = static_cast<int64_t>(window.size()) - 1;
    plan.tiling.rolled = false;
  }
  plan.rolled_epilogue = has_long_epilogue(instruction);
  plan.bias_in_accumulators = instruction.is(Opcode::Fusion);
  return plan;
}

} // namespace

int window_lanes(const Machine& target) {
  return target.cpu.vector_bits == 0 ? target.cpu.channel_block() : target.cpu.lanes(32);
}

// Tiles have as many pixels as leave registers for taps and epilogue; that is still enough to hide the
// latency of FMAs.
std::optional<DepthwisePlan> plan_depthwise(const Instruction& instruction, const PlanOptions& options) {
  const Instruction* convolution = depthwise_convolution(instruction, options);
  if (!convolution) return std::nullopt;
  const Machine& target = options.target;
  if (target.cpu.vector_bits == 0) return plan_scalar_depthwise(instruction, *convolution, options);
  const std::vector<WindowDim>& window = convolution->attributes().window().dims;
  DepthwisePlan plan;
  plan.mac = choose_row_mac(*convolution, instruction.type(), target);
  bool in_groups = plan.mac.k_group() > 1;
  int64_t channels = convolution->operand(1).dim(1),
          registers = target.cpu.vector_registers / target.cpu.vector_parts; // each for a vector of channels
  int64_t products = target.cpu.has_fma || in_groups ? 0 : 3;                // registers of products
  int64_t inputs = in_groups ? 1 + plan.mac.k_group() : 3; // registers of inputs, some being loaded
  int64_t spare = inputs + products + epilogue_constants(instruction);
  int64_t line = 0, taps = size_of(window) * channels;
  for (const WindowDim& dim : window) line = std::max(line, dim.size);
  if (in_groups) {
    auto along = static_cast<size_t>(tiled_dim(instruction.type(), window.size()));
    line = window[along].size;
    taps = line * ((window[1 - along].size + plan.mac.k_group() - 1) / plan.mac.k_group());
  }
  const int64_t pixels = target.cpu.vector_registers <= kFewRegisters ? kMinPixelsOfFew : kMinPixels;
  int64_t min = (pixels + target.cpu.vector_parts - 1) / target.cpu.vector_parts;
  bool fits = taps + min + spare <= registers;
  bool rolled = is_rolled(instruction.type(), window);
  int64_t max = registers - spare - (fits ? taps : rolled ? channels : std::min(line, registers / 2));
  plan.tiling = options.goals.optimize_size()
                    ? cut(instruction.type(), window, kSmallCodePixels, taps, 0)
                    : cut(instruction.type(), window, std::clamp<int64_t>(max, min, kMaxPixels), taps,
                          kMaxUnrolledFmas / (products == 0 ? 1 : 2));
  plan.taps_in_registers = plan.tiling.unrolled && fits;
  plan.rolled_epilogue = has_long_epilogue(instruction);
  // With all taps in registers and most columns used once, no register is left for the bias to start from.
  plan.bias_in_accumulators =
      instruction.is(Opcode::Fusion) && (in_groups || is_float(convolution->type().dtype)) &&
      (in_groups || !plan.taps_in_registers || window[static_cast<size_t>(plan.tiling.along)].stride == 1);
  return plan;
}

std::optional<PoolingPlan> plan_pooling(const Instruction& instruction, const PlanOptions& options) {
  auto root = find_pooling(instruction);
  if (!root) return std::nullopt;
  const Instruction& pooling = *root->op;
  const std::vector<WindowDim>& all = pooling.attributes().window().dims;
  DType dtype = pooling.type().dtype;
  bool of_bytes = is_integer(dtype) && bit_width(dtype) == 8 && simple_reducer(pooling) != Opcode::Add;
  if ((!accumulates_in_f32(dtype) && !of_bytes) || !is_simple_pooling(pooling) || all.size() < 3 ||
      !(all[0] == WindowDim{}) || !(all[1] == WindowDim{}))
    return std::nullopt;
  std::vector<WindowDim> window(all.begin() + 2, all.end());
  const Machine& target = options.target;
  if (!has_window_tiles(root->operands[0].type(), instruction.type(), window, target.cpu.lanes(32)))
    return std::nullopt;
  int64_t max =
      options.goals.optimize_size()
          ? 1
          : std::min<int64_t>(kMaxPooledPixels, target.cpu.vector_registers / target.cpu.vector_parts / 2);
  return PoolingPlan{cut(instruction.type(), window, max, size_of(window),
                         options.goals.optimize_size() ? 0 : kMaxUnrolledSteps)};
}

std::string complete(RowPoolingPlan& plan, const Instruction& instruction, const PlanOptions& options) {
  auto root = find_pooling(instruction);
  if (!root || !accumulates_in_f32(root->op->type().dtype) || !is_simple_pooling(*root->op))
    return "this is no pooling by maximum, minimum or sum in f32";
  const Type &input = root->operands[0].type(), &result = instruction.type();
  if (instruction.num_results() != 1 || !input.layout.is_plain() || !result.layout.is_plain())
    return "rows do not lie side by side";
  if (input.at_bound().num_elements() == 0 || result.at_bound().num_elements() == 0)
    return "it wants elements";
  const std::vector<WindowDim>& window = root->op->attributes().window().dims;
  if (!std::all_of(window.begin(), window.end(),
                   [](const WindowDim& dim) { return dim.input_dilation == 1; }))
    return "there are zeros between the elements of its operand";
  const WindowDim& along = window.back();
  int64_t lanes = options.target.cpu.lanes(32);
  if (along.size < 2 || along.size > kMaxRowWindow || along.dilation != 1 || along.stride > 2)
    return "windows along a line have 2 to " + std::to_string(kMaxRowWindow) +
           " elements, the next after one or two";
  if (along.pad_low < 0 || along.pad_low > std::max<int64_t>(lanes, kMaxRowWindow))
    return "rows start inside their windows";
  if (plan.lanes == 0) plan.lanes = lanes;
  return plan.lanes <= options.target.cpu.lanes(8) && std::has_single_bit(static_cast<uint64_t>(plan.lanes))
             ? ""
             : "vectors have a power of two lanes";
}

std::string check(const DepthwisePlan& plan, const Instruction& instruction, const PlanOptions& options) {
  const Instruction* convolution = depthwise_convolution(instruction, options);
  if (!convolution) return "this is no depthwise convolution over blocked channels";
  if (plan.taps_in_registers && !plan.tiling.unrolled) return "taps_in_registers needs unrolled";
  if (plan.mac.k_group() > 1 && plan.tiling.rolled)
    return "rows that are multiplied four at a time are unrolled";
  bool in_integers = multiplies_channels(*convolution, options.target);
  if (in_integers != (plan.mac.accumulator == DType::I32 && plan.mac.k_group() == 1))
    return "bytes are multiplied in i32 on machines without vectors, and only there";
  if (in_integers && plan.taps_in_registers) return "channels leave no registers for taps";
  if (plan.mac.k_group() > 1 && !has_row_groups(*convolution, plan.mac))
    return "four rows of bytes are multiplied by dot4 in depthwise convolutions with windows of two dims";
  return check(plan.tiling, instruction.type(), convolution->attributes().window().dims.size());
}

std::string check(const PoolingPlan& plan, const Instruction& instruction, const PlanOptions& options) {
  if (!plan_pooling(instruction, options)) return "this is no pooling over blocked channels";
  return check(plan.tiling, instruction.type(), static_cast<size_t>(instruction.type().rank() - 2));
}

} // namespace firn::plan
