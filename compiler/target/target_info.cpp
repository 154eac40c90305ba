// Turns triple, CPU and features into a TargetInfo: LLVM knows which features a CPU has, the table of
// cpu_table.cpp knows its caches and pipes.
#include "compiler/target/target_info.h"

#include "compiler/support/nearest.h"
#include "compiler/target/cpu_table.h"
#include "compiler/target/feature_set.h"
#include "compiler/target/target_triple.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <memory>

namespace firn {

namespace {

void initialise_llvm_targets() {
  static const bool done = [] {
    LLVMInitializeX86TargetInfo(), LLVMInitializeX86TargetMC();
    LLVMInitializeAArch64TargetInfo(), LLVMInitializeAArch64TargetMC();
    LLVMInitializeARMTargetInfo(), LLVMInitializeARMTargetMC();
    LLVMInitializeRISCVTargetInfo(), LLVMInitializeRISCVTargetMC();
    return true;
  }();
  (void)done;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The error for an unknown CPU: it lists every CPU that LLVM knows for the triple and that can run its code,
// and those with a similar name.
Diagnostic unknown_cpu(const llvm::Target& target, const llvm::MCSubtargetInfo& plain,
                       const TargetInfo& machine) {
  std::vector<std::string> names{"native"};
  for (const llvm::SubtargetSubTypeKV& cpu : plain.getAllProcessorDescriptions()) {
    TargetInfo candidate = machine;
    candidate.cpu = cpu.Key;
    if (choose_features(target, candidate, platform_features(plain.getTargetTriple(), cpu.Key), ""))
      names.emplace_back(cpu.Key);
  }
  std::string near = nearest_words(machine.cpu, names);
  return usage_error("cpu '" + machine.cpu + "' is not known for " + machine.triple +
                     (near.empty() ? "; choices: " + join(names) : "; did you mean " + near + "?"));
}

std::string host_features() {
  std::vector<std::string> names;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    names.push_back((feature.second ? "+" : "-") + feature.first().str());
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.compare(1, std::string::npos, b, 1, std::string::npos) < 0;
  });
  std::string text;
  for (const std::string& name : names) text += name + ",";
  return text;
}

// LLVM goes by the model number; a CPU that has more than that model is another one.
std::string host_cpu(const llvm::Target& target, const std::string& triple) {
  std::string name = llvm::sys::getHostCPUName().str();
  auto here = llvm::sys::getHostCPUFeatures();
  std::unique_ptr<llvm::MCSubtargetInfo> named(target.createMCSubtargetInfo(triple, name, ""));
  for (const TellingFeature& telling : telling_features()) {
    std::string feature(telling.feature);
    if (here.lookup(feature) && !named->checkFeatures("+" + feature)) return std::string(telling.cpu);
  }
  return name;
}

void set_x86_facts(TargetInfo& machine, const FeatureSet& features, const CpuRow* row) {
  auto has = [&](const char* feature) { return features.has(feature); };
  bool avx512 = has("avx512f"), wide = avx512 && has("evex512");
  machine.vector_bits = std::min(machine.vector_bits, wide ? 512 : has("avx") ? 256 : 128);
  // A pipe for wider vectors than this machine has counts as two of half the width, for products and for
  // loads.
  if (row && machine.vector_bits < row->vector_bits) {
    machine.fma_pipes = std::max(2, machine.fma_pipes);
    machine.loads_per_cycle = std::max(2.0, machine.loads_per_cycle);
  }
  machine.vector_registers = avx512 ? 32 : 16;
  machine.has_fma = has("fma") || avx512;
  machine.has_f16_conversion = has("f16c") || avx512;
  machine.has_f16_arithmetic = has("avx512fp16");
  machine.has_masked_memory = machine.has_embedded_broadcast = wide;
  if (wide && has("avx512bw")) machine.narrowed_together = 4;
  int bits = machine.vector_bits, max = has("avx512vnni") && wide ? 512 : 256;
  machine.unlike_dot4_bits = has("avxvnni") || has("avx512vnni") ? std::min(bits, max) : 0;
  machine.dot2_bits = std::min(bits, wide ? 512 : has("avx2") ? 256 : 128);
  machine.byte_pair_bits = has("ssse3") ? machine.dot2_bits : 0;
  bool pairs = has("avx512bf16") && !(row && row->slow_bf16_pairs);
  machine.bf16_dot2_bits = pairs ? std::min(bits, wide ? 512 : 256) : 0;
  machine.bf16_rounding_bits = has("avx512bf16") ? std::min(bits, wide ? 512 : 256) : 0;
  // The runtime asks Linux for the tile registers (runtime/cpu_features.cpp).
  bool is_linux = llvm::Triple(machine.triple).isOSLinux();
  machine.has_tile_matrices = is_linux && wide && has("amx-int8") && has("amx-bf16");
  machine.has_word_tables = wide && machine.vector_bits == 512;
  machine.has_rounding = machine.has_round_even = has("sse4.1");
  machine.has_reciprocal_estimate = machine.vector_bits >= 512 && has("avx512vl");
  machine.has_byte_tables = has("avx512vbmi") && wide;
}

// Products of several steps on ARM; those of Cortex-M's DSP extension take a general register.
void set_arm_products(TargetInfo& machine, const FeatureSet& features) {
  auto has = [&](const char* feature) { return features.has(feature); };
  if (machine.arch == Arch::AArch64) {
    auto bits = [&](bool there) { return there ? machine.vector_bits : 0; };
    machine.unlike_dot4_bits = bits(has("i8mm"));
    machine.like_dot4_bits = bits(has("dotprod"));
    machine.bf16_dot2_bits = bits(has("bf16"));
    machine.dot2_bits = machine.vector_bits;
    return;
  }
  machine.integer_registers = has("thumb2") || !has("thumb-mode") ? 11 : 5;
  machine.dot2_bits = has("dsp") && has("v6") ? 32 : 0;
}

void set_other_facts(TargetInfo& machine, const FeatureSet& features) {
  auto has = [&](const char* feature) { return features.has(feature); };
  machine.has_f16_arithmetic = false;
  if (machine.arch == Arch::AArch64) {
    machine.vector_registers = 32;
    machine.has_float = machine.has_double = has("fp-armv8");
    machine.has_fma = machine.has_f16_conversion = machine.has_float;
    machine.has_f16_arithmetic = has("fullfp16");
    if (!has("neon")) machine.vector_bits = 0;
    machine.has_ieee_minimum = true;
    set_arm_products(machine, features);
  } else if (machine.arch == Arch::Arm) {
    machine.has_float = has("vfp2sp");
    machine.has_double = has("fp64");
    machine.has_fma = has("vfp4d16sp");
    machine.has_f16_conversion = has("fp16");
    machine.vector_registers = machine.has_float ? 32 : 8;
    machine.has_rounding = has("fp-armv8d16sp");
    machine.has_round_even = false;
    machine.has_integer_division = has(has("thumb-mode") ? "hwdiv" : "hwdiv-arm");
    machine.has_long_shifts = has("thumb2") || !has("thumb-mode");
    machine.has_leading_zeros = machine.has_long_shifts && has("v5t");
    set_arm_products(machine, features);
  } else {
    machine.has_float = machine.has_fma = has("f");
    machine.has_double = has("d");
    machine.has_f16_conversion = false;
    machine.has_rounding = has("zfa");
    machine.has_round_even = false;
    machine.vector_registers = 32;
    machine.integer_registers = 24;
  }
}

void set_cache_facts(TargetInfo& machine, const CpuRow* row) {
  machine.vector_bits = machine.arch == Arch::X86_64 ? 512 : machine.arch == Arch::AArch64 ? 128 : 0;
  if (!row) return;
  machine.vector_bits = row->vector_bits;
  machine.fma_latency = row->fma_latency;
  machine.fma_pipes = row->fma_pipes;
  machine.loads_per_cycle = row->loads_per_cycle;
  machine.l1_bytes = row->l1_kib << 10;
  machine.l2_bytes = row->l2_kib << 10;
  machine.l3_bytes = row->l3_kib << 10;
  machine.l2_bytes_per_cycle = row->l2_bytes_per_cycle;
  machine.l3_bytes_per_cycle = row->l3_bytes_per_cycle;
  machine.memory_bytes_per_cycle = row->memory_bytes_per_cycle;
  machine.memory_streams = row->memory_streams;
}

// The CPU and features that -mcpu names, in LLVM's words.
struct CpuName {
  std::string cpu, features;
  bool is_arm_architecture = false;
};

// "v8.2a" of "armv8.2-a"; empty for other names.
std::string arm_architecture(std::string_view name) {
  bool is_one = (name.starts_with("armv8") || name.starts_with("armv9")) && name.ends_with("-a");
  return is_one ? std::string(name.substr(3, name.size() - 5)) + "a" : "";
}

// The features that are part of a name, "a+b+c", come before the further ones.
CpuName split_cpu_name(std::string_view name, std::string_view features) {
  size_t end = std::min(name.find('+'), name.size());
  CpuName result{std::string(name.substr(0, end)), "", false};
  auto append = [&](std::string_view feature) {
    if (feature.empty()) return;
    if (!result.features.empty()) result.features += ',';
    result.features += feature;
  };
  if (std::string version = arm_architecture(result.cpu); !version.empty()) {
    result.cpu = "generic";
    result.is_arm_architecture = true;
    append("+" + version);
  }
  for (size_t next; end < name.size(); end = next) {
    next = std::min(name.find('+', end + 1), name.size());
    append(name.substr(end, next - end));
  }
  append(features);
  return result;
}

} // namespace

