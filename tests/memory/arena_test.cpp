// Arena plans: what may be written in place, and random programs run in the memory that was planned for them.
#include "compiler/memory/arena.h"
#include "tests/memory/planned_program.h"

#include <catch2/catch.hpp>

#include <array>
#include <random>

using namespace firn::memory;
namespace kernel = firn::kernel;
using firn::kernel::Program;
using firn::kernel::Space;
using firn::kernel::Step;

namespace {

void plan_and_run(Program& program, const ArenaOptions& options = {}) {
  std::vector<uint64_t> wanted = reads_apart(program);
  plan_arena(program, options);
  CHECK(program.arena_bytes >= program.arena_lower_bound);
  CHECK(reads_in_arena(program) == wanted);
}

int written_buffer(const Program& program, size_t step) {
  return program.steps[step].arguments[0].buffer;
}

} // namespace

TEST_CASE("a chain of steps in place needs one buffer beside input and output") {
  ProgramMaker m;
  int in = m.buffer(4, Space::Input, 0), a = m.buffer(4), b = m.buffer(4), c = m.buffer(4),
      out = m.buffer(2, Space::Output, 0);
  m.program.steps = {m.call({a}, {in}, {{0, 0}}), m.call({b}, {a}, {{0, 0}}), m.call({c}, {b}, {{0, 0}}),
                     m.call({out}, {c}, {{0, 0}})};
  plan_and_run(m.program);
  CHECK(written_buffer(m.program, 1) == a);
  CHECK(written_buffer(m.program, 2) == a);
  CHECK(m.program.arena_bytes == 64 * (4 + 4 + 2));
}

TEST_CASE("the buffers that are alive when most bytes are") {
  ProgramMaker m;
  int in = m.buffer(1, Space::Input, 0), small = m.buffer(2), big = m.buffer(9), last = m.buffer(3),
      out = m.buffer(1, Space::Output, 0);
  m.program.steps = {m.call({small}, {in}), m.call({big}, {small}), m.call({last}, {big}),
                     m.call({out}, {last})};
  const ArenaPeak peak = plan_arena(m.program);
  std::vector<int> alive;
  for (const ArenaPeak::Alive& each : peak.alive) alive.push_back(each.buffer);
  CHECK(alive == std::vector<int>{in, big, last});
  CHECK(peak.bytes == m.program.arena_lower_bound);
}

TEST_CASE(
    "an output, which the caller may bind to memory of less alignment, is not written over an operand") {
  ProgramMaker m;
  int in = m.buffer(4, Space::Input, 0), a = m.buffer(4), out = m.buffer(4, Space::Output, 0);
  m.program.steps = {m.call({a}, {in}), m.call({out}, {a}, {{0, 0}})};
  plan_and_run(m.program);
  CHECK(written_buffer(m.program, 0) == a);
  CHECK(m.program.arena_bytes == 64 * 12);
}

TEST_CASE("nothing is written over a value that is read later") {
  ProgramMaker m;
  int a = m.buffer(4), b = m.buffer(4), out = m.buffer(1, Space::Output, 0);
  m.program.steps = {m.call({a}, {}), m.call({b}, {a}, {{0, 0}}), m.call({out}, {a, b})};
  plan_and_run(m.program);
  CHECK(written_buffer(m.program, 1) == b);
}

namespace {

// A step that gives `to` the content of `from`; no kernel of tests does so.
Step copy_step(ProgramMaker& m, int from, int to) {
  Step step = m.call({to}, {from}, {{0, 0}});
  kernel::Kernel& kernel = *m.program.kernels[static_cast<size_t>(step.kernel)];
  kernel.body = {};
  std::swap(kernel.parameters[0], kernel.parameters[1]);
  std::swap(step.arguments[0], step.arguments[1]);
  step.is_copy = true;
  return step;
}

} // namespace

TEST_CASE("a state has a place of its own, and its new value is made there when the old one is not read") {
  ProgramMaker m;
  int in = m.buffer(4, Space::Input, 0), state = m.buffer(4, Space::State, 0), made = m.buffer(4),
      other = m.buffer(4), out = m.buffer(4, Space::Output, 0);
  m.program.steps = {m.call({other}, {in, state}), m.call({made}, {other}), m.call({out}, {made}),
                     copy_step(m, made, state)};
  plan_arena(m.program);
  REQUIRE(m.program.steps.size() == 3);
  CHECK(written_buffer(m.program, 1) == state);
  CHECK(m.program.steps[2].arguments[1].buffer == state);
  for (int shared : {in, other, out}) {
    int64_t at = m.program.buffers[static_cast<size_t>(shared)].offset,
            own = m.program.buffers[static_cast<size_t>(state)].offset;
    CHECK((at + 256 <= own || own + 256 <= at));
  }
}

