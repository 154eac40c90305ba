// Products (multiply-accumulate): each multiplies operands of a contraction and adds to a sum, several
// neighbouring steps of the reduction at a time if operands are narrow. MacFacts says what one costs on a
// CPU.
//
// The instructions: VNNI, AVX512-BF16 and AMX of x86, the dot products and bf16 products of ARM, SMLAD of
// Cortex-M, VMLADAVA of MVE, and 16-bit pairs elsewhere. pmaddubsw multiplies bytes only if constant weights
// prove that no sum of a pair saturates (MacKind::Dot4Narrow).
#pragma once

#include "compiler/target/machine.h"

#include <string_view>

namespace firn {

enum class MacKind : uint8_t {
  Fma,        // one step: factors as wide as the sum
  Dot2,       // two steps of 16 bits in a lane of 32
  Dot4,       // four steps of 8 bits
  Dot16,      // sixteen steps of 8 bits: all lanes of a register are added to a sum in a general register
  Dot4Narrow, // four steps of unlike bytes; two neighbouring products always fit 16 bits
  TileMatrix, // a block of steps, rows and columns in registers of its own
};
std::string_view name_of(MacKind kind); // "fma", "dot2", "dot4", "dot16", "dot4_narrow", "tile_matrix"
// Neighbouring steps that are multiplied for one sum, in products of vectors.
int k_group_of(MacKind kind);

// The operands of products of several steps; integers are summed in i32, bf16 in f32.
enum class Factor : uint8_t { U8, S8, BF16 };

enum class MacForm : uint8_t {
  Native,  // one instruction
  Offset,  // the one for bytes of other signs: a factor moves by 128, and what this adds is taken back
  Pairs,   // even and odd steps apart, widened: 16-bit products summed in pairs
  PerStep, // a multiplication and an addition for each step
};

struct MacFacts {
  MacForm form = MacForm::PerStep;
  int register_bits = 32;     // bits of the widest register the form has
  double instructions = 1;    // number for a vector of sums, where an FMA takes one
  int operand_registers = 1;  // registers of a vector of factors while it is multiplied
  int constant_registers = 0; // registers that all products share
  int sum_latency = 0;        // cycles from a sum to the next one over it; 0: an FMA's for each instruction
};
// How the CPU does a product of several steps; factors come in either order.
MacFacts dot4_facts(const Machine& target, Factor lhs, Factor rhs);
MacFacts dot16_facts(const Machine& target, Factor lhs, Factor rhs);
MacFacts narrow_dot4_facts(const Machine& target);
MacFacts i16_dot2_facts(const Machine& target);
MacFacts bf16_dot2_facts(const Machine& target);
// How the CPU does one step of floats, or of integers of 32 bits.
MacFacts fma_facts(const Machine& target, bool is_float);

// Tile matrices: a product adds to sums of `rows` x 16 columns. It multiplies rows of steps, kRowBytes each,
// by rows that hold a k group of 32 bits for each column.
struct TileMatrixFacts {
  static constexpr int kRegisters = 8, kRows = 16, kRowBytes = 64;
  // A product takes kRowCycles for each row of its sums, an operand that is loaded among products
  // kLoadCycles; kLatency cycles lie between a product and the next one over the same sums.
  static constexpr double kRowCycles = 1, kLoadCycles = 1, kLatency = 52;
  static constexpr double kRowsPerCycle = 2;      // loads from the first cache level
  static constexpr double kL2BytesPerCycle = 90;  // loads from the second level, on top of that
  static constexpr double kConfigureCycles = 170; // release of the tiles included
};

} // namespace firn
