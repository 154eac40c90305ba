// The body of `pack`, and its reading.
#include "compiler/graph/packing.h"

#include "compiler/graph/composites.h"

namespace firn {
namespace {

Value flat(GraphBuilder& b, Value x) {
  return b.reshape(x, {Dim(x.type().num_elements())});
}

// first + sum of steps[i] * strides[i], for all steps of the box.
Value strided_index(GraphBuilder& b, const PackedBox& box, int64_t first,
                    const std::function<int64_t(size_t)>& stride) {
  Type type = Type::tensor_of(DType::I64, {});
  for (const PackedDim& dim : box.dims) type.dims.push_back(Dim(dim.extent));
  Value sum = b.broadcast_to(b.constant(Literal::of<int64_t>(DType::I64, {}, {first})), type.dims);
  for (size_t i = 0; i < box.dims.size(); ++i) {
    if (stride(i) == 0) continue;
    Value step = b.make_typed(Opcode::Iota, {}, {type}, {{"dim", static_cast<int64_t>(i)}})->result();
    Value factor = b.constant(Literal::of<int64_t>(DType::I64, {}, {stride(i)}));
    sum = b.binary(Opcode::Add, sum, b.binary(Opcode::Multiply, step, factor));
  }
  return sum;
}

// height * taps * width^T of all sets of taps, as dots in f64.
Value transformed(GraphBuilder& b, Value source, const TapTransform& transform) {
  auto matrix = [&](const TransformMatrix& m) {
    return b.constant(Literal::of<double>(DType::F64, {m.rows, m.columns}, m.values));
  };
  auto dot = [&](Value lhs, Value rhs) {
    return b.op(Opcode::Dot, {lhs, rhs},
                {{"lhs_batch", std::vector<int64_t>{}},
                 {"rhs_batch", std::vector<int64_t>{}},
                 {"lhs_contract", std::vector<int64_t>{1}},
                 {"rhs_contract", std::vector<int64_t>{1}}});
  };
  const TransformMatrix &height = transform.height, &width = transform.width;
  int64_t sets = source.type().num_elements() / transform.taps();
  Value taps = b.reshape(b.convert(source, DType::F64), {Dim(sets), Dim(height.columns), Dim(width.columns)});
  // [set, row, column] -> [set, column, row of points] -> [set, row of points, column of points]
  return b.convert(dot(dot(taps, matrix(height)), matrix(width)), source.dtype());
}

Value pack_box(GraphBuilder& b, Value packed, Value source, const PackedBox& box) {
  Value from = strided_index(b, box, box.source, [&](size_t i) { return box.dims[i].source; });
  Value to = strided_index(b, box, box.packed, [&](size_t i) { return box.dims[i].packed; });
  Value exists;
  for (const PackedBox::Bound& bound : box.bounds) {
    if (bound.first >= bound.end) return packed; // zeros
    Value sum = strided_index(b, box, bound.first, [&](size_t i) { return bound.strides[i]; });
    Value below = b.compare("lt", sum, b.constant(Literal::of<int64_t>(DType::I64, {}, {bound.end})));
    exists = exists ? b.binary(Opcode::And, exists, below) : below;
  }
  if (exists) from = b.select(exists, from, b.constant(Literal::of<int64_t>(DType::I64, {}, {0})));
  Value values = b.op(Opcode::Gather, {source, flat(b, from)}, {{"axis", int64_t{0}}});
  if (exists) values = b.select(flat(b, exists), values, b.scalar(source.dtype(), 0));
  return b.op(Opcode::ScatterElements, {packed, flat(b, to), values}, {{"axis", int64_t{0}}});
}

} // namespace

Value make_pack(GraphBuilder& builder, Value source, const Packing& packing) {
  Type type = Type::tensor_of(source.dtype(), {packing.packed_elements});
  return make_composite(builder, "pack", {source}, {type}, {{"packing", to_string(packing)}},
                        [&](GraphBuilder& b, const std::vector<Value>& p) {
                          Value from = packing.transform ? transformed(b, p[0], *packing.transform) : p[0];
                          from = flat(b, from);
                          Value packed = b.broadcast_to(b.scalar(source.dtype(), 0), type.dims);
                          for (const PackedBox& box : packing.boxes) packed = pack_box(b, packed, from, box);
                          return std::vector<Value>{packed};
                        })
      ->result();
}

std::optional<Packing> read_pack(const Instruction& instruction) {
  if (!is_composite(instruction, "pack") || instruction.num_operands() != 1 || instruction.num_results() != 1)
    return std::nullopt;
  const Type &from = instruction.operand(0).type(), &to = instruction.type();
  const Attribute* text = instruction.attributes().find("packing");
  if (!text || !std::holds_alternative<std::string>(*text)) return std::nullopt;
  auto packing = parse_packing(std::get<std::string>(*text));
  if (!packing || !from.is_static() || !to.is_static() || !from.layout.is_plain() || !to.layout.is_plain())
    return std::nullopt;
  bool fits = from.dtype == to.dtype && bit_width(from.dtype) == 8 * packing->element_bytes &&
              from.num_elements() == packing->source_elements &&
              to.num_elements() == packing->packed_elements;
  if (packing->transform && from.dtype != DType::F32) fits = false;
  return fits ? std::optional(std::move(*packing)) : std::nullopt;
}

} // namespace firn
