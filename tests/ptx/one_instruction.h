// Runs one instruction of PTX on given bits, by a kernel around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firn::ptx::test {

// The types of the registers that an instruction reads and writes ("b32"), for predicates "pred".
struct Signature {
  std::string result;
  std::vector<std::string> sources;
};

// The bits of the result of `text`, which names its result %d and its sources %a, %b, %c, %e; predicates are
// given and come as 0 or 1. "error: ..." in `error` if the module is refused or fails.
uint64_t run_instruction(const std::string& text, const Signature& signature,
                         const std::vector<uint64_t>& values, std::string* error = nullptr);

uint32_t bits(float value);
uint64_t bits(double value);

} // namespace firn::ptx::test
