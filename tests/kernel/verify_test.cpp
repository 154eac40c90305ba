// One case per invariant of the verifier: text that breaks it, and the message.
#include "tests/kernel/sample_kernels.h"

namespace firn::kernel {

static const std::string x = "  parameter \"x\" f32[64] align 64\n",
                         y = "  parameter \"y\" f32[64] align 64 written\n";

TEST_CASE("types of operands and results are checked") {
  rejects("%0: f32 = const [1]\n%1: f32x4 = fadd %0 %0\n", "has types (f32, f32), wants (f32x4, f32x4)");
  rejects("%0: f32 = const [1]\n%1: f32 = iadd %0 %0\n", "wants integers");
  rejects("%0: i32 = const [1]\n%1: i32 = fneg %0\n", "wants floats");
  rejects("%0: f32 = const [1]\n%1: f32 = fadd %0\n", "has 1 operands, wants 2");
  rejects("%0: f32 = const [1]\n%1: i32 = fcmp %0 %0 lt\n", "must give i1");
  rejects("%0: f32x4 = const [1, 2]\n", "one for each lane");
  rejects("%0: f32 = const [1]\n%1: f32 = fext %0\n", "must widen a float");
  rejects("%0: i8 = const [1]\n%1: i32 = trunc %0\n", "must narrow an integer");
  rejects("%0: f32 = const [1]\n%1: i64 = narrow %0 low 0 high 1\n", "must turn f32 into i8, i16 or i32");
  rejects("%0: i32 = const [1]\n%1: i8 = narrow %0 low 0 high 1\n", "must turn f32 into i8, i16 or i32");
  rejects("%0: f32 = const [1]\n%1: i8 = narrow %0 low 2 high 1\n", "must have bounds that its type holds");
  rejects("%0: f32 = const [1]\n%1: i8 = narrow %0 low -1 high 128\n",
          "must have bounds that its type holds");
  rejects("%0: f32 = const [1]\n%1: i8 = narrow %0 low 0 high 256\n", "must have bounds that its type holds");
  rejects("%0: f32 = const [1]\n%1: i32 = narrow %0 low 0 high 16777216 zero -1\n",
          "must have bounds that f32 holds without the zero point");
  rejects("%0: f32x4 = const [1]\n%1: i32 = bitcast %0\n", "same number of bits");
  rejects("%0: f32x4 = const [1]\n%1: f32 = extract %0 [4]\n", "names a lane that does not exist");
  rejects("%0: f32x4 = const [1]\n%1: f32x2 = shuffle %0 %0 [0, 8]\n", "names a lane that does not exist");
  rejects("%0: i32 = const [1]\n%1: i32 = select %0 %0 %0\n", "condition must be i1");
  rejects("%0: f32x3 = const [1]\n%1: i32x3 = const [1]\n%2: f32x3 = look_up %0 %1\n",
          "wants a table of a power of two");
  rejects("%0: f32x4 = const [1]\n%1: i32x2 = const [1]\n%2: f32x4 = look_up %0 %1\n",
          "wants a number of 32 bits per lane");
  rejects("%0: i8x4 = const [1]\n%1: i32 = const [1]\n%2: i32 = dot_u8s8 %1 %0 %1\n",
          "multiplies the wrong types");
}

TEST_CASE("memory accesses are checked") {
  rejects(x + "%0: f32 = load b1[0]\n", "buffer does not exist");
  rejects(x + "%0: f32 = load b0[64]\n", "accesses 1 elements at 64");
  rejects(x + "%0: f32x16 = load b0[49]\n", "accesses 16 elements at 49");
  rejects(x + "%0: f32 = const [1]\nstore %0 b0[0]\n", "not marked written");
  rejects(x + "%0: f32x4 = const [1]\n%1: f32x4 = gather %0 b0[0]\n", "offsets must be");
  rejects(x + "%0: i1x4 = const [1]\n%1: f32x8 = load %0 b0[0]\n", "mask must be i1");
  rejects(x + "%0: f32 = load b0[0] streaming\n", "only prefetches");
  rejects("  parameter \"m\" i1[64] align 64\n", "does not lie in memory");
  rejects("  parameter \"m\" i8[64] align 3\n", "no power of two");
}

TEST_CASE("scopes and blocks are checked") {
  rejects("for from (0) to (4) as i [0, 3] () {\n%0: f32 = const [1]\nyield\n}\n%1: f32 = fneg %0\n",
          "not defined here");
  rejects("for from (0) to (4) as i [0, 3] () {\n}\n", "empty block");
  rejects("for from (0) to (4) as i [0, 3] () {\n%0: f32 = const [1]\n}\n", "does not end in a yield");
  rejects("for from (0) to (4) as i [0, 3] () {\nyield\n}\n%0: index = index (i)\n",
          "symbol 'i' is not in scope");
  rejects("for from (0) to (4) as i [0, 3] step 0 () {\nyield\n}\n", "step must be positive");
  rejects("%0: f32 = const [1]\n%1: f32 = for %0 from (0) to (4) as i [0, 3] (%2: f32) {\nyield\n}\n",
          "has types (), wants (f32)");
  rejects("%0: f32 = const [1]\nif %0 () {\nyield\n} () {\nyield\n}\n", "condition must be a scalar i1");
  rejects("yield\n", "only a block inside an op ends in a yield");
  rejects("%0: f32 = const [1]\n%1: f32 = while %0 (%2: f32) {\nyield %2\n} (%3: f32) {\nyield %3\n}\n",
          "wants (i1, f32)");
  rejects("call_runtime system ()\n", "callee must be a runtime function");
}

TEST_CASE("extents are checked") {
  rejects("parallel p [0, 3] count 5\n", "parallel count is beyond its symbol's bounds");
  rejects(x + "%0: f32 = load b0[n]\n", "symbol 'n' is not known");
  rejects("extent n [-1, 4]\n", "bounds that no extent has");
  rejects("extent n [0, 2147483648]\n", "bounds that no extent has");
  rejects("parallel p [0, 3] count (p + 1)\n", "mentions symbol 'p', which is no extent");
  rejects("extent n [0, 4]\nparallel p [0, 3] count (n - 1)\n", "parallel count is below 1");
  rejects("extent n [0, 4]\nparallel p [0, 3] count (n) tasks 5\n", "shared by 5 tasks, of n iterations");
  rejects("parallel p [0, 3] count 4\nphases s [0, 2] count 0\n", "has 0 phases");
  rejects("parallel p [0, 3] count 4\nphases s [0, 0] count 1\n", "has 1 phases");
  rejects("parallel p [0, 3] count 4\nphases s [0, 2] count 4\n", "does not fit");
  rejects("parallel p [0, 0] count 1\nphases s [0, 2] count 3\n", "no parallel loop of known iterations");
  rejects("extent n [1, 4]\nparallel p [0, 3] count (n)\nphases s [0, 2] count 3\n", "known iterations");
  auto calls = [&](const std::string& call, const std::string& message) {
    std::string head = "extent a [0, 4]\nextent b [2, 9]\nbuffer \"x\" arena bytes 256 align 64 offset 0\n";
    std::string got = verify_text(head + call, x + "extent n [0, 4]\n%0: f32 = load b0[n]\n");
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  };
  calls("call 0 (0) extents (a)\n", "good");
  calls("call 0 (0) extents (b floordiv 4)\n", "good");
  calls("call 0 (0)\n", "called with 0 extents, has 1");
  calls("call 0 (0) extents (a, b)\n", "called with 2 extents, has 1");
  calls("call 0 (0) extents (b)\n", "may leave its bounds");
  calls("call 0 (0) extents (a - 1)\n", "may leave its bounds");
  calls("call 0 (0) extents (c)\n", "symbol 'c' is not known");
}

TEST_CASE("concurrent calls are checked") {
  auto calls = [&](const std::string& list, const std::string& message, const std::string& loop = "") {
    std::string head;
    for (const char* name : {"a", "b", "c"})
      head += "buffer \"" + std::string(name) + "\" arena bytes 256 align 64\n";
    std::string got = verify_text(head + "concurrent {\n" + list + "}\n",
                                  x + y + loop + "%0: f32 = load b0[0]\nstore %0 b1[0]\n");
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  };
  calls("call 0 (0, 1)\ncall 0 (0, 2)\n", "good");
  calls("call 0 (0, 1)\n", "fewer than two");
  calls("call 0 (0, 1)\ncall 0 (1, 2)\n", "writes what another touches");
  calls("call 0 (0, 1)\ncall 0 (2, 1)\n", "writes what another touches");
  calls("call 0 (0, 1)\nif 0 {\n} {\n}\n", "only calls");
  calls("call 0 (0, 1)\ncall 0 (0, 2)\n", "threads of its own", "parallel p [0, 3] count 4 tasks 2\n");
}

TEST_CASE("calls and buffers of a program are checked") {
  auto program_rejects = [](const std::string& head, const std::string& message) {
    std::string got = verify_text(head, x + y);
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  };
  std::string a = "buffer \"a\" arena bytes 512 align 64 offset 0\n",
              w = "buffer \"w\" weights bytes 256 align 64 offset 0\n";
  CHECK(verify_text(a + w + "call 0 (1, 0)\n", x + y) == "good");
  program_rejects(a + "call 1 (0, 0)\n", "calls kernel 1");
  program_rejects(a + "call 0 (0)\n", "called with 1 arguments, has 2 parameters");
  program_rejects(a + "call 0 (0, 0 + 257)\n", "needs 256 bytes at 257");
  program_rejects(a + "call 0 (0, 0 + 32)\n", "is promised alignment 64");
  program_rejects(a + w + "call 0 (0, 1)\n", "read-only");
  program_rejects(a + w + "constant 0\n", "no weights buffer");
  program_rejects(w + "constant 0\nconstant 0\n", "filled twice");
  program_rejects(a + "if 0 + 512 {\n} {\n}\n", "condition lies outside");
  program_rejects("buffer \"a\" arena bytes 512 align 64 offset 32\n", "against its alignment");
  program_rejects(a + w + "buffer \"s\" state 0 from 0 bytes 64 align 64\n", "first value that is none");
  program_rejects(w + "buffer \"s\" state 0 from 0 bytes 512 align 64\n", "first value that is none");
}

// The message of verify_entry for a program whose kernel is over an extent k and gets x and a status word.
static std::string entry_of(const std::string& steps, const std::string& parallel = "count (k)",
                            const std::string& begin = "require\nclear 1\n") {
  std::string text = "program \"p\" arena 4096 lower_bound 0 weights 0 {\nextent n [0, 4]\nextent m [1, 4]\n"
                     "buffer \"x\" input 0 bytes 256 align 64\n"
                     "buffer \"status\" status bytes 4 align 64 offset 0\n" +
                     begin + steps + "}\nkernel \"k\" {\n" + x +
                     "parameter \"status\" i32[1] align 4 written\nextent k [0, 4]\nparallel p [0, 3] " +
                     parallel + "\n%0: f32 = load b0[p]\n}\n";
  auto parsed = parse_program("t", text);
  if (!parsed) return "parse: " + parsed.error().message;
  if (Result result = verify(*parsed); !result) return result.error().message;
  Result result = verify_entry(*parsed);
  return result ? "good" : result.error().message;
}

TEST_CASE("an entry says all that a run does") {
  auto says = [](const std::string& got, const std::string& wanted) {
    INFO(got);
    CHECK(got.find(wanted) != std::string::npos);
  };
  const std::string call = "call 0 (0, 1) extents (m) count (m)\n", checked = "checked 1 {\n" + call + "}\n";
  says(entry_of(checked), "good");
  says(entry_of("checked 1 {\nwhen (n) {\ncall 0 (0, 1) extents (n) count (n)\n}\n}\n"), "good");
  says(entry_of("checked 1 {\nshare {\ncall 0 (0, 1) extents (m)\n}\n}\n", "count 4 tasks 2"), "good");
  says(entry_of(call), "may fail, and is not checked");
  says(entry_of(checked, "count (k)", "require\n"), "its status word is not cleared");
  says(entry_of(checked, "count (k)", "clear 1\n"), "bounds of extents are not required");
  says(entry_of("checked 1 {\ncall 0 (0, 1) extents (m)\n}\n"), "iterations that vary, and no count");
  says(entry_of("checked 1 {\ncall 0 (0, 1) extents (n) count (n)\n}\n"), "runs where it has no iterations");
  says(entry_of("checked 1 {\nwhen (2*n) {\ncall 0 (0, 1) extents (n) count (n)\n}\n}\n"),
       "runs where it has no iterations");
  says(entry_of("checked 1 {\ncall 0 (0, 1) extents (m)\n}\n", "count 4 tasks 2"), "no threads share");
  says(entry_of(checked + "clear 1\n"), "a run begins behind its first steps");
  says(entry_of("checked 1 {\ncall 0 (0, 1) extents (m) count (2*m)\n}\n"), "has iterations m");
  says(entry_of("checked 1 {\n" + call + call + "}\n"), "a step around a call holds 2");
  says(entry_of("checked 0 {\n" + call + "}\n"), "a status lies in no status word");
  says(entry_of("share {\n" + call + "}\n"), "which has one task");
  says(entry_of("if 0 {\nrequire\n} {\n}\n"), "a run begins within a step");
  says(entry_of("when (k) {\n" + call + "}\n"), "symbol 'k' is not known");
}

TEST_CASE("the interface of a program is checked") {
  auto rejects_head = [](const std::string& head, const std::string& message) {
    std::string got = verify_text(head, "");
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  };
  rejects_head("input \"x\" f32[k]\n", "symbol 'k' is not known");
  rejects_head("input \"x\" f32[-1]\n", "has bounds that no extent has");
  rejects_head("output \"y\" f32[1] updates 0\n", "updates an input that there is not");
  rejects_head("input \"x\" f32[1]\noutput \"y\" f32[1] updates 0\noutput \"z\" f32[1] updates 0\n",
               "two outputs update one state");
  rejects_head("extent n [0, 4]\nextent m [0, 4] dim \"m\"\n", "an extent before this one has no dim");
  rejects_head("extent n [0, 4] dim \"n\"\nextent m [0, 4]\n", "some extents have dims");
  rejects_head("extent n [0, 4] dim \"n\" multiple 0\n", "expected a multiple above 0");
}

} // namespace firn::kernel
