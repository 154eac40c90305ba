// Plans as text, by the lists of their fields.
#include "compiler/plan/kernel_plan.h"

#include <algorithm>
#include <optional>

namespace firn::plan {
namespace {

using Contraction = ContractionPlan::Algorithm;
using Fixed = FixedPlan::Algorithm;

struct Algorithm {
  std::string name;
  KernelPlan plan; // without decisions
  std::string help;
};

KernelPlan contraction(Contraction algorithm) {
  ContractionPlan plan;
  plan.algorithm = algorithm;
  return plan;
}
Algorithm fixed(Fixed algorithm, const char* help) {
  return {name_of(algorithm), FixedPlan{algorithm}, help};
}

// Algorithms of one struct stand together.
const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> all = {
      {"direct", contraction(Contraction::Direct), "a dot or convolution by register tiles"},
      {"polyphase", contraction(Contraction::Polyphase),
       "a transposed convolution, all phases in one kernel"},
      {"planar", contraction(Contraction::Planar), "a convolution to few channels, positions in lanes"},
      {"winograd", WinogradPlan(), "a convolution by Winograd's algorithm"},
      {"depthwise", DepthwisePlan(),
       "a depthwise convolution, or one of narrow groups, over blocked channels"},
      {"depthwise_chain", DepthwiseChainPlan(), "convolutions around a depthwise one, in strips of rows"},
      {"pooling", PoolingPlan(), "a maximum, minimum or sum over windows of blocked channels"},
      {"row_pooling", RowPoolingPlan(), "the same of rows whose elements lie side by side"},
      {"attention", AttentionPlan(), "dot(softmax(dot(q, k)), v) as one kernel"},
      {"recurrent", RecurrentPlan(), "a recurrent layer with the loop over time inside"},
      {"relayout", RelayoutPlan(), "a copy or transpose by strides, in squares through registers"},
      {"elements", ElementsPlan(), "loops over all elements of the results"},
      {"rows", RowsPlan(), "reductions along a row and what is behind them: softmax, norms"},
      {"resample", ResamplePlan(), "images resampled row by row"},
      {"scan", ScanPlan{ScanPlan::Algorithm::Scan}, "a running value along one dim"},
      {"arg_reduce", ScanPlan{ScanPlan::Algorithm::ArgReduce},
       "the place of the largest or smallest element"},
      {"top_k", TopKPlan(), "the k first elements of each row"},
      {"trees", TreesPlan(), "walks down decision trees"},
      fixed(Fixed::FusedSpatialSum, "sums over positions that the convolution before leaves"),
      fixed(Fixed::Concatenate, "operands one behind the other"),
      fixed(Fixed::UpdateSlice, "a part that is replaced"),
      fixed(Fixed::ScatterElements, "elements at places that are computed"),
      fixed(Fixed::ScatterND, "slices at places that are computed"),
      fixed(Fixed::SelectAndScatter, "elements at places that windows select"),
      fixed(Fixed::NonZero, "the places of elements that are not zero"),
      fixed(Fixed::Sort, "a stable merge sort of each row"),
      fixed(Fixed::Text, "bytes of strings, by the runtime"),
      fixed(Fixed::Custom, "a call of the program's function"),
      fixed(Fixed::Pack, "a constant of @prepare"),
      fixed(Fixed::PackElements, "elements below a byte, several in each"),
      fixed(Fixed::Inline, "no kernel: each member of a fusion has its own")};
  return all;
}

std::string names() {
  std::vector<std::string> all;
  for (const Algorithm& algorithm : algorithms()) all.push_back(algorithm.name);
  std::sort(all.begin(), all.end());
  std::string text;
  for (const std::string& name : all) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const Algorithm& algorithm_of(const KernelPlan& plan) {
  auto is_same = [&](const Algorithm& algorithm) {
    if (algorithm.plan.index() != plan.index()) return false;
    if (const auto* tiles = std::get_if<ContractionPlan>(&plan))
      return std::get<ContractionPlan>(algorithm.plan).algorithm == tiles->algorithm;
    if (const auto* scan = std::get_if<ScanPlan>(&plan))
      return std::get<ScanPlan>(algorithm.plan).algorithm == scan->algorithm;
    const auto* fixed = std::get_if<FixedPlan>(&plan);
    return !fixed || std::get<FixedPlan>(algorithm.plan).algorithm == fixed->algorithm;
  };
  return *std::find_if(algorithms().begin(), algorithms().end(), is_same);
}

// The list refers to the plan, which outlives it.
Fields fields_of(KernelPlan& plan) {
  return std::visit([](auto& of_family) { return of_family.fields(); }, plan);
}

bool read_plan(TextScanner& in, PlanRequest& request) {
  for (const Algorithm& algorithm : algorithms())
    if (in.accept(algorithm.name)) {
      request.plan = algorithm.plan;
      return read_fields(fields_of(request.plan), in, request.given);
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

const char* name_of(FixedPlan::Algorithm algorithm) {
  switch (algorithm) {
  case Fixed::FusedSpatialSum: return "fused_spatial_sum";
  case Fixed::Concatenate: return "concatenate";
  case Fixed::UpdateSlice: return "update_slice";
  case Fixed::ScatterElements: return "scatter_elements";
  case Fixed::ScatterND: return "scatter_nd";
  case Fixed::SelectAndScatter: return "select_and_scatter";
  case Fixed::NonZero: return "non_zero";
  case Fixed::Sort: return "sort";
  case Fixed::Text: return "text";
  case Fixed::Custom: return "custom";
  case Fixed::Pack: return "pack";
  case Fixed::PackElements: return "pack_elements";
  case Fixed::Inline: return "inline";
  }
  return "";
}

bool operator==(const KernelPlan& a, const KernelPlan& b) {
  KernelPlan x = a, y = b;
  return &algorithm_of(a) == &algorithm_of(b) && are_equal(fields_of(x), fields_of(y));
}

std::string to_string(const KernelPlan& plan) {
  KernelPlan own = plan, none = algorithm_of(plan).plan;
  return algorithm_of(plan).name + print_fields(fields_of(own), fields_of(none));
}

std::string to_string(const PlanRequest& request) {
  KernelPlan own = request.plan;
  return algorithm_of(own).name + print_given(fields_of(own), request.given);
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
  Fields wanted = fields_of(asked), found = fields_of(own);
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
  const std::vector<Algorithm>& all = algorithms();
  for (size_t i = 0; i < all.size();) {
    KernelPlan own = all[i].plan, none = own;
    std::string heads, alternatives;
    size_t first = i;
    Fields fields = fields_of(own), defaults = fields_of(none);
    for (; i < all.size() && all[i].plan.index() == all[first].plan.index(); ++i) {
      // The lists of a struct differ where an algorithm has no use for a field.
      KernelPlan other = all[i].plan;
      if (fields_of(other).size() != fields.size()) break;
      heads +=
          all[i].name + std::string(std::max<size_t>(2, 20 - all[i].name.size()), ' ') + all[i].help + "\n";
      alternatives += (alternatives.empty() ? "" : "|") + all[i].name;
    }
    text += (text.empty() ? "" : "\n") + heads;
    if (fields.empty()) continue;
    text += grammar_text(alternatives, fields);
    for (size_t f = 0; f < fields.size(); ++f) text += field_help(fields[f], defaults[f]);
  }
  return text;
}

} // namespace firn::plan
