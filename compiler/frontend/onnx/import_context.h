// The view that an importer has of one ONNX node: checked inputs, typed attributes, graph ops that never
// abort, and outputs to set.
//
// A failure is sticky: fail() records one diagnostic and every later op returns a null Value, as does any
// op with a null operand. An importer may therefore chain ops without checks, but asks `if (!value) return`
// (or failed()) before it looks at the type of a value it has computed. Inputs that the operator's row
// demands are never null.
//
// Ops on small constant operands are evaluated at once, so that shape arithmetic (Shape, Gather, Concat,
// Reshape) is constant when it is needed; integers computed from symbolic dims are known as expressions
// (known_dims).
#pragma once

#include "compiler/graph/builder.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firn::onnx {

namespace wire {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
class TypeProto;
} // namespace wire

class ImportState;
class Scope;
struct OperatorRow;

using Values = std::vector<Value>;
using Ints = std::vector<int64_t>;

class NodeContext {
public:
  NodeContext(ImportState& state, Scope& scope, const wire::NodeProto& node, int index, int opset,
              Region& region);

  // --- The node.
  const std::string& op() const;        // operator name
  int opset() const { return opset_; }  // version of the operator's domain
  int number() const { return index_; } // within its graph
  std::string label() const;            // "/conv1/Conv (Conv, node 17)"
  const wire::NodeProto& proto() const { return *node_; }

  // --- Errors. `message` is lower case and says what was found and what is wanted; the label is put before
  // it.
  void fail(std::string message);             // the model is wrong, perhaps for the shapes at hand alone
  void fail_form(std::string message);        // the model is wrong, whatever the shapes
  void fail_unsupported(std::string message); // the model is right, Firn cannot do it yet
  // Fails because what `values` hold is not known; names the graph inputs that they are computed from.
  void fail_unknown(const Values& values, std::string message);
  void warn(std::string message);
  bool failed() const { return failed_; }
  void give_up() { failed_ = true; } // the diagnostic has been recorded

  // --- Inputs. Index past the end or an empty name: absent, a null Value.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int index) const { return static_cast<bool>(input(index)); }
  Value input(int index) const {
    return index >= 0 && index < num_inputs() ? inputs_[static_cast<size_t>(index)] : Value{};
  }
  const Values& inputs() const { return inputs_; }
  std::string input_label(int index) const; // "input 'x'"

  // --- Checks: true, or fail() with a message that names the input.
  bool check(bool condition, std::string message);
  bool check_given(int input); // it is not left out
  bool check_rank(int input, int rank);
  bool check_rank_at_least(int input, int rank);
  bool check_same_dtype(int input, int other);
  bool check_dims(int input, const Ints& wanted); // -1 matches any extent; symbolic dims match only -1
  bool check_scalar(int input);                   // one element, of any rank
  bool check_vector(int input);                   // rank 1, or the scalar that stands for one element
  // Extents, or fail() naming the symbolic dim and how to bind it.
  std::optional<Ints> static_dims(Value value, std::string_view what);
  std::optional<Ints> static_dims(int input);
  std::optional<int64_t> static_dim(int input, int axis);
  std::optional<int64_t> static_dim(Value value, int axis, std::string_view what);
  // Axis in [-rank, rank) to [0, rank), or fail().
  std::optional<int> axis(int64_t axis, int rank);
  std::optional<std::vector<int>> axes(const Ints& axes, int rank); // duplicates fail

