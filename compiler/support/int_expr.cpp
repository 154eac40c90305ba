// Canonical form of integer expressions: order, sums, products, substitution, text.
#include "compiler/support/int_expr_form.h"
#include "compiler/support/int_expr_size.h"
#include "compiler/support/text_scanner.h"

namespace firn {
namespace int_form {

int compare(const IntAtom& lhs, const IntAtom& rhs) {
  if (&lhs == &rhs) return 0;
  if (lhs.kind != rhs.kind) return lhs.kind < rhs.kind ? -1 : 1;
  if (lhs.kind == IntAtom::Kind::Symbol) {
    if (lhs.symbol == rhs.symbol) return 0;
    if (int order = lhs.symbol->name.compare(rhs.symbol->name)) return order < 0 ? -1 : 1;
    return std::less<const Symbol*>()(lhs.symbol.get(), rhs.symbol.get()) ? -1 : 1;
  }
  if (int order = compare(*lhs.lhs, *rhs.lhs)) return order;
  return compare(*lhs.rhs, *rhs.rhs);
}

int compare_atoms(const std::vector<AtomRef>& lhs, const std::vector<AtomRef>& rhs) {
  if (lhs.size() != rhs.size()) return lhs.size() < rhs.size() ? -1 : 1;
  for (size_t i = 0; i < lhs.size(); ++i)
    if (int order = compare(*lhs[i], *rhs[i])) return order;
  return 0;
}

int compare(const IntExpr& lhs, const IntExpr& rhs) {
  const auto &a = lhs.terms(), &b = rhs.terms();
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (int order = compare_atoms(a[i].atoms, b[i].atoms)) return order;
    if (a[i].coefficient != b[i].coefficient) return a[i].coefficient < b[i].coefficient ? -1 : 1;
  }
  if (lhs.constant_part() != rhs.constant_part()) return lhs.constant_part() < rhs.constant_part() ? -1 : 1;
  return 0;
}

IntExpr::Term product(const IntExpr::Term& lhs, const IntExpr::Term& rhs) {
  IntExpr::Term product{checked(__int128(lhs.coefficient) * rhs.coefficient), lhs.atoms};
  product.atoms.insert(product.atoms.end(), rhs.atoms.begin(), rhs.atoms.end());
  std::sort(product.atoms.begin(), product.atoms.end(),
            [](const AtomRef& x, const AtomRef& y) { return compare(*x, *y) < 0; });
  return product;
}

void sort_and_merge(std::vector<IntExpr::Term>& terms) {
  std::sort(terms.begin(), terms.end(), [](const IntExpr::Term& a, const IntExpr::Term& b) {
    return compare_atoms(a.atoms, b.atoms) < 0;
  });
  std::vector<IntExpr::Term> merged;
  for (IntExpr::Term& term : terms) {
    if (!merged.empty() && compare_atoms(merged.back().atoms, term.atoms) == 0)
      merged.back().coefficient = checked(__int128(merged.back().coefficient) + term.coefficient);
    else
      merged.push_back(std::move(term));
    if (merged.back().coefficient == 0) merged.pop_back();
  }
  terms = std::move(merged);
}

IntExpr atom_expr(IntAtom::Kind kind, const IntExpr& lhs, const IntExpr& rhs) {
  auto atom = std::make_shared<const IntAtom>(
      IntAtom{kind, nullptr, std::make_shared<const IntExpr>(lhs), std::make_shared<const IntExpr>(rhs)});
  return IntExpr::from_terms(0, {{1, {std::move(atom)}}});
}

const IntAtom* single_atom(const IntExpr& expression) {
  if (expression.constant_part() != 0 || expression.terms().size() != 1) return nullptr;
  const IntExpr::Term& term = expression.terms()[0];
  return term.coefficient == 1 && term.atoms.size() == 1 ? term.atoms[0].get() : nullptr;
}

} // namespace int_form

IntExpr::IntExpr(const IntExpr&) = default;
IntExpr::IntExpr(IntExpr&&) noexcept = default;
IntExpr& IntExpr::operator=(const IntExpr&) = default;
IntExpr& IntExpr::operator=(IntExpr&&) noexcept = default;
IntExpr::~IntExpr() = default;

using namespace int_form;

