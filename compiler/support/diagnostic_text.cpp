// The text of messages.
#include "compiler/support/diagnostic_text.h"

#include <cstdio>

namespace firn {
namespace {

// One message as it is printed. Names come from models, so that any byte may be among them.
std::string message_text(const std::string& file, const char* kind, const std::string& message) {
  std::string text, raw = (file.empty() ? "firn" : file) + ": " + kind + ": " + message;
  while (!raw.empty() && raw.back() == '\n') raw.pop_back();
  for (size_t i = 0; i < raw.size(); ++i) {
    auto c = static_cast<unsigned char>(raw[i]);
    if (c == '\n') {
      text += raw.compare(i + 1, 2, "  ") == 0 ? "\n" : "\n  ";
    } else if (c < 0x20 || c == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
      text += escaped;
    } else {
      text += raw[i];
    }
  }
  return text + "\n";
}

int rank(Fault fault) {
  switch (fault) {
  case Fault::Stopped: return 5;
  case Fault::Internal: return 4;
  case Fault::Usage: return 3;
  case Fault::Model: return 2;
  case Fault::Unsupported: return 1;
  case Fault::None: return 0;
  }
  return 0;
}

} // namespace

std::string diagnostic_text(const std::string& file, const Diagnostic& diagnostic) {
  const std::string& message = diagnostic.message;
  size_t end = message.find(": ");
  bool has_place = !file.empty() && end != message.npos && message.starts_with(file);
  if (!has_place) return message_text(file, "error", message);
  return message_text(message.substr(0, end), "error", message.substr(end + 2));
}

std::string warning_text(const std::string& file, const std::string& message) {
  return message_text(file, "warning", message);
}

std::string diagnostics_text(const std::string& file, const DiagnosticList& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.messages()) text += diagnostic_text(file, diagnostic);
  size_t more = diagnostics.count() - diagnostics.messages().size();
  return more > 0 ? text + "... and " + std::to_string(more) + " more\n" : text;
}

Fault gravest_fault(const DiagnosticList& diagnostics) {
  Fault gravest = Fault::None;
  for (const Diagnostic& message : diagnostics.messages())
    if (rank(message.fault) > rank(gravest)) gravest = message.fault;
  return gravest;
}

} // namespace firn
