// Plans as text, by the lists of their fields.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/fixed/plan.h"

#include <algorithm>
#include <optional>

namespace firn::plan {
namespace {

std::string names() {
  std::vector<std::string> all;
  for (const AlgorithmRow& row : algorithm_rows()) all.push_back(row.word);
  std::sort(all.begin(), all.end());
  std::string text;
  for (const std::string& name : all) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool read_plan(TextScanner& in, PlanRequest& request) {
  for (const AlgorithmRow& row : algorithm_rows())
    if (in.accept(row.word)) {
      request.plan = rules_of(row.algorithm).undecided();
      return read_fields(request.plan.fields(), in, request.given);
    }
  TextScanner ahead = in;
  std::string word(ahead.word());
  return fail_at_word(in, "'" + word + "' names no algorithm, wanted one of: " + names());
}

// Behind `indent` blanks, in rows of at most 110 characters.
std::string wrapped(const std::string& text, size_t indent, size_t column) {
  std::string broken;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    bool breaks = column + (end - at) > 110 && column > indent;
    if (breaks) {
      broken += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (at > 0) {
      broken += " ", ++column;
    }
    broken += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return broken;
}

// The value in brackets that a text without the field has.
std::string without(const Field& field, const Field& none) {
  if (field.presence == Field::Presence::Required) return "";
  if (field.is_derived && field.presence == Field::Presence::Always) return " [the CPU's]";
  std::string text = none.text();
  bool has_word = text.rfind(field.word + " ", 0) == 0;
  std::string value = has_word ? text.substr(field.word.size() + 1) : text;
  if (value == "0") value = "none";
  if (field.is_derived) return " [the tile's" + (value.empty() ? "" : "; with lanes: " + value) + "]";
  bool is_hole = field.presence == Field::Presence::Opens || field.word == "mac" || field.word == "lanes";
  if (is_hole) return " [the cost model's]";
  return value.empty() ? "" : " [" + value + "]";
}

std::string field_help(const Field& field, const Field& none) {
  constexpr size_t kIndent = 28;
  std::string name = "    " + field.grammar, blanks(kIndent, ' ');
  name += name.size() + 2 > kIndent ? "\n" + blanks : blanks.substr(name.size());
  std::string values = field.values.empty() ? "" : ": " + field.values;
  return name + wrapped(field.help + values + without(field, none), kIndent, kIndent) + "\n";
}

// Behind the names of the algorithms that share the list. A field is not broken.
std::string grammar_text(const std::string& alternatives, Fields fields) {
  constexpr char kUnbroken = '~';
  for (Field& field : fields) std::replace(field.grammar.begin(), field.grammar.end(), ' ', kUnbroken);
  std::string text = wrapped(alternatives + " " + grammar_of(fields), 6, 2);
  std::replace(text.begin(), text.end(), kUnbroken, ' ');
  return "  " + text + "\n";
}

} // namespace

KernelPlan::KernelPlan() : KernelPlan(FixedPlan{Algorithm::Inline}) {}

bool operator==(const KernelPlan& a, const KernelPlan& b) {
  KernelPlan x = a, y = b;
  return a.algorithm() == b.algorithm() && are_equal(x.fields(), y.fields());
}

std::string to_string(const KernelPlan& plan) {
  KernelPlan own = plan, none = rules_of(plan.algorithm()).undecided();
  return name_of(plan.algorithm()) + print_fields(own.fields(), none.fields());
}

std::string to_string(const PlanRequest& request) {
  KernelPlan own = request.plan;
  return name_of(own.algorithm()) + print_given(own.fields(), request.given);
}

Expected<PlanRequest> parse_plan_request(const std::string& name, std::string_view text) {
  TextScanner in(name, text);
  PlanRequest request;
  if (!read_plan(in, request)) return in.error();
  if (!in.at_end()) {
    fail_at_word(in, "expected the end of the plan");
    return in.error();
  }
  return request;
}

std::string check_given(const PlanRequest& request, const KernelPlan& completed) {
  KernelPlan asked = request.plan, own = completed;
  Fields wanted = asked.fields(), found = own.fields();
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string text = wanted[i].text();
    if (request.given.has(wanted[i]) && text != found[i].text())
      return "there is no '" + text + "' here" +
             (found[i].text().empty() ? "" : ", it would be '" + found[i].text() + "'");
  }
  return "";
}

std::string plan_grammar() {
  std::string text;
  std::vector<AlgorithmRow> rows(algorithm_rows().begin(), algorithm_rows().end());
  while (!rows.empty()) {
    KernelPlan own = rules_of(rows[0].algorithm).undecided(), none = own;
    Fields fields = own.fields(), defaults = none.fields();
    // Algorithms whose lists are alike stand together.
    auto rest = std::stable_partition(rows.begin(), rows.end(), [&](const AlgorithmRow& row) {
      KernelPlan other = rules_of(row.algorithm).undecided();
      return grammar_of(other.fields()) == grammar_of(fields);
    });
    std::string heads, alternatives;
    for (auto row = rows.begin(); row != rest; ++row) {
      std::string word = row->word;
      heads += word + std::string(std::max<size_t>(2, 20 - word.size()), ' ') + row->help + "\n";
      alternatives += (alternatives.empty() ? "" : "|") + word;
    }
    rows.erase(rows.begin(), rest);
    text += (text.empty() ? "" : "\n") + heads;
    if (fields.empty()) continue;
    text += grammar_text(alternatives, fields);
    for (size_t f = 0; f < fields.size(); ++f) text += field_help(fields[f], defaults[f]);
  }
  return text;
}

} // namespace firn::plan
