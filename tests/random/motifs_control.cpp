// Motifs of control flow: branches, loops and scans with small bodies.
#include "tests/random/motifs.h"

namespace firn::test {
namespace {

Message declared(const std::string& name, DType dtype, const Dims& dims) {
  return value(name, wire_type(dtype), std::vector<WireDim>(dims.begin(), dims.end()));
}

bool small_float(const Literal& v) {
  return is_any_float(v) && v.num_elements() < 500;
}

std::string branch(Growth& g) {
  std::string x = g.find(small_float);
  if (x.empty()) return "";
  auto condition = std::make_shared<Literal>(DType::Bool, Dims{});
  condition->set_int(0, g.random.between(0, 1));
  Graph yes, no;
  yes.nodes = {node("Mul", {x, x}, {"a"}), node(g.random.pick({"Tanh", "Relu", "Softplus"}), {"a"}, {"yes"})};
  no.nodes = {node(g.random.pick({"Neg", "Sigmoid", "Identity"}), {x}, {"no"})};
  yes.outputs = {declared("yes", g.dtype(x), g.dims(x))};
  no.outputs = {declared("no", g.dtype(x), g.dims(x))};
  return g.add_region(
      "If", {g.input(condition)}, {x}, 1,
      {attribute_graph("then_branch", yes.encode()), attribute_graph("else_branch", no.encode())})[0];
}

std::string loop(Growth& g) {
  std::string x = g.find(small_float);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  Graph body;
  body.inputs = {declared("i", DType::I64, {}), declared("go", DType::Bool, {}),
                 declared("v", dtype, g.dims(x))};
  body.nodes = {node("Identity", {"go"}, {"more"}), node(g.random.pick({"Tanh", "Sigmoid"}), {"v"}, {"a"}),
                node("Sub", {"a", x}, {"next"}), node("Mul", {"v", "a"}, {"seen"})};
  body.outputs = {declared("more", DType::Bool, {}), declared("next", dtype, g.dims(x)),
                  declared("seen", dtype, g.dims(x))};
  std::string start = g.fresh(dtype, g.dims(x));
  std::string count = g.constant(Literal::scalar(DType::I64, static_cast<double>(g.random.between(1, 5))));
  return g.add_region("Loop", {count, Growth::kAbsent, start}, {x}, 2,
                      {attribute_graph("body", body.encode())})[g.random.chance(0.5) ? 0 : 1];
}

std::string scan(Growth& g) {
  std::string x =
      g.find([](const Literal& v) { return small_float(v) && v.dims().size() > 1 && v.dims()[0] < 12; });
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  Dims row(g.dims(x).begin() + 1, g.dims(x).end());
  Graph body;
  body.inputs = {declared("v", dtype, row), declared("row", dtype, row)};
  body.nodes = {node("Add", {"v", "row"}, {"a"}),
                node(g.random.pick({"Tanh", "Sigmoid", "Softsign"}), {"a"}, {"next"}),
                node("Mul", {"next", "row"}, {"seen"})};
  body.outputs = {declared("next", dtype, row), declared("seen", dtype, row)};
  std::vector<Message> attributes{attribute_graph("body", body.encode()), attribute("num_scan_inputs", 1)};
  if (g.random.chance(0.4)) attributes.push_back(attribute_ints("scan_input_directions", {1}));
  return g.add_region("Scan", {g.fresh(dtype, row), x}, {}, 2, attributes)[1];
}

} // namespace

std::span<const Motif> control_motifs() {
  static constexpr Motif motifs[] = {{"branch", 1, branch}, {"loop", 1, loop}, {"scan", 1, scan}};
  return motifs;
}

} // namespace firn::test
