// See named_symbols.h.
#include "compiler/graph/named_symbols.h"

namespace firn {
namespace {

void add_symbols(const Type& type, std::vector<SymbolRef>& symbols) {
  for (const Dim& dim : type.dims)
    if (!dim.is_static())
      for (SymbolRef& symbol : dim.extent.symbols()) symbols.push_back(std::move(symbol));
}

} // namespace

std::vector<SymbolRef> named_symbols(const Instruction& instruction) {
  std::vector<SymbolRef> symbols;
  for (int i = 0; i < instruction.num_results(); ++i) add_symbols(instruction.type(i), symbols);
  for (const auto& [name, value] : instruction.attributes())
    if (const Type* type = std::get_if<Type>(&value)) add_symbols(*type, symbols);
  return symbols;
}

} // namespace firn
