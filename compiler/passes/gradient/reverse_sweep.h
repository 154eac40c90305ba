// The reverse sweep over the instructions of a region: from the cotangents of some values to those of the
// values that they depend on.
#pragma once

#include "compiler/passes/gradient/adjoints.h"

#include <map>
#include <set>

namespace firn::gradient {

// A value as a key. Only looked up, never iterated over: addresses decide the order.
using ValueKey = std::pair<const Instruction*, int>;
inline ValueKey key_of(Value value) {
  return {value.def, value.index};
}

// Calls visit with every value that the instruction reads, also within its regions.
template <class Visit> void visit_reads(const Instruction& instruction, const Visit& visit) {
  for (Value operand : instruction.operands()) visit(operand);
  if (!has_trait(instruction.opcode(), Captures)) return;
  for (int i = 0; i < instruction.num_regions(); ++i) {
    for (const auto& inner : instruction.region(i).instructions()) visit_reads(*inner, visit);
    for (Value result : instruction.region(i).results()) visit(result);
  }
}

// Replaces calls, composites and quantisations that depend on active values and have no rule of their own by
// their bodies. Nothing, or why a call cannot be.
std::optional<Diagnostic> inline_active(Region& region, const std::vector<Value>& active);
// Replaces all calls in the region and beneath it. Nothing, or why one cannot be.
std::optional<Diagnostic> inline_calls(Region& region);

// The active values from outside that the region reads, in the order of their first use.
std::vector<Value> active_captured(const Region& region, const VectorJacobian::IsActive& is_active);

class ReverseSweep {
public:
  // The instructions that `region` has now are the forward computation; what the sweep writes is appended.
  // `active` are the values that gradients are taken by: parameters, or values from outside.
  ReverseSweep(Region& region, const std::vector<Value>& active);

  // Adds to the cotangent of a value.
  void seed(Value value, Value cotangent);
  // Walks back. Nothing, or what has no derivative.
  std::optional<Diagnostic> run();
  // The cotangent of a value; no value: zero.
  Value cotangent(Value value) const;
  bool is_active(Value value) const { return active_.count(key_of(value)) != 0; }

private:
  void find_active();
  void count_readers(const Region& region);
  bool depends_on_active(const Instruction& instruction) const;
  std::optional<Diagnostic> derive_one(Instruction& instruction);
  void contribute(const Instruction& user, Value mask, bool on_true, Value value, Value contribution);

  // Elements of a value that a select alone reads, and only where its condition is `on_true`: elsewhere the
  // cotangents of what it is computed from are zero, whatever its derivative there.
  struct Mask {
    Value condition;
    bool on_true = true;
  };

  Region& region_;
  GraphBuilder builder_;
  std::vector<Instruction*> primals_;
  std::set<ValueKey> active_;
  std::map<ValueKey, int> readers_; // instructions that read a value, and results of the region
  std::map<ValueKey, Value> cotangents_;
  std::map<ValueKey, Mask> masks_;
};

} // namespace firn::gradient
