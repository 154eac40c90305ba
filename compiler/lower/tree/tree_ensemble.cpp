// Walks down decision trees. Several rows and trees are walked side by side; their steps are independent, so
// that the machine overlaps their waits. A block of rows goes down one tree after the other, while the tree's
// entries are near. Walks end together, when the last of them has reached its leaf.
#include "compiler/graph/tree_ensemble.h"

#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/tree/leaf_reduction.h"
#include "compiler/lower/tree/packed_trees.h"
#include "compiler/plan/trees/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::OpKind;
using kernel::Predicate;
using kernel::Register;
using kernel::Scalar;

class TreeKernel {
public:
  TreeKernel(LoweringContext& context, const Instruction& composite, const plan::TreesPlan& plan)
      : context_(context), composite_(composite), plan_(plan), trees_(*read_tree_ensemble(composite)),
        x_type_(composite.operand(0).type()), features_(x_type_.dims[1].value()),
        number_(memory_scalar(x_type_.dtype)), link_(memory_scalar(trees_.links->dtype())) {}

  void emit() {
    KernelMaker maker(context_, composite_, "tree_ensemble");
    b_ = &maker.builder();
    x_ = maker.read(composite_.operand(0));
    thresholds_ = maker.read(composite_.operand(1));
    links_ = maker.read(composite_.operand(2));
    values_ = maker.read(composite_.operand(3));
    roots_ = maker.read(composite_.operand(4));
    if (trees_.targets && trees_.results > 1) targets_ = maker.read(composite_.operand(5));
    y_ = maker.write(result_of(composite_));
    const IntExpr& rows = x_type_.dims[0].extent;
    IntExpr item = b_->set_parallel(ceil_div(rows, plan_.block));
    emit_block(item * plan_.block, min(item * plan_.block + plan_.block, rows));
    maker.set_flops(x_type_.at_bound().dims[0].value() * trees_.trees() * std::max<int64_t>(trees_.depth, 1));
    maker.finish();
  }

private:
  void emit_block(const IntExpr& first, const IntExpr& end) {
    b_->loop(first * trees_.results, end * trees_.results, 1,
             [&](const IntExpr& i) { b_->store(identity(1), y_, i); });
    IntExpr whole = first;
    if (plan_.rows > 1) {
      IntExpr tiles = floor_div(end - first, plan_.rows);
      whole = first + tiles * plan_.rows;
      each_tree(plan_.trees, [&](const IntExpr& tree, int64_t count) {
        b_->loop(0, tiles, 1,
                 [&](const IntExpr& tile) { emit_tile(first + tile * plan_.rows, plan_.rows, tree, count); });
      });
      const Dim& rows = x_type_.dims[0];
      if (rows.is_static() && rows.value() % plan_.rows == 0) return;
    }
    b_->loop(whole, end, 1, [&](const IntExpr& row) {
      each_tree(plan_.rows * plan_.trees,
                [&](const IntExpr& tree, int64_t count) { emit_tile(row, 1, tree, count); });
    });
  }

  // Calls `body` for all trees, `side_by_side` at a time, and for the rest one by one.
  template <class Body> void each_tree(int64_t side_by_side, Body body) {
    int64_t whole = trees_.trees() / side_by_side * side_by_side;
    b_->loop(0, whole, side_by_side, [&](const IntExpr& tree) { body(tree, side_by_side); });
    if (whole < trees_.trees())
      b_->loop(whole, trees_.trees(), 1, [&](const IntExpr& tree) { body(tree, 1); });
  }

