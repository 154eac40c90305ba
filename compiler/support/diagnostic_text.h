// How messages look, everywhere: "net.onnx: error: text", further lines indented, control characters of names
// made harmless. Each text ends with a line end.
#pragma once

#include "compiler/support/diagnostic.h"

#include <string>

namespace firn {

// `file`: what the message is about, "graph.hlo" or the model; empty: the command line. A message that begins
// with a place in the file ("graph.hlo:3:5: ...") is about that.
std::string diagnostic_text(const std::string& file, const Diagnostic& diagnostic);
std::string warning_text(const std::string& file, const std::string& message);
// All messages, those beyond the limit as a number.
std::string diagnostics_text(const std::string& file, const DiagnosticList& diagnostics);

// Our own fault outranks wrong usage, this a broken model, and this what is merely unsupported.
Fault gravest_fault(const DiagnosticList& diagnostics);

} // namespace firn
