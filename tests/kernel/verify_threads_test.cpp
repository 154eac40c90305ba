// One case per rule of kernels of threads: text that breaks it, and the message.
#include "tests/kernel/sample_kernels.h"

namespace firn::kernel {
namespace {

const std::string kBuffers = "parameter \"x\" f32[64] align 64\nparameter \"y\" f32[64] align 64 written\n"
                             "scratch \"own\" f32[8] align 16 written\n"
                             "scratch \"tile\" f32[64] align 16 written shared\n";

// A kernel of 32 threads with buffers b0 (read), b1 (written), b2 (a thread's own) and b3 (shared), and this
// body.
std::string block(const std::string& body) {
  return kBuffers + "block_threads 32\n" + body;
}
// That with `code` in one op; values are numbered from 10.
std::string thread(const std::string& code) {
  return block("threads as t [0, 31] () {\n" + code + "yield\n}\n");
}
// That with a value of each thread, %0, in front.
std::string spread(const std::string& body) {
  return block("%0: spread f32 = threads as t [0, 31] () {\n%1: f32 = load b0[t]\nyield %1\n}\n" + body);
}

} // namespace

TEST_CASE("kernels of threads verify") {
  CHECK(verify_text("", block("")) == "good");
  CHECK(verify_text("", thread("%10: f32 = load b0[t]\nstore %10 b3[t]\n")) == "good");
  CHECK(verify_text("", spread("%2: spread f32 = shuffle_xor %0 [31]\n%3: spread f32 = shuffle_down %2 [1]\n"
                               "threads %3 as u [0, 31] (%4: f32) {\nstore %4 b1[u]\nyield\n}\n")) == "good");
  CHECK(verify_text("", thread("copy_async [16] b3[4*t] from b0[0]\n")) == "good");
  CHECK(verify_text("", block("copy_commit\ncopy_wait [0]\n%0: f32 = load b0[0]\n%1: f32 = fadd %0 %0\n")) ==
        "good");
}

TEST_CASE("what is of threads is in no other kernel") {
  rejects(kBuffers, "has shared memory, but no threads");
  rejects("threads as t [0, 31] () {\nyield\n}\n", "threads: is for kernels of threads");
  rejects("copy_commit\n", "copy_commit: is for kernels of threads");
  rejects("copy_wait [0]\n", "copy_wait: is for kernels of threads");
  rejects("%0: spread f32 = const [1]\n", "%0 is a value of several threads where there is one");
  rejects(
      "parameter \"x\" f32[64] align 64\nparameter \"y\" f32[64] align 64 written shared\nblock_threads 32\n",
      "buffer 'y' is a parameter and shared");
}

TEST_CASE("the limits of a block are checked") {
  rejects("scratch \"tile\" f32[58113] align 16 written shared\nblock_threads 32\n",
          "has 232452 bytes of shared memory, of 232448");
  rejects("scratch \"a\" f32[58112] align 16 written shared\nscratch \"b\" i8[1] align 16 written shared\n"
          "block_threads 32\n",
          "has 232449 bytes of shared memory");
  CHECK(verify_text("", "scratch \"tile\" f32[58112] align 16 written shared\nblock_threads 1024\n") ==
        "good");
  rejects("block_threads 1025\n", "parse: ");
  Kernel kernel;
  kernel.threads = 1025;
  CHECK_THAT(verify(kernel).error().message, Catch::Contains("has 1025 threads, of 1024"));
  kernel.threads = -1;
  CHECK_THAT(verify(kernel).error().message, Catch::Contains("has -1 threads"));
}

TEST_CASE("what CPUs have is in no kernel of threads") {
  rejects("parameter \"t\" f32[64] align 64 written per_task\nblock_threads 32\n",
          "buffer 't' is scratch of a task, which threads do not have");
  rejects("parallel p [0, 3] count 4 tasks 2\nblock_threads 32\n",
          "has threads, and tasks or matrix registers");
  rejects("tile rows 16 bytes 64\nblock_threads 32\n", "has threads, and tasks or matrix registers");
  const std::string call = "%10: i64 = const [4]\ncall_runtime %10 firn_rt2_sort (b0, b1)\n";
  if (verify_text("", kBuffers.substr(0, kBuffers.find("scratch")) + call) == "good") {
    rejects(block(call), "is for CPUs");
    rejects(thread(call), "is for CPUs");
  }
}

TEST_CASE("ops of threads lie side by side and count the kernel's threads") {
  rejects(thread("threads as u [0, 31] () {\nyield\n}\n"), "threads: lies in the code of one thread");
  for (const char* op : {"copy_commit\n", "copy_wait [0]\n"})
    rejects(thread(op), "lies in the code of one thread");
  rejects(block("threads as t [0, 30] () {\nyield\n}\n"), "counts other threads than the kernel's");
  rejects(block("threads as t [1, 31] () {\nyield\n}\n"), "counts other threads than the kernel's");
}

TEST_CASE("what lies between the code of threads changes no memory") {
  rejects(block("%0: f32 = const [1]\nstore %0 b1[0]\n"), "store: lies outside of the code of a thread");
  rejects(block("copy_async [4] b3[0] from b0[0]\n"), "copy_async: lies outside of the code of a thread");
  rejects(block("prefetch b0[0]\n"), "prefetch: lies outside of the code of a thread");
  rejects(block("%0: i32x2 = const [1]\n%1: f32x2 = gather %0 b0[0]\n"),
          "gather: lies outside of the code of a thread");
}

TEST_CASE("values of threads move between their code alone") {
  rejects(spread("%2: f32 = fneg %0\n"), "has types (spread f32), wants (f32)");
  rejects(spread("%2: spread f32 = fneg %0\n"), "computes with values of threads outside of their code");
  rejects(spread("%2: spread f32 = const [1]\n"), "const: gives values of threads outside of their code");
  rejects(spread("%2: spread f32 = load b0[0]\n"), "load: gives values of threads outside of their code");
  rejects(spread("threads as u [0, 31] () {\n%2: i32 = const [1]\n%3: f32 = select %2 %0 %0\nyield\n}\n"),
          "select");
  rejects(spread("threads as u [0, 31] () {\nfor %0 from (0) to (2) as i [0, 1] (%2: spread f32) {\nyield "
                 "%2\n}\nyield\n}\n"),
          "for");
  rejects(spread("threads %0 as u [0, 31] (%2: spread f32) {\nyield\n}\n"),
          "has types (spread f32), wants (f32)");
  rejects(block("%0: f32 = const [1]\nthreads %0 as u [0, 31] (%2: f32) {\nyield\n}\n"),
          "takes and gives a value for each thread");
  rejects(block("%0: f32 = threads as t [0, 31] () {\n%1: f32 = load b0[t]\nyield %1\n}\n"),
          "takes and gives a value for each thread");
  // Conditions are the same for all threads.
  const std::string truth =
      "%0: spread i1 = threads as t [0, 31] () {\n%1: f32 = load b0[t]\n%2: i1 = fcmp %1 %1 "
      "lt\nyield %2\n}\n";
  CHECK(verify_text("", block(truth)) == "good");
  rejects(block(truth + "if %0 () {\nyield\n} () {\nyield\n}\n"), "condition must be a scalar i1");
  rejects(block(truth + "while %0 (%3: spread i1) {\nyield %3\n} () {\nyield %0\n}\n"), "wants (i1");
}

TEST_CASE("shuffles are checked") {
  rejects(spread("%2: spread f32 = shuffle_xor %0 [0]\n"), "needs a number below that of a warp's threads");
  rejects(spread("%2: spread f32 = shuffle_xor %0 [32]\n"), "needs a number below that of a warp's threads");
  rejects(spread("%2: spread f32 = shuffle_down %0 [32]\n"), "needs a number below that of a warp's threads");
  rejects(spread("%2: spread f32 = shuffle_down %0\n"), "needs a number below that of a warp's threads");
  rejects(spread("shuffle_xor %0 [1]\n"), "has the wrong number of results");
  rejects(spread("%2: spread i32 = shuffle_xor %0 [1]\n"), "moves a value for each thread");
  rejects(spread("%2: f32 = shuffle_xor %0 [1]\n"), "moves a value for each thread");
  rejects(block("%0: f32 = const [1]\n%1: f32 = shuffle_xor %0 [1]\n"), "moves a value for each thread");
  rejects(block("%0: spread index = threads as t [0, 31] () {\n%1: index = index (t)\nyield %1\n}\n"
                "%2: spread index = shuffle_xor %0 [1]\n"),
          "cannot move i1 or index");
  // A thread without a partner would get nothing.
  rejects("block_threads 48\n%0: spread i32 = threads as t [0, 47] () {\n%1: i32 = const [1]\nyield %1\n}\n"
          "%2: spread i32 = shuffle_xor %0 [1]\n",
          "wants whole warps, of 32 threads");
}

TEST_CASE("copies and their groups are checked") {
  rejects(block("copy_wait [32]\n"), "needs a number below that of a warp's threads");
  rejects(block("copy_wait [-1]\n"), "needs a number below that of a warp's threads");
  rejects(block("copy_wait\n"), "needs a number below that of a warp's threads");
  rejects(thread("copy_async [3] b3[t] from b0[t]\n"), "copies 4, 8 or 16 bytes");
  rejects(thread("copy_async b3[t] from b0[t]\n"), "copies 4, 8 or 16 bytes");
  rejects(thread("copy_async [4] b1[t] from b0[t]\n"),
          "copies from global memory into memory that threads share");
  rejects(thread("copy_async [4] b2[t] from b0[t]\n"),
          "copies from global memory into memory that threads share");
  rejects(thread("copy_async [4] b3[t] from b3[t]\n"),
          "copies from global memory into memory that threads share");
  rejects(thread("copy_async [4] b3[t] from b2[0]\n"),
          "copies from global memory into memory that threads share");
  rejects(thread("%10: i32 = const [1]\ncopy_async %10 [4] b3[t] from b0[t]\n"), "condition must be i1");
  rejects(thread("copy_async [4] b3[t] from b4[t]\n"), "reads a buffer that does not exist");
  rejects(thread("copy_async [4] b4[t] from b0[t]\n"), "buffer does not exist");
  rejects(
      "parameter \"x\" i32[64] align 64\nscratch \"tile\" f32[64] align 16 written shared\nblock_threads 32\n"
      "threads as t [0, 31] () {\ncopy_async [4] b1[t] from b0[t]\nyield\n}\n",
      "copies elements of another type");
  rejects(
      "parameter \"x\" f64[64] align 64\nscratch \"tile\" f64[64] align 16 written shared\nblock_threads 32\n"
      "threads as t [0, 31] () {\ncopy_async [4] b1[t] from b0[t]\nyield\n}\n",
      "copies parts of elements");
  rejects("parameter \"x\" f32[64] align 64\nscratch \"tile\" f32[64] align 16 shared\nblock_threads 32\n"
          "threads as t [0, 31] () {\ncopy_async [4] b1[t] from b0[t]\nyield\n}\n",
          "not marked written");
  rejects(thread("copy_async [4] b3[64] from b0[t]\n"), "accesses 1 elements at 64 of buffer 'tile'");
  rejects(thread("copy_async [16] b3[0] from b0[61]\n"), "accesses 4 elements at 61 of buffer 'x'");
}

TEST_CASE("stores of all threads to one element are found where indices tell") {
  const std::string one = "%10: f32 = load b0[t]\n";
  rejects(thread(one + "store %10 b3[0]\n"), "stores to element 0 of 'tile' in every thread");
  rejects(thread("%10: f32x4 = load b0[0]\nstore %10 b3[t]\n"),
          "stores to elements of 'tile' that the next thread");
  rejects(thread("%10: f32x4 = load b0[0]\nstore %10 b3[-2*t + 60]\n"),
          "that the next thread stores to, too");
  CHECK(verify_text("", thread("%10: f32x2 = load b0[0]\nstore %10 b3[2*t]\n")) == "good");
  CHECK(verify_text("", thread(one + "store %10 b3[31 - t]\n")) == "good");
  // A condition, another buffer, or an index of which nothing is known.
  CHECK(
      verify_text("", thread(one + "%11: i1 = fcmp %10 %10 lt\nif %11 () {\nstore %10 b3[0]\nyield\n} () {\n"
                                   "yield\n}\n")) == "good");
  CHECK(verify_text("", thread(one + "store %10 b2[0]\n")) == "good");
  CHECK(verify_text("", thread(one + "store %10 b3[t mod 2]\n")) == "good");
  CHECK(verify_text(
            "", kBuffers + "block_threads 1\nthreads as t [0, 0] () {\n%1: f32 = load b0[0]\nstore %1 b3[0]\n"
                           "yield\n}\n") == "good");
}

} // namespace firn::kernel
