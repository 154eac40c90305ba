// Types, dims and windows from text.
#include "compiler/graph/parse_type.h"

#include "compiler/support/int_expr_size.h"

namespace firn {
namespace {

constexpr int kMaxDepth = 32; // nesting of types and expressions
// The largest number that is combined with symbols: products stay far below 2^62.
constexpr int64_t kMaxFactor = 1 << 30;
constexpr size_t kMaxNodes = 256; // nodes of an expression, so that no operation on it is slow
constexpr size_t kMaxFactors = 4; // factors of a term
constexpr size_t kMaxRank = 64;
constexpr int64_t kMaxBlock = 999'999;

// Whether an expression may be combined with another one and stay in the range and size that expressions can
// have.
bool is_tame(const IntExpr& expression) {
  auto small = [](int64_t value) { return value <= kMaxFactor && value >= -kMaxFactor; };
  if (!small(expression.constant_part())) return false;
  for (const IntExpr::Term& term : expression.terms())
    if (!small(term.coefficient) || term.atoms.size() > kMaxFactors) return false;
  return !is_larger_than(expression, kMaxNodes);
}

IntExpr parse_atom(TextScanner& scanner, const Module& module, int depth) {
  int64_t number = 0;
  if (scanner.accept("(")) {
    IntExpr inner = parse_int_expr(scanner, module, depth + 1);
    scanner.expect(")");
    return inner;
  }
  for (bool is_min : {true, false})
    if (scanner.accept(is_min ? "min(" : "max(")) {
      IntExpr lhs = parse_int_expr(scanner, module, depth + 1);
      scanner.expect(",");
      IntExpr rhs = parse_int_expr(scanner, module, depth + 1);
      scanner.expect(")");
      if (!is_tame(lhs) || !is_tame(rhs)) scanner.fail("expression too large");
      return scanner.failed() ? 0 : is_min ? min(lhs, rhs) : max(lhs, rhs);
    }
  if (scanner.integer(number)) {
    if (number > (int64_t(1) << 60) || number < -(int64_t(1) << 60)) scanner.fail("number out of range");
    return scanner.failed() ? 0 : number;
  }
  std::string name;
  if (!scanner.quoted(name)) name = scanner.word();
  SymbolRef symbol = module.find_symbol(name);
  if (!symbol) {
    scanner.fail(name.empty() ? "expected a dim" : "unknown symbol '" + name + "'");
    return 0;
  }
  return IntExpr::symbol(symbol);
}

enum class Operator { Times, FloorDiv, Mod };

std::optional<Operator> accept_operator(TextScanner& scanner) {
  if (scanner.accept("*")) return Operator::Times;
  if (scanner.accept("floordiv")) return Operator::FloorDiv;
  if (scanner.accept("mod")) return Operator::Mod;
  return std::nullopt;
}

IntExpr parse_product(TextScanner& scanner, const Module& module, int depth) {
  IntExpr product = parse_atom(scanner, module, depth);
  while (auto op = accept_operator(scanner)) {
    IntExpr rhs = parse_atom(scanner, module, depth);
    if (!is_tame(product) || !is_tame(rhs) || product.terms().size() * rhs.terms().size() > kMaxNodes)
      scanner.fail("expression too large");
    if (*op != Operator::Times && rhs.is_constant() && rhs.value() <= 0)
      scanner.fail("division by " + rhs.to_string());
    if (scanner.failed()) return 0;
    switch (*op) {
    case Operator::Times: product = product * rhs; break;
    case Operator::FloorDiv: product = floor_div(product, rhs); break;
    case Operator::Mod: product = floor_mod(product, rhs); break;
    }
  }
  return product;
}

// The size of a block from its text, "x16"; 0 if the text is no block.
int64_t block_size(std::string_view by) {
  if (by.empty() || by[0] != 'x') return 0;
  int64_t size = 0;
  for (char c : by.substr(1)) {
    size = size * 10 + (c - '0');
    if (c < '0' || c > '9' || size > kMaxBlock) return 0;
  }
  return size;
}

void parse_layout(TextScanner& scanner, Type& type) {
  int64_t value = 0;
  auto number = [&](int64_t low, int64_t high) {
    if (!scanner.integer(value) || value < low || value >= high) scanner.fail("broken layout");
    return value;
  };
  bool ordered = !scanner.next_is(":") && !scanner.next_is(";");
  std::vector<bool> seen(type.dims.size());
  for (size_t i = 0; ordered && i < type.dims.size() && !scanner.failed(); ++i) {
    if (i) scanner.expect(",");
    auto axis = static_cast<size_t>(number(0, type.rank()));
    if (scanner.failed() || seen[axis]) {
      scanner.fail("broken layout");
      return;
    }
    seen[axis] = true;
    type.layout.order.push_back(static_cast<int>(axis));
  }
  if (scanner.accept(":")) {
    do {
      auto axis = static_cast<int>(number(0, type.rank()));
      int64_t size = block_size(scanner.word_with(""));
      if (size < 1) scanner.fail("broken layout");
      type.layout.blocks.push_back({axis, static_cast<int>(size)});
    } while (scanner.accept(",") && !scanner.failed());
  }
  if (scanner.accept(";")) {
    do type.layout.strides.push_back(number(0, int64_t(1) << 40));
    while (scanner.accept(",") && !scanner.failed());
    if (type.layout.strides.size() != type.dims.size() + type.layout.blocks.size())
      scanner.fail("broken layout");
  }
  scanner.expect("}");
}

} // namespace

IntExpr parse_int_expr(TextScanner& scanner, const Module& module, int depth) {
  if (depth > kMaxDepth) {
    scanner.fail("expression nested too deeply");
    return 0;
  }
  bool negative = !scanner.next_is("-") ? false : [&] {
    int64_t number = 0;
    // A number takes its sign itself.
    TextScanner copy = scanner;
    return !copy.integer(number) && scanner.accept("-");
  }();
  IntExpr sum = parse_product(scanner, module, depth);
  if (negative && !scanner.failed()) sum = sum * IntExpr(-1);
  while (!scanner.failed()) {
    bool plus = scanner.accept("+");
    if (!plus && !scanner.accept("-")) break;
    IntExpr rhs = parse_product(scanner, module, depth);
    if (!is_tame(sum) || !is_tame(rhs)) scanner.fail("expression too large");
    if (!scanner.failed()) sum = plus ? sum + rhs : sum - rhs;
  }
  return sum;
}

Type parse_type(TextScanner& scanner, const Module& module, int depth) {
  if (depth > kMaxDepth) {
    scanner.fail("type nested too deeply");
    return {};
  }
  if (scanner.accept("sequence")) {
    scanner.expect("<");
    Type element = parse_type(scanner, module, depth + 1);
    int64_t bound = 0;
    if (!scanner.expect(";") || !scanner.integer(bound) || bound < 0)
      scanner.fail("expected the bound of a sequence");
    scanner.expect(">");
    return Type::sequence(std::move(element), bound);
  }
  if (scanner.accept("optional")) {
    scanner.expect("<");
    Type element = parse_type(scanner, module, depth + 1);
    scanner.expect(">");
    return Type::optional(std::move(element));
  }
  std::string name(scanner.word());
  auto dtype = parse_dtype(name);
  if (!dtype) {
    scanner.fail("expected a type");
    return {};
  }
  Type type = Type::tensor(*dtype, {});
  if (scanner.accept("<") && (!scanner.integer(type.bound) || type.bound < 1 || !scanner.expect(">")))
    scanner.fail("broken string bound");
  scanner.expect("[");
  if (!scanner.accept("]")) {
    do {
      bool counted = scanner.accept("<=");
      Dim dim(parse_int_expr(scanner, module, depth + 1));
      dim.counted = counted;
      if (dim.is_static() && dim.value() < 0) scanner.fail("negative dim");
      if (!dim.is_static() && !is_tame(dim.extent)) scanner.fail("expression too large");
      if (type.dims.size() == kMaxRank) scanner.fail("rank too large");
      type.dims.push_back(std::move(dim));
    } while (scanner.accept(",") && !scanner.failed());
    scanner.expect("]");
  }
  if (scanner.failed()) return {};
  std::vector<int64_t> extents;
  for (const Dim& dim : type.dims) extents.push_back(dim.is_static() ? dim.value() : 1);
  if (!checked_num_elements(extents)) scanner.fail("tensor too large");
  if (scanner.accept("{")) parse_layout(scanner, type);
  return scanner.failed() ? Type{} : type;
}

Window parse_window(TextScanner& scanner) {
  Window window;
  auto fields = [&](auto&& set) {
    std::string text(scanner.word_with("_-"));
    size_t dim = 0, at = 0;
    while (at <= text.size()) {
      size_t end = std::min(text.find('x', at), text.size());
      if (!set(dim++, text.substr(at, end - at))) return scanner.fail("broken window");
      at = end + 1;
    }
    return dim == window.dims.size() || scanner.fail("window parts differ in rank");
  };
  auto number = [](const std::string& text, int64_t& value) {
    if (text.empty() || text.size() > 10) return false;
    char* end = nullptr;
    value = std::strtoll(text.c_str(), &end, 10);
    return *end == 0;
  };
  auto plain = [&](int64_t WindowDim::*field) {
    return fields([&](size_t dim, const std::string& text) {
      return dim < window.dims.size() && number(text, window.dims[dim].*field);
    });
  };
  fields([&](size_t, const std::string& text) {
    window.dims.emplace_back();
    return window.dims.size() <= kMaxRank && number(text, window.dims.back().size);
  });
  if (scanner.accept("pad"))
    fields([&](size_t dim, const std::string& text) {
      size_t split = text.find('_');
      return dim < window.dims.size() && split != text.npos &&
             number(text.substr(0, split), window.dims[dim].pad_low) &&
             number(text.substr(split + 1), window.dims[dim].pad_high);
    });
  if (scanner.accept("stride")) plain(&WindowDim::stride);
  if (scanner.accept("dilate")) plain(&WindowDim::dilation);
  if (scanner.accept("input_dilate")) plain(&WindowDim::input_dilation);
  return window;
}

} // namespace firn
