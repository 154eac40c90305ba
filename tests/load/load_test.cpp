// Code in memory runs, reaches its constants however large they are, and leaves nothing behind.
#include "tests/load/sample_object.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace firn;
using namespace firn::test;

extern "C" const void* _Unwind_Find_FDE(void* address, void* bases);

namespace {

// The permissions of the page at an address, as /proc/self/maps has them: "r-xp".
std::string permissions_at(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const uint64_t begin = std::strtoull(line.c_str(), &end, 16), behind = std::strtoull(end + 1, &end, 16);
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (begin <= at && at < behind) return line.substr(static_cast<size_t>(end - line.c_str()) + 1, 4);
  }
  return "";
}

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

bool can_unwind(char* address) {
  void* bases[3] = {};
  return _Unwind_Find_FDE(address, bases) != nullptr;
}

} // namespace

TEST_CASE("functions of a loaded object run") {
  const load::LoadedObject object = loaded(sample_object());
  CHECK(function<int(int, int)>(object, "sample_add")(2, 3) == 5);
  CHECK(function<int(unsigned)>(object, "sample_square")(7) == 49);
  CHECK(function<int(int)>(object, "sample_call")(4) == 41);
  CHECK(function<int()>(object, "sample_count")() == 103);
  CHECK(function<int()>(object, "sample_count")() == 106);
  char to[300] = {}, from[300];
  std::memset(from, 7, sizeof from);
  function<void(void*, const void*, size_t)>(object, "sample_copy")(to, from, sizeof from);
  CHECK(std::memcmp(to, from, sizeof from) == 0);
  CHECK(object.symbol("sample_zeros"));
  CHECK_FALSE(object.symbol("sample_large")); // local
  CHECK_FALSE(object.symbol("sample_outside"));
}

TEST_CASE("two copies of an object have variables of their own, and moves keep them") {
  load::LoadedObject first = loaded(sample_object()), second = loaded(sample_object());
  CHECK(function<int()>(first, "sample_count")() == 103);
  CHECK(function<int()>(second, "sample_count")() == 103);
  first = std::move(second);
  const load::LoadedObject third = std::move(first);
  CHECK(function<int()>(third, "sample_count")() == 106);
}

TEST_CASE("pages are never writable and executable") {
  const load::LoadedObject object = loaded(sample_object());
  CHECK(permissions_at(object.symbol("sample_add")) == "r-xp");
  CHECK(permissions_at(object.symbol("sample_zeros")) == "rw-p");
  CHECK(permissions_at(function<const unsigned char*()>(object, "sample_weights")()) == "r--p");
  CHECK(permissions_at(function<const unsigned char*()>(object, "sample_constants")()) == "r--p");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) CHECK(line.find("rwx") == line.npos);
}

TEST_CASE("an object with more than 100 MB of constants") {
  const uint64_t bytes = 120 << 20;
  Bytes file = with_larger_section(sample_object(), ".lrodata.firn.sample", bytes, /*stored=*/true);
  file.back() = std::byte{99};
  const load::LoadedObject object = loaded(file);
  file = {};
  const unsigned char* weights = function<const unsigned char*()>(object, "sample_weights")();
  CHECK(reinterpret_cast<uintptr_t>(weights) % 64 == 0);
  CHECK(weights[0] == 42);
  CHECK(weights[bytes - 1] == 99);
  CHECK(function<int(unsigned)>(object, "sample_square")(5) == 25);
  CHECK(function<int()>(object, "sample_count")() == 103);
}

TEST_CASE("large sections may exceed the reach of code") {
  const uint64_t bytes = uint64_t{3} << 30;
  const load::LoadedObject object =
      loaded(with_larger_section(sample_object(), ".lrodata.firn.sample", bytes, /*stored=*/false));
  CHECK(function<const unsigned char*()>(object, "sample_weights")()[bytes - 1] == 0);
  CHECK(function<int(unsigned)>(object, "sample_square")(5) == 25);
  CHECK(function<int(int)>(object, "sample_call")(4) == 41);
  CHECK(function<int()>(object, "sample_count")() == 103);
}

TEST_CASE("unwinding tables are known for as long as the object is loaded") {
  char* address = nullptr;
  {
    const load::LoadedObject object = loaded(sample_object());
    address = static_cast<char*>(object.symbol("sample_call"));
    CHECK(can_unwind(address + 1));
  }
  CHECK_FALSE(can_unwind(address + 1));
}

TEST_CASE("loading and unloading a thousand times leaks nothing") {
  const Bytes file = with_larger_section(sample_object(), ".lrodata.firn.sample", 64 << 10, /*stored=*/true);
  auto load_often = [&](int times) {
    for (int i = 0; i < times; ++i) REQUIRE(function<int()>(loaded(file), "sample_count")() == 103);
  };
  load_often(100);
  const size_t before = resident_bytes();
  load_often(1000);
  CHECK(resident_bytes() < before + (1 << 20));
  const load::LoadedObject object = loaded(file);
  CHECK(permissions_at(object.symbol("sample_add")) == "r-xp");
}

TEST_CASE("failed loads leak nothing") {
  const Bytes file = sample_object();
  auto fail_often = [&](int times) {
    for (int i = 0; i < times; ++i) REQUIRE_FALSE(load::LoadedObject::load(file, {}));
  };
  fail_often(100);
  const size_t before = resident_bytes();
  fail_often(1000);
  CHECK(resident_bytes() < before + (1 << 20));
}
