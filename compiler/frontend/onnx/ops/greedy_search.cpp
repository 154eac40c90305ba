// GreedySearch of com.microsoft: text, token by token, from a decoder that is a subgraph. It runs once over
// the prompt, then in a loop over the last token and caches of keys and values, which are kept in buffers for
// the longest text. A step sees the part of the buffers that is filled.
#include "compiler/frontend/onnx/ops/greedy_search.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"

#include <limits>

namespace firn::onnx {
namespace {

struct Search {
  const wire::GraphProto* decoder = nullptr;
  int64_t batch = 0, prompt = 0, longest = 0, shortest = 0, ngram = 0, eos = 0, pad = 0;
  int64_t heads = 0, size = 0, layers = 0;
};

Value i32(NodeContext& node, int64_t value) {
  return node.scalar_int(DType::I32, value);
}

std::optional<int64_t> extent_of(const wire::ValueInfoProto& input, int dim) {
  const auto& shape = input.type().tensor_type().shape();
  if (shape.dim_size() != 5 || !shape.dim(dim).has_dim_value() || shape.dim(dim).dim_value() <= 0)
    return std::nullopt;
  return shape.dim(dim).dim_value();
}

std::optional<int64_t> one_number(NodeContext& node, int input, int64_t fallback) {
  if (!node.has_input(input)) return fallback;
  auto numbers = node.required_constant_ints(input);
  if (!numbers || !node.check(numbers->size() == 1, node.input_label(input) + " wants one number"))
    return std::nullopt;
  return (*numbers)[0];
}

std::optional<Search> read_search(NodeContext& node) {
  Search search;
  search.decoder = node.graph_attribute("decoder");
  for (const char* attribute : {"init_decoder", "encoder"})
    if (node.has_attribute(attribute))
      return node.fail_unsupported(std::string("attribute ") + attribute + " is set"), std::nullopt;
  if (node.int_attribute("model_type", 0) != 0)
    return node.fail_unsupported("attribute model_type is not 0, a decoder alone"), std::nullopt;
  search.eos = node.required_int("eos_token_id");
  search.pad = node.required_int("pad_token_id");
  search.ngram = node.int_attribute("no_repeat_ngram_size", 0);
  if (!search.decoder || node.failed() || !node.check_rank(0, 2)) return std::nullopt;
  auto dims = node.static_dims(0);
  auto longest = one_number(node, 1, 0), shortest = one_number(node, 2, 0);
  if (!dims || !longest || !shortest) return std::nullopt;
  search.batch = (*dims)[0];
  search.prompt = (*dims)[1];
  search.longest = *longest;
  search.shortest = *shortest;
  constexpr int64_t max = int64_t{1} << 20;
  search.layers = search.decoder->input_size() - 3;
  if (!node.check(search.batch > 0 && search.prompt > 0 && search.prompt < search.longest &&
                      search.longest <= max,
                  "a prompt " + node.input(0).type().to_string() + " becomes no text of " +
                      std::to_string(search.longest)) ||
      !node.check(search.ngram >= 0 && search.ngram <= 64,
                  "attribute no_repeat_ngram_size is out of range") ||
      !node.check(search.layers >= 1 && search.decoder->output_size() == search.layers + 1,
                  "the decoder wants input_ids, position_ids, attention_mask and a cache for each layer, and "
                  "gives logits and the caches"))
    return std::nullopt;
  auto heads = extent_of(search.decoder->input(3), 2), size = extent_of(search.decoder->input(3), 4);
  if (!node.check(heads && size && *heads < max && *size < max,
                  "the decoder's input '" + search.decoder->input(3).name() +
                      "' wants dims [2,batch,heads,past,size], heads and size numbers"))
    return std::nullopt;
  search.heads = *heads;
  search.size = *size;
  return search;
}

class Decoding {
public:
  Decoding(NodeContext& node, const Search& search) : node_(node), search_(search) {}

