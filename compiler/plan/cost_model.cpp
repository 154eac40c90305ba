// Counts work and traffic of instructions from their types alone.
#include "compiler/plan/cost_model.h"

#include "compiler/plan/mac_instruction.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

// The part of the shorter one of computing and streaming that the other does not hide.
constexpr double kExposed = 0.5;

double max(const Dim& dim) {
  return static_cast<double>(dim.extent.upper_bound());
}

// Elements at the bounds of dims that vary.
double elements(const Type& type) {
  if (!type.is_tensor()) return 0;
  double count = 1;
  for (const Dim& dim : type.dims) count *= max(dim);
  return count;
}

// Products per element of a contraction's result.
double products(const Instruction& contraction) {
  const Type &lhs = contraction.operand(0).type(), &rhs = contraction.operand(1).type();
  double count = 1;
  if (contraction.is(Opcode::Dot))
    for (int64_t dim : contraction.attributes().ints("lhs_contract"))
      count *= max(lhs.dims[static_cast<size_t>(dim)]);
  else if (elements(rhs) > 0)
    count = elements(rhs) / max(rhs.dims[0]);
  return count;
}

// Results of a contraction per column; columns are output channels, or the free elements of a dot's constant
// operand.
double rows_of(const Instruction& contraction) {
  const Type &lhs = contraction.operand(0).type(), &rhs = contraction.operand(1).type();
  double results = elements(contraction.type());
  if (contraction.is(Opcode::Convolution)) return results / std::max(1.0, max(contraction.type().dims[1]));
  bool lhs_constant = contraction.operand(0).def->is(Opcode::Constant);
  double columns = elements(lhs_constant ? lhs : rhs) / std::max(1.0, products(contraction));
  return results / std::max(1.0, columns);
}

// Cycles of one step of one sum in tile matrices, if each loaded operand serves two products. Columns that do
// not stay in the first cache level come from the second.
double tile_matrix_cycles(const Instruction& contraction, const MacInstruction& mac, const Machine& target) {
  using Facts = TileMatrixFacts;
  constexpr double kProducts = 2, kGroups = 16;
  double rows = std::clamp<double>(rows_of(contraction), 1, Facts::kRows),
         panel = products(contraction) / mac.k_group() * Facts::kRowBytes,
         cycles = rows * Facts::kRowCycles + Facts::kLoadCycles;
  if (panel > cache_share::kWorkingSet * static_cast<double>(target.cpu.l1_bytes))
    cycles += kGroups * Facts::kRowBytes / kProducts / Facts::kL2BytesPerCycle;
  return cycles / (rows * target.cpu.lanes(32) * kGroups * mac.k_group());
}

// Products of several steps that a step of a convolution takes. They hold neighbouring channels; if these
// fill no whole products, a word is put together from the channels there are, which takes another
// instruction.
double products_of_channels(const Instruction& convolution, double instructions, int k_group) {
  double channels = max(convolution.operand(1).type().dims[1]),
         groups = std::ceil(channels / static_cast<double>(k_group));
  bool fills = channels == groups * k_group || convolution.attributes().integer("groups", 1) > 1;
  return fills ? instructions / k_group : (groups * instructions + 1) / channels;
}

// The time of one step of the reduction, in FMAs: less than one if a product takes several steps, or rows and
// columns.
double products_of_step(const Instruction& contraction, const Machine& target) {
  auto mac = choose_mac(contraction, target, /*strict=*/false);
  if (!mac) return 1;
  bool is_one = mac->kind == MacKind::Fma;
  double instructions = facts_of(*mac, target).instructions;
  double in_vectors = is_one ? 1
                      : contraction.is(Opcode::Convolution)
                          ? products_of_channels(contraction, instructions, mac->k_group())
                          : instructions / mac->k_group();
  auto matrices = in_tile_matrices(*mac, target, /*strict=*/false);
  if (!matrices) return in_vectors;
  double fmas_per_cycle = target.cpu.register_lanes(32) * target.cpu.fma_pipes;
  return std::min(in_vectors, tile_matrix_cycles(contraction, *matrices, target) * fmas_per_cycle);
}

// Limits and their constants, a rounding, a conversion and a truncation.
constexpr double kNarrowOperations = 6;

