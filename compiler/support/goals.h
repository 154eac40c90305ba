// The properties that the user wants of the code, from -O to --threads. They are set once, from the command
// line or by a program, and passed by reference to passes, planning, lowering, kernel passes and codegen.
#pragma once

#include <cstdint>

namespace firn {

enum class OptLevel : uint8_t { O0, O1, O2, O3, Os };

// Strict numerics compute what the model says; by default convolutions may use Winograd's algorithm.
enum class Math : uint8_t { Default, Strict };

// The type that weights and activations are multiplied in; accumulators are f32
// (passes/precision/multiply_in_bf16.cpp).
enum class Precision : uint8_t { F32, BF16 };

// The type that constant matrices are held in if products wait for them in memory: the model's, or a narrower
// one.
enum class WeightType : uint8_t { AsGiven, BF16, I8, I4 };

// Which convolutions use Winograd's algorithm: those whose time it shortens enough for the bytes of its
// filters in the object (plan/winograd/choose_winograd.h), every one that it makes faster, or none.
enum class Winograd : uint8_t { WithinBytes, All, Off };

struct Goals {
  OptLevel opt_level = OptLevel::O3;
  Math math = Math::Default;
  Precision precision = Precision::F32;
  WeightType weight_type = WeightType::AsGiven;
  Winograd winograd = Winograd::WithinBytes;
  int threads = 1;               // the most that an executor has; 1: the object asks none for help
  bool share_all = false;        // kernels that are too short to gain are shared as well: for tests
  bool check_indices = false;    // an index out of range ends a run with a status; else it is clamped
  int64_t text_bytes = 64 << 10; // for all strings that a run makes; more end it with a status

  bool optimize_size() const { return opt_level >= OptLevel::Os; }
  bool strict_math() const { return math == Math::Strict; }
};

// The goals of whoever has none of his own.
inline constexpr Goals kDefaultGoals;

} // namespace firn
