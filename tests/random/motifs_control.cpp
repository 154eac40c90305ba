// Motifs of control flow: branches, loops and scans whose bodies are drawn.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

Message declared(const std::string& name, DType dtype, const Dims& dims) {
  return value(name, wire_type(dtype), std::vector<WireDim>(dims.begin(), dims.end()));
}

bool small_float(const Literal& v) {
  return is_any_float(v) && v.num_elements() < 500;
}

// Nodes of a region. Values of one type, small enough to stay tame through loops.
class Body {
public:
  Body(Growth& g, const char* stem) : g_(g), stem_(stem) {}
  Graph graph;
  std::string add(const std::string& op, const Names& operands, const std::vector<Message>& attributes = {}) {
    std::string name = stem_ + std::to_string(made_++);
    graph.nodes.push_back(node(op, operands, {name}, attributes));
    return name;
  }
  // A few elementwise nodes on `v`, with `others` of its shape, that end between -1 and 1.
  std::string chain(std::string v, const Names& others) {
    for (int64_t i = g_.random.between(0, 3); i > 0; --i) switch (g_.random.between(0, 3)) {
      case 0: v = add(g_.random.pick({"Neg", "Abs", "Relu", "Softsign", "Sin"}), {v}); break;
      case 1: v = add("Where", {add("Less", {v, g_.random.pick(others)}), v, g_.random.pick(others)}); break;
      default: v = add(g_.random.pick({"Add", "Sub", "Mul", "Max", "Min"}), {v, g_.random.pick(others)});
      }
    return add(g_.random.pick({"Tanh", "Sigmoid", "Softsign"}), {v});
  }
  Message output(const std::string& name) { return Message().text(1, name); }

private:
  Growth& g_;
  std::string stem_;
  int made_ = 0;
};

std::string scalar_input(Growth& g, DType dtype, int64_t low, int64_t high) {
  return g.input_in_each({}, [&](const Dims&) {
    auto literal = std::make_shared<Literal>(dtype, Dims{});
    literal->set_int(0, g.random.between(low, high));
    return literal;
  });
}

// Branches of equal or of different extents, perhaps with branches inside.
std::string branch(Growth& g) {
  std::string x = g.find(small_float);
  if (x.empty()) return "";
  std::string condition = scalar_input(g, DType::Bool, 0, 1);
  Names captures{x};
  Body yes(g, "then_"), no(g, "else_");
  std::string y = yes.chain(x, {x}), n = no.chain(x, {x});
  if (g.random.chance(0.3) && g.rank(x) > 0) {
    std::string one = g.constant_ints({1}), zero = g.constant_ints({0});
    captures.insert(captures.end(), {one, zero});
    n = no.add("Slice", {n, zero, one, zero});
  }
  if (g.random.chance(0.3)) {
    std::string other = scalar_input(g, DType::Bool, 0, 1);
    captures.push_back(other);
    Body inner_yes(g, "inner_then_"), inner_no(g, "inner_else_");
    inner_yes.graph.outputs = {inner_yes.output(inner_yes.chain(y, {x, y}))};
    inner_no.graph.outputs = {inner_no.output(inner_no.chain(y, {x}))};
    y = yes.add("If", {other},
                {attribute_graph("then_branch", inner_yes.graph.encode()),
                 attribute_graph("else_branch", inner_no.graph.encode())});
  }
  yes.graph.outputs = {yes.output(y)}, no.graph.outputs = {no.output(n)};
  return g.add_region("If", {condition}, captures, 1,
                      {attribute_graph("then_branch", yes.graph.encode()),
                       attribute_graph("else_branch", no.graph.encode())})[0];
}

// A value of two ranks is no tensor: the nodes that make it, use it and give it one rank again are one group.
class RankGroup {
public:
  explicit RankGroup(Growth& g) : g_(g) {}
  std::string add(const std::string& op, const Names& operands, const std::vector<Message>& attributes = {}) {
    std::string name = g_.fresh_name("g");
    nodes_.push_back(node(op, operands, {name}, attributes));
    return name;
  }
  std::string use(const std::string& tensor) { return inputs_.push_back(tensor), tensor; }
  std::string stay(const std::string& last) { return g_.add_group("If", inputs_, {last}, nodes_)[0]; }

private:
  Growth& g_;
  Names inputs_;
  std::vector<Message> nodes_;
};

