// See constant_source.h.
#include "compiler/lower/constant_source.h"

#include "compiler/lower/machine_types.h"

namespace firn::lower {

using kernel::Scalar;

kernel::ConstantSource source_of(const LiteralRef& literal, const Packing& packing, std::string name) {
  bool is_typed = has_machine_type(literal->dtype()) && !is_sub_byte(literal->dtype());
  kernel::ConstantSource source;
  source.name = std::move(name);
  source.element = is_typed                     ? memory_scalar(literal->dtype())
                   : packing.element_bytes == 4 ? Scalar::I32 // packed elements, by words
                                                : Scalar::I8;
  source.dims = is_typed ? literal->dims() : std::vector<int64_t>{packing.source_elements};
  source.owner = literal;
  if (!literal->is_opaque()) source.bytes = literal->plain_bytes();
  source.is_refittable = !literal->values_may_be_used();
  return source;
}

LiteralRef refittable_literal(const kernel::ConstantSource& source) {
  if (!source.is_refittable) return nullptr;
  auto literal = std::static_pointer_cast<const Literal>(source.owner);
  return literal->values_may_be_used() ? nullptr : literal;
}

} // namespace firn::lower
