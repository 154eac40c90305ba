// Turns triple, CPU and features into a Machine: LLVM knows which features a CPU has, the table of
// cpu_table.cpp knows its caches and pipes.
#include "compiler/target/machine.h"

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
                       const Machine& machine) {
  std::vector<std::string> names{"native"};
  for (const llvm::SubtargetSubTypeKV& cpu : plain.getAllProcessorDescriptions()) {
    Machine candidate = machine;
    candidate.processor = cpu.Key;
    if (choose_features(target, candidate, platform_features(plain.getTargetTriple(), cpu.Key), ""))
      names.emplace_back(cpu.Key);
  }
  std::string near = nearest_words(machine.processor, names);
  return usage_error("cpu '" + machine.processor + "' is not known for " + machine.triple +
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

void set_x86_facts(Machine& machine, const FeatureSet& features, const CpuRow* row) {
  auto has = [&](const char* feature) { return features.has(feature); };
  bool avx512 = has("avx512f"), wide = avx512 && has("evex512");
  machine.cpu.vector_bits = std::min(machine.cpu.vector_bits, wide ? 512 : has("avx") ? 256 : 128);
  // A pipe for wider vectors than this machine has counts as two of half the width, for products and for
  // loads.
  if (row && machine.cpu.vector_bits < row->vector_bits) {
    machine.cpu.fma_pipes = std::max(2, machine.cpu.fma_pipes);
    machine.cpu.loads_per_cycle = std::max(2.0, machine.cpu.loads_per_cycle);
  }
  machine.cpu.vector_registers = avx512 ? 32 : 16;
  machine.cpu.has_fma = has("fma") || avx512;
  machine.cpu.has_f16_conversion = has("f16c") || avx512;
  machine.cpu.has_f16_arithmetic = has("avx512fp16");
  machine.cpu.has_masked_memory = machine.cpu.has_embedded_broadcast = wide;
  if (wide && has("avx512bw")) machine.cpu.narrowed_together = 4;
  int bits = machine.cpu.vector_bits, max = has("avx512vnni") && wide ? 512 : 256;
  machine.cpu.unlike_dot4_bits = has("avxvnni") || has("avx512vnni") ? std::min(bits, max) : 0;
  machine.cpu.dot2_bits = std::min(bits, wide ? 512 : has("avx2") ? 256 : 128);
  machine.cpu.byte_pair_bits = has("ssse3") ? machine.cpu.dot2_bits : 0;
  bool pairs = has("avx512bf16") && !(row && row->slow_bf16_pairs);
  machine.cpu.bf16_dot2_bits = pairs ? std::min(bits, wide ? 512 : 256) : 0;
  machine.cpu.bf16_rounding_bits = has("avx512bf16") ? std::min(bits, wide ? 512 : 256) : 0;
  // The runtime asks Linux for the tile registers (runtime/cpu_features.cpp).
  bool is_linux = llvm::Triple(machine.triple).isOSLinux();
  machine.cpu.has_tile_matrices = is_linux && wide && has("amx-int8") && has("amx-bf16");
  machine.cpu.has_word_tables = wide && machine.cpu.vector_bits == 512;
  machine.cpu.has_rounding = machine.cpu.has_round_even = has("sse4.1");
  machine.cpu.has_reciprocal_estimate = machine.cpu.vector_bits >= 512 && has("avx512vl");
  machine.cpu.has_byte_tables = has("avx512vbmi") && wide;
}

// Products of several steps on ARM; those of Cortex-M's DSP extension take a general register.
void set_arm_products(Machine& machine, const FeatureSet& features) {
  auto has = [&](const char* feature) { return features.has(feature); };
  if (machine.arch == Arch::AArch64) {
    auto bits = [&](bool there) { return there ? machine.cpu.vector_bits : 0; };
    machine.cpu.unlike_dot4_bits = bits(has("i8mm"));
    machine.cpu.like_dot4_bits = bits(has("dotprod"));
    machine.cpu.bf16_dot2_bits = bits(has("bf16"));
    machine.cpu.dot2_bits = machine.cpu.vector_bits;
    return;
  }
  machine.cpu.integer_registers = has("thumb2") || !has("thumb-mode") ? 11 : 5;
  machine.cpu.dot2_bits = has("dsp") && has("v6") ? 32 : 0;
}

// MVE (Helium) has eight registers, no elements of 64 bits and no lane that sums the products of its bytes:
// the products of all lanes are added to a general register. A CPU that has it without floats is one without
// vectors here.
void set_mve_facts(Machine& machine, const FeatureSet& features) {
  if (!features.has("mve.fp")) {
    machine.cpu.vector_bits = 0;
    return;
  }
  machine.cpu.vector_bits = 128;
  machine.cpu.vector_registers = 8;
  machine.cpu.has_masked_memory = machine.cpu.has_scalar_operands = true;
  machine.cpu.vector_element_bits = 32;
  machine.cpu.has_f16_conversion = false; // LLVM 19 converts pairs of lanes alone
  machine.cpu.reducing_dot_bits = 128;
  machine.cpu.dot2_bits = 0;
}

void set_other_facts(Machine& machine, const FeatureSet& features) {
  auto has = [&](const char* feature) { return features.has(feature); };
  machine.cpu.has_f16_arithmetic = false;
  if (machine.arch == Arch::AArch64) {
    machine.cpu.vector_registers = 32;
    machine.cpu.has_float = machine.cpu.has_double = has("fp-armv8");
    machine.cpu.has_fma = machine.cpu.has_f16_conversion = machine.cpu.has_float;
    machine.cpu.has_f16_arithmetic = has("fullfp16");
    if (!has("neon")) machine.cpu.vector_bits = 0;
    machine.cpu.has_ieee_minimum = true;
    set_arm_products(machine, features);
  } else if (machine.arch == Arch::Arm) {
    machine.cpu.has_float = has("vfp2sp");
    machine.cpu.has_double = has("fp64");
    machine.cpu.has_fma = has("vfp4d16sp");
    machine.cpu.has_f16_conversion = has("fp16");
    machine.cpu.vector_registers = machine.cpu.has_float ? 32 : 8;
    machine.cpu.has_rounding = has("fp-armv8d16sp");
    machine.cpu.has_round_even = false;
    machine.cpu.has_integer_division = has(has("thumb-mode") ? "hwdiv" : "hwdiv-arm");
    machine.cpu.has_long_shifts = has("thumb2") || !has("thumb-mode");
    machine.cpu.has_leading_zeros = machine.cpu.has_long_shifts && has("v5t");
    set_arm_products(machine, features);
    set_mve_facts(machine, features);
  } else {
    machine.cpu.has_float = machine.cpu.has_fma = has("f");
    machine.cpu.has_double = has("d");
    machine.cpu.has_f16_conversion = false;
    machine.cpu.has_rounding = has("zfa");
    machine.cpu.has_round_even = false;
    machine.cpu.vector_registers = 32;
    machine.cpu.integer_registers = 24;
  }
}

void set_cache_facts(Machine& machine, const CpuRow* row) {
  machine.cpu.vector_bits = machine.arch == Arch::X86_64 ? 512 : machine.arch == Arch::AArch64 ? 128 : 0;
  if (!row) return;
  machine.cpu.vector_bits = row->vector_bits;
  machine.cpu.fma_latency = row->fma_latency;
  machine.cpu.fma_pipes = row->fma_pipes;
  machine.cpu.loads_per_cycle = row->loads_per_cycle;
  machine.cpu.l1_bytes = row->l1_kib << 10;
  machine.cpu.l2_bytes = row->l2_kib << 10;
  machine.cpu.l3_bytes = row->l3_kib << 10;
  machine.cpu.l2_bytes_per_cycle = row->l2_bytes_per_cycle;
  machine.cpu.l3_bytes_per_cycle = row->l3_bytes_per_cycle;
  machine.cpu.memory_bytes_per_cycle = row->memory_bytes_per_cycle;
  machine.cpu.memory_streams = row->memory_streams;
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

Machine with_vectors_of(Machine machine, const Machine& widest) {
  FIRN_CHECK(machine.cpu.vector_bits > 0 && widest.cpu.vector_bits % machine.cpu.vector_bits == 0,
             "vectors of " + machine.processor + " make none of " + widest.processor);
  machine.cpu.vector_parts = widest.cpu.vector_bits / machine.cpu.vector_bits;
  machine.cpu.vector_bits = widest.cpu.vector_bits;
  return machine;
}

Expected<Machine> find_target(std::string_view triple, std::string_view cpu, std::string_view features) {
  initialise_llvm_targets();
  const CpuName asked = split_cpu_name(cpu, features);
  if (triple.empty() && asked.is_arm_architecture) triple = "aarch64-unknown-linux-gnu";
  auto triple_found = choose_triple(triple, asked.cpu);
  if (!triple_found) return triple_found.error();
  const llvm::Triple& chosen = *triple_found;
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(chosen.str(), message);
  FIRN_CHECK(target, "LLVM has no target for a triple that Firn supports: " + message);
  Machine machine;
  machine.triple = chosen.str();
  machine.arch = arch_of(chosen);
  machine.pointer_bits = chosen.isArch64Bit() ? 64 : 32;
  machine.processor = asked.cpu.empty() ? default_cpu(chosen) : asked.cpu;
  // LLVM's generic x86 is one of 32 bits.
  if (machine.arch == Arch::X86_64 && machine.processor == "generic") machine.processor = "x86-64";
  std::string base = platform_features(chosen, machine.processor);
  if (asked.cpu == "native") {
    llvm::Triple host_triple(llvm::sys::getDefaultTargetTriple());
    if (host_triple.getArch() != chosen.getArch()) {
      return usage_error("cpu 'native' needs a target of the host's architecture, not " + machine.triple);
    }
    machine.processor = host_cpu(*target, machine.triple);
    base = host_features();
  }
  std::unique_ptr<llvm::MCSubtargetInfo> plain(target->createMCSubtargetInfo(machine.triple, "", ""));
  FIRN_CHECK(plain, "LLVM has no features for " + machine.triple);
  if (!plain->isCPUStringValid(machine.processor)) return unknown_cpu(*target, *plain, machine);
  auto chosen_features = choose_features(*target, machine, base, asked.features);
  if (!chosen_features) return chosen_features.error();
  machine.features = chosen_features->text;

  const CpuRow* row = find_cpu_row(machine.processor, machine.arch);
  set_cache_facts(machine, row);
  if (machine.arch == Arch::X86_64)
    set_x86_facts(machine, *chosen_features, row);
  else
    set_other_facts(machine, *chosen_features);
  // Programs of microcontrollers run without a system.
  if (chosen.getOS() == llvm::Triple::UnknownOS && machine.cpu.vector_bits <= 128 &&
      machine.arch != Arch::X86_64 && machine.arch != Arch::AArch64)
    machine.buffer_alignment = std::max(8, machine.cpu.vector_bits / 8);
  for (const CpuFeature& feature : cpu_features(machine.arch)) {
    if (chosen_features->has(feature.name)) machine.required_cpu_features |= uint64_t{1} << feature.bit;
  }
  return machine;
}

} // namespace firn
