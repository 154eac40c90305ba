// The measure of error.
#include "compiler/driver/tensor_error.h"

#include "compiler/artifact/manifest.h"
#include "compiler/graph/integer_text.h"

#include <algorithm>
#include <cmath>

namespace firn::driver {
namespace {

bool holds_numbers(DType dtype) {
  return is_float(dtype) || is_complex(dtype);
}

int64_t component_count(const Literal& literal) {
  return literal.num_elements() * (is_complex(literal.dtype()) ? 2 : 1);
}

// A component of a tensor: a float, or one part of a complex number.
double component(const Literal& literal, int64_t i) {
  if (literal.dtype() == DType::C64)
    return static_cast<double>(literal.data<float>()[static_cast<size_t>(i)]);
  if (literal.dtype() == DType::C128) return literal.data<double>()[static_cast<size_t>(i)];
  return literal.get_double(i);
}

bool equal_element(const Literal& got, const Literal& want, int64_t i) {
  if (want.dtype() == DType::String)
    return got.string_values()[static_cast<size_t>(i)] == want.string_values()[static_cast<size_t>(i)];
  return got.get_int(i) == want.get_int(i);
}

} // namespace

double tensor_error(const Literal& got, const Literal& want, std::string& why) {
  if (got.dtype() != want.dtype() || got.dims() != want.dims()) {
    why = "got " + got.type().to_string() + ", expected " + want.type().to_string();
    return INFINITY;
  }
  if (want.dtype() == DType::String) {
    for (size_t i = 0; i < want.string_values().size(); ++i)
      if (got.string_values()[i] != want.string_values()[i]) {
        why = "element " + std::to_string(i) + " is " + artifact::json_string(got.string_values()[i]) +
              ", expected " + artifact::json_string(want.string_values()[i]);
        return INFINITY;
      }
    return 0;
  }
  if (!holds_numbers(want.dtype())) {
    for (int64_t i = 0; i < want.num_elements(); ++i)
      if (got.get_int(i) != want.get_int(i)) {
        why = "element " + std::to_string(i) + " is " + integer_text(got, i) + ", expected " +
              integer_text(want, i);
        return INFINITY;
      }
    return 0;
  }
  double difference = 0, scale = 0;
  int64_t worst = 0;
  for (int64_t i = 0; i < component_count(want); ++i) {
    double g = component(got, i), w = component(want, i);
    if (std::isfinite(w)) scale = std::max(scale, std::fabs(w));
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    double d = std::fabs(g - w);
    if (std::isnan(d) || std::isinf(w)) d = INFINITY;
    if (d > difference) difference = d, worst = i;
  }
  double error = scale > 0 ? difference / scale : difference;
  if (error > 0)
    why = "element " + std::to_string(worst) + " is " + std::to_string(component(got, worst)) +
          ", expected " + std::to_string(component(want, worst));
  return error;
}

double stored_unit(const Literal& want) {
  if (want.dtype() != DType::F32 && want.dtype() != DType::F64) return 0;
  constexpr int64_t kFew = 3;
  for (double unit : {1e-2, 1e-3, 1e-4}) {
    int64_t fractions = 0;
    bool rounded = true;
    for (int64_t i = 0; i < want.num_elements() && rounded; ++i) {
      double value = want.get_double(i), steps = value / unit;
      if (!std::isfinite(value)) continue;
      // The value has to be as near to the decimal as the dtype holds it.
      rounded = std::fabs(steps - std::round(steps)) * unit <= std::fabs(value) * 1.2e-7;
      fractions += value != std::round(value);
    }
    if (rounded && fractions >= kFew) return unit;
  }
  return 0;
}

bool same_distribution(const Literal& got, const Literal& want) {
  bool numbers = is_float(want.dtype()) || want.dtype() == DType::Bool;
  if (!numbers || got.dtype() != want.dtype() || got.dims() != want.dims()) return false;
  auto n = static_cast<double>(want.num_elements());
  for (int power : {1, 2}) {
    double mean[2] = {0, 0}, variance = 0;
    const Literal* both[] = {&got, &want};
    for (int side = 0; side < 2; ++side) {
      double squares = 0;
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        double value = std::pow(both[side]->get_double(i), power);
        mean[side] += value / n;
        squares += value * value / n;
      }
      variance += squares - mean[side] * mean[side];
    }
    if (!(std::fabs(mean[0] - mean[1]) <= 6 * std::sqrt(std::max(variance, 0.0) / n) + 1e-6)) return false;
  }
  return true;
}

void OutputError::add(const Literal& got, const Literal& want) {
  type = want.type().to_string();
  has_numbers = holds_numbers(want.dtype());
  int64_t count = component_count(want);
  elements += count;
  if (got.dtype() != want.dtype() || got.dims() != want.dims()) {
    unlike += std::max<int64_t>(count, 1);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!has_numbers) {
      unlike += !equal_element(got, want, i);
      continue;
    }
    double g = component(got, i), w = component(want, i);
    if (!std::isfinite(g) || !std::isfinite(w)) {
      unlike += g != w && !(std::isnan(g) && std::isnan(w));
      continue;
    }
    double difference = g - w;
    largest = std::max(largest, std::fabs(difference));
    largest_expected = std::max(largest_expected, std::fabs(w));
    squares += difference * difference;
    expected_squares += w * w;
  }
}

double OutputError::relative() const {
  if (!has_numbers) return 0;
  if (unlike > 0) return INFINITY;
  return largest_expected > 0 ? largest / largest_expected : largest;
}

double OutputError::rms() const {
  return elements > 0 ? std::sqrt(squares / static_cast<double>(elements)) : 0;
}

double OutputError::expected_rms() const {
  return elements > 0 ? std::sqrt(expected_squares / static_cast<double>(elements)) : 0;
}

double default_tolerance(DType dtype) {
  if (dtype == DType::F16) return 1e-2;
  return dtype == DType::BF16 ? 5e-2 : 1e-5;
}

} // namespace firn::driver
