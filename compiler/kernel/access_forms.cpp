// The walk over a kernel that brings indices to the form of access_forms.h: it replaces loop variables by
// their start plus their digits, then takes every index apart into its terms.
#include "compiler/kernel/access_forms.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace firn::kernel {
namespace {

// Extents and bytes beyond this are as good as unknown; sums of a few dozen of them still fit.
constexpr int64_t kUnknown = int64_t{1} << 50;

int64_t clamped(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, -kUnknown, kUnknown));
}

// Whether the terms of the expression and of its operands are far from the limits of int64_t, and may be
// multiplied and added up. Only hand-written text has others.
bool is_small(const IntExpr& expression) {
  return std::all_of(expression.terms().begin(), expression.terms().end(), [](const IntExpr::Term& term) {
    __int128 largest = std::abs(__int128{term.coefficient});
    for (const AtomRef& atom : term.atoms) {
      if (atom->kind != IntAtom::Kind::Symbol && !(is_small(*atom->lhs) && is_small(*atom->rhs)))
        return false;
      IntExpr alone = IntExpr::from_terms(0, {{1, {atom}}});
      largest *= std::max(
          {__int128{1}, std::abs(__int128{alone.lower_bound()}), std::abs(__int128{alone.upper_bound()})});
      if (largest > kUnknown) return false;
    }
    return true;
  });
}

bool is_affine(const IntExpr& expression) {
  return std::all_of(expression.terms().begin(), expression.terms().end(), [](const IntExpr::Term& term) {
    return term.atoms.size() == 1 && term.atoms[0]->kind == IntAtom::Kind::Symbol;
  });
}

// The largest value of upper - lower; a minimum is as small as each of its operands.
int64_t largest_distance(const IntExpr& lower, const IntExpr& upper) {
  if (upper.constant_part() == 0 && upper.terms().size() == 1 && upper.terms()[0].coefficient == 1 &&
      upper.terms()[0].atoms.size() == 1 && upper.terms()[0].atoms[0]->kind == IntAtom::Kind::Min) {
    const IntAtom& minimum = *upper.terms()[0].atoms[0];
    return std::min(largest_distance(lower, *minimum.lhs), largest_distance(lower, *minimum.rhs));
  }
  return (upper - lower).upper_bound();
}

Predicate opposite(Predicate predicate) {
  switch (predicate) {
  case Predicate::Eq: return Predicate::Ne;
  case Predicate::Ne: return Predicate::Eq;
  case Predicate::Lt: return Predicate::Ge;
  case Predicate::Le: return Predicate::Gt;
  case Predicate::Gt: return Predicate::Le;
  case Predicate::Ge: return Predicate::Lt;
  }
  FIRN_UNREACHABLE("predicate");
}

// The divisors by which symbols are taken apart: (s floordiv a) mod b has a and a * b.
class Divisors {
public:
  void add(const IntExpr& expression) {
    for (const IntExpr::Term& term : expression.terms())
      for (const AtomRef& atom : term.atoms) {
        if (atom->kind == IntAtom::Kind::Symbol) continue;
        add(*atom->lhs);
        add(*atom->rhs);
        bool divides = atom->kind == IntAtom::Kind::FloorDiv || atom->kind == IntAtom::Kind::Mod;
        if (!divides || !atom->rhs->is_constant()) continue;
        auto [symbol, outer] = divided_symbol(*atom->lhs);
        if (symbol && atom->rhs->value() > 0 && atom->rhs->value() < kUnknown / outer)
          found_[symbol].insert(outer * atom->rhs->value());
      }
  }

