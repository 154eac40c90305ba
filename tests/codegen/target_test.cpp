// Tests what triples, CPUs and features resolve to: closed sets, sensible defaults, and refusals by name.
#include "tests/codegen/model_object.h"

#include "compiler/target/assumed_version.h"
#include "compiler/target/cpu_table.h"
#include "compiler/target/mac.h"
#include "compiler/target/strict_floats.h"
#include "include/firn/cpu_features.h"

#include <catch2/catch.hpp>

namespace firn::test {

TEST_CASE("feature bits are those of the public header", "[target]") {
  auto bit = [](Arch arch, const std::string& name) {
    for (const CpuFeature& feature : cpu_features(arch)) {
      if (feature.name == name) return feature.bit;
    }
    return -1;
  };
  size_t x86 = 0, arm64 = 0, arm = 0;
#define FIRN_CHECK_BIT(number, enumerator, name, ...)                                                        \
  CHECK(bit(Arch::X86_64, name) == number);                                                                  \
  ++x86;
  FIRN_X86_64_FEATURES(FIRN_CHECK_BIT)
#undef FIRN_CHECK_BIT
#define FIRN_CHECK_BIT(number, enumerator, name, ...)                                                        \
  CHECK(bit(Arch::AArch64, name) == number);                                                                 \
  ++arm64;
  FIRN_AARCH64_FEATURES(FIRN_CHECK_BIT)
#undef FIRN_CHECK_BIT
#define FIRN_CHECK_BIT(number, enumerator, name, ...)                                                        \
  CHECK(bit(Arch::Arm, name) == number);                                                                     \
  ++arm;
  FIRN_ARM_FEATURES(FIRN_CHECK_BIT)
#undef FIRN_CHECK_BIT
  CHECK(cpu_features(Arch::Arm).size() == arm);
  CHECK(cpu_features(Arch::X86_64).size() == x86);
  CHECK(cpu_features(Arch::AArch64).size() == arm64);
}

TEST_CASE("every row of the CPU table is a CPU that LLVM knows", "[target]") {
  for (const CpuRow& row : cpu_table()) {
    auto target = find_target(row.triple, row.name, "");
    if (!target) FAIL(target.error().message);
    INFO(row.name);
    CHECK(target->arch == row.arch);
    CHECK(target->cpu.vector_bits == row.vector_bits);
    // A CPU that takes an instruction's vector in halves is no slower than with twice the instructions.
    auto has = [&](std::string_view feature) {
      for (const CpuFeature& each : cpu_features(row.arch))
        if (each.name == feature) return (target->required_cpu_features >> each.bit & 1) != 0;
      return false;
    };
    if (row.arch == Arch::X86_64) CHECK(row.vector_bits == (has("avx512f") ? 512 : has("avx") ? 256 : 128));
  }
}

TEST_CASE("pipes of vectors that a CPU may not use are two of half their width", "[target]") {
  auto pipes = [](const char* cpu, const char* features) {
    auto target = find_target("x86_64-linux-gnu", cpu, features);
    REQUIRE(target);
    return std::pair(target->cpu.vector_bits, target->cpu.fma_pipes);
  };
  CHECK(pipes("znver4", "") == std::pair(512, 1));
  CHECK(pipes("znver4", "-avx512f,-evex512") == std::pair(256, 2));
  CHECK(pipes("tigerlake", "-evex512") == std::pair(256, 2));
  CHECK(pipes("sapphirerapids", "-evex512") == std::pair(256, 2));
  CHECK(pipes("sandybridge", "") == std::pair(256, 1));
  CHECK(pipes("znver1", "") == std::pair(256, 1));
  CHECK(pipes("znver1", "-avx") == std::pair(128, 2));
}

TEST_CASE("a CPU's name may hold features, and may be an ARM architecture", "[target]") {
  auto same = [](std::string_view name, std::string_view triple, std::string_view cpu,
                 std::string_view features) {
    auto target = find_target("", name, ""), wanted = find_target(triple, cpu, features);
    INFO(name);
    REQUIRE(target);
    REQUIRE(wanted);
    CHECK(target->arch == wanted->arch);
    CHECK(target->processor == wanted->processor);
    CHECK(target->required_cpu_features == wanted->required_cpu_features);
  };
  same("x86-64-v2+avx+f16c", "x86_64-linux-gnu", "x86-64-v2", "+avx,+f16c");
  same("armv8-a", "aarch64-linux-gnu", "generic", "");
  same("armv8.2-a+dotprod", "aarch64-linux-gnu", "generic", "+v8.2a,+dotprod");
}

static std::string refusal(std::string_view triple, std::string_view cpu, std::string_view features) {
  auto target = find_target(triple, cpu, features);
  INFO(triple << " " << cpu << " " << features);
  REQUIRE_FALSE(target);
  CHECK(target.error().fault == Fault::Usage);
  return target.error().message;
}

static bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

TEST_CASE("unknown names are usage errors that name near ones", "[target]") {
  contains(refusal("x86_64-linux-gnu", "znver9", ""), "did you mean 'znver1', 'znver2' or 'znver3'?");
  contains(refusal("x86_64-linux-gnu", "frobnicator", ""), "; choices: native, ");
  contains(refusal("x86_64-linux-gnu", "frobnicator", ""), ", sapphirerapids, ");
  CHECK(refusal("x86_64-linux-gnu", "znver9", "").find("choices") == std::string::npos);
  contains(refusal("armv7-linux-gnueabihf", "cortex-a77777", ""), "cortex-a7");
  contains(refusal("x86_64-linux-gnu", "", "+neon2"), "'neon2' is not known");
  contains(refusal("x86_64-linux-gnu", "", "+avx512vni"), "did you mean 'avx512vnni'");
  contains(refusal("x86_64-linux-gnu", "", "+sse4"), "did you mean 'sse4.1' or 'sse4.2'?");
  contains(refusal("x86_64-linux-gnu", "x86-64-v3+avx512vni", ""), "did you mean 'avx512vnni'");
  contains(refusal("aarch64-linux-gnu", "armv8.77-a", ""), "v8.77a");
  contains(refusal("aarch64-linux-gnu", "native", ""), "needs a target of the host's architecture");
}

TEST_CASE("targets without a code generator are refused by name", "[target]") {
  for (auto [triple, reason] : {std::pair{"vax-dec-ultrix", "this architecture"},
                                {"i686-linux-gnu", "32-bit x86"},
                                {"i386-pc-windows-msvc", "32-bit x86"},
                                {"x86_64-linux-gnux32", "32-bit pointers on x86_64"},
                                {"aarch64-linux-gnu_ilp32", "32-bit pointers on aarch64"},
                                {"aarch64_be-linux-gnu", "big-endian memory"},
                                {"armeb-linux-gnueabihf", "big-endian memory"},
                                {"arm64ec-pc-windows-msvc", "the calls of arm64ec"},
                                {"thumbv7-pc-windows-msvc", "32-bit ARM without ELF"},
                                {"wasm32", "this architecture"}}) {
    std::string message = refusal(triple, "", "");
    contains(message, std::string("target '") + triple + "' is not supported");
    contains(message, reason);
    contains(message, "x86_64-unknown-linux-gnu");
  }
}

TEST_CASE("CPUs and features without the base of their architecture are refused", "[target]") {
  contains(refusal("x86_64-linux-gnu", "pentium4", ""), "'pentium4' lacks '64bit'");
  contains(refusal("x86_64-linux-gnu", "", "-sse2"), "lacks 'sse2'");
  contains(refusal("riscv32-unknown-elf", "", "-m"), "lacks 'm'");
  contains(refusal("x86_64-linux-gnu", "", "+soft-float"), "'soft-float' is a mode");
  contains(refusal("riscv64-linux-gnu", "", "+save-restore"), "is a mode");
}

TEST_CASE("features are closed over what they imply", "[target]") {
  for (const char* feature : {"+avx512f", "+avx512bf16", "+avx512vnni", "+avx512fp16", "+avx10.1-512"}) {
    Machine machine = target_of("x86_64-linux-gnu", "x86-64", feature);
    INFO(feature << ": " << machine.features);
    CHECK(machine.cpu.vector_bits == 128); // the row's: x86-64 is no machine for wide vectors
    CHECK((machine.cpu.has_fma && machine.cpu.has_f16_conversion));
    machine = target_of("x86_64-linux-gnu", "icelake-client", feature);
    CHECK(machine.cpu.vector_bits == 512);
    // avx, f16c, fma, avx2 and AVX-512's f, dq, cd, bw and vl
    CHECK((machine.required_cpu_features & 0xf8b80) == 0xf8b80);
  }
  Machine narrow = target_of("x86_64-linux-gnu", "skylake-avx512", "-evex512");
  CHECK(narrow.cpu.vector_bits == 256);
  CHECK_FALSE(narrow.cpu.has_masked_memory);
  contains(refusal("x86_64-linux-gnu", "skylake-avx512", "-avx512vl"), "take 'avx512f' away instead");
  contains(refusal("x86_64-linux-gnu", "", "+avx512bf16,-avx512bw"), "takes 'avx512bw' away");
  contains(refusal("x86_64-linux-gnu", "", "+avx2,-avx"), "contradicts");
  contains(refusal("riscv64-linux-gnu", "", "+v,-d"), "contradicts");
  contains(refusal("riscv64-linux-gnu", "", "+zfinx"), "incompatible");
  contains(refusal("riscv64-linux-gnu", "", "+zcf"), "only supported for 'rv32'");
  contains(refusal("riscv64-linux-gnu", "", "+rvi20u32"), "riscv32");
  contains(refusal("riscv64-linux-gnu", "", "+xcvalu"), "riscv32 alone");
  contains(refusal("arm-linux-gnueabihf", "", "+lob"), "an extension of Cortex-M");
  CHECK(target_of("x86_64-linux-gnu", "knl").cpu.vector_bits == 256);
  // RISC-V's extensions add to the general ones.
  CHECK(target_of("riscv64-linux-gnu", "", "+v").features == "+m,+a,+f,+d,+c,+v");
}

TEST_CASE("a target says which instructions code is made without", "[target]") {
  CHECK_FALSE(target_of("x86_64-linux-gnu", "x86-64").cpu.has_rounding);
  Machine machine = target_of("x86_64-linux-gnu", "x86-64-v3");
  CHECK((machine.cpu.has_rounding && machine.cpu.has_round_even && !machine.cpu.has_ieee_minimum));
  CHECK_FALSE(machine.cpu.has_reciprocal_estimate);
  CHECK(target_of("x86_64-linux-gnu", "znver4").cpu.has_reciprocal_estimate);
  CHECK_FALSE(target_of("x86_64-linux-gnu", "znver4", "-evex512").cpu.has_reciprocal_estimate);
  machine = target_of("aarch64-linux-gnu", "");
  CHECK((machine.cpu.has_rounding && machine.cpu.has_round_even && machine.cpu.has_ieee_minimum));
  machine = target_of("arm-none-eabi", "cortex-m0");
  CHECK_FALSE(
      (machine.cpu.has_integer_division || machine.cpu.has_long_shifts || machine.cpu.has_leading_zeros));
  machine = target_of("arm-none-eabihf", "cortex-m4");
  CHECK((machine.cpu.has_integer_division && machine.cpu.has_long_shifts && machine.cpu.has_leading_zeros));
  CHECK_FALSE((machine.cpu.has_rounding || machine.cpu.has_round_even));
  CHECK_FALSE(target_of("riscv64-linux-gnu", "").cpu.has_rounding);
  CHECK(target_of("riscv64-linux-gnu", "", "+zfa").cpu.has_rounding);
}

TEST_CASE("instructions that no constructor can ask for are not used", "[target]") {
  contains(refusal("x86_64-linux-gnu", "", "+xop"), "constructor");
  contains(refusal("aarch64-linux-gnu", "", "+mops"), "constructor");
  contains(target_of("x86_64-linux-gnu", "bdver4").features, "-sse4a");
  contains(target_of("aarch64-linux-gnu", "", "+v8.9a").features, ",-cssc,-mops");
}

TEST_CASE("a triple names a system or an ABI, whoever its vendor is", "[target]") {
  for (const char* wrong :
       {"arm-foo", "x86_64-foo", "x86_64-unknown-lnux-gnu", "aarch64-linux-gmu", "riscv32-foo-elff"}) {
    auto target = find_target(wrong, "", "");
    REQUIRE_FALSE(target);
    CHECK(target.error().fault == Fault::Usage);
    CHECK(target.error().message.find("'" + std::string(wrong) + "' is no target triple: '") == 0);
  }
  for (const char* right :
       {"x86_64", "aarch64-none-elf", "arm-none-eabi", "x86_64-elf", "x86_64-w64-mingw32",
        "aarch64-poky-linux", "x86_64-alpine-linux-musl", "aarch64-linux-android21",
        "armv7l-unknown-linux-gnueabihf", "riscv32-unknown-elf", "x86_64-unknown-freebsd14.0",
        "aarch64-unknown-none", "arm64-apple-ios14.0-simulator"}) {
    INFO(right);
    CHECK(find_target(right, "", ""));
  }
}

TEST_CASE("triples of Apple's systems without a version get one", "[target]") {
  const std::pair<const char*, const char*> versions[] = {
      {"arm64-apple-ios", "arm64-apple-ios14.0"},
      {"arm64-apple-ios-simulator", "arm64-apple-ios14.0-simulator"},
      {"arm64-apple-macos", "arm64-apple-macos11.0"},
      {"x86_64-apple-darwin", "x86_64-apple-macosx11.0"},
      {"arm64-apple-tvos", "arm64-apple-tvos14.0"},
      {"arm64-apple-watchos", "arm64-apple-watchos7.0"},
      {"arm64-apple-xros", "arm64-apple-xros1.0"},
      {"arm64-apple-ios16.2", "arm64-apple-ios16.2"},
      {"arm64-apple-darwin23.1.0", "arm64-apple-darwin23.1.0"},
      {"aarch64-linux-gnu", "aarch64-unknown-linux-gnu"}};
  for (const auto& [given, wanted] : versions) {
    auto target = find_target(given, "", "");
    REQUIRE(target);
    CHECK(target->triple == wanted);
    bool is_completed = std::string(wanted).find(assumed_version(given, "")) != std::string::npos;
    CHECK(is_completed);
    CHECK(assumed_version(wanted, "").empty());
  }
  CHECK(assumed_version("arm64-apple-ios-simulator", "") == "ios14.0");
  CHECK(assumed_version("", "").empty());
}

TEST_CASE("ARM CPUs bring their version of the architecture", "[target]") {
  auto triple = [](const char* given, const char* cpu) { return target_of(given, cpu).triple; };
  CHECK(triple("arm-none-eabi", "cortex-m0plus").starts_with("thumbv6m-"));
  CHECK(triple("arm-none-eabi", "cortex-m3").starts_with("thumbv7m-"));
  CHECK(triple("arm-none-eabihf", "cortex-m4").starts_with("thumbv7em-"));
  CHECK(triple("arm-none-eabi", "cortex-m23").starts_with("thumbv8m.base-"));
  CHECK(triple("arm-none-eabihf", "cortex-m33").starts_with("thumbv8m.main-"));
  CHECK(triple("arm-none-eabihf", "cortex-m85").starts_with("thumbv8.1m.main-"));
  CHECK(triple("arm-linux-gnueabihf", "cortex-a7").starts_with("armv7-"));
  CHECK(triple("arm-linux-gnueabihf", "arm1176jzf-s").starts_with("armv6"));
  CHECK(triple("thumbv7a-linux-gnueabihf", "").starts_with("thumbv7-"));
  CHECK(target_of("thumbv8m.base-none-eabi", "").processor == "cortex-m23");
  CHECK(target_of("thumbv8.1m.main-none-eabihf", "").processor == "cortex-m55");
}

TEST_CASE("platforms have the floats that they promise", "[target]") {
  // Debian's armhf: VFPv3 with 16 registers and no NEON.
  Machine armhf = target_of("arm-linux-gnueabihf", "");
  CHECK(armhf.triple.starts_with("armv7-"));
  CHECK((armhf.cpu.has_float && armhf.cpu.has_double && !armhf.cpu.has_fma));
  CHECK(target_of("armv6-linux-gnueabihf", "").cpu.has_float); // Raspbian's
  CHECK_FALSE(target_of("arm-linux-gnueabi", "").cpu.has_float);
  CHECK_FALSE(target_of("thumbv7m-none-eabi", "").cpu.has_float);
  CHECK(armhf.required_cpu_features == 0b11); // VFP, VFPv3
  CHECK(target_of("arm-linux-gnueabihf", "cortex-a53").required_cpu_features == 0b1111111);
  CHECK(target_of("arm-linux-gnueabihf", "", "+vfp4").cpu.has_fma);
  CHECK_FALSE(target_of("thumbv7em-none-eabi", "cortex-m4", "-fpregs").cpu.has_float);
  CHECK(target_of("riscv32-unknown-elf", "").cpu.has_double);
  CHECK(target_of("riscv64-unknown-elf", "generic").cpu.has_double);
  CHECK(target_of("aarch64-none-elf", "", "-neon").cpu.vector_bits == 0);
}

TEST_CASE("CPUs have the products that their features promise", "[target]") {
  auto unlike = [](const Machine& target) { return dot4_facts(target, Factor::U8, Factor::S8); };
  auto like = [](const Machine& target) { return dot4_facts(target, Factor::S8, Factor::S8); };
  Machine zen5 = target_of("x86_64-linux-gnu", "znver5");
  CHECK((unlike(zen5).form == MacForm::Native && unlike(zen5).register_bits == 512));
  CHECK(like(zen5).form == MacForm::Offset);
  CHECK(bf16_dot2_facts(zen5).form == MacForm::Native);
  CHECK_FALSE(zen5.cpu.has_tile_matrices);
  CHECK(target_of("x86_64-linux-gnu", "sapphirerapids").cpu.has_tile_matrices);
  Machine alderlake = target_of("x86_64-linux-gnu", "alderlake");
  CHECK((unlike(alderlake).form == MacForm::Native && unlike(alderlake).register_bits == 256));
  CHECK(bf16_dot2_facts(alderlake).form == MacForm::PerStep);
  // Wide registers without AVX512-VNNI: the instruction of AVX-VNNI takes half of one.
  CHECK(unlike(target_of("x86_64-linux-gnu", "skylake-avx512", "+avxvnni")).register_bits == 256);
  for (auto [cpu, bits] :
       {std::pair{"x86-64", 128}, {"sandybridge", 128}, {"x86-64-v3", 256}, {"x86-64-v4", 512}}) {
    Machine target = target_of("x86_64-linux-gnu", cpu);
    INFO(cpu);
    for (const MacFacts& facts : {unlike(target), like(target)})
      CHECK((facts.form == MacForm::Pairs && facts.register_bits == bits));
  }
  CHECK(unlike(target_of("aarch64-linux-gnu", "")).form == MacForm::Pairs);
  CHECK(unlike(target_of("aarch64-linux-gnu", "", "+dotprod")).form == MacForm::Offset);
  CHECK(like(target_of("aarch64-linux-gnu", "", "+dotprod")).form == MacForm::Native);
  CHECK(unlike(target_of("aarch64-linux-gnu", "", "+i8mm")).form == MacForm::Native);
  CHECK(unlike(target_of("aarch64-linux-gnu", "", "-neon")).form == MacForm::PerStep);
  CHECK(unlike(target_of("", "cortex-m4")).form == MacForm::Pairs);
  CHECK(unlike(target_of("", "cortex-m3")).form == MacForm::PerStep);
  CHECK(unlike(target_of("", "generic-rv64")).form == MacForm::PerStep);
}

TEST_CASE("Cortex-M with vectors of floats have those of MVE", "[target]") {
  for (const char* cpu : {"cortex-m55", "cortex-m85"}) {
    Machine target = target_of("", cpu);
    INFO(cpu);
    CHECK(target.triple.starts_with("thumbv8.1m.main-"));
    CHECK(
        (target.cpu.vector_bits == 128 && target.cpu.vector_registers == 8 && target.cpu.has_masked_memory));
    CHECK((target.cpu.lanes(8) == 16 && target.cpu.lanes(32) == 4 && target.cpu.register_lanes(16) == 8));
    CHECK((target.cpu.lanes(64) == 1 &&
           target.cpu.register_lanes(64) == 1)); // scalars alone compute in 64 bits
    CHECK(target.buffer_alignment == 16);
    MacFacts like = dot16_facts(target, Factor::S8, Factor::S8),
             unlike = dot16_facts(target, Factor::U8, Factor::S8);
    CHECK((like.form == MacForm::Native && unlike.form == MacForm::Offset));
    CHECK(unlike.instructions == 3 * like.instructions);
  }
  // Their floats flush, so strict numerics have none.
  Machine strict = with_strict_floats(target_of("", "cortex-m55"));
  CHECK((strict.cpu.vector_bits == 0 && strict.cpu.reducing_dot_bits == 0 && strict.cpu.dot2_bits == 32));
  CHECK(with_strict_floats(target_of("aarch64-linux-gnu", "")).cpu.vector_bits == 128);
  // Integers alone do not make vectors: requantisation computes in floats.
  for (const char* features : {"-mve.fp", "-mve"}) {
    Machine target = target_of("", "cortex-m55", features);
    INFO(features);
    CHECK((target.cpu.vector_bits == 0 && target.cpu.reducing_dot_bits == 0 && target.cpu.dot2_bits == 32));
  }
  CHECK(dot16_facts(target_of("", "cortex-m33"), Factor::S8, Factor::S8).form == MacForm::PerStep);
}

TEST_CASE("features widen and narrow a target", "[target]") {
  CHECK(target_of("x86_64-linux-gnu", "").cpu.vector_bits == 256);
  Machine plain = target_of("x86_64-linux-gnu", "x86-64-v3", "-fma");
  CHECK_FALSE(plain.cpu.has_fma);
  CHECK((plain.required_cpu_features & (1u << 9)) == 0);
  CHECK(target_of("x86_64-linux-gnu", "znver4").cpu.vector_registers == 32);
  CHECK(target_of("x86_64-linux-gnu", "x86-64").required_cpu_features == 0);
}

} // namespace firn::test
