// Prints messages and results of the tool, and returns the exit code.
#include "compiler/support/diagnostic_text.h"
#include "compiler/support/mapped_file.h"
#include "tools/firn/command.h"
#include "tools/firn/standard_output.h"

#include <cstdio>

namespace firn::tool {

std::string shown_file(const std::string& path) {
  return path == kStandardInput ? "standard input" : path;
}

int report(const Diagnostic& diagnostic, const std::string& file) {
  std::fputs(diagnostic_text(shown_file(file), diagnostic).c_str(), stderr);
  return static_cast<int>(diagnostic.fault);
}

int report(const DiagnosticList& diagnostics, const std::string& file) {
  std::fputs(diagnostics_text(shown_file(file), diagnostics).c_str(), stderr);
  return static_cast<int>(gravest_fault(diagnostics));
}

int print_result(const std::string& text, int code) {
  Result printed = print(text);
  return printed ? code : report(printed.error());
}

} // namespace firn::tool
