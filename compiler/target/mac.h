// Products: what multiplies operands of a contraction and adds to a sum, several neighbouring steps of the
// reduction at a time where they are narrow, and what each takes on a CPU.
#pragma once

#include "compiler/target/target_info.h"

#include <string_view>

namespace firn {

enum class MacKind : uint8_t {
  Fma,        // one step: factors as wide as the sum
  Dot2,       // two steps of 16 bits in a lane of 32
  Dot4,       // four of 8 bits
  Dot4Narrow, // the same of unlike bytes, of which two neighbouring products always fit 16 bits
  TileMatrix, // a block of steps, rows and columns in registers of its own
};
std::string_view name_of(MacKind kind); // "fma", "dot2", "dot4", "dot4_narrow", "tile_matrix"
// Neighbouring steps that a lane of a vector holds, in products of vectors.
int k_group_of(MacKind kind);

// What products of several steps multiply; integers are summed in i32, bf16 in f32.
enum class Factor : uint8_t { U8, S8, BF16 };

enum class MacForm : uint8_t {
  Native,  // one instruction
  Offset,  // that for bytes of other signs: one factor moves by 128, and what this adds is taken back
  Pairs,   // even and odd steps apart, widened: 16-bit products summed in pairs
  PerStep, // a multiplication and an addition for each step
};

struct MacFacts {
  MacForm form = MacForm::PerStep;
  int register_bits = 32;     // of the widest register the form has
  double instructions = 1;    // for a vector of sums, where an FMA takes one
  int operand_registers = 1;  // that a vector of factors takes while it is multiplied
  int constant_registers = 0; // that all products share
  int sum_latency = 0;        // cycles from a sum to the next one over it; 0: an FMA's for each instruction
};
// How the CPU does such a product, its factors in either order.
MacFacts dot4_facts(const TargetInfo& target, Factor lhs, Factor rhs);
MacFacts narrow_dot4_facts(const TargetInfo& target);
MacFacts i16_dot2_facts(const TargetInfo& target);
MacFacts bf16_dot2_facts(const TargetInfo& target);
// Of a step of floats, or of integers of 32 bits.
MacFacts fma_facts(const TargetInfo& target, bool is_float);

// Tile matrices: sums of `rows` x 16 columns += rows of steps, as many bytes as a row has, times rows of k
// groups of 32 bits for each column.
struct TileMatrixFacts {
  static constexpr int kRegisters = 8, kRows = 16, kRowBytes = 64;
  // Of a product, for each row of its sums; of each operand that is loaded among them; and from a product to
  // the next of the same sums.
  static constexpr double kRowCycles = 1, kLoadCycles = 1, kLatency = 52;
  static constexpr double kRowsPerCycle = 2;      // loaded from the first cache level
  static constexpr double kL2BytesPerCycle = 90;  // from the second, on top of that
  static constexpr double kConfigureCycles = 170; // with the release
};

} // namespace firn
