// A cluster of ops that work in any order of dims: rewrites it in the order from before one transpose, and
// tells how much that saves.
#pragma once

#include "compiler/graph/module.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace firn {

// Elements that the transposes of a region move. Those of constants, broadcasts and iotas count nothing: they
// fold.
int64_t transposed_elements(const Region& region);

class TransposeCluster {
public:
  // The cluster around the users of `transpose`.
  explicit TransposeCluster(Instruction& transpose);

  // A lower bound of the amount by which rewriting lowers transposed_elements.
  int64_t gain() const { return gain_; }
  // Rewrites the cluster. Old instructions that lose their last use are erased.
  void rewrite();

private:
  // A value as the transpose of `source`. If that is a member, it is taken in the new order.
  struct View {
    Value source;
    std::vector<int64_t> permutation;
  };

  bool is_member_op(const Instruction& instruction) const;
  void collect(Instruction& transpose);
  void measure();
  bool is_inside(Value value) const { return inside_.count(value.def) > 0; }
  bool stays(const Instruction& transpose) const;
  // The transposes that read a member from outside the cluster.
  std::vector<Instruction*> readers(const Instruction& member) const;
  bool prefers_old_order(const Instruction& member) const;
  View view_of(Value value) const;
  View view_in_new_order(Value value) const;
  Value make_view(const View& view, Instruction& user);
  Instruction* rewrite_member(Instruction& member);

  Region& region_;
  std::vector<int64_t> permutation_, inverse_; // value = transpose(value in the new order, permutation)
  std::vector<Instruction*> members_;          // in program order
  std::unordered_set<const Instruction*> inside_;
  std::unordered_map<const Instruction*, Instruction*> rewritten_;
  std::vector<std::pair<View, Value>> made_; // views, made once each
  int64_t gain_ = 0;
};

} // namespace firn
