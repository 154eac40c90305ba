// Names that the toolchain's headers have already, put to the identifiers' rules.
//   name_headers headers< NAMES > HEADERS    headers of models whose inputs are called so
//   name_headers prefixes < NAMES            fails if C functions of a class may be called so
#include "compiler/artifact/header.h"
#include "compiler/artifact/identifiers.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using namespace firn::artifact;

namespace {

int print_header(const std::string& class_name, const std::vector<std::string>& names) {
  ModelDescription model;
  model.source_file = model.model_name = "names.onnx";
  model.source_sha256 = std::string(64, '0');
  model.class_name = class_name;
  model.firn_version = model.cpu = "any";
  model.arena_bytes = 64;
  for (const std::string& name : names) {
    TensorDescription& tensor = model.inputs.emplace_back();
    tensor.name = name;
    tensor.dims = {firn::IntExpr(1)};
    tensor.arena_offset = 0;
  }
  if (!assign_identifiers(model)) return 1;
  std::fputs(write_header(model).c_str(), stdout);
  return 0;
}

// Several classes, because g++ takes time quadratic in the members of one.
int print_headers(const std::set<std::string>& names) {
  const std::vector<std::string> list(names.begin(), names.end());
  constexpr size_t members = 250;
  int failed = 0;
  for (size_t first = 0; first < list.size(); first += members) {
    const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
    const size_t count = std::min(members, list.size() - first);
    failed |= print_header("names::Net" + std::to_string(first / members),
                           {begin, begin + static_cast<std::ptrdiff_t>(count)});
  }
  return failed;
}

// "sem_post" -> "SemPost"
std::string class_of(const std::string& words) {
  std::string name;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool starts = i == 0 || words[i - 1] == '_';
    if (words[i] != '_') name += static_cast<char>(starts ? std::toupper(words[i]) : words[i]);
  }
  return name;
}

// Takes the first words of every name for a class.
int check_prefixes(const std::set<std::string>& names) {
  int clashes = 0;
  for (const std::string& name : names) {
    for (size_t end = name.find('_', 1);; end = name.find('_', end + 1)) {
      const std::string prefix = symbol_prefix(class_of(name.substr(0, end)));
      const auto next = names.lower_bound(prefix + "_");
      const bool starts_another = next != names.end() && next->starts_with(prefix + "_");
      if (names.count(prefix) || starts_another) {
        std::printf("class %s: '%s' starts '%s'\n", class_of(name.substr(0, end)).c_str(), prefix.c_str(),
                    name.c_str());
        ++clashes;
      }
      if (end == std::string::npos) break;
    }
  }
  std::printf("%zu names of C's libraries, %d clashes\n", names.size(), clashes);
  return clashes == 0 && !names.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  const std::set<std::string> names{std::istream_iterator<std::string>(std::cin), {}};
  const std::string mode = argc == 2 ? argv[1] : "";
  return mode == "headers" ? print_headers(names) : mode == "prefixes" ? check_prefixes(names) : 2;
}
