// Text of attention as transformers have it, for the tests of its kernels.
#pragma once

#include <initializer_list>
#include <string>

namespace firn::test {

std::string dims(std::initializer_list<int> extents); // "[2,3]"
// Code that makes `result` the softmax of `x` along its last dim.
std::string softmax(const std::string& x, const std::string& result, std::initializer_list<int> extents);

struct Sizes {
  int batch, heads, rows, keys, depth, value_depth;
};

// Operands [batch, seq, heads, depth], the result [batch, rows, heads, value_depth], as transformers have
// them.
struct Text {
  std::string parameters, body, type;
};
// Other values that the region reads: parameters outside and inside, each behind ", ", and their names
// outside.
struct Others {
  std::string outer, inner, names;
};
// `mask_code` is code from %s to %m, `values_code` what makes %values of %v; `attributes` of the fusion, each
// behind ", ".
Text attention_text(const Sizes& z, const Others& others, const std::string& mask_code,
                    const std::string& values_code, const std::string& attributes = "");

} // namespace firn::test
