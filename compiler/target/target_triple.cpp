// Names of platforms. GCC's triples say less than LLVM's: arm-none-eabi leaves the version of the
// architecture to the CPU, arm-linux-gnueabihf to the distribution.
#include "compiler/target/target_triple.h"

#include "compiler/support/nearest.h"
#include "compiler/target/assumed_version.h"
#include "compiler/target/cpu_table.h"

#include <llvm/TargetParser/ARMTargetParser.h>
#include <llvm/TargetParser/Host.h>

namespace firn {

namespace {

bool is_arm(const llvm::Triple& triple) {
  return triple.isARM() || triple.isThumb();
}

bool has_hard_float_abi(const llvm::Triple& triple) {
  return triple.getEnvironmentName().contains("eabihf");
}

bool is_generic(std::string_view cpu) {
  return cpu.empty() || cpu == "generic";
}

// The version of ARM that a triple without one means: Debian's armhf, Android and Windows are ARMv7-A,
// Debian's armel is ARMv5TE.
llvm::ARM::ArchKind platform_arm(const llvm::Triple& triple) {
  bool v7 = has_hard_float_abi(triple) || triple.isAndroid() || triple.isOSWindows();
  return v7 ? llvm::ARM::ArchKind::ARMV7A : llvm::ARM::ArchKind::ARMV5TE;
}

// Adds the version of the architecture: that of the CPU, of the triple's own name, or of the platform.
llvm::Triple complete_arm(llvm::Triple triple, std::string_view cpu) {
  using llvm::ARM::ArchKind;
  ArchKind kind = is_generic(cpu) ? ArchKind::INVALID : llvm::ARM::parseCPUArch(cpu);
  if (kind == ArchKind::INVALID) kind = llvm::ARM::parseArch(triple.getArchName());
  if (kind == ArchKind::INVALID) kind = platform_arm(triple);
  llvm::StringRef version = llvm::ARM::getSubArch(kind);
  bool thumb = triple.isThumb() || version.ends_with("m") || version.contains("m.");
  triple.setArchName((thumb ? "thumb" : "arm") + version.str());
  return triple;
}

// Adds the version that Apple's linker wants to know: where the triple has none, objects would say nothing of
// their platform, and iOS and its simulator would be one. The versions are those of 2020, when macOS 11 came
// to aarch64; visionOS began later.
llvm::Triple complete_darwin(llvm::Triple triple) {
  if (!triple.isOSDarwin() || !triple.getOSVersion().empty()) return triple;
  llvm::VersionTuple version = triple.isMacOSX()      ? llvm::VersionTuple(11, 0)
                               : triple.isXROS()      ? llvm::VersionTuple(1, 0)
                               : triple.isWatchOS()   ? llvm::VersionTuple(7, 0)
                               : triple.isDriverKit() ? llvm::VersionTuple(20, 0)
                                                      : llvm::VersionTuple(14, 0);
  std::string system = triple.getOS() == llvm::Triple::Darwin ? "macosx" : triple.getOSName().str();
  triple.setOSName(system + version.getAsString());
  return triple;
}

bool means_nothing(llvm::StringRef word) {
  return word.empty() || word == "unknown" || word == "none";
}

// The word of a triple that names neither a system nor an ABI where one of these is to stand; empty if there
// is none.
std::string unknown_word(const llvm::Triple& triple) {
  llvm::StringRef system = triple.getOSName(), abi = triple.getEnvironmentName();
  for (const char* format : {"elf", "coff", "macho"}) {
    system.consume_back(format);
    abi.consume_back(format);
  }
  if (!means_nothing(system) && triple.getOS() == llvm::Triple::UnknownOS) return system.str();
  if (!means_nothing(abi) && triple.getEnvironment() == llvm::Triple::UnknownEnvironment) return abi.str();
  bool is_alone = triple.getOSName().empty() && triple.getEnvironmentName().empty();
  bool is_vendor = means_nothing(triple.getVendorName()) || triple.getVendor() != llvm::Triple::UnknownVendor;
  return is_alone && !is_vendor ? triple.getVendorName().str() : "";
}

Diagnostic no_triple(std::string_view triple, const std::string& word) {
  std::string near = nearest_words(word, {"linux",      "gnu",     "gnueabihf",   "gnueabi", "musl",
                                          "musleabihf", "android", "androideabi", "windows", "msvc",
                                          "mingw32",    "macosx",  "darwin",      "ios",     "simulator",
                                          "none",       "elf",     "eabi",        "eabihf",  "freebsd"});
  return usage_error("'" + std::string(triple) + "' is no target triple: '" + word +
                     "' is neither a system nor an ABI" +
                     (near.empty() ? "" : ", did you mean " + near + "?") +
                     "; triples are such as x86_64-unknown-linux-gnu or thumbv7em-none-eabihf");
}

// The reason why Firn cannot compile for a triple that LLVM can parse; empty if it can.
std::string objection(const llvm::Triple& triple) {
  switch (triple.getArch()) {
  case llvm::Triple::x86: return "32-bit x86";
  case llvm::Triple::aarch64_32: return "32-bit pointers on aarch64";
  case llvm::Triple::aarch64_be:
  case llvm::Triple::armeb:
  case llvm::Triple::thumbeb: return "big-endian memory";
  case llvm::Triple::x86_64: return triple.isX32() ? "32-bit pointers on x86_64" : "";
  case llvm::Triple::aarch64:
    if (triple.isWindowsArm64EC()) return "the calls of arm64ec";
    return triple.getEnvironment() == llvm::Triple::GNUILP32 ? "32-bit pointers on aarch64" : "";
  case llvm::Triple::arm:
  case llvm::Triple::thumb: return triple.isOSBinFormatELF() ? "" : "32-bit ARM without ELF";
  case llvm::Triple::riscv32:
  case llvm::Triple::riscv64: return triple.isOSBinFormatELF() ? "" : "RISC-V without ELF";
  default: return "this architecture";
  }
}

} // namespace

Arch arch_of(const llvm::Triple& triple) {
  if (triple.getArch() == llvm::Triple::x86_64) return Arch::X86_64;
  if (triple.getArch() == llvm::Triple::aarch64) return Arch::AArch64;
  if (is_arm(triple)) return Arch::Arm;
  return Arch::Other; // RISC-V: choose_triple() refuses all else
}

// The triple that the names give by themselves.
static llvm::Triple named_triple(std::string_view triple, std::string_view cpu) {
  if (!triple.empty()) return llvm::Triple(llvm::Triple::normalize(std::string(triple)));
  llvm::Triple host(llvm::Triple::normalize(llvm::sys::getDefaultTargetTriple()));
  if (cpu.empty() || find_cpu_row(cpu, arch_of(host))) return host;
  for (const CpuRow& row : cpu_table())
    if (row.name == cpu) return llvm::Triple(llvm::Triple::normalize(std::string(row.triple)));
  return host;
}

Expected<llvm::Triple> choose_triple(std::string_view triple, std::string_view cpu) {
  llvm::Triple chosen = named_triple(triple, cpu);
  if (std::string reason = objection(chosen); !reason.empty()) {
    return usage_error(
        "target '" + (triple.empty() ? chosen.str() : std::string(triple)) +
        "' is not supported: Firn has no " + "code generator for " + reason +
        "; it compiles for x86_64 and aarch64 (ELF, COFF, Mach-O), arm, thumb, riscv32 and riscv64 (ELF), " +
        "such as x86_64-unknown-linux-gnu or thumbv7em-none-eabihf");
  }
  if (std::string word = unknown_word(chosen); !triple.empty() && !word.empty())
    return no_triple(triple, word);
  return is_arm(chosen) ? complete_arm(chosen, cpu) : complete_darwin(chosen);
}

std::string assumed_version(std::string_view triple, std::string_view cpu) {
  llvm::Triple named = named_triple(triple, cpu), completed = complete_darwin(named);
  return completed.str() == named.str() ? "" : completed.getOSName().str();
}

std::string default_cpu(const llvm::Triple& triple) {
  switch (triple.getArch()) {
  case llvm::Triple::x86_64: return "x86-64-v3";
  case llvm::Triple::aarch64: return triple.isOSDarwin() ? "apple-m1" : "generic";
  case llvm::Triple::riscv64: return "generic-rv64";
  case llvm::Triple::riscv32: return "generic-rv32";
  default: break;
  }
  llvm::StringRef name = triple.getArchName();
  if (name.ends_with("v6m")) return "cortex-m0";
  if (name.ends_with("v7m")) return "cortex-m3";
  if (name.ends_with("v7em")) return "cortex-m4";
  if (name.ends_with("v8m.base")) return "cortex-m23";
  if (name.ends_with("v8m.main")) return "cortex-m33";
  if (name.ends_with("v8.1m.main")) return "cortex-m55";
  return "generic";
}

std::string platform_features(const llvm::Triple& triple, std::string_view cpu) {
  // RISC-V's bare names are the integer base alone; its Linux profile is what people mean.
  if (triple.isRISCV() && cpu.starts_with("generic")) return "+m,+a,+f,+d,+c,";
  if (!is_arm(triple) || !is_generic(cpu)) return "";
  llvm::StringRef version = triple.getArchName();
  bool before_7 = version.contains("v4") || version.contains("v5") || version.contains("v6");
  if (before_7) return has_hard_float_abi(triple) ? "+vfp2," : "";
  // LLVM's ARMv7-A has NEON and 32 registers, which neither the architecture nor Debian's armhf promises.
  bool v7a = llvm::ARM::parseArch(version) == llvm::ARM::ArchKind::ARMV7A;
  return v7a ? "-d32," : "";
}

} // namespace firn
