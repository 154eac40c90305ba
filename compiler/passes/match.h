// Questions that rewrite rules ask about values: constants seen through broadcasts, permutations, signs.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>

namespace firn {

// The defining instruction if it has that opcode, else null.
inline Instruction* defined_by(Value value, Opcode opcode) {
  return value.def->is(opcode) ? value.def : nullptr;
}
// The literal of a constant with bytes, else null.
const Literal* constant_literal(Value value);
// The value that all elements of a real-valued tensor have: splat constants, also behind broadcasts,
// reshapes, transposes and copies. Nothing for integers that a double may not hold.
std::optional<double> splat_value(Value value);
// Whether all elements are that number; exact for integers that no double holds.
bool is_splat_of(Value value, const Literal& number);
inline bool is_splat_of(Value value, double wanted) {
  auto found = splat_value(value);
  return found && *found == wanted;
}
// Whether the type is floating-point or integer (not bool, string, complex), so that splat_value tells all
// about its constants.
bool is_arithmetic(Value value);
// Whether exactly one operand slot or region result names the value.
bool has_one_use(Value value);
// Whether no element can be below zero (NaN may occur); conservative.
bool is_non_negative(Value value);

// Whether every value of `from` is a value of `to`.
bool holds_all(DType to, DType from);

// A scalar constant of `type`'s dtype broadcast to its dims and layout.
Value make_splat(GraphBuilder& builder, const Type& type, double value);
// broadcast_in_dim with the result type given; the operand itself if it has the dims already.
Value make_broadcast(GraphBuilder& builder, Value operand, const Type& result, std::vector<int64_t> dims);

bool is_identity_permutation(const std::vector<int64_t>& permutation);
std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& permutation);
// The numbers 0 ... count-1.
std::vector<int64_t> first_dims(int64_t count);
bool contains(const std::vector<int64_t>& values, int64_t value);
bool same_dims(const Type& lhs, const Type& rhs);
// The reducer of a one-operand reduce or reduce_window that is associative, of numbers, and starts from the
// reducer's identity.
std::optional<Opcode> plain_reducer(const Instruction& instruction);

// A value that varies along at most one dim of the tensor it is combined with: broadcasts of one element or
// of a vector, and constants.
struct ChannelValue {
  Value source;     // a vector or a scalar
  int64_t dim = -1; // the tensor's dim that the vector runs along; -1: a scalar
};
std::optional<ChannelValue> channel_value(Value value, GraphBuilder& builder);

// Whether the op moves data without arithmetic and costs no more than the copy, such as reshape or slice.
bool is_movement(Opcode opcode);

// A gather of a table with an element for every byte: elementwise in its indices.
inline constexpr int64_t kByteValues = 256;
bool looks_up_bytes(const Instruction& instruction);

// Whether the type is a tensor whose dims are numbers, or vary within bounds that symbols have.
bool has_bounds(const Type& type);
// Elements of such a tensor where every dim is at its bound.
int64_t max_elements(const Type& type);

// Products that a dot adds for each element of its result, counted by the dims of `operand`.
int64_t contracted_steps(const Instruction& dot, int operand);
// Whether it is a dot with so few results for each of the free elements of its constant operand `weights`
// that one tile has them all (plan::kFewRows).
bool has_few_rows(const Instruction& contraction, int weights);

} // namespace firn
