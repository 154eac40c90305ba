// Kernels that move whole buffers.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"

namespace firn::lower {

namespace {

IntExpr row_major_elements(const Type& type) {
  IntExpr count = 1;
  for (const IntExpr& extent : type.physical_extents()) count = count * extent;
  return count;
}

} // namespace

void emit_copy(LoweringContext& context, BufferSlice from, BufferSlice to, const Type& type,
               const std::string& location) {
  int64_t bytes = bytes_at_bound(type);
  if (from == to || bytes == 0) return;
  // Integers of the elements' size are copied without any conversion.
  int element = kernel::scalar_bytes(memory_scalar(type.dtype));
  DType dtype = element == 16  ? DType::String
                : element == 8 ? DType::I64
                : element == 4 ? DType::I32
                : element == 2 ? DType::I16
                               : DType::I8;
  KernelMaker maker(context, location, "copy");
  int source = maker.parameter(from, memory_scalar(dtype), bytes / element, /*written=*/false, "in");
  int target = maker.parameter(to, memory_scalar(dtype), bytes / element, /*written=*/true, "out");
  ElementLoops loops;
  IntExpr elements = bytes / element;
  if (!type.is_static()) elements = row_major_elements(type);
  if (!type.is_static() && is_sub_byte(type.dtype)) elements = ceil_div(elements, 8 / bit_width(type.dtype));
  loops.type = Type::tensor(dtype, {Dim(elements)});
  loops.code = plan::element_code(8 * element, context.target());
  loops.uses = [](const Index& index) {
    ElementUses uses;
    uses.offsets = {index[0]};
    return uses;
  };
  loops.body = [&](const Index& index, const Lanes& lanes) {
    store_at(maker.builder(), target, dtype, index[0], lanes,
             load_at(maker.builder(), source, dtype, index[0], lanes));
  };
  emit_element_loops(maker, loops);
  maker.kernel().bytes = 2 * bytes;
  maker.finish_copy();
}

void emit_copy(LoweringContext& context, Value from, BufferSlice to, const std::string& location) {
  emit_copy(context, context.place_of(from), to, from.type(), location);
}

} // namespace firn::lower
