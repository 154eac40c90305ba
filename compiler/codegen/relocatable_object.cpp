// See relocatable_object.h.
#include "compiler/codegen/relocatable_object.h"

#include "compiler/support/diagnostic.h"

#include <elf.h>

#include <cstring>
#include <limits>
#include <map>
#include <unordered_map>

namespace firn::codegen {
namespace {

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
  using Rel = Elf32_Rel;
  using Rela = Elf32_Rela;
  static constexpr int kSymbolShift = 8;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
  using Rel = Elf64_Rel;
  using Rela = Elf64_Rela;
  static constexpr int kSymbolShift = 32;
};

bool is_table(uint32_t type) {
  return type == SHT_NULL || type == SHT_SYMTAB || type == SHT_STRTAB || type == SHT_REL || type == SHT_RELA;
}

template <class List> auto& checked(List& list, size_t number) {
  FIRN_CHECK(number < list.size(), "a number in an object is too large");
  return list[number];
}

template <class Elf> class Reader {
public:
  explicit Reader(std::span<const char> bytes) : bytes_(bytes), header_(at<typename Elf::Header>(0)) {
    for (size_t i = 0; i < header_.e_shnum; ++i)
      headers_.push_back(at<typename Elf::Section>(header_.e_shoff + i * sizeof(typename Elf::Section)));
  }

  RelocatableObject read() {
    object_.is_wide = sizeof(typename Elf::Header) == sizeof(Elf64_Ehdr);
    object_.abi = header_.e_ident[EI_OSABI];
    object_.machine = header_.e_machine;
    object_.flags = header_.e_flags;
    for (const auto& header : headers_) read_section(header);
    for (const auto& header : headers_)
      if (header.sh_type == SHT_SYMTAB) read_symbols(header);
    for (const auto& header : headers_) {
      if (header.sh_type == SHT_RELA) read_relocations<typename Elf::Rela>(header);
      if (header.sh_type == SHT_REL) read_relocations<typename Elf::Rel>(header);
    }
    return std::move(object_);
  }

private:
  using Section = typename Elf::Section;

  template <class T> T at(uint64_t offset) const {
    FIRN_CHECK(offset <= bytes_.size() && sizeof(T) <= bytes_.size() - offset, "an object is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string_view content(const Section& header) const {
    if (header.sh_type == SHT_NOBITS) return {};
    FIRN_CHECK(header.sh_offset <= bytes_.size() && header.sh_size <= bytes_.size() - header.sh_offset,
               "a section of an object is cut off");
    return {bytes_.data() + header.sh_offset, static_cast<size_t>(header.sh_size)};
  }
  std::string text(size_t table, uint64_t offset) const {
    std::string_view names = content(checked(headers_, table));
    FIRN_CHECK(offset < names.size(), "a name of an object is cut off");
    return std::string(names.substr(offset, names.find('\0', offset) - offset));
  }

  void read_section(const Section& header) {
    places_.push_back(is_table(header.sh_type) ? kUndefined : object_.sections.size());
    if (is_table(header.sh_type)) return;
    FIRN_CHECK(header.sh_type != SHT_NOBITS, "an object has a section without content");
    object_.sections.push_back({text(header_.e_shstrndx, header.sh_name),
                                header.sh_type,
                                header.sh_flags,
                                std::max<uint64_t>(header.sh_addralign, 1),
                                header.sh_entsize,
                                std::string(content(header)),
                                {}});
  }

  void read_symbols(const Section& header) {
    for (uint64_t offset = 0; offset < header.sh_size; offset += sizeof(typename Elf::Symbol)) {
      auto symbol = at<typename Elf::Symbol>(header.sh_offset + offset);
      size_t section = symbol.st_shndx == SHN_UNDEF ? kUndefined
                       : symbol.st_shndx == SHN_ABS ? kAbsolute
                                                    : checked(places_, symbol.st_shndx);
      object_.symbols.push_back({text(header.sh_link, symbol.st_name), symbol.st_info, symbol.st_other,
                                 section, symbol.st_value, symbol.st_size});
    }
  }

  template <class Entry> void read_relocations(const Section& header) {
    ObjectSection& section = checked(object_.sections, checked(places_, header.sh_info));
    for (uint64_t offset = 0; offset < header.sh_size; offset += sizeof(Entry)) {
      auto entry = at<Entry>(header.sh_offset + offset);
      Relocation relocation;
      relocation.offset = entry.r_offset;
      relocation.type = static_cast<uint32_t>(entry.r_info & ((uint64_t{1} << Elf::kSymbolShift) - 1));
      relocation.symbol = static_cast<size_t>(entry.r_info >> Elf::kSymbolShift);
      if constexpr (requires { entry.r_addend; }) relocation.addend = entry.r_addend;
      object_.has_addends = requires {
        entry.r_addend;
      };
      FIRN_CHECK(relocation.symbol < object_.symbols.size(), "a relocation of an object has no symbol");
      section.relocations.push_back(relocation);
    }
  }

  std::span<const char> bytes_;
  typename Elf::Header header_;
  std::vector<Section> headers_;
  std::vector<size_t> places_; // numbers of sections without tables
  RelocatableObject object_;
};

// The table of names, each once.
class Names {
public:
  uint32_t add(const std::string& name) {
    auto [found, is_new] = offsets_.try_emplace(name, static_cast<uint32_t>(bytes_.size()));
    if (is_new) bytes_.append(name.c_str(), name.size() + 1);
    return found->second;
  }
  const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_ = std::string(1, '\0');
  std::unordered_map<std::string, uint32_t> offsets_ = {{"", 0}};
};

template <class Elf> class FileWriter {
public:
  explicit FileWriter(const RelocatableObject& object) : object_(object) {}

  std::string write() {
    bytes_.resize(sizeof(typename Elf::Header));
    headers_.emplace_back();
    std::memset(&headers_[0], 0, sizeof(Section));
    for (const ObjectSection& section : object_.sections) write_section(section);
    const size_t symbols = count_headers();
    for (size_t i = 0; i < object_.sections.size(); ++i)
      if (!object_.sections[i].relocations.empty()) write_relocations(i, symbols);
    write_symbols();
    add_section(".strtab", SHT_STRTAB, 0, 1, 0, "");
    headers_.back().sh_size = static_cast<decltype(Section::sh_size)>(names_.bytes().size());
    bytes_ += names_.bytes();
    finish();
    return std::move(bytes_);
  }

private:
  using Section = typename Elf::Section;

  // The number of the table of symbols.
  size_t count_headers() const {
    size_t count = headers_.size();
    for (const ObjectSection& section : object_.sections) count += !section.relocations.empty();
    return count;
  }

  void add_section(const std::string& name, uint32_t type, uint64_t flags, uint64_t alignment,
                   uint64_t entry_bytes, std::string_view content) {
    while (bytes_.size() % alignment) bytes_.push_back('\0');
    Section header;
    std::memset(&header, 0, sizeof header);
    header.sh_name = names_.add(name);
    header.sh_type = type;
    header.sh_flags = static_cast<decltype(header.sh_flags)>(flags);
    header.sh_offset = static_cast<decltype(header.sh_offset)>(bytes_.size());
    header.sh_size = static_cast<decltype(header.sh_size)>(content.size());
    header.sh_addralign = static_cast<decltype(header.sh_addralign)>(alignment);
    header.sh_entsize = static_cast<decltype(header.sh_entsize)>(entry_bytes);
    headers_.push_back(header);
    bytes_ += content;
  }

  void write_section(const ObjectSection& section) {
    add_section(section.name, section.type, section.flags, section.alignment, section.entry_bytes,
                section.bytes);
  }

  template <class T> void append(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void write_relocations(size_t number, size_t symbols) {
    const ObjectSection& section = object_.sections[number];
    const bool addends = object_.has_addends;
    const size_t entry = addends ? sizeof(typename Elf::Rela) : sizeof(typename Elf::Rel);
    add_section((addends ? ".rela" : ".rel") + section.name, addends ? SHT_RELA : SHT_REL, SHF_INFO_LINK,
                sizeof(Section::sh_addralign), entry, "");
    Section& header = headers_.back();
    header.sh_size = static_cast<decltype(header.sh_size)>(section.relocations.size() * entry);
    header.sh_link = static_cast<uint32_t>(symbols);
    header.sh_info = static_cast<uint32_t>(number + 1);
    for (const Relocation& relocation : section.relocations) {
      typename Elf::Rela whole;
      whole.r_offset = static_cast<decltype(whole.r_offset)>(relocation.offset);
      whole.r_info = static_cast<decltype(whole.r_info)>(
          (static_cast<uint64_t>(relocation.symbol) << Elf::kSymbolShift) | relocation.type);
      whole.r_addend = static_cast<decltype(whole.r_addend)>(relocation.addend);
      if (addends)
        append(whole);
      else
        append(typename Elf::Rel{whole.r_offset, whole.r_info});
    }
  }

  void write_symbols() {
    const size_t entry = sizeof(typename Elf::Symbol);
    add_section(".symtab", SHT_SYMTAB, 0, sizeof(Section::sh_addralign), entry, "");
    Section& header = headers_.back();
    header.sh_size = static_cast<decltype(header.sh_size)>(object_.symbols.size() * entry);
    header.sh_link = static_cast<uint32_t>(headers_.size());
    size_t locals = 0;
    for (const ObjectSymbol& symbol : object_.symbols) {
      locals += symbol.is_local();
      typename Elf::Symbol written;
      written.st_name = names_.add(symbol.name);
      written.st_info = symbol.info;
      written.st_other = symbol.other;
      written.st_shndx = symbol.section == kUndefined  ? static_cast<uint16_t>(SHN_UNDEF)
                         : symbol.section == kAbsolute ? static_cast<uint16_t>(SHN_ABS)
                                                       : static_cast<uint16_t>(symbol.section + 1);
      written.st_value = static_cast<decltype(written.st_value)>(symbol.value);
      written.st_size = static_cast<decltype(written.st_size)>(symbol.bytes);
      append(written);
    }
    header.sh_info = static_cast<uint32_t>(locals);
  }

  void finish() {
    while (bytes_.size() % 8) bytes_.push_back('\0');
    typename Elf::Header header;
    std::memset(&header, 0, sizeof header);
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = object_.is_wide ? ELFCLASS64 : ELFCLASS32;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_ident[EI_OSABI] = object_.abi;
    header.e_type = ET_REL;
    header.e_machine = object_.machine;
    header.e_version = EV_CURRENT;
    header.e_flags = object_.flags;
    header.e_shoff = static_cast<decltype(header.e_shoff)>(bytes_.size());
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Section);
    header.e_shnum = static_cast<uint16_t>(headers_.size());
    header.e_shstrndx = static_cast<uint16_t>(headers_.size() - 1);
    std::memcpy(bytes_.data(), &header, sizeof header);
    for (const Section& section : headers_) append(section);
  }

  const RelocatableObject& object_;
  std::string bytes_;
  Names names_;
  std::vector<Section> headers_;
};

} // namespace

RelocatableObject read_object(std::span<const char> bytes) {
  FIRN_CHECK(bytes.size() > EI_CLASS, "an object is empty");
  return bytes[EI_CLASS] == ELFCLASS64 ? Reader<Elf64>(bytes).read() : Reader<Elf32>(bytes).read();
}

std::string write_object(const RelocatableObject& object) {
  return object.is_wide ? FileWriter<Elf64>(object).write() : FileWriter<Elf32>(object).write();
}

} // namespace firn::codegen
