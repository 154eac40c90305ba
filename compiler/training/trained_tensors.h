// The tensors of a model that a training step changes.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace firn::training {

// Whether a name matches a pattern, in which * stands for any letters.
bool matches_pattern(std::string_view pattern, std::string_view name);

// Which of the tensors that the loss depends on are trained: all of them, unless something is named.
struct Selection {
  // Patterns of names, in which * stands for any letters; BIASES for what is only ever added; NORMS for
  // what norms scale and shift by; LAST=n for the last n tensors of two or more dims, with what is used
  // behind the first of these.
  std::vector<std::string> patterns;
  std::set<const Instruction*> frozen; // constants that no pattern chooses, as they have adapters
  // The model's own names of its tensors; nothing: every constant with a name counts.
  std::optional<std::set<std::string>> initializers;
};

struct TrainedTensor {
  std::string name;
  Instruction* constant = nullptr;
};

// The model's name of a constant; empty: it has none.
const std::string& name_of_constant(const Instruction& constant);

// The tensors in the order of their first use. An error says what a pattern could have named.
Expected<std::vector<TrainedTensor>> choose_trained_tensors(const Function& main, Value prediction,
                                                            const Selection& selection);

} // namespace firn::training
