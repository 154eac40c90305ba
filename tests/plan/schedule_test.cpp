// Schedules as text, and their power over the cost model.
#include "compiler/graph/hlo_text.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/winograd/plan.h"
#include "tests/lower/plan_and_lower.h"

#include <catch2/catch.hpp>

using namespace firn;
using namespace firn::lower;
using namespace firn::plan;

namespace {

// With the line that every database begins with.
Expected<ScheduleDatabase> parse(const std::string& text) {
  return ScheduleDatabase::parse("db", "firn-schedules 1\n" + text);
}
std::string error_of(const std::string& text) {
  auto database = parse(text);
  return database ? "" : database.error().message;
}
std::string header_error(const std::string& text) {
  auto database = ScheduleDatabase::parse("db", text);
  return database ? "" : database.error().message;
}

// One 3x3 convolution in blocks of 8.
std::unique_ptr<Module> convolution_module() {
  std::string filters = "constant [";
  for (int i = 0; i < 32 * 32 * 9; ++i)
    filters += (i ? ", " : "") + std::to_string((i * 37 % 101) * 0.01 - 0.5);
  auto module = parse_module(
      "test.hlo", "module @m {\n func @main(%x: f32[1,32,16,16]) -> (f32[1,32,16,16]) {\n"
                  " %b = copy %x : f32[1,32,16,16]{0,1,2,3:1x8}\n %w = " +
                      filters +
                      "] : f32[32,32,3,3]\n %c = convolution %b, %w {window = 3x3 pad 1_1x1_1, groups = 1} : "
                      "f32[1,32,16,16]{0,1,2,3:1x8}\n %r = copy %c : f32[1,32,16,16]\n return %r\n }\n}\n");
  REQUIRE(module);
  return std::move(*module);
}

Explanation explain(const ScheduleDatabase* schedules, Winograd winograd = Winograd::All) {
  auto module = convolution_module();
  std::vector<Explanation> explanations;
  firn::test::LoweringSetup options;
  options.target = *find_target("x86_64-linux-gnu", "x86-64-v3", "");
  options.goals.winograd = winograd;
  options.schedules = schedules;
  options.explanations = &explanations;
  auto program = firn::test::plan_and_lower(*module, options);
  REQUIRE(program);
  REQUIRE(explanations.size() == 3);
  return explanations[1]; // between two copies
}

} // namespace

TEST_CASE("a schedule overrules the cost model", "[plan]") {
  Explanation own = explain(nullptr);
  CHECK(own.chosen.is<WinogradPlan>());
  CHECK_FALSE(own.overruled);
  for (const char* text : {"direct tile 4x2 rows outermost", "direct tile 2x3 splits 2 columns outermost",
                           "winograd 2x2 tile 4x3 batch 10", "winograd 4x2 tile 3x2 batch 7"}) {
    auto database = parse("# comment\n\n" + own.signature + " => " + text + " # more\n");
    REQUIRE(database);
    Explanation forced = explain(&*database);
    CHECK(forced.overruled);
    CHECK(to_string(forced.chosen).find(text) == 0); // behind it stands what follows from it
  }
  auto other = parse("znver4 " + own.signature + " => direct tile 1x1\n");
  REQUIRE(other);
  CHECK(to_string(explain(&*other).chosen) == to_string(own.chosen));
  CHECK(explain(nullptr, Winograd::Off).chosen.is<ContractionPlan>());
}

TEST_CASE("a schedule overrules plans of dims that vary", "[plan]") {
  auto explain = [](const ScheduleDatabase* schedules) {
    auto module = parse_module("test.hlo", "module @m {\n symbol n in [1, 40]\n"
                                           " func @main(%x: f32[n,48], %w: f32[48,64]) -> (f32[n,64]) {\n"
                                           " %r = dot %x, %w {lhs_batch = [], lhs_contract = [1], rhs_batch "
                                           "= [], rhs_contract = [0]} : f32[n,64]\n"
                                           " return %r\n }\n}\n");
    if (!module) FAIL(module.error().message);
    std::vector<Explanation> explanations;
    firn::test::LoweringSetup options;
    options.target = *find_target("x86_64-linux-gnu", "x86-64-v3", "");
    options.schedules = schedules;
    options.explanations = &explanations;
    REQUIRE(firn::test::plan_and_lower(**module, options));
    REQUIRE(explanations.size() == 1);
    return explanations[0];
  };
  Explanation own = explain(nullptr);
  auto database = parse(own.signature + " => direct tile 3x2 columns outermost unpacked\n");
  REQUIRE(database);
  Explanation forced = explain(&*database);
  CHECK(forced.overruled);
  CHECK(to_string(forced.chosen).find("direct tile 3x2 columns outermost unpacked lanes 8") == 0);
  auto impossible = parse(own.signature + " => planar tile 3x2\n");
  REQUIRE(impossible);
  Explanation left = explain(&*impossible);
  CHECK_FALSE(left.overruled);
  CHECK(left.refused == "planes do not vary");
  CHECK(to_string(left.chosen) == to_string(own.chosen));
}

