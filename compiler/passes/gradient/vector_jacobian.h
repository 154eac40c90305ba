// The vector-Jacobian product of one instruction: what the rules of adjoints.def are written with.
#pragma once

#include "compiler/graph/builder.h"

#include <functional>
#include <optional>
#include <string>

namespace firn::gradient {

// The value in a type with these dims, of the same extents, that other dims are marked as counted in.
Value with_dims(GraphBuilder& b, Value value, const std::vector<Dim>& dims);

// One instruction of the forward computation on the way back. Rules read the cotangents of its results, write
// instructions with the builder, and contribute to the cotangents of what it reads. Values of the forward
// computation are named as they are: whatever a rule names is kept until then.
class VectorJacobian {
public:
  using Contribute = std::function<void(Value, Value)>;
  using IsActive = std::function<bool(Value)>;

  VectorJacobian(GraphBuilder& builder, Instruction& primal, std::vector<Value> cotangents,
                 IsActive is_active, Contribute contribute)
      : b(builder), primal(primal), cotangents_(std::move(cotangents)), is_active_(std::move(is_active)),
        contribute_(std::move(contribute)) {}

  GraphBuilder& b;
  Instruction& primal;

  Value x(int operand = 0) const { return primal.operand(operand); }
  Value y(int result = 0) const { return primal.result(result); }
  // The cotangent of a result; no value: it is zero.
  Value dy(int result = 0) const { return cotangents_[static_cast<size_t>(result)]; }
  const std::vector<Value>& cotangents() const { return cotangents_; }
  const Attributes& attributes() const { return primal.attributes(); }

  // Whether the gradient depends on the operand's cotangent.
  bool wants(int operand) const { return is_active_(x(operand)); }
  bool is_active(Value value) const { return is_active_(value); }
  const IsActive& activity() const { return is_active_; }
  // Adds to the cotangent of an operand, or of any value that the instruction reads; no value adds nothing.
  void give(int operand, Value contribution) { give_value(x(operand), contribution); }
  void give_value(Value value, Value contribution) {
    if (contribution && is_active_(value)) contribute_(value, with_dims(b, contribution, value.type().dims));
  }

  // Ends the derivation: the message names the instruction.
  void refuse(const std::string& reason);
  void refuse(Diagnostic reason) {
    if (!refused_) refused_ = std::move(reason);
  }
  const std::optional<Diagnostic>& refused() const { return refused_; }

private:
  std::vector<Value> cotangents_;
  IsActive is_active_;
  Contribute contribute_;
  std::optional<Diagnostic> refused_;
};

// Whether any extent is known to be 0: contributions to or from such a tensor are zero.
bool is_empty(const Type& type);
Value zeros_like(GraphBuilder& b, Value like);
// The value along dims other than `dims` of `like`, the same for all positions in those.
Value spread(GraphBuilder& b, Value value, const std::vector<int64_t>& dims, Value like);
// The sum over what broadcasting from `dims` (right-aligned) has repeated.
Value sum_to(GraphBuilder& b, Value value, const std::vector<Dim>& dims);
// Whether an element's position along one dim is the one that `indices` gives, a bool for each element of
// `like`. Indices lack that dim, or have an extent of 1 there; they count from its end when negative, and are
// clamped as gathers clamp them.
Value is_indexed(GraphBuilder& b, Value indices, int dim, Value like);
// The part of x along one dim, of `size` from `start` on.
Value part(GraphBuilder& b, Value x, int dim, const IntExpr& start, const Dim& size);
// [0, n)
std::vector<int64_t> numbers_below(int64_t n, int64_t first = 0);

} // namespace firn::gradient
