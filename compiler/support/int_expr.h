// Integer expressions over bounded symbols, kept in a canonical sum-of-products form and simplified with the
// symbols' bounds. They are the dims of graph tensors (`3*height`, `past+1`) and the addresses of kernels
// (loop variables).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace firn {

// A named integer with inclusive bounds. Identity is the object: two symbols of one name differ.
struct Symbol {
  std::string name;
  int64_t lower = 0;
  int64_t upper = INT64_MAX; // INT64_MAX: no bound known
};
using SymbolRef = std::shared_ptr<const Symbol>;

// The largest extent that a dim may have: sums and products of a few, and of loop variables, never overflow.
inline constexpr int64_t kLargestExtent = (int64_t{1} << 31) - 1;

class IntExpr;

// The factors of a term: a symbol, or an operation that does not distribute over sums.
struct IntAtom {
  enum class Kind { Symbol, FloorDiv, Mod, Min, Max };
  Kind kind;
  SymbolRef symbol;                        // Kind::Symbol
  std::shared_ptr<const IntExpr> lhs, rhs; // the others; FloorDiv and Mod round towards minus infinity
};
using AtomRef = std::shared_ptr<const IntAtom>;

// An immutable integer expression: constant + sum of coefficient * product of atoms. Terms are sorted, equal
// terms merged and zero terms dropped, so that equality of expressions is equality of form. Arithmetic wraps
// never: coefficients beyond 2^62 are a failed check (callers bound model values before building
// expressions).
class IntExpr {
public:
  struct Term {
    int64_t coefficient;
    std::vector<AtomRef> atoms; // sorted, at least one
  };

  IntExpr(int64_t value = 0) : constant_(value) {}
  // Copies, moves and destruction are compiled once, not in every file that holds an expression.
  IntExpr(const IntExpr& other);
  IntExpr(IntExpr&& other) noexcept;
  IntExpr& operator=(const IntExpr& other);
  IntExpr& operator=(IntExpr&& other) noexcept;
  ~IntExpr();
  static IntExpr symbol(SymbolRef symbol);
  // The sum of constant and terms in any order, made canonical.
  static IntExpr from_terms(int64_t constant, std::vector<Term> terms);

  bool is_constant() const { return terms_.empty(); }
  // The value of a constant expression; a failed check otherwise.
  int64_t value() const;
  int64_t constant_part() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }

  // Smallest and largest value under the symbols' bounds (saturating at +-INT64_MAX); conservative, not
  // tight.
  int64_t lower_bound() const;
  int64_t upper_bound() const;

  // The symbol's coefficient when the expression is linear in it with a constant coefficient (0 when it does
  // not occur); nothing when it occurs in a product or inside an atom.
  std::optional<int64_t> linear_coefficient(const Symbol& symbol) const;
  // Like linear_coefficient(), but the coefficient may mention other symbols, such as a stride that varies.
  std::optional<IntExpr> coefficient(const Symbol& symbol) const;
  bool mentions(const Symbol& symbol) const;
  // Every symbol that occurs, each once, in order of first occurrence.
  std::vector<SymbolRef> symbols() const;

  // Replaces symbols: `replace` returns the new expression or nothing to keep the symbol. The result is
  // simplified anew.
  IntExpr substitute(const std::function<std::optional<IntExpr>(const Symbol&)>& replace) const;

  // Prints `3*height + past + 1`, `(%i + 4) floordiv 8`, `%i mod 8`, `min(a, b)`.
  std::string to_string() const;

  friend IntExpr operator+(const IntExpr& lhs, const IntExpr& rhs);
  friend IntExpr operator-(const IntExpr& lhs, const IntExpr& rhs);
  friend IntExpr operator*(const IntExpr& lhs, const IntExpr& rhs);
  // Division and remainder towards minus infinity by a positive divisor. Simplified where the bounds prove
  // it: (16*a + b) floordiv 16 = a and (16*a + b) mod 16 = b for 0 <= b < 16.
  friend IntExpr floor_div(const IntExpr& lhs, const IntExpr& rhs);
  friend IntExpr floor_mod(const IntExpr& lhs, const IntExpr& rhs);
  friend IntExpr min(const IntExpr& lhs, const IntExpr& rhs);
  friend IntExpr max(const IntExpr& lhs, const IntExpr& rhs);
  friend bool operator==(const IntExpr& lhs, const IntExpr& rhs);
  friend bool operator!=(const IntExpr& lhs, const IntExpr& rhs) { return !(lhs == rhs); }

private:
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

inline IntExpr ceil_div(const IntExpr& lhs, const IntExpr& rhs) {
  return floor_div(lhs + rhs - 1, rhs);
}

} // namespace firn