  void run() {
    // Padding has no position of its own, whatever the mask.
    Value ids = node_.input(0),
          written = node_.convert(node_.compare("ne", ids, i32(node_, search_.pad)), DType::I32),
          mask = node_.has_input(6) ? node_.input(6) : written;
    Value sums = node_.op(Opcode::Cumulative, {written}, {{"dim", int64_t{1}}, {"reducer", Word{"add"}}});
    Value positions = multiply(node_, subtract(node_, sums, i32(node_, 1)), written);
    Value next = node_.slice_dim(sums, 1, search_.prompt - 1, search_.prompt);
    Values caches;
    for (int64_t i = 0; i < search_.layers; ++i)
      caches.push_back(node_.splat(
          DType::F32, {Dim(2), Dim(search_.batch), Dim(search_.heads), Dim(0), Dim(search_.size)}, 0));
    auto made = decode(ids, positions, mask, caches, Dim(search_.prompt));
    if (!made) return;
    Value text =
        node_.splat(DType::I32, {Dim(search_.batch), Dim(search_.longest)}, static_cast<double>(search_.pad));
    text = put(text, ids, 0);
    Value length = node_.scalar_int(DType::I64, search_.prompt);
    Value all = node_.splat(DType::I32, {Dim(search_.batch), Dim(search_.longest)}, 1);
    Value none = node_.splat(DType::Bool, {Dim(search_.batch)}, 0);
    State state = choose(made->front(), {length, {}, text, {}, next, none, put(all, mask, 0), {}}, true);
    for (size_t i = 1; i < made->size(); ++i) state.caches.push_back(in_buffer((*made)[i]));
    if (!node_.failed()) finish(state);
  }

private:
  struct State {
    Value length;   // length of the text, i64
    Value go_on;    // whether any text has not ended
    Value text;     // [batch, longest]
    Value token;    // [batch, 1], the last token
    Value position; // [batch, 1], the position of the last token
    Value ended;    // bool[batch]
    Value mask;     // [batch, longest]
    Values caches;
    Values all() const {
      Values values{length, go_on, text, token, position, ended, mask};
      values.insert(values.end(), caches.begin(), caches.end());
      return values;
    }
    static State of(const Values& v) {
      return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], {v.begin() + 7, v.end()}};
    }
  };

  // The logits of the last position [batch, vocabulary], and the caches.
  std::optional<Values> decode(Value ids, Value positions, Value mask, const Values& caches,
                               const Dim& length) {
    Values arguments{ids, positions, mask};
    arguments.insert(arguments.end(), caches.begin(), caches.end());
    if (node_.failed()) return std::nullopt;
    auto made = node_.import_subgraph(*search_.decoder, arguments);
    if (!made) return std::nullopt;
    Value& logits = made->front();
    std::vector<Dim> wanted{Dim(search_.batch), ids.type().dims[1]};
    bool fits = logits.type().is_tensor() && logits.dtype() == DType::F32 && logits.rank() == 3 &&
                logits.type().dims[0] == wanted[0] && logits.type().dims[1] == wanted[1] &&
                logits.type().dims[2].is_static() && !(logits.type().dims[2] == Dim(0));
    if (!node_.check(fits, "the decoder gives logits of " + logits.type().to_string() +
                               ", wants f32[batch,tokens,vocabulary]"))
      return std::nullopt;
    for (size_t i = 1; i < made->size(); ++i) {
      const Type& type = (*made)[i].type();
      bool is_cache = type.is_tensor() && type.dtype == DType::F32 && type.rank() == 5 &&
                      type.dims[0] == Dim(2) && type.dims[1] == Dim(search_.batch) &&
                      type.dims[2] == Dim(search_.heads) && type.dims[3].extent == length.extent &&
                      type.dims[4] == Dim(search_.size);
      if (!node_.check(is_cache, "the decoder gives a cache of " + type.to_string() + " for " +
                                     length.extent.to_string() + " tokens"))
        return std::nullopt;
    }
    int64_t tokens = ids.type().dims[1].value();
    logits = node_.squeeze(node_.slice_dim(logits, 1, tokens - 1, tokens), 1);
    return node_.failed() ? std::nullopt : made;
  }

  // `x` written into `whole` from column `at` on.
  Value put(Value whole, Value x, int64_t at) { return put(whole, x, node_.scalar_int(DType::I64, at)); }
  Value put(Value whole, Value x, Value at) {
    return node_.op(Opcode::DynamicUpdateSlice, {whole, x, node_.scalar_int(DType::I64, 0), at});
  }

  Value in_buffer(Value cache) {
    Values operands{
        node_.splat(DType::F32,
                    {Dim(2), Dim(search_.batch), Dim(search_.heads), Dim(search_.longest), Dim(search_.size)},
                    0),
        cache};
    for (int d = 0; d < 5; ++d) operands.push_back(node_.scalar_int(DType::I64, 0));
    return node_.op(Opcode::DynamicUpdateSlice, std::move(operands));
  }

  // f32[batch, vocabulary], 1 for the tokens of the text for which `chosen`, bool[batch, longest], holds.
  Value occurring(Value logits, Value text, Value chosen) {
    Value zeros = node_.splat(DType::F32, logits.type().dims, 0);
    return node_.op(Opcode::ScatterElements, {zeros, text, node_.convert(chosen, DType::F32)},
                    {{"axis", int64_t{1}}, {"reduction", Word{"maximum"}}});
  }

  Value lowest() { return node_.scalar(DType::F32, std::numeric_limits<float>::lowest()); }
  Value positive(Value x) { return node_.compare("gt", x, node_.scalar(DType::F32, 0)); }