  // The divisors of a symbol below `limit`, in ascending order; each divides the next.
  std::vector<int64_t> of(const Symbol* symbol, int64_t limit) const {
    std::vector<int64_t> chain;
    auto found = found_.find(symbol);
    if (found == found_.end()) return chain;
    for (int64_t divisor : found->second)
      if (divisor > 1 && divisor < limit && divisor % (chain.empty() ? 1 : chain.back()) == 0)
        chain.push_back(divisor);
    return chain;
  }

private:
  // The symbol that the expression divides, and the product of its divisors.
  static std::pair<const Symbol*, int64_t> divided_symbol(const IntExpr& expression) {
    if (expression.constant_part() != 0 || expression.terms().size() != 1) return {nullptr, 1};
    const IntExpr::Term& term = expression.terms()[0];
    if (term.coefficient != 1 || term.atoms.size() != 1) return {nullptr, 1};
    const IntAtom& atom = *term.atoms[0];
    if (atom.kind == IntAtom::Kind::Symbol) return {atom.symbol.get(), 1};
    if (atom.kind != IntAtom::Kind::FloorDiv || !atom.rhs->is_constant()) return {nullptr, 1};
    auto [symbol, outer] = divided_symbol(*atom.lhs);
    int64_t divisor = atom.rhs->value();
    if (divisor <= 0 || divisor >= kUnknown / outer) return {nullptr, 1};
    return {symbol, outer * divisor};
  }

  std::map<const Symbol*, std::set<int64_t>> found_;
};

class AccessCollector {
public:
  AccessCollector(const Kernel& kernel, int written, int read)
      : kernel_(kernel), written_(written), read_(read) {}

  AccessForms collect() {
    find_divisors(kernel_.body);
    if (kernel_.phase) open_loop(*kernel_.phase, 0, kernel_.phases, 1, /*ordered=*/true);
    if (kernel_.parallel && kernel_.max_iterations() > 1)
      open_loop(*kernel_.parallel, 0, kernel_.max_iterations(), 1, /*ordered=*/false);
    visit(kernel_.body);
    return std::move(forms_);
  }

private:
  bool concerns(const Op& op) const { return op.buffer == written_ || op.buffer == read_; }

  void find_divisors(const Block& block) {
    for (const auto& op : block.ops) {
      if (op_kind_info(op->kind).group == OpGroup::Memory && concerns(*op)) divisors_.add(op->index);
      if (op->kind == OpKind::CopyAsync && op->buffers[0] == read_) divisors_.add(op->source);
      if (op->kind == OpKind::For) divisors_.add(op->lower);
      for (const Block& inner : op->blocks) find_divisors(inner);
    }
  }

