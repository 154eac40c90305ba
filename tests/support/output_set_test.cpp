// Outputs are committed together: all new, or all as they were, and no temporary file stays behind.
#include "compiler/support/output_set.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace firn;

namespace {

// A fresh folder for one test case.
class Folder {
public:
  Folder() {
    std::string name = "firn-outputs-XXXXXX";
    path_ = (std::filesystem::temp_directory_path() / name).string();
    REQUIRE(::mkdtemp(path_.data()));
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  size_t count() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) count += entry.exists() ? 1 : 0;
    return count;
  }

private:
  std::string path_;
};

std::string content(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("nothing is in place before commit, everything after") {
  Folder folder;
  OutputSet outputs;
  REQUIRE(outputs.write(folder / "a.h", "one"));
  const Expected<int> staged = outputs.stage(folder / "a b.o");
  REQUIRE(staged);
  REQUIRE(::write(*staged, "two", 3) == 3);
  CHECK_FALSE(std::filesystem::exists(folder / "a.h"));
  REQUIRE(outputs.commit());
  CHECK(content(folder / "a.h") == "one");
  CHECK(content(folder / "a b.o") == "two");
  CHECK(folder.count() == 2);
}

TEST_CASE("what is not committed vanishes and leaves old files alone") {
  Folder folder;
  std::ofstream(folder / "a") << "old";
  {
    OutputSet outputs;
    REQUIRE(outputs.write(folder / "a", "new"));
  }
  CHECK(content(folder / "a") == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("a failing rename takes back the files before it") {
  Folder folder;
  std::ofstream(folder / "a") << "old";
  OutputSet outputs;
  REQUIRE(outputs.write(folder / "a", "new"));
  REQUIRE(outputs.write(folder / "b", "new"));
  REQUIRE(outputs.write(folder / "c", "new"));
  std::filesystem::create_directory(folder / "c"); // nothing can be renamed over a folder
  const Result result = outputs.commit();
  REQUIRE_FALSE(result);
  CHECK(result.error().fault == Fault::Usage);
  CHECK(content(folder / "a") == "old");
  CHECK_FALSE(std::filesystem::exists(folder / "b"));
  CHECK(folder.count() == 2);
}

TEST_CASE("unwritable places are usage errors with the path and the reason") {
  Folder folder;
  OutputSet outputs;
  const Result missing = outputs.write(folder / "no/a", "x");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message == "cannot write '" + folder / "no/a" + "': No such file or directory");
  CHECK_FALSE(outputs.stage(folder / "."));
  REQUIRE(outputs.stage(folder / "a"));
  CHECK_FALSE(outputs.stage(folder / "a"));
}

TEST_CASE("a link where a temporary name or the file is going to be is not followed") {
  Folder folder;
  std::ofstream(folder / "victim") << "old";
  std::filesystem::create_symlink(folder / "victim", folder / "a");
  // The names that a guess from the process's number gives.
  for (const char* kind : {"new", "old"})
    std::filesystem::create_symlink(folder / "victim",
                                    folder / (".a.firn-" + std::to_string(::getpid()) + "-" + kind));
  REQUIRE(write_file(folder / "a", "new"));
  CHECK(content(folder / "victim") == "old");
  CHECK(content(folder / "a") == "new");
  CHECK_FALSE(std::filesystem::is_symlink(folder / "a"));
}

TEST_CASE("temporary names differ from call to call") {
  Folder folder;
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) {
    OutputSet outputs;
    REQUIRE(outputs.stage(folder / "a"));
    for (const auto& entry : std::filesystem::directory_iterator(folder / "")) names.insert(entry.path());
  }
  CHECK(names.size() == 20);
}

TEST_CASE("permissions are those that the mask of the process leaves") {
  Folder folder;
  const mode_t before = ::umask(027);
  REQUIRE(write_file(folder / "a", "x"));
  ::umask(before);
  CHECK(std::filesystem::status(folder / "a").permissions() == std::filesystem::perms(0640));
}

TEST_CASE("devices and pipes are written to, not replaced") {
  Folder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(write_file(pipe, "text"));
  char text[8] = {};
  CHECK(::read(reader, text, sizeof text) == 4);
  ::close(reader);
  CHECK(std::filesystem::is_fifo(pipe));
  if (!std::filesystem::exists("/dev/full")) return;
  const Result full = write_file("/dev/full", "text");
  REQUIRE_FALSE(full);
  CHECK(full.error().message == "cannot write '/dev/full': No space left on device");
  CHECK(std::filesystem::is_character_file("/dev/full"));
}
