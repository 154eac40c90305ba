// The table of graph ops, expanded from ops.def.
#include "compiler/graph/opcode.h"

#include <array>
#include <utility>

namespace firn {
namespace {

constexpr std::array kOps = {
#define FIRN_OP(enumerator, mnemonic, arity, cls, types, traits)                                             \
  OpInfo{mnemonic, arity, OpClass::cls, traits},
#include "compiler/graph/ops.def"
};

constexpr std::pair<Opcode, RegionForm> kRegionForms[] = {
#define FIRN_REGIONS(enumerator, form) {Opcode::enumerator, RegionForm::form},
#include "compiler/graph/ops.def"
};

} // namespace

const OpInfo& op_info(Opcode opcode) {
  return kOps[static_cast<size_t>(opcode)];
}

std::optional<Opcode> parse_opcode(std::string_view mnemonic) {
  for (size_t i = 0; i < kOps.size(); ++i)
    if (kOps[i].mnemonic == mnemonic) return static_cast<Opcode>(i);
  return std::nullopt;
}

RegionForm region_form(Opcode opcode) {
  for (const auto& [owner, form] : kRegionForms)
    if (owner == opcode) return form;
  return RegionForm::None;
}

int num_regions(RegionForm form) {
  switch (form) {
  case RegionForm::None: return 0;
  case RegionForm::Body:
  case RegionForm::Reducer:
  case RegionForm::Comparator: return 1;
  case RegionForm::Branches:
  case RegionForm::Loop:
  case RegionForm::SelectAndScatter: return 2;
  }
  return 0;
}

} // namespace firn
