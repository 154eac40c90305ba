// See finite_differences.h.
#include "compiler/passes/gradient/finite_differences.h"

#include <cmath>

namespace firn::gradient {
namespace {

double dot(const Literal& x, const Literal& y) {
  double sum = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) sum += x.get_double(i) * y.get_double(i);
  return sum;
}

double dot_of_magnitudes(const Literal& x, const Literal& y) {
  double sum = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) sum += std::fabs(x.get_double(i) * y.get_double(i));
  return sum;
}

LiteralRef moved(const Literal& x, const Literal& direction, double step) {
  auto result = std::make_shared<Literal>(x.dtype(), x.dims());
  for (int64_t i = 0; i < x.num_elements(); ++i)
    result->set_double(i, x.get_double(i) + step * direction.get_double(i));
  return result;
}

// Zeros of the shape of x, but for a 1 at one element; -1: nowhere.
LiteralRef unit_vector(const Literal& x, int64_t element) {
  auto direction = std::make_shared<Literal>(x.dtype(), x.dims());
  if (element >= 0) direction->set_double(element, 1);
  return direction;
}

std::vector<RuntimeValue> values_of(const std::vector<LiteralRef>& literals) {
  return {literals.begin(), literals.end()};
}

class Comparison {
public:
  explicit Comparison(const ComparedGradient& compared) : c_(compared) {}

  Expected<DirectionalDerivative> run(const std::vector<LiteralRef>& directions, std::mt19937_64& random) {
    auto result = evaluate_function(c_.primal, values_of(c_.inputs));
    if (!result) return result.error();
    const Literal& value = *(*result)[static_cast<size_t>(c_.from)].tensor;
    LiteralRef seed = random_floats(value.dtype(), value.dims(), -1, 1, random);
    std::vector<LiteralRef> arguments = c_.inputs;
    arguments.push_back(seed);
    auto gradients = evaluate_function(c_.gradient, values_of(arguments));
    if (!gradients) return gradients.error();
    DirectionalDerivative derivative;
    for (size_t i = 0; i < directions.size(); ++i) {
      derivative.by_gradient += dot(*(*gradients)[i].tensor, *directions[i]);
      derivative.scale += dot_of_magnitudes(*(*gradients)[i].tensor, *directions[i]);
    }
    auto wide = difference(directions, *seed, c_.step), narrow = difference(directions, *seed, c_.step / 2);
    if (!wide) return wide.error();
    if (!narrow) return narrow.error();
    derivative.by_differences = (4 * *narrow - *wide) / 3;
    return derivative;
  }

private:
  Expected<double> difference(const std::vector<LiteralRef>& directions, const Literal& seed, double step) {
    double values[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<LiteralRef> inputs = c_.inputs;
      for (size_t i = 0; i < directions.size(); ++i) {
        LiteralRef& input = inputs[static_cast<size_t>(c_.wrt[i])];
        input = moved(*input, *directions[i], side == 0 ? step : -step);
      }
      auto result = evaluate_function(c_.primal, values_of(inputs));
      if (!result) return result.error();
      values[side] = dot(*(*result)[static_cast<size_t>(c_.from)].tensor, seed);
    }
    return (values[0] - values[1]) / (2 * step);
  }

  const ComparedGradient& c_;
};

} // namespace

double DirectionalDerivative::error() const {
  double error = std::fabs(by_gradient - by_differences) / scale;
  return std::isnan(error) ? INFINITY : error;
}

Expected<DirectionalDerivative> compare_along(const ComparedGradient& compared, std::mt19937_64& random) {
  std::vector<LiteralRef> directions;
  for (int number : compared.wrt) {
    const Literal& input = *compared.inputs[static_cast<size_t>(number)];
    directions.push_back(random_floats(input.dtype(), input.dims(), -1, 1, random));
  }
  return Comparison(compared).run(directions, random);
}

Expected<DirectionalDerivative> compare_element(const ComparedGradient& compared, size_t which,
                                                int64_t element, std::mt19937_64& random) {
  std::vector<LiteralRef> directions;
  for (size_t i = 0; i < compared.wrt.size(); ++i) {
    const Literal& input = *compared.inputs[static_cast<size_t>(compared.wrt[i])];
    bool along_all = i == which && element < 0;
    directions.push_back(along_all ? random_floats(input.dtype(), input.dims(), -1, 1, random)
                                   : unit_vector(input, i == which ? element : -1));
  }
  return Comparison(compared).run(directions, random);
}

LiteralRef random_floats(DType dtype, std::vector<int64_t> dims, double low, double high,
                         std::mt19937_64& random) {
  auto literal = std::make_shared<Literal>(dtype, std::move(dims));
  for (int64_t i = 0; i < literal->num_elements(); ++i)
    literal->set_double(i, low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53);
  return literal;
}

} // namespace firn::gradient
