// The memory planner: where every buffer of a program lies in the one arena, from the liveness of its steps.
#pragma once

#include "compiler/kernel/kernel.h"

#include <map>
#include <string>
#include <utility>

namespace firn::memory {

// Places that several programs agree on, of states, inputs and outputs by their names, from offset 0 on.
struct SharedLayout {
  std::map<std::pair<kernel::Space, std::string>, int64_t> offsets;
  int64_t bytes = 0;
  int64_t alignment = 64; // bytes to which offsets are aligned (Machine::buffer_alignment)

  // Adds a buffer, at the place of one that has the same name and is as large at least.
  void add(kernel::Space space, const std::string& name, int64_t buffer_bytes);
  // The offset of a buffer; -1: it is not among them.
  int64_t find(const kernel::Buffer& buffer) const;
};

struct ArenaOptions {
  std::vector<bool> external_inputs, external_outputs; // without arena space: the caller binds them
  // Inputs, outputs with their counted extents, and states come first and share their space with nothing, so
  // that further programs can have them at the same offsets.
  bool fixes_interface = false;
  // A program planned with fixes_interface: its interface's offsets are used.
  const kernel::Program* interface_of = nullptr;
  // Places in the arena that programs of several entry functions agree on: each keeps the states of all, and
  // inputs that stay from one function's run to another's. Null: buffers lie wherever there is space.
  const SharedLayout* shared = nullptr;
  // Places in the block of parameters; null: the program has none.
  const SharedLayout* parameters = nullptr;
};

// The step during which most bytes of the arena are alive.
struct ArenaPeak {
  // A buffer that is, and its last step, by the ONNX nodes that this computes or the kernel. Empty: it lives
  // to the end of the run.
  struct Alive {
    int buffer = -1;
    std::string until;
  };
  int64_t bytes = 0;
  int step = 0, steps = 0; // counted from 0
  std::string computes;    // by that step, likewise
  std::vector<Alive> alive;
};

// Sets the offsets of arena, input, output and state buffers, arena_bytes and arena_lower_bound (peak of live
// bytes), after merging what can be computed in place (in_place.h; this may redirect arguments). Inputs live
// throughout the run, outputs from their first write to its end, states always; parameters have their own
// block. Buffers that no step touches get no space, states apart.
ArenaPeak plan_arena(kernel::Program& program, const ArenaOptions& options = {});
// Sets the offsets of weights buffers in execution order of first use, those that only start states last, and
// weight_bytes. Equal constants lie at one place, and the program keeps the first of them.
void place_constants(kernel::Program& program);
// Places the constants of a program that shares those of another, `holder`, which are placed already: equal
// ones are shared; others are added to the holder's, behind them. Returns the bytes that were added.
int64_t share_constants(kernel::Program& program, kernel::Program& holder);

} // namespace firn::memory
