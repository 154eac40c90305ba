// Part of assign-layouts: images whose positions are one dim while they are transposed, as networks write
// them that go between convolutions and dots over channels.
#pragma once

#include "compiler/graph/module.h"

#include <functional>

namespace firn {

// Moves reshapes that divide or join dims past transposes, so that the transposes stand next to the images
// and can read or make their layout:
//
//   transpose %t {permutation = [0, 2, 1]} : [n, c, p]; reshape : [n, c, h, w]     (which `wanted` uses)
//     ->  reshape %t : [n, h, w, c]; transpose {permutation = [0, 3, 1, 2]}
//
//   reshape %image : [n, c, p]; transpose {permutation = [0, 2, 1]}                (%image is `wanted`)
//     ->  transpose %image {permutation = [0, 2, 3, 1]}; reshape : [n, p, c]
//
// Tells whether anything changed.
bool move_reshapes_past_transposes(Region& region, const std::function<bool(const Instruction&)>& wanted);

} // namespace firn
