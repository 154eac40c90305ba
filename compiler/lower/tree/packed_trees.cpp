// One walk after the other down trees whose entries only compare: a walk ends when its number is a leaf's.
// Few results are summed in registers over all trees of a row.
#include "compiler/lower/tree/packed_trees.h"

#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/tree/leaf_reduction.h"
#include "compiler/plan/trees/packed_trees.h"

namespace firn::lower {
namespace {

using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;
using kernel::Scalar;
using Registers = std::vector<Register>;

// Accumulators of more results than that would leave registers.
constexpr int64_t kMaxAccumulators = 8;

class PackedTreeKernel {
public:
  PackedTreeKernel(LoweringContext& context, const Instruction& composite, const plan::TreesPlan& plan)
      : composite_(composite), plan_(plan), trees_(*read_tree_ensemble(composite)), tables_(*plan.entries),
        x_type_(composite.operand(0).type()), features_(x_type_.dims[1].value()),
        number_(memory_scalar(x_type_.dtype)), maker_(context, composite, "tree_ensemble"),
        b_(maker_.builder()) {}

  void emit() {
    x_ = maker_.read(composite_.operand(0));
    thresholds_ = table(tables_.thresholds, composite_.operand(1), "thresholds");
    links_ = table(tables_.links, composite_.operand(2), "links");
    values_ = table(tables_.values, composite_.operand(3), "values");
    roots_ = table(tables_.roots, composite_.operand(4), "roots");
    if (trees_.targets && trees_.results > 1) targets_ = maker_.read(composite_.operand(5));
    y_ = maker_.write(result_of(composite_));
    const IntExpr& rows = x_type_.dims[0].extent;
    IntExpr first = b_.set_parallel(ceil_div(rows, plan_.block)) * plan_.block;
    b_.loop(first, min(first + plan_.block, rows), 1, [&](const IntExpr& row) {
      if (targets_ < 0 && trees_.results <= kMaxAccumulators)
        sum_in_registers(row);
      else
        sum_in_memory(row);
    });
    maker_.set_flops(x_type_.at_bound().dims[0].value() * trees_.trees() *
                     std::max<int64_t>(trees_.depth, 1));
    maker_.finish();
  }

private:
  int table(const LiteralRef& literal, Value original, const char* name) {
    auto bytes = bit_width(literal->dtype()) / 8;
    int64_t count = literal->num_elements();
    int buffer = maker_.context().add_constant(literal, padded_copy(static_cast<int>(bytes), count, count),
                                               original.def->location());
    return maker_.parameter({buffer, 0}, memory_scalar(literal->dtype()), count, false, name);
  }

  Register integer(int64_t value) { return b_.constant_int({Scalar::I32, 1}, value); }
  Register identity() {
    return b_.constant({number_, 1}, reducer_identity(trees_.reducer, x_type_.dtype)->get_double(0));
  }
  Register combine(Register sum, Register value) { return combine_leaves(b_, trees_.reducer, sum, value); }
  Register value(const IntExpr& at) { return b_.load({number_, 1}, values_, at); }
  IntExpr index(Register number, int64_t last) {
    return b_.symbolic(b_.cast(OpKind::IndexCast, number, Scalar::Index), 0, last);
  }

  void sum_in_registers(const IntExpr& row) {
    Registers accumulators(static_cast<size_t>(trees_.results), identity());
    accumulators = b_.loop_carried(
        0, trees_.trees(), 1, accumulators, [&](const IntExpr& tree, const Registers& so_far) {
          IntExpr leaf = walk(row, tree);
          Registers next;
          for (size_t k = 0; k < so_far.size(); ++k)
            next.push_back(combine(so_far[k], value(leaf + static_cast<int64_t>(k))));
          return next;
        });
    for (int64_t k = 0; k < trees_.results; ++k)
      b_.store(accumulators[static_cast<size_t>(k)], y_, row * trees_.results + k);
  }

  void sum_in_memory(const IntExpr& row) {
    IntExpr to = row * trees_.results;
    b_.loop(0, trees_.results, 1, [&](const IntExpr& k) { b_.store(identity(), y_, to + k); });
    auto add = [&](const IntExpr& place, const IntExpr& from) {
      b_.store(combine(b_.load({number_, 1}, y_, place), value(from)), y_, place);
    };
    b_.loop(0, trees_.trees(), 1, [&](const IntExpr& tree) {
      IntExpr leaf = walk(row, tree);
      if (targets_ >= 0)
        return add(to + index(b_.load({Scalar::I32, 1}, targets_, tree), trees_.results - 1), leaf);
      b_.loop(0, trees_.results, 1, [&](const IntExpr& k) { add(to + k, leaf + k); });
    });
  }

  // The place of the first value of the leaf that the row reaches.
  IntExpr walk(const IntExpr& row, const IntExpr& tree) {
    Register root = b_.cast(OpKind::ZExt, b_.load({Scalar::I16, 1}, roots_, tree), Scalar::I32);
    Register nodes = integer(tables_.nodes());
    Register leaf = b_.while_loop(
        {root}, [&](const Registers& at) { return b_.compare(OpKind::SCmp, Predicate::Lt, at[0], nodes); },
        [&](const Registers& at) { return Registers{step(row, at[0])}; })[0];
    int64_t columns = trees_.targets ? 1 : trees_.results;
    return index(b_.binary(OpKind::ISub, leaf, nodes), tables_.values->num_elements() - columns);
  }

  Register step(const IntExpr& row, Register number) {
    IntExpr at = index(number, tables_.nodes() - 1);
    auto mask = [&](int bits) { return integer((int64_t{1} << bits) - 1); };
    Register link = b_.load({Scalar::I32, 1}, links_, at);
    Register feature = b_.binary(OpKind::And, link, mask(tables_.feature_bits));
    Register x = b_.load({number_, 1}, x_, row * features_ + index(feature, features_ - 1));
    Register threshold = b_.load({number_, 1}, thresholds_, at);
    int bits = tables_.number_bits;
    Register within = b_.binary(OpKind::LShr, link, integer(32 - bits));
    Register beyond =
        b_.binary(OpKind::And, b_.binary(OpKind::LShr, link, integer(32 - 2 * bits)), mask(bits));
    return b_.select(b_.compare(OpKind::FCmp, Predicate::Le, x, threshold), within, beyond);
  }

  const Instruction& composite_;
  const plan::TreesPlan& plan_;
  TreeEnsemble trees_;
  const plan::PackedTrees& tables_;
  const Type& x_type_;
  int64_t features_;
  Scalar number_;
  KernelMaker maker_;
  kernel::Builder& b_;
  int x_ = -1, thresholds_ = -1, links_ = -1, values_ = -1, roots_ = -1, targets_ = -1, y_ = -1; // parameters
};

} // namespace

void emit_packed_trees(LoweringContext& context, const Instruction& composite, const plan::TreesPlan& plan) {
  PackedTreeKernel(context, composite, plan).emit();
}

} // namespace firn::lower
