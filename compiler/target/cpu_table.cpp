// Facts about CPUs as published by their makers and measured by others; generic rows are cautious middles.
#include "compiler/target/cpu_table.h"

namespace firn {

static constexpr std::string_view x86_linux = "x86_64-unknown-linux-gnu",
                                  arm64_linux = "aarch64-unknown-linux-gnu";

std::span<const CpuRow> cpu_table() {
  static constexpr Arch x86 = Arch::X86_64, arm64 = Arch::AArch64, arm = Arch::Arm;
  static constexpr CpuRow rows[] = {
      // name       arch  triple     bits lat pipes L1  L2   L3    L2/c L3/c mem/c streams slow bf16 loads
      {"x86-64", x86, x86_linux, 128, 4, 2, 32, 256, 4096, 32, 16, 8, 4},
      {"x86-64-v2", x86, x86_linux, 128, 4, 2, 32, 256, 4096, 32, 16, 8, 4},
      {"x86-64-v3", x86, x86_linux, 256, 4, 2, 32, 512, 8192, 32, 20, 6, 4},
      {"x86-64-v4", x86, x86_linux, 512, 4, 2, 32, 1024, 16384, 48, 24, 10, 4},
      {"nehalem", x86, x86_linux, 128, 4, 1, 32, 256, 8192, 32, 12, 6, 4},
      {"sandybridge", x86, x86_linux, 256, 5, 1, 32, 256, 8192, 32, 16, 6, 4},
      {"haswell", x86, x86_linux, 256, 5, 2, 32, 256, 8192, 32, 16, 8, 4},
      {"broadwell", x86, x86_linux, 256, 5, 2, 32, 256, 8192, 32, 16, 8, 4},
      {"skylake", x86, x86_linux, 256, 4, 2, 32, 256, 8192, 32, 18, 8, 4},
      {"skylake-avx512", x86, x86_linux, 512, 4, 2, 32, 1024, 22528, 48, 16, 8, 4},
      {"cascadelake", x86, x86_linux, 512, 4, 2, 32, 1024, 22528, 48, 16, 8, 4},
      {"cooperlake", x86, x86_linux, 512, 4, 2, 32, 1024, 22528, 48, 16, 8, 4},
      {"icelake-client", x86, x86_linux, 512, 4, 1, 48, 512, 8192, 48, 20, 8, 4},
      {"icelake-server", x86, x86_linux, 512, 4, 2, 48, 1280, 32768, 48, 16, 8, 4},
      {"tigerlake", x86, x86_linux, 512, 4, 1, 48, 1280, 12288, 48, 20, 8, 4},
      {"rocketlake", x86, x86_linux, 512, 4, 1, 48, 512, 16384, 48, 20, 8, 4},
      {"alderlake", x86, x86_linux, 256, 4, 2, 48, 1280, 30720, 48, 20, 10, 4},
      {"raptorlake", x86, x86_linux, 256, 4, 2, 48, 2048, 36864, 48, 20, 10, 4},
      {"meteorlake", x86, x86_linux, 256, 4, 2, 48, 2048, 24576, 48, 20, 10, 4},
      {"arrowlake", x86, x86_linux, 256, 4, 2, 48, 3072, 36864, 48, 20, 10, 4},
      {"arrowlake-s", x86, x86_linux, 256, 4, 2, 48, 3072, 36864, 48, 20, 10, 4},
      {"lunarlake", x86, x86_linux, 256, 4, 2, 48, 2560, 12288, 48, 20, 10, 4},
      {"sapphirerapids", x86, x86_linux, 512, 4, 2, 48, 2048, 32768, 48, 9, 8, 4, true},
      {"emeraldrapids", x86, x86_linux, 512, 4, 2, 48, 2048, 32768, 48, 9, 8, 4, true},
      {"graniterapids", x86, x86_linux, 512, 4, 2, 48, 2048, 65536, 48, 9, 8, 4, true},
      {"graniterapids-d", x86, x86_linux, 512, 4, 2, 48, 2048, 65536, 48, 9, 8, 4, true},
      // Vectors of 256 bits pass its pipes of 128 in halves, and take one instruction all the same.
      {"znver1", x86, x86_linux, 256, 5, 1, 32, 512, 8192, 32, 20, 8, 1, false, 1},
      {"znver2", x86, x86_linux, 256, 5, 2, 32, 512, 16384, 32, 24, 8, 1},
      {"znver3", x86, x86_linux, 256, 4, 2, 32, 512, 32768, 32, 26, 8, 1},
      {"znver4", x86, x86_linux, 512, 4, 1, 32, 1024, 32768, 32, 26, 10, 1},
      {"znver5", x86, x86_linux, 512, 4, 2, 48, 1024, 32768, 56, 26, 10, 1},
      {"generic", arm64, arm64_linux, 128, 4, 2, 32, 512, 2048, 16, 10, 6},
      {"cortex-a53", arm64, arm64_linux, 128, 8, 1, 32, 512, 0, 8, 4, 3},
      {"cortex-a55", arm64, arm64_linux, 128, 4, 1, 32, 128, 1024, 8, 6, 4},
      {"cortex-a72", arm64, arm64_linux, 128, 7, 2, 32, 1024, 0, 16, 6, 4},
      {"cortex-a76", arm64, arm64_linux, 128, 4, 2, 64, 256, 2048, 32, 16, 8},
      {"cortex-a78", arm64, arm64_linux, 128, 4, 2, 64, 256, 4096, 32, 16, 8},
      {"cortex-x1", arm64, arm64_linux, 128, 4, 4, 64, 1024, 8192, 32, 16, 10},
      {"neoverse-n1", arm64, arm64_linux, 128, 4, 2, 64, 1024, 32768, 32, 16, 8},
      {"neoverse-n2", arm64, arm64_linux, 128, 4, 2, 64, 1024, 32768, 32, 16, 8},
      {"neoverse-v1", arm64, arm64_linux, 128, 4, 4, 64, 1024, 32768, 32, 16, 10},
      {"neoverse-v2", arm64, arm64_linux, 128, 4, 4, 64, 2048, 65536, 32, 16, 10},
      {"apple-m1", arm64, "arm64-apple-macosx11.0", 128, 4, 4, 128, 12288, 8192, 32, 24, 16},
      {"cortex-m0", arm, "thumbv6m-none-eabi", 0, 1, 1, 0, 0, 0, 4, 4, 4},
      {"cortex-m0plus", arm, "thumbv6m-none-eabi", 0, 1, 1, 0, 0, 0, 4, 4, 4},
      {"cortex-m3", arm, "thumbv7m-none-eabi", 0, 1, 1, 0, 0, 0, 4, 4, 4},
      {"cortex-m4", arm, "thumbv7em-none-eabihf", 0, 3, 1, 0, 0, 0, 4, 4, 4},
      {"cortex-m7", arm, "thumbv7em-none-eabihf", 0, 3, 1, 16, 0, 0, 8, 8, 4},
      {"cortex-m33", arm, "thumbv8m.main-none-eabihf", 0, 3, 1, 0, 0, 0, 4, 4, 4},
      {"cortex-m55", arm, "thumbv8.1m.main-none-eabihf", 128, 3, 1, 0, 0, 0, 4, 4, 4, 0, false, 1},
      {"cortex-m85", arm, "thumbv8.1m.main-none-eabihf", 128, 3, 1, 0, 0, 0, 4, 4, 4, 0, false, 1},
      {"generic-rv64", Arch::Other, "riscv64-unknown-linux-gnu", 0, 5, 1, 32, 512, 2048, 8, 6, 4},
  };
  return rows;
}

const CpuRow* find_cpu_row(std::string_view name, Arch arch) {
  for (const CpuRow& row : cpu_table()) {
    if (row.name == name && row.arch == arch) return &row;
  }
  return nullptr;
}

std::span<const CpuFeature> cpu_features(Arch arch) {
  static constexpr CpuFeature x86[] = {
      {"sse3", 0},         {"ssse3", 1},       {"sse4.1", 2},        {"sse4.2", 3},
      {"cx16", 4},         {"popcnt", 5},      {"sahf", 6},          {"avx", 7},
      {"f16c", 8},         {"fma", 9},         {"movbe", 10},        {"avx2", 11},
      {"bmi", 12},         {"bmi2", 13},       {"lzcnt", 14},        {"avx512f", 15},
      {"avx512dq", 16},    {"avx512cd", 17},   {"avx512bw", 18},     {"avx512vl", 19},
      {"avx512vnni", 20},  {"avx512bf16", 21}, {"avx512fp16", 22},   {"avx512vbmi", 23},
      {"avx512vbmi2", 24}, {"avx512ifma", 25}, {"avx512bitalg", 26}, {"avx512vpopcntdq", 27},
      {"avxvnni", 28},     {"gfni", 29},       {"amx-tile", 30},     {"amx-int8", 31},
      {"amx-bf16", 32},
  };
  static constexpr CpuFeature arm64[] = {
      {"neon", 0}, {"fullfp16", 1}, {"dotprod", 2}, {"i8mm", 3}, {"bf16", 4},
      {"sve", 5},  {"sve2", 6},     {"lse", 7},     {"rdm", 8},  {"complxnum", 9},
  };
  static constexpr CpuFeature arm[] = {
      {"vfp2sp", 0},    {"vfp3d16sp", 1}, {"vfp4d16sp", 2},     {"neon", 3},
      {"hwdiv-arm", 4}, {"hwdiv", 5},     {"fp-armv8d16sp", 6},
  };
  if (arch == Arch::X86_64) return x86;
  if (arch == Arch::AArch64) return arm64;
  if (arch == Arch::Arm) return arm;
  return {};
}

std::span<const TellingFeature> telling_features() {
  static constexpr TellingFeature rows[] = {
      {"amx-complex", "graniterapids-d"}, {"amx-fp16", "graniterapids"}, {"amx-int8", "sapphirerapids"}};
  return rows;
}

std::span<const NamedFeatures> named_features() {
  static constexpr std::string_view x86[] = {"+f16c",        "+fma",        "+avx2",       "+avxvnni",
                                             "+avx512f",     "+avx512vnni", "+avx512bf16", "+avx512fp16",
                                             "+avx10.1-256", "-avx512f",    "-avx",        "-sse4.1"};
  static constexpr std::string_view arm64[] = {"+fullfp16", "+dotprod", "+i8mm", "+bf16",
                                               "+sve",      "+sve2",    "-neon"};
  static constexpr std::string_view arm[] = {"+vfp2", "+vfp3",      "+vfp4", "+neon",  "+fp-armv8",
                                             "+fp16", "+hwdiv-arm", "-fp64", "-fpregs"};
  static constexpr std::string_view riscv[] = {"+zba", "+zbb", "+zfa", "+zfh", "+v", "-d", "-f"};
  static constexpr NamedFeatures rows[] = {{"x86_64", "x86_64-unknown-linux-gnu", x86},
                                           {"aarch64", "aarch64-unknown-linux-gnu", arm64},
                                           {"arm", "arm-unknown-linux-gnueabihf", arm},
                                           {"riscv64", "riscv64-unknown-linux-gnu", riscv}};
  return rows;
}

} // namespace firn