TargetInfo with_vectors_of(TargetInfo machine, const TargetInfo& widest) {
  FIRN_CHECK(machine.vector_bits > 0 && widest.vector_bits % machine.vector_bits == 0,
             "vectors of " + machine.cpu + " make none of " + widest.cpu);
  machine.vector_parts = widest.vector_bits / machine.vector_bits;
  machine.vector_bits = widest.vector_bits;
  return machine;
}

Expected<TargetInfo> find_target(std::string_view triple, std::string_view cpu, std::string_view features) {
  initialise_llvm_targets();
  const CpuName asked = split_cpu_name(cpu, features);
  if (triple.empty() && asked.is_arm_architecture) triple = "aarch64-unknown-linux-gnu";
  auto triple_found = choose_triple(triple, asked.cpu);
  if (!triple_found) return triple_found.error();
  const llvm::Triple& chosen = *triple_found;
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(chosen.str(), message);
  FIRN_CHECK(target, "LLVM has no target for a triple that Firn supports: " + message);
  TargetInfo machine;
  machine.triple = chosen.str();
  machine.arch = arch_of(chosen);
  machine.pointer_bits = chosen.isArch64Bit() ? 64 : 32;
  machine.cpu = asked.cpu.empty() ? default_cpu(chosen) : asked.cpu;
  // LLVM's generic x86 is one of 32 bits.
  if (machine.arch == Arch::X86_64 && machine.cpu == "generic") machine.cpu = "x86-64";
  std::string base = platform_features(chosen, machine.cpu);
  if (asked.cpu == "native") {
    llvm::Triple host_triple(llvm::sys::getDefaultTargetTriple());
    if (host_triple.getArch() != chosen.getArch()) {
      return usage_error("cpu 'native' needs a target of the host's architecture, not " + machine.triple);
    }
    machine.cpu = host_cpu(*target, machine.triple);
    base = host_features();
  }
  std::unique_ptr<llvm::MCSubtargetInfo> plain(target->createMCSubtargetInfo(machine.triple, "", ""));
  FIRN_CHECK(plain, "LLVM has no features for " + machine.triple);
  if (!plain->isCPUStringValid(machine.cpu)) return unknown_cpu(*target, *plain, machine);
  auto chosen_features = choose_features(*target, machine, base, asked.features);
  if (!chosen_features) return chosen_features.error();
  machine.features = chosen_features->text;

  const CpuRow* row = find_cpu_row(machine.cpu, machine.arch);
  set_cache_facts(machine, row);
  if (machine.arch == Arch::X86_64)
    set_x86_facts(machine, *chosen_features, row);
  else
    set_other_facts(machine, *chosen_features);
  // Programs of microcontrollers run without a system.
  if (chosen.getOS() == llvm::Triple::UnknownOS && machine.vector_bits <= 128 &&
      machine.arch != Arch::X86_64 && machine.arch != Arch::AArch64)
    machine.buffer_alignment = std::max(8, machine.vector_bits / 8);
  for (const CpuFeature& feature : cpu_features(machine.arch)) {
    if (chosen_features->has(feature.name)) machine.required_cpu_features |= uint64_t{1} << feature.bit;
  }
  return machine;
}

} // namespace firn
