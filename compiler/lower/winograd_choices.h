// The convolutions of a module to which Winograd's algorithm applies, and what was chosen for each of them
// before anything is lowered.
#pragma once

#include "compiler/lower/lowering_context.h"
#include "compiler/plan/choose_winograd.h"

#include <map>

namespace firn::lower {

// By the convolution, or the fusion of one.
struct WinogradChoices {
  std::map<const Instruction*, plan::WinogradChoice> choices;
};

// Chooses for the convolutions of a region and of those inside it. Constants and views of `context` are
// placed, and it knows the bytes of the model's weights.
WinogradChoices choose_winograd(const LoweringContext& context, const Region& body);

} // namespace firn::lower
