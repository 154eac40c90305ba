// TfIdfVectorizer: counts n-grams, whose tokens stand at equal distances. Tokens are integers; a string's
// token is its position among the strings that the n-grams are made of.
//
// All positions of a row are compared with all n-grams of one length at once, token by token; sums over
// positions are the counts. Each n-gram then adds to its column of the result.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ml/feature_operators.h"
#include "compiler/frontend/onnx/ops/text_operators.h"

#include <algorithm>
#include <map>

namespace firn::onnx {

namespace {

struct Grams {
  int64_t length;
  std::vector<Ints> tokens;    // tokens of each n-gram
  Ints columns;                // columns of the result, by n-gram
  std::vector<double> weights; // by n-gram; empty: all are 1
};

struct Vectorizer {
  std::vector<Grams> grams; // by length, only lengths that count
  int64_t skips, width;     // width: columns of the result
  std::string mode;
  std::vector<std::string> strings; // the strings of Pool
};

// Reads the pool from its beginning, length after length.
struct Pool {
  Ints tokens, columns;
  std::vector<double> weights;      // may be empty
  std::vector<std::string> strings; // tokens are positions in this
  size_t next = 0;                  // the n-gram to read next
};

// The n-grams of one length, with the last of equal ones. Fails if the length does not divide its part of the
// pool.
std::optional<Grams> read_grams(NodeContext& node, Pool& pool, int64_t length, int64_t from, int64_t to) {
  auto count = static_cast<size_t>((to - from) / length);
  if (!node.check((to - from) % length == 0 && pool.next + count <= pool.columns.size(),
                  "the pool holds " + std::to_string(to - from) + " tokens of " + std::to_string(length) +
                      "-grams, which do not fit ngram_indexes"))
    return std::nullopt;
  std::map<Ints, size_t> found;
  for (size_t i = 0; i < count; ++i, from += length)
    found[Ints(pool.tokens.begin() + from, pool.tokens.begin() + from + length)] = pool.next++;
  Grams grams{length, {}, {}, {}};
  for (const auto& [tokens, index] : found) {
    grams.tokens.push_back(tokens);
    grams.columns.push_back(pool.columns[index]);
    if (!pool.weights.empty()) grams.weights.push_back(pool.weights[index]);
  }
  return grams;
}

std::optional<Pool> read_pool(NodeContext& node) {
  Pool pool{node.unbounded_ints_attribute("pool_int64s"),
            node.required_ints("ngram_indexes"),
            node.floats_attribute("weights"),
            {}};
  std::vector<std::string> strings = node.strings_attribute("pool_strings");
  bool is_text = node.input(0).dtype() == DType::String;
  if (!node.check(strings.empty() != is_text && (pool.tokens.empty() || !is_text),
                  node.input_label(0) + " is " + node.input(0).type().to_string() +
                      ", the n-grams are of the other kind"))
    return std::nullopt;
  std::map<std::string_view, int64_t> positions;
  for (const std::string& each : strings) {
    auto [position, is_new] = positions.try_emplace(each, static_cast<int64_t>(positions.size()));
    if (is_new) pool.strings.push_back(each);
    pool.tokens.push_back(position->second);
  }
  if (node.failed() || !node.check(!pool.columns.empty(), "attribute ngram_indexes is empty") ||
      !node.check(pool.weights.empty() || pool.weights.size() == pool.columns.size(),
                  "attribute weights has " + std::to_string(pool.weights.size()) + " elements, wants " +
                      std::to_string(pool.columns.size())))
    return std::nullopt;
  return pool;
}

// Each adds steps to the code.
constexpr int64_t kMaxLength = 64, kMaxSkips = 1024;

std::optional<Vectorizer> read_vectorizer(NodeContext& node) {
  Ints starts = node.required_ints("ngram_counts");
  int64_t shortest = node.required_int("min_gram_length"), longest = node.required_int("max_gram_length");
  Vectorizer made{{},
                  node.required_int("max_skip_count"),
                  0,
                  node.choice_attribute("mode", "", {"TF", "IDF", "TFIDF"}),
                  {}};
  auto pool = read_pool(node);
  if (!pool || node.failed() ||
      !node.check(shortest > 0 && longest >= shortest && longest <= kMaxLength && made.skips >= 0 &&
                      made.skips <= kMaxSkips && longest <= static_cast<int64_t>(starts.size()),
                  "min_gram_length, max_gram_length, max_skip_count or ngram_counts are out of range"))
    return std::nullopt;
  for (int64_t column : pool->columns) {
    if (!node.check(column >= 0, "attribute ngram_indexes holds " + std::to_string(column)))
      return std::nullopt;
    made.width = std::max(made.width, column + 1);
  }
  made.strings = pool->strings;
  auto tokens = static_cast<int64_t>(pool->tokens.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t from = starts[i], to = i + 1 < starts.size() ? starts[i + 1] : tokens;
    if (!node.check(from >= 0 && from <= to && to <= tokens,
                    "attribute ngram_counts holds " + std::to_string(from) + ", out of range"))
      return std::nullopt;
    int64_t length = static_cast<int64_t>(i) + 1;
    auto grams = read_grams(node, *pool, length, from, to);
    if (!grams) return std::nullopt;
    if (length >= shortest && length <= longest && !grams->tokens.empty())
      made.grams.push_back(std::move(*grams));
  }
  return made;
}

// How often each n-gram stands in each row of x [N,C] with `distance` between tokens: [N,grams], f32. Null
// without a failure: rows are too short.
Value count_grams(NodeContext& node, Value x, const Grams& grams, int64_t distance, int64_t columns) {
  int64_t span = (grams.length - 1) * distance, count = static_cast<int64_t>(grams.tokens.size());
  if (span >= columns) return {};
  Value found;
  for (int64_t i = 0; i < grams.length; ++i) {
    Ints tokens;
    for (const Ints& each : grams.tokens) tokens.push_back(each[static_cast<size_t>(i)]);
    Value wanted = node.constant(Literal::of(DType::I64, {1, count, 1}, tokens));
    Value at = node.unsqueeze(node.slice_dim(x, 1, i * distance, columns - span + i * distance), 1);
    Value equal = node.compare("eq", at, wanted);
    found = found ? both(node, found, equal) : equal;
  }
  return node.reduce(Opcode::Add, node.convert(found, DType::F32), {2}, false);
}

} // namespace

void import_tfidf_vectorizer(NodeContext& node) {
  auto read = read_vectorizer(node);
  if (!read) return;
  Value x = node.input(0);
  bool one_row = x.rank() == 1;
  if (!node.check(x.rank() == 1 || x.rank() == 2,
                  node.input_label(0) + " is " + x.type().to_string() + ", wants rank 1 or 2"))
    return;
  auto columns = node.static_dim(0, x.rank() - 1);
  if (!columns) return;
  if (x.dtype() == DType::String) x = find_text(node, x, read->strings);
  x = node.convert(one_row ? node.unsqueeze(x, 0) : x, DType::I64);
  if (!x) return;
  Dim rows = x.type().dims[0];
  Value y = node.splat(DType::F32, {rows, Dim(read->width)}, 0);
  for (const Grams& grams : read->grams) {
    Value total;
    // A single token has no distances to the others.
    for (int64_t skip = 0; skip <= (grams.length == 1 ? 0 : read->skips); ++skip) {
      Value counts = count_grams(node, x, grams, skip + 1, *columns);
      if (node.failed()) return;
      if (!counts) break;
      total = total ? add(node, total, counts) : counts;
    }
    if (!total) continue;
    if (read->mode == "IDF") total = smaller(node, total, node.scalar(DType::F32, 1));
    if (read->mode != "TF" && !grams.weights.empty())
      total = multiply(node, total,
                       node.constant(Literal::of(DType::F32, {static_cast<int64_t>(grams.weights.size())},
                                                 grams.weights)));
    if (!total) return;
    Value to = node.broadcast_to(node.constant_ints(grams.columns), total.type().dims);
    y = node.op(Opcode::ScatterElements, {y, to, total}, {{"axis", int64_t{1}}, {"reduction", Word{"add"}}});
  }
  node.set_output(0, one_row && y ? node.squeeze(y, 0) : y);
}

} // namespace firn::onnx
