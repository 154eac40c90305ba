// tie-embeddings: holds a table only once if its rows are looked up and also multiplied.
//
//   %r = gather %t, %i {axis = 0}           %t : f32[50257,768]
//   %d = dot %x, %w {rhs_contract = [0]}    %w : f32[768,50257], its transpose
//     ->
//   %r = gather %p, %i {axis = 0}           %p : f32[50257,768]{0,1:0x128}
//   %d = dot %x, %p {rhs_contract = [1]}
//
// Constant columns are packed in panels for register tiles; as a layout these are the rows of the table, each
// element a line apart. plan/contraction/shared_table.h says where that is cheap, and how wide panels are.
// Both constants must have no other users and equal bits.
//
// - Requires: constants folded; dots in their final form.
// - Establishes: nothing that later passes rely on.
// - Breaks: rules for dots that take constants for plain.
#include "compiler/graph/derivation.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/contraction/dot.h"
#include "compiler/plan/contraction/shared_table.h"

#include <algorithm>
#include <cstring>

namespace firn {
namespace {

// Whether `other`, [k,n], is the transpose of `table`, [n,k]. Compares squares, so that neither is read
// column by column.
template <class T> bool are_transposed(const Literal& table, const Literal& other) {
  constexpr int64_t kSide = 64, kSample = 1021;
  int64_t n = table.dims()[0], k = table.dims()[1];
  const T *a = table.data<T>().data(), *b = other.data<T>().data();
  for (int64_t i = 0; i < n * k; i += kSample)
    if (a[i] != b[i % k * n + i / k]) return false;
  for (int64_t row = 0; row < n; row += kSide)
    for (int64_t column = 0; column < k; column += kSide)
      for (int64_t i = row; i < std::min(n, row + kSide); ++i)
        for (int64_t j = column; j < std::min(k, column + kSide); ++j)
          if (a[i * k + j] != b[j * n + i]) return false;
  return true;
}

bool are_transposed(const Literal& table, const Literal& other) {
  switch (bit_width(table.dtype())) {
  case 32: return are_transposed<uint32_t>(table, other);
  case 16: return are_transposed<uint16_t>(table, other);
  default: return false;
  }
}

bool are_equal(const Literal& table, const Literal& other) {
  std::span<const std::byte> a = table.bytes(), b = other.bytes();
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Whether `other` is derived from `table` as its transpose, so that this holds for other weights too.
bool is_derived_transpose(const LiteralRef& table, const Literal& other) {
  const Derivation* derivation = other.derivation().get();
  if (!derivation || derivation->operands != std::vector<LiteralRef>{table}) return false;
  const Instruction& made = *derivation->module->main().body().results()[0].def;
  return made.is(Opcode::Transpose) && made.operand(0).def->is(Opcode::Parameter);
}

// Whether the constants hold one table, the second one transposed if it `is_turned`.
bool hold_one_table(const LiteralRef& table, const LiteralRef& other, bool is_turned) {
  if (table == other) return !is_turned;
  if (!table->values_may_be_used() || !other->values_may_be_used())
    return is_turned && is_derived_transpose(table, *other);
  return is_turned ? are_transposed(*table, *other) : are_equal(*table, *other);
}

class EmbeddingTying {
public:
  EmbeddingTying(Region& region, const PassOptions& options) : region_(region), options_(options) {}

  bool run() {
    bool changed = false;
    for (Instruction* instruction : region_.snapshot())
      if (instruction->is(Opcode::Dot)) changed |= share(*instruction);
    return changed;
  }

private:
  bool share(Instruction& dot) {
    const Attributes& a = dot.attributes();
    const Literal* columns = table_of(dot.operand(1));
    const std::vector<int64_t>& contract = a.ints("rhs_contract");
    if (!columns || !a.ints("rhs_batch").empty() || contract.size() != 1) return false;
    bool is_turned = contract[0] == 0; // [k,n]
    Instruction& own = *dot.operand(1).def;
    for (Instruction* table : region_.snapshot()) {
      const Literal* rows = table->is(Opcode::Constant) ? table_of(table->result()) : nullptr;
      if (!rows || dot.operand(0).def == table || rows->dtype() != columns->dtype() ||
          table->type().dim(0) != own.type().dim(is_turned) ||
          table->type().dim(1) != own.type().dim(!is_turned))
        continue;
      std::vector<const Instruction*> gathers = gathers_of(*table, dot);
      if (gathers.empty() || (table != &own && !has_one_use(own.result()))) continue;
      if (!hold_one_table(table->literal(), own.literal(), is_turned)) continue;
      int64_t panel = plan::shared_panel(dot, gathers, planning());
      if (panel == 0 || !options_.take_rewrite()) return false;
      return read_panels(*table, dot, panel), true;
    }
    return false;
  }

  plan::PlanOptions planning() const { return {*options_.target, options_.goals, options_.schedules}; }

  // The elements of a plain constant that may be such a table.
  static const Literal* table_of(Value value) {
    const Type& type = value.type();
    bool is_matrix = type.is_tensor() && type.rank() == 2 && type.layout.is_plain() && is_float(type.dtype);
    const Literal* literal = is_matrix ? constant_literal(value) : nullptr;
    return literal && literal->num_elements() > 0 ? literal : nullptr;
  }

  // All users of the table but the dot; none if one of them is no look-up of rows in this region.
  std::vector<const Instruction*> gathers_of(const Instruction& table, const Instruction& dot) const {
    std::vector<const Instruction*> gathers;
    for (const Instruction* user : table.users()) {
      if (user == &dot) continue;
      bool is_gather = user->is(Opcode::Gather) && user->parent() == &region_ &&
                       user->operand(0).def == &table && user->operand(1).def != &table &&
                       user->attributes().integer("axis") == 0 && has_bounds(user->type());
      if (!is_gather) return {};
      gathers.push_back(user);
    }
    bool is_result = static_cast<size_t>(table.num_uses(0)) != table.users().size();
    return is_result ? std::vector<const Instruction*>{} : gathers;
  }

  void read_panels(Instruction& table, Instruction& dot, int64_t panel) {
    // The shared constant stands in front of all instructions that may read it.
    Instruction* first = region_.snapshot()[region_.parameters().size()];
    Instruction* shared = region_.append_constant(table.literal(), first);
    Type type = table.type();
    type.layout = plan::layout_in_panels(panel);
    shared->set_type(type);
    shared->set_location(table.location());
    Instruction* own = dot.operand(1).def;
    dot.set_operand(1, shared->result());
    dot.attributes().set("rhs_contract", std::vector<int64_t>{1});
    region_.replace_uses(table.result(), shared->result());
    region_.erase(&table);
    if (own != &table) region_.erase(own);
  }

  Region& region_;
  const PassOptions& options_;
};

} // namespace

bool tie_embeddings(Module& module, const PassOptions& options) {
  if (!options.target) return false;
  bool changed = false;
  for_each_region(module, [&](Region& region) { changed |= EmbeddingTying(region, options).run(); });
  return changed;
}

} // namespace firn