  // --- Attributes. Absent: the fallback. Present with another kind: fail() and the fallback.
  bool has_attribute(std::string_view name) const;
  int64_t int_attribute(std::string_view name, int64_t fallback);
  bool flag_attribute(std::string_view name, bool fallback) { return int_attribute(name, fallback) != 0; }
  double float_attribute(std::string_view name, double fallback);
  std::string string_attribute(std::string_view name, std::string_view fallback);
  Ints ints_attribute(std::string_view name, Ints fallback = {});
  // The attributes above fail() for integers beyond +-2^31, so that products of two do not overflow. These
  // two take any integer, such as the ends of Slice.
  Ints unbounded_ints_attribute(std::string_view name, Ints fallback = {});
  Ints unbounded_int_attribute(std::string_view name); // a list of one number
  std::vector<double> floats_attribute(std::string_view name, std::vector<double> fallback = {});
  std::vector<std::string> strings_attribute(std::string_view name);
  std::optional<DType> dtype_attribute(std::string_view name); // unknown numbers fail(); absent: nothing
  LiteralRef tensor_attribute(std::string_view name); // null if absent or after fail(); sparse is made dense
  const wire::GraphProto* graph_attribute(std::string_view name);
  std::optional<Type> type_attribute(std::string_view name); // tensors without their dims; absent is a fail()
  // These fail() if the attribute is absent, too.
  int64_t required_int(std::string_view name);
  Ints required_ints(std::string_view name);
  // One of `allowed`, or fail() listing them.
  std::string choice_attribute(std::string_view name, std::string_view fallback,
                               std::initializer_list<std::string_view> allowed);

  // --- Facts about values that are known now.
  LiteralRef constant(Value value) const;               // the literal of a constant; null otherwise
  std::optional<Ints> constant_ints(Value value) const; // elements of an integer or bool constant
  std::optional<std::vector<double>> constant_doubles(Value value) const;
  std::optional<std::vector<IntExpr>> known_ints(Value value) const; // elements as expressions over symbols
  // Constants of an input, or fail() with "input 'axes' must be constant".
  std::optional<Ints> required_constant_ints(int input);
  std::optional<std::vector<double>> required_constant_doubles(int input);
  // Elements that must be usable as dims: constants >= 0 or expressions over symbols; fail() otherwise.
  std::optional<std::vector<Dim>> known_dims(int input);

  // --- Graph ops, at the end of the current region. All return a null Value after a failure; wrong
  // operands fail().
  Instruction* make(Opcode opcode, Values operands, Attributes attributes = {});
  // Makes an op with the result types given, if they do not follow from operands; only their size is checked.
  Instruction* make_typed(Opcode opcode, Values operands, std::vector<Type> types,
                          Attributes attributes = {});
  Value op(Opcode opcode, Values operands, Attributes attributes = {});
  Value constant(LiteralRef literal);
  Value model_constant(LiteralRef literal); // the model's own data, which counts towards no limit
  Value constant_ints(const Ints& values) { return constant(Literal::of_i64(values)); } // i64 vector
  Value scalar(DType dtype, double value);
  Value scalar_int(DType dtype, int64_t value); // exact beyond 2^53
  Value splat(DType dtype, const std::vector<Dim>& dims, double value);
  Value splat_like(Value like, double value);
  Value unary(Opcode opcode, Value operand) { return op(opcode, {operand}); }
  Value binary(Opcode opcode, Value lhs, Value rhs, Attributes attributes = {}); // broadcasts
  Value compare(std::string_view direction, Value lhs, Value rhs);
  Value select(Value condition, Value on_true, Value on_false); // broadcasts
  Value convert(Value operand, DType dtype);
  // f16 and bf16 as f32, for operators that do not round sums and products in between.
  Value widened(Value operand) {
    return operand ? convert(operand, widened_dtype(operand.dtype())) : operand;
  }
  static DType widened_dtype(DType dtype) {
    return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
  }
  Value broadcast_to(Value operand, const std::vector<Dim>& dims);
  Value broadcast_in_dim(Value operand, const std::vector<Dim>& dims, const Ints& operand_dims);
  Value reshape(Value operand, std::vector<Dim> dims);
  Value reshape_to(Value operand, const Ints& dims);
  Value unsqueeze(Value operand, int axis); // a dim of extent 1 before dim `axis` (or at the end)
  Value squeeze(Value operand, int axis);
  Value transpose(Value operand, Ints permutation);
  Value slice(Value operand, Ints starts, Ints limits, Ints strides);
  Value slice_dim(Value operand, int dim, int64_t start, int64_t limit); // other dims whole
  // The elements [start, start + size) of one dim, if these extents vary. The dim must have them.
  Value slice_symbolic(Value operand, int dim, const IntExpr& start, const IntExpr& size);
  Value concatenate(Values operands, int dim);
  Value pad(Value operand, Value value, Ints low, Ints high, Ints interior = {});
  Value iota(DType dtype, const std::vector<Dim>& dims, int dim);
  Value reduce(Opcode reducer, Value operand, const std::vector<int>& dims, bool keep_dims);
  Value reduce_window(Opcode reducer, Value operand, Window window);
  Value dim_size(Value operand, int dim); // i64 scalar; constant for a static dim
  // The product of dims, or nothing after a failure if it could exceed 64 bits.
  std::optional<Dim> product(const std::vector<Dim>& dims);
  // The number of elements of `value` along dims, of dtype: a constant, or computed from dim_size.
  Value count(Value value, const std::vector<int>& dims, DType dtype);