namespace {

std::string print_atom(const IntAtom& atom) {
  if (atom.kind == IntAtom::Kind::Symbol) {
    // Loop variables of kernels are named with their sign.
    const std::string& name = atom.symbol->name;
    return name.starts_with('%') ? "%" + word_or_quoted(name.substr(1)) : word_or_quoted(name);
  }
  auto operand = [](const IntExpr& expression) {
    std::string text = expression.to_string();
    bool simple = expression.is_constant() ||
                  (single_atom(expression) && single_atom(expression)->kind == IntAtom::Kind::Symbol);
    return simple ? text : "(" + text + ")";
  };
  switch (atom.kind) {
  case IntAtom::Kind::FloorDiv: return operand(*atom.lhs) + " floordiv " + operand(*atom.rhs);
  case IntAtom::Kind::Mod: return operand(*atom.lhs) + " mod " + operand(*atom.rhs);
  case IntAtom::Kind::Min: return "min(" + atom.lhs->to_string() + ", " + atom.rhs->to_string() + ")";
  case IntAtom::Kind::Max: return "max(" + atom.lhs->to_string() + ", " + atom.rhs->to_string() + ")";
  case IntAtom::Kind::Symbol: break;
  }
  FIRN_UNREACHABLE("atom kind");
}

void collect_symbols(const IntExpr& expression, std::vector<SymbolRef>& found) {
  for (const IntExpr::Term& term : expression.terms())
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == IntAtom::Kind::Symbol) {
        if (std::find(found.begin(), found.end(), atom->symbol) == found.end()) found.push_back(atom->symbol);
      } else {
        collect_symbols(*atom->lhs, found);
        collect_symbols(*atom->rhs, found);
      }
    }
}

// Counts terms and atoms, up to a little more than `limit`.
size_t count_nodes(const IntExpr& expression, size_t limit) {
  size_t count = 1;
  for (const IntExpr::Term& term : expression.terms())
    for (const AtomRef& atom : term.atoms) {
      if (++count > limit) return count;
      if (atom->kind == IntAtom::Kind::Symbol) continue;
      count += count_nodes(*atom->lhs, limit - count);
      if (count <= limit) count += count_nodes(*atom->rhs, limit - count);
    }
  return count;
}

} // namespace

bool is_larger_than(const IntExpr& expression, size_t limit) {
  return count_nodes(expression, limit) > limit;
}

IntExpr IntExpr::symbol(SymbolRef symbol) {
  if (symbol->lower == symbol->upper) return symbol->lower;
  auto atom =
      std::make_shared<const IntAtom>(IntAtom{IntAtom::Kind::Symbol, std::move(symbol), nullptr, nullptr});
  return from_terms(0, {{1, {std::move(atom)}}});
}

IntExpr IntExpr::from_terms(int64_t constant, std::vector<Term> terms) {
  IntExpr result(constant);
  for (const Term& term : terms)
    if (term.atoms.empty()) result.constant_ = checked(__int128(result.constant_) + term.coefficient);
  std::erase_if(terms, [](const Term& term) { return term.atoms.empty(); });
  sort_and_merge(terms);
  while (recombine(result.constant_, terms)) {
  }
  result.terms_ = std::move(terms);
  return result;
}

int64_t IntExpr::value() const {
  FIRN_CHECK(is_constant(), "value of the symbolic expression " + to_string());
  return constant_;
}

std::optional<int64_t> IntExpr::linear_coefficient(const Symbol& symbol) const {
  int64_t coefficient = 0;
  for (const Term& term : terms_) {
    if (term.atoms.size() == 1 && term.atoms[0]->kind == IntAtom::Kind::Symbol) {
      if (term.atoms[0]->symbol.get() == &symbol) coefficient = term.coefficient;
      continue;
    }
    if (from_terms(0, {term}).mentions(symbol)) return std::nullopt;
  }
  return coefficient;
}

std::optional<IntExpr> IntExpr::coefficient(const Symbol& symbol) const {
  std::vector<Term> factors;
  for (const Term& term : terms_) {
    auto is_symbol = [&](const AtomRef& atom) {
      return atom->kind == IntAtom::Kind::Symbol && atom->symbol.get() == &symbol;
    };
    auto found = std::find_if(term.atoms.begin(), term.atoms.end(), is_symbol);
    Term factor = term;
    if (found != term.atoms.end()) factor.atoms.erase(factor.atoms.begin() + (found - term.atoms.begin()));
    if (from_terms(0, {factor}).mentions(symbol)) return std::nullopt;
    if (found != term.atoms.end()) factors.push_back(std::move(factor));
  }
  return from_terms(0, std::move(factors));
}

