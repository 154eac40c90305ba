// The importer of Einsum: operands are multiplied pairwise from the left, each pair by one dot; letters that
// nothing later needs are summed as early as possible. Results of narrow floats are rounded at the end only.
#include "compiler/frontend/onnx/ops/einsum.h"

#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <algorithm>

namespace firn::onnx {

namespace {

// Labels of dims. Letters are their characters; the dims of an ellipsis are numbered from the right,
// kEllipsis for the last.
constexpr int kEllipsis = 256;
using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

// An intermediate operand: a value and the label of each of its dims.
struct Term {
  Value value;
  Labels labels;
};

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
int64_t position(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// The labels of an operand of that rank, or with `rank` < 0 of the result, whose ellipsis has `ellipsis`
// dims.
std::optional<Labels> parse_part(NodeContext& node, const std::string& text, int rank, int ellipsis) {
  int letters = static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return c != '.'; }));
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0) {
      int dims = rank < 0 ? ellipsis : rank - letters;
      if (!node.check(dims >= 0, "equation part '" + text + "' has more letters than an operand has dims"))
        return std::nullopt;
      for (int d = dims - 1; d >= 0; --d) labels.push_back(kEllipsis + d);
      i += 2;
      continue;
    }
    bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
    if (!node.check(letter,
                    std::string("equation has '") + text[i] + "', wants letters, '...', ',' and '->'"))
      return std::nullopt;
    labels.push_back(text[i]);
  }
  if (!node.check(rank < 0 || static_cast<int>(labels.size()) == rank,
                  "equation part '" + text + "' names " + std::to_string(labels.size()) +
                      " dims of an operand of rank " + std::to_string(rank)))
    return std::nullopt;
  return labels;
}

// Without '->' the result has the ellipsis and then the letters that occur once, in alphabetic order.
Labels implicit_result(const std::vector<Labels>& operands, int ellipsis) {
  Labels result, all;
  for (const Labels& labels : operands) all.insert(all.end(), labels.begin(), labels.end());
  for (int d = ellipsis - 1; d >= 0; --d) result.push_back(kEllipsis + d);
  for (int label = 0; label < kEllipsis; ++label)
    if (std::count(all.begin(), all.end(), label) == 1) result.push_back(label);
  return result;
}

// The attribute `equation` for the ranks of the inputs; nothing after a failure.
std::optional<Equation> parse_equation(NodeContext& node) {
  std::string text = node.string_attribute("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::vector<std::string> parts{""};
  for (char c : left) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (!node.check(static_cast<int>(parts.size()) == node.num_inputs(),
                  "equation '" + text + "' has " + std::to_string(parts.size()) + " operands, the node has " +
                      std::to_string(node.num_inputs())))
    return std::nullopt;
  Equation equation;
  int ellipsis = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!node.check_given(static_cast<int>(i))) return std::nullopt;
    auto labels = parse_part(node, parts[i], node.input(static_cast<int>(i)).rank(), 0);
    if (!labels) return std::nullopt;
    for (int label : *labels) ellipsis = std::max(ellipsis, label - kEllipsis + 1);
    equation.operands.push_back(std::move(*labels));
  }
  if (arrow == std::string::npos) {
    equation.result = implicit_result(equation.operands, ellipsis);
    return equation;
  }
  auto labels = parse_part(node, text.substr(arrow + 2), -1, ellipsis);
  if (!labels) return std::nullopt;
  for (size_t i = 0; i < labels->size(); ++i) {
    bool known = std::any_of(equation.operands.begin(), equation.operands.end(),
                             [&](const Labels& operand) { return contains(operand, (*labels)[i]); });
    bool repeated = std::count(labels->begin(), labels->end(), (*labels)[i]) > 1;
    if (!node.check(known && !repeated,
                    "equation '" + text + "' has a result letter that is repeated or in no operand"))
      return std::nullopt;
  }
  equation.result = std::move(*labels);
  return equation;
}

// Sums the term over the dims whose labels are not in `kept`.
Term sum_over(NodeContext& node, Term term, const Labels& kept) {
  std::vector<int> dims;
  Labels labels;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(kept, term.labels[i]))
      labels.push_back(term.labels[i]);
    else
      dims.push_back(static_cast<int>(i));
  }
  if (!dims.empty()) term.value = node.reduce(Opcode::Add, node.widened(term.value), dims, false);
  return {term.value, labels};
}

