// The parser of patterns: recursive descent that writes the steps as it goes, from the end of the pattern's
// parts to their beginnings, so that each part is built for what follows it.
#include "compiler/support/regex.h"

#include "compiler/support/character_set.h"
#include "compiler/support/utf8.h"

#include <algorithm>
#include <functional>
#include <memory>

namespace firn {

namespace {

constexpr int kMaxSteps = 20000, kDeepest = 200, kMaxRepeats = 1000;

// A part of a pattern.
struct Node {
  enum class Kind : uint8_t { Empty, Set, Assert, Sequence, Choice, Repeat };
  Kind kind = Kind::Empty;
  CharacterSet characters;
  Assertion assertion = Assertion::TextBegin;
  int min = 0, max = 0; // Repeat; most -1: without end
  std::vector<std::unique_ptr<Node>> parts;
};
using Part = std::unique_ptr<Node>;

Part make(Node::Kind kind) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  return node;
}

struct Flags {
  bool ignores_case = false, dot_takes_newline = false, many_lines = false;
};

class Parser {
public:
  explicit Parser(std::string_view pattern) : text_(pattern) {}

  Expected<Part> run() {
    Part whole = choice(0);
    if (!failed_ && at_ < text_.size()) fail("unexpected ')'");
    if (failed_) return error_;
    return whole;
  }

private:
  Part fail(const std::string& what, bool unsupported = false) {
    if (!failed_) {
      std::string message = "at byte " + std::to_string(at_) + ": " + what;
      error_ = unsupported ? unsupported_error(message) : model_error(message);
    }
    failed_ = true;
    return make(Node::Kind::Empty);
  }
  bool more() const { return !failed_ && at_ < text_.size(); }
  bool accept(std::string_view word) {
    if (!more() || text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Part choice(int depth) {
    if (depth > kDeepest) return fail("groups are nested too deeply");
    Flags outer = flags_;
    Part alternatives = make(Node::Kind::Choice);
    do alternatives->parts.push_back(sequence(depth));
    while (accept("|"));
    flags_ = outer;
    return alternatives->parts.size() == 1 ? std::move(alternatives->parts[0]) : std::move(alternatives);
  }

  Part sequence(int depth) {
    Part all = make(Node::Kind::Sequence);
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      if (accept("\\Q")) {
        quoted(*all);
        continue;
      }
      Part one = atom(depth);
      all->parts.push_back(repeated(std::move(one)));
    }
    return all;
  }

  // Reads quoted text behind "\Q". A repetition behind "\E" repeats the last character.
  void quoted(Node& all) {
    bool ended = accept("\\E");
    while (more() && !ended) {
      Part one = literal(next_character());
      ended = accept("\\E");
      all.parts.push_back(ended ? repeated(std::move(one)) : std::move(one));
    }
  }

  // The operators of repetition behind a part.
  Part repeated(Part part) {
    for (int times = 0; more(); ++times) {
      int min = 0, max = -1;
      if (accept("*")) {
      } else if (accept("+")) {
        min = 1;
      } else if (accept("?")) {
        max = 1;
      } else if (!counts(min, max)) {
        break;
      }
      if (times > 0) return fail("two operators of repetition, one behind the other");
      accept("?"); // which match is preferred does not matter
      Part repeat = make(Node::Kind::Repeat);
      repeat->min = min;
      repeat->max = max;
      repeat->parts.push_back(std::move(part));
      part = std::move(repeat);
    }
    return part;
  }

  // "{2}", "{2,}", "{2,5}"; other braces are characters.
  bool counts(int& min, int& max) {
    size_t at = at_;
    auto number = [&](int& value) {
      size_t begin = at;
      for (value = 0; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at)
        value = std::min(value * 10 + (text_[at] - '0'), kMaxRepeats + 1);
      return at > begin;
    };
    if (at >= text_.size() || text_[at++] != '{' || !number(min)) return false;
    max = min;
    if (at < text_.size() && text_[at] == ',') {
      ++at;
      if (!number(max)) max = -1;
    }
    if (at >= text_.size() || text_[at++] != '}') return false;
    if (min > kMaxRepeats || max > kMaxRepeats || (max >= 0 && max < min))
      return fail("a repetition wants rising numbers up to " + std::to_string(kMaxRepeats)), false;
    at_ = at;
    return true;
  }

  Part atom(int depth) {
    if (accept("(")) return group(depth);
    if (accept("[")) return set_node(bracket());
    if (accept(".")) {
      CharacterSet all{{0, kLastCharacter}};
      return set_node(flags_.dot_takes_newline ? all : without(all, {{'\n', '\n'}}));
    }
    if (accept("^")) return assertion(flags_.many_lines ? Assertion::LineBegin : Assertion::TextBegin);
    if (accept("$")) return assertion(flags_.many_lines ? Assertion::LineEnd : Assertion::TextEnd);
    if (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?') return fail("nothing to repeat");
    if (text_[at_] != '\\') return literal(next_character());
    if (accept("\\A")) return assertion(Assertion::TextBegin);
    if (accept("\\z")) return assertion(Assertion::TextEnd);
    if (accept("\\b")) return assertion(Assertion::WordBoundary);
    if (accept("\\B")) return assertion(Assertion::NotWordBoundary);
    CharacterSet named;
    if (class_escape(named)) return set_node(std::move(named));
    return literal(escaped_character());
  }

  // Reads a group behind its "(".
  Part group(int depth) {
    Flags outer = flags_;
    if (accept("?P<") || accept("?<")) {
      size_t end = text_.find('>', at_);
      if (end == text_.npos || end == at_ || text_[at_] == '=' || text_[at_] == '!')
        return fail("a group without a name, or that looks behind", true);
      at_ = end + 1;
    } else if (accept("?")) {
      bool on = true;
      while (more() && text_[at_] != ')' && text_[at_] != ':') {
        char flag = text_[at_++];
        if (flag == '-')
          on = false;
        else if (flag == 'i')
          flags_.ignores_case = on;
        else if (flag == 's')
          flags_.dot_takes_newline = on;
        else if (flag == 'm')
          flags_.many_lines = on;
        else if (flag != 'U')
          return fail("'(?" + std::string(1, flag) + "' is not known", true);
      }
      // Flags without a group hold until the group around ends.
      if (accept(")")) return make(Node::Kind::Empty);
      if (!accept(":")) return fail("a group without an end");
    }
    Part inner = choice(depth + 1);
    flags_ = outer;
    if (!accept(")")) return fail("a group without an end");
    return inner;
  }

  Part assertion(Assertion which) {
    Part node = make(Node::Kind::Assert);
    node->assertion = which;
    return node;
  }
  Part set_node(CharacterSet set) {
    Part node = make(Node::Kind::Set);
    node->characters = std::move(set);
    return node;
  }
  Part literal(uint32_t character) { return set_node(folded({{character, character}})); }

  // The set, with the other case of its letters where case is ignored.
  CharacterSet folded(CharacterSet set) {
    if (!flags_.ignores_case) return set;
    CharacterSet both = set;
    for (const CharacterRange& range : set) {
      if (range.last > 127) fail("characters beyond ASCII whose case is ignored", true);
      for (uint32_t c = range.first; c <= std::min<uint32_t>(range.last, 127); ++c) {
        uint32_t lower = c | 32;
        if (lower < 'a' || lower > 'z') continue;
        both.push_back({c ^ 32, c ^ 32});
        if (lower == 'k') both.push_back({0x212a, 0x212a}); // the sign of Kelvin
        if (lower == 's') both.push_back({0x17f, 0x17f});   // the long s
      }
    }
    return united(std::move(both));
  }

  uint32_t next_character() {
    auto character = decode_utf8(text_, at_);
    if (!character) return fail("the pattern is no UTF-8"), 0;
    return *character;
  }

  uint32_t number(int base, size_t max) {
    uint32_t value = 0;
    size_t begin = at_;
    for (; more() && at_ - begin < max; ++at_) {
      char c = text_[at_];
      int digit = c >= '0' && c <= '9'                 ? c - '0'
                  : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                       : 99;
      if (digit >= base) break;
      value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
    }
    if (at_ == begin || value > kLastCharacter) fail("a number of a character is missing or too large");
    return value;
  }

  // Reads an escape that stands for one character, at its "\".
  uint32_t escaped_character() {
    ++at_;
    if (!more()) return fail("'\\' at the end"), 0;
    char c = text_[at_];
    static constexpr std::pair<char, char> kNamed[] = {{'a', '\a'}, {'f', '\f'}, {'n', '\n'},
                                                       {'r', '\r'}, {'t', '\t'}, {'v', '\v'}};
    for (auto [name, value] : kNamed)
      if (c == name) return ++at_, static_cast<uint32_t>(value);
    if (c == 'x' && ++at_) {
      if (!accept("{")) return number(16, 2);
      uint32_t value = number(16, 6);
      if (!accept("}")) fail("'\\x{' without an end");
      return value;
    }
    if (c == '0') return number(8, 3);
    bool is_word = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    if (is_word) return fail("'\\" + std::string(1, c) + "' is not supported", true), 0;
    return next_character();
  }

  // Reads "\d" and its like; false and nothing read if there is none.
  bool class_escape(CharacterSet& set) {
    if (at_ + 1 >= text_.size() || text_[at_] != '\\') return false;
    char c = text_[at_ + 1];
    const CharacterSet* named = perl_class(static_cast<char>(c | 32));
    if (!named || !((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) return false;
    at_ += 2;
    set = c & 32 ? *named : without({{0, kLastCharacter}}, *named);
    return true;
  }

  // Reads a set behind its "[".
  CharacterSet bracket() {
    bool negated = accept("^");
    CharacterSet set;
    bool is_first = true;
    while (is_first || !accept("]")) {
      if (!more()) return fail("a class without an end"), set;
      is_first = false;
      CharacterSet part;
      if (text_.substr(at_, 2) == "[:") {
        part = posix_class();
      } else if (!class_escape(part)) {
        uint32_t first = bracket_character(), last = first;
        if (text_.substr(at_, 1) == "-" && text_.substr(at_, 2) != "-]" && more()) {
          ++at_;
          if (!more()) return fail("a class without an end"), set;
          last = bracket_character();
        }
        if (!failed_ && last < first) fail("a range whose end is before its beginning");
        part = folded({{first, last}});
      }
      set.insert(set.end(), part.begin(), part.end());
    }
    set = united(std::move(set));
    return negated ? without({{0, kLastCharacter}}, set) : set;
  }

  uint32_t bracket_character() { return text_[at_] == '\\' ? escaped_character() : next_character(); }

  // Reads a class such as "[:alpha:]", at its "[:".
  CharacterSet posix_class() {
    size_t end = text_.find(":]", at_);
    if (end == text_.npos) return fail("'[:' without an end"), CharacterSet{};
    std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    const CharacterSet* found = firn::posix_class(name);
    if (!found) return fail("'" + std::string(name) + "' is no class of characters"), CharacterSet{};
    at_ = end + 2;
    return negated ? without({{0, kLastCharacter}}, *found) : folded(*found);
  }

  std::string_view text_;
  size_t at_ = 0;
  Flags flags_;
  bool failed_ = false;
  Diagnostic error_ = model_error("");
};

// Writes the steps of parts, each for the step that follows it.
class Writer {
public:
  explicit Writer(Regex& regex) : regex_(regex) {}
  // Parts that are empty take time alone.
  bool is_full() const { return regex_.steps.size() > kMaxSteps || visits_ > 10 * kMaxSteps; }

  int step(RegexStep step) {
    if (!is_full()) regex_.steps.push_back(std::move(step));
    return static_cast<int>(regex_.steps.size()) - 1;
  }
  int either(int next, int other) { return step({RegexStep::Kind::Either, next, other, {}, {}}); }

  int write(const Node& node, int next) {
    ++visits_;
    if (is_full()) return next;
    switch (node.kind) {
    case Node::Kind::Empty: return next;
    case Node::Kind::Set: return step({RegexStep::Kind::Read, next, -1, node.characters, {}});
    case Node::Kind::Assert: return step({RegexStep::Kind::Assert, next, -1, {}, node.assertion});
    case Node::Kind::Sequence:
      for (size_t i = node.parts.size(); i-- > 0;) next = write(*node.parts[i], next);
      return next;
    case Node::Kind::Choice: {
      int first = write(*node.parts.back(), next);
      for (size_t i = node.parts.size() - 1; i-- > 0;) first = either(write(*node.parts[i], next), first);
      return first;
    }
    case Node::Kind::Repeat: return write_repeat(node, next);
    }
    return next;
  }

private:
  int write_repeat(const Node& node, int next) {
    const Node& part = *node.parts[0];
    if (node.max < 0) {
      int loop = either(-1, next);
      int body = write(part, loop);
      if (is_full()) return next;
      regex_.steps[static_cast<size_t>(loop)].next = body;
      next = loop;
    }
    int behind = next;
    for (int i = node.min; i < node.max && !is_full(); ++i) next = either(write(part, next), behind);
    for (int i = 0; i < node.min && !is_full(); ++i) next = write(part, next);
    return next;
  }

  Regex& regex_;
  int visits_ = 0;
};

} // namespace

Expected<Regex> parse_regex(std::string_view pattern) {
  auto parsed = Parser(pattern).run();
  if (!parsed) return parsed.error();
  Regex regex;
  Writer writer(regex);
  int accept = writer.step({});
  regex.start = writer.write(**parsed, accept);
  if (writer.is_full())
    return unsupported_error("it takes more than " + std::to_string(kMaxSteps) + " steps");
  return regex;
}

} // namespace firn
