// The parser reads whole modules, and refuses with its line all that it does not understand.
#include "compiler/ptx/module.h"
#include "compiler/ptx/parser.h"

#include <catch2/catch.hpp>

namespace firn::ptx {
namespace {

const std::string kHead = ".version 8.0\n.target sm_80\n.address_size 64\n"; // three lines

std::string error_of(const std::string& text) {
  auto module = parse(kHead + text);
  return module ? "" : module.error().message;
}

} // namespace

TEST_CASE("a module's variables, functions and their parts") {
  auto unit = parse_unit(kHead + R"(
    .file 1 "a.cu"
    .global .align 4 .u32 table[4] = {1, -2, 0x10, 010};
    .const .f32 half = 0f3F000000;
    .global .u64 pointer = generic(table)+4;
    .extern .shared .align 16 .b8 dynamic[];
    .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[12])
    .maxntid 128, 1, 1 .minnctapersm 2
    {
      .reg .pred %p<3>; .reg.b32 %r<4>, %x;
      .loc 1 2 3, function_name $L, inlined_at 1 2 3
      /* a comment
         of two lines */
      .pragma "nounroll";
      $L: @!%p1 bra $L;
      { .reg .b32 %x; mov.b32 %x, 1; }
      ret;
    }
    .section .debug_info { .b8 1 }
)");
  REQUIRE(unit);
  CHECK(unit->target == "sm_80");
  REQUIRE(unit->variables.size() == 4);
  CHECK(unit->variables[0].size == 16);
  CHECK(unit->variables[0].values[4] == 0xfe);
  CHECK(unit->variables[0].values[12] == 8);
  CHECK(unit->variables[1].values[3] == 0x3f);
  REQUIRE(unit->variables[2].addresses.size() == 1);
  CHECK(unit->variables[2].addresses[0].offset == 4);
  CHECK(unit->variables[3].size == 0);
  const Function& kernel = unit->functions.at(0);
  CHECK(kernel.is_entry);
  CHECK(kernel.parameters[1].size == 12);
  CHECK(kernel.max_threads[0] == 128);
  CHECK(kernel.registers.size() == 3 + 4 + 1 + 1);
  REQUIRE(kernel.body.size() == 3);
  CHECK(kernel.body[0].guard_is_negated);
  CHECK(kernel.body[1].operands[0].index == 8); // the register of the inner scope
  CHECK(kernel.body[1].line > 17);
}

TEST_CASE("what is not PTX, or not understood, is refused with its line") {
  auto body = [](const std::string& text) {
    return error_of(
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n.reg .pred %q;\n" + text +
        "\nret;\n}");
  };
  CHECK(body("mov.b32 %r1, %r2;") == "");
  CHECK(body("mov.b32 %r1 %r2;") == "line 9: found '%r2', wanted ','");
  CHECK(body("mov.b32 %r1, %r9;") ==
        "line 9: '%r9' is neither a variable nor a register that the interpreter knows");
  CHECK(body("bra NOWHERE;") == "line 9: no label 'NOWHERE'");
  CHECK(body("L: L: ret;") == "line 9: 'L' is declared twice");
  CHECK(body("@%r1 bra L;") == "line 9: found '%r1', wanted a register of type pred");
  CHECK(body("add.s32 %r1, %r2;") == "line 9: 'add.s32' with 2 operands, wanted 3");
  CHECK(body("ld.global.u32 %r1, [%r2];").find("an address of 32 bits") != std::string::npos);
  CHECK(body("ld.param.u32 %r1, [q];") == "line 9: no variable 'q'");
  CHECK(body("call printf, ();").find("a call of 'printf'") != std::string::npos);
  CHECK(body("wgmma.fence.sync.aligned;") == "line 9: 'wgmma.fence.sync.aligned' is not known");
  CHECK(body("atom.global.add.f32 %r1, [%rd1], %r2;").find("line 9: ") == 0);
  CHECK(body("mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32 %r1, %r1, %r1, %r1;").find("is not known") !=
        std::string::npos);
  CHECK(body("ld.volatile.global.v4.u64 {%rd1, %rd1, %rd1, %rd1}, [%rd2];") != "");
  CHECK(error_of(".visible .entry k() { ?") == "line 4: no token of PTX begins with '?'");
  CHECK(error_of(".visible .entry k() {").find("the end of the text") != std::string::npos);
  CHECK(error_of(".global .align 3 .b8 x[2];") == "line 4: found an alignment of 3, wanted a power of two");
  CHECK(error_of(".global .b8 x[1] = {1, 2};") == "line 4: 'x' has more values than elements");
  CHECK(error_of(".global .b8 x[100000000000];") == "line 4: 'x' is larger than 4 GiB");
  CHECK(error_of(".global .b8 x;\n.global .b8 x;") == "line 5: 'x' is declared twice");
  CHECK(error_of("/* open") == "line 4: a comment has no end");
  CHECK(!parse(".version 6.4\n.target sm_80\n"));
  CHECK(!parse(".version 8.0\n.target sm_80\n.address_size 32\n"));
}

