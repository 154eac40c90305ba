// A cluster of ops that do not mind the order of dims, seen in the order from before one transpose: what rewriting it in
// that order would save, and the rewriting.
#pragma once

#include "compiler/graph/module.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace firn {

class TransposeCluster {
public:
  // The cluster around the users of `transpose`.
  explicit TransposeCluster(Instruction& transpose);

  // Elements that need no transposing any more, less those that newly do.
  int64_t gain() const { return gain_; }
  // Rewrites the cluster. Old instructions that lose their last use are erased.
  void rewrite();

private:
  bool is_member_op(const Instruction& instruction) const;
  void collect(Instruction& transpose);
  void measure();
  int64_t input_cost(Value operand) const;
  int64_t output_cost(const Instruction& member) const;
  Value before_transpose(Value value, Instruction& user);
  Instruction* rewrite_member(Instruction& member);

  Region& region_;
  std::vector<int64_t> permutation_, inverse_;  // value = transpose(value in the new order, permutation)
  std::vector<Instruction*> members_;           // in program order
  std::unordered_set<const Instruction*> inside_;
  std::unordered_map<Instruction*, Instruction*> rewritten_;
  int64_t gain_ = 0;
};

} // namespace firn
