// Text of fusions that run code behind sums: operands of every shape that broadcasts to the result and of
// several types, by way of movements, each added to the sums.
#pragma once

#include "compiler/target/machine.h"
#include "tests/lower/lowered_program.h"

#include <random>

namespace firn::test {

// "2,3,4", and "[2,3,4]".
std::string joined(const std::vector<int64_t>& dims);
std::string bracketed(const std::vector<int64_t>& dims);
// A tensor's type, plain or with channels in the target's blocks.
std::string plain_type(const std::string& dtype, const std::vector<int64_t>& dims);
std::string blocked_type(const std::string& dtype, const std::vector<int64_t>& dims, const Machine& target);

// How an operand comes to the shape that is broadcast.
enum class Movement {
  None,
  Gather,
  GatherElements,
  DynamicSlice,
  Slice,
  StridedSlice,
  Reverse,
  Pad,
  Concatenate,
  Transpose,
  Reshape,
  Select
};
inline constexpr int kMovements = 12;

class Epilogue {
public:
  // `prefix` begins all names; the result has `dims`, and `type` as it lies in memory, of `dtype`.
  Epilogue(std::string prefix, std::string dtype, std::vector<int64_t> dims, std::string type)
      : prefix_(std::move(prefix)), dtype_(std::move(dtype)), dims_(std::move(dims)), type_(std::move(type)) {
  }

  // An operand of `dtype` with the dims of the result that `kept` has bits for, others being 1, moved along
  // `dim`.
  void add(Movement movement, int kept, int dim, const std::string& dtype);
  void add_random(std::mt19937& random, int count);
  // A parameter that `op` reads, which calls it by its name with an 'i' behind.
  void read(const std::string& name, const std::string& type);

  // Operands, as parameters of a function or a region around the fusion: ", %a: f32[3]...".
  std::string parameters(const std::string& suffix = "") const;
  std::string arguments(const std::string& suffix = "") const; // ", %a..."
  // "%name = fusion %value... {kind = kind} region (%p: value_type...) { op code return } : type", in a
  // region where operands have `suffix` at their names. `op` makes %c of %p.
  std::string fusion(const std::string& name, const std::string& value, const std::string& value_type,
                     const std::string& kind, const std::string& op, const std::string& suffix = "") const;
  const std::string& code() const { return code_; } // from %c to the sum
  const std::string& sum() const { return sum_; }
  const std::map<std::string, Range>& ranges() const { return ranges_; }

private:
  std::string add_operand(const std::string& dtype, const std::vector<int64_t>& dims);
  std::string define(const std::string& code, const std::string& type);
  std::string moved(Movement movement, const std::vector<int64_t>& own, size_t dim, const std::string& dtype);
  std::string indices(const std::vector<int64_t>& dims, int64_t last);

  std::string prefix_, dtype_;
  std::vector<int64_t> dims_;
  std::string type_, code_, sum_ = "%c";
  std::vector<std::pair<std::string, std::string>> operands_; // names and types
  std::map<std::string, Range> ranges_;
  int next_ = 0;
};

} // namespace firn::test
