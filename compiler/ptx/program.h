// Decoded kernels: flat lists of operations on rows of registers. A row holds one 64-bit word for each of the
// 32 lanes of a warp; a predicate is a mask of lanes in the first word of its row. Functions are inlined.
#pragma once

#include "compiler/ptx/floats.h"
#include "compiler/ptx/syntax.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace firn::ptx {

class Warp;
struct Op;

// Does one operation for the lanes of a mask that is not zero.
using Execute = void (*)(Warp& warp, const Op& op, uint32_t mask);

// The classes that statistics count.
enum class OpClass : uint8_t { Integer, Float, Convert, Move, Memory, Control, WarpWide, Matrix };
constexpr int kOpClasses = 8;

enum class Access : uint8_t { Weak, Strong, Atomic };

struct Op {
  Execute execute = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0; // rows
  uint32_t e = 0;                      // a fourth operand, or a second result
  int32_t guard = -1;                  // row of the predicate
  bool guard_is_negated = false;
  OpClass op_class = OpClass::Move;
  Space space = Space::Generic;
  Rounding rounding = Rounding::Nearest;
  bool flush = false;    // subnormal numbers count as zero
  bool saturate = false; // the result is limited to [0, 1] or to the type's range
  bool is_short = false; // addresses have 32 bits
  Access access = Access::Weak;
  uint8_t bytes = 0; // width of one element in memory
  uint8_t count = 1; // elements
  int32_t form = 0;  // a choice of the operation's own
  int64_t value = 0; // offset of an address, target of a branch, table of a logic operation
  uint32_t list = 0; // first of `count` or more rows in Kernel::lists
  int line = 0;
};

// Registers that the machine fills in.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  SmId,
  NsmId,
  GridId,
  TotalShared,
  DynamicShared,
  Count
};

struct Kernel {
  std::string name;
  std::vector<Op> ops;
  std::vector<uint32_t> lists;
  uint32_t rows = 0;                                    // rows of a warp's register file
  std::vector<std::pair<uint32_t, uint64_t>> constants; // rows with one value in all lanes
  std::vector<std::pair<uint32_t, Special>> specials;   // rows that the machine fills in
  std::vector<uint32_t> predicates;                     // rows that are masks
  std::vector<Variable> parameters;
  std::vector<int64_t> parameter_offsets;
  int64_t parameter_bytes = 0;
  int64_t shared_bytes = 0;                     // static; what the launch gives follows it
  int64_t local_bytes = 0;                      // bytes of one thread
  int shared_granule = 16, global_granule = 16; // narrowest access in bytes
  std::array<int64_t, 3> max_threads{0, 0, 0}, required_threads{0, 0, 0};
};

// Addresses. Buffers of the caller lie 4 GiB apart; windows give generic addresses to the other spaces.
constexpr uint64_t kBufferStride = uint64_t{1} << 32;
constexpr uint64_t kFirstVariable = 0x8000; // index of the first variable of a module among the buffers
constexpr uint64_t kParamWindow = 0xd000'0000'0000, kSharedWindow = 0xe000'0000'0000,
                   kLocalWindow = 0xf000'0000'0000;

} // namespace firn::ptx
