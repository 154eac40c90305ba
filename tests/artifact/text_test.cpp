// Templates, number formats, string literals, JSON strings and dependency files.
#include "compiler/artifact/depfile.h"
#include "compiler/artifact/manifest.h"
#include "compiler/artifact/text_template.h"

#include <catch2/catch.hpp>

using namespace firn::artifact;

TEST_CASE("slots indent their further lines and empty ones take their line along") {
  CHECK(expand_template("a {{X}} b\n", {{"X", "1"}}) == "a 1 b\n");
  CHECK(expand_template("f\n  {{X}}\ng\n", {{"X", "1\n\n2"}}) == "f\n  1\n\n  2\ng\n");
  CHECK(expand_template("f\n  {{X}}\ng\n", {{"X", ""}}) == "f\ng\n");
  CHECK(expand_template("f {{X}}\n{{Y}}\n", {{"X", ""}, {"Y", "y"}}) == "f \ny\n");
}

TEST_CASE("numbers for people") {
  CHECK(with_separators(0) == "0");
  CHECK(with_separators(999) == "999");
  CHECK(with_separators(1000) == "1,000");
  CHECK(with_separators(-1234567) == "-1,234,567");
  CHECK(human_bytes(812) == "812 B");
  CHECK(human_bytes(263100) == "263.1 kB");
  CHECK(human_bytes(999960) == "1.0 MB");
  CHECK(human_count(4700000) == "4.7 M");
}

TEST_CASE("string literals survive any byte") {
  CHECK(c_string("a\"b\\c\n\xc3?\?/") == R"("a\"b\\c\012\303\?\?/")");
  CHECK(json_string("a\"\\\n\xc3\xa9") == "\"a\\\"\\\\\\u000a\xc3\xa9\"");
  CHECK(json_string("\xff\xc3") == R"("\ufffd\ufffd")");
  CHECK(json_string("\xed\xa0\x80") == R"("\ufffd\ufffd\ufffd")");
}

TEST_CASE("comments cannot be ended or continued by a name") {
  CHECK(comment_text("a*/b\\\nc/*d") == "a* /b??c/ *d");
}

TEST_CASE("dependency files escape what Make and Ninja read specially") {
  auto text = write_depfile({"a.o", "b c.h", "50%.json"}, {"m#.onnx", "x$y", "d\\ e", "a:b", "50%.bin"});
  REQUIRE(text);
  CHECK(*text ==
        "a.o b\\ c.h 50\\%.json: \\\n  m\\#.onnx \\\n  x$$y \\\n  d\\\\\\ e \\\n  a\\:b \\\n  50%.bin\n");
}

TEST_CASE("paths that would be read as rules are refused in dependency files") {
  for (const char* path :
       {"a\nb", "a\rb", "a\tb", "a\x7f", "a;b", "a|b", "a\\:b", "a\\#b", "a\\", "a:", "a ", ""}) {
    INFO(path);
    CHECK_FALSE(write_depfile({"net.o"}, {path}));
    CHECK_FALSE(write_depfile({path}, {"net.onnx"}));
  }
}
