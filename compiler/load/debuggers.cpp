// See debuggers.h.
#include "compiler/load/debuggers.h"

#include "compiler/load/link_context.h"

#include <cstdio>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>

// The interface of GDB, chapter "JIT Compilation Interface" of its manual: a debugger finds both symbols by
// these names and stops in the function. LLVM's library, or the program around this one, may define them too.
extern "C" {

struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};

__attribute__((weak)) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
__attribute__((weak, noinline)) void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
}

namespace firn::load {
namespace {

enum Action : uint32_t { kRegister = 1, kUnregister = 2 };

std::mutex& descriptor_lock() {
  static std::mutex lock;
  return lock;
}

void tell(Action action, jit_code_entry* entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_register_code();
}

// The headers and names have been checked by check_elf().
void write_addresses(std::span<std::byte> object, const std::map<std::string, uint64_t>& sections) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  auto at = [&](size_t index) { return object.data() + header.e_shoff + index * sizeof(Elf64_Shdr); };
  Elf64_Shdr names;
  std::memcpy(&names, at(header.e_shstrndx), sizeof names);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, at(i), sizeof section);
    const auto* name = reinterpret_cast<const char*>(object.data() + names.sh_offset + section.sh_name);
    auto found = sections.find(name);
    if (found == sections.end() || (section.sh_flags & SHF_ALLOC) == 0) continue;
    section.sh_addr = found->second;
    std::memcpy(at(i), &section, sizeof section);
  }
}

} // namespace

struct DebuggerEntry::Entry : jit_code_entry {};

DebuggerEntry::DebuggerEntry(std::span<const std::byte> object,
                             const std::map<std::string, uint64_t>& sections)
    : object_(object.begin(), object.end()), entry_(std::make_unique<Entry>()) {
  write_addresses(object_, sections);
  entry_->symfile_addr = reinterpret_cast<const char*>(object_.data());
  entry_->symfile_size = object_.size();
  std::lock_guard held(descriptor_lock());
  entry_->next_entry = __jit_debug_descriptor.first_entry;
  if (entry_->next_entry) entry_->next_entry->prev_entry = entry_.get();
  __jit_debug_descriptor.first_entry = entry_.get();
  tell(kRegister, entry_.get());
}

DebuggerEntry::~DebuggerEntry() {
  std::lock_guard held(descriptor_lock());
  if (entry_->next_entry) entry_->next_entry->prev_entry = entry_->prev_entry;
  (entry_->prev_entry ? entry_->prev_entry->next_entry : __jit_debug_descriptor.first_entry) =
      entry_->next_entry;
  tell(kUnregister, entry_.get());
}

void list_for_perf(std::span<const Function> functions) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  // Others may write to /tmp: a link that lies there already is not followed.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  std::FILE* file = descriptor < 0 ? nullptr : ::fdopen(descriptor, "a");
  if (!file) return;
  for (const Function& each : functions)
    std::fprintf(file, "%llx %llx %s\n", static_cast<unsigned long long>(each.address),
                 static_cast<unsigned long long>(each.bytes), each.name.c_str());
  std::fclose(file);
}

} // namespace firn::load
