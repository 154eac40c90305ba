// Composites that hold tables: resampling, products with integers in blocks, trees. They are derived through
// their bodies.
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/composites.h"
#include "compiler/graph/resample.h"
#include "compiler/graph/tree_ensemble.h"
#include "tests/gradients/gradient_case.h"

#include <cmath>

namespace firn::test {
namespace {

using Values = std::vector<Value>;

void check(const std::vector<TestParameter>& parameters, const CompositeBody& body) {
  std::string text = text_of(parameters, body);
  INFO(text);
  check_by_differences(text, "f", 1);
}

TEST_CASE("resampling adds the cotangents of what it has read") {
  check({{"x", {2, 3, 4}}}, [](GraphBuilder& b, const Values& p) {
    ResampledDim rows{
        1, Literal::of<int64_t>(DType::I32, {2, 5}, {0, 0, 1, 1, 2, 0, 1, 2, 2, 2}),
        Literal::of(DType::F64, {2, 5}, std::vector<double>{1, 0.7, 0.4, 0.9, 0.5, 0, 0.3, 0.6, 0.1, 0.5})};
    ResampledDim columns{2, Literal::of<int64_t>(DType::I32, {1, 2}, {3, 3}),
                         Literal::of(DType::F64, {1, 2}, std::vector<double>{1, -0.5})};
    return Values{make_resample(b, p[0], {rows, columns})};
  });
}

TEST_CASE("rows are derived through integers in blocks, and so are the scales of these") {
  check({{"x", {3, 4}, DType::F32}, {"scales", {2, 2}, DType::F32}}, [](GraphBuilder& b, const Values& p) {
    Value integers = b.constant(Literal::of<int64_t>(DType::I8, {2, 2, 2}, {1, -2, 3, 4, -5, 6, 7, -8}));
    return Values{make_blocked_dot(b, p[0], integers, p[1])};
  });
}

TEST_CASE("trees have steps: their derivative is 0") {
  std::string text = text_of({{"x", {3, 2}}}, [](GraphBuilder& b, const Values& p) {
    TreeEnsemble trees;
    trees.thresholds = Literal::of(DType::F64, {3}, std::vector<double>{0.1, NAN, NAN});
    trees.shift = 1;
    trees.links = Literal::of<int64_t>(DType::I32, {3}, {2 << 1, 1 << 1, 2 << 1});
    trees.values = Literal::of(DType::F64, {3}, std::vector<double>{0, 2, 3});
    trees.roots = Literal::of<int64_t>(DType::I32, {1}, {0});
    trees.targets = Literal::of<int64_t>(DType::I32, {1}, {0});
    trees.depth = 1;
    return Values{make_tree_ensemble(b, p[0], trees)};
  });
  INFO(text);
  auto module = differentiated(text.substr(0, text.rfind('}')) + "func @g = gradient @f wrt x }");
  for (double element : elements(*run(*module, "g", {"1, 2, 0, 0, -1, 5"})[0])) CHECK(element == 0);
}

} // namespace
} // namespace firn::test
