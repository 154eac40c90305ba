// Cases of dots and convolutions of bytes, bf16 and other narrow types, as text.
#pragma once

#include "tests/lower/lowered_program.h"

#include <string>
#include <vector>

namespace firn::test {

// x86 with AVX512-VNNI and -BF16 or what this machine has, AVX2, SSE2; aarch64 with and without dot products;
// Cortex-M with and without the DSP extension; RISC-V.
extern const std::vector<std::string> kProductCpus, kNativeCpus;

struct Types {
  std::string lhs, rhs, result;
};
// Types of dots whose products take several steps.
extern const Types kUnlikeBytes, kUnlikeBytesSwapped, kSignedBytes, kUnsignedBytes, kI16, kI16Bytes,
    kBytesI16, kBf16;
extern const std::vector<Types> kProductTypes; // all of them
extern const std::vector<Types> kMatrixTypes;  // types that tile matrices multiply

bool are_bytes(const Types& types); // both factors
bool is_float_type(const std::string& dtype);
// The CPUs among `cpus` that compute with the type.
std::vector<std::string> cpus_for(const std::string& dtype, std::vector<std::string> cpus);
Range range_of(const std::string& dtype); // "i4" too
// "constant [...]" of that many elements, half of them at the ends of the type's range, where sums of
// products saturate first.
std::string extreme_constant(const std::string& dtype, int64_t count, unsigned seed);
std::string dims_text(const std::vector<int64_t>& dims); // "[2,3]"
// Inputs over the whole range of their types; sums of integers exact.
LoweredOptions options_for(const Types& types, const std::vector<std::string>& cpus);

// A dot of x, m x k, by w, k x n.
struct DotCase {
  Types types;
  int64_t m, k, n;
  bool constant = true; // w
  std::string plan = {};
  std::string numbers_of = {}; // constants have values of that type; empty: of their own
  bool lhs_transposed = false, rhs_transposed = false;
  std::string text() const;
};

// A convolution of a batch of two images of 6 x 9.
struct ConvolutionCase {
  Types types;
  int64_t channels, filters, groups = 1, window = 3;
  std::string attributes = "3x3 pad 1_1x1_1";
  int64_t out_high = 6, out_wide = 9;
  enum { Fixed, Blocked, ChannelsLast } layout = Fixed; // the image's; results are plain, or in blocks too
  bool constant = true;                                 // the filters
  std::string plan = {};
  int block = 0;               // channels of a block; 0: lanes of the CPU
  std::string numbers_of = {}; // like DotCase::numbers_of
  std::string text(const std::string& cpu) const;
};

} // namespace firn::test
