// Part of assign-layouts: nearest-neighbour upsampling by whole factors, which importers write axis by axis.
#pragma once

#include "compiler/graph/module.h"

#include <functional>

namespace firn {

// Rewrites images whose rows and columns are repeated, one axis after the other, as one broadcast and a
// reshape that keeps batch and channels:
//
//   broadcast_in_dim %x {dims = [0, 1, 2, 4]} : [n, c, h, fh, w, fw]; reshape : [n, c, h * fh, w * fw]
//
// Only images for which `wanted` holds are rewritten: those that are read from memory in rows are better
// repeated axis by axis.
bool merge_upsampling(Region& region, const std::function<bool(Value image)>& wanted);

} // namespace firn