  IntExpr replaced(const IntExpr& expression) const {
    if (expression.is_constant()) return expression;
    return expression.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
      auto found = meaning_.find(&symbol);
      if (found == meaning_.end()) return std::nullopt;
      return found->second;
    });
  }

  // `lower` and `upper` are expressions over digits of the loops around.
  void open_loop(const Symbol& variable, IntExpr lower, const IntExpr& upper, int64_t step, bool ordered) {
    __int128 range = __int128{variable.upper} - variable.lower + 1;
    __int128 count = (__int128{largest_distance(lower, upper)} + step - 1) / step;
    if (!is_affine(lower) || !is_small(lower) || (count - 1) * step >= range) {
      lower = variable.lower;
      count = range;
      step = 1;
    }
    count = std::clamp<__int128>(count, 1, kUnknown);
    std::vector<int64_t> units = {1};
    if (lower.is_constant() && lower.value() == 0)
      for (int64_t divisor : divisors_.of(&variable, clamped(count * step)))
        if (divisor % step == 0 && divisor > step) units.push_back(divisor / step);
    std::vector<LoopDigit> digits;
    IntExpr position = 0;
    for (size_t i = units.size(); i-- > 0;) {
      int64_t above = i + 1 < units.size() ? units[i + 1] : static_cast<int64_t>(count);
      int64_t extent = (above + units[i] - 1) / units[i];
      digits.push_back({extent, ordered});
      auto symbol = std::make_shared<const Symbol>(Symbol{"digit", 0, extent - 1});
      digit_of_[symbol.get()] = static_cast<int>(open_digits_.size());
      open_digits_.push_back({0, 0, extent - 1});
      position = position + IntExpr::symbol(symbol) * units[i];
      symbols_.push_back(symbol);
    }
    meaning_[&variable] = lower + position * step;
    open_loops_.push_back(static_cast<int>(forms_.loops.size()));
    forms_.loops.push_back(std::move(digits));
  }

  void close_loop() {
    open_digits_.resize(open_digits_.size() - forms_.loops[static_cast<size_t>(open_loops_.back())].size());
    open_loops_.pop_back();
  }

  void visit(const Block& block) {
    for (const auto& op : block.ops) {
      ++number_;
      for (Register result : op->results) definitions_[result.id] = op.get();
      switch (op->kind) {
      case OpKind::Load:
      case OpKind::Gather:
      case OpKind::Store:
      case OpKind::Scatter: add_access(*op); break;
      case OpKind::TileLoad:
      case OpKind::TileStore: add_tile(*op); break;
      case OpKind::CallRuntime: add_call(*op); break;
      case OpKind::CopyAsync: // arrives later
        if (op->buffers[0] == read_) add_whole(start_access(false), read_);
        break;
      case OpKind::For:
        open_loop(*op->symbol, replaced(op->lower), replaced(op->upper), op->step, /*ordered=*/true);
        visit(op->blocks[0]);
        close_loop();
        break;
      case OpKind::Threads:
        open_loop(*op->symbol, 0, kernel_.threads, 1, /*ordered=*/false);
        visit(op->blocks[0]);
        close_loop();
        break;
      case OpKind::While: visit_while(*op); break;
      case OpKind::If: visit_if(*op); break;
      default: break;
      }
    }
  }

  void visit_while(const Op& op) {
    open_loops_.push_back(static_cast<int>(forms_.loops.size()));
    forms_.loops.push_back({LoopDigit{kUnknown, /*ordered=*/true}});
    open_digits_.push_back({0, 0, kUnknown - 1});
    for (const Block& block : op.blocks) visit(block);
    close_loop();
  }

  void visit_if(const Op& op) {
    int id = number_;
    for (size_t i = 0; i < op.blocks.size(); ++i) {
      std::vector<DigitTerm> before = open_digits_;
      branches_.push_back({id, static_cast<int>(i)});
      narrow(op.operands[0], /*holds=*/i == 0);
      visit(op.blocks[i]);
      branches_.pop_back();
      open_digits_ = std::move(before);
    }
  }

  // Narrows the range of a digit by a condition that holds, or does not.
  void narrow(Register condition, bool holds) {
    const Op* op = definition(condition);
    if (op && op->kind == OpKind::And && holds) {
      narrow(op->operands[0], true);
      return narrow(op->operands[1], true);
    }
    if (!op || op->kind != OpKind::SCmp) return;
    const Op *index = definition(op->operands[0]), *number = definition(op->operands[1]);
    if (!index || index->kind != OpKind::IndexValue || !number || number->kind != OpKind::Constant) return;
    DigitTerm* digit = digit_that_is(replaced(index->index));
    if (!digit) return;
    int64_t bound = std::clamp(number->integers[0], -kUnknown, kUnknown), lower = -kUnknown, upper = kUnknown;
    switch (holds ? op->predicate : opposite(op->predicate)) {
    case Predicate::Eq: lower = upper = bound; break;
    case Predicate::Ne: break;
    case Predicate::Lt: upper = bound - 1; break;
    case Predicate::Le: upper = bound; break;
    case Predicate::Gt: lower = bound + 1; break;
    case Predicate::Ge: lower = bound; break;
    }
    // A branch that never runs leaves the range as it is.
    if (std::max(lower, digit->lower) > std::min(upper, digit->upper)) return;
    digit->lower = std::max(lower, digit->lower);
    digit->upper = std::min(upper, digit->upper);
  }
  DigitTerm* digit_that_is(const IntExpr& expression) {
    if (expression.constant_part() != 0 || expression.terms().size() != 1) return nullptr;
    const IntExpr::Term& term = expression.terms()[0];
    if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0]->kind != IntAtom::Kind::Symbol)
      return nullptr;
    auto digit = digit_of_.find(term.atoms[0]->symbol.get());
    return digit == digit_of_.end() ? nullptr : &open_digits_[static_cast<size_t>(digit->second)];
  }
  const Op* definition(Register value) const {
    auto found = definitions_.find(value.id);
    return found == definitions_.end() ? nullptr : found->second;
  }

  Access start_access(bool writes) const {
    Access access;
    access.writes = writes;
    access.number = number_;
    access.loops = open_loops_;
    access.branches = branches_;
    access.terms = open_digits_;
    return access;
  }

  void add_whole(Access access, int buffer) {
    const BufferParameter& parameter = kernel_.buffer(buffer);
    access.width = access.end = clamped(__int128{parameter.size} * scalar_bytes(parameter.element));
    forms_.accesses.push_back(std::move(access));
  }

  void add_call(const Op& op) {
    for (int buffer : op.buffers) {
      if (buffer == written_) add_whole(start_access(true), buffer);
      if (buffer == read_) add_whole(start_access(false), buffer);
    }
  }

  // Counts as an access to the whole buffer, since rows lie apart.
  void add_tile(const Op& op) {
    bool writes = op.kind == OpKind::TileStore;
    if (op.buffer == (writes ? written_ : read_)) add_whole(start_access(writes), op.buffer);
  }

  void add_access(const Op& op) {
    bool writes = op.kind == OpKind::Store || op.kind == OpKind::Scatter;
    if (op.buffer != (writes ? written_ : read_)) return;
    Access access = start_access(writes);
    // Computed offsets may lead anywhere.
    if (op.kind == OpKind::Gather || op.kind == OpKind::Scatter || !is_small(op.index))
      return add_whole(std::move(access), op.buffer);
    MachineType type = kernel_.type_of(writes ? op.operands[0] : op.results[0]);
    access.width = int64_t{type.lanes} * scalar_bytes(type.scalar);
    int64_t element = scalar_bytes(kernel_.buffer(op.buffer).element);
    IntExpr index = replaced(op.index);
    __int128 lower = index.constant_part(), upper = lower;
    for (const IntExpr::Term& term : index.terms()) {
      auto digit = term.atoms.size() == 1 && term.atoms[0]->kind == IntAtom::Kind::Symbol
                       ? digit_of_.find(term.atoms[0]->symbol.get())
                       : digit_of_.end();
      if (digit != digit_of_.end()) {
        access.terms[static_cast<size_t>(digit->second)].coefficient =
            clamped(__int128{term.coefficient} * element);
        continue;
      }
      IntExpr part = IntExpr::from_terms(0, {term});
      lower += part.lower_bound();
      upper += part.upper_bound();
    }
    access.lower = clamped(lower * element);
    access.upper = clamped(upper * element);
    access.begin = clamped(__int128{op.index.lower_bound()} * element);
    access.end = clamped(__int128{op.index.upper_bound()} * element + access.width);
    forms_.accesses.push_back(std::move(access));
  }

  const Kernel& kernel_;
  int written_, read_;
  AccessForms forms_;
  Divisors divisors_;
  std::unordered_map<const Symbol*, IntExpr> meaning_; // loop variables as expressions over digits
  std::unordered_map<const Symbol*, int> digit_of_;    // position among the digits around an op
  std::unordered_map<int, const Op*> definitions_;
  std::vector<SymbolRef> symbols_; // keeps the digits' symbols alive
  std::vector<int> open_loops_;
  std::vector<std::pair<int, int>> branches_;
  std::vector<DigitTerm> open_digits_; // the digits of the open loops, with their ranges
  int number_ = 0;
};

} // namespace

AccessForms access_forms(const Kernel& kernel, int written, int read) {
  return AccessCollector(kernel, written, read).collect();
}

} // namespace firn::kernel
