// Dropouts of a training step. Whether an element is dropped is a pure function of the seed, the number of
// steps that were made, the dropout's place among those of the model, the element's row in the batch and its
// place in the row. So a step is one of its state and inputs, whatever the threads, the slices of the batch
// or the machine.
#pragma once

#include "compiler/graph/builder.h"

namespace firn::training {

struct Drops {
  int64_t seed = 0;
  Value step_count; // i64 scalar
  Value slice;      // i64 scalar, the number of the slice that is processed; null: the whole batch
  const Symbol* batch = nullptr; // occurs in the dim that counts rows; elsewhere and if null that is dim 0
};

// Whether the region, or one beneath it, has a dropout that drops anything.
bool has_dropouts(const Region& region);

// Puts the instructions that drop in the place of dropouts. With slices the symbol stands for one of them.
void write_dropouts(Region& region, const Drops& drops);

// Drawn from 32 bits that are as good as random, by seed, stream and index, from 0 to 1: for tensors that are
// drawn at compile time.
double drawn_number(int64_t seed, uint64_t stream, int64_t index);

} // namespace firn::training
