// See build_id.h.
#include "compiler/codegen/build_id.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/MC/TargetRegistry.h>

#include <chrono>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace firn::codegen {
namespace {

// A file of code in this process, which an address lies in.
struct LoadedFile {
  uintptr_t address;
  std::string path, build_id;
};

// The content of the note with the build id among a file's notes; empty if there is none.
std::string_view find_build_id(std::string_view notes) {
  auto aligned = [](size_t n) { return (n + 3) / 4 * 4; };
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const size_t name = sizeof note, content = name + aligned(note.n_namesz),
                 end = content + aligned(note.n_descsz);
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(name, 4) == std::string_view("GNU\0", 4))
      return notes.substr(content, note.n_descsz);
    notes.remove_prefix(end);
  }
  return {};
}

int note_file(dl_phdr_info* info, size_t, void* data) {
  auto& file = *static_cast<LoadedFile*>(data);
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    holds = holds || (header.p_type == PT_LOAD && file.address - begin < header.p_memsz);
  }
  if (!holds) return 0;
  file.path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_NOTE && file.build_id.empty())
      file.build_id =
          find_build_id({reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz});
  }
  return 1;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string id_of_file_with(const void* address) {
  LoadedFile file{reinterpret_cast<uintptr_t>(address), "", ""};
  ::dl_iterate_phdr(note_file, &file);
  std::string id = hex(file.build_id);
  struct stat status {};
  if (!file.path.empty() && ::stat(file.path.c_str(), &status) == 0)
    id += " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
          std::to_string(status.st_mtim.tv_nsec);
  if (!id.empty()) return id;
  return "process " + std::to_string(::getpid()) + " at " +
         std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
}

} // namespace

const std::string& build_id() {
  static const std::string id =
      "firn " + id_of_file_with(reinterpret_cast<const void*>(&note_file)) +
      "\nllvm " LLVM_VERSION_STRING " " +
      id_of_file_with(reinterpret_cast<const void*>(&llvm::TargetRegistry::printRegisteredTargetsForVersion));
  return id;
}

} // namespace firn::codegen
