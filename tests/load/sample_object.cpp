// See sample_object.h.
#include "tests/load/sample_object.h"

#include "compiler/support/mapped_file.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <elf.h>

namespace firn::test {
namespace {

int outside(int value) {
  return 10 * value;
}

Bytes read_bytes(const char* path) {
  auto file = MappedFile::open(path);
  REQUIRE(file);
  return {(*file)->bytes().begin(), (*file)->bytes().end()};
}

Elf64_Ehdr header_of(const std::byte* object) {
  Elf64_Ehdr header;
  std::memcpy(&header, object, sizeof header);
  return header;
}

// The offset of a section's header in the object.
size_t section_header(const std::byte* object, const std::string& name) {
  const Elf64_Ehdr header = header_of(object);
  auto at = [&](size_t i) { return static_cast<size_t>(header.e_shoff) + i * sizeof(Elf64_Shdr); };
  Elf64_Shdr names, section;
  std::memcpy(&names, object + at(header.e_shstrndx), sizeof names);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    std::memcpy(&section, object + at(i), sizeof section);
    if (name == reinterpret_cast<const char*>(object + names.sh_offset + section.sh_name)) return at(i);
  }
  FAIL("the sample has no section " << name);
  return 0;
}

template <class Change> void change_section(Bytes& object, const std::string& name, Change change) {
  const size_t at = section_header(object.data(), name);
  Elf64_Shdr section;
  std::memcpy(&section, object.data() + at, sizeof section);
  change(section);
  std::memcpy(object.data() + at, &section, sizeof section);
}

} // namespace

Bytes sample_object() {
  return read_bytes(FIRN_LOAD_SAMPLE);
}

Bytes plain_sample_object() {
  return read_bytes(FIRN_LOAD_PLAIN_SAMPLE);
}

Bytes with_larger_section(Bytes object, const std::string& name, uint64_t bytes, bool stored) {
  const size_t end = (object.size() + 63) / 64 * 64;
  if (stored) object.resize(end + bytes);
  change_section(object, name, [&](Elf64_Shdr& section) {
    if (stored) {
      std::memcpy(object.data() + end, object.data() + section.sh_offset, section.sh_size);
      section.sh_offset = end;
    } else {
      section.sh_type = SHT_NOBITS;
    }
    section.sh_size = bytes;
  });
  return object;
}

uint64_t stated_address(const std::byte* object, const std::string& name) {
  Elf64_Shdr section;
  std::memcpy(&section, object + section_header(object, name), sizeof section);
  return section.sh_addr;
}

load::LoadOptions sample_options() {
  load::LoadOptions options;
  options.name = "sample.o";
  options.symbols = {{"memcpy", reinterpret_cast<void*>(&std::memcpy)},
                     {"sample_outside", reinterpret_cast<void*>(&outside)}};
  return options;
}

load::LoadedObject loaded(const Bytes& object, const load::LoadOptions& options) {
  auto result = load::LoadedObject::load(object, options);
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

} // namespace firn::test
