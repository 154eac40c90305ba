// A relocatable ELF object in memory: sections with their relocations, and symbols. Of both widths,
// little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn::codegen {

struct Relocation {
  uint64_t offset = 0;
  uint32_t type = 0;
  size_t symbol = 0;
  int64_t addend = 0; // zero in objects whose sections hold the addends

  bool operator==(const Relocation&) const = default;
};

struct ObjectSection {
  std::string name;
  uint32_t type = 0;
  uint64_t flags = 0, alignment = 1, entry_bytes = 0;
  std::string bytes;
  std::vector<Relocation> relocations;

  bool operator==(const ObjectSection&) const = default;
};

// Stand for the section of a symbol that no section of the object defines.
inline constexpr size_t kUndefined = SIZE_MAX, kAbsolute = SIZE_MAX - 1;

struct ObjectSymbol {
  std::string name;
  uint8_t info = 0, other = 0; // binding and type; visibility
  size_t section = kUndefined; // number of a section
  uint64_t value = 0, bytes = 0;

  bool is_local() const { return info >> 4 == 0; }
  bool operator==(const ObjectSymbol&) const = default;
};

struct RelocatableObject {
  bool is_wide = true; // 64 bits
  uint8_t abi = 0;
  uint16_t machine = 0;
  uint32_t flags = 0;
  bool has_addends = true;             // relocations hold them
  std::vector<ObjectSection> sections; // all but the tables
  std::vector<ObjectSymbol> symbols;

  bool operator==(const RelocatableObject&) const = default;
};

// Reads an object that LLVM wrote. A failed check says that its tables are broken.
RelocatableObject read_object(std::span<const char> bytes);
// The object as a file's bytes. The same object gives the same bytes.
std::string write_object(const RelocatableObject& object);

} // namespace firn::codegen
