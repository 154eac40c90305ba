// See run_program.h.
#include "compiler/driver/run_program.h"

#include "compiler/support/unfinished.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace firn::driver {

// Waits for the end of a child that leads a process group.
static int wait_for(pid_t child, int seconds) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + std::chrono::seconds(seconds);
  for (bool limited = seconds > 0;;) {
    int status = 0;
    pid_t ended = ::waitpid(child, &status, limited ? WNOHANG : 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0) return -1;
    if (Clock::now() > deadline) {
      ::kill(-child, SIGKILL);
      limited = false;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

int run_program(const std::vector<std::string>& arguments, const std::string& log, int seconds) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // Compilers that are killed leave temporary files; they do so in the folder that goes.
  std::string temporary = "TMPDIR=" + std::filesystem::path(log).parent_path().string();
  std::vector<char*> environment{temporary.data()};
  for (char** entry = environ; *entry; ++entry)
    if (std::strncmp(*entry, "TMPDIR=", 7) != 0) environment.push_back(*entry);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failed, noted = -1;
  {
    SignalsHeld held;
    // The child does not hold signals back, and ends with all that it started: compilers start others.
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setsigmask(&attributes, &held.before());
    failed = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environment.data());
    ::posix_spawnattr_destroy(&attributes);
    if (failed == 0) noted = Unfinished::note_group(child);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int code = wait_for(child, seconds);
  Unfinished::forget(noted);
  return code;
}

} // namespace firn::driver
