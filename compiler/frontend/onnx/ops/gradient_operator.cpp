// The operator Gradient: partial derivatives of the tensor y by the tensors xs. Its inputs are values for the
// tensors xs and zs, which need not be those that the graph has there. The nodes between them and y are
// imported once more, into a function whose parameters are xs and zs:
//
//   c = Add(a, b)   d = Mul(c, a)   da = Gradient<xs = [a, c], y = d>(p, q)
// becomes
//   func @da_primal(%a, %c) { %d = multiply %c, %a  return %d }
//   func @da = gradient @da_primal wrt 0, 1
//   ... %da:2 = call %p, %q {callee = "da"}
//
// A Gradient whose y comes from another one is met again within its function, and nests there.
#include "compiler/frontend/onnx/ops/training_operators.h"

#include "compiler/frontend/onnx/import/node_walk.h"
#include "compiler/frontend/onnx/wire/load.h"
#include "compiler/graph/function_type.h"

namespace firn::onnx {
namespace {

// The nodes between some tensors and y, as numbers in the order of the graph, and the names that they read
// without one of them making it.
struct Cut {
  std::set<int> nodes;
  std::set<std::string> reads;
  std::set<std::string> inner_reads; // by what other Gradients among the nodes differentiate
};

class CutOut {
public:
  explicit CutOut(const Nodes& nodes) : nodes_(nodes) {
    for (int i = 0; i < nodes.size(); ++i)
      for (const std::string& output : nodes[i].output()) makers_.emplace(output, i);
  }

  Cut make(const std::set<std::string>& tensors, const std::string& y) {
    Cut cut;
    walk(tensors, y, cut);
    std::vector<int> open(cut.nodes.begin(), cut.nodes.end());
    std::set<int> seen;
    while (!open.empty()) {
      int index = open.back();
      open.pop_back();
      if (nodes_[index].op_type() != "Gradient" || !seen.insert(index).second) continue;
      Cut inner = make_inner(nodes_[index]);
      cut.inner_reads.insert(inner.reads.begin(), inner.reads.end());
      open.insert(open.end(), inner.nodes.begin(), inner.nodes.end());
    }
    return cut;
  }

private:
  Cut make_inner(const wire::NodeProto& gradient) const {
    std::set<std::string> tensors;
    std::string y;
    for (const auto& attribute : gradient.attribute()) {
      if (attribute.name() == "y") y = attribute.s();
      if (attribute.name() == "xs" || attribute.name() == "zs")
        tensors.insert(attribute.strings().begin(), attribute.strings().end());
    }
    Cut cut;
    walk(tensors, y, cut);
    return cut;
  }

  void walk(const std::set<std::string>& tensors, const std::string& y, Cut& cut) const {
    std::set<std::string> seen{""}, open{y};
    while (!open.empty()) {
      std::string name = std::move(open.extract(open.begin()).value());
      if (tensors.count(name) || !seen.insert(name).second) continue;
      auto maker = makers_.find(name);
      if (maker == makers_.end())
        cut.reads.insert(name);
      else if (cut.nodes.insert(maker->second).second)
        add_reads(nodes_[maker->second], open);
    }
  }

  const Nodes& nodes_;
  std::map<std::string, int> makers_; // the node that makes a name
};

class GradientImport {
public:
  explicit GradientImport(NodeContext& node)
      : node_(node), state_(node.state()), here_(state_.walk->steps[state_.walk->at]),
        around_(*state_.walk->scopes[here_.scope]), scope_(nullptr, around_.frame()) {}

  void run() {
    if (!read_names()) return;
    primal_ = &state_.module.add_function(unused_name(node_.location() + "_primal"));
    std::vector<Value> arguments = add_parameters();
    if (import_cut()) call_gradient(std::move(arguments));
  }

private:
  bool read_names() {
    xs_ = node_.strings_attribute("xs");
    zs_ = node_.strings_attribute("zs");
    y_ = node_.string_attribute("y", "");
    if (!node_.check(!y_.empty(), "attribute 'y' is missing") ||
        !node_.check(!xs_.empty(), "attribute 'xs' is missing"))
      return false;
    size_t tensors = xs_.size() + zs_.size();
    auto inputs = static_cast<size_t>(node_.num_inputs());
    if (!node_.check(inputs == tensors, "has " + std::to_string(inputs) + " inputs, wants " +
                                            std::to_string(tensors) + ", a value for each of xs and zs") ||
        !node_.check(static_cast<size_t>(node_.num_outputs()) <= xs_.size(),
                     "has " + std::to_string(node_.num_outputs()) + " outputs, wants " +
                         std::to_string(xs_.size()) + ", a gradient by each of xs"))
      return false;
    for (size_t i = 0; i < tensors; ++i) {
      int input = static_cast<int>(i);
      if (!node_.check_given(input) ||
          !node_.check(tensors_.insert(name_of(i)).second, "xs and zs name '" + name_of(i) + "' twice"))
        return false;
      const Type& type = node_.input(input).type();
      if (i < xs_.size() &&
          !node_.check(is_differentiable(type), node_.input_label(input) + " is " + type.to_string() +
                                                    ", wants f16, bf16, f32 or f64"))
        return false;
    }
    return true;
  }

