// A fixed table, because a signal handler may neither allocate nor lock: an entry is filled before its kind
// says that it holds something. Writers hold signals back.
#include "compiler/support/unfinished.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firn {
namespace {

enum class Kind : int { Nothing, File, Folder, Child };

struct Entry {
  std::atomic<Kind> kind;
  pid_t child;
  char path[PATH_MAX];
};

constexpr int kEntries = 256;
Entry table[kEntries]; // zero: nothing

// Signals whose default is to end the process. Those of a crash come last: sanitizers handle them.
constexpr int kSignals[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU, SIGXFSZ,
                            SIGALRM, SIGILL, SIGABRT, SIGBUS,  SIGFPE,  SIGSEGV};

int note(Kind kind, const std::string& path, pid_t child) {
  if (path.size() >= sizeof table[0].path) return -1;
  SignalsHeld held;
  for (int i = 0; i < kEntries; ++i) {
    Entry& entry = table[i];
    if (entry.kind != Kind::Nothing) continue;
    std::memcpy(entry.path, path.c_str(), path.size() + 1);
    entry.child = child;
    entry.kind = kind;
    return i;
  }
  return -1;
}

void pause_briefly() {
  timespec pause{0, 10'000'000};
  ::nanosleep(&pause, nullptr);
}

// A group that does not end when told is killed after half a second; those that its leader started get a
// moment more: they are not ours to wait for, and are gone when nothing is left to signal. A child by itself
// is one of ours, which ends groups of its own first.
void await_child(pid_t child) {
  bool is_gone = false;
  for (int i = 0, max = child > 0 ? 300 : 50; i < max && !is_gone; ++i) {
    pid_t ended = ::waitpid(child, nullptr, WNOHANG);
    is_gone = ended > 0 || (ended < 0 && errno != EINTR);
    if (!is_gone) pause_briefly();
  }
  for (int i = 0; i < 5 && child < 0 && ::kill(child, 0) == 0; ++i) pause_briefly();
  if (is_gone && child > 0) return;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// A folder's entry as the kernel writes it; readdir() would allocate.
struct FolderEntry {
  uint64_t inode;
  int64_t next;
  unsigned short bytes;
  unsigned char type;
  char name[];
};

void remove_tree(int parent, const char* name, int depth = 0);

// Whether there was anything to remove.
bool remove_entries(int folder, int depth) {
  alignas(FolderEntry) char buffer[2048];
  bool any = false;
  for (;;) {
    long bytes = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (bytes <= 0) return any;
    for (long at = 0; at < bytes;) {
      auto* entry = reinterpret_cast<FolderEntry*>(buffer + at);
      at += entry->bytes;
      if (std::strcmp(entry->name, ".") == 0 || std::strcmp(entry->name, "..") == 0) continue;
      any = true;
      if (::unlinkat(folder, entry->name, 0) != 0) remove_tree(folder, entry->name, depth + 1);
    }
  }
}

// A folder and all that is in it. A second look finds what the first missed because the folder changed.
void remove_tree(int parent, const char* name, int depth) {
  constexpr int kMaxDepth = 8, kLooks = 4;
  int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  for (int look = 0; look < kLooks && depth < kMaxDepth && remove_entries(folder, depth); ++look)
    ::lseek(folder, 0, SEEK_SET);
  ::close(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

// SA_RESETHAND has set the default again: what was raised ends the process as if there were no handler.
void clean_and_die(int signal) {
  Unfinished::remove_all();
  ::raise(signal);
}

} // namespace

int Unfinished::note_file(const std::string& path) {
  return note(Kind::File, path, 0);
}

int Unfinished::note_folder(const std::string& path) {
  return note(Kind::Folder, path, 0);
}

int Unfinished::note_child(pid_t child) {
  return note(Kind::Child, "", child);
}

int Unfinished::note_group(pid_t leader) {
  return note(Kind::Child, "", -leader); // kill() and waitpid() name groups so
}

void Unfinished::forget(int number) {
  if (number >= 0) table[number].kind = Kind::Nothing;
}

void Unfinished::remove_all() {
  for (Entry& entry : table)
    if (entry.kind == Kind::Child) ::kill(entry.child, SIGTERM);
  for (Entry& entry : table)
    if (entry.kind == Kind::Child) await_child(entry.child);
  for (Entry& entry : table)
    if (entry.kind == Kind::File) ::unlink(entry.path);
  for (int i = kEntries; i-- > 0;)
    if (table[i].kind == Kind::Folder) remove_tree(AT_FDCWD, table[i].path);
}

void Unfinished::disown() {
  for (Entry& entry : table) entry.kind = Kind::Nothing;
}

void Unfinished::remove_all_on_signals() {
  // A stack of its own, for when the usual one has run over.
  alignas(16) static char memory[64 << 10];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  ::sigaltstack(&stack, nullptr);
  for (int signal : kSignals) {
    struct sigaction before {};
    // Signals that the parent ignores (nohup) or a sanitizer handles stay as they are.
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = clean_and_die;
    action.sa_flags = SA_RESETHAND | SA_ONSTACK;
    ::sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

SignalsHeld::SignalsHeld() {
  sigset_t held;
  ::sigemptyset(&held);
  for (int signal : kSignals)
    if (signal != SIGILL && signal != SIGABRT && signal != SIGBUS && signal != SIGFPE && signal != SIGSEGV)
      ::sigaddset(&held, signal);
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

SignalsHeld::~SignalsHeld() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

} // namespace firn
