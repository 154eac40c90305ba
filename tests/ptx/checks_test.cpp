// The faults that the interpreter has to find: races, bad addresses, unwritten memory, divergent barriers,
// wrong launches; and code that it must not take for one.
#include "compiler/ptx/module.h"

#include <catch2/catch.hpp>

namespace firn::ptx {
namespace {

constexpr size_t kWords = 64;

// Runs a body with %rd1 = an initialised buffer of 64 words, %rd2 = one that is not written, %r1 = %tid.x,
// %r2 = 4 * %tid.x, %r3 = %ctaid.x, %rd3 = %rd2 + 4 * %tid.x, and 1 KiB of shared memory named s.
std::string run(const std::string& body, Dim3 grid = {}, Dim3 block = {64, 1, 1}, Options options = {}) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 a, .param .u64 b) {\n"
      ".reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<5>; .reg .b16 %h<4>;\n"
      ".shared .align 16 .b8 s[1024]; .local .align 4 .b8 l[16];\n"
      "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;\n"
      "mov.u32 %r3, %ctaid.x; cvt.u64.u32 %rd3, %r2; add.u64 %rd3, %rd3, %rd2; mov.u32 %r4, s;\n"
      "add.u32 %r5, %r4, %r2;\n" +
      body + "\nret;\n}\n";
  auto module = parse(text);
  if (!module) return module.error().message;
  Memory memory;
  uint64_t a = memory.allocate("a", std::vector<uint32_t>(kWords, 5)), b = memory.allocate("b", kWords * 4);
  if (options.max_instructions == 0) options.max_instructions = 1000000;
  auto done = launch(*module, "k", grid, block, 0, Arguments().add(a).add(b), memory, options);
  return done ? "" : done.error().message;
}

void finds(const std::string& body, const std::string& text, Dim3 grid = {}, Dim3 block = {64, 1, 1}) {
  INFO(body);
  CHECK_THAT(run(body, grid, block), Catch::Contains(text) && Catch::Contains("line "));
}

void accepts(const std::string& body, Dim3 grid = {}, Dim3 block = {64, 1, 1}) {
  INFO(body);
  CHECK(run(body, grid, block) == "");
}

const char* const kOther = "xor.b32 %r6, %r5, 128;\n"; // the word of a thread of the other warp

} // namespace

TEST_CASE("a race names kernel, block, thread, line and the other thread") {
  CHECK(run("st.shared.u32 [%r5], %r1;\nxor.b32 %r6, %r5, 4;\nld.shared.u32 %r7, [%r6];") ==
        "kernel 'k', block (0, 0, 0), thread (0, 0, 0), line 12: a race: it reads 4 bytes at 4 of shared "
        "memory, which "
        "thread (1, 0, 0) wrote, and nothing orders the two");
}

TEST_CASE("races in shared memory") {
  std::string write = "st.shared.u32 [%r5], %r1;\n",
              read = std::string(kOther) + "ld.shared.u32 %r7, [%r6];\n";
  finds(write + read, "shared memory"); // unwritten yet, or a race: the order of warps decides
  accepts(write + "bar.sync 0;\n" + read);
  finds(write + "bar.sync 0;\n" + read + "st.shared.u32 [%r5], %r1;", "a race");
  accepts(write + "bar.sync 0;\n" + read + "bar.sync 0;\n st.shared.u32 [%r5], %r1;");
  finds("st.shared.u32 [s], %r1;", "wrote, and nothing orders");
  // Bytes of one word are apart.
  accepts("add.u32 %r6, %r4, %r1; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r6], %h1;");
  finds("add.u32 %r6, %r4, %r1; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r6], %h1; ld.shared.u32 %r7, [s];",
        "a race");
  // Lanes in lockstep are no barrier, nor is a shuffle; bar.warp.sync is one for its warp only.
  std::string neighbour = "xor.b32 %r6, %r5, 4; ld.shared.u32 %r7, [%r6];\n";
  finds(write + neighbour, "a race");
  finds(write + "shfl.sync.idx.b32 %r7, %r1, 0, 31, -1;\n" + neighbour, "a race");
  accepts(write + "bar.warp.sync -1;\n" + neighbour);
  finds(write + "bar.warp.sync -1;\n" + read, "shared memory");
  // Strong accesses and atomics are no race among themselves, but with weak ones.
  accepts("st.volatile.shared.u32 [s], %r1; ld.volatile.shared.u32 %r7, [s];");
  finds("atom.shared.add.u32 %r7, [s], 1;", "never written");
  accepts("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 %r7, [s], 1;");
  finds("setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 %r7, [s], 1; "
        "ld.shared.u32 %r7, [s];",
        "a race");
}

