// Loading refuses what it cannot run, and says why.
#include "tests/load/sample_object.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <elf.h>
#include <random>

using namespace firn;
using namespace firn::test;
using Catch::Contains;

namespace {

std::string refusal(const Bytes& object, const load::LoadOptions& options = sample_options()) {
  auto result = load::LoadedObject::load(object, options);
  if (result) return "";
  CHECK(result.error().fault == Fault::Usage);
  return result.error().message;
}

template <class Change> Bytes with_header(Change change) {
  Bytes object = sample_object();
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  change(header);
  std::memcpy(object.data(), &header, sizeof header);
  return object;
}

} // namespace

TEST_CASE("unknown symbols are named") {
  load::LoadOptions options = sample_options();
  options.symbols.erase("sample_outside");
  CHECK(refusal(sample_object(), options) ==
        "cannot load sample.o: it needs 'sample_outside', which nothing here defines");
  options.symbols.clear();
  CHECK(refusal(sample_object(), options) ==
        "cannot load sample.o: it needs 'memcpy', 'sample_outside', which nothing here defines");
}

TEST_CASE("no object") {
  CHECK(refusal({}) == "cannot load sample.o: it is no ELF object: it has 0 bytes");
  CHECK(refusal(Bytes(10000, std::byte{0x5a})) == "cannot load sample.o: it is no ELF object");
  Bytes header_alone = sample_object();
  std::fill(header_alone.begin() + 4, header_alone.end(), std::byte{0xff});
  CHECK_THAT(refusal(header_alone), Contains("no 64-bit little-endian ELF object"));
}

TEST_CASE("objects for other machines") {
  CHECK_THAT(refusal(with_header([](auto& header) { header.e_machine = EM_RISCV; })),
             Contains("it is for riscv"));
  CHECK_THAT(refusal(with_header([](auto& header) { header.e_machine = 12345; })),
             Contains("it is for machine 12345"));
  CHECK_THAT(refusal(with_header([](auto& header) { header.e_ident[EI_CLASS] = ELFCLASS32; })),
             Contains("no 64-bit"));
  CHECK_THAT(refusal(with_header([](auto& header) { header.e_ident[EI_DATA] = ELFDATA2MSB; })),
             Contains("no 64-bit"));
}

TEST_CASE("files that are linked already") {
  CHECK_THAT(refusal(with_header([](auto& header) { header.e_type = ET_DYN; })), Contains("it is linked"));
}

TEST_CASE("objects that are cut off anywhere") {
  const Bytes object = sample_object();
  for (size_t bytes = 0; bytes < object.size(); ++bytes) {
    INFO(bytes << " bytes");
    CHECK_THAT(refusal(Bytes(object.begin(), object.begin() + static_cast<std::ptrdiff_t>(bytes))),
               Contains("cannot load sample.o: it is "));
  }
}

TEST_CASE("tables that hold no bytes") {
  for (const char* section : {".text", ".rodata", ".symtab", ".strtab", ".eh_frame"}) {
    Bytes object = sample_object();
    INFO(section);
    CHECK_THAT(refusal(with_larger_section(object, section, uint64_t{1} << 40, /*stored=*/false)),
               Contains("cannot load"));
  }
}

TEST_CASE("an object with random damage loads or is refused") {
  const Bytes object = plain_sample_object();
  std::minstd_rand random(1);
  size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes damaged = object;
    for (int changes = 1 + i % 3; changes > 0; --changes)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random() % 256);
    refused += !refusal(damaged).empty();
  }
  CHECK(refused > 1000);
}

TEST_CASE("constants out of reach of the code") {
  CHECK_THAT(
      refusal(with_larger_section(sample_object(), ".rodata.sample", uint64_t{3} << 30, /*stored=*/false)),
      Contains("out of range"));
  CHECK_THAT(refusal(with_larger_section(sample_object(), ".lrodata.firn.sample", uint64_t{1} << 50,
                                         /*stored=*/false)),
             Contains("too large for any memory"));
  CHECK_THAT(refusal(with_larger_section(sample_object(), ".lrodata.firn.sample", uint64_t{1} << 45,
                                         /*stored=*/false)),
             Contains("the system does not give"));
}
