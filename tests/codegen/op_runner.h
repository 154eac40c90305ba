// Runs ops over tables of operands on several targets and hands the results back as numbers.
#pragma once

#include "tests/codegen/model_object.h"

#include <cstring>
#include <functional>

namespace firn::test {

// Emits the results to store for one vector of operands; all results have the same type.
using EmitOps = std::function<std::vector<kernel::Register>(kernel::Builder&,
                                                            const std::vector<kernel::Register>& operands)>;

// Runs `emit` over all rows of operands, `lanes` rows at a time; the number of rows must be a multiple of
// `lanes`. operands[k] are the bytes of the k-th operand of every row; the answer is one byte vector per
// result. `flushes_bf16`: as CodegenOptions has it; `unroll`: copies of the loop over vectors.
std::vector<std::vector<char>> run_ops(const Machine& target, int lanes,
                                       const std::vector<kernel::Scalar>& types,
                                       const std::vector<std::vector<char>>& operands, kernel::Scalar result,
                                       const EmitOps& emit, bool flushes_bf16 = false, int64_t unroll = 1);

// Targets whose code differs: old and new x86, ARM with and without vectors, RISC-V; those that this machine
// can run.
std::vector<Machine> runnable_targets();

template <class T> std::vector<char> bytes_of(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T> std::vector<T> numbers_of(const std::vector<char>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

} // namespace firn::test
