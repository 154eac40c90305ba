// Outputs are committed together: all new, or all as they were, and no temporary file stays behind.
#include "compiler/artifact/output_set.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace firn;
using namespace firn::artifact;

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
  const Expected<std::string> staged = outputs.stage(folder / "a b.o");
  REQUIRE(staged);
  std::ofstream(*staged) << "two";
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
