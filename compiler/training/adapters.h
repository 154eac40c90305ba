// Adapters of low rank (LoRA) beside weights that stay as they are.
#pragma once

#include "compiler/training/training.h"

namespace firn::training {

// The constants that belong to adapters, by their names in the order of the model.
struct AdapterTensors {
  std::vector<std::string> added;                // "NAME.lora_a", "NAME.lora_b"
  std::set<const Instruction*> stay_as_they_are; // the weights
};

// Writes y + alpha / rank * x A B where @main multiplies by weights that the options name: for x W, for
// convolutions of 1x1 and for blocked products. Weights may be computed from constants, as dequantised ones
// are: their name is that of the largest one. A has uniform numbers from -1/sqrt(n) to 1/sqrt(n), n being the
// extent that is summed over, drawn by seed and place in the model; B zeros. Weights that are used twice have
// one adapter. An error says what a pattern could have named.
Expected<AdapterTensors> add_adapters(Function& main, const std::vector<Adapters>& adapters, int64_t seed);

} // namespace firn::training
