// Motifs of sequences and optionals: what lies between the tensors that go in and the one that comes out is
// no tensor, so that each is one group of nodes.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

// Nodes from tensors to a tensor.
class Group {
public:
  explicit Group(Growth& g) : g_(g) {}
  std::string add(const std::string& op, const Names& operands, const std::vector<Message>& attributes = {}) {
    last_ = g_.fresh_name("g");
    nodes_.push_back(node(op, operands, {last_}, attributes));
    return last_;
  }
  std::string use(const std::string& tensor) { return inputs_.push_back(tensor), tensor; }
  std::string position(int64_t value) {
    return use(g_.constant(Literal::scalar(DType::I64, static_cast<double>(value))));
  }
  // The group becomes a node whose result is what was added last.
  std::string stay() { return g_.add_group("containers", inputs_, {last_}, nodes_)[0]; }

private:
  Growth& g_;
  Names inputs_;
  std::vector<Message> nodes_;
  std::string last_;
};

// Tensors of one type.
Names alike(Growth& g, const std::string& x, int64_t count) {
  Names tensors{x};
  while (static_cast<int64_t>(tensors.size()) < count) {
    std::string other =
        g.find([&](const Literal& v) { return v.dtype() == g.dtype(x) && v.dims() == g.dims(x); });
    tensors.push_back(g.random.chance(0.5) ? other : g.fresh(g.dtype(x), g.dims(x)));
  }
  return tensors;
}

// An element, the number of them or all joined.
std::string taken_apart(Growth& g, Group& group, const std::string& sequence, int64_t length, int64_t rank) {
  switch (g.random.between(0, 3)) {
  case 0: group.add("SequenceLength", {sequence}); break;
  case 1: group.add("SequenceAt", {sequence, group.position(g.random.between(-length, length - 1))}); break;
  case 2:
    group.add("ConcatFromSequence", {sequence},
              {attribute("axis", g.random.between(0, rank)), attribute("new_axis", 1)});
    break;
  default:
    if (rank == 0) return "";
    group.add("ConcatFromSequence", {sequence}, {attribute("axis", g.random.between(-rank, rank - 1))});
  }
  return group.stay();
}

bool is_small(const Literal& v) {
  return is_any(v) && v.num_elements() < 600;
}

std::string listed(Growth& g) {
  std::string x = g.find(is_small);
  if (x.empty()) return "";
  Names tensors = alike(g, x, g.random.between(1, 4));
  Group group(g);
  for (const std::string& name : tensors) group.use(name);
  auto length = static_cast<int64_t>(tensors.size());
  std::string sequence = group.add("SequenceConstruct", tensors);
  for (int64_t i = g.random.between(0, 2); i > 0; --i)
    if (length > 1 && g.random.chance(0.4)) {
      sequence =
          group.add("SequenceErase", {sequence, group.position(g.random.between(-length, length - 1))});
      --length;
    } else if (g.random.chance(0.3)) {
      sequence = group.add("SequenceInsert", {sequence, x}); // at the end
      ++length;
    } else {
      sequence =
          group.add("SequenceInsert", {sequence, x, group.position(g.random.between(-length, length))});
      ++length;
    }
  return taken_apart(g, group, sequence, length, g.rank(x));
}

std::string split(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_small(v) && !v.dims().empty(); });
  if (x.empty()) return "";
  int64_t axis = g.random.between(0, g.rank(x) - 1), extent = g.dims(x)[static_cast<size_t>(axis)];
  Group group(g);
  group.use(x);
  Names operands{x};
  std::vector<Message> attributes{attribute("axis", axis)};
  int64_t length = extent;
  bool keeps = true;
  if (g.random.chance(0.6)) {
    int64_t part = g.random.between(1, extent);
    operands.push_back(group.position(part));
    length = (extent + part - 1) / part;
  } else {
    keeps = g.random.chance(0.5);
    attributes.push_back(attribute("keepdims", keeps));
  }
  if (length > 40) return "";
  std::string sequence = group.add("SplitToSequence", operands, attributes);
  if (g.random.chance(0.5) || !keeps)
    group.add("SequenceAt", {sequence, group.position(g.random.between(-length, length - 1))});
  else
    group.add("ConcatFromSequence", {sequence}, {attribute("axis", axis)});
  return group.stay();
}

std::string mapped(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_small(v) && is_float(v.dtype()); });
  if (x.empty()) return "";
  Names tensors = alike(g, x, g.random.between(1, 3));
  Group group(g);
  for (const std::string& name : tensors) group.use(name);
  std::string sequence = group.add("SequenceConstruct", tensors);
  std::vector<WireDim> dims(g.dims(x).begin(), g.dims(x).end());
  Graph body;
  body.inputs = {value("element", wire_type(g.dtype(x)), dims)};
  body.nodes = {node(g.random.pick({"Relu", "Neg", "Abs"}), {"element"}, {"mapped"})};
  body.outputs = {value("mapped", wire_type(g.dtype(x)), dims)};
  sequence = group.add("SequenceMap", {sequence}, {attribute_graph("body", body.encode())});
  return taken_apart(g, group, sequence, static_cast<int64_t>(tensors.size()), g.rank(x));
}

std::string optional(Growth& g) {
  std::string x = g.find(is_small);
  if (x.empty()) return "";
  Group group(g);
  std::string holder = group.add("Optional", {group.use(x)});
  group.add(g.random.pick({"OptionalGetElement", "OptionalHasElement"}), {holder});
  return group.stay();
}

} // namespace

std::span<const Motif> container_motifs() {
  static constexpr Motif motifs[] = {{"listed", 1, listed},
                                     {"split_to_sequence", 1, split},
                                     {"mapped", 1, mapped},
                                     {"optional", 1, optional}};
  return motifs;
}

} // namespace firn::test
