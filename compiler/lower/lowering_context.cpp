// The growing program: buffers, constants, kernels and steps.
#include "compiler/lower/lowering_context.h"

#include "compiler/lower/constant_source.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/lower/layout_packing.h"

namespace firn::lower {

using kernel::Scalar;

BufferSlice LoweringContext::place_of(Value value) {
  auto [root, offset] = places_.root_of(value);
  std::optional<BufferSlice> place = places_.find(root);
  if (!place) {
    place = new_place(root);
    places_.set_place(root, *place);
  }
  return {place->buffer, place->byte_offset + offset};
}

BufferSlice LoweringContext::new_place(Value root) {
  if (root.def->is(Opcode::Constant)) return place_constant(*root.def);
  kernel::Buffer buffer;
  buffer.name = root.def->name().empty() ? std::string(opcode_name(root.def->opcode())) : root.def->name();
  buffer.bytes = bytes_at_bound(root.type());
  buffer.location = root.def->location();
  return {program_.add_buffer(std::move(buffer)), 0};
}

BufferSlice LoweringContext::place_constant(const Instruction& constant) {
  const LiteralRef& literal = constant.literal();
  Type type = constant.type();
  if (type.dtype == DType::String) return place_text(constant);
  auto [known, is_new] = literal_buffers_.try_emplace({literal.get(), type.to_string()}, -1);
  if (is_new) {
    // Whole vectors may be read of what constants occupy anyway.
    const auto alignment = static_cast<size_t>(options_.target.buffer_alignment);
    auto bytes = static_cast<int64_t>((type.physical_byte_size() + alignment - 1) / alignment * alignment);
    known->second = add_constant(literal, layout_packing(type, bytes), constant.location());
  }
  return {known->second, 0};
}

// Addresses are known to a run alone: it makes the elements before its first step.
BufferSlice LoweringContext::place_text(const Instruction& constant) {
  auto [known, is_new] =
      literal_buffers_.try_emplace({constant.literal().get(), constant.type().to_string()}, -1);
  if (is_new) {
    known->second = add_scratch_buffer(bytes_at_bound(constant.type()), constant.location());
    with_steps(prologue_, [&] { emit_text_constant(*this, constant, {known->second, 0}); });
  }
  return {known->second, 0};
}

BufferSlice LoweringContext::string_arena() {
  if (string_arena_ < 0) {
    string_arena_ = add_scratch_buffer(8 + options_.goals.text_bytes, "text");
    program_.buffers[static_cast<size_t>(string_arena_)].kept = true;
    with_steps(prologue_, [&] {
      KernelMaker maker(*this, "", "empty_text_room");
      int used = maker.parameter({string_arena_, 0}, Scalar::I64, 1, /*written=*/true, "used");
      maker.builder().store(maker.builder().constant_int({Scalar::I64, 1}, 0), used, 0);
      maker.finish();
    });
  }
  return {string_arena_, 0};
}

int LoweringContext::alignment_of(BufferSlice place) const {
  const kernel::Buffer& buffer = program_.buffers[static_cast<size_t>(place.buffer)];
  int64_t alignment = buffer.alignment;
  while (alignment > 1 && place.byte_offset % alignment != 0) alignment /= 2;
  return static_cast<int>(alignment);
}

kernel::Step& LoweringContext::add_kernel(std::unique_ptr<kernel::Kernel> kernel,
                                          std::vector<kernel::Argument> arguments, std::string location,
                                          std::vector<IntExpr> extents) {
  FIRN_CHECK(kernel->parameters.size() == arguments.size(), "kernel " + kernel->name +
                                                                " has another number of "
                                                                "parameters than arguments");
  kernel::Step step;
  step.kernel = static_cast<int>(program_.kernels.size());
  step.arguments = std::move(arguments);
  step.extents = std::move(extents);
  step.location = std::move(location);
  kernel->is_for_baseline = is_for_baseline_;
  program_.kernels.push_back(std::move(kernel));
  steps_->push_back(std::move(step));
  return steps_->back();
}

int LoweringContext::add_constant(const LiteralRef& literal, Packing packing, std::string name) {
  kernel::ConstantSource source = source_of(literal, packing, name);
  kernel::Buffer buffer;
  buffer.name = std::move(name);
  buffer.space = kernel::Space::Weights;
  buffer.bytes = packing.packed_elements * packing.element_bytes;
  int number = program_.add_buffer(std::move(buffer));
  program_.constants.push_back({number, std::move(source), std::move(packing)});
  return number;
}

BufferSlice LoweringContext::status_place() {
  if (status_buffer_ < 0) {
    kernel::Buffer buffer;
    buffer.name = "status";
    buffer.space = kernel::Space::Status;
    buffer.bytes = 4;
    status_buffer_ = program_.add_buffer(std::move(buffer));
  }
  return {status_buffer_, 0};
}

int LoweringContext::add_scratch_buffer(int64_t bytes, std::string name) {
  kernel::Buffer buffer;
  buffer.name = std::move(name);
  buffer.bytes = bytes;
  return program_.add_buffer(std::move(buffer));
}

std::string LoweringContext::kernel_name(std::string_view stem) {
  return std::string(stem) + "_" + std::to_string(next_kernel_++);
}

void LoweringContext::bind_count(const SymbolRef& symbol, BufferSlice place) {
  kernel::Step step;
  step.kind = kernel::Step::Kind::Bind;
  step.symbol = symbol;
  step.condition = {place.buffer, place.byte_offset};
  steps_->push_back(std::move(step));
  counts_.push_back(symbol);
}

} // namespace firn::lower
