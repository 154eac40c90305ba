// Walks through the header, the sections, the symbols and the relocations, in this order.
#include "compiler/load/elf_checks.h"

#include <llvm/ADT/bit.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <cstring>
#include <vector>

namespace firn::load {
namespace {

namespace elf = llvm::ELF;
using elf::Elf64_Ehdr, elf::Elf64_Rela, elf::Elf64_Shdr, elf::Elf64_Sym;

// The machine of an ELF header that this process can run.
uint16_t host_machine() {
  switch (llvm::Triple(llvm::sys::getProcessTriple()).getArch()) {
  case llvm::Triple::x86_64: return elf::EM_X86_64;
  case llvm::Triple::aarch64: return elf::EM_AARCH64;
  default: return elf::EM_NONE;
  }
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
  case elf::EM_X86_64: return "x86-64";
  case elf::EM_AARCH64: return "aarch64";
  case elf::EM_ARM: return "arm";
  case elf::EM_RISCV: return "riscv";
  case elf::EM_386: return "x86";
  default: return "machine " + std::to_string(machine);
  }
}

// Whether `bytes` from `offset` on lie in the first `whole` bytes, without overflow.
bool lies_within(uint64_t offset, uint64_t bytes, uint64_t whole) {
  return offset <= whole && bytes <= whole - offset;
}

class ElfChecks {
public:
  explicit ElfChecks(std::span<const std::byte> object) : object_(object) {}

  Result check() {
    if (Result checked = check_header(); !checked) return checked;
    if (Result checked = check_sections(); !checked) return checked;
    if (Result checked = check_symbols(); !checked) return checked;
    for (const Elf64_Shdr& section : sections_)
      if (section.sh_type == elf::SHT_RELA)
        if (Result checked = check_relocations(section); !checked) return checked;
    return {};
  }

private:
  template <class T> T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, object_.data() + offset, sizeof value);
    return value;
  }

  Result damaged(const std::string& what) const { return usage_error("it is damaged: " + what); }

  Result check_header() {
    if (object_.size() < sizeof(Elf64_Ehdr))
      return usage_error("it is no ELF object: it has " + std::to_string(object_.size()) + " bytes");
    header_ = read<Elf64_Ehdr>(0);
    if (!header_.checkMagic()) return usage_error("it is no ELF object");
    if (header_.getFileClass() != elf::ELFCLASS64 || header_.getDataEncoding() != elf::ELFDATA2LSB)
      return usage_error("it is no 64-bit little-endian ELF object");
    const uint16_t host = host_machine();
    if (header_.e_machine != host)
      return usage_error("it is for " + machine_name(header_.e_machine) + ", this process runs on " +
                         machine_name(host));
    if (header_.e_type != elf::ET_REL)
      return usage_error("it is linked: only relocatable objects can be loaded");
    return {};
  }

  Result check_sections() {
    const uint64_t count = header_.e_shnum;
    if (!lies_within(header_.e_shoff, count * sizeof(Elf64_Shdr), object_.size()))
      return usage_error("it is cut off: its table of sections ends behind its " +
                         std::to_string(object_.size()) + " bytes");
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= count)
      return damaged("it has no names of sections");
    for (uint64_t i = 0; i < count; ++i)
      sections_.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != elf::SHT_NOBITS && section.sh_type != elf::SHT_NULL &&
          !lies_within(section.sh_offset, section.sh_size, object_.size()))
        return usage_error("it is cut off: a section ends behind its " + std::to_string(object_.size()) +
                           " bytes");
      if (section.sh_addralign != 0 && !llvm::has_single_bit(section.sh_addralign))
        return damaged("an alignment is no power of two");
    }
    const Elf64_Shdr& names = sections_[header_.e_shstrndx];
    for (const Elf64_Shdr& section : sections_)
      if (!has_string(names, section.sh_name)) return damaged("a section has no name");
    return {};
  }

  // Whether a string begins at the offset in a table of strings, and ends in it.
  bool has_string(const Elf64_Shdr& table, uint64_t offset) const {
    return table.sh_type == elf::SHT_STRTAB && offset < table.sh_size &&
           object_[table.sh_offset + table.sh_size - 1] == std::byte{0};
  }

  template <class Entry> static bool is_table_of(const Elf64_Shdr& section) {
    return section.sh_entsize == sizeof(Entry) && section.sh_size % sizeof(Entry) == 0;
  }

  Result check_symbols() {
    for (size_t i = 0; i < sections_.size(); ++i)
      if (sections_[i].sh_type == elf::SHT_SYMTAB) {
        if (symbols_ != 0) return damaged("it has two tables of symbols");
        symbols_ = i;
      }
    const Elf64_Shdr& table = sections_[symbols_];
    if (symbols_ == 0 || !is_table_of<Elf64_Sym>(table) || table.sh_link >= sections_.size())
      return damaged("it has no table of symbols");
    symbol_count_ = table.sh_size / sizeof(Elf64_Sym);
    if (table.sh_info > symbol_count_) return damaged("it has fewer symbols than local ones");
    for (uint64_t i = 0; i < symbol_count_; ++i) {
      const auto symbol = read<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
      if (!has_string(sections_[table.sh_link], symbol.st_name)) return damaged("a symbol has no name");
      if (symbol.st_shndx == elf::SHN_UNDEF || symbol.st_shndx == elf::SHN_ABS ||
          symbol.st_shndx == elf::SHN_COMMON)
        continue;
      if (symbol.st_shndx >= sections_.size() ||
          !lies_within(symbol.st_value, symbol.st_size, sections_[symbol.st_shndx].sh_size))
        return damaged("a symbol lies outside its section");
    }
    return {};
  }

  Result check_relocations(const Elf64_Shdr& table) const {
    if (!is_table_of<Elf64_Rela>(table) || table.sh_link != symbols_ || table.sh_info == 0 ||
        table.sh_info >= sections_.size())
      return damaged("a table of relocations is for no section");
    const uint64_t target_bytes = sections_[table.sh_info].sh_size;
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Rela)) {
      const auto relocation = read<Elf64_Rela>(table.sh_offset + at);
      if (relocation.getSymbol() >= symbol_count_ || relocation.r_offset >= target_bytes)
        return damaged("a relocation lies outside its section");
    }
    return {};
  }

  std::span<const std::byte> object_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
  size_t symbols_ = 0; // the number of the section with the symbols
  uint64_t symbol_count_ = 0;
};

} // namespace

Result check_elf(std::span<const std::byte> object) {
  return ElfChecks(object).check();
}

} // namespace firn::load
