// The parts of a generated header that depend on CPUs: an object has code for one CPU, which is checked, or
// for several, among which the constructor chooses.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/artifact/text_template.h"

namespace firn::artifact {

// Fill the slots of the header's template that speak of CPUs, in C++ and in C; their texts use slots that are
// there already.
void add_cpu_slots(Slots& slots, const ModelDescription& model);
void add_c_cpu_slots(Slots& slots, const ModelDescription& model);

} // namespace firn::artifact
