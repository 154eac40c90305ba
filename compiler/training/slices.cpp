// See slices.h.
#include "compiler/training/slices.h"

#include "compiler/graph/fixed_dims.h"

namespace firn::training {
namespace {

bool is_rows(const IntExpr& extent, const SymbolRef& batch) {
  auto coefficient = extent.linear_coefficient(*batch);
  return coefficient && *coefficient > 0 && extent == IntExpr(*coefficient) * IntExpr::symbol(batch);
}

Diagnostic refused(const std::string& what, int64_t rows) {
  const std::string n = std::to_string(rows);
  return usage_error(what + ": micro-batches of " + n + " want a batch that varies by multiples of " + n +
                     ", as --dim batch=" + n + "..MAX" + (rows > 1 ? ":" + n : "") +
                     " says for a dim 'batch'");
}

} // namespace

SymbolRef batch_symbol(const Type& targets) {
  if (targets.rank() == 0) return nullptr;
  std::vector<SymbolRef> symbols = targets.dims[0].extent.symbols();
  return symbols.size() == 1 ? symbols[0] : nullptr;
}

Result check_slices(const std::vector<std::string>& names, const std::vector<Type>& types,
                    const Type& targets, int64_t rows) {
  SymbolRef batch = batch_symbol(targets);
  if (!batch || !is_rows(targets.dims[0].extent, batch) ||
      targets.dims[0].extent.linear_coefficient(*batch) != rows)
    return refused("the targets are " + targets.to_string(), rows);
  for (size_t i = 0; i < types.size(); ++i) {
    int count = 0;
    bool has_rows = row_dim(types[i], *batch) >= 0;
    for (const Dim& dim : types[i].dims) {
      if (has_rows && !dim.is_static() && !dim.extent.mentions(*batch))
        return usage_error("input '" + names[i] + "' is " + types[i].to_string() +
                           ": micro-batches want inputs of which no dim but the batch varies");
      if (!dim.extent.mentions(*batch)) continue;
      if (++count > 1 || !is_rows(dim.extent, batch))
        return refused(
            "input '" + names[i] + "' is " + types[i].to_string() + ", which has not one dim of rows", rows);
    }
  }
  return {};
}

int row_dim(const Type& type, const Symbol& batch) {
  for (size_t i = 0; i < type.dims.size(); ++i)
    if (type.dims[i].extent.mentions(batch)) return static_cast<int>(i);
  return -1;
}

void fix_to_slice(Region& region, const Symbol& batch) {
  fix_dims(region, {{&batch, 1}});
}

Type slice_type(Type type, const Symbol& batch) {
  fix_dims(type, {{&batch, 1}});
  return type;
}

Value count_slices(GraphBuilder& builder, Value targets, int64_t rows) {
  Value all = builder.op(Opcode::DimSize, {targets}, {{"dim", int64_t{0}}});
  return builder.binary(Opcode::Divide, all, builder.constant(Literal::of<int64_t>(DType::I64, {}, {rows})));
}

Value slice_of(GraphBuilder& builder, Value tensor, const Symbol& batch, Value number) {
  const int rows = row_dim(tensor.type(), batch);
  if (rows < 0) return tensor;
  const Type type = slice_type(tensor.type(), batch);
  std::vector<Value> operands{tensor};
  std::vector<int64_t> sizes = type.static_dims();
  for (int i = 0; i < tensor.rank(); ++i) {
    Value start = builder.constant(
        Literal::of<int64_t>(DType::I64, {}, {i == rows ? sizes[static_cast<size_t>(i)] : 0}));
    operands.push_back(i == rows ? builder.binary(Opcode::Multiply, number, start) : start);
  }
  return builder.op(Opcode::DynamicSlice, std::move(operands), {{"sizes", std::move(sizes)}});
}

} // namespace firn::training