// Letters that occur twice in one operand select a diagonal: elements off it become 0, then one of the dims
// is summed.
Term diagonal(NodeContext& node, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    for (size_t j = i + 1; j < term.labels.size();) {
      if (term.labels[i] != term.labels[j]) {
        ++j;
        continue;
      }
      if (!term.value) return term;
      std::vector<Dim> dims = term.value.type().dims;
      dims[j] = dims[i];
      term.value = with_extents(node, term.value, dims);
      if (!term.value) return term;
      if (!node.check(term.value.type().dims[j] == dims[i],
                      "a repeated letter stands for different extents in " + term.value.type().to_string()))
        return {};
      Value same = node.compare("eq", node.iota(DType::I64, dims, static_cast<int>(i)),
                                node.iota(DType::I64, dims, static_cast<int>(j)));
      Value masked = node.select(same, term.value, node.scalar(term.value.dtype(), 0));
      term.value = node.reduce(Opcode::Add, masked, {static_cast<int>(j)}, false);
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  return term;
}

// Removes dims of extent 1 that broadcast against the other operand, so that the rest have equal extents.
bool drop_broadcast_dims(NodeContext& node, Term& term, const Term& other) {
  for (size_t i = 0; i < term.labels.size();) {
    int label = term.labels[i];
    const Dim extent = term.value.type().dims[i];
    bool shared = contains(other.labels, label);
    const Dim against =
        shared ? other.value.type().dims[static_cast<size_t>(position(other.labels, label))] : extent;
    if (shared && extent == Dim(1) && against != Dim(1)) {
      term.value = node.squeeze(term.value, static_cast<int>(i));
      if (!term.value) return false;
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (!node.check(extent == against || against == Dim(1), "a letter stands for extents " +
                                                                extent.extent.to_string() + " and " +
                                                                against.extent.to_string()))
      return false;
    ++i;
  }
  return true;
}

// Gives letters that both terms have one extent, if a run may find theirs equal.
bool meet_where_shared(NodeContext& node, Term& lhs, Term& rhs) {
  for (int label : lhs.labels) {
    if (!contains(rhs.labels, label)) continue;
    meet(node, lhs.value, static_cast<int>(position(lhs.labels, label)), rhs.value,
         static_cast<int>(position(rhs.labels, label)), /*stretches=*/true);
    if (node.failed()) return false;
  }
  return true;
}

// The product of two terms, summed over shared labels that are not in `kept`, with sums of `dtype`.
Term multiply(NodeContext& node, Term lhs, Term rhs, const Labels& kept, DType dtype) {
  if (!lhs.value || !rhs.value || !meet_where_shared(node, lhs, rhs) ||
      !drop_broadcast_dims(node, lhs, rhs) || !drop_broadcast_dims(node, rhs, lhs))
    return {};
  auto needed_by = [&](const Term& other) {
    Labels labels = kept;
    labels.insert(labels.end(), other.labels.begin(), other.labels.end());
    return labels;
  };
  lhs = sum_over(node, lhs, needed_by(rhs));
  rhs = sum_over(node, rhs, needed_by(lhs));
  if (!lhs.value || !rhs.value) return {};
  if (lhs.value.dtype() != rhs.value.dtype()) {
    lhs.value = node.widened(lhs.value);
    rhs.value = node.widened(rhs.value);
  }
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
  Labels labels;
  for (int label : lhs.labels) {
    if (!contains(rhs.labels, label)) continue;
    bool batch = contains(kept, label);
    (batch ? lhs_batch : lhs_contract).push_back(position(lhs.labels, label));
    (batch ? rhs_batch : rhs_contract).push_back(position(rhs.labels, label));
    if (batch) labels.push_back(label);
  }
  for (int label : lhs.labels)
    if (!contains(rhs.labels, label)) labels.push_back(label);
  for (int label : rhs.labels)
    if (!contains(lhs.labels, label)) labels.push_back(label);
  return {dot(node, lhs.value, rhs.value, lhs_batch, rhs_batch, lhs_contract, rhs_contract, dtype), labels};
}

} // namespace

void import_einsum(NodeContext& node) {
  auto equation = parse_equation(node);
  if (!equation) return;
  size_t count = equation->operands.size();
  DType dtype = node.input(0).dtype();
  Term product;
  for (size_t i = 0; i < count; ++i) {
    Term term = diagonal(node, {node.input(static_cast<int>(i)), equation->operands[i]});
    if (!term.value) return;
    Labels kept = equation->result;
    for (size_t j = i + 1; j < count; ++j)
      kept.insert(kept.end(), equation->operands[j].begin(), equation->operands[j].end());
    product = i == 0 ? sum_over(node, term, kept)
                     : multiply(node, product, term, kept,
                                i + 1 == count ? dtype : NodeContext::widened_dtype(dtype));
    if (!product.value) return;
  }
  Ints permutation;
  for (int label : equation->result) permutation.push_back(position(product.labels, label));
  node.set_output(0, node.convert(node.transpose(product.value, permutation), dtype));
}

} // namespace firn::onnx
