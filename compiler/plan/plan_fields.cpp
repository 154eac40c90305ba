// How fields print and are read.
#include "compiler/plan/plan_fields.h"

#include <algorithm>
#include <cstdlib>

namespace firn::plan {
namespace {

using Presence = Field::Presence;
using Reading = Field::Reading;

// "a, b or c"
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

Reading done(bool is_read) {
  return is_read ? Reading::Done : Reading::Failed;
}

std::string takes(const std::string& word, const std::string& values) {
  return "'" + word + "' takes " + values;
}

template <class Int>
Field number_of(const std::string& word, Int& value, const ValueRange& range, const std::string& help) {
  auto read = [word, range, &value](TextScanner& in) {
    if (!in.accept(word)) return Reading::Absent;
    int64_t found = 0;
    bool fits = in.integer(found) && range.holds(found) && static_cast<Int>(found) == found;
    value = static_cast<Int>(found);
    return done(fits || in.fail(takes(word, range.text())));
  };
  return {
      word, word + " N", range.text(), help, [word, &value] { return word + " " + std::to_string(value); },
      read};
}

// "14x2"; both at least 1 and at most `max`.
bool read_sizes(TextScanner& in, long max, long& first, long& second) {
  std::string word(in.word_with(""));
  size_t cross = word.find('x');
  char* end = nullptr;
  first = std::strtol(word.c_str(), &end, 10);
  bool has_both = cross != std::string::npos && end == word.c_str() + cross;
  if (has_both) second = std::strtol(word.c_str() + cross + 1, &end, 10);
  return (has_both && !*end && first >= 1 && second >= 1 && first <= max && second <= max) ||
         in.fail("wanted two sizes from 1 to " + std::to_string(max) + " such as 4x2, found '" + word + "'");
}

template <class Int>
Field sizes_of(const std::string& word, const std::string& name, Int& first, Int& second, int max,
               const std::string& help) {
  std::string lead = word.empty() ? "" : word + " ";
  auto read = [word, max, &first, &second](TextScanner& in) {
    if (!word.empty() && !in.accept(word)) return Reading::Absent;
    long a = 0, b = 0;
    if (!read_sizes(in, max, a, b)) return Reading::Failed;
    first = static_cast<Int>(a), second = static_cast<Int>(b);
    return Reading::Done;
  };
  auto text = [lead, &first, &second] { return lead + std::to_string(first) + "x" + std::to_string(second); };
  return {word.empty() ? name : word, lead + name, "1 to " + std::to_string(max) + " each", help, text, read};
}

bool read_dtype(TextScanner& in, DType& dtype) {
  std::string word(in.word_with(""));
  auto found = parse_dtype(word);
  if (found) dtype = *found;
  return found || in.fail("'" + word + "' is no element type");
}

constexpr MacKind kMacKinds[] = {MacKind::Fma,   MacKind::Dot2,       MacKind::Dot4,
                                 MacKind::Dot16, MacKind::Dot4Narrow, MacKind::TileMatrix};

std::string mac_names() {
  std::vector<std::string> names;
  for (MacKind kind : kMacKinds) names.emplace_back(name_of(kind));
  return listed(names);
}

Reading read_mac(TextScanner& in, MacInstruction& mac) {
  if (!in.accept("mac")) return Reading::Absent;
  for (MacKind kind : kMacKinds)
    if (in.accept(name_of(kind))) {
      mac.kind = kind;
      return done(read_dtype(in, mac.lhs) && read_dtype(in, mac.rhs) && read_dtype(in, mac.accumulator));
    }
  return done(in.fail("a multiply-add is one of " + mac_names()));
}

// A name of several words.
Reading read_name(TextScanner& in, const std::string& name) {
  size_t blank = std::min(name.find(' '), name.size());
  if (name.empty() || !in.accept(name.substr(0, blank))) return Reading::Absent;
  return done(blank == name.size() || in.expect(name.substr(blank + 1)));
}

std::vector<std::string> spoken(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  std::copy_if(names.begin(), names.end(), std::back_inserter(words),
               [](const std::string& name) { return !name.empty(); });
  return words;
}

Reading read_choice(TextScanner& in, const std::string& word, const WordChoice& choice) {
  if (choice.leads && !in.accept(word)) return Reading::Absent;
  for (size_t i = 0; i < choice.names.size(); ++i) {
    Reading reading = read_name(in, choice.names[i]);
    if (reading == Reading::Done) choice.set(static_cast<int>(i));
    if (reading != Reading::Absent) return reading;
  }
  return choice.leads ? done(in.fail(takes(word, listed(spoken(choice.names))))) : Reading::Absent;
}

// Names that texts of earlier versions have for a field, an algorithm or a value.
struct Renamed {
  const char *old, *now;
};
constexpr Renamed kRenamed[] = {
    {"product", "mac"},
    {"sums", "accumulators"},
    {"sum_tiles", "accumulator_tiles"},
    {"parts", "split_k"},
    {"shares", "split_m"},
    {"compact", "optimize_size"},
    {"lhs_columns", "swap_operands"},
    {"packs_lines", "packs_padded_rows"},
    {"looped_epilogue", "rolled_epilogue"},
    {"bias_first", "bias_in_accumulators"},
    {"apart", "separate_transform"},
    {"straight", "unrolled"},
    {"lines", "rows"},
    {"line_pooling", "row_pooling"},
    {"steps", "unroll"},
    {"fetch_ahead", "prefetch_distance"},
    {"turns", "alternate_direction"},
    {"looped_cells", "rolled_cells"},
    {"together", "cooperative"},
    {"copies", "unroll"},
    {"boxes", "partitions"},
    {"window", "max_unrolled_window"},
    {"keeps_terms", "stores_exponentials"},
    {"short_terms", "fast_exp"},
    {"members", "inline"},
};

} // namespace

bool fail_at_word(TextScanner& in, const std::string& message) {
  for (const Renamed& word : kRenamed)
    if (in.next_is(word.old)) return in.fail(std::string("'") + word.old + "' is called '" + word.now + "'");
  return in.fail(message);
}

bool ValueRange::holds(int64_t value) const {
  return only.empty() ? value >= min && value <= max
                      : std::find(only.begin(), only.end(), value) != only.end();
}

std::string ValueRange::text() const {
  std::vector<std::string> values;
  for (int64_t value : only) values.push_back(std::to_string(value));
  if (!values.empty()) return listed(values);
  return std::to_string(min) + (max >= INT32_MAX ? " or more" : " to " + std::to_string(max));
}

Field Field::with(Presence other) const {
  Field field = *this;
  field.presence = other;
  return field;
}

Field Field::where(std::function<bool()> condition) const {
  Field field = *this;
  field.applies = std::move(condition);
  return field;
}

Field number(const std::string& word, int& value, ValueRange range, const std::string& help) {
  return number_of(word, value, range, help);
}
Field number(const std::string& word, int64_t& value, ValueRange range, const std::string& help) {
  return number_of(word, value, range, help);
}

Field flag(const std::string& word, bool& value, const std::string& help) {
  auto read = [word, &value](TextScanner& in) {
    if (!in.accept(word)) return Reading::Absent;
    value = true;
    return Reading::Done;
  };
  return {word, word, "", help, [word, &value] { return value ? word : ""; }, read};
}

Field sizes(const std::string& word, const std::string& name, int& first, int& second, int max,
            const std::string& help) {
  return sizes_of(word, name, first, second, max, help);
}
Field sizes(const std::string& word, const std::string& name, int64_t& first, int64_t& second, int max,
            const std::string& help) {
  return sizes_of(word, name, first, second, max, help);
}

Field mac_field(MacInstruction& mac) {
  return {"mac",
          "mac KIND LHS RHS ACCUMULATOR",
          mac_names() + " of three types",
          "the type of factors and sums, and how many steps of the reduction are one product",
          [&mac] { return "mac " + to_string(mac); },
          [&mac](TextScanner& in) { return read_mac(in, mac); }};
}

Field lanes_field(int64_t& lanes) {
  return number("lanes", lanes, at_least(1), "lanes of a vector");
}
Field accumulators_field(int64_t& accumulators, const std::string& help) {
  return number("accumulators", accumulators, between(1, kMaxTile), help);
}
Field rolled_epilogue_field(bool& rolled) {
  return flag("rolled_epilogue", rolled,
              "the epilogue is a loop over accumulators in memory: fewer bytes of code");
}
Field bias_in_accumulators_field(bool& bias) {
  return flag("bias_in_accumulators", bias, "accumulators start from the bias of their channel");
}
void append(Fields& fields, const Fields& others) {
  fields.insert(fields.end(), others.begin(), others.end());
}

Field number_list(const std::string& word, std::vector<int>& values, ValueRange range,
                  const std::string& help) {
  auto text = [word, &values] {
    std::string text;
    for (int value : values) text += (text.empty() ? word + " " : ",") + std::to_string(value);
    return text;
  };
  auto read = [word, range, &values](TextScanner& in) {
    if (!in.accept(word)) return Reading::Absent;
    values.clear();
    do {
      int64_t value = 0;
      if (!in.integer(value) || !range.holds(value)) return done(in.fail(takes(word, range.text())));
      values.push_back(static_cast<int>(value));
    } while (in.accept(","));
    return Reading::Done;
  };
  return {word, word + " N,N,...", range.text() + " each", help, text, read};
}

Field choice(const std::string& word, WordChoice choice, const std::string& help) {
  std::string lead = choice.leads ? word + " " : "", grammar;
  for (const std::string& name : spoken(choice.names)) grammar += (grammar.empty() ? "" : "|") + name;
  auto text = [lead, choice] {
    int index = choice.get();
    std::string name = index < 0 ? "" : choice.names[static_cast<size_t>(index)];
    return name.empty() ? "" : lead + name;
  };
  return {word, lead + grammar, "",
          help, text,           [word, choice](TextScanner& in) { return read_choice(in, word, choice); }};
}

std::string print_fields(const Fields& fields, const Fields& defaults) {
  std::string printed;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.applies && !field.applies()) continue;
    std::string text = field.text();
    bool differs = text != defaults[i].text();
    if (field.presence == Presence::Opens && !differs) break;
    bool is_there = field.presence == Presence::Always || field.presence == Presence::Required;
    if ((differs || is_there) && !text.empty()) printed += " " + text;
  }
  return printed;
}

