// The CPU features that a model can require: one table from which the runtime's check, its messages and the
// compiler's masks are expanded. A feature's number is its bit in a mask and is never reused.
#ifndef FIRN_CPU_FEATURES_H
#define FIRN_CPU_FEATURES_H

// F(number, enumerator, LLVM's name, name for people, cpuid leaf, register, bit, state components of XCR0)
// Leaf is written leaf * 16 + subleaf for small leaves, and as is for the extended ones.
#define FIRN_X86_64_FEATURES(F)                                                                              \
  F(0, Sse3, "sse3", "SSE3", 0x10, 2, 0, 0)                                                                  \
  F(1, Ssse3, "ssse3", "SSSE3", 0x10, 2, 9, 0)                                                               \
  F(2, Sse41, "sse4.1", "SSE4.1", 0x10, 2, 19, 0)                                                            \
  F(3, Sse42, "sse4.2", "SSE4.2", 0x10, 2, 20, 0)                                                            \
  F(4, Cx16, "cx16", "CMPXCHG16B", 0x10, 2, 13, 0)                                                           \
  F(5, Popcnt, "popcnt", "POPCNT", 0x10, 2, 23, 0)                                                           \
  F(6, Sahf, "sahf", "LAHF/SAHF", 0x80000001, 2, 0, 0)                                                       \
  F(7, Avx, "avx", "AVX", 0x10, 2, 28, 0x6)                                                                  \
  F(8, F16c, "f16c", "F16C", 0x10, 2, 29, 0x6)                                                               \
  F(9, Fma, "fma", "FMA", 0x10, 2, 12, 0x6)                                                                  \
  F(10, Movbe, "movbe", "MOVBE", 0x10, 2, 22, 0)                                                             \
  F(11, Avx2, "avx2", "AVX2", 0x70, 1, 5, 0x6)                                                               \
  F(12, Bmi, "bmi", "BMI1", 0x70, 1, 3, 0)                                                                   \
  F(13, Bmi2, "bmi2", "BMI2", 0x70, 1, 8, 0)                                                                 \
  F(14, Lzcnt, "lzcnt", "LZCNT", 0x80000001, 2, 5, 0)                                                        \
  F(15, Avx512f, "avx512f", "AVX-512", 0x70, 1, 16, 0xe6)                                                    \
  F(16, Avx512dq, "avx512dq", "AVX-512 DQ", 0x70, 1, 17, 0xe6)                                               \
  F(17, Avx512cd, "avx512cd", "AVX-512 CD", 0x70, 1, 28, 0xe6)                                               \
  F(18, Avx512bw, "avx512bw", "AVX-512 BW", 0x70, 1, 30, 0xe6)                                               \
  F(19, Avx512vl, "avx512vl", "AVX-512 VL", 0x70, 1, 31, 0xe6)                                               \
  F(20, Avx512vnni, "avx512vnni", "AVX-512 VNNI", 0x70, 2, 11, 0xe6)                                         \
  F(21, Avx512bf16, "avx512bf16", "AVX-512 BF16", 0x71, 0, 5, 0xe6)                                          \
  F(22, Avx512fp16, "avx512fp16", "AVX-512 FP16", 0x70, 3, 23, 0xe6)                                         \
  F(23, Avx512vbmi, "avx512vbmi", "AVX-512 VBMI", 0x70, 2, 1, 0xe6)                                          \
  F(24, Avx512vbmi2, "avx512vbmi2", "AVX-512 VBMI2", 0x70, 2, 6, 0xe6)                                       \
  F(25, Avx512ifma, "avx512ifma", "AVX-512 IFMA", 0x70, 1, 21, 0xe6)                                         \
  F(26, Avx512bitalg, "avx512bitalg", "AVX-512 BITALG", 0x70, 2, 12, 0xe6)                                   \
  F(27, Avx512vpopcntdq, "avx512vpopcntdq", "AVX-512 VPOPCNTDQ", 0x70, 2, 14, 0xe6)                          \
  F(28, Avxvnni, "avxvnni", "AVX-VNNI", 0x71, 0, 4, 0x6)                                                     \
  F(29, Gfni, "gfni", "GFNI", 0x70, 2, 8, 0)                                                                 \
  F(30, AmxTile, "amx-tile", "AMX", 0x70, 3, 24, 0x60000)                                                    \
  F(31, AmxInt8, "amx-int8", "AMX", 0x70, 3, 25, 0x60000)                                                    \
  F(32, AmxBf16, "amx-bf16", "AMX", 0x70, 3, 22, 0x60000)

// F(number, enumerator, LLVM's name, name for people, word of the auxiliary vector: AT_HWCAP 1 or AT_HWCAP2
// 2, bit)
#define FIRN_AARCH64_FEATURES(F)                                                                             \
  F(0, Neon, "neon", "Advanced SIMD", 1, 1)                                                                  \
  F(1, Fullfp16, "fullfp16", "FP16 arithmetic", 1, 10)                                                       \
  F(2, Dotprod, "dotprod", "dot product", 1, 20)                                                             \
  F(3, I8mm, "i8mm", "int8 matrix multiply", 2, 13)                                                          \
  F(4, Bf16, "bf16", "BF16", 2, 14)                                                                          \
  F(5, Sve, "sve", "SVE", 1, 22)                                                                             \
  F(6, Sve2, "sve2", "SVE2", 2, 1)                                                                           \
  F(7, Lse, "lse", "LSE atomics", 1, 8)                                                                      \
  F(8, Rdm, "rdm", "RDM", 1, 12)                                                                             \
  F(9, Fcma, "complxnum", "complex arithmetic", 1, 14)

// 32-bit ARM, as above. No bit of the auxiliary vector speaks of ARMv8's floating point (roundings); every
// CPU that has it in 32-bit state has the CRC instructions, whose bit is taken.
#define FIRN_ARM_FEATURES(F)                                                                                 \
  F(0, Vfp2, "vfp2sp", "VFP", 1, 6)                                                                          \
  F(1, Vfp3, "vfp3d16sp", "VFPv3", 1, 13)                                                                    \
  F(2, Vfp4, "vfp4d16sp", "VFPv4", 1, 16)                                                                    \
  F(3, ArmNeon, "neon", "Advanced SIMD", 1, 12)                                                              \
  F(4, DivideArm, "hwdiv-arm", "integer division", 1, 17)                                                    \
  F(5, DivideThumb, "hwdiv", "integer division in Thumb", 1, 18)                                             \
  F(6, FpArmv8, "fp-armv8d16sp", "ARMv8 floating point", 2, 4)

#endif