TEST_CASE("barriers of parts of a block order those parts") {
  std::string warps = "setp.lt.u32 %p1, %r1, 64;\n"; // warps 0 and 1 of 4
  std::string exchange =
      "st.shared.u32 [%r5], %r1;\n bar.sync 1, 64;\n" + std::string(kOther) + "ld.shared.u32 %r7, [%r6];\n";
  accepts(warps + "@!%p1 bra END;\n" + exchange + "END:", {}, {128, 1, 1});
  // The other half reads it behind another barrier only.
  std::string far = "bar.sync 2, 64; xor.b32 %r6, %r5, 256; ld.shared.u32 %r7, [%r6];\n";
  finds(warps + "@!%p1 bra REST;\n st.shared.u32 [%r5], %r1; bar.sync 1, 64;\n bra END;\nREST:" + far +
            "END:",
        "a race", {}, {128, 1, 1});
  // A producer only arrives, a consumer waits.
  std::string producer =
      "setp.lt.u32 %p1, %r1, 32;\n@!%p1 bra REST;\n st.shared.u32 [%r5], %r1; bar.arrive 1, 64; bra END;\n";
  accepts(producer + "REST: bar.sync 1, 64;\n" + kOther + "ld.shared.u32 %r7, [%r6]; END:");
  finds(producer + "REST: " + kOther + "ld.shared.u32 %r7, [%r6]; bar.sync 1, 64; END:", "shared memory");
  // A third warp learns from the second all that the second knows of the first.
  std::string chain = "shr.u32 %r8, %r1, 5; setp.eq.u32 %p1, %r8, 0; setp.eq.u32 %p2, %r8, 1;\n"
                      "@!%p1 bra B; st.shared.u32 [%r5], %r1; bar.sync 1, 64; bra END;\n"
                      "B: @!%p2 bra C; bar.sync 1, 64; bar.sync 2, 64; bra END;\n"
                      "C: bar.sync 2, 64; xor.b32 %r6, %r5, 256; ld.shared.u32 %r7, [%r6]; END:";
  accepts(chain, {}, {96, 1, 1});
}

TEST_CASE("races in global memory, within a block and between blocks") {
  accepts("st.global.u32 [%rd3], %r1;");
  finds("st.global.u32 [%rd2], %r1;", "a race");
  finds("st.global.u32 [%rd3], %r1;", "another block (0)", {2, 1, 1});
  accepts("ld.global.u32 %r7, [%rd1];", {3, 1, 1});
  finds("ld.global.u32 %r7, [%rd1]; bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], %r1;",
        "another block", {2, 1, 1});
  accepts("ld.global.u32 %r7, [%rd1]; bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd1], %r1;");
  accepts("red.global.add.u32 [%rd1], 1;", {3, 1, 1});
  accepts("st.global.u32 [%rd3], %r1; bar.sync 0; xor.b64 %rd4, %rd3, 128; ld.global.u32 %r7, [%rd4];");
}

