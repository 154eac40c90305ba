// Decides whether memory that a kernel reads may lie where it writes. A write must not reach what is read
// later: for every write and every read, the difference of their addresses is a sum over the loops around
// them, and the bounds of that sum say in which iterations the two can meet.
#include "compiler/kernel/overwrite.h"

#include "compiler/kernel/access_forms.h"

#include <algorithm>
#include <numeric>

namespace firn::kernel {
namespace {

using Bytes = __int128; // sums of products of what is only known to be large

// coefficient * x for all x in [lower, upper].
struct Span {
  int64_t coefficient = 0, lower = 0, upper = 0;
  Bytes min() const { return Bytes{coefficient} * (coefficient >= 0 ? lower : upper); }
  Bytes max() const { return Bytes{coefficient} * (coefficient >= 0 ? upper : lower); }
  bool is_zero() const { return coefficient == 0 || (lower == 0 && upper == 0); }
  bool has_zero() const { return lower <= 0 && upper >= 0; }
};

// A loop around both: the read's iteration less the write's, in one digit.
struct CommonDigit {
  Span difference;
  bool ordered = true;
  bool equal = false; // the two meet only in equal iterations
};

class Pair {
public:
  Pair(const AccessForms& forms, const Access& write, const Access& read, int64_t distance)
      : forms_(forms), write_(write), read_(read), distance_(distance) {}

  Overwriting pattern() {
    if (read_.begin + distance_ >= write_.end || write_.begin >= read_.end + distance_)
      return Overwriting::Pointwise; // never the same bytes
    rest_ = {1, read_.lower + distance_ - write_.upper, read_.upper + distance_ - write_.lower};
    add_digits();
    find_equal_digits();
    if (never_) return Overwriting::Pointwise;
    Overwriting pattern = Overwriting::Pointwise;
    for (size_t i = 0; i < common_.size(); ++i) {
      if (common_[i].equal) continue;
      // The read comes later if its iteration is a later one, or any other one in a loop without order.
      if (can_meet(i, 1) || (!common_[i].ordered && can_meet(i, -1))) return Overwriting::None;
      if (can_meet(i, -1)) pattern = Overwriting::Sliding;
    }
    if (!can_meet(common_.size(), 0) || is_exclusive()) return pattern;
    if (write_.number <= read_.number) return Overwriting::None;
    bool same_bytes = private_.empty() && rest_.min() == 0 && rest_.max() == 0 && write_.width == read_.width;
    return std::max(pattern, same_bytes ? Overwriting::Pointwise : Overwriting::RowWise);
  }

private:
  void add_digits() {
    size_t common_loops = 0, at = 0;
    while (common_loops < write_.loops.size() && common_loops < read_.loops.size() &&
           write_.loops[common_loops] == read_.loops[common_loops])
      ++common_loops;
    for (size_t i = 0; i < common_loops; ++i)
      for (const LoopDigit& digit : digits(write_.loops[i])) {
        add_common(digit, write_.terms[at], read_.terms[at]);
        ++at;
      }
    for (size_t i = at; i < write_.terms.size(); ++i) add_private(negated(write_.terms[i]));
    for (size_t i = at; i < read_.terms.size(); ++i) add_private(read_.terms[i]);
  }

  const std::vector<LoopDigit>& digits(int loop) const { return forms_.loops[static_cast<size_t>(loop)]; }

  // The write's digit as a term of the difference, from which it is subtracted.
  static Span negated(const DigitTerm& term) { return {term.coefficient, -term.upper, -term.lower}; }

  void add_common(const LoopDigit& digit, const DigitTerm& write, const DigitTerm& read) {
    Span difference{write.coefficient, read.lower - write.upper, read.upper - write.lower};
    if (write.coefficient != read.coefficient) {
      // The steps differ in length: each access adds a term of its own.
      add_private(negated(write));
      add_private(read);
      difference.coefficient = 0;
    }
    common_.push_back({difference, digit.ordered});
  }

  // Counters with equal steps are merged into one.
  void add_private(const DigitTerm& term) { add_private(Span{term.coefficient, term.lower, term.upper}); }
  void add_private(const Span& span) {
    if (span.coefficient == 0) return;
    for (Span& known : private_)
      if (known.coefficient == span.coefficient) {
        known.lower += span.lower;
        known.upper += span.upper;
        return;
      }
    private_.push_back(span);
  }

  bool is_disjoint(Bytes min, Bytes max) const { return min >= write_.width || max <= -read_.width; }

  // Whether a difference in [min, max], and any multiple of `unit` added to it, keeps the two apart.
  bool is_disjoint_modulo(Bytes min, Bytes max, Bytes unit) const {
    Bytes room = min - write_.width, below = room >= 0 ? room / unit : -((unit - 1 - room) / unit);
    return max <= (below + 1) * unit - read_.width;
  }

