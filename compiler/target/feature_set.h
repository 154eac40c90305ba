// The features of a CPU with what the user adds and takes away, closed so that code generation has all it
// needs.
#pragma once

#include "compiler/target/machine.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

#include <memory>
#include <string>
#include <string_view>

namespace firn {

struct FeatureSet {
  std::string text; // for LLVM: "+a,-b"
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  bool has(std::string_view feature) const { return subtarget->checkFeatures("+" + std::string(feature)); }
};

// `machine` has triple, arch and CPU. `base` comes before the user's features, "+a,-b,"; `wanted` is what the
// user wrote. Where LLVM lets one feature imply another the set is closed already; what Firn asks for beyond
// that is added, or, when it was taken away by name, a usage error, as are unknown names, modes that are no
// features, and CPUs without the base of their architecture. Features that code could use and no constructor
// can check are switched off.
Expected<FeatureSet> choose_features(const llvm::Target& target, const Machine& machine,
                                     std::string_view base, std::string_view wanted);

} // namespace firn
