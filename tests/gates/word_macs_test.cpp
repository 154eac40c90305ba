// The innermost loops over bytes on cores that multiply pairs in general registers: SMLAD, and little beside
// loads, instructions that widen bytes, and reloads of the few addresses that do not fit registers.
#include "tests/codegen/model_object.h"
#include "tests/gates/gate_kernels.h"

#include <catch2/catch.hpp>

#include <sstream>

namespace firn::test {
namespace {

struct WordLoop {
  int instructions = 0, products = 0, stack = 0;
  std::string text;
};

bool names(const std::string& line, const char* part) {
  return line.find(part) != std::string::npos;
}

// Innermost loops that multiply pairs.
std::vector<WordLoop> word_loops(const std::string& text, const std::string& cpu) {
  std::vector<WordLoop> loops;
  WordLoop loop;
  std::istringstream lines(assembly_of(text, target_of("", cpu)));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(".LBB", 0) == 0) loop = {};
    if (line.size() < 2 || line[0] != '\t' || line[1] == '.' || line[1] == '@') continue;
    loop.text += line + "\n";
    ++loop.instructions;
    loop.products += names(line, "smlad");
    loop.stack += names(line, "sp");
    if (line.rfind("\tbne", 0) == 0 || line.rfind("\tblo", 0) == 0) {
      if (loop.products > 0) loops.push_back(loop);
      loop = {};
    }
  }
  return loops;
}

// Checks the number of instructions per product of two bytes, in the loop with the most products.
void expect_dense(const std::string& text, double max) {
  for (const char* cpu : {"cortex-m4", "cortex-m7"}) {
    std::vector<WordLoop> loops = word_loops(text, cpu);
    REQUIRE_FALSE(loops.empty());
    const WordLoop* main = &loops[0];
    for (const WordLoop& loop : loops)
      if (loop.products > main->products) main = &loop;
    INFO(cpu << "\n" << main->text);
    CHECK(main->products >= 8);
    CHECK(2 * main->stack <= main->products);
    CHECK(main->instructions <= max * 2 * main->products);
  }
}

} // namespace

TEST_CASE("pairs of bytes are multiplied in words", "[gates][words]") {
  std::string image = "i8[1,64,25,5]{0,1,2,3:1x4}", result = "i32[1,64,25,5]{0,1,2,3:1x4}";
  expect_dense(
      "module @m { func @main(%x: i8[1,64,25,5], %w: i8[64,64,1,1]) -> (i32[1,64,25,5]) { %i = copy %x : " +
          image + " %c = convolution %i, %w {window = 1x1, groups = 1, result = i32} : " + result +
          " %r = copy %c : i32[1,64,25,5] return %r } }",
      1.9);
  expect_dense("module @m { func @main(%x: u8[6,128], %w: i8[128,64]) -> (i32[6,64]) { %y = dot %x, %w "
               "{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], result = i32} : "
               "i32[6,64] return %y } }",
               1.9);
}

} // namespace firn::test