  // --- Regions. `body` gets the parameters and returns the results, or an empty list after a failure; ops
  // it makes go into the region. Composites: compiler/graph/composites.h through builder(), or composite()
  // here.
  using Body = std::function<Values(const Values& parameters)>;
  // A composite over `operands`, isolated: the body may use its parameters only. Results have the body's
  // types.
  Instruction* composite(std::string_view name, Values operands, Attributes attributes, const Body& body);
  // Region ops whose bodies may use outside values. A loop's body must give the types of `initial`.
  Instruction* while_loop(Values initial, const Body& condition, const Body& body);
  // Sorts `operands` together along `dim` by the first one; stable.
  Instruction* sort(Values operands, int dim, bool descending);
  // The results of the If `made`, whose two regions are the branches. Extents that differ between the
  // branches are counted by the run.
  std::optional<Values> finish_if(Instruction* made, Value condition);
  // Imports an ONNX subgraph's nodes into the current region; `arguments` stand for its inputs. Nothing after
  // a failure. `is_branch`: the subgraph is a branch of an If, which may go on behind the end of the graph
  // (node_walk.h).
  std::optional<Values> import_subgraph(const wire::GraphProto& graph, const Values& arguments,
                                        bool is_branch = false);

  // --- Outputs.
  int num_outputs() const;          // names that the node lists, trailing empty ones dropped
  bool has_output(int index) const; // whether it is listed with a name
  void set_output(int index, Value value);
  const Values& outputs() const { return outputs_; }

  Region& region() const { return *region_; }
  const std::string& location() const { return location_; }
  // Runs `f` with `region` as the place where ops are made.
  void in_region(Region& region, const std::function<void()>& f);
  // Erases an unused op with its regions; nothing made in them may be referred to again.
  void discard(Instruction* instruction);
  // Makes composites (compiler/graph/composites.h) at the end of the current region, at the node's location.
  // They are neither validated nor folded: the caller has checked ranks, dtypes and dims.
  GraphBuilder builder() const;
  ImportState& state() const { return *state_; }

private:
  friend class Attempt;
  friend class GraphImporter;
  friend class RestOfGraph;
  const wire::AttributeProto* find_attribute(std::string_view name) const;
  void wrong_kind(std::string_view name, const wire::AttributeProto& attribute, std::string_view wanted);
  bool usable(const Values& operands) const;
  Instruction* folded(Instruction* made);
  void unify_one_element(Region& first, Region& second);
  Ints unify_extents(Region& first, Region& second, size_t result);
  bool fill_region(Region& region, const Values& parameters, const Body& body);

  ImportState* state_;
  Scope* scope_;
  const wire::NodeProto* node_;
  int index_;
  int opset_;
  Region* region_;
  std::string location_; // for instructions: the node's name, or its first output's
  Values inputs_, outputs_;
  bool failed_ = false;
  bool by_shapes_ = false;       // a failure now may depend on the shapes at hand
  bool defines_outputs_ = false; // the importer defines them in its scope
};

} // namespace firn::onnx
