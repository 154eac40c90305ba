// The body of `resample`, and its reading.
#include "compiler/graph/resample.h"

#include "compiler/graph/composites.h"

#include <algorithm>

namespace firn {
namespace {

// Row `tap` of a table, as dims in which it lies along `dim` and the others are 1.
Value table_row(GraphBuilder& b, Value table, int64_t tap, std::vector<Dim> dims) {
  int64_t extent = table.dim(1);
  return b.reshape(b.slice(table, {tap, 0}, {tap + 1, extent}, {1, 1}), std::move(dims));
}

Value resample_dim(GraphBuilder& b, Value x, int dim, Value indices, Value weights) {
  std::vector<Dim> along(static_cast<size_t>(x.rank()), Dim(1));
  along[static_cast<size_t>(dim)] = indices.type().dims[1];
  Value sum;
  for (int64_t tap = 0; tap < indices.dim(0); ++tap) {
    Value row = table_row(b, indices, tap, {indices.type().dims[1]});
    Value picked = b.op(Opcode::Gather, {x, row}, {{"axis", int64_t{dim}}});
    Value term = b.binary(Opcode::Multiply, picked, table_row(b, weights, tap, along));
    sum = sum ? b.binary(Opcode::Add, sum, term) : term;
  }
  return sum;
}

// Whether operand and result are images whose dims lie in memory in their order, and only the batch varies.
bool has_lines(const Instruction& resample) {
  const Type &from = resample.operand(0).type(), &to = resample.type();
  const Layout& layout = to.layout;
  const std::vector<int64_t>& dims = resample.attributes().ints("dims");
  for (const Type* type : {&from, &to})
    for (size_t d = 0; d < type->dims.size(); ++d)
      if (!type->dims[d].is_static() && (d > 0 || from.dims[0] != to.dims[0])) return false;
  return to.dtype == DType::F32 && to.at_bound().num_elements() > 0 && from.at_bound().num_elements() > 0 &&
         from.layout == layout && layout.strides.empty() &&
         std::is_sorted(layout.order.begin(), layout.order.end()) &&
         std::none_of(layout.blocks.begin(), layout.blocks.end(), [&](const Layout::Block& block) {
           return std::find(dims.begin(), dims.end(), block.dim) != dims.end();
         });
}

} // namespace

Value make_resample(GraphBuilder& builder, Value x, const std::vector<ResampledDim>& dims) {
  std::vector<Value> operands{x};
  std::vector<int64_t> numbers;
  Type type = x.type();
  for (const ResampledDim& dim : dims) {
    operands.push_back(builder.constant(dim.indices));
    operands.push_back(builder.constant(dim.weights));
    numbers.push_back(dim.dim);
    type.dims[static_cast<size_t>(dim.dim)] = Dim(dim.extent());
  }
  return make_composite(builder, "resample", operands, {type}, {{"dims", numbers}},
                        [&](GraphBuilder& b, const std::vector<Value>& p) {
                          Value y = p[0];
                          for (size_t i = 0; i < numbers.size(); ++i)
                            y = resample_dim(b, y, static_cast<int>(numbers[i]), p[2 * i + 1], p[2 * i + 2]);
                          return std::vector<Value>{y};
                        })
      ->result();
}

std::optional<std::vector<ResampledDim>> read_resample(const Instruction& instruction) {
  if (!is_composite(instruction, "resample") || !has_lines(instruction)) return std::nullopt;
  const std::vector<int64_t>& numbers = instruction.attributes().ints("dims");
  std::vector<ResampledDim> dims;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Instruction &indices = *instruction.operand(static_cast<int>(2 * i + 1)).def,
                      &weights = *instruction.operand(static_cast<int>(2 * i + 2)).def;
    if (!indices.is(Opcode::Constant) || !weights.is(Opcode::Constant)) return std::nullopt;
    dims.push_back({static_cast<int>(numbers[i]), indices.literal(), weights.literal()});
  }
  std::sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) { return a.dim < b.dim; });
  return dims;
}

void set_resample_layout(Instruction& resample, Value x, const Layout& layout) {
  auto assign = [&](Instruction& instruction) {
    Type type = instruction.type();
    type.layout = layout;
    instruction.set_type(type);
  };
  resample.set_operand(0, x);
  assign(resample);
  // Images, and weights broadcast to them: the tables themselves have fewer dims.
  for (const auto& inner : resample.region().instructions())
    if (inner->type().rank() == x.rank()) assign(*inner);
}

} // namespace firn
