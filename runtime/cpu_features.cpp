// Whether this CPU and its operating system have the features that a model was compiled for: cpuid and xgetbv
// on x86-64, where Linux is asked for the registers of tiles as well, the auxiliary vector on ARM's Linux.
// Elsewhere the model is believed.
#include "firn/cpu_features.h"
#include "firn/abi.h"

#if defined(__x86_64__) || defined(_M_X64)
#define FIRN_HOST_ARCHITECTURE FIRN_ARCH_X86_64
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
#define FIRN_HOST_ARCHITECTURE FIRN_ARCH_AARCH64
#if defined(__linux__)
#include <sys/auxv.h>
#define FIRN_AUXILIARY_FEATURES FIRN_AARCH64_FEATURES
#endif
#elif defined(__arm__) || defined(_M_ARM)
#define FIRN_HOST_ARCHITECTURE FIRN_ARCH_ARM
#if defined(__linux__)
#include <sys/auxv.h>
#define FIRN_AUXILIARY_FEATURES FIRN_ARM_FEATURES
#endif
#else
#define FIRN_HOST_ARCHITECTURE FIRN_ARCH_OTHER
#endif

namespace {

#if defined(__x86_64__) || defined(_M_X64)

struct Registers {
  uint32_t value[4]; // eax, ebx, ecx, edx
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) noexcept {
  Registers result = {};
#if defined(_MSC_VER)
  int out[4];
  __cpuidex(out, static_cast<int>(leaf), static_cast<int>(subleaf));
  for (int i = 0; i < 4; ++i) result.value[i] = static_cast<uint32_t>(out[i]);
#else
  __cpuid_count(leaf, subleaf, result.value[0], result.value[1], result.value[2], result.value[3]);
#endif
  return result;
}

// The register states that the operating system saves for us.
uint64_t enabled_states() noexcept {
  constexpr uint32_t osxsave = 1u << 27;
  if ((cpuid(1, 0).value[2] & osxsave) == 0) return 0;
#if defined(_MSC_VER)
  return _xgetbv(0);
#else
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
#endif
}

// Answers of cpuid, asked for once per check.
struct Features {
  Registers leaf1 = {}, leaf7 = {}, leaf7_1 = {}, extended1 = {};
  uint64_t states = 0;

  Features() noexcept {
    const uint32_t largest = cpuid(0, 0).value[0];
    leaf1 = cpuid(1, 0);
    if (largest >= 7) {
      leaf7 = cpuid(7, 0);
      if (leaf7.value[0] >= 1) leaf7_1 = cpuid(7, 1);
    }
    if (cpuid(0x80000000u, 0).value[0] >= 0x80000001u) extended1 = cpuid(0x80000001u, 0);
    states = enabled_states();
  }

  bool has(uint32_t leaf, int reg, int bit, uint64_t needed_states) const noexcept {
    const Registers& registers = leaf == 0x10   ? leaf1
                                 : leaf == 0x70 ? leaf7
                                 : leaf == 0x71 ? leaf7_1
                                                : extended1;
    return ((registers.value[reg] >> bit) & 1u) != 0 && (states & needed_states) == needed_states;
  }
};

#define FIRN_FEATURE_ROW(number, name, llvm, text, leaf, reg, bit, state)                                    \
  case number: return features.has(leaf, reg, bit, state);
bool has_feature(const Features& features, int number) noexcept {
  switch (number) {
    FIRN_X86_64_FEATURES(FIRN_FEATURE_ROW)
  default: return false;
  }
}

#elif defined(FIRN_AUXILIARY_FEATURES)

struct Features {
  unsigned long words[3];
  Features() noexcept : words{0, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)} {}
};

#define FIRN_FEATURE_ROW(number, name, llvm, text, word, bit)                                                \
  case number:                                                                                               \
    return ((features.words[word] >> bit) & 1u) != 0;
bool has_feature(const Features& features, int number) noexcept {
  switch (number) {
    FIRN_AUXILIARY_FEATURES(FIRN_FEATURE_ROW)
  default: return false;
  }
}

#else

struct Features {};
bool has_feature(const Features&, int) noexcept {
  return true;
}

#endif

// Linux grants a process the registers of tiles once it asks, for all of its threads.
bool grants_tiles() noexcept {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
  long result = arch_prctl;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(request_permission), "S"(tile_data)
                   : "rcx", "r11", "memory");
  return result == 0;
#else
  return false;
#endif
}

constexpr firn_status unsupported(int number) noexcept {
  return FIRN_STATUS_UNSUPPORTED_CPU | number << 8;
}

} // namespace

extern "C" firn_status firn_rt2_check_cpu(int32_t architecture, uint64_t features) FIRN_NOEXCEPT {
  constexpr int no_feature = 0xff;
  if (architecture != FIRN_HOST_ARCHITECTURE && architecture != FIRN_ARCH_OTHER)
    return unsupported(no_feature);
  if (features == 0) return FIRN_STATUS_OK;
  const Features host;
  for (int number = 0; number < 64; ++number) {
    if (((features >> number) & 1u) != 0 && !has_feature(host, number)) return unsupported(number);
  }
  constexpr int amx_tile = 30;
  const bool has_tiles = architecture == FIRN_ARCH_X86_64 && ((features >> amx_tile) & 1u) != 0;
  if (has_tiles && !grants_tiles()) return FIRN_STATUS_NO_TILES;
  return FIRN_STATUS_OK;
}
