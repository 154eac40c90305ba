// The parts of a generated class that depend on the source of its weights: the object has them as run() reads
// them, or has raw ones that are prepared first.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/artifact/text_template.h"

namespace firn::artifact {

// Fills the slots of the header's template that speak of weights; their texts use slots that are there
// already.
void add_weight_slots(Slots& slots, const ModelDescription& model);

} // namespace firn::artifact
