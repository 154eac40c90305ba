// GroupQueryAttention where batch, steps and past vary. Queries of 0 see all of their keys alike, so that
// every result is the mean of the values up to its own step.
#include "tests/frontend/import_case.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace firn;
using namespace firn::test;

namespace {

using Doubles = std::vector<double>;

// One key head of one feature for two query heads; the length of the mask is how many keys there are.
// `sinks`: one for each head, or none.
Imported import_growing(const onnx::ImportOptions& options, const std::vector<float>& sinks = {},
                        bool smooth = false) {
  Model model;
  model.opsets = {{"", 21}, {"com.microsoft", 1}};
  model.graph.inputs = {value("q", F32, {"batch", "seq", 2}),      value("k", F32, {"batch", "seq", 1}),
                        value("v", F32, {"batch", "seq", 1}),      value("pk", F32, {"batch", 1, "past", 1}),
                        value("pv", F32, {"batch", 1, "past", 1}), value("lengths", I32, {"batch"}),
                        value("mask", Bool, {"batch", "total"})};
  model.graph.outputs = {value("y", F32, {}), value("pk_", F32, {}), value("pv_", F32, {})};
  model.graph.initializers = {ints("one", {1})};
  Names operands{"q", "k", "v", "pk", "pv", "lengths", "all"};
  if (!sinks.empty()) {
    model.graph.initializers.push_back(floats("sinks", {2}, sinks));
    operands.insert(operands.end(), {"", "", "", "", "sinks"});
  }
  model.graph.nodes = {node("Shape", {"mask"}, {"shape"}), node("Gather", {"shape", "one"}, {"wide"}),
                       node("Cast", {"wide"}, {"all"}, {attribute("to", int64_t{I32})}),
                       node("GroupQueryAttention", operands, {"y", "pk_", "pv_"},
                            {attribute("num_heads", 2), attribute("kv_num_heads", 1),
                             attribute("smooth_softmax", int64_t{smooth})},
                            "com.microsoft")};
  return import_model(model, options);
}

struct Run {
  int64_t steps, past;
  std::vector<int64_t> lengths; // length of each entry after the run
};

LiteralRef counted_from(const std::vector<int64_t>& dims, double first) {
  auto literal = std::make_shared<Literal>(DType::F32, dims);
  for (int64_t i = 0; i < literal->num_elements(); ++i)
    literal->set_double(i, first + static_cast<double>(i));
  return literal;
}

// `sunk`: the weight of each head's sink beside keys of weight 1.
void check(const Imported& imported, const Run& r, const Doubles& sunk = {0, 0}) {
  auto batch = static_cast<int64_t>(r.lengths.size()), total = r.past + r.steps;
  LiteralRef q = counted_from({batch, r.steps, 2}, 0),
             zero = std::make_shared<Literal>(DType::F32, q->dims()),
             v = counted_from({batch, r.steps, 1}, 100), pv = counted_from({batch, 1, r.past, 1}, 1);
  Doubles last;
  for (int64_t length : r.lengths) last.push_back(static_cast<double>(length - 1));
  auto results = run(imported, {zero, v, v, pv, pv, Literal::of(DType::I32, {batch}, last),
                                std::make_shared<Literal>(DType::Bool, std::vector<int64_t>{batch, total})});
  Doubles y, values;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t length = r.lengths[static_cast<size_t>(b)], past = total == r.steps ? 0 : length - r.steps;
    Doubles entry(static_cast<size_t>(total), 0.0);
    for (int64_t p = 0; p < r.past; ++p) entry[static_cast<size_t>(p)] = pv->get_double(b * r.past + p);
    for (int64_t s = 0; s < r.steps; ++s)
      entry[static_cast<size_t>(past + s)] = v->get_double(b * r.steps + s);
    for (int64_t s = 0; s < r.steps; ++s) {
      int64_t seen = std::min(past + s + 1, length);
      double sum = 0;
      for (int64_t i = 0; i < seen; ++i) sum += entry[static_cast<size_t>(i)];
      for (double sink : sunk) y.push_back(sum / (static_cast<double>(seen) + sink));
    }
    // Values behind an entry's last step belong to no step: they are zeros.
    for (int64_t i = past + r.steps; batch > 1 && i < total; ++i) entry[static_cast<size_t>(i)] = 0;
    values.insert(values.end(), entry.begin(), entry.end());
  }
  REQUIRE(results.size() == 3);
  CHECK(results[2]->dims() == std::vector<int64_t>{batch, 1, total, 1});
  CHECK(numbers(results[2]) == values);
  Doubles got = numbers(results[0]);
  REQUIRE(got.size() == y.size());
  for (size_t i = 0; i < y.size(); ++i) CHECK(got[i] == Approx(y[i]));
}

} // namespace

TEST_CASE("grouped queries follow their batch, their steps and what came before") {
  for (bool named : {false, true}) {
    onnx::ImportOptions options;
    options.ranges["batch"] = {1, 3, 1, {}};
    options.ranges["seq"] = {1, 6, 1, {}};
    options.ranges["past"] = {0, 8, 1, {}};
    if (named)
      options.dim_names["total"] = "past + seq";
    else
      options.ranges["total"] = {1, 14, 1, {}};
    Imported imported = import_growing(options);
    INFO(imported.messages);
    REQUIRE(imported.model);
    for (const Run& r : {Run{1, 0, {1}},
                         {6, 0, {6}},
                         {1, 8, {9}},
                         {3, 4, {7}},
                         {2, 0, {2, 2}},
                         {1, 5, {6, 6, 6}},
                         {1, 5, {6, 2, 4}},
                         {4, 0, {4, 1, 3}}}) {
      INFO(r.steps << " steps behind " << r.past << " in a batch of " << r.lengths.size());
      check(imported, r);
    }
  }
}

TEST_CASE("sinks of grouped queries take their part of the weights") {
  onnx::ImportOptions options;
  options.ranges = {{"batch", {1, 3, 1, {}}}, {"seq", {1, 6, 1, {}}}, {"past", {0, 8, 1, {}}}};
  options.dim_names["total"] = "past + seq";
  Imported given = import_growing(options, {std::log(3.0f), -std::numeric_limits<float>::infinity()}),
           smooth = import_growing(options, {}, true);
  INFO(given.messages << smooth.messages);
  REQUIRE(given.model);
  REQUIRE(smooth.model);
  for (const Run& r : {Run{1, 0, {1}}, {4, 0, {4, 1, 3}}, {3, 4, {7}}, {1, 5, {6, 2, 4}}}) {
    check(given, r, {3, 0});
    check(smooth, r, {1, 1});
  }
}

TEST_CASE("a cache that is as long as it will be takes new steps in place") {
  onnx::ImportOptions options;
  options.dims["batch"] = 1;
  options.dims["past"] = 8;
  options.ranges["seq"] = {1, 6, 1, {}};
  options.ranges["total"] = {1, 8, 1, {}};
  Imported imported = import_growing(options);
  INFO(imported.messages);
  REQUIRE(imported.model);
  LiteralRef v = f32({1, 2, 1}, {10, 20}), held = f32({1, 1, 8, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto results =
      run(imported, {f32({1, 2, 2}, {0, 0, 0, 0}), v, v, held, held, Literal::of(DType::I32, {1}, Doubles{4}),
                     std::make_shared<Literal>(DType::Bool, std::vector<int64_t>{1, 5})});
  CHECK(numbers(results[2]) == Doubles{1, 2, 3, 10, 20, 6, 7, 8});
  CHECK(numbers(results[0])[0] == Approx(4));
  CHECK(numbers(results[0])[2] == Approx(7.2));
}
