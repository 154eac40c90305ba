// Composites: rules of their own give what the bodies give, and every composite has a gradient.
#include "compiler/graph/composites.h"
#include "tests/gradients/composite_case.h"

namespace firn::test {
namespace {

using Values = std::vector<Value>;

void check(const std::vector<TestParameter>& parameters, const CompositeBody& body) {
  check_composite(text_of(parameters, body), 2);
}

TEST_CASE("softmax and norms") {
  for (int dim : {0, 1, 2}) {
    check({{"x", {2, 3, 5}}},
          [&](GraphBuilder& b, const Values& p) { return Values{make_softmax(b, p[0], dim)}; });
    check({{"x", {2, 3, 5}}},
          [&](GraphBuilder& b, const Values& p) { return Values{make_log_softmax(b, p[0], dim)}; });
  }
  for (bool statistics : {false, true})
    check({{"x", {2, 3, 5}}, {"scale", {3, 5}}, {"bias", {5}}}, [&](GraphBuilder& b, const Values& p) {
      return Values{make_layer_norm(b, p[0], p[1], p[2], 1, 0.01, DType::F64, statistics)->result()};
    });
  check({{"x", {2, 3, 5}}, {"scale", {5}}}, [](GraphBuilder& b, const Values& p) {
    return Values{make_rms_norm(b, p[0], p[1], 2, 0.01, DType::F64)};
  });
  check({{"x", {2, 3, 5}}, {"scale", {3}}, {"bias", {3}}}, [](GraphBuilder& b, const Values& p) {
    return Values{make_instance_norm(b, p[0], p[1], p[2], 0.01)};
  });
  check({{"x", {2, 4, 5}}, {"scale", {4}}, {"bias", {4}}}, [](GraphBuilder& b, const Values& p) {
    return Values{make_group_norm(b, p[0], p[1], p[2], 2, 0.01, DType::F64)};
  });
}

TEST_CASE("activations") {
  using Make = Value (*)(GraphBuilder&, Value);
  for (Make make : {make_silu, make_hard_swish, make_mish,
                    +[](GraphBuilder&b, Value x) { return make_gelu(b, x, false); },
                    +[](GraphBuilder&b, Value x) { return make_gelu(b, x, true); }})
    check({{"x", {7}}}, [&](GraphBuilder& b, const Values& p) { return Values{make(b, p[0])}; });
}

} // namespace
} // namespace firn::test