TEST_CASE("bad addresses") {
  finds("ld.global.u32 %r7, [%rd1+256];", "reads 4 bytes at 256 of buffer 'a', which has 256 bytes");
  finds("ld.global.u32 %r7, [%rd1+-4];", "where no buffer lies");
  finds("mov.u64 %rd4, 0; ld.global.u32 %r7, [%rd4];", "at 0x0, where no buffer lies");
  finds("ld.global.u32 %r7, [%rd1+2];", "misaligned");
  finds("ld.global.v4.u32 {%r7, %r8, %r9, %r10}, [%rd1+8];",
        "reads 16 bytes at 8 of buffer 'a', which is misaligned");
  finds("st.shared.u32 [s+1024], %r1;", "shared memory, which has 1024 bytes");
  finds("ld.local.u32 %r7, [l+16];", "local memory, which has 16 bytes");
  finds("ld.global.u32 %r7, [%rd2];", "never written");
  finds("ld.shared.u32 %r7, [%r5];", "reads 4 bytes at 0 of shared memory, never written");
  finds("ld.local.u32 %r7, [l];", "local memory, never written");
  accepts("st.local.u32 [l], %r1; ld.local.u32 %r7, [l];");
  accepts("cvta.shared.u64 %rd4, %rd5; cvt.u64.u32 %rd4, %r5; cvta.shared.u64 %rd4, %rd4; st.u32 [%rd4], "
          "%r1; ld.u32 %r7, [%rd4]; ld.shared.u32 %r8, [%r5];");
}

TEST_CASE("barriers that not all threads reach") {
  finds("setp.lt.u32 %p1, %r1, 32; @%p1 bra END; bar.sync 0; END:",
        "a deadlock: barrier 0 waits for 64 threads, 32 arrived; 32 threads of the block have ended");
  finds("setp.lt.u32 %p1, %r1, 7; @%p1 bra END; bar.sync 0; END:", "57 arrived");
  finds("and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 0; @%p1 bra A; bar.sync 0; bra END; A: bar.sync 0; END:",
        "a divergent barrier");
  accepts("and.b32 %r7, %r1, 1; setp.eq.u32 %p1, %r7, 0; @%p1 bra A; barrier.sync 0; bra END; A: "
          "barrier.sync 0; END:");
  accepts("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 0; bra END; A: bar.sync 0; END:");
  finds("setp.eq.u32 %p1, %r1, 3; @%p1 bra END; bar.warp.sync 15; END:", "leaves out a lane");
  finds("bar.warp.sync 15;", "leaves out a lane");
  finds("setp.gt.u32 %p1, %r1, 3; @%p1 bra L; bar.sync 1, 64; L: bar.sync 0;", "line ");
  finds("bar.sync 0, 40;", "a multiple of 32");
  finds("mov.u32 %r7, 20; bar.sync %r7;", "barrier 20 of 16");
  CHECK_THAT(run("L: bra L;"), Catch::Contains("runs for more than"));
  finds("trap;", "traps");
}

