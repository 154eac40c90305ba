// LLVM knows what features imply each other; the rules here are about what it leaves to the caller, and would
// answer with a fatal error deep in instruction selection.
#include "compiler/target/feature_set.h"

#include "compiler/support/nearest.h"
#include "compiler/support/words.h"
#include "compiler/target/cpu_table.h"

#include <llvm/Support/Error.h>
#include <llvm/TargetParser/RISCVISAInfo.h>

#include <algorithm>
#include <span>

namespace firn {

namespace {

// A word of -mattr: a feature that is added, or taken away.
struct Item {
  bool on;
  std::string name;
};

std::vector<Item> split_items(std::string_view text) {
  std::vector<Item> items;
  for (std::string& name : split(text, ',')) {
    bool on = !name.starts_with('-');
    if (name.starts_with('+') || name.starts_with('-')) name.erase(0, 1);
    if (!name.empty()) items.push_back({on, std::move(name)});
  }
  return items;
}

bool mentions(const std::vector<Item>& items, bool on, std::string_view name) {
  return std::any_of(items.begin(), items.end(),
                     [&](const Item& item) { return item.on == on && item.name == name; });
}

// Names of LLVM's that choose conventions, modes or registers instead of instructions.
bool is_mode(std::string_view name) {
  static constexpr std::string_view names[] = {
      "16bit-mode",     "32bit-mode", "64bit-mode",   "64bit",        "32bit",
      "soft-float",     "thumb-mode", "noarm",        "long-calls",   "execute-only",
      "no-movt",        "e",          "save-restore", "strict-align", "big-endian-instructions",
      "tagged-globals", "nacl-trap",  "aclass",       "mclass",       "rclass"};
  static constexpr std::string_view prefixes[] = {"retpoline",   "lvi-",       "reserve-",
                                                  "call-saved-", "harden-sls", "read-tp-",
                                                  "tpidr",       "inline-asm", "experimental"};
  auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::find(std::begin(names), std::end(names), name) != std::end(names) ||
         std::any_of(std::begin(prefixes), std::end(prefixes), begins);
}

// Features whose instructions LLVM would use of itself, but which firn_rt2_check_cpu() cannot ask the CPU
// for. They are switched off.
std::span<const std::string_view> unchecked_features(Arch arch) {
  static constexpr std::string_view x86[] = {
      "fma4", "xop", "sse4a", "tbm",  "lwp", "avxifma", "avxneconvert", "avxvnniint8", "avxvnniint16",
      "egpr", "ndd", "nf",    "ccmp", "cf",  "zu",      "ppx",          "push2pop2"};
  static constexpr std::string_view arm64[] = {"cssc", "mops", "faminmax", "sve2p1", "sme"};
  if (arch == Arch::X86_64) return x86;
  if (arch == Arch::AArch64) return arm64;
  return {};
}

// Features without which the architecture's code does not work at all. Arch::Other is RISC-V.
std::span<const std::string_view> base_of(Arch arch) {
  static constexpr std::string_view x86[] = {"64bit", "cmov", "cx8", "sse2"};
  static constexpr std::string_view riscv[] = {"m"};
  if (arch == Arch::X86_64) return x86;
  if (arch == Arch::Other) return riscv;
  return {};
}

class Chooser {
public:
  Chooser(const llvm::Target& target, const Machine& machine, std::string_view base, std::string_view wanted)
      : target_(target), machine_(machine), items_(split_items(wanted)) {
    set_.text = base;
    for (const Item& item : items_) add(item.on, item.name);
  }

  Expected<FeatureSet> choose() {
    for (const Item& item : items_)
      if (Result known = check_name(item); !known) return known.error();
    refresh();
    if (machine_.arch == Arch::X86_64)
      if (Result closed = close_avx512(); !closed) return closed.error();
    if (Result fitting = check_architecture(); !fitting) return fitting.error();
    for (const Item& item : items_) {
      if (set_.has(item.name) != item.on)
        return usage_error(std::string("'") + (item.on ? "+" : "-") + item.name +
                           "' contradicts the features beside it, or what these need");
    }
    for (std::string_view name : unchecked_features(machine_.arch))
      if (set_.has(name)) add(false, std::string(name)), refresh();
    for (std::string_view name : base_of(machine_.arch)) {
      if (!set_.has(name))
        return usage_error("cpu '" + machine_.processor + "'" +
                           (items_.empty() ? "" : " with these features") + " lacks '" + std::string(name) +
                           "', without which Firn " + "has no code for " + machine_.triple);
    }
    if (set_.text.ends_with(',')) set_.text.pop_back();
    return std::move(set_);
  }

private:
  void add(bool on, const std::string& name) { set_.text += (on ? "+" : "-") + name + ","; }
  void refresh() {
    set_.subtarget.reset(target_.createMCSubtargetInfo(machine_.triple, machine_.processor, set_.text));
  }

