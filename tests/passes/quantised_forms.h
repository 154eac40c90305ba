// The forms in which quantised models reach Firn: what the table of quantised_forms.cpp holds.
#pragma once

#include "tests/passes/quantised_model.h"

#include <functional>
#include <string>
#include <vector>

namespace firn::test {

// What a form's products multiply: integers; floats by weights of a byte or less; or floats.
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

// Why the case is not what its row says; null: it is. What is computed as it should not be stands here too.
const char* exception_of(const Case& of);
// The bytes that a weight of 4 bits takes, relative to the file's; others: 1.
double growth_of(const Case& of);

} // namespace firn::test
