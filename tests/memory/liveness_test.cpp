// Liveness: the numbering of steps, and the intervals of buffers through branches and loops.
#include "compiler/memory/liveness.h"
#include "tests/memory/planned_program.h"

#include <catch2/catch.hpp>

using namespace firn::memory;
namespace kernel = firn::kernel;

namespace {

std::pair<int, int> life(const Liveness& liveness, int buffer) {
  const LiveInterval& interval = liveness.buffers[static_cast<size_t>(buffer)];
  return {interval.first, interval.last};
}
using Life = std::pair<int, int>;

} // namespace

TEST_CASE("straight lines live from the first to the last touch") {
  ProgramMaker m;
  int a = m.buffer(1), b = m.buffer(1), c = m.buffer(1), unused = m.buffer(1);
  m.program.steps = {m.call({a}, {}), m.call({b}, {a}), m.call({c}, {b}), m.call({}, {c, a})};
  Liveness liveness = compute_liveness(m.program);
  CHECK(liveness.num_steps == 4);
  CHECK(life(liveness, a) == Life(0, 3));
  CHECK(life(liveness, b) == Life(1, 2));
  CHECK(life(liveness, c) == Life(2, 3));
  CHECK_FALSE(liveness.buffers[static_cast<size_t>(unused)].is_used());
  CHECK(liveness.calls[2] == &m.program.steps[2]);
}

TEST_CASE("what concurrent calls touch is alive at the same time") {
  ProgramMaker m;
  int x = m.buffer(1), a = m.buffer(1), b = m.buffer(1), c = m.buffer(1);
  kernel::Step both;
  both.kind = kernel::Step::Kind::Concurrent;
  both.first = {m.call({a}, {x}), m.call({b}, {})};
  m.program.steps = {m.call({x}, {}), both, m.call({c}, {a})};
  Liveness liveness = compute_liveness(m.program);
  CHECK(liveness.num_steps == 3);
  CHECK(liveness.calls[1] == nullptr);
  CHECK(life(liveness, x) == Life(0, 1));
  CHECK(life(liveness, a) == Life(1, 2));
  CHECK(life(liveness, b) == Life(1, 1));
}

TEST_CASE("a condition is a step of its own, and branches follow one another") {
  ProgramMaker m;
  int flag = m.buffer(1), a = m.buffer(1), b = m.buffer(1), result = m.buffer(1);
  m.program.steps = {
      m.call({flag}, {}),
      if_step(flag, {m.call({a}, {}), m.call({result}, {a})}, {m.call({b}, {}), m.call({result}, {b})}),
      m.call({}, {result})};
  Liveness liveness = compute_liveness(m.program);
  CHECK(liveness.num_steps == 7);
  CHECK(liveness.calls[1] == nullptr);
  CHECK(life(liveness, flag) == Life(0, 1));
  CHECK(life(liveness, a) == Life(2, 3));
  CHECK(life(liveness, b) == Life(4, 5));
  CHECK(life(liveness, result) == Life(3, 6));
}

TEST_CASE("a loop keeps what it carries, and only that, alive throughout") {
  ProgramMaker m;
  int flag = m.buffer(1), state = m.buffer(1), temporary = m.buffer(1), before = m.buffer(1),
      after = m.buffer(1), carried = m.buffer(1), both = m.buffer(1);
  m.program.steps = {m.call({state, before}, {}),                                      // 0
                     while_step(flag, {m.call({flag}, {state})},                       // 1, condition 2
                                {m.call({temporary}, {state, before}),                 // 3
                                 m.call({state}, {temporary}),                         // 4
                                 m.call({after}, {carried}),                           // 5
                                 m.call({carried}, {state}), m.call({both}, {both})}), // 6, 7
                     m.call({}, {state, after})};                                      // 8
  Liveness liveness = compute_liveness(m.program);
  CHECK(life(liveness, temporary) == Life(3, 4)); // written anew by every iteration
  CHECK(life(liveness, flag) == Life(1, 2));
  CHECK(life(liveness, state) == Life(0, 8));
  CHECK(life(liveness, before) == Life(0, 7));  // the next iteration reads it again
  CHECK(life(liveness, after) == Life(1, 8));   // used outside: other iterations must not overwrite it
  CHECK(life(liveness, carried) == Life(1, 7)); // read before it is written: by the iteration before
  CHECK(life(liveness, both) == Life(1, 7));    // a step's reads come before its writes
}

TEST_CASE("loops in loops extend what either carries") {
  ProgramMaker m;
  int flag = m.buffer(1), inner_flag = m.buffer(1), outer = m.buffer(1), inner = m.buffer(1),
      local = m.buffer(1);
  m.program.steps = {while_step(
      flag, {m.call({flag}, {})},                                                             // 0, 1
      {m.call({inner}, {}),                                                                   // 2
       while_step(inner_flag, {m.call({inner_flag}, {})},                                     // 3, 4
                  {m.call({local}, {inner}), m.call({inner}, {local}), m.call({}, {outer})}), // 5, 6, 7
       m.call({outer}, {inner})})};                                                           // 8
  Liveness liveness = compute_liveness(m.program);
  CHECK(life(liveness, local) == Life(5, 6));
  CHECK(life(liveness, inner) == Life(2, 8));
  CHECK(life(liveness, outer) == Life(0, 8));
  CHECK(life(liveness, inner_flag) == Life(3, 4));
}
