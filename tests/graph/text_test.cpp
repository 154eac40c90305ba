// Printing and parsing are inverse, for every op, dtype and kind of attribute.
#include "compiler/graph/verify.h"
#include "tests/graph/text_files.h"

#include <set>

namespace firn {
namespace {

template <class Visit> void visit_instructions(const Region& region, const Visit& visit) {
  for (const auto& instruction : region.instructions()) {
    visit(*instruction);
    for (int i = 0; i < instruction->num_regions(); ++i) visit_instructions(instruction->region(i), visit);
  }
}

TEST_CASE("text files verify and print as they are written") {
  for (const TextFile& file : read_text_files()) {
    INFO(file.name);
    auto module = parse_or_fail(file.name, file.text);
    Result verified = verify(*module);
    if (!verified) FAIL(verified.error().message);
    CHECK(print_module(*module) == file.text);
  }
}

TEST_CASE("text files hold every op, dtype and kind of attribute") {
  std::set<Opcode> opcodes;
  std::set<DType> dtypes;
  std::set<size_t> kinds;
  for (const TextFile& file : read_text_files()) {
    auto module = parse_or_fail(file.name, file.text);
    for (const auto& function : module->functions())
      visit_instructions(function->body(), [&](const Instruction& instruction) {
        opcodes.insert(instruction.opcode());
        if (instruction.literal() && !instruction.literal()->is_opaque())
          dtypes.insert(instruction.literal()->dtype());
        for (const auto& [name, value] : instruction.attributes()) kinds.insert(value.index());
      });
  }
  for (int i = 0; i <= static_cast<int>(Opcode::SequenceMake); ++i) {
    INFO(opcode_name(static_cast<Opcode>(i)));
    CHECK(opcodes.count(static_cast<Opcode>(i)) == 1);
  }
  for (int i = 0; i <= static_cast<int>(DType::String); ++i) {
    INFO(dtype_name(static_cast<DType>(i)));
    CHECK(dtypes.count(static_cast<DType>(i)) == 1);
  }
  CHECK(kinds.size() == std::variant_size_v<AttributeVariant>);
}

TEST_CASE("gradients name parameters by what the text calls them, before and behind what they speak of") {
  auto module = parse_or_fail("m", R"(module @m {
    func @hvp = gradient @g wrt seed, w seedable
    func @g = gradient @f wrt w seedable
    func @f(%x: f32[2], %w: f32[2]) -> (f32[2]) { %y = multiply %x, %w : f32[2] return %y } })");
  CHECK(module->find("g")->gradient->wrt == std::vector<int>{1});
  CHECK(module->find("hvp")->gradient->wrt == std::vector<int>{2, 1});
  CHECK(verify(*module));
  CHECK(print_module(*parse_or_fail("m", print_module(*module))) == print_module(*module));
}

TEST_CASE("names that clash are numbered, and stay after that") {
  Module module("m");
  Function& main = module.add_function("main");
  Region& body = main.body();
  Value x = body.add_parameter(Type::tensor_of(DType::F32, {2}), "x")->result();
  Instruction* first = body.append(Opcode::Negate, {x}, {x.type()});
  first->set_name("x");
  Instruction* second = body.append(Opcode::Negate, {first->result()}, {x.type()});
  second->set_name("x_0");
  Instruction* third = body.append(Opcode::Negate, {second->result()}, {x.type()});
  body.set_results({third->result()});
  std::string text = print_module(module);
  CHECK(text.find("%x_0 = negate %x ") != std::string::npos);
  CHECK(print_module(*parse_or_fail("m", text)) == text);
}

// A constant of `count` f32 elements, 0, 1, 2, ...
LiteralRef counting(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i));
  return Literal::of(DType::F32, {count}, values);
}

TEST_CASE("large literals go to the side file and come back") {
  Module module("m");
  Region& body = module.add_function("main").body();
  std::vector<std::string> words(20, "word");
  words[3] = std::string("\0\n", 2);
  std::vector<LiteralRef> literals = {counting(17), counting(1000), Literal::splat(DType::I4, {33}, -3),
                                      Literal::strings({4, 5}, words), counting(16)};
  std::vector<Value> results;
  for (const LiteralRef& literal : literals) {
    Instruction* constant = body.append_constant(literal);
    constant->set_location("weight " + std::to_string(results.size()));
    results.push_back(constant->result());
  }
  body.set_results(results);

  std::string text = print_module(module), side = write_literals(module);
  auto table = read_literals(MappedFile::from_bytes("side", side));
  REQUIRE(table);
  CHECK(table->size() == 4); // the one of 16 elements prints in place
  auto again = parse_or_fail("m", text, *table);
  CHECK(print_module(*again) == text);
  CHECK(write_literals(*again) == side);
  const auto& values = again->main().body().results();
  for (size_t i = 0; i < literals.size(); ++i) {
    REQUIRE_FALSE(values[i].def->literal()->is_opaque());
    CHECK(values[i].def->literal()->hash() == literals[i]->hash());
    CHECK(values[i].def->location() == "weight " + std::to_string(i));
  }
  auto alone = parse_or_fail("m", text);
  CHECK(alone->main().body().results()[0].def->literal()->is_opaque());
  CHECK_FALSE(alone->main().body().results()[4].def->literal()->is_opaque());
  CHECK(print_module(*alone) == text);
}

TEST_CASE("a side file's literal of another type is an error") {
  LiteralTable table{{"abc", counting(20)}};
  auto module =
      parse_module("m", main_text("", "f32[4,4]", "%w = constant <#abc> : f32[4,4] return %w"), table);
  REQUIRE_FALSE(module);
  CHECK(module.error().message.find("literal abc is f32[20], its constant f32[4,4]") != std::string::npos);
}

TEST_CASE("broken side files are errors") {
  Module module("m");
  Region& body = module.add_function("main").body();
  body.append_constant(counting(40));
  body.append_constant(Literal::strings({20}, std::vector<std::string>(20, "text")));
  std::string side = write_literals(module);
  for (size_t size = 0; size < side.size(); ++size) {
    auto table = read_literals(MappedFile::from_bytes("side", side.substr(0, size)));
    // Cut between two literals it is a shorter file that is whole.
    if (table) CHECK(table->size() < 2);
  }
  for (const char* text :
       {"", "firn literals 2\n", "firn literals 1\nabc", "firn literals 1\nabc f32[4] 15\n",
        "firn literals 1\nabc f32[4] 99999999999\n", "firn literals 1\nabc f32[-4] 16\n",
        "firn literals 1\nabc f32[9999999999,9999999999] 16\n", "firn literals 1\nabc f99[4] 16\n",
        "firn literals 1\nabc string[2] 8\n\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    INFO(text);
    CHECK_FALSE(read_literals(MappedFile::from_bytes("side", text)));
  }
}

TEST_CASE("one instruction prints on one line for messages") {
  auto module = parse_or_fail(
      "m", main_text("%x: f32[2]", "f32[2]", "%y = add %x, %x : f32[2] loc(\"node\") return %y"));
  CHECK(print_instruction(*module->main().body().results()[0].def) ==
        "%y = add %x, %x : f32[2] loc(\"node\")");
}

} // namespace
} // namespace firn
