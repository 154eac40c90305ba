// Tests at which edges the threads of a block wait: those across which memory passes from one to another.
#include "tests/kernel/sample_kernels.h"

#include "compiler/kernel/barriers.h"

namespace firn::kernel {
namespace {

// Appends the ops that have an edge before them, numbered in the order of the text.
void collect(const Block& block, std::vector<const Op*>& edges) {
  for (const auto& op : block.ops) {
    const bool is_edge = op->kind == OpKind::Threads || op->kind == OpKind::Load;
    if (is_edge) edges.push_back(op.get());
    if (op->kind == OpKind::Threads) continue;
    for (const Block& inner : op->blocks) collect(inner, edges);
  }
}

// Numbers of the edges at which threads of the kernel wait, in front of `threads` ops and loads outside of
// them: b0 is only read, b1 and b2 are global, b3 is a thread's own, b4 and b5 are shared.
std::vector<size_t> waits(const std::string& body) {
  const std::string text =
      "program \"p\" arena 0 lower_bound 0 weights 0 {\n}\nkernel \"k\" {\n"
      "parameter \"in\" f32[64] align 64\nparameter \"x\" f32[64] align 64 written\n"
      "parameter \"y\" f32[64] align 64 written\nscratch \"own\" f32[8] align 16 written\n"
      "scratch \"s\" f32[64] align 16 written shared\n"
      "scratch \"t\" f32[64] align 16 written shared\nblock_threads 64\n" +
      body + "}\n";
  auto program = parse_program("t", text);
  if (!program) FAIL(program.error().message << "\n" << text);
  Result verified = verify(*program);
  if (!verified) FAIL(verified.error().message << "\n" << text);
  std::vector<const Op*> edges;
  collect(program->kernels[0]->body, edges);
  auto barriers = barriers_of(*program->kernels[0]);
  std::vector<size_t> numbers;
  for (size_t i = 0; i < edges.size(); ++i)
    if (barriers.erase(edges[i]) == 1) numbers.push_back(i);
  CHECK(barriers.empty());
  return numbers;
}

int values = 0;
std::string threads(const std::string& code) {
  const std::string t = "t" + std::to_string(values++);
  std::string text = "threads as " + t + " [0, 63] () {\n" + code + "yield\n}\n";
  for (size_t at; (at = text.find('@')) != std::string::npos;) text.replace(at, 1, t);
  return text;
}
std::string reads(const std::string& buffer) {
  return threads("%" + std::to_string(1000 + values++) + ": f32 = load " + buffer + "[63 - @]\n");
}
std::string writes(const std::string& buffer) {
  const std::string value = "%" + std::to_string(1000 + values++);
  return threads(value + ": f32 = const [1]\nstore " + value + " " + buffer + "[@]\n");
}
std::string copies(const std::string& to) {
  return threads("copy_async [4] " + to + "[@] from b0[@]\n");
}
std::string loop(const std::string& body) {
  return "for from (0) to (3) as i" + std::to_string(values++) + " [0, 2] () {\n" + body + "yield\n}\n";
}
std::string branch(const std::string& on_true, const std::string& on_false) {
  const std::string n = std::to_string(1000 + values++);
  return "%" + n + ": i1 = const [1]\nif %" + n + " () {\n" + on_true + "yield\n} () {\n" + on_false +
         "yield\n}\n";
}
std::string while_loop(const std::string& condition, const std::string& body) {
  const std::string n = std::to_string(1000 + values++);
  return "while () {\n" + condition + "%" + n + ": i1 = const [0]\nyield %" + n + "\n} () {\n" + body +
         "yield\n}\n";
}

using Edges = std::vector<size_t>;

} // namespace

TEST_CASE("threads wait where memory passes between them") {
  CHECK(waits(writes("b4") + reads("b4")) == Edges{1}); // read after write
  CHECK(waits(reads("b4") + writes("b4")) == Edges{1}); // write after read
  CHECK(waits(writes("b4") + writes("b4")) == Edges{1});
  CHECK(waits(writes("b1") + reads("b1")) == Edges{1}); // global memory, too
  CHECK(waits(writes("b4") + writes("b5") + reads("b4") + reads("b5")) == Edges{2});
  CHECK(waits(writes("b4") + reads("b4") + reads("b4") + writes("b4") + reads("b4")) == Edges{1, 3, 4});
}

TEST_CASE("threads do not wait where none passes") {
  CHECK(waits(reads("b4") + reads("b4")) == Edges{});
  CHECK(waits(reads("b0") + reads("b0") + writes("b1")) == Edges{});
  CHECK(waits(writes("b1") + reads("b2") + writes("b4") + reads("b5")) == Edges{});
  CHECK(waits(threads("%1: f32 = const [1]\nstore %1 b3[0]\n") + threads("%2: f32 = load b3[0]\n")) ==
        Edges{});
  CHECK(waits(writes("b4") + reads("b0") + reads("b1")) == Edges{});
  CHECK(waits("") == Edges{});
}

TEST_CASE("loads outside of the code of threads wait for what threads wrote") {
  CHECK(waits(writes("b4") + "%1: f32 = load b4[0]\n") == Edges{1});
  CHECK(waits(writes("b4") + "%1: f32 = load b5[0]\n%2: f32 = load b0[0]\n") == Edges{});
  CHECK(waits("%1: f32 = load b4[0]\n" + writes("b4")) == Edges{1});
  CHECK(waits(writes("b1") + "%1: f32 = load b1[0]\n" + reads("b1")) == Edges{1});
}

TEST_CASE("copies have to be waited for by each thread, then by all") {
  CHECK(waits(copies("b4") + "copy_commit\ncopy_wait [0]\n" + reads("b4")) == Edges{1});
  // A wait makes a thread's own copies known to that thread alone, though all have met since.
  CHECK(waits(copies("b4") + "copy_commit\n" + writes("b5") + reads("b5") + "copy_wait [0]\n" +
              reads("b4")) == Edges{2, 3});
  CHECK(waits(reads("b4") + copies("b4")) == Edges{1});
  CHECK(waits(copies("b4") + "copy_commit\ncopy_wait [0]\n" + reads("b5")) == Edges{});
  // Nothing may write meanwhile what a copy reads.
  CHECK(waits(threads("copy_async [4] b4[@] from b1[@]\n") + writes("b1")) == Edges{1});
  CHECK(waits(writes("b1") + threads("copy_async [4] b4[@] from b1[@]\n")) == Edges{1});
}

TEST_CASE("loops have an edge from their end to their start") {
  CHECK(waits(loop(writes("b4") + reads("b4"))) == Edges{0, 1});
  CHECK(waits(loop(writes("b4"))) == Edges{0});
  CHECK(waits(loop(reads("b4"))) == Edges{});
  // A loop may run no iteration, and then passes on what was before it.
  CHECK(waits(writes("b4") + loop(reads("b4")) + reads("b4")) == Edges{1, 2});
  CHECK(waits(writes("b4") + loop(writes("b5") + reads("b5")) + reads("b4")) == Edges{1, 2, 3});
  CHECK(waits(loop(loop(reads("b4")) + writes("b4"))) == Edges{0, 1});
  CHECK(waits(loop(writes("b4")) + reads("b4")) == Edges{0, 1});
}

TEST_CASE("branches join") {
  CHECK(waits(branch(writes("b4"), "") + reads("b4")) == Edges{1});
  CHECK(waits(branch("", writes("b4")) + reads("b4")) == Edges{1});
  CHECK(waits(branch(writes("b4"), writes("b5")) + reads("b4") + reads("b5")) == Edges{2});
  CHECK(waits(branch(writes("b4"), reads("b4"))) == Edges{});
  CHECK(waits(writes("b4") + branch(reads("b4"), "") + reads("b4")) == Edges{1, 2});
}

TEST_CASE("loops with a condition end behind their condition") {
  CHECK(waits(while_loop(writes("b4"), reads("b4"))) == Edges{0, 1});
  // The body waits for what the condition wrote, but the last evaluation of it has no body behind.
  CHECK(waits(while_loop(writes("b4"), reads("b4")) + reads("b4")) == Edges{0, 1, 2});
  CHECK(waits(while_loop("", writes("b4")) + reads("b4")) == Edges{0, 1});
  CHECK(waits(while_loop("", reads("b4")) + reads("b4")) == Edges{});
}

} // namespace firn::kernel
