// Patterns as tables over bytes: characters become sequences of bytes, sets of places become states, and
// states that nothing tells apart become one.
#include "compiler/support/character_set.h"

#include <algorithm>
#include <array>
#include <map>

namespace firn {

namespace {

constexpr size_t kMaxStates = 8192, kMaxTableBytes = size_t{1} << 20;
constexpr int64_t kMaxWork = 200'000'000; // places looked at

struct ByteRange {
  uint8_t first, last;
  auto operator<=>(const ByteRange&) const = default;
};
using ByteSequence = std::vector<ByteRange>;

// The UTF-8 of a character.
std::vector<uint8_t> encoded(uint32_t c) {
  auto trail = [&](int shift) { return static_cast<uint8_t>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {static_cast<uint8_t>(c)};
  if (c < 0x800) return {static_cast<uint8_t>(0xc0 | c >> 6), trail(0)};
  if (c < 0x10000) return {static_cast<uint8_t>(0xe0 | c >> 12), trail(6), trail(0)};
  return {static_cast<uint8_t>(0xf0 | c >> 18), trail(12), trail(6), trail(0)};
}

// Adds the sequences of bytes that the characters from `first` to `last` are in UTF-8. Cuts the range until
// the bytes of its characters vary independently of each other.
void add_sequences(uint32_t first, uint32_t last, std::vector<ByteSequence>& sequences) {
  auto cut = [&](uint32_t at) {
    add_sequences(first, at, sequences);
    add_sequences(at + 1, last, sequences);
  };
  for (uint32_t end : {0x7fu, 0x7ffu, 0xffffu})
    if (first <= end && last > end) return cut(end);
  size_t size = encoded(first).size();
  for (size_t i = 1; i < size; ++i) {
    uint32_t low = (1u << 6 * i) - 1;
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) return cut(first | low);
    if ((last & low) != low) return cut((last & ~low) - 1);
  }
  std::vector<uint8_t> from = encoded(first), to = encoded(last);
  ByteSequence sequence;
  for (size_t i = 0; i < size; ++i) sequence.push_back({from[i], to[i]});
  sequences.push_back(std::move(sequence));
}

// The neighbour of a place in the text, as far as assertions ask for it.
enum class Beside : uint8_t { Nothing, Newline, Word, Other };

// The neighbour that a byte is to the places before it and behind it.
Beside beside(int byte) {
  if (byte == '\n') return Beside::Newline;
  return byte < 128 && contains(*perl_class('w'), static_cast<uint32_t>(byte)) ? Beside::Word : Beside::Other;
}

bool holds(Assertion assertion, Beside before, Beside behind) {
  auto ends_line = [](Beside what) { return what == Beside::Nothing || what == Beside::Newline; };
  switch (assertion) {
  case Assertion::TextBegin: return before == Beside::Nothing;
  case Assertion::TextEnd: return behind == Beside::Nothing;
  case Assertion::LineBegin: return ends_line(before);
  case Assertion::LineEnd: return ends_line(behind);
  case Assertion::WordBoundary: return (before == Beside::Word) != (behind == Beside::Word);
  case Assertion::NotWordBoundary: return (before == Beside::Word) == (behind == Beside::Word);
  }
  return false;
}

class TableMaker {
public:
  explicit TableMaker(const Regex& regex) : regex_(regex), edges_(regex.steps.size()) {}

  Expected<RegexTable> run() {
    for (size_t i = 0; i < regex_.steps.size(); ++i) {
      const RegexStep& step = regex_.steps[i];
      if (step.kind == RegexStep::Kind::Read) add_edges(static_cast<int>(i), step);
      has_assertions_ |= step.kind == RegexStep::Kind::Assert;
    }
    divide_bytes();
    if (!find_states()) return unsupported_error("it takes too many states for a table");
    return reduced();
  }

private:
  struct Edge {
    ByteRange bytes;
    int to;
  };
  // Places that a text may have reached, and what is before them.
  using State = std::pair<std::vector<int>, Beside>;

  void add_edges(int place, const RegexStep& step) {
    std::vector<ByteSequence> sequences;
    for (const CharacterRange& range : step.characters) add_sequences(range.first, range.last, sequences);
    for (const ByteSequence& sequence : sequences) {
      int to = behind_first(sequence, step.next); // may add places
      edges_[static_cast<size_t>(place)].push_back({sequence[0], to});
    }
  }

  // The place behind the first byte of a sequence; those that end alike share it.
  int behind_first(const ByteSequence& sequence, int next) {
    if (sequence.size() == 1) return next;
    ByteSequence rest(sequence.begin() + 1, sequence.end());
    auto [known, is_new] = behind_.try_emplace({rest, next}, 0);
    if (!is_new) return known->second;
    int to = behind_first(rest, next);
    edges_.push_back({{rest[0], to}});
    return known->second = static_cast<int>(edges_.size()) - 1;
  }

