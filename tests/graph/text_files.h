// The modules in text/: together they hold every op, dtype and kind of attribute.
#pragma once

#include "compiler/graph/hlo_text.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace firn {

struct TextFile {
  std::string name, text; // without the comment lines at its head
};

inline std::vector<TextFile> read_text_files() {
  std::vector<TextFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(FIRN_TEXT_DIR)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    std::string text = content.str();
    while (text.starts_with("//")) text.erase(0, text.find('\n') + 1);
    files.push_back({entry.path().filename().string(), std::move(text)});
  }
  REQUIRE(files.size() >= 8);
  return files;
}

inline std::unique_ptr<Module> parse_or_fail(const std::string& name, const std::string& text,
                                             const LiteralTable& literals = {}) {
  auto module = parse_module(name, text, literals);
  if (!module) FAIL(module.error().message);
  return std::move(*module);
}

// A module whose @main has these parameters and this body.
inline std::string main_text(const std::string& parameters, const std::string& results,
                             const std::string& body, const std::string& symbols = "") {
  return "module @m {\n" + symbols + "\nfunc @main(" + parameters + ") -> (" + results + ") {\n" + body +
         "\n}\n}\n";
}

} // namespace firn
