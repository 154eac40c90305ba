// Turns triple, CPU and features into a TargetMachine: LLVM knows which features a CPU has, the table of
// cpu_table.cpp knows its caches and pipes.
#include "compiler/target/target_machine.h"

#include "compiler/target/cpu_table.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
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

Arch arch_of(const llvm::Triple& triple) {
  if (triple.getArch() == llvm::Triple::x86_64) return Arch::X86_64;
  if (triple.getArch() == llvm::Triple::aarch64) return Arch::AArch64;
  if (triple.getArch() == llvm::Triple::arm || triple.getArch() == llvm::Triple::thumb) return Arch::Arm;
  return Arch::Other;
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
  if (name.contains("v8m") || name.contains("v8.1m")) return "cortex-m33";
  return "generic";
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string cpu_choices(Arch arch) {
  std::vector<std::string> names;
  for (const CpuRow& row : cpu_table()) {
    if (row.arch == arch) names.emplace_back(row.name);
  }
  names.emplace_back("native");
  return join(names);
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
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// Checks the user's feature string against LLVM's list and completes it to "+a,-b".
Expected<std::string> check_features(std::string_view text, const llvm::MCSubtargetInfo& subtarget) {
  std::string result;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string item(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (item.empty()) continue;
    if (item[0] != '+' && item[0] != '-') item = "+" + item;
    bool known = false;
    for (const llvm::SubtargetFeatureKV& feature : subtarget.getAllProcessorFeatures()) {
      known |= item.compare(1, std::string::npos, feature.Key) == 0;
    }
    if (!known) {
      return usage_error("cpu feature '" + item.substr(1) + "' is not known for " +
                         subtarget.getTargetTriple().str() + "; -mattr takes names such as +avx512vnni,-fma");
    }
    result += (result.empty() ? "" : ",") + item;
  }
  return result;
}

void set_x86_facts(TargetMachine& machine, const llvm::MCSubtargetInfo& subtarget) {
  auto has = [&](const char* feature) { return subtarget.checkFeatures(std::string("+") + feature); };
  bool avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  machine.vector_bits = std::min(machine.vector_bits, avx512 ? 512 : has("avx") ? 256 : 128);
  machine.vector_registers = avx512 ? 32 : 16;
  machine.has_fma = has("fma") || avx512;
  machine.has_f16_conversion = has("f16c") || avx512;
  machine.has_f16_arithmetic = has("avx512fp16");
  machine.has_masked_memory = machine.has_embedded_broadcast = avx512;
}

void set_other_facts(TargetMachine& machine, const llvm::MCSubtargetInfo& subtarget) {
  auto has = [&](const char* feature) { return subtarget.checkFeatures(std::string("+") + feature); };
  machine.has_f16_arithmetic = false;
  if (machine.arch == Arch::AArch64) {
    machine.vector_registers = 32;
    machine.has_float = machine.has_double = has("fp-armv8");
    machine.has_fma = machine.has_f16_conversion = machine.has_float;
    machine.has_f16_arithmetic = has("fullfp16");
  } else if (machine.arch == Arch::Arm) {
    machine.has_float = has("vfp2sp");
    machine.has_double = has("fp64");
    machine.has_fma = has("vfp4d16sp");
    machine.has_f16_conversion = has("fp16");
    machine.vector_registers = machine.has_float ? 32 : 8;
  } else {
    machine.has_float = machine.has_fma = has("f");
    machine.has_double = has("d");
    machine.has_f16_conversion = false;
    machine.vector_registers = 32;
  }
}

void set_cache_facts(TargetMachine& machine, const CpuRow* row) {
  machine.vector_bits = machine.arch == Arch::X86_64 ? 512 : machine.arch == Arch::AArch64 ? 128 : 0;
  if (!row) return;
  machine.vector_bits = row->vector_bits;
  machine.fma_latency = row->fma_latency;
  machine.fma_pipes = row->fma_pipes;
  machine.l1_bytes = row->l1_kib << 10;
  machine.l2_bytes = row->l2_kib << 10;
  machine.l3_bytes = row->l3_kib << 10;
  machine.l2_bytes_per_cycle = row->l2_bytes_per_cycle;
  machine.l3_bytes_per_cycle = row->l3_bytes_per_cycle;
  machine.memory_bytes_per_cycle = row->memory_bytes_per_cycle;
}

// A CPU of another architecture than the host's brings its own triple, so that -mcpu=cortex-m4 says it all.
llvm::Triple choose_triple(std::string_view triple, std::string_view cpu) {
  if (!triple.empty()) return llvm::Triple(llvm::Triple::normalize(std::string(triple)));
  llvm::Triple host(llvm::Triple::normalize(llvm::sys::getDefaultTargetTriple()));
  if (!cpu.empty() && !find_cpu_row(cpu, arch_of(host))) {
    for (const CpuRow& row : cpu_table()) {
      if (row.name == cpu) return llvm::Triple(llvm::Triple::normalize(std::string(row.triple)));
    }
  }
  return host;
}

} // namespace

Expected<TargetMachine> find_target(std::string_view triple, std::string_view cpu,
                                    std::string_view features) {
  initialise_llvm_targets();
  llvm::Triple chosen = choose_triple(triple, cpu);
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(chosen.str(), message);
  if (!target) {
    return usage_error(
        "target '" + std::string(triple) +
        "' is not known; known are triples of x86_64, aarch64, arm, thumb, riscv32 and riscv64, such as "
        "x86_64-unknown-linux-gnu or thumbv7em-none-eabihf");
  }
  TargetMachine machine;
  machine.triple = chosen.str();
  machine.arch = arch_of(chosen);
  machine.pointer_bits = chosen.isArch64Bit() ? 64 : 32;
  machine.cpu = cpu.empty() ? default_cpu(chosen) : std::string(cpu);
  std::string host;
  if (cpu == "native") {
    llvm::Triple host_triple(llvm::sys::getDefaultTargetTriple());
    if (host_triple.getArch() != chosen.getArch()) {
      return usage_error("cpu 'native' needs a target of the host's architecture, not " + machine.triple);
    }
    machine.cpu = llvm::sys::getHostCPUName().str();
    host = host_features();
  }
  std::unique_ptr<llvm::MCSubtargetInfo> plain(target->createMCSubtargetInfo(machine.triple, "", ""));
  if (!plain || !plain->isCPUStringValid(machine.cpu)) {
    return usage_error("cpu '" + machine.cpu + "' is not known for " + machine.triple +
                       "; choices: " + cpu_choices(machine.arch));
  }
  Expected<std::string> extra = check_features(features, *plain);
  if (!extra) return extra.error();
  machine.features = host + (host.empty() || extra->empty() ? "" : ",") + *extra;
  // A bare riscv64 is the integer base alone; Linux's profile is what people mean.
  if (machine.cpu == "generic-rv64" && machine.features.empty()) machine.features = "+m,+a,+f,+d,+c";

  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(machine.triple, machine.cpu, machine.features));
  set_cache_facts(machine, find_cpu_row(machine.cpu, machine.arch));
  if (machine.arch == Arch::X86_64)
    set_x86_facts(machine, *subtarget);
  else
    set_other_facts(machine, *subtarget);
  for (const CpuFeature& feature : cpu_features(machine.arch)) {
    if (subtarget->checkFeatures("+" + std::string(feature.name))) {
      machine.required_cpu_features |= uint64_t{1} << feature.bit;
    }
  }
  return machine;
}

} // namespace firn
