// Builds Winograd's matrices.
#include "compiler/plan/winograd/winograd_transform.h"

#include "compiler/support/diagnostic.h"

#include <cmath>

namespace firn::plan {
namespace {

// Coefficients, lowest first, of the product of (x - p) over all points but number `skip` (-1: none).
std::vector<double> product_of_roots(const std::vector<double>& points, int skip) {
  std::vector<double> mac{1};
  for (size_t i = 0; i < points.size(); ++i) {
    if (static_cast<int>(i) == skip) continue;
    mac.push_back(0);
    for (size_t k = mac.size(); k-- > 0;) mac[k] = (k > 0 ? mac[k - 1] : 0) - points[i] * mac[k];
  }
  return mac;
}

std::vector<double> finite_points(int count) {
  const double half = std::sqrt(0.5), two = std::sqrt(2.0);
  if (count == 3) return {0, 1, -1};
  FIRN_CHECK(count == 5, "no points chosen for this Winograd transform");
  return {0, half, -half, two, -two};
}

} // namespace

WinogradTransform make_winograd_transform(int outputs, int taps) {
  WinogradTransform transform;
  transform.outputs = outputs;
  transform.taps = taps;
  int n = transform.inputs();
  FIRN_CHECK(taps > 1 || outputs == 1, "a filter of one tap has nothing to transform");
  transform.input = {n, n, std::vector<double>(static_cast<size_t>(n * n))};
  transform.filter = {n, taps, std::vector<double>(static_cast<size_t>(n * taps))};
  transform.output = {outputs, n, std::vector<double>(static_cast<size_t>(outputs * n))};
  std::vector<double> points = n > 1 ? finite_points(n - 1) : std::vector<double>{};
  for (int j = 0; j < n; ++j) {
    bool infinity = j == n - 1;
    std::vector<double> row = product_of_roots(points, infinity ? -1 : j);
    for (size_t c = 0; c < row.size(); ++c) transform.input.values[static_cast<size_t>(j * n) + c] = row[c];
    double norm = 1;
    for (int l = 0; !infinity && l < n - 1; ++l)
      if (l != j) norm *= points[static_cast<size_t>(j)] - points[static_cast<size_t>(l)];
    for (int k = 0; k < taps; ++k)
      transform.filter.values[static_cast<size_t>(j * taps + k)] =
          infinity ? (k == taps - 1 ? 1 : 0) : std::pow(points[static_cast<size_t>(j)], k) / norm;
    for (int i = 0; i < outputs; ++i)
      transform.output.values[static_cast<size_t>(i * n + j)] =
          infinity ? (i == outputs - 1 ? 1 : 0) : std::pow(points[static_cast<size_t>(j)], i);
  }
  // Powers of square roots that should be whole or half numbers are rounded to exactly these.
  for (TransformMatrix* matrix : {&transform.input, &transform.output})
    for (double& value : matrix->values)
      if (std::abs(value * 2 - std::round(value * 2)) < 1e-12) value = std::round(value * 2) / 2;
  return transform;
}

WinogradTransform make_integer_winograd_transform(int outputs, int taps) {
  WinogradTransform transform = make_winograd_transform(outputs, taps);
  transform.filter_bits = taps > 1 ? 1 : 0;
  for (double& value : transform.filter.values) value *= 1 << transform.filter_bits;
  for (const TransformMatrix* matrix : {&transform.input, &transform.filter, &transform.output})
    for (double value : matrix->values)
      FIRN_CHECK(value == std::round(value), "a Winograd transform of fractions for integers");
  return transform;
}

} // namespace firn::plan
