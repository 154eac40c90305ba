// A cache's folder: whole files or none, whatever happens to it.
#include "compiler/support/cache_folder.h"
#include "compiler/support/temporary_folder.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace firn;
namespace fs = std::filesystem;

namespace {

std::string random_bytes(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void keep(const CacheFolder& cache, const std::string& key, std::vector<std::string_view> pieces) {
  cache.keep(key, pieces);
}

std::optional<std::string> find(const CacheFolder& cache, const std::string& key) {
  auto found = cache.find(key);
  if (!found) return std::nullopt;
  CHECK(reinterpret_cast<uintptr_t>(found->bytes().data()) % 64 == 0);
  return std::string(reinterpret_cast<const char*>(found->bytes().data()), found->bytes().size());
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Scratch {
  TemporaryFolder folder = std::move(*TemporaryFolder::make());
  std::string path = folder.path() + "/a/cache";
  CacheFolder cache = *CacheFolder::open(path);
};

} // namespace

TEST_CASE("a cache gives what it was given") {
  Scratch scratch;
  CHECK_FALSE(find(scratch.cache, "none"));
  for (size_t size : {0, 1, 31, 32, 33, 63, 64, 4096, 100001}) {
    const std::string bytes = random_bytes(size, static_cast<unsigned>(size));
    std::string_view all = bytes;
    for (size_t cut : {size_t{0}, size / 3, size}) {
      keep(scratch.cache, "key", {all.substr(0, cut), all.substr(cut)});
      CHECK(find(scratch.cache, "key") == bytes);
    }
  }
  auto again = CacheFolder::open(scratch.path);
  REQUIRE(again);
  CHECK(find(*again, "key") == random_bytes(100001, 100001));
}

TEST_CASE("damaged files are not there") {
  Scratch scratch;
  keep(scratch.cache, "key", {random_bytes(300, 1)});
  const std::string file = scratch.path + "/key", whole = content(file);
  REQUIRE(whole.size() > 300);
  for (size_t size = 0; size < whole.size(); ++size) {
    write(file, whole.substr(0, size));
    CHECK_FALSE(find(scratch.cache, "key"));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= 32 && at < 64) continue; // padding
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write(file, damaged);
    INFO(at);
    CHECK_FALSE(find(scratch.cache, "key"));
  }
  write(file, whole + "x");
  CHECK_FALSE(find(scratch.cache, "key"));
  keep(scratch.cache, "key", {"new"});
  CHECK(find(scratch.cache, "key") == "new");
}

TEST_CASE("files and folders that others can write are not used") {
  Scratch scratch;
  keep(scratch.cache, "key", {"mine"});
  ::chmod((scratch.path + "/key").c_str(), 0666);
  CHECK_FALSE(find(scratch.cache, "key"));
  keep(scratch.cache, "key", {"mine again"});
  CHECK(find(scratch.cache, "key") == "mine again");
  fs::create_symlink(scratch.path + "/key", scratch.path + "/link");
  CHECK_FALSE(find(scratch.cache, "link"));
  fs::create_directory(scratch.path + "/folder");
  CHECK_FALSE(find(scratch.cache, "folder"));
  ::mkfifo((scratch.path + "/pipe").c_str(), 0600);
  CHECK_FALSE(find(scratch.cache, "pipe"));

  ::chmod(scratch.path.c_str(), 0777);
  CHECK_FALSE(CacheFolder::open(scratch.path));
  CHECK(CacheFolder::open(scratch.path).error().fault == Fault::Usage);
  fs::create_directory_symlink(scratch.path, scratch.folder.path() + "/link");
  CHECK_FALSE(CacheFolder::open(scratch.folder.path() + "/link"));
  write(scratch.folder.path() + "/file", "");
  CHECK_FALSE(CacheFolder::open(scratch.folder.path() + "/file"));
  CHECK_FALSE(CacheFolder::open("/proc/none/cache"));
}

TEST_CASE("a full disk keeps nothing and hurts nobody") {
  Scratch scratch;
  keep(scratch.cache, "small", {"old"});
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit {
      1000, 1000
    };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    keep(scratch.cache, "large", {random_bytes(5000, 2)});
    keep(scratch.cache, "small", {random_bytes(5000, 2)});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK_FALSE(find(scratch.cache, "large"));
  CHECK(find(scratch.cache, "small") == "old");
  CHECK(std::distance(fs::directory_iterator(scratch.path), {}) == 1); // no temporary file is left
}

TEST_CASE("writers at the same time, and such that are killed, leave whole files") {
  Scratch scratch;
  std::vector<pid_t> children;
  for (unsigned writer = 0; writer < 4; ++writer) {
    pid_t child = ::fork();
    if (child == 0)
      for (;;) keep(scratch.cache, "key", {random_bytes(200000, writer)});
    children.push_back(child);
  }
  int found = 0;
  while (found < 200)
    if (auto bytes = find(scratch.cache, "key")) {
      ++found;
      bool is_one = false;
      for (unsigned writer = 0; writer < 4; ++writer)
        is_one = is_one || *bytes == random_bytes(200000, writer);
      CHECK(is_one);
    }
  for (pid_t child : children) ::kill(child, SIGKILL);
  for (pid_t child : children) ::waitpid(child, nullptr, 0);
  CHECK(find(scratch.cache, "key"));
}

TEST_CASE("files that no cache wrote stay, however large they are") {
  TemporaryFolder folder = std::move(*TemporaryFolder::make());
  const std::string thesis = folder.path() + "/thesis", draft = folder.path() + "/draft.tmp";
  for (const std::string& path : {thesis, draft}) {
    write(path, random_bytes(20000, 3));
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(100));
  }
  auto cache = CacheFolder::open(folder.path(), 10000);
  REQUIRE(cache);
  for (const char* key : {"a", "b", "c"}) keep(*cache, key, {random_bytes(3000, 1)});
  CHECK(content(thesis).size() == 20000);
  CHECK(content(draft).size() == 20000);
  for (const char* key : {"a", "b", "c"}) CHECK(find(*cache, key));
}

TEST_CASE("what was not asked for the longest goes first") {
  TemporaryFolder folder = std::move(*TemporaryFolder::make());
  auto cache = CacheFolder::open(folder.path() + "/cache", 10000);
  REQUIRE(cache);
  auto age = [&](const char* key, int hours) {
    fs::last_write_time(folder.path() + "/cache/" + key,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  for (const char* key : {"a", "b", "c"}) keep(*cache, key, {random_bytes(3000, 1)});
  age("a", 3), age("b", 2), age("c", 1);
  CHECK(find(*cache, "a")); // and so it is the newest
  write(folder.path() + "/cache/.x.1.1.tmp", "left over");
  age(".x.1.1.tmp", 2);
  keep(*cache, "d", {random_bytes(3000, 1)});
  CHECK(find(*cache, "a"));
  CHECK_FALSE(find(*cache, "b"));
  CHECK(find(*cache, "c"));
  CHECK(find(*cache, "d"));
  CHECK_FALSE(fs::exists(folder.path() + "/cache/.x.1.1.tmp"));
}
