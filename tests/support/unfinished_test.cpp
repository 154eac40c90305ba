// A process that a signal ends leaves neither temporary files nor folders nor children behind.
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

using namespace firn;

namespace {

// Runs `work` in a child whose temporary files go to `folder`; the child then waits for a signal. Returns
// the number of the signal that ended it.
int end_by(int signal, const std::string& folder, void (*work)(const std::string& folder)) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("TMPDIR", folder.c_str(), 1);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGSEGV}) ::signal(number, SIG_DFL); // Catch's own
    Unfinished::disown(); // the folder is the parent's
    Unfinished::remove_all_on_signals();
    work(folder);
    (void)!::write(ends[1], "x", 1);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char ready = 0;
  REQUIRE(::read(ends[0], &ready, 1) == 1);
  CHECK_FALSE(std::filesystem::is_empty(folder));
  ::kill(child, signal);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::close(ends[0]);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

void stage_files(const std::string& folder) {
  auto* outputs = new OutputSet;
  (void)outputs->write(folder + "/a.o", "half of it");
  (void)outputs->write(folder + "/a.h", "");
}

void fill_folder(const std::string&) {
  auto* folder = new TemporaryFolder(std::move(*TemporaryFolder::make()));
  (void)folder->write("model.o", "x");
  (void)folder->write("firn/abi.h", "x");
}

void start_child(const std::string& folder) {
  stage_files(folder);
  pid_t child = ::fork();
  if (child == 0) {
    Unfinished::disown();
    for (;;) ::pause();
  }
  Unfinished::note_child(child);
}

} // namespace

TEST_CASE("a signal removes what is unfinished and ends the process as it would have") {
  auto made = TemporaryFolder::make();
  REQUIRE(made);
  const std::string& folder = made->path();
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGSEGV}) {
    CHECK(end_by(signal, folder, stage_files) == signal);
    CHECK(end_by(signal, folder, fill_folder) == signal);
    CHECK(std::filesystem::is_empty(folder));
  }
  CHECK(end_by(SIGTERM, folder, start_child) == SIGTERM);
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("a temporary folder is private and vanishes with what is in it") {
  std::string path;
  {
    auto folder = TemporaryFolder::make();
    REQUIRE(folder);
    path = folder->path();
    CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms::owner_all);
    REQUIRE(folder->write("inner/file", "x"));
    CHECK(std::filesystem::file_size(path + "/inner/file") == 1);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}
