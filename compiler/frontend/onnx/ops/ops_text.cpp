// Importers of operators on strings.
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/text_operators.h"
#include "compiler/support/letter_case.h"
#include "compiler/support/regex.h"

#include <numeric>

namespace firn::onnx {

Value find_text(NodeContext& node, Value x, std::vector<std::string> keys) {
  auto count = static_cast<int64_t>(keys.size());
  return node.op(Opcode::TextFind, {x, node.constant(Literal::strings({count}, std::move(keys)))});
}

Value converted_text(NodeContext& node, Value x, DType to) {
  DType from = x.dtype(), number = from == DType::String ? to : from;
  if (from == to) return x;
  if (is_complex(number))
    return node.fail_unsupported("casts between strings and complex numbers are not supported"), Value{};
  DType wide = number == DType::F64 ? DType::F64
               : is_float(number)   ? DType::F32
               : from == DType::U64 ? DType::U64
                                    : DType::I64;
  if (to == DType::String) return node.op(Opcode::Convert, {node.convert(x, wide)}, {{"to", to}});
  Value read = node.op(Opcode::Convert, {x}, {{"to", wide}});
  return read ? node.convert(read, to) : read;
}

namespace {

void import_string_concat(NodeContext& node) {
  node.set_output(0, node.binary(Opcode::TextConcatenate, node.input(0), node.input(1)));
}

void import_regex_full_match(NodeContext& node) {
  if (!node.check(node.has_attribute("pattern"), "attribute pattern is missing")) return;
  std::string pattern = node.string_attribute("pattern", "");
  auto regex = parse_regex(pattern);
  if (!regex) {
    std::string message = "attribute pattern, " + regex.error().message;
    return regex.error().fault == Fault::Model ? node.fail(message) : node.fail_unsupported(message);
  }
  if (auto table = make_regex_table(*regex); !table)
    return node.fail_unsupported("attribute pattern: " + table.error().message);
  node.set_output(0, node.op(Opcode::TextMatch, {node.input(0)}, {{"pattern", pattern}}));
}

// Strings without those that equal a stopword; one empty string if none is left.
Value without_stopwords(NodeContext& node, Value x, std::vector<std::string> stopwords, bool exact) {
  Value compared = exact ? x : node.op(Opcode::TextCase, {x}, {{"to", Word{"lower"}}});
  if (!exact)
    for (std::string& word : stopwords) word = in_case(word, /*upper=*/false);
  int dim = x.rank() - 1;
  Value found = find_text(node, compared, std::move(stopwords));
  Value flat = node.reshape(found, {x.type().dims.back()});
  if (!flat) return {};
  Value kept = node.compare("lt", flat, node.scalar_int(DType::I64, 0));
  Value none = node.unary(Opcode::Not, node.reduce(Opcode::Or, kept, {0}, /*keep_dims=*/true));
  std::vector<Dim> one = x.type().dims;
  one.back() = Dim(1);
  Value empty = node.broadcast_to(node.constant(Literal::strings({}, {""})), one);
  return compress(node, node.concatenate({x, empty}, dim), dim, node.concatenate({kept, none}, 0));
}

void import_string_normalizer(NodeContext& node) {
  Value x = node.input(0);
  std::string action = node.choice_attribute("case_change_action", "NONE", {"NONE", "LOWER", "UPPER"});
  std::vector<std::string> stopwords = node.strings_attribute("stopwords");
  bool exact = node.flag_attribute("is_case_sensitive", false);
  bool is_row = x.rank() == 2 && x.type().dims[0] == Dim(1);
  if (node.failed() ||
      !node.check(x.rank() == 1 || is_row,
                  node.input_label(0) + " is " + x.type().to_string() + ", wants [C] or [1,C]"))
    return;
  if (!stopwords.empty()) x = without_stopwords(node, x, std::move(stopwords), exact);
  if (action != "NONE")
    x = node.op(Opcode::TextCase, {x}, {{"to", Word{action == "LOWER" ? "lower" : "upper"}}});
  node.set_output(0, x);
}

// The result has as many pieces as the string with most of them. The attribute or an option gives their upper
// bound.
void import_string_split(NodeContext& node) {
  Value x = node.input(0);
  std::string delimiter = node.string_attribute("delimiter", "");
  int64_t splits = node.int_attribute("maxsplit", 0), max = node.state().options.text_pieces;
  bool limited = node.has_attribute("maxsplit");
  if (node.failed() || !node.check(splits >= 0, "attribute maxsplit is " + std::to_string(splits))) return;
  Attributes attributes{{"delimiter", delimiter}};
  if (limited && splits < max) {
    max = splits + 1;
    attributes.set("splits", splits);
  }
  attributes.set("pieces", max);
  Instruction* made = node.make(Opcode::TextSplit, {x}, std::move(attributes));
  if (!made) return;
  Value pieces = made->result(0), counts = made->result(1);
  std::vector<int> all(static_cast<size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  Value longest = node.reduce(Opcode::Maximum, counts, all, /*keep_dims=*/false);
  node.set_output(0, first_rows(node, pieces, x.rank(), longest));
  node.set_output(1, counts);
}

const OperatorRow kRows[] = {
    {"", "RegexFullMatch", 20, kLatest, 1, 1, 1, 1, "string", import_regex_full_match,
     "whether whole strings match a regular expression, without classes of Unicode"},
    {"", "StringConcat", 20, kLatest, 2, 2, 1, 1, "string string", import_string_concat,
     "strings of two tensors joined"},
    {"", "StringNormalizer", 10, kLatest, 1, 1, 1, 1, "string", import_string_normalizer,
     "strings without stopwords, in upper or lower case by Unicode, whatever the locale"},
    {"", "StringSplit", 20, kLatest, 1, 1, 1, 2, "string", import_string_split,
     "strings cut at a delimiter or at blanks, into up to 64 pieces or --text-pieces of them"},
};

} // namespace

std::span<const OperatorRow> text_operators() {
  return kRows;
}

} // namespace firn::onnx