  const std::string& name_of(size_t tensor) const {
    return tensor < xs_.size() ? xs_[tensor] : zs_[tensor - xs_.size()];
  }

  std::string unused_name(const std::string& wanted) const {
    std::string name = wanted;
    for (int suffix = 1; name.empty() || state_.module.find(name); ++suffix)
      name = wanted + "_" + std::to_string(suffix);
    return name;
  }

  // Parameters for xs and zs, and what a call gives for them. A constant for one of zs, such as a shape,
  // stays one.
  std::vector<Value> add_parameters() {
    std::vector<Value> arguments;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      Value given = node_.input(static_cast<int>(i));
      bool is_constant = i >= xs_.size() && given.def->is(Opcode::Constant);
      if (!is_constant) arguments.push_back(given);
      Value inside = is_constant ? primal_->body().append_constant(given.def->literal())->result()
                                 : primal_->body().add_parameter(given.type())->result();
      (void)scope_.define(name_of(i), {inside, false});
    }
    return arguments;
  }

  // Defines in the function what nodes of the cut read that no node makes: constants, and inputs left out.
  // False if the name is neither.
  bool define_outer(const std::string& name) {
    const NamedValue* found = around_.find(name);
    if (!found) return false;
    Value inside, outside = found->value;
    if (outside && !outside.def->is(Opcode::Constant)) return false;
    if (outside) {
      Instruction* copy = primal_->body().append_constant(outside.def->literal());
      copy->set_location(outside.def->location());
      inside = copy->result();
    }
    (void)scope_.define(name, {inside, found->failed});
    return true;
  }

  bool import_cut() {
    Cut cut = CutOut(*here_.nodes).make(tensors_, y_);
    if (!node_.check(!cut.nodes.count(here_.index), "y '" + y_ + "' depends on the node itself"))
      return false;
    if (!node_.check(state_.depth < kMaxDepth,
                     "gradients are nested more than " + std::to_string(kMaxDepth) + " deep"))
      return false;
    for (const std::string& name : cut.reads)
      if (!define_outer(name))
        return node_.check(false, name == y_
                                      ? "y names '" + y_ + "', which is not defined"
                                      : "y '" + y_ + "' depends on '" + name + "', wants it in xs or zs");
    for (const std::string& name : cut.inner_reads) (void)define_outer(name);
    NodeWalk walk;
    walk.scopes = {&scope_};
    walk.outputs = {y_};
    for (int index : cut.nodes) walk.steps.push_back({here_.nodes, index, 0});
    GraphImporter importer(state_, primal_->body());
    ++state_.depth;
    for (size_t step = 0; step < walk.steps.size() && !state_.out_of_budget && !state_.disagreement; ++step)
      importer.import_step(walk, step);
    --state_.depth;
    const NamedValue* y = scope_.find(y_);
    if (!y || !y->value || state_.disagreement) return node_.give_up(), false;
    primal_->body().set_results({y->value});
    return node_.check(is_differentiable(y->value.type()),
                       "y '" + y_ + "' is " + y->value.type().to_string() + ", wants f16, bf16, f32 or f64");
  }

  void call_gradient(std::vector<Value> arguments) {
    GradientOf declared{primal_->name(), 0, {}, {}, /*seedable=*/false, state_.options.straight_through};
    std::vector<Type> types;
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (!node_.has_output(static_cast<int>(i))) continue;
      declared.wrt.push_back(static_cast<int>(i));
      types.push_back(arguments[i].type());
    }
    Function& gradient = state_.module.add_function(unused_name(node_.location()));
    gradient.gradient = declared;
    Instruction* call =
        node_.make_typed(Opcode::Call, std::move(arguments), std::move(types), {{"callee", gradient.name()}});
    for (size_t i = 0; call && i < declared.wrt.size(); ++i)
      node_.set_output(declared.wrt[i], call->result(static_cast<int>(i)));
  }

  NodeContext& node_;
  ImportState& state_;
  const ImportStep here_; // a copy: importing may add steps
  const Scope& around_;
  Scope scope_; // names in the function: its tensors, then what its nodes define
  std::vector<std::string> xs_, zs_;
  std::set<std::string> tensors_;
  std::string y_;
  Function* primal_ = nullptr;
};

} // namespace

void import_gradient(NodeContext& node) {
  GradientImport(node).run();
}

} // namespace firn::onnx