  // Finds counters that must be equal for the two to meet, those of the longest steps first. A counter must
  // be equal if nothing that the others add makes up for one of its steps; or if nothing that those of
  // shorter steps add does, and neither do the multiples that those of longer steps add.
  void find_equal_digits() {
    std::vector<Span*> spans;
    for (CommonDigit& digit : common_) spans.push_back(&digit.difference);
    for (Span& span : private_) spans.push_back(&span);
    std::sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
      return std::abs(a->coefficient) > std::abs(b->coefficient);
    });
    for (bool found = true; found;) {
      found = false;
      for (size_t i = 0; i < spans.size(); ++i)
        if (!spans[i]->is_zero() && must_be_zero(spans, i)) {
          if (!spans[i]->has_zero()) never_ = true;
          spans[i]->lower = spans[i]->upper = 0;
          found = true;
        }
    }
    for (CommonDigit& digit : common_) {
      const Span& difference = digit.difference;
      digit.equal = difference.lower == 0 && difference.upper == 0;
    }
  }

  bool must_be_zero(const std::vector<Span*>& spans, size_t number) const {
    const Span& span = *spans[number];
    Bytes min = rest_.min(), max = rest_.max(), longer_min = 0, longer_max = 0;
    int64_t unit = 0; // divides whatever counters of longer steps add
    for (size_t i = 0; i < spans.size(); ++i) {
      if (i == number) continue;
      (i < number ? longer_min : min) += spans[i]->min();
      (i < number ? longer_max : max) += spans[i]->max();
      if (i < number && !spans[i]->is_zero()) unit = std::gcd(unit, spans[i]->coefficient);
    }
    auto disjoint = [&](int64_t from, int64_t to) {
      if (from > to) return true; // no such value
      Span side{span.coefficient, from, to};
      Bytes low = min + side.min(), high = max + side.max();
      return is_disjoint(low + longer_min, high + longer_max) ||
             (unit > 0 && is_disjoint_modulo(low, high, unit));
    };
    return disjoint(std::max<int64_t>(span.lower, 1), span.upper) &&
           disjoint(span.lower, std::min<int64_t>(span.upper, -1));
  }

  // Whether the two can touch the same bytes when the counters of loops before `first` are equal, and that of
  // `first` differs in the direction of `sign`.
  bool can_meet(size_t first, int sign) const {
    Bytes min = rest_.min(), max = rest_.max();
    for (size_t i = 0; i < first; ++i)
      if (!common_[i].difference.has_zero()) return false;
    for (size_t i = first; i < common_.size(); ++i) {
      Span span = common_[i].difference;
      if (i == first && sign > 0) span.lower = std::max<int64_t>(span.lower, 1);
      if (i == first && sign < 0) span.upper = std::min<int64_t>(span.upper, -1);
      if (span.lower > span.upper) return false;
      min += span.min();
      max += span.max();
    }
    for (const Span& span : private_) {
      min += span.min();
      max += span.max();
    }
    return !is_disjoint(min, max);
  }

  // Whether the two stand in branches of which only one runs in an iteration.
  bool is_exclusive() const {
    for (size_t i = 0; i < write_.branches.size() && i < read_.branches.size(); ++i) {
      if (write_.branches[i].first != read_.branches[i].first) return false;
      if (write_.branches[i].second != read_.branches[i].second) return true;
    }
    return false;
  }

  const AccessForms& forms_;
  const Access &write_, &read_;
  int64_t distance_;
  std::vector<CommonDigit> common_; // outermost first
  std::vector<Span> private_;       // counters of loops around one of the two only
  Span rest_;                       // the part of the difference that no counter adds
  bool never_ = false;              // no iterations of the two meet
};

} // namespace

std::string_view overwriting_name(Overwriting pattern) {
  static constexpr std::string_view names[] = {"pointwise", "row_wise", "sliding", "none"};
  return names[static_cast<size_t>(pattern)];
}

Overwriting may_overwrite(const Kernel& kernel, int written, int read, int64_t distance) {
  if (written == read || !kernel.buffer(written).written || kernel.buffer(read).written)
    return Overwriting::None;
  AccessForms forms = access_forms(kernel, written, read);
  Overwriting pattern = Overwriting::Pointwise;
  for (const Access& write : forms.accesses) {
    if (!write.writes) continue;
    for (const Access& other : forms.accesses) {
      if (other.writes) continue;
      pattern = std::max(pattern, Pair(forms, write, other, distance).pattern());
      if (pattern == Overwriting::None) return pattern;
    }
  }
  return pattern;
}

Result verify_in_place(const Kernel& kernel) {
  auto refuse = [&](const std::string& text) {
    return internal_error("kernel '" + kernel.name + "': " + text);
  };
  auto is_parameter = [&](int number) {
    return number >= 0 && static_cast<size_t>(number) < kernel.parameters.size();
  };
  for (const InPlace& pair : kernel.in_place) {
    if (!is_parameter(pair.written) || !is_parameter(pair.read))
      return refuse("writes one buffer over another, and one of them is no parameter");
    Overwriting pattern = may_overwrite(kernel, pair.written, pair.read, pair.distance);
    if (pattern <= pair.pattern) continue;
    bool never = pattern == Overwriting::None;
    return refuse("parameter '" + kernel.buffer(pair.written).name + "' is not written over '" +
                  kernel.buffer(pair.read).name + "' " + std::string(overwriting_name(pair.pattern)) + ": " +
                  (never ? "what is read may be overwritten before"
                         : "it is " + std::string(overwriting_name(pattern))));
  }
  return {};
}

} // namespace firn::kernel
