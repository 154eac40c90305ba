// How messages look.
#include "compiler/support/diagnostic_text.h"

#include <catch2/catch.hpp>

using namespace firn;

TEST_CASE("messages name what they are about, and are the command line's otherwise") {
  CHECK(diagnostic_text("net.onnx", model_error("/conv: no")) == "net.onnx: error: /conv: no\n");
  CHECK(diagnostic_text("", usage_error("no")) == "firn: error: no\n");
  CHECK(warning_text("net.onnx", "odd") == "net.onnx: warning: odd\n");
}

TEST_CASE("further lines are indented, so that none passes for a message of its own") {
  CHECK(diagnostic_text("a", model_error("two:\n  one\nb: error: other\n")) ==
        "a: error: two:\n  one\n  b: error: other\n");
}

TEST_CASE("control characters do not reach the terminal") {
  CHECK(diagnostic_text("a\x1b[2J", model_error("\r\x7f")) == "a\\x1b[2J: error: \\x0d\\x7f\n");
}

TEST_CASE("the gravest fault is the exit code, and what is beyond the limit is counted") {
  DiagnosticList list;
  for (size_t i = 0; i < DiagnosticList::limit + 2; ++i) list.add(unsupported_error("x"));
  CHECK(gravest_fault(list) == Fault::Unsupported);
  CHECK(diagnostics_text("f", list).find("... and 2 more\n") != std::string::npos);
  DiagnosticList mixed;
  CHECK(gravest_fault(mixed) == Fault::None);
  mixed.add(unsupported_error("x"));
  mixed.add(usage_error("x"));
  mixed.add(model_error("x"));
  CHECK(gravest_fault(mixed) == Fault::Usage);
}
