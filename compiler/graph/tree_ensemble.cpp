// The body of `tree_ensemble`, and its reading.
#include "compiler/graph/tree_ensemble.h"

#include "compiler/graph/composites.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

Value take(GraphBuilder& b, Value table, Value indices) {
  return b.op(Opcode::Gather, {table, indices}, {{"axis", int64_t{0}}});
}

struct Tables {
  Value x, thresholds, links, values, roots, targets;
};

// One step of all walks at once: entries [N,T] of links' dtype.
Value step(GraphBuilder& b, const Tables& t, Value entries, int64_t shift) {
  DType dtype = t.links.dtype();
  auto number = [&](int64_t value) { return b.constant(Literal::of<int64_t>(dtype, {}, {value})); };
  Value link = take(b, t.links, entries);
  Value feature = b.binary(Opcode::And, link, number((int64_t{1} << shift) - 1));
  Value x = b.op(Opcode::GatherElements, {t.x, feature}, {{"axis", int64_t{1}}});
  Value stays = b.compare("le", x, take(b, t.thresholds, entries));
  return b.binary(Opcode::Subtract, b.binary(Opcode::ShiftRight, link, number(shift)),
                  b.convert(stays, dtype));
}

// The results [N,K] of the leaves at `entries` [N,T].
Value gather_leaves(GraphBuilder& b, const Tables& t, Value entries, int64_t results, Opcode reducer) {
  Value leaves = take(b, t.values, entries);
  if (!t.targets) return b.reduce(reducer, leaves, {1}, false);
  const std::vector<Dim>& walks = entries.type().dims;
  Value initial =
      b.broadcast_to(b.constant(reducer_identity(reducer, leaves.dtype())), {walks[0], Dim(results)});
  Attributes attributes{{"axis", int64_t{1}}, {"reduction", Word{std::string(opcode_name(reducer))}}};
  return b.op(Opcode::ScatterElements, {initial, b.broadcast_to(t.targets, walks), leaves}, attributes);
}

Value body(GraphBuilder& b, const Tables& t, const Attributes& attributes) {
  int64_t depth = attributes.integer("depth"), shift = attributes.integer("shift");
  DType dtype = t.links.dtype();
  Value first = b.broadcast_to(b.convert(t.roots, dtype), {t.x.type().dims[0], t.roots.type().dims[0]});
  Value zero = b.constant(Literal::of_i64({0}));
  Instruction* walk = make_while(
      b, {first, b.reshape(zero, {})},
      [&](GraphBuilder& in, const std::vector<Value>& v) {
        return std::vector<Value>{
            in.compare("lt", v[1], in.constant(Literal::of<int64_t>(DType::I64, {}, {depth})))};
      },
      [&](GraphBuilder& in, const std::vector<Value>& v) {
        Value one = in.constant(Literal::of<int64_t>(DType::I64, {}, {1}));
        return std::vector<Value>{step(in, t, v[0], shift), in.binary(Opcode::Add, v[1], one)};
      });
  return gather_leaves(b, t, walk->result(0), attributes.integer("results"),
                       *parse_opcode(attributes.word("reducer", "add")));
}

// Whether all walks from the roots stay within the tables, and end where there is a value.
bool stays_within(const TreeEnsemble& trees, int64_t features) {
  for (const LiteralRef& table : {trees.thresholds, trees.links, trees.values, trees.roots, trees.targets})
    if (table && table->is_opaque()) return false;
  int64_t entries = trees.entries(), mask = (int64_t{1} << trees.shift) - 1;
  for (int64_t i = 0; i < entries; ++i) {
    int64_t link = trees.links->get_int(i), child = link >> trees.shift;
    bool leaf = child == i && std::isnan(trees.thresholds->get_double(i));
    if ((link & mask) >= features || child >= entries || (child < 1 && !leaf)) return false;
  }
  auto all_below = [](const LiteralRef& indices, int64_t limit) {
    std::vector<int64_t> values = indices->to_ints();
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= 0 && v < limit; });
  };
  return all_below(trees.roots, entries) && (!trees.targets || all_below(trees.targets, trees.results));
}

bool has_shape(const LiteralRef& table, DType dtype, std::vector<int64_t> dims) {
  return table->dtype() == dtype && table->dims() == dims;
}

bool is_consistent(const TreeEnsemble& trees, const Type& x, const Type& y) {
  int64_t entries = trees.entries();
  DType link = trees.links->dtype();
  std::vector<int64_t> rows =
      trees.targets ? std::vector<int64_t>{entries} : std::vector<int64_t>{entries, trees.results};
  return has_shape(trees.thresholds, x.dtype, {entries}) && has_shape(trees.links, link, {entries}) &&
         has_shape(trees.values, x.dtype, rows) && has_shape(trees.roots, DType::I32, {trees.trees()}) &&
         (!trees.targets || has_shape(trees.targets, DType::I32, {trees.trees()})) &&
         (link == DType::I32 || link == DType::I64) && trees.shift >= 0 && trees.shift < 31 &&
         trees.depth >= 0 && y.dims == std::vector<Dim>{x.dims[0], Dim(trees.results)} && y.dtype == x.dtype;
}

} // namespace

Value make_tree_ensemble(GraphBuilder& builder, Value x, const TreeEnsemble& trees) {
  std::vector<Value> operands{x};
  for (const LiteralRef& table : {trees.thresholds, trees.links, trees.values, trees.roots, trees.targets})
    if (table) operands.push_back(builder.constant(table));
  Attributes attributes{{"depth", trees.depth},
                        {"shift", trees.shift},
                        {"results", trees.results},
                        {"reducer", Word{std::string(opcode_name(trees.reducer))}}};
  Type type = Type::tensor(x.dtype(), {x.type().dims[0], Dim(trees.results)});
  return make_composite(builder, "tree_ensemble", operands, {type}, attributes,
                        [&](GraphBuilder& b, const std::vector<Value>& p) {
                          Tables tables{p[0], p[1], p[2], p[3], p[4], p.size() > 5 ? p[5] : Value{}};
                          return std::vector<Value>{body(b, tables, attributes)};
                        })
      ->result();
}

std::optional<TreeEnsemble> read_tree_ensemble(const Instruction& instruction) {
  if (!is_composite(instruction, "tree_ensemble")) return std::nullopt;
  int count = instruction.num_operands();
  const Attributes& attributes = instruction.attributes();
  auto reducer = parse_opcode(attributes.word("reducer", "add"));
  if (count < 5 || count > 6 || !reducer || instruction.num_results() != 1) return std::nullopt;
  for (int i = 1; i < count; ++i)
    if (!instruction.operand(i).def->is(Opcode::Constant)) return std::nullopt;
  auto table = [&](int i) { return i < count ? instruction.operand(i).def->literal() : nullptr; };
  TreeEnsemble trees{table(1),
                     table(2),
                     table(3),
                     table(4),
                     table(5),
                     attributes.integer("depth", -1),
                     attributes.integer("shift", -1),
                     attributes.integer("results", 0),
                     *reducer};
  const Type &x = instruction.operand(0).type(), &y = instruction.type();
  bool reduces = *reducer == Opcode::Add || *reducer == Opcode::Minimum || *reducer == Opcode::Maximum;
  bool plain = x.rank() == 2 && x.dims[1].is_static() && x.layout.is_plain() && y.layout.is_plain() &&
               (x.dtype == DType::F32 || x.dtype == DType::F64);
  if (!reduces || !plain || !is_consistent(trees, x, y) || !stays_within(trees, x.dims[1].value()))
    return std::nullopt;
  return trees;
}

} // namespace firn
