// See actual_dims.h.
#include "compiler/driver/actual_dims.h"

#include "compiler/artifact/header_types.h"
#include "compiler/artifact/varying_dims.h"

namespace firn::driver {
namespace {

Expected<ActualDims> checked(const artifact::ModelDescription& d, SymbolTable values) {
  ActualDims dims;
  for (const artifact::DimDescription& dim : d.dims) {
    auto found = values.find(dim.symbol.get());
    if (found == values.end()) return usage_error("the inputs do not say what dim '" + dim.name + "' is");
    if (!dim.allows(found->second))
      return usage_error("dim '" + dim.name + "' is " + std::to_string(found->second) +
                         ", the object is for " + artifact::range_text(dim));
    dims.extents.push_back(static_cast<size_t>(found->second / dim.multiple));
  }
  dims.values = std::move(values);
  return dims;
}

} // namespace

Result check_input(const artifact::TensorDescription& wanted, const LiteralRef& input, bool is_state) {
  if (!input && is_state) return {};
  if (!input) return usage_error("input '" + wanted.name + "' is not given");
  bool fits = input->dtype() == wanted.dtype && input->dims().size() == wanted.dims.size();
  for (size_t axis = 0; fits && axis < wanted.dims.size(); ++axis)
    fits = !wanted.dims[axis].is_constant() || wanted.dims[axis].value() == input->dims()[axis];
  if (fits) return {};
  return usage_error("input '" + wanted.name + "' is " + input->type().to_string() + ", the model wants " +
                     artifact::type_text(wanted));
}

Expected<ActualDims> find_dims(const artifact::ModelDescription& d, std::vector<KnownExtent> known) {
  SymbolTable values;
  if (Result bound = bind_symbols(std::move(known), values); !bound) return bound.error();
  return checked(d, std::move(values));
}

Expected<ActualDims> dims_at(const artifact::ModelDescription& d,
                             const std::map<std::string, int64_t>& values) {
  SymbolTable table;
  for (const artifact::DimDescription& dim : d.dims) {
    auto given = values.find(dim.name);
    table[dim.symbol.get()] = given == values.end() ? dim.symbol->upper : given->second;
  }
  for (const auto& [name, value] : values) {
    bool found = false;
    for (const artifact::DimDescription& dim : d.dims) found = found || dim.name == name;
    if (!found)
      return usage_error("no dim '" + name + "' varies" +
                         (d.dims.empty() ? "" : "; those that do: " + artifact::dims_text(d)));
  }
  return checked(d, std::move(table));
}

void add_known(const artifact::TensorDescription& tensor, const std::vector<int64_t>& actual,
               std::vector<KnownExtent>& known) {
  for (size_t axis = 0; axis < actual.size(); ++axis)
    known.push_back(
        {"input '" + tensor.name + "': dim " + std::to_string(axis), tensor.dims[axis], actual[axis]});
}

std::vector<int64_t> actual_dims(const artifact::TensorDescription& tensor, const ActualDims& dims) {
  std::vector<int64_t> actual;
  for (const IntExpr& dim : tensor.dims) actual.push_back(*resolve(dim, dims.values));
  return actual;
}

size_t actual_bytes(const artifact::TensorDescription& tensor, const ActualDims& dims) {
  size_t elements = 1;
  for (int64_t dim : actual_dims(tensor, dims)) elements *= static_cast<size_t>(dim);
  return byte_size(tensor.dtype, elements);
}

} // namespace firn::driver