bool IntExpr::mentions(const Symbol& symbol) const {
  for (const SymbolRef& found : symbols())
    if (found.get() == &symbol) return true;
  return false;
}

std::vector<SymbolRef> IntExpr::symbols() const {
  std::vector<SymbolRef> found;
  collect_symbols(*this, found);
  return found;
}

IntExpr IntExpr::substitute(const std::function<std::optional<IntExpr>(const Symbol&)>& replace) const {
  IntExpr sum = constant_;
  for (const Term& term : terms_) {
    IntExpr product = term.coefficient;
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind == IntAtom::Kind::Symbol) {
        auto with = replace(*atom->symbol);
        product = product * (with ? *with : IntExpr::symbol(atom->symbol));
        continue;
      }
      IntExpr lhs = atom->lhs->substitute(replace), rhs = atom->rhs->substitute(replace);
      switch (atom->kind) {
      case IntAtom::Kind::FloorDiv: product = product * floor_div(lhs, rhs); break;
      case IntAtom::Kind::Mod: product = product * floor_mod(lhs, rhs); break;
      case IntAtom::Kind::Min: product = product * min(lhs, rhs); break;
      case IntAtom::Kind::Max: product = product * max(lhs, rhs); break;
      case IntAtom::Kind::Symbol: break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

std::string IntExpr::to_string() const {
  std::string text;
  for (const Term& term : terms_) {
    bool negative = term.coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    int64_t magnitude = negative ? -term.coefficient : term.coefficient;
    bool divided = false;
    for (const AtomRef& atom : term.atoms)
      divided |= atom->kind == IntAtom::Kind::FloorDiv || atom->kind == IntAtom::Kind::Mod;
    bool alone =
        magnitude == 1 && term.atoms.size() == 1 && terms_.size() == 1 && constant_ == 0 && !negative;
    std::string factors = magnitude == 1 ? "" : std::to_string(magnitude);
    for (const AtomRef& atom : term.atoms) {
      if (!factors.empty()) factors += "*";
      factors += divided && !alone ? "(" + print_atom(*atom) + ")" : print_atom(*atom);
    }
    text += factors;
  }
  if (constant_ != 0 || text.empty()) {
    if (text.empty()) return std::to_string(constant_);
    text += constant_ < 0 ? " - " + std::to_string(-constant_) : " + " + std::to_string(constant_);
  }
  return text;
}

IntExpr operator+(const IntExpr& lhs, const IntExpr& rhs) {
  int64_t constant = checked(__int128(lhs.constant_) + rhs.constant_);
  if (rhs.terms_.empty() || lhs.terms_.empty()) {
    IntExpr sum = rhs.terms_.empty() ? lhs : rhs;
    sum.constant_ = constant;
    return sum;
  }
  std::vector<IntExpr::Term> terms = lhs.terms_;
  terms.insert(terms.end(), rhs.terms_.begin(), rhs.terms_.end());
  return IntExpr::from_terms(constant, std::move(terms));
}

IntExpr operator-(const IntExpr& lhs, const IntExpr& rhs) {
  return lhs + rhs * IntExpr(-1);
}

IntExpr operator*(const IntExpr& lhs, const IntExpr& rhs) {
  if (lhs.is_constant() && rhs.is_constant()) return checked(__int128(lhs.constant_) * rhs.constant_);
  if (lhs.is_constant() && lhs.constant_ == 1) return rhs;
  if (rhs.is_constant() && rhs.constant_ == 1) return lhs;
  std::vector<IntExpr::Term> terms;
  std::vector<IntExpr::Term> left = lhs.terms_, right = rhs.terms_;
  if (lhs.constant_ != 0) left.push_back({lhs.constant_, {}});
  if (rhs.constant_ != 0) right.push_back({rhs.constant_, {}});
  for (const IntExpr::Term& a : left)
    for (const IntExpr::Term& b : right) terms.push_back(product(a, b));
  return IntExpr::from_terms(0, std::move(terms));
}

bool operator==(const IntExpr& lhs, const IntExpr& rhs) {
  return compare(lhs, rhs) == 0;
}

} // namespace firn