TEST_CASE("a schedule that cannot be followed is left aside", "[plan]") {
  Explanation own = explain(nullptr);
  for (const char* text :
       {"direct tile 4x2 columns outermost split_k 2", "direct tile 4x2 columns outermost unpacked",
        "depthwise tile 4 along 1", "planar", "polyphase", "winograd 3x3", "attention", "elements parts"}) {
    auto database = parse(own.signature + " => " + text + "\n");
    if (!database) {
      CHECK(std::string(text) == "elements parts");
      continue;
    }
    Explanation left = explain(&*database);
    CHECK_FALSE(left.overruled);
    CHECK(!left.refused.empty());
    CHECK(to_string(left.chosen) == to_string(own.chosen));
    CHECK(explanation_text({left}).find("is not possible: " + left.refused) != std::string::npos);
  }
}

TEST_CASE("a schedule may name the algorithm alone", "[plan]") {
  Explanation own = explain(nullptr), direct = explain(nullptr, Winograd::Off);
  auto force = [&](const std::string& text) {
    auto database = parse(own.signature + " => " + text + "\n");
    REQUIRE(database);
    return to_string(explain(&*database).chosen);
  };
  CHECK(force("direct") == to_string(direct.chosen));
  CHECK(force("winograd 2x2").find("winograd 2x2 tile ") == 0);
  CHECK(force("elements") == "elements lanes 8");
}

TEST_CASE("an explanation reads back as a database", "[plan]") {
  Explanation own = explain(nullptr);
  CHECK(own.candidates.size() == 5); // direct, and two sizes per dim
  auto database = ScheduleDatabase::parse("db", explanation_text({own}));
  REQUIRE(database);
  REQUIRE(database->find(own.signature));
  CHECK(to_string(explain(&*database).chosen) == to_string(own.chosen));
}

TEST_CASE("lines of a schedule database without effect are known", "[plan]") {
  Explanation own = explain(nullptr);
  auto database = parse("znver4 dot() -> f32[1] => direct\n# comment\n" + own.signature +
                        " => direct tile 4x2\n\n" + own.signature + " => direct tile 2x2\n");
  REQUIRE(database);
  (void)explain(&*database);
  std::vector<std::string> lines = database->idle_lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "db:4: the kernel has another plan at db:6, which is taken");
  CHECK(lines[1] == "db:2: the model has no kernel znver4 dot() -> f32[1]");
}

TEST_CASE("broken schedule databases name the line", "[plan]") {
  CHECK(error_of("a => direct\n") == "");
  CHECK(error_of("a => direct\nnonsense\n").find("db:3: wanted 'CPU SIGNATURE => PLAN'") == 0);
  CHECK(error_of("a => fast\n").find("db:2") == 0);
  CHECK(error_of("a => direct tile 0x2\n").find("wanted two sizes from 1 to 64") != std::string::npos);
  CHECK(error_of("a => direct tile 4x2 splits 3\n").find("'splits' takes 1, 2, 4 or 8") != std::string::npos);
  CHECK(error_of("a => direct tile 4x2 interleave 3\n").find("'interleave' takes 1, 2 or 4") !=
        std::string::npos);
  CHECK(error_of("a => winograd 5x5\n").find("from 1 to 4") != std::string::npos);
  CHECK(error_of("a => winograd 4x4 tile 2x2 batch 0\n").find("'batch' takes 1 or more") !=
        std::string::npos);
  CHECK(error_of("a => direct tile 4x2 rows outermost please\n").find("expected the end of the plan") !=
        std::string::npos);
  CHECK(error_of("a => elements lanes 4 copies 2\n") == "db:2:1:18: 'copies' is called 'unroll'");
}

TEST_CASE("a schedule database begins with its version", "[plan]") {
  CHECK(header_error("# comment\n\n firn-schedules 1\na => direct\n") == "");
  CHECK(header_error("# comment\na => direct\n") ==
        "db:2: a schedule database starts with the line 'firn-schedules 1', found 'a => direct'");
  CHECK(header_error("# comment\n") == "db:1: a schedule database starts with the line 'firn-schedules 1'");
  CHECK(header_error("firn-schedules 2\na => fast\n") ==
        "db:1: the schedule database is of version 2, this Firn reads version 1");
}
