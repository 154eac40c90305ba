// Inputs, outputs and states.
#include "compiler/lower/entry_values.h"

#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/layout_packing.h"
#include "compiler/memory/placement.h"

namespace firn::lower {
namespace {

kernel::Buffer io_buffer(std::string name, kernel::Space space, const Type& type, int index) {
  kernel::Buffer buffer;
  buffer.name = std::move(name);
  buffer.space = space;
  buffer.bytes = bytes_at_bound(type);
  // Callers bind their own memory, which is aligned as C++ aligns its elements.
  buffer.alignment = kernel::caller_alignment(memory_scalar(type.dtype));
  buffer.io_index = index;
  return buffer;
}

std::string name_at(const std::vector<std::string>& names, size_t at, const char* fallback) {
  return at < names.size() && !names[at].empty() ? names[at] : fallback + std::to_string(at);
}

} // namespace

void EntryValues::place() {
  place_inputs();
  place_outputs();
  place_states();
}

void EntryValues::finish() {
  for (const ResultCopy& copy : copies_) emit_copy(context_, copy.value, copy.to, "");
  store_counted_extents();
  update_states();
}

// Inputs and states are numbered apart.
void EntryValues::place_inputs() {
  const Region& body = entry_.body();
  int inputs = 0, states = 0;
  for (size_t i = 0; i < body.parameters().size(); ++i) {
    Value parameter = body.parameter(static_cast<int>(i));
    std::string name = name_at(entry_.parameter_names, i, "input");
    bool is_state = entry_.is_state(i);
    kernel::Buffer buffer =
        is_state ? state_buffer(std::move(name), parameter.type(), states++)
                 : io_buffer(std::move(name), kernel::Space::Input, parameter.type(), inputs++);
    parameters_.push_back(context_.program().add_buffer(std::move(buffer)));
    context_.places().set_place(parameter, {parameters_.back(), 0});
  }
}

// In the instance or the block of parameters, where it is aligned as the arena is.
kernel::Buffer EntryValues::state_buffer(std::string name, const Type& type, int index) {
  kernel::Buffer buffer;
  buffer.space = module_.is_parameter(name) ? kernel::Space::Parameters : kernel::Space::State;
  buffer.bytes = bytes_at_bound(type);
  buffer.io_index = index;
  if (const auto* initial = context_.options().initial_states; initial && initial->count(name)) {
    buffer.initial = context_.add_constant(initial->at(name), layout_packing(type, buffer.bytes), name);
  }
  buffer.name = std::move(name);
  return buffer;
}

void EntryValues::place_outputs() {
  const Region& body = entry_.body();
  int outputs = 0;
  for (size_t i = 0; i < body.results().size(); ++i) {
    if (entry_.updates_state(i)) continue;
    Value result = body.results()[i];
    std::string name = name_at(entry_.result_names, i, "output");
    int buffer = context_.program().add_buffer(
        io_buffer(std::move(name), kernel::Space::Output, result.type(), outputs++));
    if (!memory::claim_place(context_.places(), result, body, {buffer, 0}))
      copies_.push_back({result, {buffer, 0}});
  }
}

void EntryValues::place_states() {
  const Region& body = entry_.body();
  for (size_t i = 0; i < body.results().size(); ++i)
    if (entry_.updates_state(i) && body.results()[i].type().is_static())
      memory::place_rolling_window(context_.places(), body.results()[i], body.parameter(entry_.aliases[i]));
}

// Extents of outputs that only the run knows, for the caller.
void EntryValues::store_counted_extents() {
  int output = 0;
  for (size_t i = 0; i < entry_.body().results().size(); ++i) {
    if (entry_.updates_state(i)) continue;
    const std::vector<Dim>& dims = entry_.body().results()[i].type().dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis].counted) store_extent(dims[axis].extent, output, static_cast<int>(axis));
    ++output;
  }
}

void EntryValues::store_extent(const IntExpr& extent, int output, int axis) {
  kernel::Buffer buffer;
  buffer.name = "extent";
  buffer.bytes = 8; // an i64
  buffer.extent_of = output;
  buffer.extent_axis = axis;
  int number = context_.program().add_buffer(std::move(buffer));
  KernelMaker maker(context_, "", "extent");
  int out = maker.parameter({number, 0}, kernel::Scalar::I64, 1, /*written=*/true, "extent");
  kernel::Builder& b = maker.builder();
  b.store(b.cast(kernel::OpKind::IndexCast, b.index(extent), kernel::Scalar::I64), out, 0);
  maker.finish();
}

// New values of states are computed elsewhere and copied when nothing reads the old ones any more; which
// of the copies are needed is the memory planner's to say (memory/in_place.h). What one state hands to
// another is saved first.
void EntryValues::update_states() {
  const Region& body = entry_.body();
  struct Update {
    BufferSlice from, to;
    const Type& type;
  };
  std::vector<Update> updates;
  for (size_t i = 0; i < body.results().size(); ++i) {
    if (!entry_.updates_state(i)) continue;
    Value result = body.results()[i];
    Update update{
        context_.place_of(result), {parameters_[static_cast<size_t>(entry_.aliases[i])], 0}, result.type()};
    if (update.from == update.to) continue;
    if (is_state(context_.program().buffers[static_cast<size_t>(update.from.buffer)].space)) {
      int64_t bytes = static_cast<int64_t>(update.type.physical_byte_size());
      BufferSlice saved{context_.add_scratch_buffer(bytes, "saved"), 0};
      emit_copy(context_, update.from, saved, update.type, "");
      update.from = saved;
    }
    updates.push_back(update);
  }
  for (const Update& update : updates) emit_copy(context_, update.from, update.to, update.type, "");
}

} // namespace firn::lower