  // Walks `rows` rows down `trees` trees side by side; walk r * trees + t is that of row r and tree t.
  void emit_tile(const IntExpr& row, int64_t rows, const IntExpr& tree, int64_t trees) {
    std::vector<Register> roots, walks;
    for (int64_t t = 0; t < trees; ++t)
      roots.push_back(b_->cast(OpKind::SExt, b_->load({Scalar::I32, 1}, roots_, tree + t), Scalar::I64));
    for (int64_t r = 0; r < rows; ++r) walks.insert(walks.end(), roots.begin(), roots.end());
    walks = walk(row, trees, std::move(walks));
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<IntExpr> leaves;
      for (int64_t t = 0; t < trees; ++t) leaves.push_back(entry(walks[static_cast<size_t>(r * trees + t)]));
      add_leaves((row + r) * trees_.results, tree, leaves);
    }
  }

  // The entry that a walk has reached, as an index.
  IntExpr entry(Register walk) {
    return b_->symbolic(b_->cast(OpKind::IndexCast, walk, Scalar::Index), 0, trees_.entries() - 1);
  }

  using Registers = std::vector<Register>;

  Registers next_entries(const IntExpr& row, int64_t trees, const Registers& walks) {
    Registers next;
    for (size_t i = 0; i < walks.size(); ++i)
      next.push_back(step(row + static_cast<int64_t>(i) / trees, walks[i]));
    return next;
  }

  // Takes as many steps as the longest walk has. Long walks end early once a step moves none of them.
  Registers walk(const IntExpr& row, int64_t trees, Registers walks) {
    if (trees_.depth <= plan_.unchecked_steps)
      return b_->loop_carried(0, trees_.depth, 1, std::move(walks), [&](const IntExpr&, const Registers& at) {
        return next_entries(row, trees, at);
      });
    auto integer = [&](int64_t value) { return b_->constant_int({Scalar::I64, 1}, value); };
    size_t count = walks.size();
    walks.push_back(integer(1)); // the bits in which the last step changed any walk
    walks.push_back(integer(0)); // steps
    Registers done = b_->while_loop(
        std::move(walks),
        [&](const Registers& at) {
          return b_->binary(OpKind::And, b_->compare(OpKind::SCmp, Predicate::Ne, at[count], integer(0)),
                            b_->compare(OpKind::SCmp, Predicate::Lt, at[count + 1], integer(trees_.depth)));
        },
        [&](const Registers& at) {
          Registers last(at.begin(), at.begin() + static_cast<int64_t>(count)), next = last;
          for (int64_t i = 0; i < plan_.steps_per_check; ++i) next = next_entries(row, trees, last = next);
          Register moved = integer(0);
          for (size_t i = 0; i < count; ++i)
            moved = b_->binary(OpKind::Or, moved, b_->binary(OpKind::Xor, last[i], next[i]));
          next.push_back(moved);
          next.push_back(b_->binary(OpKind::IAdd, at[count + 1], integer(plan_.steps_per_check)));
          return next;
        });
    done.resize(count);
    return done;
  }

  // The entry behind `walk`: child - 1 if the row's feature is within the threshold, else child.
  Register step(const IntExpr& row, Register walk) {
    IntExpr at = entry(walk);
    Register link = b_->load({link_, 1}, links_, at);
    if (link_ != Scalar::I64) link = b_->cast(OpKind::SExt, link, Scalar::I64);
    auto integer = [&](int64_t value) { return b_->constant_int({Scalar::I64, 1}, value); };
    Register feature = b_->binary(OpKind::And, link, integer((int64_t{1} << trees_.shift) - 1));
    IntExpr column = b_->symbolic(b_->cast(OpKind::IndexCast, feature, Scalar::Index), 0, features_ - 1);
    Register x = b_->load({number_, 1}, x_, row * features_ + column);
    Register within = b_->compare(OpKind::FCmp, Predicate::Le, x, b_->load({number_, 1}, thresholds_, at));
    Register child = b_->binary(OpKind::LShr, link, integer(trees_.shift));
    return b_->binary(OpKind::ISub, child, b_->cast(OpKind::ZExt, within, Scalar::I64));
  }

  Register identity(int lanes) {
    return b_->constant({number_, lanes}, reducer_identity(trees_.reducer, x_type_.dtype)->get_double(0));
  }

  Register combine(Register sum, Register value) { return combine_leaves(*b_, trees_.reducer, sum, value); }

  // Adds what the leaves of some trees hold to the results at `to`.
  void add_leaves(const IntExpr& to, const IntExpr& tree, const std::vector<IntExpr>& leaves) {
    if (!trees_.targets) {
      for (const IntExpr& leaf : leaves) add_line(to, leaf * trees_.results);
      return;
    }
    if (trees_.results == 1) {
      Register sum = b_->load({number_, 1}, y_, to);
      for (const IntExpr& leaf : leaves) sum = combine(sum, b_->load({number_, 1}, values_, leaf));
      return b_->store(sum, y_, to);
    }
    for (size_t t = 0; t < leaves.size(); ++t) {
      Register target = b_->load({Scalar::I32, 1}, targets_, tree + static_cast<int64_t>(t));
      IntExpr place =
          to + b_->symbolic(b_->cast(OpKind::IndexCast, target, Scalar::Index), 0, trees_.results - 1);
      Register value = b_->load({number_, 1}, values_, leaves[t]);
      b_->store(combine(b_->load({number_, 1}, y_, place), value), y_, place);
    }
  }

  void add_line(const IntExpr& to, const IntExpr& from) {
    auto add = [&](const IntExpr& i, int lanes) {
      kernel::MachineType type{number_, lanes};
      b_->store(combine(b_->load(type, y_, to + i), b_->load(type, values_, from + i)), y_, to + i);
    };
    const auto lanes = static_cast<int>(plan_.lanes);
    int64_t whole = trees_.results / lanes * lanes;
    b_->loop(0, whole, lanes, [&](const IntExpr& i) { add(i, lanes); });
    if (lanes > 1) b_->loop(whole, trees_.results, 1, [&](const IntExpr& i) { add(i, 1); });
  }

  LoweringContext& context_;
  const Instruction& composite_;
  const plan::TreesPlan& plan_;
  TreeEnsemble trees_;
  const Type& x_type_;
  int64_t features_;
  Scalar number_, link_;
  kernel::Builder* b_ = nullptr;
  int x_ = -1, thresholds_ = -1, links_ = -1, values_ = -1, roots_ = -1, targets_ = -1, y_ = -1; // parameters
};

} // namespace

void emit_trees(LoweringContext& context, const Instruction& composite, const plan::TreesPlan& plan) {
  if (plan.packed) return emit_packed_trees(context, composite, plan);
  TreeKernel(context, composite, plan).emit();
}

} // namespace firn::lower
