// Recognition of attention, from the last dot backwards.
#include "compiler/graph/attention.h"

#include "compiler/graph/producers.h"

#include <algorithm>

namespace firn {
namespace {

constexpr int kLongestPath = 24; // instructions from the scores to softmax

bool is_plain_f32(const Type& type) {
  return is_viewable(type) && type.dtype == DType::F32;
}

// Regroups outer dims alone: rows and keys stay the last two.
bool keeps_matrices(const Instruction& reshape) {
  const Type &from = reshape.operand(0).type(), &to = reshape.type();
  return from.rank() >= 2 && to.rank() >= 2 &&
         std::equal(from.dims.end() - 2, from.dims.end(), to.dims.end() - 2);
}

// The dims of one operand of a dot that are neither batch nor contracted.
std::vector<int64_t> free_dims(const Instruction& dot, int side) {
  const Attributes& a = dot.attributes();
  const std::vector<int64_t>& batch = a.ints(side == 0 ? "lhs_batch" : "rhs_batch");
  const std::vector<int64_t>& contract = a.ints(side == 0 ? "lhs_contract" : "rhs_contract");
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < dot.operand(side).rank(); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contract.begin(), contract.end(), d) == contract.end())
      dims.push_back(d);
  return dims;
}

bool is_plain_dot(const Instruction& dot) {
  return dot.is(Opcode::Dot) && is_plain_f32(dot.type()) && is_plain_f32(dot.operand(0).type()) &&
         is_plain_f32(dot.operand(1).type()) && dot.attributes().ints("lhs_contract").size() == 1;
}

class Matcher {
public:
  std::optional<Attention> match(Instruction& last) {
    a_.last = a_.values = &last;
    if (last.is(Opcode::Transpose)) {
      a_.values = last.operand(0).def;
      if (a_.values->num_uses(0) != 1) return std::nullopt;
    }
    if (!is_plain_dot(*a_.values) || !is_plain_f32(last.type())) return std::nullopt;
    for (int side : {0, 1})
      if (find_weights(side) && find_scores(a_.softmax->operand(0)) && read_scores() && read_values(side))
        return a_;
    return std::nullopt;
  }

private:
  // The operand of the last dot that softmax gives.
  bool find_weights(int side) {
    Value weights = a_.values->operand(side);
    while (weights.def->is(Opcode::Reshape) && keeps_matrices(*weights.def) && weights.def->num_uses(0) == 1)
      weights = weights.def->operand(0);
    a_.softmax = weights.def;
    return a_.softmax->is(Opcode::Composite) && a_.softmax->word("name") == "softmax" &&
           a_.softmax->num_uses(0) == 1 && is_plain_f32(a_.softmax->type()) &&
           a_.softmax->type().rank() >= 2 &&
           a_.softmax->attributes().integer("dim") + 1 == a_.softmax->type().rank();
  }

  // The one dot from which elementwise ops alone lead to `value`.
  bool find_scores(Value value) {
    a_.path.clear();
    a_.scores = nullptr;
    return descend(value) && a_.scores;
  }
  bool descend(Value value) {
    Instruction& instruction = *value.def;
    if (instruction.is(Opcode::Dot)) {
      if (a_.scores || !is_plain_dot(instruction) || instruction.num_uses(0) != 1) return false;
      a_.scores = &instruction;
      return true;
    }
    bool passes = is_elementwise(instruction.opcode()) ||
                  (instruction.is(Opcode::Reshape) && is_viewable(instruction.operand(0).type()) &&
                   is_viewable(instruction.type()) && keeps_matrices(instruction));
    if (!passes || instruction.num_results() != 1 || instruction.num_uses(0) != 1 || !leads_from_dot(value))
      return true; // comes from elsewhere, as a mask does
    for (Value operand : instruction.operands())
      if (!descend(operand)) return false;
    a_.path.push_back(&instruction);
    return true;
  }
  static bool leads_from_dot(Value value) {
    return !walk_producers(value, [](Value part, int depth) {
      if (part.def->is(Opcode::Dot)) return Walk::Stop;
      bool passes = is_elementwise(part.def->opcode()) || part.def->is(Opcode::Reshape);
      return passes && depth < kLongestPath ? Walk::Into : Walk::Past;
    });
  }

  static StridedView view_of(Value value) {
    return strided_view(value,
                        [](const Instruction& movement) { return has_trait(movement.opcode(), Strided); });
  }

