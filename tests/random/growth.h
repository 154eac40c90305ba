// Grows a graph node by node. Each node is evaluated when it is added, on the values that the graph has by
// then, and stays only if a correct program must give the same result: rounding in other orders may change it
// a little (TestValue::error), but not the outcome of a comparison, and the result may not cancel to nearly
// nothing, overflow, or become a NaN.
#pragma once

#include "tests/random/random_source.h"
#include "tests/random/test_graph.h"

#include <functional>

namespace firn::test {

using Dims = std::vector<int64_t>;

class Growth {
public:
  // Tensors drawn have at most `max_elements`, results eight times as many.
  Growth(TestGraph& graph, RandomSource& random, int64_t max_elements)
      : random(random), graph_(graph), max_elements_(max_elements) {}
  RandomSource& random;

  // --- The graph so far.
  size_t num_runs() const { return graph_.runs.size(); }
  const Literal& literal(const std::string& name, size_t run = 0) const { return graph_.literal(name, run); }
  const Dims& dims(const std::string& name) const { return literal(name).dims(); }
  DType dtype(const std::string& name) const { return literal(name).dtype(); }
  int64_t rank(const std::string& name) const { return static_cast<int64_t>(dims(name).size()); }
  bool is_constant(const std::string& name) const;

  // --- Additions. Names are empty after a node that could not stay. Nodes with an empty operand fail too,
  // unless it is left out on purpose (kAbsent), so that a chain of them is checked once, at its end.
  static constexpr const char* kAbsent = "-";
  std::string add(const std::string& op, const Names& inputs, const std::vector<Message>& attributes = {});
  Names add_many(const std::string& op, const Names& inputs, int outputs,
                 const std::vector<Message>& attributes = {});
  // A node whose operands decide extents, within bounds; a bound named "" is that of its first output.
  Names add_bounded(const std::string& op, const Names& inputs, int outputs,
                    const std::vector<Message>& attributes, std::vector<TestBound> bounds,
                    std::vector<TestEnd> ends);
  // Several nodes that pass each other values that are no tensors; `op` is the name of the group.
  Names add_group(const std::string& op, const Names& inputs, const Names& outputs,
                  const std::vector<Message>& group);
  // A node with regions that read `captures` besides its inputs.
  Names add_region(const std::string& op, const Names& inputs, const Names& captures, int outputs,
                   const std::vector<Message>& attributes);
  std::string constant(LiteralRef literal);
  std::string constant_ints(const Dims& values) { return constant(Literal::of_i64(values)); }
  std::string constant_scalar(DType dtype, double value) { return constant(Literal::scalar(dtype, value)); }
  // An input. In other runs floats stand in another order and integers in the same; if dims vary, as many of
  // them as fit.
  std::string input(LiteralRef literal);
  // An input that is in each run what `make` gives for its dims, which are `dims` in the first run.
  std::string input_in_each(const Dims& dims, const std::function<LiteralRef(const Dims&)>& make);
  void make_state(const std::string& input, const std::string& output);

  // --- Tensors and operands, drawn.
  enum class Content { Any, Positive, Weights };
  LiteralRef draw_literal(DType dtype, const Dims& dims, Content content = Content::Any);
  int64_t draw_dim(); // odd, mostly
  Dims draw_dims(int64_t rank, int64_t max_elements);
  Dims draw_dims(int64_t rank) { return draw_dims(rank, max_elements_); }
  int64_t max_elements() const { return max_elements_; }
  DType draw_float();
  DType draw_integer();
  // A value that the graph already has, likelier a late one that nothing uses yet; "" if none will do.
  using Predicate = std::function<bool(const Literal&)>;
  std::string find(const Predicate& accepts);
  // A value of a float type and that rank, found, made from another by a reshape, or a new input.
  std::string float_of_rank(int64_t rank);
  // A new tensor, as an input or as a constant.
  std::string fresh(DType dtype, const Dims& dims, Content content = Content::Any);
  std::string weights(DType dtype, const Dims& dims) {
    return random.chance(0.85) ? constant(draw_literal(dtype, dims, Content::Weights))
                               : input(draw_literal(dtype, dims, Content::Weights));
  }
  // An operand that broadcasts with `dims`: found, a row, slice or mean of something, or new.
  std::string broadcastable(DType dtype, const Dims& dims);
  // |x| + offset, for operands that must stay away from zero.
  std::string away_from_zero(const std::string& x, double offset);

  // Whether a dim that has this extent in the first run has it in every run.
  bool is_fixed(int64_t extent) const;
  // A target of Reshape for something that has `dims`: a constant in which one dim that varies is left open.
  std::string reshape_target(Dims dims);

  // Everything after a mark can be taken back.
  struct Mark {
    size_t nodes, inputs, constants, states, pool;
    int counter;
    bool counted;
  };
  Mark mark() const;
  void roll_back(const Mark& mark);
  const std::vector<std::string>& pool() const { return pool_; }
  bool is_used(const std::string& name) const { return uses_.count(name) && uses_.at(name) > 0; }
  // The first message with which the importer refused a node, or the evaluator did.
  const std::string& refusal() const { return refusal_; }
  std::string fresh_name(const char* stem) { return stem + std::to_string(counter_++); }

private:
  Names stay(TestNode node);
  // Whether the importer takes the graph with its dims that are no numbers.
  bool is_importable(const Names& outputs) const;
  TestGraph& graph_;
  int64_t max_elements_;
  std::vector<std::string> pool_; // operands, in order of making; constants are not among them
  std::map<std::string, int> uses_;
  std::string refusal_;
  int counter_ = 0;
};

} // namespace firn::test
