// Tables in panels of which rows are gathered and by which rows are multiplied: one constant for both.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace firn;
using namespace firn::test;

namespace {

struct Table {
  int64_t rows, width;
};

std::string dims(int64_t a, int64_t b) {
  return "[" + std::to_string(a) + "," + std::to_string(b) + "]";
}

// Rows of the table by indices of which some repeat and some count from the end, with a sum behind; and `m`
// rows of x by the table.
std::string table_text(Table table, int64_t m, int64_t panel, const std::string& dtype = "f32",
                       const std::string& plan = "", const std::string& rows = "") {
  std::string count = rows.empty() ? std::to_string(m) : rows;
  std::string lies = "{0,1:0x" + std::to_string(panel) + "}",
              x = "f32[" + count + "," + std::to_string(table.width) + "]",
              y = "f32[" + count + "," + std::to_string(table.rows) + "]",
              t = dtype + dims(table.rows, table.width) + lies, g = dims(7, table.width);
  return "module @m {\n" + (rows.empty() ? "" : "  symbol " + rows + " in [0, " + std::to_string(m) + "]\n") +
         "  func @main(%x: " + x + ", %i: i64[7], %j: i32[1,2], %a: f32" + g + ") -> (f32" + g +
         ", f32[1,2," + std::to_string(table.width) + "], " + y +
         ") {\n    %t = " + random_constant(table.rows * table.width, 9) + " : " + t +
         "\n    %r = gather %t, %i {axis = 0} : " + dtype + g + "\n    %c = convert %r {to = f32} : f32" + g +
         "\n    %s = add %c, %a : f32" + g + "\n    %o = gather %t, %j {axis = 0} : " + dtype + "[1,2," +
         std::to_string(table.width) + "]\n    %q = convert %o {to = f32} : f32[1,2," +
         std::to_string(table.width) +
         "]\n    %d = dot %x, %t {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1], "
         "result = f32" +
         (plan.empty() ? "" : ", plan = \"" + plan + "\"") + "} : " + y + "\n    %y = tanh %d : " + y +
         "\n    return %s, %q, %y\n  }\n}\n";
}

LoweredOptions options_for(const std::string& cpu, Table table) {
  auto max = static_cast<double>(table.rows);
  return {.tolerance = 4e-6, .ranges = {{"i", {-max, max - 1}}, {"j", {-max, max - 1}}}, .cpus = {cpu}};
}

int64_t lanes_of(const std::string& cpu) {
  return target_of("", cpu.substr(cpu.rfind(' ') + 1)).cpu.lanes(32);
}

// Whether lowering the text gives one constant, which a kernel of tiles reads.
bool split_m(const std::string& text, const std::string& cpu) {
  kernel::Program program = lower_text(text, cpu);
  bool has_tiles = std::any_of(program.kernels.begin(), program.kernels.end(),
                               [](const auto& kernel) { return kernel->algorithm.substr(0, 4) == "dot "; });
  return program.constants.size() == 1 && has_tiles;
}

std::vector<std::string> cpus() {
  std::vector<std::string> names{"x86-64", "x86-64-v3"};
  if (__builtin_cpu_supports("avx512f")) names.insert(names.end(), {"x86-64-v4", "x86-64-v3 in x86-64-v4"});
  return names;
}

} // namespace

TEST_CASE("tables in panels are gathered from and multiplied by", "[lower][dot][table]") {
  for (const std::string& cpu : cpus())
    for (Table table : {Table{1, 1}, {1, 5}, {5, 3}, {37, 9}, {131, 17}, {256, 8}, {259, 1}})
      for (int64_t vectors : {1, 2, 4, 6})
        for (int64_t m : {1, 3}) {
          std::string text = table_text(table, m, vectors * lanes_of(cpu));
          INFO(cpu << " " << table.rows << "x" << table.width << " in " << vectors << " rows " << m);
          expect_lowered_module(text, options_for(cpu, table));
          if (cpu.find(' ') == std::string::npos) CHECK(split_m(text, cpu));
        }
}

TEST_CASE("tables in panels: many rows, narrow types, rows that vary, threads", "[lower][dot][table]") {
  for (const std::string& cpu : cpus()) {
    int64_t panel = 2 * lanes_of(cpu);
    Table table{75, 11};
    LoweredOptions options = options_for(cpu, table);
    expect_lowered_module(table_text(table, 39, panel), options);
    expect_lowered_module(table_text(table, 3, panel, "f16"), options);
    expect_lowered_module(table_text(table, 3, panel, "bf16"), options);
    LoweredOptions varying = options;
    varying.extents = {{{"n", 0}}, {{"n", 1}}, {{"n", 5}}, {{"n", 13}}};
    expect_lowered_module(table_text(table, 13, panel, "f32", "", "n"), varying);
    options.threads = 3;
    expect_lowered_module(table_text(table, 39, panel), options);
    options.threads = 1, options.optimize_size = true;
    expect_lowered_module(table_text(table, 9, panel), options);
  }
}

TEST_CASE("tables whose panels are no whole vectors have their elements' code", "[lower][dot][table]") {
  for (int64_t panel : {3, 12}) {
    std::string text = table_text({23, 6}, 2, panel);
    expect_lowered_module(text, options_for("x86-64-v3", {23, 6}));
    CHECK(!split_m(text, "x86-64-v3"));
  }
}

TEST_CASE("plans read panels as they lie", "[lower][dot][table]") {
  Table table{75, 11};
  for (const char* plan : {"direct tile 1x4 columns outermost whole_panels",
                           "direct tile 3x2 panel 4 columns outermost whole_panels",
                           "direct tile 3x1 splits 2 panel 4 rows outermost whole_panels",
                           "direct tile 2x4 columns outermost row_block 2 whole_panels"})
    expect_lowered_module(table_text(table, 3, 32, "f32", plan), options_for("x86-64-v3", table));
  auto refused = [&](const std::string& plan) {
    return lowering_error(table_text(table, 3, 32, "f32", plan), "x86-64-v3");
  };
  CHECK(refused("direct tile 3x4 columns outermost").find("lie in whole panels of 32") != std::string::npos);
  CHECK(refused("direct tile 3x2 columns outermost whole_panels").find("lie in whole panels of 32") !=
        std::string::npos);
  CHECK(refused("direct tile 2x4 columns outermost split_k 2 whole_panels").find("no split_k") !=
        std::string::npos);
  CHECK(refused("direct tile 3x4 columns outermost whole_panels swap_operands") != "");
  CHECK(refused("direct tile 3x4 columns outermost whole_panels unpacked") != "");
  // A kernel packs the weights for itself.
  std::string packed = table_text(table, 3, 32, "f32", "direct tile 3x4 columns outermost whole_panels");
  for (size_t at; (at = packed.find("{0,1:0x32}")) != std::string::npos;) packed.erase(at, 10);
  expect_lowered_module(packed, options_for("x86-64-v3", table));
}