// One branch, perhaps of an If within it, has a dim more than the other.
std::string branch_of_ranks(Growth& g) {
  std::string x = g.find(small_float);
  if (x.empty() || g.rank(x) > 4) return "";
  RankGroup group(g);
  group.use(x);
  bool in_front = g.random.chance(0.6);
  std::string axis = group.use(g.constant_ints({in_front ? 0 : g.rank(x)})),
              condition = group.use(scalar_input(g, DType::Bool, 0, 1));
  Body yes(g, "then_"), no(g, "else_");
  std::string y = yes.add("Unsqueeze", {yes.chain(x, {x}), axis}), n = no.chain(x, {x});
  if (g.random.chance(0.4)) {
    Body inner_yes(g, "inner_then_"), inner_no(g, "inner_else_");
    inner_yes.graph.outputs = {inner_yes.output(inner_yes.add("Unsqueeze", {n, axis}))};
    inner_no.graph.outputs = {inner_no.output(inner_no.chain(n, {x}))};
    n = no.add("If", {group.use(scalar_input(g, DType::Bool, 0, 1))},
               {attribute_graph("then_branch", inner_yes.graph.encode()),
                attribute_graph("else_branch", inner_no.graph.encode())});
    if (g.random.chance(0.3)) n = no.add("Neg", {n});
  }
  yes.graph.outputs = {yes.output(y)}, no.graph.outputs = {no.output(n)};
  bool swapped = g.random.chance(0.5);
  std::string z = group.add("If", {condition},
                            {attribute_graph(swapped ? "else_branch" : "then_branch", yes.graph.encode()),
                             attribute_graph(swapped ? "then_branch" : "else_branch", no.graph.encode())});
  for (int64_t i = g.random.between(0, 3); i > 0; --i) switch (g.random.between(0, 2)) {
    case 0: z = group.add("Tanh", {z}); break;
    case 1: z = group.add("Sub", {z, group.add("Sigmoid", {z})}); break;
    default: z = group.add("Add", {z, in_front ? group.add("Abs", {x}) : z});
    }
  switch (g.random.between(0, 2)) {
  case 0: return group.stay(group.add("Flatten", {z}, {attribute("axis", 0)}));
  case 1: return group.stay(group.add("ReduceMax", {z}, {attribute("keepdims", 0)}));
  default: return group.stay(group.add("Reshape", {z, group.use(g.reshape_target(g.dims(x)))}));
  }
}

// A loop that ends after its trip count, or when a limit of the iteration number or of its values says so.
std::string loop(Growth& g) {
  std::string x = g.find(small_float);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  Names captures{x};
  Body body(g, "body_");
  body.graph.inputs = {
      declared("i", DType::I64, {}), declared("go", DType::Bool, {}),
      value("v", wire_type(dtype), std::vector<WireDim>(static_cast<size_t>(g.rank(x)), "?"))};
  std::string next = body.chain("v", {x, "v"}), seen = body.add("Mul", {"v", next}), more;
  int end = static_cast<int>(g.random.between(0, 3));
  if (end == 0) {
    more = body.add("Identity", {"go"});
  } else if (end == 1) {
    captures.push_back(scalar_input(g, DType::I64, 0, 4));
    more = body.add("Less", {"i", captures.back()});
  } else {
    captures.push_back(g.constant_scalar(dtype, g.random.uniform(-0.5, 0.5)));
    std::string all = body.add("ReduceMean", {next}, {attribute("keepdims", 0)});
    more = body.add(g.random.pick({"Less", "Greater"}), {all, captures.back()});
  }
  body.graph.outputs = {body.output(more), body.output(next)};
  bool scans = g.random.chance(0.6), fixed = scans || g.random.chance(0.5);
  if (scans) body.graph.outputs.push_back(body.output(seen));
  std::string count =
      fixed ? g.constant(Literal::scalar(DType::I64, static_cast<double>(g.random.between(0, 5))))
            : scalar_input(g, DType::I64, 0, 5);
  std::string go = g.random.chance(0.3) ? scalar_input(g, DType::Bool, 0, 1) : Growth::kAbsent;
  Names results = g.add_region("Loop", {count, go, g.fresh(dtype, g.dims(x))}, captures, scans ? 2 : 1,
                               {attribute_graph("body", body.graph.encode())});
  return results[g.random.chance(0.5) ? 0 : results.size() - 1];
}

std::string scan(Growth& g) {
  std::string x =
      g.find([](const Literal& v) { return small_float(v) && v.dims().size() > 1 && v.dims()[0] < 50; });
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  Dims row(g.dims(x).begin() + 1, g.dims(x).end());
  std::vector<WireDim> open(row.size(), "?");
  Body body(g, "body_");
  body.graph.inputs = {value("v", wire_type(dtype), open), value("row", wire_type(dtype), open)};
  Names operands{g.fresh(dtype, row), x};
  bool two = g.random.chance(0.3);
  if (two) {
    body.graph.inputs.push_back(value("other", wire_type(dtype), open));
    operands.push_back(g.fresh(dtype, g.dims(x)));
  }
  std::string next = body.chain("v", {"row", two ? "other" : "v"}), seen = body.add("Mul", {next, "row"});
  body.graph.outputs = {body.output(next), body.output(seen)};
  std::vector<Message> attributes{attribute_graph("body", body.graph.encode()),
                                  attribute("num_scan_inputs", two ? 2 : 1)};
  if (g.random.chance(0.4))
    attributes.push_back(attribute_ints("scan_input_directions", two ? Dims{1, 0} : Dims{1}));
  if (g.random.chance(0.3)) attributes.push_back(attribute_ints("scan_output_directions", {1}));
  if (g.random.chance(0.3)) attributes.push_back(attribute_ints("scan_output_axes", {-1}));
  return g.add_region("Scan", operands, {}, 2, attributes)[g.random.between(0, 1)];
}

} // namespace

std::span<const Motif> control_motifs() {
  static constexpr Motif motifs[] = {
      {"branch", 1, branch}, {"branch_of_ranks", 1, branch_of_ranks}, {"loop", 2, loop}, {"scan", 1, scan}};
  return motifs;
}

} // namespace firn::test
