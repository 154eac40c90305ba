// See varying_dims.h.
#include "compiler/artifact/varying_dims.h"

#include "compiler/support/diagnostic.h"

namespace firn::artifact {
namespace {

class ExtentCode {
public:
  ExtentCode(const ModelDescription& model, const std::string& table) : model_(model), table_(table) {}

  std::string sum(const IntExpr& expression) const {
    std::string text;
    for (const IntExpr::Term& term : expression.terms()) text += (text.empty() ? "" : " + ") + product(term);
    const int64_t constant = expression.constant_part();
    if (text.empty() || constant != 0) text += (text.empty() ? "" : " + ") + number(constant);
    return text;
  }

private:
  static std::string number(int64_t value) {
    return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
  }

  std::string product(const IntExpr::Term& term) const {
    std::string text = term.coefficient == 1 ? "" : number(term.coefficient);
    for (const AtomRef& factor : term.atoms) text += (text.empty() ? "" : " * ") + atom(*factor);
    return text;
  }

  std::string atom(const IntAtom& atom) const {
    switch (atom.kind) {
    case IntAtom::Kind::Symbol: return symbol(*atom.symbol);
    case IntAtom::Kind::FloorDiv: return call("firn_rt2_floor_div", atom);
    case IntAtom::Kind::Mod: return call("firn_rt2_floor_mod", atom);
    case IntAtom::Kind::Min: return call("firn_rt2_least", atom);
    case IntAtom::Kind::Max: return call("firn_rt2_greatest", atom);
    }
    return {};
  }

  std::string call(const char* function, const IntAtom& atom) const {
    return std::string(function) + "(" + sum(*atom.lhs) + ", " + sum(*atom.rhs) + ")";
  }

  std::string symbol(const Symbol& symbol) const {
    for (size_t i = 0; i < model_.dims.size(); ++i) {
      if (model_.dims[i].symbol.get() != &symbol) continue;
      const std::string given = "firn_rt2_extent(" + table_ + ", " + std::to_string(i) + ")";
      const int64_t multiple = model_.dims[i].multiple;
      return multiple == 1 ? given : "(" + std::to_string(multiple) + " * " + given + ")";
    }
    FIRN_CHECK(false, "a dim mentions '" + symbol.name + "', which is no dim of the model");
    return {};
  }

  const ModelDescription& model_;
  const std::string& table_;
};

} // namespace

std::string range_text(const DimDescription& dim) {
  std::string text;
  for (int64_t value : dim.allowed) text += (text.empty() ? "" : "|") + std::to_string(value);
  if (!text.empty()) return text;
  text = std::to_string(dim.symbol->lower) + ".." + std::to_string(dim.symbol->upper);
  return dim.multiple == 1 ? text : text + ":" + std::to_string(dim.multiple);
}

std::string dims_text(const ModelDescription& model) {
  std::string text;
  for (const DimDescription& dim : model.dims)
    text += (text.empty() ? "" : ", ") + dim.symbol->name + "=" + range_text(dim);
  return text;
}

std::string extent_code(const IntExpr& extent, const ModelDescription& model, const std::string& table) {
  return ExtentCode(model, table).sum(extent);
}

} // namespace firn::artifact
