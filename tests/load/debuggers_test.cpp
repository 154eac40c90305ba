// Debuggers and perf learn of loaded objects where that is asked for.
#include "tests/load/sample_object.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace firn;
using namespace firn::test;

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
extern jit_descriptor __jit_debug_descriptor;
}

TEST_CASE("debuggers get a copy of the object with its addresses") {
  load::LoadOptions options = sample_options();
  const load::LoadedObject quiet = loaded(sample_object(), options);
  CHECK_FALSE(__jit_debug_descriptor.first_entry);
  options.visibility.debugger = true;
  {
    const load::LoadedObject first = loaded(sample_object(), options),
                             second = loaded(sample_object(), options);
    const jit_code_entry* entry = __jit_debug_descriptor.first_entry;
    REQUIRE(entry);
    CHECK(__jit_debug_descriptor.action_flag == 1);
    CHECK(__jit_debug_descriptor.relevant_entry == entry);
    CHECK(entry->symfile_size == sample_object().size());
    const auto* object = reinterpret_cast<const std::byte*>(entry->symfile_addr);
    const auto function = reinterpret_cast<uintptr_t>(second.symbol("sample_add")),
               text = stated_address(object, ".text");
    CHECK(text != 0);
    CHECK(function - text < 4096);
    CHECK(stated_address(object, ".debug_info") == 0);
    REQUIRE(entry->next_entry);
    CHECK(entry->next_entry->prev_entry == entry);
    CHECK_FALSE(entry->next_entry->next_entry);
    CHECK(test::function<int(int, int)>(second, "sample_add")(2, 3) == 5); // a debugger can stop here by name
  }
  CHECK_FALSE(__jit_debug_descriptor.first_entry);
  CHECK(__jit_debug_descriptor.action_flag == 2);
}

TEST_CASE("perf finds the functions in its file") {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  load::LoadOptions options = sample_options();
  options.visibility.perf = true;
  const load::LoadedObject object = loaded(sample_object(), options);
  std::ostringstream line;
  line << std::hex << reinterpret_cast<uintptr_t>(object.symbol("sample_add")) << " ";
  std::ifstream file(path);
  bool listed = false;
  for (std::string each; std::getline(file, each);)
    listed |= each.starts_with(line.str()) && each.ends_with(" sample_add");
  CHECK(listed);
  std::remove(path.c_str());
}
