// Carries the places at which the result is computed to its operands, member by member from the last.
#include "compiler/passes/fusion/fusion_places.h"

#include "compiler/passes/match.h"

#include <algorithm>

namespace firn {
namespace {

// The place of the element at which a step of a walk over `type` is.
MemberPlace whole(const Instruction& walked, const Type& type) {
  MemberPlace place{&walked, max_elements(type), {}};
  for (int d = 0; d < type.rank(); ++d) {
    bool moves = type.dims[static_cast<size_t>(d)] != Dim(1);
    place.axes.push_back({moves ? d : -1, moves ? 1 : 0, 0});
  }
  return place;
}

// The place at which `user`, computed at a place, reads an operand. An op that neither moves data nor is
// elementwise walks over its operands by steps of its own.
MemberPlace operand_place(const Instruction& user, const Type& operand, const MemberPlace& at) {
  MemberPlace place{at.walked, at.steps, std::vector<PlaceAxis>(static_cast<size_t>(operand.rank()))};
  const Attributes& attributes = user.attributes();
  switch (user.opcode()) {
  case Opcode::BroadcastInDim:
    for (size_t d = 0; d < place.axes.size(); ++d)
      if (operand.dims[d] != Dim(1)) place.axes[d] = at.axes[static_cast<size_t>(attributes.ints("dims")[d])];
    return place;
  case Opcode::Slice:
    for (size_t d = 0; d < place.axes.size(); ++d) {
      int64_t stride = attributes.ints("strides")[d], start = attributes.ints("starts")[d];
      place.axes[d] = {at.axes[d].dim, at.axes[d].stride * stride, at.axes[d].offset * stride + start};
    }
    return place;
  case Opcode::Transpose:
    for (size_t d = 0; d < place.axes.size(); ++d)
      place.axes[static_cast<size_t>(attributes.ints("permutation")[d])] = at.axes[d];
    return place;
  case Opcode::Reshape: { // in fusions it only adds or drops dims of extent 1
    size_t from = 0;
    for (size_t d = 0; d < place.axes.size(); ++d) {
      if (operand.dims[d] == Dim(1)) continue;
      while (user.type().dims[from] == Dim(1)) ++from;
      place.axes[d] = at.axes[from++];
    }
    return place;
  }
  default: break;
  }
  if (!is_elementwise(user.opcode())) return whole(user, operand);
  if (operand.rank() == user.type().rank()) place.axes = at.axes;
  return place;
}

} // namespace

std::optional<std::unordered_map<const Instruction*, std::vector<MemberPlace>>>
places_of_members(const std::vector<Instruction*>& members, size_t max) {
  std::unordered_map<const Instruction*, std::vector<MemberPlace>> places;
  for (const Instruction* member : members) places[member];
  places[members.back()].push_back(whole(*members.back(), members.back()->type()));
  size_t computed = 0;
  for (size_t i = members.size(); i-- > 0;) {
    const std::vector<MemberPlace>& own = places[members[i]];
    if (is_elementwise(members[i]->opcode())) computed += own.size();
    if (computed > max) return std::nullopt;
    for (Value operand : members[i]->operands()) {
      auto found = places.find(operand.def);
      if (found == places.end()) continue;
      for (const MemberPlace& at : own) {
        MemberPlace place = operand_place(*members[i], operand.type(), at);
        std::vector<MemberPlace>& known = found->second;
        if (std::find(known.begin(), known.end(), place) == known.end()) known.push_back(std::move(place));
      }
    }
  }
  return places;
}

} // namespace firn
