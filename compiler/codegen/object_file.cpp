// ELF, COFF and Mach-O through LLVM's readers: sections by what they hold, symbols by what they need.
#include "compiler/codegen/object_file.h"

#include <llvm/BinaryFormat/COFF.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/COFF.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/MachO.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Object/SymbolSize.h>

#include <algorithm>

namespace firn::codegen {

namespace {

using llvm::object::ObjectFile;
using llvm::object::SectionRef;
using llvm::object::SymbolRef;

Diagnostic internal(std::string text) {
  return internal_error("generated object " + std::move(text));
}

// LLVM's own output is trusted to be well formed.
template <class T> T trusted(llvm::Expected<T> value) {
  FIRN_CHECK(bool(value), "LLVM cannot read its own object: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

// Allowed, beside the memory functions, is what the platform's own start-up code brings along: a marker that
// MSVC's linker wants in objects with floats, the probe of large frames on Windows, and Apple's memset of
// zeros.
bool is_allowed(std::string_view symbol, const ObjectFile& object) {
  if (symbol == "memcpy" || symbol == "memset" || symbol == "memmove" || symbol.starts_with("firn_rt2_"))
    return true;
  if (object.isCOFF()) return symbol == "_fltused" || symbol == "__chkstk" || symbol == "___chkstk_ms";
  return object.isMachO() && (symbol == "bzero" || symbol == "__bzero");
}

bool is_banned(std::string_view section) {
  static constexpr std::string_view banned[] = {
      ".init_array",     ".ctors",     ".fini_array",     ".eh_frame", ".ARM.extab", ".ARM.exidx", // ELF
      ".CRT$",           ".pdata",     ".xdata",                                                   // COFF
      "__mod_init_func", "__eh_frame", "__compact_unwind"};                                        // Mach-O
  return std::any_of(std::begin(banned), std::end(banned),
                     [&](std::string_view name) { return section.starts_with(name); });
}

struct SectionKind {
  bool loaded, writable, code;
};

SectionKind kind_of(const SectionRef& section, const ObjectFile& object) {
  if (object.isELF()) {
    uint64_t flags = llvm::object::ELFSectionRef(section).getFlags();
    return {(flags & llvm::ELF::SHF_ALLOC) != 0, (flags & llvm::ELF::SHF_WRITE) != 0,
            (flags & llvm::ELF::SHF_EXECINSTR) != 0};
  }
  if (const auto* coff = llvm::dyn_cast<llvm::object::COFFObjectFile>(&object)) {
    uint32_t flags = coff->getCOFFSection(section)->Characteristics;
    bool loaded = (flags & (llvm::COFF::IMAGE_SCN_LNK_INFO | llvm::COFF::IMAGE_SCN_LNK_REMOVE)) == 0;
    return {loaded, (flags & llvm::COFF::IMAGE_SCN_MEM_WRITE) != 0,
            (flags & llvm::COFF::IMAGE_SCN_CNT_CODE) != 0};
  }
  const auto& macho = llvm::cast<llvm::object::MachOObjectFile>(object);
  llvm::StringRef segment = macho.getSectionFinalSegmentName(section.getRawDataRefImpl());
  return {segment == "__TEXT" || segment.starts_with("__DATA"), segment == "__DATA", section.isText()};
}

bool is_weights(std::string_view section) {
  return section.starts_with(".lrodata.firn.") || section.starts_with(".rodata.firn.");
}

Result measure_sections(const ObjectFile& object, ObjectFacts& facts) {
  for (const SectionRef& section : object.sections()) {
    std::string name = trusted(section.getName()).str();
    if (is_banned(name)) return internal("has a section " + name);
    SectionKind kind = kind_of(section, object);
    int64_t size = static_cast<int64_t>(section.getSize());
    if (!kind.loaded || size == 0) continue;
    if (kind.writable) return internal("has " + std::to_string(size) + " bytes of writable data in " + name);
    if (kind.code)
      facts.text_bytes += size;
    else if (!is_weights(name))
      facts.rodata_bytes += size;
  }
  return {};
}

// The name as LLVM IR has it: Mach-O puts an underscore before each.
std::string plain_name(const SymbolRef& symbol, const ObjectFile& object) {
  llvm::StringRef name = trusted(symbol.getName());
  if (object.isMachO()) name.consume_front("_");
  return name.str();
}

Result gather_symbols(const ObjectFile& object, std::span<const std::string> kernel_symbols,
                      const std::set<std::string>& custom, ObjectFacts& facts) {
  for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(object)) {
    std::string name = plain_name(symbol, object);
    if ((trusted(symbol.getFlags()) & SymbolRef::SF_Undefined) && !name.empty()) {
      bool is_custom = custom.count(name) > 0;
      if (!is_allowed(name, object) && !is_custom)
        return internal("needs the symbol '" + name + "', which nothing promises to be there");
      facts.undefined_symbols.push_back(name);
      if (is_custom) facts.custom_symbols.push_back(name);
    } else if (std::find(kernel_symbols.begin(), kernel_symbols.end(), name) != kernel_symbols.end()) {
      facts.kernel_text_bytes.emplace_back(name, static_cast<int64_t>(size));
    }
  }
  std::sort(facts.undefined_symbols.begin(), facts.undefined_symbols.end());
  return {};
}

} // namespace

Expected<ObjectFacts> inspect_object(std::span<const char> object,
                                     std::span<const std::string> kernel_symbols, int64_t embedded_weights,
                                     const std::set<std::string>& custom) {
  llvm::MemoryBufferRef memory(llvm::StringRef(object.data(), object.size()), "object");
  std::unique_ptr<ObjectFile> file = trusted(ObjectFile::createObjectFile(memory));
  ObjectFacts facts;
  facts.object_bytes = static_cast<int64_t>(object.size());
  if (Result measured = measure_sections(*file, facts); !measured) return measured.error();
  if (Result gathered = gather_symbols(*file, kernel_symbols, custom, facts); !gathered)
    return gathered.error();
  facts.rodata_bytes -= embedded_weights;
  return facts;
}

} // namespace firn::codegen