  Result check_name(const Item& item) const {
    std::unique_ptr<llvm::MCSubtargetInfo> plain(target_.createMCSubtargetInfo(machine_.triple, "", ""));
    std::vector<std::string> known;
    std::span<const std::string_view> unchecked = unchecked_features(machine_.arch);
    bool is_unchecked = std::find(unchecked.begin(), unchecked.end(), item.name) != unchecked.end();
    for (const llvm::SubtargetFeatureKV& feature : plain->getAllProcessorFeatures())
      if (!is_mode(feature.Key) &&
          std::find(unchecked.begin(), unchecked.end(), feature.Key) == unchecked.end())
        known.emplace_back(feature.Key);
    if (is_mode(item.name))
      return usage_error("'" + item.name +
                         "' is a mode of the compiler, no feature of a CPU: -mattr does not take it");
    if (is_unchecked && item.on)
      return usage_error("cpu feature '" + item.name +
                         "' is not supported: a model's constructor could not tell whether the CPU has it");
    if (!is_unchecked && std::find(known.begin(), known.end(), item.name) == known.end()) {
      std::string near = nearest_words(item.name, known);
      return usage_error(
          "cpu feature '" + item.name + "' is not known for " + machine_.triple +
          (near.empty() ? "; -mattr takes names such as +avx512vnni,-fma" : "; did you mean " + near + "?"));
    }
    return {};
  }

  // Extensions that belong to another kind of the architecture, or exclude each other.
  Result check_architecture() const {
    for (const Item& item : items_) {
      bool microcontroller =
          item.name == "lob" || item.name.starts_with("mve") || item.name.starts_with("cde");
      if (item.on && machine_.arch == Arch::Arm && microcontroller && !set_.has("mclass"))
        return usage_error("'" + item.name + "' is an extension of Cortex-M, which " + machine_.triple +
                           " is not");
      if (item.on && machine_.arch == Arch::Other && item.name.starts_with("xcv") &&
          machine_.pointer_bits == 64)
        return usage_error("'" + item.name + "' is an extension of riscv32 alone");
    }
    if (machine_.arch != Arch::Other) return {};
    if (set_.has("32bit") && set_.has("64bit"))
      return usage_error("-mcpu or -mattr mix features of riscv32 and riscv64 for " + machine_.triple);
    std::vector<std::string> extensions;
    for (const llvm::SubtargetFeatureKV& feature : set_.subtarget->getAllProcessorFeatures()) {
      if (set_.has(feature.Key) && llvm::RISCVISAInfo::isSupportedExtensionFeature(feature.Key))
        extensions.push_back("+" + std::string(feature.Key));
    }
    auto parsed = llvm::RISCVISAInfo::parseFeatures(static_cast<unsigned>(machine_.pointer_bits), extensions);
    if (parsed) return {};
    return usage_error("-mattr for " + machine_.triple + ": " + llvm::toString(parsed.takeError()));
  }

  // AVX-512 is used as a whole or not at all: every CPU that has its foundation has the four others, but for
  // Xeon Phi, which gets code for AVX2. The width of 512 bits is a feature of its own for LLVM, which AVX10
  // may lack.
  Result close_avx512() {
    if (!set_.has("avx512f")) return {};
    bool asked = std::any_of(items_.begin(), items_.end(), [](const Item& item) {
      return item.on && (item.name.starts_with("avx512") || item.name.starts_with("avx10"));
    });
    for (const char* part : {"avx512bw", "avx512cd", "avx512dq", "avx512vl"}) {
      if (set_.has(part)) continue;
      if (mentions(items_, /*on=*/false, part))
        return usage_error(std::string("-mattr takes '") + part +
                           "' away, without which Firn does not use AVX-512; take " +
                           "'avx512f' away instead");
      add(asked, asked ? part : "avx512f");
      refresh();
      if (!asked) return {};
    }
    bool narrow = set_.has("avx10.1-256") || mentions(items_, /*on=*/false, "evex512");
    if (!narrow) add(true, "evex512"), refresh();
    return {};
  }

  const llvm::Target& target_;
  const Machine& machine_;
  std::vector<Item> items_;
  FeatureSet set_;
};

} // namespace

Expected<FeatureSet> choose_features(const llvm::Target& target, const Machine& machine,
                                     std::string_view base, std::string_view wanted) {
  return Chooser(target, machine, base, wanted).choose();
}

} // namespace firn
