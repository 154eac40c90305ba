// Extents of attention's operands that meet: batches, keys, pasts and masks.
#include "tests/frontend/import_node.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::test;

using Doubles = std::vector<double>;

TEST_CASE("keys, values, pasts and masks are of the batch of the queries") {
  auto heads = [](const char* name, const char* batch, const char* steps) {
    return value(name, F32, {batch, 1, steps, 1});
  };
  Imported imported =
      import_node(node("Attention", {"q", "k", "v", "mask", "pk", "pv"}, {"y"}),
                  {heads("q", "n", "s"), heads("k", "m", "t"), heads("v", "o", "u"),
                   value("mask", F32, {"a", "b"}), heads("pk", "c", "p"), heads("pv", "n", "p")},
                  in_ranges({"n", "m", "o", "s", "t", "u", "a", "b", "c", "p"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  auto of = [](const Doubles& values) { return f32({1, 1, static_cast<int64_t>(values.size()), 1}, values); };
  LiteralRef q = of({0}), k = of({1, 2}), v = of({3, 6}), mask = f32({1, 3}, {0, 0, 0}), past = of({9});
  CHECK(numbers(run(imported, {q, k, v, mask, past, past})[0])[0] == Approx(6));
  CHECK(numbers(run(imported, {q, k, v, f32({1, 1}, {0}), past, past})[0])[0] == Approx(6));
  CHECK(ends_early(imported, {q, k, of({1, 2, 3}), mask, past, past}));
  CHECK(ends_early(imported, {q, k, v, f32({1, 2}, {0, 0}), past, past}));
  CHECK(ends_early(imported, {q, k, v, mask, past, of({1, 2})}));
  CHECK(ends_early(imported, {q, k, v, mask, f32({2, 1, 1, 1}, {9, 9}), past}));
}

TEST_CASE("keys and caches of grouped queries are of their batch") {
  Model model;
  model.opsets = {{"", 24}, {"com.microsoft", 1}};
  model.graph.inputs = {value("q", F32, {1, 1, 1}),       value("k", F32, {"m", 1, 1}),
                        value("v", F32, {1, "s", 1}),     value("pk", F32, {"a", 1, 2, 1}),
                        value("pv", F32, {1, 1, "p", 1}), value("lengths", I32, {"b"})};
  model.graph.outputs = {value("y", F32, {})};
  model.graph.initializers = {tensor_header("total", I32, {}).raw(9, std::vector<int32_t>{2})};
  model.graph.nodes = {node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "lengths", "total"}, {"y"},
                            {attribute("num_heads", 1), attribute("kv_num_heads", 1)}, "com.microsoft")};
  Imported imported = import_model(model, in_ranges({"m", "s", "a", "p", "b"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef one = f32({1, 1, 1}, {0}), v = f32({1, 1, 1}, {6}), pair = f32({1, 1, 2, 1}, {2, 2});
  LiteralRef length = Literal::of(DType::I32, {1}, Doubles{1});
  CHECK(numbers(run(imported, {one, one, v, pair, pair, length})[0])[0] == Approx(4));
  CHECK(ends_early(imported, {one, f32({2, 1, 1}, {1, 2}), v, pair, pair, length}));
  CHECK(ends_early(imported, {one, one, v, pair, f32({1, 1, 1, 1}, {2}), length}));
  CHECK(ends_early(imported, {one, one, v, pair, pair, Literal::of(DType::I32, {2}, Doubles{1, 1})}));
}

TEST_CASE("a mask of attention has no more dims than scores") {
  Imported imported = import_node(node("Attention", {"q", "q", "q", "mask"}, {"y"}),
                                  {value("q", F32, {1, 1, 2, 1}), value("mask", F32, {1, 1, 1, 2, 2})}, {});
  CHECK(imported.fault == Fault::Model);
  CHECK(contains(imported.messages, "wants rank 1 to 4"));
}

TEST_CASE("masks of MultiHeadAttention are of its batch and keys") {
  auto import_masked = [](const std::vector<WireDim>& mask) {
    return import_node(node("MultiHeadAttention", {"q", "k", "v", "", "mask"}, {"y"},
                            {attribute("num_heads", 1), attribute_real("mask_filter_value", -1000)},
                            "com.microsoft"),
                       {value("q", F32, {"n", 1, 1}), value("k", F32, {"m", "t", 1}),
                        value("v", F32, {"n", "u", 1}), value("mask", I32, mask)},
                       in_ranges(mask.size() == 1 ? std::vector<const char*>{"n", "m", "t", "u", "a"}
                                                  : std::vector<const char*>{"n", "m", "t", "u", "a", "b"}));
  };
  Imported by_length = import_masked({"a"}), by_key = import_masked({"a", "b"});
  INFO(by_length.messages << by_key.messages);
  REQUIRE(by_length.model);
  REQUIRE(by_key.model);
  auto mask_of = [](std::vector<int64_t> dims, const Doubles& values) {
    return Literal::of(DType::I32, std::move(dims), values);
  };
  LiteralRef q = f32({1, 1, 1}, {0}), k = f32({1, 2, 1}, {1, 2}), v = f32({1, 2, 1}, {3, 6});
  CHECK(numbers(run(by_length, {q, k, v, mask_of({1}, {1})})[0])[0] == Approx(3));
  CHECK(numbers(run(by_key, {q, k, v, mask_of({1, 2}, {0, 1})})[0])[0] == Approx(6));
  CHECK(ends_early(by_length, {q, k, v, mask_of({2}, {1, 1})}));
  CHECK(ends_early(by_key, {q, k, v, mask_of({1, 1}, {1})}));
}

TEST_CASE("angles of rotary embeddings are of the batch and the steps that they turn") {
  Imported imported = import_node(
      node("RotaryEmbedding", {"x", "c", "s"}, {"y"}),
      {value("x", F32, {"n", 1, "t", 2}), value("c", F32, {"m", "u", 1}), value("s", F32, {"m", "u", 1})},
      in_ranges({"n", "m", "t", "u"}));
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef x = f32({1, 1, 2, 2}, {1, 2, 3, 4}), zeros = f32({1, 2, 1}, {0, 0}),
             ones = f32({1, 2, 1}, {1, 1});
  CHECK(numbers(run(imported, {x, zeros, ones})[0]) == Doubles{-2, 1, -4, 3});
  LiteralRef one = f32({1, 1, 1}, {1});
  CHECK(ends_early(imported, {x, one, one}));
}
