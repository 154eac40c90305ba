// narrow-updates: a state that is its old value but for one position is written at that position alone.
//
//   select(i == position, new, old)   ->   %v = select(inside, new[at], old[at])
//                                          dynamic_update_slice(old, %v, at)
//
// with `at` the position clamped into the state, and `inside` whether that changed nothing; for a state `old`
// and its next value, whose memory is the same: the rest of a cache is neither read nor written.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

#include <algorithm>

namespace firn {
namespace {

bool has_one_wide_dim(const Type& type) {
  return std::count_if(type.dims.begin(), type.dims.end(), [](const Dim& d) { return d.value() != 1; }) == 1;
}

int wide_dim(const Type& type) {
  auto wide = std::find_if(type.dims.begin(), type.dims.end(), [](const Dim& d) { return d.value() != 1; });
  return static_cast<int>(wide - type.dims.begin());
}

// The result's dim to which a movement op takes the only dim of its operand along which elements differ.
std::optional<int> moved_dim(const Instruction& instruction, int dim) {
  Value operand = instruction.operand(0);
  if (instruction.is(Opcode::BroadcastInDim)) {
    auto to = static_cast<int>(instruction.attributes().ints("dims")[static_cast<size_t>(dim)]);
    if (instruction.type().dim(to) == operand.dim(dim)) return to;
  } else if (instruction.is(Opcode::Reshape)) {
    if (has_one_wide_dim(operand.type()) && has_one_wide_dim(instruction.type()))
      return wide_dim(instruction.type());
  } else if (instruction.is(Opcode::Convert)) {
    return dim;
  }
  return std::nullopt;
}

// The dim along which the elements count from zero on, if they do, and differ along no other.
std::optional<int> counting_dim(Value value) {
  if (!is_integer(value.dtype()) || !value.type().is_static()) return std::nullopt;
  if (value.def->is(Opcode::Iota)) return static_cast<int>(value.def->attributes().integer("dim"));
  if (const Literal* literal = constant_literal(value)) {
    if (!has_one_wide_dim(value.type())) return std::nullopt;
    for (int64_t i = 0; i < literal->num_elements(); ++i)
      if (literal->get_int(i) != i) return std::nullopt;
    return wide_dim(value.type());
  }
  if (!is_movement(value.def->opcode()) && !value.def->is(Opcode::Convert)) return std::nullopt;
  auto inner = counting_dim(value.def->operand(0));
  return inner ? moved_dim(*value.def, *inner) : std::nullopt;
}

struct Position {
  Value index; // one integer
  int dim;
};

// The position of the only slice at which a predicate holds.
std::optional<Position> find_position(Value predicate) {
  if (!predicate.type().is_static()) return std::nullopt;
  if (predicate.def->is(Opcode::BroadcastInDim) || predicate.def->is(Opcode::Reshape)) {
    auto inner = find_position(predicate.def->operand(0));
    auto dim = inner ? moved_dim(*predicate.def, inner->dim) : std::nullopt;
    return dim ? std::optional<Position>({inner->index, *dim}) : std::nullopt;
  }
  if (!predicate.def->is(Opcode::Compare) || predicate.def->word("direction") != "eq") return std::nullopt;
  for (int side : {0, 1}) {
    Value index = predicate.def->operand(1 - side);
    auto dim = counting_dim(predicate.def->operand(side));
    while (dim && index.type().num_elements() != 1 && index.def->is(Opcode::BroadcastInDim))
      index = index.def->operand(0);
    if (dim && index.type().num_elements() == 1) return Position{index, *dim};
  }
  return std::nullopt;
}

class Update {
public:
  Update(Instruction& select, Position position)
      : select_(select), b_(*select.parent(), &select), dim_(static_cast<size_t>(position.dim)),
        slice_(select.type()) {
    int64_t last = select.type().dim(position.dim) - 1;
    slice_.dims[dim_] = 1;
    position_ = b_.convert(b_.reshape(position.index, {}), DType::I64);
    Value zero = b_.scalar(DType::I64, 0);
    start_ = b_.binary(Opcode::Minimum, b_.binary(Opcode::Maximum, position_, zero),
                       b_.scalar(DType::I64, static_cast<double>(last)));
    starts_.assign(slice_.dims.size(), zero);
    starts_[dim_] = start_;
  }

  Value run() {
    Value inside = b_.broadcast_to(b_.compare("eq", position_, start_), slice_.dims);
    Value chosen = b_.select(inside, narrowed(select_.operand(1)), slice_of(select_.operand(2)));
    std::vector<Value> operands{select_.operand(2), chosen};
    operands.insert(operands.end(), starts_.begin(), starts_.end());
    return b_.op(Opcode::DynamicUpdateSlice, std::move(operands));
  }

private:
  Value slice_of(Value value) {
    std::vector<Value> operands{value};
    operands.insert(operands.end(), starts_.begin(), starts_.end());
    return b_.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", slice_.static_dims()}});
  }

  // The value at the position. Broadcasts along the dim are not sliced, since all positions have the same
  // value.
  Value narrowed(Value value) {
    if (!value.def->is(Opcode::BroadcastInDim)) return slice_of(value);
    Value operand = value.def->operand(0);
    const std::vector<int64_t>& dims = value.def->attributes().ints("dims");
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == static_cast<int64_t>(dim_) && operand.dim(static_cast<int>(i)) != 1)
        return slice_of(value);
    return make_broadcast(b_, operand, slice_, dims);
  }

  Instruction& select_;
  GraphBuilder b_;
  size_t dim_;
  Type slice_;
  Value position_, start_;
  std::vector<Value> starts_;
};

} // namespace

bool narrow_updates(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) {
    Region& body = function->body();
    for (size_t i = 0; i < body.results().size(); ++i) {
      if (!function->updates_state(i)) continue;
      Instruction* select = defined_by(body.results()[i], Opcode::Select);
      if (!select || select->operand(2) != body.parameter(function->aliases[i])) continue;
      auto position = find_position(select->operand(0));
      if (!position || select->type().dim(position->dim) == 1 || !options.take_rewrite()) continue;
      body.replace_uses(select->result(), Update(*select, *position).run());
      changed = true;
    }
  }
  return changed;
}

} // namespace firn