TEST_CASE("a new state is copied while the old one is read, and made in place where the step allows it") {
  for (bool allowed : {false, true}) {
    ProgramMaker m;
    int state = m.buffer(4, Space::State, 0), made = m.buffer(4), out = m.buffer(4, Space::Output, 0);
    std::vector<std::pair<int, int>> pairs;
    if (allowed) pairs = {{0, 0}};
    m.program.steps = {m.call({made}, {state}, pairs), m.call({out}, {made}), copy_step(m, made, state)};
    plan_arena(m.program);
    CHECK(m.program.steps.size() == (allowed ? 2u : 3u));
  }
  ProgramMaker late;
  int state = late.buffer(4, Space::State, 0), made = late.buffer(4), out = late.buffer(4, Space::Output, 0);
  late.program.steps = {late.call({made}, {}), late.call({out}, {made, state}), copy_step(late, made, state)};
  plan_arena(late.program);
  CHECK(late.program.steps.size() == 3);
}

TEST_CASE("parameters lie in a block of their own, and are updated there") {
  for (bool allowed : {false, true}) {
    ProgramMaker m;
    int in = m.buffer(3, Space::Input, 0), weight = m.buffer(4, Space::Parameters, 0),
        bias = m.buffer(1, Space::Parameters, 1), made = m.buffer(4), out = m.buffer(2, Space::Output, 0);
    auto buffer = [&](int number) -> kernel::Buffer& {
      return m.program.buffers[static_cast<size_t>(number)];
    };
    buffer(in).name = "x", buffer(weight).name = "w", buffer(bias).name = "b", buffer(out).name = "x";
    std::vector<std::pair<int, int>> pairs;
    if (allowed) pairs = {{0, 0}};
    m.program.steps = {m.call({out}, {in, weight, bias}), m.call({made}, {weight}, pairs),
                       copy_step(m, made, weight)};
    SharedLayout parameters, shared;
    parameters.add(Space::Parameters, "b", 64);
    parameters.add(Space::Parameters, "w", 250);
    parameters.add(Space::Parameters, "b", 64);
    shared.add(Space::State, "count", 8);
    shared.add(Space::Output, "x", 128);
    ArenaOptions options;
    options.parameters = &parameters;
    options.shared = &shared;
    plan_arena(m.program, options);
    CHECK(m.program.steps.size() == (allowed ? 2u : 3u));
    CHECK(parameters.bytes == 64 + 256);
    CHECK(buffer(bias).offset == 0);
    CHECK(buffer(weight).offset == 64);
    CHECK(buffer(out).offset == 64);
    CHECK(buffer(in).offset >= shared.bytes); // has the output's name
    CHECK(m.program.arena_bytes == 192 + 192 + (allowed ? 0 : 256));
    CHECK(m.program.arena_lower_bound <= m.program.arena_bytes);
  }
}

TEST_CASE("a state that a loop reads is not overwritten within it") {
  ProgramMaker m;
  int flag = m.buffer(1), state = m.buffer(4, Space::State, 0), made = m.buffer(4), seen = m.buffer(4),
      out = m.buffer(4, Space::Output, 0);
  m.program.steps = {
      m.call({flag, seen}, {}),
      while_step(flag, {m.call({flag}, {})}, {m.call({seen}, {state, seen}), m.call({made}, {seen})}),
      m.call({out}, {seen, made}), copy_step(m, made, state)};
  plan_arena(m.program);
  CHECK(m.program.steps.size() == 4);
}

TEST_CASE("nothing is written over inputs, weights, other sizes or parts of buffers") {
  ProgramMaker m;
  int in = m.buffer(4, Space::Input, 0), a = m.buffer(4), b = m.buffer(2), c = m.buffer(2),
      out = m.buffer(2, Space::Output, 0);
  m.program.steps = {m.call({a}, {in}, {{0, 0}}), m.call({b}, {a}, {{0, 0}}), m.call({c}, {b}, {{0, 0}}),
                     m.call({out}, {c})};
  m.program.steps[2].arguments[1].byte_offset = 64;
  m.program.steps[2].arguments[0].byte_offset = 0;
  plan_arena(m.program);
  CHECK(written_buffer(m.program, 0) == a);
  CHECK(written_buffer(m.program, 1) == b);
  CHECK(written_buffer(m.program, 2) == c);
}

