// The triple a target is compiled for: what the user gave, completed by what the CPU and the platform say.
#pragma once

#include "compiler/target/machine.h"

#include <llvm/TargetParser/Triple.h>

#include <string>
#include <string_view>

namespace firn {

Arch arch_of(const llvm::Triple& triple);

// The normalised triple; both names may be empty. A CPU of another architecture than the host's brings its
// own, and an ARM CPU its version of the architecture: arm-none-eabi with cortex-m4 is thumbv7em-none-eabi.
// Triples that Firn cannot serve are usage errors that name those it can.
Expected<llvm::Triple> choose_triple(std::string_view triple, std::string_view cpu);

// The CPU that the triple means when none is named, by LLVM's name.
std::string default_cpu(const llvm::Triple& triple);
// Features, as "+a,-b,", that make LLVM's generic CPUs what the platform promises: VFPv3 with 16 registers on
// armhf, the general-purpose extensions on RISC-V. Empty for CPUs that have a name.
std::string platform_features(const llvm::Triple& triple, std::string_view cpu);

} // namespace firn