TEST_CASE("asynchronous copies that nobody waits for") {
  std::string copy = "mov.u64 %rd5, %rd1; cvt.u64.u32 %rd4, %r2; add.u64 %rd5, %rd5, %rd4;\n"
                     "cp.async.ca.shared.global [%r5], [%rd5], 4;\ncp.async.commit_group;\n";
  std::string own = "ld.shared.u32 %r7, [%r5];\n",
              other = "bar.sync 0;\n" + std::string(kOther) + "ld.shared.u32 %r7, [%r6];\n";
  for (auto moment : {Options::Copies::Earliest, Options::Copies::Latest}) {
    Options options;
    options.copies = moment;
    auto error = [&](const std::string& body) { return run(body, {}, {64, 1, 1}, options); };
    CHECK_THAT(error(copy + own), Catch::Contains("has waited for its asynchronous copy"));
    CHECK(error(copy + "cp.async.wait_group 0;\n" + own) == "");
    CHECK(error(copy + "cp.async.wait_all;\n" + own) == "");
    CHECK_THAT(error(copy + "cp.async.wait_group 1;\n" + own), Catch::Contains("has waited for"));
    CHECK_THAT(error(copy + other), Catch::Contains("has waited for"));
    CHECK(error(copy + "cp.async.wait_group 0;\n" + other) == "");
    CHECK_THAT(error(copy + "cp.async.wait_group 0;\n" + kOther + "ld.shared.u32 %r7, [%r6];"),
               Catch::Contains("shared memory"));
    CHECK_THAT(error(copy + "st.global.u32 [%rd5], %r1;"),
               Catch::Contains("writes the source of the asynchronous copy in line 11"));
    CHECK(error(copy + "cp.async.wait_all; st.global.u32 [%rd5], %r1;") == "");
    CHECK(error(copy) == "");
    // The group before the last: its copies are done, the later ones are not.
    std::string second = "cp.async.ca.shared.global [%r5+512], [%rd5], 4, "
                         "0;\ncp.async.commit_group;\ncp.async.wait_group 1;\n";
    CHECK(error(copy + second + own) == "");
    CHECK_THAT(error(copy + second + "ld.shared.u32 %r7, [%r5+512];"), Catch::Contains("has waited for"));
    // Bytes beyond the source are zeros: storing to memory by the value would be beyond the buffer.
    CHECK(error(copy + second +
                "cp.async.wait_all; ld.shared.u32 %r7, [%r5+512]; mul.lo.u32 %r7, %r7, 4096; cvt.u64.u32 "
                "%rd4, %r7; add.u64 %rd3, %rd3, %rd4; st.global.u32 [%rd3], 1;") == "");
  }
}

TEST_CASE("launches beyond the limits") {
  auto module = parse(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 a) "
                      ".maxntid 64, 1, 1 {\n.shared .b8 s[40000];\nret;\n}\n"
                      ".visible .entry q() .reqntid 32, 2, 1 { ret; }");
  REQUIRE(module);
  Memory memory;
  auto error = [&](const std::string& kernel, Dim3 grid, Dim3 block, uint64_t shared,
                   const Arguments& arguments) {
    auto done = launch(*module, kernel, grid, block, shared, arguments, memory);
    return done ? std::string() : done.error().message;
  };
  Arguments one = Arguments().add(1);
  CHECK(error("k", {}, {64, 1, 1}, 0, one) == "");
  CHECK(error("k", {}, {65, 1, 1}, 0, one) ==
        "kernel 'k': a block of 65 x 1 x 1 threads, at most 64 x 1 x 1 are declared");
  CHECK(error("k", {}, {64, 1, 1}, 200000, one) ==
        "kernel 'k': 240000 bytes of shared memory, at most 232448 are there");
  CHECK(error("k", {}, {0, 1, 1}, 0, one) == "kernel 'k': a launch without threads");
  CHECK(error("k", {1, 70000, 1}, {1, 1, 1}, 0, one) == "kernel 'k': a grid of 1 x 70000 x 1 blocks");
  CHECK(error("k", {}, {1, 1, 1}, 0, {}) == "kernel 'k': 0 arguments for 1 parameters");
  CHECK(error("k", {}, {1, 1, 1}, 0, Arguments().add(1.0)) ==
        "kernel 'k': argument 0 has 8 bytes, its parameter 4");
  CHECK(error("nothing", {}, {}, 0, {}) == "the module has no kernel 'nothing'");
  CHECK(error("q", {}, {32, 2, 1}, 0, {}) == "");
  CHECK(error("q", {}, {64, 1, 1}, 0, {}) ==
        "kernel 'q': a block of 64 x 1 x 1 threads, 32 x 2 x 1 are declared");
  CHECK(error("q", {}, {2048, 1, 1}, 0, {}) == "kernel 'q': a block of 2048 x 1 x 1 threads");
}

} // namespace firn::ptx
