// The values at the interface of an entry: the buffers of its inputs, outputs and states, and the steps that
// fill these behind its last instruction.
#pragma once

#include "compiler/lower/lowering_context.h"

namespace firn::lower {

class EntryValues {
public:
  EntryValues(const Module& module, const Function& entry, LoweringContext& context)
      : module_(module), entry_(entry), context_(context) {}

  // Adds the buffers and makes values lie there. Call it when the views of the entry's body are placed, and
  // before its concatenations are.
  void place();
  // Emits the steps behind the entry's instructions: copies of results that could not be computed in their
  // buffers, counted extents, and new values of states.
  void finish();

private:
  // A result that is copied to its output buffer at the end.
  struct ResultCopy {
    Value value;
    BufferSlice to;
  };

  void place_inputs();
  kernel::Buffer state_buffer(std::string name, const Type& type, int index);
  void place_outputs();
  void place_states();
  void store_counted_extents();
  void store_extent(const IntExpr& extent, int output, int axis);
  void update_states();

  const Module& module_;
  const Function& entry_;
  LoweringContext& context_;
  std::vector<int> parameters_; // buffers of inputs and states, in order
  std::vector<ResultCopy> copies_;
};

} // namespace firn::lower
