// ELF of both widths, little-endian. Sections keep their bytes and order; only the placeholder's header is
// pointed at the weights, which are appended, and the section headers move behind them.
#include "compiler/codegen/elf_file.h"

#include "compiler/kernel/weights_hash.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace firn::codegen {

namespace {

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
};

// Typed access to an object; LLVM's own output is trusted to be well formed.
template <class Elf> class View {
public:
  using Header = typename Elf::Header;
  using Section = typename Elf::Section;
  explicit View(std::span<const char> object) {
    std::memcpy(&header, object.data(), sizeof header);
    sections.resize(header.e_shnum);
    std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof(Section));
    names_ = object.data() + sections[header.e_shstrndx].sh_offset;
  }
  std::string name(const Section& section) const { return names_ + section.sh_name; }

  Header header;
  std::vector<Section> sections;

private:
  const char* names_ = nullptr;
};

// Counts bytes on their way to a sink, which gets small ones in blocks, and remembers the first failure.
class Writer {
public:
  explicit Writer(ByteSink& sink) : sink_(sink) {}
  void write(const void* data, size_t size) {
    at_ += static_cast<int64_t>(size);
    if (block_.size() + size > kBlockBytes) flush();
    std::string_view bytes(static_cast<const char*>(data), size);
    if (size > kBlockBytes)
      pass_on(bytes);
    else
      block_ += bytes;
  }
  void pad_to(int64_t position) {
    static constexpr char zeros[4096] = {};
    while (at_ < position) write(zeros, static_cast<size_t>(std::min<int64_t>(position - at_, sizeof zeros)));
  }
  int64_t at() const { return at_; }
  // Passes on what is left; the first failure.
  Result finish() {
    flush();
    return result_;
  }

private:
  static constexpr size_t kBlockBytes = size_t{1} << 16;

  void pass_on(std::string_view bytes) {
    if (result_) result_ = sink_.write(bytes);
  }
  void flush() {
    if (!block_.empty()) pass_on(block_);
    block_.clear();
  }

  ByteSink& sink_;
  std::string block_;
  int64_t at_ = 0;
  Result result_;
};

// Streams the constants in the order of their offsets, one at a time in memory. Returns their hash.
uint64_t write_weights(Writer& file, const kernel::Program& program) {
  int64_t start = file.at();
  kernel::WeightsHash hash;
  for (const kernel::Constant* constant : kernel::constants_by_offset(program)) {
    const kernel::Buffer& memory = program.buffers[static_cast<size_t>(constant->buffer)];
    FIRN_CHECK(memory.offset >= file.at() - start, "constants overlap at '" + memory.name + "'");
    file.pad_to(start + memory.offset);
    auto bytes = std::make_unique<std::byte[]>(static_cast<size_t>(memory.bytes));
    kernel::write_constant(*constant, std::span(bytes.get(), static_cast<size_t>(memory.bytes)));
    file.write(bytes.get(), static_cast<size_t>(memory.bytes));
    hash.add(memory.offset, {bytes.get(), static_cast<size_t>(memory.bytes)});
  }
  FIRN_CHECK(file.at() - start <= program.weight_bytes, "constants exceed the size of the weights");
  file.pad_to(start + program.weight_bytes);
  return hash.finish(program.weight_bytes);
}

template <class Elf>
Expected<WrittenElf> write(std::span<const char> object, ByteSink& sink, const std::string& weights,
                           const kernel::Program& program) {
  View<Elf> view(object);
  Writer file(sink);
  auto align = [](int64_t n, int64_t alignment) { return (n + alignment - 1) / alignment * alignment; };
  int64_t body_end = static_cast<int64_t>(view.header.e_shoff), weights_at = align(body_end, 64),
          weights_size = 0;
  for (auto& section : view.sections) {
    if (view.name(section) != weights || section.sh_type != SHT_PROGBITS) continue;
    weights_size = program.weight_bytes;
    section.sh_offset = static_cast<decltype(section.sh_offset)>(weights_at);
    section.sh_size = static_cast<decltype(section.sh_size)>(weights_size);
  }
  if (weights_size > 0xf0000000 && sizeof(view.header.e_shoff) == 4) {
    return usage_error("the weights of " + std::to_string(weights_size) + " bytes exceed a 32-bit object");
  }
  view.header.e_shoff = static_cast<decltype(view.header.e_shoff)>(align(weights_at + weights_size, 8));
  const size_t sections_size = view.sections.size() * sizeof view.sections[0];
  sink.expect(static_cast<size_t>(view.header.e_shoff) + sections_size);
  file.write(&view.header, sizeof view.header);
  file.write(object.data() + sizeof view.header, static_cast<size_t>(body_end) - sizeof view.header);
  uint64_t weights_hash = kernel::WeightsHash().finish(0);
  if (weights_size > 0) {
    file.pad_to(weights_at);
    weights_hash = write_weights(file, program);
  }
  file.pad_to(static_cast<int64_t>(view.header.e_shoff));
  file.write(view.sections.data(), sections_size);
  WrittenElf written{file.at(), weights_hash};
  if (Result done = file.finish(); !done) return done.error();
  return written;
}

} // namespace

Expected<WrittenElf> write_elf(std::span<const char> object, ByteSink& sink, const std::string& weights,
                               const kernel::Program& program) {
  return object[EI_CLASS] == ELFCLASS64 ? write<Elf64>(object, sink, weights, program)
                                        : write<Elf32>(object, sink, weights, program);
}

} // namespace firn::codegen
