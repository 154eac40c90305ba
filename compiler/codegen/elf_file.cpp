// ELF of both widths, little-endian. Sections keep their bytes and order; only the placeholder's header is
// pointed at the weights, which are appended, and the section headers move behind them.
#include "compiler/codegen/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace firn::codegen {

namespace {

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
};

Diagnostic internal(std::string text) {
  return {Fault::Internal, "generated object " + std::move(text)};
}

bool is_elf(std::span<const char> object) {
  return object.size() > sizeof(Elf32_Ehdr) && std::memcmp(object.data(), ELFMAG, SELFMAG) == 0 &&
         object[EI_DATA] == ELFDATA2LSB;
}

// Typed access to an object; LLVM's own output is trusted to be well formed.
template <class Elf> class View {
public:
  using Header = typename Elf::Header;
  using Section = typename Elf::Section;
  using Symbol = typename Elf::Symbol;
  explicit View(std::span<const char> object) : object_(object) {
    std::memcpy(&header, object.data(), sizeof header);
    sections.resize(header.e_shnum);
    std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof(Section));
    names_ = section_text(sections[header.e_shstrndx]);
    for (const Section& section : sections) {
      if (section.sh_type != SHT_SYMTAB) continue;
      symbols.resize(section.sh_size / sizeof(Symbol));
      std::memcpy(symbols.data(), object.data() + section.sh_offset, section.sh_size);
      symbol_names_ = section_text(sections[section.sh_link]);
    }
  }
  std::string name(const Section& section) const { return names_ + section.sh_name; }
  std::string name(const Symbol& symbol) const { return symbol_names_ + symbol.st_name; }

  Header header;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;

private:
  const char* section_text(const Section& section) const { return object_.data() + section.sh_offset; }
  std::span<const char> object_;
  const char* names_ = nullptr;
  const char* symbol_names_ = nullptr;
};

bool is_allowed(std::string_view symbol) {
  return symbol == "memcpy" || symbol == "memset" || symbol == "memmove" || symbol.starts_with("firn_rt1_");
}

template <class Elf>
Expected<ObjectFacts> inspect(std::span<const char> object, std::span<const std::string> kernel_symbols) {
  View<Elf> view(object);
  ObjectFacts facts;
  facts.object_bytes = static_cast<int64_t>(object.size());
  for (const auto& section : view.sections) {
    std::string name = view.name(section);
    int64_t size = static_cast<int64_t>(section.sh_size);
    for (std::string_view banned :
         {".init_array", ".ctors", ".fini_array", ".eh_frame", ".ARM.extab", ".ARM.exidx"}) {
      if (std::string_view(name).starts_with(banned)) return internal("has a section " + name);
    }
    if (!(section.sh_flags & SHF_ALLOC) || size == 0) continue;
    if (section.sh_flags & SHF_WRITE) {
      return internal("has " + std::to_string(size) + " bytes of writable data in " + name);
    }
    if (section.sh_flags & SHF_EXECINSTR)
      facts.text_bytes += size;
    else if (!std::string_view(name).starts_with(".lrodata.firn.") &&
             !std::string_view(name).starts_with(".rodata.firn.")) {
      facts.rodata_bytes += size;
    }
  }
  for (const auto& symbol : view.symbols) {
    std::string name = view.name(symbol);
    if (symbol.st_shndx == SHN_UNDEF && !name.empty()) {
      if (!is_allowed(name))
        return internal("needs the symbol '" + name + "', which nothing promises to be there");
      facts.undefined_symbols.push_back(name);
    }
    if ((symbol.st_info & 0xf) == STT_FUNC &&
        std::find(kernel_symbols.begin(), kernel_symbols.end(), name) != kernel_symbols.end()) {
      facts.kernel_text_bytes.emplace_back(name, static_cast<int64_t>(symbol.st_size));
    }
  }
  std::sort(facts.undefined_symbols.begin(), facts.undefined_symbols.end());
  return facts;
}

// A file under construction that counts its bytes and remembers the first failure.
class OutputFile {
public:
  explicit OutputFile(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {}
  ~OutputFile() {
    if (file_) std::fclose(file_);
  }
  OutputFile(const OutputFile&) = delete;
  void write(const void* data, size_t size) {
    good_ = good_ && file_ && std::fwrite(data, 1, size, file_) == size;
    at_ += static_cast<int64_t>(size);
  }
  void pad_to(int64_t position) {
    static constexpr char zeros[4096] = {};
    while (at_ < position) write(zeros, static_cast<size_t>(std::min<int64_t>(position - at_, sizeof zeros)));
  }
  int64_t at() const { return at_; }
  bool close() {
    good_ = file_ && std::fclose(file_) == 0 && good_;
    file_ = nullptr;
    return good_;
  }

private:
  std::FILE* file_;
  int64_t at_ = 0;
  bool good_ = true;
};

// Streams the constants in the order of their offsets, one at a time in memory.
void write_weights(OutputFile& file, const kernel::Program& program) {
  std::vector<const kernel::Constant*> order;
  for (const kernel::Constant& constant : program.constants) order.push_back(&constant);
  auto buffer = [&](const kernel::Constant* c) -> const kernel::Buffer& {
    return program.buffers[static_cast<size_t>(c->buffer)];
  };
  std::stable_sort(order.begin(), order.end(), [&](const kernel::Constant* a, const kernel::Constant* b) {
    return buffer(a).offset < buffer(b).offset;
  });
  int64_t start = file.at();
  for (const kernel::Constant* constant : order) {
    const kernel::Buffer& memory = buffer(constant);
    FIRN_CHECK(memory.offset >= file.at() - start, "constants overlap at '" + memory.name + "'");
    file.pad_to(start + memory.offset);
    auto bytes = std::make_unique<std::byte[]>(static_cast<size_t>(memory.bytes));
    constant->fill(std::span(bytes.get(), static_cast<size_t>(memory.bytes)));
    file.write(bytes.get(), static_cast<size_t>(memory.bytes));
  }
  FIRN_CHECK(file.at() - start <= program.weight_bytes, "constants exceed the size of the weights");
  file.pad_to(start + program.weight_bytes);
}

template <class Elf>
Expected<int64_t> write(std::span<const char> object, const std::string& path, const std::string& weights,
                        const kernel::Program& program) {
  View<Elf> view(object);
  OutputFile file(path);
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
  file.write(&view.header, sizeof view.header);
  file.write(object.data() + sizeof view.header, static_cast<size_t>(body_end) - sizeof view.header);
  if (weights_size > 0) {
    file.pad_to(weights_at);
    write_weights(file, program);
  }
  file.pad_to(static_cast<int64_t>(view.header.e_shoff));
  file.write(view.sections.data(), view.sections.size() * sizeof view.sections[0]);
  int64_t size = file.at();
  if (!file.close()) return usage_error("cannot write '" + path + "': " + std::strerror(errno));
  return size;
}

} // namespace

Expected<ObjectFacts> inspect_elf(std::span<const char> object, std::span<const std::string> kernel_symbols) {
  if (!is_elf(object)) return internal("is no little-endian ELF file");
  return object[EI_CLASS] == ELFCLASS64 ? inspect<Elf64>(object, kernel_symbols)
                                        : inspect<Elf32>(object, kernel_symbols);
}

Expected<int64_t> write_elf(std::span<const char> object, const std::string& path, const std::string& weights,
                            const kernel::Program& program) {
  return object[EI_CLASS] == ELFCLASS64 ? write<Elf64>(object, path, weights, program)
                                        : write<Elf32>(object, path, weights, program);
}

} // namespace firn::codegen