  // Bytes between which no edge and no assertion makes a difference are one class.
  void divide_bytes() {
    std::array<bool, 257> begins{};
    auto add = [&](int first, int last) {
      begins[static_cast<size_t>(first)] = begins[static_cast<size_t>(last) + 1] = true;
    };
    for (const auto& edges : edges_)
      for (const Edge& edge : edges) add(edge.bytes.first, edge.bytes.last);
    if (has_assertions_) {
      add('\n', '\n');
      for (const CharacterRange& range : *perl_class('w'))
        add(static_cast<int>(range.first), static_cast<int>(range.last));
    }
    table_.class_of.resize(256);
    begins[0] = true;
    for (size_t byte = 0; byte < 256; ++byte) {
      if (begins[byte]) samples_.push_back(static_cast<int>(byte));
      table_.class_of[byte] = static_cast<uint8_t>(samples_.size() - 1);
    }
    table_.classes = static_cast<int>(samples_.size());
  }

  // Places from which on a byte is read, or the match is complete, between the two.
  std::vector<int> reached(const State& state, Beside behind) {
    std::vector<int> open = state.first, result;
    std::vector<bool> seen(edges_.size());
    work_ += static_cast<int64_t>(edges_.size()) / 16; // for `seen`
    while (!open.empty()) {
      auto at = static_cast<size_t>(open.back());
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      ++work_;
      if (at >= regex_.steps.size()) { // within a character
        result.push_back(static_cast<int>(at));
        continue;
      }
      const RegexStep& step = regex_.steps[at];
      if (step.kind == RegexStep::Kind::Either)
        open.insert(open.end(), {step.next, step.other});
      else if (step.kind != RegexStep::Kind::Assert)
        result.push_back(static_cast<int>(at));
      else if (holds(step.assertion, state.second, behind))
        open.push_back(step.next);
    }
    return result;
  }

  // The number of a state, which is new if it has not been met. State 0 has no places.
  uint16_t number(State state) {
    std::sort(state.first.begin(), state.first.end());
    state.first.erase(std::unique(state.first.begin(), state.first.end()), state.first.end());
    if (state.first.empty()) state.second = Beside::Other;
    auto [known, is_new] = numbers_.try_emplace(std::move(state), static_cast<uint16_t>(states_.size()));
    if (is_new) states_.push_back(&known->first);
    return known->second;
  }

  // Fills the table by a search from the first state; false if there are too many.
  bool find_states() {
    number({{}, Beside::Other}); // state 0
    number({{regex_.start}, has_assertions_ ? Beside::Nothing : Beside::Other});
    for (size_t s = 0; s < states_.size(); ++s) {
      const State& state = *states_[s];
      for (int sample : samples_) {
        State next{{}, has_assertions_ ? beside(sample) : Beside::Other};
        for (int place : reached(state, beside(sample)))
          for (const Edge& edge : edges_[static_cast<size_t>(place)]) {
            ++work_;
            if (sample >= edge.bytes.first && sample <= edge.bytes.last) next.first.push_back(edge.to);
          }
        table_.next.push_back(number(std::move(next)));
      }
      bool accepts = false;
      for (int place : reached(state, Beside::Nothing))
        accepts |= static_cast<size_t>(place) < regex_.steps.size() &&
                   regex_.steps[static_cast<size_t>(place)].kind == RegexStep::Kind::Accept;
      table_.accepts.push_back(accepts);
      if (states_.size() > kMaxStates || work_ > kMaxWork ||
          2 * states_.size() * samples_.size() > kMaxTableBytes)
        return false;
    }
    return true;
  }

  // States by what follows from them: two are apart if one accepts alone, or a byte leads to two that are
  // apart.
  std::vector<int> blocks() const {
    size_t classes = samples_.size(), count = states_.size();
    std::vector<int> block(table_.accepts.begin(), table_.accepts.end());
    for (size_t before = 0;;) {
      std::map<std::vector<int>, int> found;
      std::vector<int> finer(count);
      for (size_t s = 0; s < count; ++s) {
        std::vector<int> signature{block[s]};
        for (size_t c = 0; c < classes; ++c) signature.push_back(block[table_.next[s * classes + c]]);
        finer[s] = found.try_emplace(std::move(signature), static_cast<int>(found.size())).first->second;
      }
      block = std::move(finer);
      if (found.size() == before) return block;
      before = found.size();
    }
  }

  RegexTable reduced() const {
    std::vector<int> block = blocks();
    size_t classes = samples_.size();
    // State 0 stays the first, and the beginning the second, though nothing may tell it from the first.
    std::vector<size_t> members{0, 1};
    std::map<int, uint16_t> kept{{block[0], uint16_t{0}}};
    kept.try_emplace(block[1], uint16_t{1});
    for (size_t s = 2; s < block.size(); ++s)
      if (kept.try_emplace(block[s], static_cast<uint16_t>(members.size())).second) members.push_back(s);
    RegexTable table{table_.class_of, {}, {}, table_.classes};
    for (size_t s : members) {
      for (size_t c = 0; c < classes; ++c) table.next.push_back(kept[block[table_.next[s * classes + c]]]);
      table.accepts.push_back(table_.accepts[s]);
    }
    return table;
  }

  const Regex& regex_;
  std::vector<std::vector<Edge>> edges_; // by place: the regex's steps, then places within characters
  std::map<std::pair<ByteSequence, int>, int> behind_;
  bool has_assertions_ = false;
  std::vector<int> samples_; // a byte of each class
  std::map<State, uint16_t> numbers_;
  std::vector<const State*> states_;
  RegexTable table_;
  int64_t work_ = 0;
};

} // namespace

Expected<RegexTable> make_regex_table(const Regex& regex) {
  return TableMaker(regex).run();
}

} // namespace firn