// Counts multiply-adds, or other operations, of which a machine does equally many.
double operations(const Instruction& instruction, const Machine& target) {
  double count = 0;
  if (instruction.num_results() == 1 && !instruction.is(Opcode::Constant) &&
      !instruction.is(Opcode::Parameter))
    count = elements(instruction.type()) * (instruction.is(Opcode::Narrow) ? kNarrowOperations : 1);
  if (instruction.is(Opcode::Dot) || instruction.is(Opcode::Convolution))
    return count * products(instruction) * products_of_step(instruction, target);
  double inner_count = 0;
  for (int i = 0; i < instruction.num_regions(); ++i)
    for (const auto& inner : instruction.region(i).instructions()) inner_count += operations(*inner, target);
  return std::max(count, inner_count);
}

double bytes_of(const Type& type) {
  if (!type.is_tensor()) return 0;
  return type.is_static() ? static_cast<double>(type.physical_byte_size())
                          : elements(type) * bit_width(type.dtype) / 8;
}

} // namespace

double bytes_per_cycle(double working_set, const Machine& target) {
  auto stays = [&](int64_t cache_bytes) {
    return working_set <= cache_share::kWorkingSet * static_cast<double>(cache_bytes);
  };
  return stays(target.cpu.l1_bytes)   ? target.cpu.l1_bytes_per_cycle
         : stays(target.cpu.l2_bytes) ? target.cpu.l2_bytes_per_cycle
         : stays(target.cpu.l3_bytes) ? target.cpu.l3_bytes_per_cycle
                                      : target.cpu.memory_bytes_per_cycle;
}

double stream_cycles(double bytes, int64_t passes, const Machine& target, int64_t model_weight_bytes) {
  auto rate = [&](double stays) {
    return stays <= cache_share::kWeights * static_cast<double>(target.cpu.l2_bytes)
               ? target.cpu.l2_bytes_per_cycle
           : stays <= static_cast<double>(target.cpu.l3_bytes) ? target.cpu.l3_bytes_per_cycle
                                                               : target.cpu.memory_bytes_per_cycle;
  };
  double first = bytes / rate(std::max(bytes, static_cast<double>(model_weight_bytes)));
  return first + static_cast<double>(passes - 1) * bytes / rate(bytes);
}

double overlapped(double compute, double stream) {
  return std::max(compute, stream) + kExposed * std::min(compute, stream);
}

double imbalance(int64_t items, int threads) {
  int64_t max = (items + threads - 1) / threads;
  return static_cast<double>(max * threads) / static_cast<double>(items);
}

double predicted_cycles(const Instruction& instruction, const Machine& target, int64_t model_weight_bytes) {
  double count = operations(instruction, target), weights = 0, activations = 0;
  for (Value operand : instruction.operands()) {
    // A gather reads only a part of its table.
    double part = std::min(1.0, count / std::max(1.0, elements(operand.type())));
    if (operand.def->is(Opcode::Constant))
      weights += part * bytes_of(operand.type());
    else
      activations += bytes_of(operand.type());
  }
  for (int i = 0; i < instruction.num_results(); ++i) activations += bytes_of(instruction.type(i));
  double compute = count / (target.cpu.register_lanes(32) * target.cpu.fma_pipes);
  return overlapped(std::max(compute, activations / target.cpu.l2_bytes_per_cycle),
                    stream_cycles(weights, 1, target, model_weight_bytes));
}

int64_t constant_bytes(const Region& region) {
  int64_t bytes = 0;
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Constant)) bytes += static_cast<int64_t>(instruction->type().byte_size());
    for (int i = 0; i < instruction->num_regions(); ++i) bytes += constant_bytes(instruction->region(i));
  }
  return bytes;
}

double extent_at(const Dim& dim, Size size) {
  auto at_least_one = [](int64_t bound) { return static_cast<double>(std::max<int64_t>(1, bound)); };
  double min = at_least_one(dim.extent.lower_bound()), max = at_least_one(dim.extent.upper_bound());
  if (dim.counted) min = std::max(min, std::sqrt(max));
  return size == Size::Min ? min : size == Size::Max ? max : std::sqrt(min * max);
}

double part_at(const Type& type, Size size) {
  double part = 1;
  for (const Dim& dim : type.dims)
    if (!dim.is_static()) part *= extent_at(dim, size) / std::max(1.0, max(dim));
  return part;
}

} // namespace firn::plan