  // The logits without tokens that would repeat an n-gram of the text.
  Value without_repeats(Value logits, Value text, Value length) {
    int64_t before = search_.ngram - 1, columns = search_.longest - before;
    if (columns <= 0) return logits;
    Value column = node_.iota(DType::I64, {Dim(1), Dim(columns)}, 1);
    Value reached = add(node_, column, node_.scalar_int(DType::I64, before));
    Value repeats = node_.compare("lt", reached, length);
    for (int64_t i = 0; i < before; ++i) {
      Value at = subtract(node_, length, node_.scalar_int(DType::I64, before - i));
      at = larger(node_, at, node_.scalar_int(DType::I64, 0));
      Value last = node_.op(Opcode::Gather, {text, node_.reshape(at, {Dim(1)})}, {{"axis", int64_t{1}}});
      repeats = both(node_, repeats, node_.compare("eq", node_.slice_dim(text, 1, i, i + columns), last));
    }
    repeats = both(node_, repeats, node_.compare("ge", length, node_.scalar_int(DType::I64, search_.ngram)));
    repeats = node_.broadcast_to(repeats, {Dim(search_.batch), Dim(columns)});
    Value out = occurring(logits, node_.slice_dim(text, 1, before, search_.longest), repeats);
    return node_.select(positive(out), lowest(), logits);
  }

  Value allowed(Value logits, int input) {
    return node_.select(node_.compare("eq", node_.input(input), i32(node_, 0)), lowest(), logits);
  }

  Value processed(Value logits, Value text, Value length, bool first) {
    if (node_.has_input(3) && node_.check_scalar(3)) {
      Value penalty = node_.reshape_to(node_.input(3), {});
      Value column = node_.iota(DType::I64, {Dim(1), Dim(search_.longest)}, 1);
      Value there =
          node_.broadcast_to(node_.compare("lt", column, length), {Dim(search_.batch), Dim(search_.longest)});
      Value below = node_.compare("lt", logits, node_.scalar(DType::F32, 0));
      Value less = node_.select(below, multiply(node_, logits, penalty), divide(node_, logits, penalty));
      logits = node_.select(positive(occurring(logits, text, there)), less, logits);
    }
    if (search_.ngram > 0) logits = without_repeats(logits, text, length);
    if (node_.has_input(4)) logits = allowed(logits, 4);
    if (first && node_.has_input(5)) logits = allowed(logits, 5);
    if (search_.shortest > 0 && logits) {
      Value token = node_.iota(DType::I64, logits.type().dims, 1);
      Value ends = both(node_, node_.compare("eq", token, node_.scalar_int(DType::I64, search_.eos)),
                        node_.compare("lt", length, node_.scalar_int(DType::I64, search_.shortest)));
      logits = node_.select(ends, lowest(), logits);
    }
    return logits;
  }

  // The state after the most likely token is appended. A text that has ended gets padding instead.
  State choose(Value logits, State state, bool first) {
    logits = processed(logits, state.text, state.length, first);
    Value best = node_.op(Opcode::ArgReduce, {logits}, {{"dim", int64_t{1}}, {"kind", Word{"max"}}});
    best = node_.convert(best, DType::I32);
    state.ended = node_.binary(Opcode::Or, state.ended, node_.compare("eq", best, i32(node_, search_.eos)));
    Value token = node_.select(state.ended, i32(node_, search_.pad), best);
    state.token = node_.unsqueeze(token, 1);
    state.text = put(state.text, state.token, state.length);
    state.length = add(node_, state.length, node_.scalar_int(DType::I64, 1));
    Value ongoing = node_.convert(node_.unary(Opcode::Not, state.ended), DType::I32);
    state.go_on = node_.compare("gt", node_.reduce(Opcode::Maximum, ongoing, {0}, false), i32(node_, 0));
    return state;
  }

  // Generates all further tokens in a loop.
  void finish(const State& first) {
    Value longest = node_.scalar_int(DType::I64, search_.longest), one = node_.scalar_int(DType::I64, 1);
    Instruction* loop = node_.while_loop(
        first.all(),
        [&](const Values& p) { return Values{both(node_, p[1], node_.compare("lt", p[0], longest))}; },
        [&](const Values& p) -> Values {
          State state = State::of(p);
          auto seen = counted_extent(node_, subtract(node_, state.length, one), search_.longest - 1);
          if (!seen) return {};
          Dim length = ImportState::with_counts({Dim(seen->extent + 1)})[0];
          Value mask = node_.slice_symbolic(state.mask, 1, 0, length.extent);
          Values caches;
          for (Value cache : state.caches) caches.push_back(node_.slice_symbolic(cache, 3, 0, seen->extent));
          auto made = decode(state.token, state.position, mask, caches, length);
          if (!made) return {};
          State next = choose(made->front(), state, false);
          next.position = add(node_, state.position, i32(node_, 1));
          next.caches.clear();
          for (size_t i = 1; i < made->size(); ++i) next.caches.push_back(in_buffer((*made)[i]));
          return node_.failed() ? Values{} : next.all();
        });
    if (loop) node_.set_output(0, loop->result(2));
  }

  NodeContext& node_;
  const Search& search_;
};

} // namespace

void import_greedy_search(NodeContext& node) {
  if (auto search = read_search(node)) Decoding(node, *search).run();
}

} // namespace firn::onnx