TEST_CASE("variables of a module keep their values between launches") {
  auto module = parse(kHead + R"(
    .global .u32 counter = 40;
    .const .u32 step = 2;
    .global .u64 where = counter;
    .visible .entry k() {
      .reg .b32 %r<3>; .reg .b64 %rd;
      ld.global.u64 %rd, [where];
      ld.global.u32 %r1, [%rd];
      ld.const.u32 %r2, [step];
      add.u32 %r1, %r1, %r2;
      st.global.u32 [counter], %r1;
      ret;
    })");
  REQUIRE(module);
  CHECK(module->kernels() == std::vector<std::string>{"k"});
  Memory memory;
  for (int i = 0; i < 2; ++i) REQUIRE(launch(*module, "k", {}, {}, 0, {}, memory));
  CHECK(module->variables().read<uint32_t>(module->variable("counter"), 1)[0] == 44);
  CHECK(module->variable("nothing") == 0);
}

TEST_CASE("functions are inlined with their own registers, variables and results") {
  auto module = parse(kHead + R"(
    .func (.param .b32 r) twice(.param .b32 a) {
      .reg .b32 %r<2>; .reg .pred %p;
      ld.param.b32 %r1, [a];
      setp.gt.s32 %p, %r1, 100;
      @%p bra BIG;
      add.s32 %r1, %r1, %r1;
      BIG: st.param.b32 [r+0], %r1;
      ret;
    }
    .visible .entry k(.param .u64 out) {
      .reg .b32 %r<3>; .reg .b64 %rd<2>;
      ld.param.u64 %rd1, [out];
      mov.u32 %r1, 21;
      { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call.uni (y), twice, (x); ld.param.b32 %r1, [y]; }
      { .param .b32 x; .param .b32 y; st.param.b32 [x], 300; call.uni (y), twice, (x); ld.param.b32 %r2, [y]; }
      st.global.v2.u32 [%rd1], {%r1, %r2};
      ret;
    })");
  REQUIRE(module);
  Memory memory;
  uint64_t out = memory.allocate("out", 8);
  REQUIRE(launch(*module, "k", {}, {}, 0, Arguments().add(out), memory));
  CHECK(memory.read<uint32_t>(out, 2) == std::vector<uint32_t>{42, 300});
}

TEST_CASE("memory is a set of buffers") {
  Memory memory;
  uint64_t a = memory.allocate("a", 100), b = memory.allocate("b", std::vector<float>{1, 2});
  CHECK(a % 256 == 0);
  CHECK(b != a);
  CHECK(memory.is_written(b, 8));
  CHECK(!memory.is_written(a, 1));
  uint32_t word = 7;
  CHECK(memory.write(a + 96, &word, 4));
  CHECK(memory.is_written(a + 96, 4));
  CHECK(!memory.write(a + 97, &word, 4));
  CHECK(!memory.read(a + 200, &word, 4));
  CHECK(memory.read<float>(b + 4, 1)[0] == 2);
  CHECK(!memory.release(b + 4));
  CHECK(memory.release(b));
  CHECK(!memory.read(b, &word, 4));
}

} // namespace firn::ptx