  bool read_scores() {
    const Instruction& dot = *a_.scores;
    std::vector<int64_t> q_free = free_dims(dot, 0), k_free = free_dims(dot, 1);
    if (q_free.empty() || k_free.size() != 1) return false;
    a_.q = view_of(dot.operand(0)), a_.k = view_of(dot.operand(1));
    const std::vector<int64_t>&q_batch = dot.attributes().ints("lhs_batch"),
          &k_batch = dot.attributes().ints("rhs_batch");
    auto stride = [](const StridedView& view, int64_t dim) { return view.strides[static_cast<size_t>(dim)]; };
    a_.q_outer.clear(), a_.k_outer.clear();
    for (size_t i = 0; i < q_batch.size(); ++i) {
      a_.q_outer.push_back(stride(a_.q, q_batch[i]));
      a_.k_outer.push_back(stride(a_.k, k_batch[i]));
    }
    for (size_t i = 0; i + 1 < q_free.size(); ++i) {
      a_.q_outer.push_back(stride(a_.q, q_free[i]));
      a_.k_outer.push_back(0);
    }
    a_.score_dims = extents_of(dot.type());
    a_.keys = a_.score_dims.back();
    a_.rows = a_.score_dims[a_.score_dims.size() - 2];
    a_.score_dims.resize(a_.score_dims.size() - 2);
    a_.outer = product(a_.score_dims);
    if (a_.keys.lower_bound() < 1) return false;
    int64_t q_contract = dot.attributes().ints("lhs_contract")[0],
            k_contract = dot.attributes().ints("rhs_contract")[0];
    const Dim& depth = dot.operand(0).type().dims[static_cast<size_t>(q_contract)];
    if (!depth.is_static()) return false;
    a_.depth = depth.value();
    a_.q_row = stride(a_.q, q_free.back()), a_.q_depth = stride(a_.q, q_contract);
    a_.k_key = stride(a_.k, k_free[0]), a_.k_depth = stride(a_.k, k_contract);
    // Softmax sees the same matrices in the same order.
    std::vector<IntExpr> dims = extents_of(a_.softmax->type());
    return dims.back() == a_.keys && dims[dims.size() - 2] == a_.rows;
  }

  bool read_values(int side) {
    const Instruction& dot = *a_.values;
    const Attributes& attributes = dot.attributes();
    const std::vector<int64_t>& w_batch = attributes.ints(side == 0 ? "lhs_batch" : "rhs_batch");
    const std::vector<int64_t>& v_batch = attributes.ints(side == 0 ? "rhs_batch" : "lhs_batch");
    int64_t w_contract = attributes.ints(side == 0 ? "lhs_contract" : "rhs_contract")[0];
    int64_t v_contract = attributes.ints(side == 0 ? "rhs_contract" : "lhs_contract")[0];
    std::vector<int64_t> w_free = free_dims(dot, side), v_free = free_dims(dot, 1 - side);
    const Type& weights = dot.operand(side).type();
    auto rank = static_cast<int64_t>(weights.rank());
    if (w_contract != rank - 1 || w_free.empty() || w_free.back() != rank - 2 || v_free.size() != 1)
      return false;
    a_.v = view_of(dot.operand(1 - side));
    // Dims of the result: batch, then lhs free, then rhs free.
    std::vector<IntExpr> strides = result_strides();
    auto batch = static_cast<int64_t>(w_batch.size()), free = static_cast<int64_t>(w_free.size());
    int64_t first_free = side == 0 ? batch : batch + 1, depth_dim = side == 0 ? batch + free : batch;
    a_.weight_dims.assign(static_cast<size_t>(rank - 2), IntExpr(1));
    a_.v_outer.assign(static_cast<size_t>(rank - 2), IntExpr(0));
    a_.result_outer.assign(static_cast<size_t>(rank - 2), IntExpr(0));
    for (size_t i = 0; i < w_batch.size(); ++i) {
      auto d = static_cast<size_t>(w_batch[i]);
      if (w_batch[i] >= rank - 2) return false;
      a_.v_outer[d] = a_.v.strides[static_cast<size_t>(v_batch[i])];
      a_.result_outer[d] = strides[i];
    }
    for (int64_t i = 0; i + 1 < free; ++i)
      a_.result_outer[static_cast<size_t>(w_free[static_cast<size_t>(i)])] =
          strides[static_cast<size_t>(first_free + i)];
    for (size_t d = 0; d < a_.weight_dims.size(); ++d) a_.weight_dims[d] = weights.dims[d].extent;
    a_.result_row = strides[static_cast<size_t>(first_free + free - 1)];
    a_.result_depth = strides[static_cast<size_t>(depth_dim)];
    a_.v_key = a_.v.strides[static_cast<size_t>(v_contract)];
    a_.v_depth = a_.v.strides[static_cast<size_t>(v_free[0])];
    const Dim& depth = dot.operand(1 - side).type().dims[static_cast<size_t>(v_free[0])];
    if (!depth.is_static()) return false;
    a_.value_depth = depth.value();
    return product(a_.weight_dims) == a_.outer && weights.dims.back().extent == a_.keys &&
           weights.dims[static_cast<size_t>(rank - 2)].extent == a_.rows;
  }

  // The strides of the last dot's dims in the stored result, which a transpose may have moved.
  std::vector<IntExpr> result_strides() const {
    std::vector<IntExpr> stored = row_major_strides(extents_of(a_.last->type()));
    if (a_.last == a_.values) return stored;
    const std::vector<int64_t>& permutation = a_.last->attributes().ints("permutation");
    std::vector<IntExpr> strides(stored.size());
    for (size_t i = 0; i < stored.size(); ++i) strides[static_cast<size_t>(permutation[i])] = stored[i];
    return strides;
  }

  static std::vector<IntExpr> extents_of(const Type& type) {
    std::vector<IntExpr> extents;
    for (const Dim& dim : type.dims) extents.push_back(dim.extent);
    return extents;
  }
  static IntExpr product(const std::vector<IntExpr>& extents) {
    IntExpr count = 1;
    for (const IntExpr& extent : extents) count = count * extent;
    return count;
  }

  Attention a_;
};

} // namespace

std::optional<Attention> match_attention(Instruction& last) {
  return Matcher().match(last);
}

} // namespace firn
