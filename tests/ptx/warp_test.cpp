// Operations of warps: shuffles, votes, matches, reductions, divergence, barriers with results, atomics.
#include "compiler/ptx/module.h"

#include <catch2/catch.hpp>

namespace firn::ptx {
namespace {

// Runs a body that leaves its result of each thread in %r9; %r1 = %tid.x. An error comes as one text in
// `error`.
std::vector<uint32_t> run(const std::string& body, uint32_t threads = 32, std::string* error = nullptr,
                          uint64_t seed = 0) {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
                     ".reg .b32 %r<20>; .reg .b64 %rd<5>; .reg .pred %p<5>; .shared .align 4 .u32 s[64];\n"
                     "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 "
                     "%rd1, %rd1, %rd2;\n" +
                     body + "\nst.global.u32 [%rd1], %r9;\nret;\n}\n";
  auto module = parse(text);
  Memory memory;
  uint64_t out = memory.allocate("out", threads * 4);
  Options options;
  options.seed = seed;
  std::string message = module ? "" : module.error().message;
  if (module) {
    auto done = launch(*module, "k", {}, {threads, 1, 1}, 0, Arguments().add(out), memory, options);
    if (!done) message = done.error().message;
  }
  if (error)
    *error = message;
  else
    CHECK(message == "");
  return memory.read<uint32_t>(out, threads);
}

template <class F> std::vector<uint32_t> wanted(uint32_t threads, F&& value) {
  std::vector<uint32_t> values(threads);
  for (uint32_t i = 0; i < threads; ++i) values[i] = value(i);
  return values;
}

} // namespace

TEST_CASE("shuffles within segments") {
  CHECK(run("shfl.sync.up.b32 %r9, %r1, 1, 0, -1;") ==
        wanted(32, [](uint32_t i) { return i == 0 ? 0 : i - 1; }));
  CHECK(run("shfl.sync.down.b32 %r9, %r1, 4, 31, -1;") ==
        wanted(32, [](uint32_t i) { return i + 4 < 32 ? i + 4 : i; }));
  CHECK(run("shfl.sync.bfly.b32 %r9, %r1, 5, 31, -1;") == wanted(32, [](uint32_t i) { return i ^ 5; }));
  CHECK(run("shfl.sync.idx.b32 %r9, %r1, 3, 31, -1;") == wanted(32, [](uint32_t) { return 3u; }));
  // Segments of 8 lanes: c = (32 - 8) << 8 | 7.
  CHECK(run("shfl.sync.idx.b32 %r9, %r1, 3, 0x1807, -1;") ==
        wanted(32, [](uint32_t i) { return i / 8 * 8 + 3; }));
  CHECK(run("shfl.sync.down.b32 %r9|%p1, %r1, 4, 0x1807, -1; selp.b32 %r9, 100, %r9, %p1;") ==
        wanted(32, [](uint32_t i) { return i % 8 < 4 ? 100 : i; }));
  std::string error;
  run("shfl.sync.bfly.b32 %r9, %r1, 16, 31, -1;", 16, &error);
  CHECK_THAT(error, Catch::Contains("a shuffle reads lane 16, which does not take part"));
  // Lanes that come on different ways meet, if the mask names them.
  CHECK(run("mov.u32 %r2, 1; setp.lt.u32 %p1, %r1, 16; @%p1 bra A; mov.u32 %r2, 2; A: shfl.sync.bfly.b32 "
            "%r9, %r2, 16, 31, -1;") == wanted(32, [](uint32_t i) { return i < 16 ? 2u : 1u; }));
  run("setp.lt.u32 %p1, %r1, 16; @%p1 bra A; mov.u32 %r9, 1; bar.sync 0; bra B; A: shfl.sync.bfly.b32 %r9, "
      "%r1, 1, 31, "
      "-1; B:",
      32, &error);
  CHECK_THAT(error, Catch::Contains("a deadlock"));
}

TEST_CASE("votes, matches and reductions") {
  CHECK(run("setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r9, %p1, -1;") ==
        wanted(32, [](uint32_t) { return 31u; }));
  CHECK(run("setp.lt.u32 %p1, %r1, 5; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;")[9] == 1);
  CHECK(run("setp.lt.u32 %p1, %r1, 5; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;")[9] == 0);
  CHECK(run("setp.lt.u32 %p1, %r1, 5; vote.sync.uni.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;")[9] == 0);
  CHECK(run("setp.lt.u32 %p1, %r1, 5; vote.sync.any.pred %p2, !%p1, -1; selp.b32 %r9, 1, 0, %p2;")[9] == 1);
  CHECK(run("and.b32 %r2, %r1, 1; match.any.sync.b32 %r9, %r2, -1;") ==
        wanted(32, [](uint32_t i) { return i & 1 ? 0xaaaaaaaa : 0x55555555; }));
  CHECK(run("and.b32 %r2, %r1, 0; match.all.sync.b32 %r9|%p1, %r2, -1; selp.b32 %r9, %r9, 7, %p1;")[3] ==
        0xffffffff);
  CHECK(run("match.all.sync.b32 %r9|%p1, %r1, -1; selp.b32 %r9, %r9, 7, %p1;")[3] == 7);
  CHECK(run("redux.sync.add.u32 %r9, %r1, -1;")[5] == 496);
  CHECK(run("sub.s32 %r2, %r1, 7; redux.sync.min.s32 %r9, %r2, -1;")[5] == static_cast<uint32_t>(-7));
  CHECK(run("redux.sync.max.u32 %r9, %r1, -1;")[5] == 31);
  CHECK(run("redux.sync.xor.b32 %r9, %r1, -1;")[5] == 0);
  CHECK(run("setp.lt.u32 %p1, %r1, 4; mov.u32 %r9, 0; @%p1 activemask.b32 %r9;") ==
        wanted(32, [](uint32_t i) { return i < 4 ? 15u : 0u; }));
}

TEST_CASE("lanes part and meet again") {
  // The number of steps of 3n + 1 differs from lane to lane.
  auto steps = [](uint32_t i) {
    uint32_t count = 0;
    for (uint32_t n = i + 1; n != 1; ++count) n = n & 1 ? 3 * n + 1 : n / 2;
    return count;
  };
  std::string body = "mov.u32 %r9, 0; add.u32 %r2, %r1, 1;\n"
                     "LOOP: setp.eq.u32 %p1, %r2, 1; @%p1 bra DONE;\n"
                     "and.b32 %r3, %r2, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra EVEN;\n"
                     "mad.lo.u32 %r2, %r2, 3, 1; bra NEXT;\nEVEN: shr.u32 %r2, %r2, 1;\n"
                     "NEXT: add.u32 %r9, %r9, 1; bra LOOP;\nDONE: bar.sync 0;";
  for (uint64_t seed : {0, 1, 5}) CHECK(run(body, 64, nullptr, seed) == wanted(64, steps));
}

TEST_CASE("barriers with results") {
  CHECK(run("setp.lt.u32 %p1, %r1, 5; bar.red.popc.u32 %r9, 0, %p1;", 64) ==
        wanted(64, [](uint32_t) { return 5u; }));
  CHECK(run("setp.lt.u32 %p1, %r1, 5; bar.red.and.pred %p2, 0, %p1; selp.b32 %r9, 1, 0, %p2;", 64)[40] == 0);
  CHECK(run("setp.lt.u32 %p1, %r1, 5; bar.red.or.pred %p2, 0, 64, %p1; selp.b32 %r9, 1, 0, %p2;", 64)[40] ==
        1);
  CHECK(run("setp.lt.u32 %p1, %r1, 5; barrier.cta.red.popc.aligned.u32 %r9, 0, !%p1;", 64)[3] == 59);
}

TEST_CASE("atomics on integers") {
  std::string start = "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 10; bar.sync 0;\n",
              end = "bar.sync 0; ld.shared.u32 %r9, [s];";
  struct Row {
    const char* text;
    uint32_t result;
  };
  for (const Row& row : {Row{"red.shared.add.u32 [s], 2;", 74}, Row{"red.shared.max.s32 [s], %r1;", 31},
                         Row{"red.shared.min.s32 [s], -1;", 0xffffffff}, Row{"red.shared.or.b32 [s], 5;", 15},
                         Row{"red.shared.and.b32 [s], 2;", 2}, Row{"red.shared.xor.b32 [s], 3;", 10},
                         Row{"red.shared.inc.u32 [s], 20;", 0}, Row{"atom.shared.exch.b32 %r2, [s], 4;", 4},
                         Row{"atom.shared.cas.b32 %r2, [s], 10, 77;", 77},
                         Row{"atom.relaxed.cta.shared.dec.u32 %r2, [s], 5;", 4}}) {
    INFO(row.text);
    CHECK(run(start + row.text + end)[0] == row.result);
  }
  // Each old value is seen once.
  auto tickets = run(start + "atom.shared.add.u32 %r9, [s], 1;", 64);
  std::sort(tickets.begin(), tickets.end());
  CHECK(tickets == wanted(64, [](uint32_t i) { return i + 10; }));
}

} // namespace firn::ptx
