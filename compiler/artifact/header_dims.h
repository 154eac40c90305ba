// The parts of a generated header for dims that vary: they set dims and give the extents of tensors.
#pragma once

#include "compiler/artifact/model_description.h"
#include "compiler/artifact/text_template.h"

#include <string>

namespace firn::artifact {

// The extent of a tensor along an axis that a run does not count, of the instance in whose members it is
// used.
std::string extent_text(const ModelDescription& model, const IntExpr& extent);
// set_dims() and its like; nothing where no dim varies.
std::string dim_functions(const ModelDescription& model);
// Fill the slots of the header's template that speak of dims, in C++ and in C; their texts use slots that are
// there already. Where no dim varies they are empty.
void add_dim_slots(Slots& slots, const ModelDescription& model);
void add_c_dim_slots(Slots& slots, const ModelDescription& model);

} // namespace firn::artifact
