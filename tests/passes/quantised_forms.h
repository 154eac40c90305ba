// The forms in which quantised models reach Firn, listed in the table of quantised_forms.cpp.
#pragma once

#include "tests/passes/quantised_model.h"

#include <functional>
#include <string>
#include <vector>

namespace firn::test {

// The factors of a form's products: integers; floats by weights of a byte or less; or floats.
enum class Multiplies : uint8_t { Integers, NarrowWeights, Floats, Nothing };

struct Form {
  std::string name;
  std::function<std::string(QuantisedModel&)> build; // returns the name of the result
  std::vector<Activations> activations;
  std::vector<DType> weights;
  std::vector<Per> scales;
  std::vector<ZeroPoints> zero_points;
  Multiplies multiplies = Multiplies::Integers;
};

std::vector<Form> quantised_forms();

// One model for one CPU.
struct Case {
  const std::string& form;
  Activations activations;
  Weights weights;
  std::string cpu;

  bool is(const char* part) const { return form.find(part) != form.npos; }
  bool has_zero_points() const { return weights.zero_points != ZeroPoints::None; }
  bool is_wide() const { return bit_width(activations.dtype) == 16; }
  std::string text() const;
};

// The reason why the case is not as its row says; null: it is. Known faults of the compiler stand here too.
const char* exception_of(const Case& of);
// The bytes that a weight of 4 bits takes, relative to the file's; others: 1.
double growth_of(const Case& of);

} // namespace firn::test
