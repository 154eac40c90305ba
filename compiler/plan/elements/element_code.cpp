// Chooses the code for elements.
#include "compiler/plan/elements/element_code.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/composites.h"
#include "compiler/graph/producers.h"
#include "compiler/plan/composites.h"
#include "compiler/plan/roots.h"

#include <algorithm>
#include <bit>

namespace firn::plan {
namespace {

// Operations up to which a body counts as short, and from which on it fills the pipes alone.
constexpr int64_t kShortBody = 10, kLongBody = 24;

bool is_literal(const Instruction& instruction) {
  return instruction.is(Opcode::Constant) && instruction.literal()->num_elements() > 0 &&
         !is_immediate(*instruction.literal());
}

// The region that computes an instruction's results; a reduction's region is only its combiner.
const Region* body_of(const Instruction& instruction) {
  bool has_body = instruction.is(Opcode::Fusion) || instruction.is(Opcode::Composite);
  return has_body ? &instruction.region() : nullptr;
}

// The widest element that vectors hold. Integers of 64 bits count only as results: elsewhere they are
// indices, of which there is one per vector.
int widest_bits(const Instruction& instruction) {
  int bits = 8;
  for (int i = 0; i < instruction.num_results(); ++i)
    bits = std::max(bits, value_bits(instruction.type(i).dtype));
  auto visit = [&](const Instruction& op) {
    if (!is_elementwise(op.opcode())) return;
    // Small floats are moved as bytes, and converted by way of f32.
    bool is_small = is_small_float(op.type().dtype) || is_small_float(op.operand(0).dtype());
    if (op.is(Opcode::Convert) && is_small) bits = std::max(bits, 32);
    for (Value operand : op.operands()) {
      int width = value_bits(operand.dtype());
      if (width < 64 || is_float(operand.dtype())) bits = std::max(bits, width);
    }
  };
  if (instruction.num_regions() == 0)
    visit(instruction);
  else
    for (const auto& op : instruction.region().instructions()) visit(*op);
  return bits;
}

// Whether an element takes longer to compute than to add, so that one sum at a time is enough.
bool outlasts_addition(Value element) {
  return !walk_producers(element, [](Value value, int) {
    if (has_trait(value.def->opcode(), LongCode)) return Walk::Stop;
    return is_elementwise(value.def->opcode()) ? Walk::Into : Walk::Past;
  });
}

bool reduces(const Instruction& instruction) {
  if (instruction.is(Opcode::Reduce) || instruction.is(Opcode::Dot) || instruction.is(Opcode::Convolution))
    return true;
  const Region* body = body_of(instruction);
  return body && std::any_of(body->instructions().begin(), body->instructions().end(),
                             [](const auto& inner) { return reduces(*inner); });
}

// Whether the code of a result holds a reduction.
bool is_reduced(const Instruction& instruction, int result) {
  const Region* body = body_of(instruction);
  if (!body) return reduces(instruction);
  return !walk_producers(body->results()[static_cast<size_t>(result)],
                         [](Value value, int) { return reduces(*value.def) ? Walk::Stop : Walk::Into; });
}

void add_literals(const Region& region, std::vector<Type>& types) {
  for (const auto& inner : region.instructions()) {
    if (is_literal(*inner) && inner->has_uses()) types.push_back(inner->type());
    for (int i = 0; i < inner->num_regions(); ++i) add_literals(inner->region(i), types);
  }
}

// Types that an instruction reads from memory.
std::vector<Type> read_types(const Instruction& instruction) {
  std::vector<Type> types;
  const Region* body = body_of(instruction);
  for (int i = 0; i < instruction.num_operands(); ++i) {
    Value operand = instruction.operand(i);
    const auto& results = body ? body->results() : std::vector<Value>();
    bool is_read = body ? body->parameter(i).def->has_uses() ||
                              std::find(results.begin(), results.end(), body->parameter(i)) != results.end()
                        : !operand.def->is(Opcode::Constant) || is_literal(*operand.def);
    if (is_read) types.push_back(operand.type());
  }
  if (body) add_literals(*body, types);
  return types;
}

} // namespace

bool is_immediate(const Literal& literal) {
  return literal.dtype() != DType::String && literal.is_splat();
}

int value_bits(DType dtype) {
  if (dtype == DType::F16 || dtype == DType::BF16) return 32;
  return dtype == DType::Bool ? 8 : std::max(8, bit_width(dtype));
}

std::string check_lanes(int64_t lanes, const Machine& target) {
  int64_t max = target.cpu.lanes(8);
  if (lanes <= max && std::has_single_bit(static_cast<uint64_t>(lanes))) return "";
  return "vectors have a power of two up to " + std::to_string(max) + " lanes";
}

ElementCode element_code(int bits, const Machine& target) {
  ElementCode code;
  code.lanes = bits > 64 ? 1 : std::max(1, target.cpu.register_lanes(bits));
  return code;
}

ElementItems element_items(int threads, int64_t k_extent) {
  if (threads <= 1) return {1 << 14, 16};
  return {std::max<int64_t>(1, (1 << 11) / k_extent), std::max<int64_t>(16, 4 * threads)};
}

int64_t steps_of_item(const ElementItems& items, int64_t outer, const IntExpr& extent, int64_t inner) {
  if (extent.is_constant()) return 1;
  int64_t enough = items.min_elements / 4 / std::max<int64_t>(1, inner);
  return std::max<int64_t>(1, std::min(enough, outer * extent.upper_bound() / items.wanted));
}

int64_t vectors_of_item(const ElementItems& items, int64_t vectors, int64_t lanes, int64_t unroll) {
  constexpr int64_t kMaxItems = 64;
  int64_t count = std::max<int64_t>(items.min_elements / 4 / lanes, (vectors + kMaxItems - 1) / kMaxItems);
  return std::max<int64_t>(count / unroll * unroll, 1);
}

int64_t unroll_along(int64_t vectors, int64_t unroll) {
  return vectors >= 2 * unroll ? unroll : 1;
}

int64_t parts_of_slices(int threads, int64_t elements, int64_t extent, int64_t lanes) {
  constexpr int64_t kMinVectors = 4;
  if (threads <= 1) return 1;
  const ElementItems items = element_items(threads, 1);
  return std::max<int64_t>(
      1, std::min({items.wanted, elements / items.min_elements, extent / (kMinVectors * lanes)}));
}

int64_t unroll_of(const ElementCode& code, int64_t operations) {
  if (operations <= kShortBody) return code.unroll;
  return operations <= kLongBody ? std::max<int64_t>(1, code.unroll / 2) : 1;
}

// Enough partial results to hide the latency, but so few that folding them at the end is little beside the
// steps.
int64_t accumulators_of(const ElementCode& code, const Instruction& reduce, ReductionWalk walk,
                        int64_t k_extent) {
  if (outlasts_addition(reduce.operand(0))) return 1;
  if (walk == ReductionWalk::Elements) return std::clamp<int64_t>(k_extent / 2, 1, code.accumulators);
  int64_t count = 1;
  while (2 * count <= code.accumulators &&
         4 * count * (walk == ReductionWalk::Vectors ? count : 1) <= k_extent)
    count *= 2;
  return count;
}

std::optional<Layout::Block> reduced_blocks(const Instruction& instruction, int result) {
  const Type& type = instruction.type(result);
  if (!type.is_tensor() || !type.layout.is_plain() || type.rank() == 0 || !is_reduced(instruction, result))
    return std::nullopt;
  int dim = type.rank() - 1;
  while (dim > 0 && type.dims[static_cast<size_t>(dim)] == Dim(1)) --dim;
  for (const Type& read : read_types(instruction)) {
    const Layout& layout = read.layout;
    if (layout.blocks.size() == 1 &&
        read.dims[static_cast<size_t>(layout.blocks[0].dim)] == type.dims[static_cast<size_t>(dim)])
      return Layout::Block{dim, layout.blocks[0].size};
  }
  return std::nullopt;
}

// Whether arguments of sines are reduced in integers of 64 bits that no vector of the CPU has.
static bool reduces_without_vectors(const Instruction& instruction, const Machine& target) {
  auto reduces = [](const Instruction& op) {
    return op.is(Opcode::Sine) || op.is(Opcode::Cosine) || op.is(Opcode::Tan);
  };
  if (target.cpu.vector_bits == 0 || target.cpu.has_vectors_of(64)) return false;
  if (instruction.num_regions() == 0) return reduces(instruction);
  const auto& all = instruction.region().instructions();
  return std::any_of(all.begin(), all.end(), [&](const auto& op) { return reduces(*op); });
}

std::string complete(ElementsPlan& plan, const Instruction& instruction, const Machine& target) {
  if (!has_element_form(instruction) ||
      (instruction.is(Opcode::Composite) && !is_elementwise_composite(instruction)))
    return "its results have no code per element";
  for (int i = 0; i < instruction.num_results(); ++i)
    if (is_sub_byte(instruction.type(i).dtype)) return "several elements of its result lie in one byte";
  bool has_blocks = false;
  for (int i = 0; i < instruction.num_results(); ++i)
    has_blocks = has_blocks || reduced_blocks(instruction, i);
  if (plan.code.lanes == 0) {
    // Vectors that walk blocks take whole registers.
    plan.code.lanes = has_blocks ? std::max(1, target.cpu.lanes(widest_bits(instruction)))
                                 : element_code(widest_bits(instruction), target).lanes;
    if (reduces_without_vectors(instruction, target)) plan.code.lanes = 1;
    plan.in_blocks |= has_blocks;
  }
  if (widest_bits(instruction) > 64 && plan.code.lanes > 1) return "strings are moved one by one";
  if (plan.in_blocks && !has_blocks) return "no operand of a reduction lies in blocks of its result's dim";
  return check_lanes(plan.code.lanes, target);
}

} // namespace firn::plan