TEST_CASE("a buffer that another argument of the step reads too is not written over") {
  ProgramMaker m;
  int a = m.buffer(4), b = m.buffer(4), out = m.buffer(4, Space::Output, 0);
  m.program.steps = {m.call({a}, {}), m.call({b}, {a, a}, {{0, 0}}), m.call({out}, {b})};
  plan_and_run(m.program);
  CHECK(written_buffer(m.program, 1) == b);
}

TEST_CASE("the last step of a loop does not write over what the next iteration reads") {
  ProgramMaker m;
  int a = m.buffer(4), flag = m.buffer(1), unread = m.buffer(4), out = m.buffer(1, Space::Output, 0);
  m.program.steps = {m.call({a}, {}),
                     while_step(flag, {m.call({flag}, {a})}, {m.call({unread}, {a}, {{0, 0}})}),
                     m.call({out}, {flag})};
  plan_and_run(m.program);
  CHECK(m.program.steps[1].second[0].arguments[0].buffer == unread);
}

TEST_CASE("one of two dying operands is enough") {
  ProgramMaker m;
  int a = m.buffer(4), b = m.buffer(4), sum = m.buffer(4), out = m.buffer(1, Space::Output, 0);
  m.program.steps = {m.call({a}, {}), m.call({b}, {}), m.call({sum}, {a, b}, {{0, 0}, {0, 1}}),
                     m.call({out}, {sum, a})};
  plan_and_run(m.program);
  CHECK(written_buffer(m.program, 2) == b);
}

TEST_CASE("what the caller binds takes no place; inputs keep theirs throughout") {
  ProgramMaker m;
  int bound = m.buffer(9, Space::Input, 0), kept = m.buffer(3, Space::Input, 1), a = m.buffer(2),
      out = m.buffer(7, Space::Output, 0);
  m.program.steps = {m.call({a}, {bound, kept}), m.call({out}, {a})};
  ArenaOptions options;
  options.external_inputs = {true, false};
  options.external_outputs = {true};
  plan_arena(m.program, options);
  auto offset = [&](int buffer) { return m.program.buffers[static_cast<size_t>(buffer)].offset; };
  CHECK(offset(bound) == -1);
  CHECK(offset(out) == -1);
  CHECK(offset(kept) >= 0);
  CHECK(offset(a) >= 0);
  CHECK(m.program.arena_bytes == 64 * 5);
}

TEST_CASE("constants lie in the order of their first use, and unused ones nowhere") {
  ProgramMaker m;
  int first = m.buffer(1, Space::Weights), unused = m.buffer(5, Space::Weights),
      second = m.buffer(2, Space::Weights), out = m.buffer(1, Space::Output, 0);
  m.program.buffers[static_cast<size_t>(second)].bytes = 100;
  m.program.steps = {m.call({out}, {second}), m.call({out}, {first, second})};
  for (int buffer : {first, unused, second}) m.program.constants.push_back({buffer, {}, {}});
  place_constants(m.program);
  auto offset = [&](int buffer) { return m.program.buffers[static_cast<size_t>(buffer)].offset; };
  CHECK(offset(second) == 0);
  CHECK(offset(first) == 128);
  CHECK(offset(unused) == -1);
  CHECK(m.program.weight_bytes == 192);
  REQUIRE(m.program.constants.size() == 2);
  CHECK(m.program.constants[0].buffer == second);
}

TEST_CASE("equal constants lie at one place") {
  const std::array<std::byte, 8> ones{std::byte{1}}, same = ones, others{std::byte{2}};
  auto make = [&](bool is_other_form) {
    ProgramMaker m;
    std::array<int, 4> buffers{};
    for (int& buffer : buffers) buffer = m.buffer(1, Space::Weights);
    int out = m.buffer(1, Space::Output, 0);
    std::vector<Step> steps;
    for (int buffer : buffers) steps.push_back(m.call({out}, {buffer}));
    m.program.steps = std::move(steps);
    firn::Packing plain = firn::padded_copy(1, 8, 8), other = firn::padded_copy(1, 8, 16);
    auto add = [&](int number, std::span<const std::byte> bytes, const firn::Packing& packing) {
      kernel::ConstantSource source;
      source.bytes = bytes;
      m.program.constants.push_back({buffers[static_cast<size_t>(number)], source, packing});
    };
    add(0, others, plain);
    add(1, ones, plain);
    add(2, same, plain);
    add(3, ones, is_other_form ? other : plain);
    return std::move(m.program);
  };
  auto offset = [](const Program& program, size_t buffer) { return program.buffers[buffer].offset; };
  Program program = make(true);
  place_constants(program);
  CHECK(program.constants.size() == 3);
  CHECK(offset(program, 2) == offset(program, 1));
  CHECK(offset(program, 3) != offset(program, 1));
  CHECK(program.weight_bytes == 192);
  // Equal constants of another program lie where this one's do.
  Program further = make(false);
  std::swap(further.steps[0], further.steps[1]);
  CHECK(share_constants(further, program) == 0);
  for (size_t buffer : {size_t{0}, size_t{1}, size_t{2}})
    CHECK(offset(further, buffer) == offset(program, buffer));
  CHECK(offset(further, 3) == offset(program, 1));
}

