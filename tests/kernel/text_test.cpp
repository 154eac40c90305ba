// Text round trips, messages of the parser, and its manners on broken text.
#include "tests/kernel/sample_kernels.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

namespace firn::kernel {

// text/everything.kir without the comment at its head.
static std::string text_of_everything() {
  std::ifstream file(FIRN_TEXT_DIR "/everything.kir", std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  std::string text = content.str();
  while (text.starts_with("//")) text.erase(0, text.find('\n') + 1);
  REQUIRE(!text.empty());
  return text;
}

static void collect(const Block& block, std::vector<const Op*>& ops) {
  for (const auto& op : block.ops) {
    ops.push_back(op.get());
    for (const Block& inner : op->blocks) collect(inner, ops);
  }
}

static void collect(const std::vector<Step>& steps, std::vector<const Step*>& found) {
  for (const Step& step : steps) {
    found.push_back(&step);
    collect(step.first, found);
    collect(step.second, found);
  }
}

TEST_CASE("a file of text verifies and prints as it is written") {
  std::string text = text_of_everything();
  auto program = parse_program("everything.kir", text);
  if (!program) FAIL(program.error().message);
  Result verified = verify(*program);
  if (!verified) FAIL(verified.error().message);
  CHECK(print_program(*program) == text);
  CHECK(program->interface.dims[0].values == std::vector<int64_t>{0, 16, 32});
  CHECK(program->interface.parameters[0].dims[0] == 4 * IntExpr::symbol(program->extents[0]));
  CHECK((program->interface.results[1].dims.empty() && program->interface.results[2].updates == 1));
}

TEST_CASE("that file holds every op, predicate, space, step and promise") {
  auto program = parse_program("everything.kir", text_of_everything());
  REQUIRE(program);
  std::vector<const Op*> ops;
  std::set<OpKind> kinds;
  std::set<Predicate> predicates;
  std::set<Space> spaces;
  std::set<Overwriting> promises;
  for (const auto& kernel : program->kernels) {
    collect(kernel->body, ops);
    for (const InPlace& promise : kernel->in_place) promises.insert(promise.pattern);
  }
  for (const Op* op : ops) {
    kinds.insert(op->kind);
    if (op->kind == OpKind::FCmp) predicates.insert(op->predicate);
  }
  for (const Buffer& buffer : program->buffers) spaces.insert(buffer.space);
  for (int i = 0; i <= static_cast<int>(OpKind::CallRuntime); ++i) {
    INFO(op_kind_info(static_cast<OpKind>(i)).mnemonic);
    CHECK(kinds.count(static_cast<OpKind>(i)) == 1);
  }
  CHECK(predicates.size() == 6);
  CHECK(spaces == std::set{Space::Arena, Space::Weights, Space::Input, Space::Output, Space::State,
                           Space::Parameters, Space::Status});
  CHECK(promises == std::set{Overwriting::Pointwise, Overwriting::RowWise, Overwriting::Sliding});
  std::vector<const Step*> steps;
  collect(program->steps, steps);
  std::set<Step::Kind> step_kinds;
  bool copies = false;
  for (const Step* step : steps) step_kinds.insert(step->kind), copies |= step->is_copy;
  CHECK(step_kinds.size() == 10);
  CHECK(copies);
}

TEST_CASE("printed programs parse back to the same text and verify") {
  Program program = sample_program();
  Result good = verify(program);
  if (!good) FAIL(good.error().message);
  std::string text = print_program(program);
  auto parsed = parse_program("sample.kir", text);
  if (!parsed) FAIL(parsed.error().message << "\n" << text);
  CHECK(print_program(*parsed) == text);
  CHECK(verify(*parsed));
}

TEST_CASE("symbols of one name are told apart in text") {
  Kernel kernel;
  kernel.name = "twice";
  int input = Builder(kernel).add_parameter("x", Scalar::F32, 100, true);
  for (int i = 0; i < 2; ++i) {
    // Two builders number their symbols alike.
    Builder b(kernel);
    b.loop(0, 10, 1, [&](const IntExpr& outer) {
      b.store(b.constant({Scalar::F32, 1}, 0), input, 10 * outer);
    });
  }
  REQUIRE(verify(kernel));
  std::string text = "program \"p\" arena 0 lower_bound 0 weights 0 {\n}\n" + print_kernel(kernel);
  auto parsed = parse_program("t", text);
  if (!parsed) FAIL(parsed.error().message);
  CHECK(print_kernel(*parsed->kernels[0]) == print_kernel(kernel));
}

TEST_CASE("special floats survive text") {
  Kernel kernel;
  Builder b(kernel);
  for (double number : {1.0 / 3, -0.0, 1e-310, std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN()}) {
    b.constant({Scalar::F64, 1}, number);
  }
  std::string text = "program \"p\" arena 0 lower_bound 0 weights 0 {\n}\n" + print_kernel(kernel);
  auto parsed = parse_program("t", text);
  if (!parsed) FAIL(parsed.error().message);
  CHECK(print_kernel(*parsed->kernels[0]) == print_kernel(kernel));
  CHECK(parsed->kernels[0]->body.ops[0]->numbers[0] == 1.0 / 3);
}

static std::string error_of(const std::string& body) {
  auto parsed = parse_program("t", "program \"p\" arena 0 lower_bound 0 weights 0 {\n}\nkernel \"k\" {\n" +
                                       body + "}\n");
  return parsed ? "none" : parsed.error().message;
}

TEST_CASE("the parser says where and what") {
  CHECK(error_of("  %0: f32 = fsin %0\n") == "t:4:17: 'fsin' is no op");
  CHECK(error_of("  %0: f33 = const [1]\n").find("'f33' is no type") != std::string::npos);
  CHECK(error_of("  %0: f32 = fneg %1\n").find("%1 is not defined") != std::string::npos);
  CHECK(error_of("  %0: index = index (i_0 + 1)\n").find("symbol 'i_0' is not known") != std::string::npos);
  CHECK(error_of("  %0: index = index (3 floordiv 0)\n").find("divisor may be below 1") != std::string::npos);
  CHECK(error_of("  %0: index = index (281474976710655*281474976710655)\n").find("too large") !=
        std::string::npos);
  CHECK(error_of("  %0: f32 = const [1]\n  %0: f32 = const [1]\n").find("defined twice") !=
        std::string::npos);
}

// Mutated text is refused or parsed, never fatal; what parses and verifies prints and parses again.
TEST_CASE("mutated text never harms") {
  std::string text = print_program(sample_program());
  std::mt19937 random(7);
  int parsed_count = 0, verified_count = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string mutant = text;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      size_t at = random() % mutant.size(), other = random() % text.size(), length = random() % 12;
      switch (random() % 4) {
      case 0: mutant[at] = static_cast<char>(random() % 96 + 32); break;
      case 1: mutant.erase(at, length); break;
      case 2: mutant.insert(at, text.substr(other, length)); break;
      default: mutant.replace(at, length, std::to_string(static_cast<int64_t>(random()) << (random() % 33)));
      }
    }
    auto parsed = parse_program("mutant", mutant);
    if (!parsed) continue;
    ++parsed_count;
    if (!verify(*parsed)) continue;
    ++verified_count;
    std::string printed = print_program(*parsed);
    auto again = parse_program("again", printed);
    if (!again) FAIL(again.error().message << "\n" << printed);
    if (print_program(*again) != printed) FAIL("text changes when printed again:\n" << printed);
  }
  CHECK(parsed_count > 100);
  CHECK(verified_count > 50);
}

} // namespace firn::kernel
