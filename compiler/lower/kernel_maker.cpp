// Parameters by place, and the extents that a kernel's code mentions.
#include "compiler/lower/kernel_maker.h"

#include "compiler/graph/computed_indices.h"

#include <algorithm>

namespace firn::lower {

using kernel::Scalar;

namespace {

bool mentions(const kernel::Block& block, const Symbol& symbol) {
  return std::any_of(block.ops.begin(), block.ops.end(), [&](const auto& op) {
    return op->index.mentions(symbol) || op->lower.mentions(symbol) || op->upper.mentions(symbol) ||
           std::any_of(op->blocks.begin(), op->blocks.end(),
                       [&](const kernel::Block& inner) { return mentions(inner, symbol); });
  });
}

bool mentions(const kernel::Kernel& kernel, const Symbol& symbol) {
  return kernel.parallel_count.mentions(symbol) || mentions(kernel.body, symbol);
}

} // namespace

KernelMaker::KernelMaker(LoweringContext& context, const std::string& location, std::string stem)
    : context_(context), kernel_(std::make_unique<kernel::Kernel>()), builder_(*kernel_),
      location_(location) {
  kernel_->name = context.kernel_name(stem);
  kernel_->location = location_;
  kernel_->algorithm = std::move(stem);
}

KernelMaker::KernelMaker(LoweringContext& context, const Instruction& instruction, std::string stem)
    : KernelMaker(context, instruction.location(), std::move(stem)) {
  if ((context.options().goals.check_indices && has_computed_indices(instruction)) ||
      is_checked_clamp(instruction))
    builder_.set_status(parameter(context.status_place(), Scalar::I32, 1, /*written=*/true, "status"));
}

int KernelMaker::parameter(BufferSlice place, Scalar element, int64_t elements, bool written,
                           std::string name) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    kernel::BufferParameter& known = kernel_->parameters[i];
    if (arguments_[i].buffer != place.buffer || arguments_[i].byte_offset != place.byte_offset ||
        known.element != element)
      continue;
    known.size = std::max(known.size, elements);
    known.written |= written;
    return static_cast<int>(i);
  }
  arguments_.push_back({place.buffer, place.byte_offset});
  return builder_.add_parameter(std::move(name), element, elements, written, context_.alignment_of(place));
}

int KernelMaker::scratch(Scalar element, int64_t elements, const char* name) {
  BufferSlice place{context_.add_scratch_buffer(elements * kernel::scalar_bytes(element), name), 0};
  int number = parameter(place, element, elements, /*written=*/true, name);
  kernel_->parameters[static_cast<size_t>(number)].per_task = true;
  return number;
}

int KernelMaker::read(Value value) {
  Scalar element = memory_scalar(value.dtype());
  int64_t bytes = bytes_at_bound(value.type());
  kernel_->bytes += bytes;
  BufferSlice place = context_.place_of(value);
  const kernel::Buffer& buffer = context_.program().buffers[static_cast<size_t>(place.buffer)];
  if (buffer.space == kernel::Space::Weights && place.byte_offset == 0) bytes = buffer.bytes;
  return parameter(place, element, bytes / kernel::scalar_bytes(element), /*written=*/false,
                   "in" + std::to_string(arguments_.size()));
}

int KernelMaker::write(Value value) {
  Scalar element = memory_scalar(value.dtype());
  int64_t elements = bytes_at_bound(value.type()) / kernel::scalar_bytes(element);
  kernel_->bytes += bytes_at_bound(value.type());
  return parameter(context_.place_of(value), element, elements, /*written=*/true,
                   "out" + std::to_string(arguments_.size()));
}

// The kernel's extents are those of the program's that its code mentions.
std::vector<IntExpr> KernelMaker::take_extents() {
  const kernel::Program& program = context_.program();
  std::vector<IntExpr> given;
  for (const auto* extents : {&program.extents, &context_.counts()})
    for (const SymbolRef& extent : *extents)
      if (mentions(*kernel_, *extent)) {
        kernel_->extents.push_back(extent);
        given.push_back(IntExpr::symbol(extent));
      }
  return given;
}

void KernelMaker::finish() {
  std::vector<IntExpr> extents = take_extents();
  context_.add_kernel(std::move(kernel_), std::move(arguments_), location_, std::move(extents));
}

void KernelMaker::finish_copy() {
  std::vector<IntExpr> extents = take_extents();
  context_.add_kernel(std::move(kernel_), std::move(arguments_), location_, std::move(extents)).is_copy =
      true;
}

} // namespace firn::lower