std::string print_given(const Fields& fields, const GivenFields& given) {
  std::string printed;
  for (const Field& field : fields)
    if (given.has(field)) printed += " " + field.text();
  return printed;
}

bool read_fields(const Fields& fields, TextScanner& in, GivenFields& given) {
  for (const Field& field : fields) {
    if (field.applies && !field.applies()) continue;
    Reading reading = field.read(in);
    if (reading == Reading::Failed) return false;
    if (reading == Reading::Absent && field.presence == Presence::Opens) return true;
    if (reading == Reading::Absent && field.presence == Presence::Required)
      return fail_at_word(in, "expected '" + field.word + "'");
    if (reading == Reading::Absent) continue;
    given.words.insert(field.word);
    given.is_complete |= field.is_derived && field.presence == Presence::Always;
  }
  return true;
}

bool are_equal(const Fields& a, const Fields& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Field& x, const Field& y) { return x.word == y.word && x.text() == y.text(); });
}

std::string grammar_of(const Fields& fields) {
  std::string text, closing;
  for (const Field& field : fields) {
    bool opens = field.presence == Presence::Opens, is_required = field.presence == Presence::Required;
    text += " " + std::string(is_required ? "" : "[") + field.grammar + (opens || is_required ? "" : "]");
    if (opens) closing += "]";
  }
  return text.empty() ? "" : text.substr(1) + closing;
}

} // namespace firn::plan
