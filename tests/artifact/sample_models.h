// Hand-made model descriptions that the tests of this folder share.
#pragma once

#include "compiler/artifact/model_description.h"

namespace firn::artifact {

// The example of the documentation: one image in, ten probabilities out.
ModelDescription digits_sample();
// Every element type, scalars, external and counted tensors, states, hostile names; no namespace.
ModelDescription everything_sample();
// No input, weights or arena; a nested namespace.
ModelDescription bare_sample();
// The digits sample with weights that have to be prepared.
ModelDescription prepared_sample();
// The digits sample with raw weights that run() reads in place, unprepared.
ModelDescription in_place_sample();
// The bare sample compiled for a CPU feature that no CPU has.
ModelDescription demanding_sample();
// Dims that vary: ranges, one of multiples, one of a few values; tensors of every kind with expressions of
// them.
ModelDescription varying_sample();

// A training step: parameters, an entry that updates them and one that does not, dims in another order,
// hostile names. With `prepared` its weights have to be prepared.
ModelDescription trained_sample(bool prepared);

} // namespace firn::artifact