namespace {

// Random steps in which every read finds a value that was written on every way to it.
class RandomProgram {
public:
  explicit RandomProgram(unsigned seed) : random_(seed) {}

  Program make() {
    std::vector<int> known{maker_.buffer(size(), Space::Input, 0), maker_.buffer(size(), Space::Input, 1)};
    maker_.program.steps = steps(known, 12, 0);
    std::vector<Step> last;
    for (int i = 0; i < 2; ++i) {
      int out = maker_.buffer(size(), Space::Output, i);
      maker_.program.steps.push_back(maker_.call({out}, {any(known), any(known)}, {{0, 0}, {0, 1}}));
    }
    return std::move(maker_.program);
  }

private:
  size_t pick(size_t count) { return random_() % count; }
  int size() { return 1 + static_cast<int>(pick(3)); }
  int any(const std::vector<int>& known) {
    return known[known.size() - 1 - pick(std::min<size_t>(known.size(), 6))];
  }

  std::vector<Step> steps(std::vector<int>& known, size_t count, int depth) {
    std::vector<Step> result;
    for (size_t i = 0; i < count; ++i) {
      size_t choice = depth < 2 ? pick(10) : 9;
      std::vector<int> inner = known; // a copy: writes in branches and bodies may not happen
      if (choice == 0) {
        int condition = any(known);
        std::vector<int> other = known;
        auto then_steps = steps(inner, 1 + pick(4), depth + 1);
        result.push_back(if_step(condition, std::move(then_steps), steps(other, 1 + pick(4), depth + 1)));
      } else if (choice == 1) {
        auto first = steps(inner, 1 + pick(2), depth + 1);
        int condition = any(inner);
        result.push_back(while_step(condition, std::move(first), steps(inner, 1 + pick(5), depth + 1)));
      } else {
        result.push_back(call(known));
      }
    }
    return result;
  }

  Step call(std::vector<int>& known) {
    std::vector<int> read;
    for (size_t n = 1 + pick(3); n > 0; --n) read.push_back(any(known));
    // Sometimes a buffer is written again: the state of a loop.
    int again = any(known);
    bool renew = pick(4) == 0 && maker_.program.buffers[static_cast<size_t>(again)].space == Space::Arena &&
                 std::find(read.begin(), read.end(), again) == read.end();
    int written = renew ? again : maker_.buffer(size());
    if (!renew) known.push_back(written);
    std::vector<std::pair<int, int>> in_place;
    for (size_t r = 0; r < read.size(); ++r)
      if (pick(3) > 0) in_place.push_back({0, static_cast<int>(r)});
    return maker_.call({written}, read, in_place);
  }

  std::mt19937 random_;
  ProgramMaker maker_;
};

} // namespace

TEST_CASE("random programs read in the arena what they read from separate buffers") {
  int merged = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    INFO("seed " << seed);
    Program program = RandomProgram(seed).make();
    size_t before = program.buffers.size();
    plan_and_run(program);
    size_t placed = 0;
    for (const auto& buffer : program.buffers) placed += buffer.offset >= 0;
    merged += placed < before;
  }
  CHECK(merged > 500);
}

TEST_CASE("what a program around finds by its place lies there in every program with that interface") {
  std::vector<std::vector<int64_t>> places;
  for (int scratch : {1, 9}) {
    ProgramMaker m;
    int in = m.buffer(1, Space::Input, 0), out = m.buffer(2, Space::Output, 0), extent = m.buffer(1),
        temporary = m.buffer(scratch);
    m.program.buffers[static_cast<size_t>(extent)].extent_of = 0;
    m.program.buffers[static_cast<size_t>(extent)].extent_axis = 0;
    m.program.steps = {m.call({temporary}, {in}), m.call({out}, {temporary}), m.call({extent}, {out})};
    ArenaOptions options;
    options.fixes_interface = true;
    plan_and_run(m.program, options);
    places.emplace_back();
    for (int buffer : {in, out, extent})
      places.back().push_back(m.program.buffers[static_cast<size_t>(buffer)].offset);
  }
  CHECK(places[0] == places[1]);
}
