// Places of values, and the growing program.
#include "compiler/lower/lowering_context.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/lower/constant_source.h"
#include "compiler/lower/emitters.h"

#include <algorithm>
#include <numeric>

namespace firn::lower {

using kernel::Scalar;

bool has_machine_type(DType dtype) {
  return is_float(dtype) || is_integer(dtype) || dtype == DType::Bool || dtype == DType::String;
}

Scalar memory_scalar(DType dtype) {
  switch (dtype) {
  case DType::F64: return Scalar::F64;
  case DType::F32: return Scalar::F32;
  case DType::F16: return Scalar::F16;
  case DType::BF16: return Scalar::BF16;
  case DType::I64:
  case DType::U64: return Scalar::I64;
  case DType::I32:
  case DType::U32: return Scalar::I32;
  case DType::I16:
  case DType::U16: return Scalar::I16;
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F8E8M0:
  case DType::F4E2M1:
  case DType::I8:
  case DType::I4:
  case DType::I2:
  case DType::U8:
  case DType::U4:
  case DType::U2:
  case DType::Bool: return Scalar::I8;
  case DType::String: return Scalar::I128;
  case DType::C64:
  case DType::C128: break;
  }
  FIRN_UNREACHABLE("no machine type for " + std::string(dtype_name(dtype)));
}

kernel::MachineType value_type(DType dtype, int lanes) {
  if (dtype == DType::Bool) return {Scalar::I1, lanes};
  if (dtype == DType::F16 || dtype == DType::BF16) return {Scalar::F32, lanes};
  return {memory_scalar(dtype), lanes};
}

namespace {

// One dim in blocks: whole ones, or the last one where it is not whole.
struct DimPart {
  int64_t first = 0, extent = 1; // range of the dim's elements
  int64_t outer = 1, inner = 1;  // steps of and within blocks; elements beyond `extent` are unused
};

std::vector<DimPart> parts_of(const Type& type, int dim) {
  int64_t extent = type.dim(dim), block = 1, blocks = 0;
  for (const Layout::Block& b : type.layout.blocks)
    if (b.dim == dim) block = b.size, ++blocks;
  FIRN_CHECK(blocks <= 1, "a constant whose dim lies in blocks of blocks");
  std::vector<DimPart> parts;
  if (extent / block > 0) parts.push_back({0, extent / block * block, extent / block, block});
  if (extent % block > 0) parts.push_back({extent / block * block, extent % block, 1, block});
  return parts;
}

// The box of one part of every dim.
PackedBox layout_box(const Type& type, const std::vector<DimPart>& parts) {
  std::vector<int64_t> strides = row_major_strides(type.static_dims());
  std::vector<IntExpr> first;
  for (const DimPart& part : parts) first.push_back(part.first);
  PackedBox box;
  box.packed = type.offset_of(first).value();
  std::vector<std::pair<int64_t, size_t>> bounded; // elements of a partial block, and the dim within it
  for (size_t d = 0; d < parts.size(); ++d) {
    box.source += parts[d].first * strides[d];
    auto add = [&](int64_t steps, int64_t elements) {
      std::vector<IntExpr> at = first;
      at[d] = parts[d].first + elements;
      int64_t packed = steps > 1 ? type.offset_of(at).value() - box.packed : 0;
      if (steps > 1) box.dims.push_back({steps, packed, elements * strides[d]});
    };
    add(parts[d].outer, parts[d].inner);
    if (parts[d].extent < parts[d].outer * parts[d].inner)
      bounded.emplace_back(parts[d].extent, box.dims.size());
    add(parts[d].inner, 1);
  }
  if (box.dims.empty()) box.dims.push_back({1, 1, 1});
  for (auto [end, dim] : bounded) {
    PackedBox::Bound bound{0, end, std::vector<int64_t>(box.dims.size(), 0)};
    bound.strides[dim] = 1;
    box.bounds.push_back(std::move(bound));
  }
  // In the order of memory, so that what lies side by side comes last.
  std::vector<size_t> order(box.dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return box.dims[a].packed > box.dims[b].packed; });
  PackedBox sorted = box;
  for (size_t i = 0; i < order.size(); ++i) {
    sorted.dims[i] = box.dims[order[i]];
    for (size_t b = 0; b < box.bounds.size(); ++b)
      sorted.bounds[b].strides[i] = box.bounds[b].strides[order[i]];
  }
  return sorted;
}

void add_layout_boxes(const Type& type, std::vector<DimPart>& parts, Packing& packing) {
  int dim = static_cast<int>(parts.size());
  if (dim == type.rank()) return packing.boxes.push_back(layout_box(type, parts));
  for (const DimPart& part : parts_of(type, dim)) {
    parts.push_back(part);
    add_layout_boxes(type, parts, packing);
    parts.pop_back();
  }
}

} // namespace

Packing layout_packing(const Type& type, int64_t bytes) {
  if (!has_machine_type(type.dtype) || is_sub_byte(type.dtype))
    return padded_copy(1, static_cast<int64_t>(type.byte_size()), bytes);
  int element = kernel::scalar_bytes(memory_scalar(type.dtype));
  int64_t elements = type.num_elements(), packed = bytes / element;
  if (type.layout.is_plain()) return padded_copy(element, elements, packed);
  Packing packing{element, packed, elements, {}, {}};
  std::vector<DimPart> parts;
  add_layout_boxes(type, parts, packing);
  int64_t laid_out = static_cast<int64_t>(type.physical_byte_size()) / element;
  for (PackedBox zeros : padded_copy(element, 0, packed - laid_out).boxes) {
    zeros.packed = laid_out;
    packing.boxes.push_back(std::move(zeros));
  }
  return packing;
}

void LoweringContext::set_view(Value value, Value base, int64_t byte_offset) {
  FIRN_CHECK(!is_placed(value), "value placed twice");
  views_[key(value)] = {base, byte_offset};
}

void LoweringContext::set_place(Value value, BufferSlice place) {
  FIRN_CHECK(!is_placed(value), "value placed twice");
  places_[key(value)] = place;
}

void LoweringContext::set_rolling(const Instruction& concatenate, const Instruction* slice) {
  rolling_.insert(&concatenate);
  if (slice) read_in_place_.insert(slice);
}

std::pair<Value, int64_t> LoweringContext::root_of(Value value) const {
  int64_t offset = 0;
  for (auto view = views_.find(key(value)); view != views_.end(); view = views_.find(key(value))) {
    offset += view->second.second;
    value = view->second.first;
  }
  return {value, offset};
}

bool LoweringContext::is_view_of_operand(const Instruction& instruction) const {
  if (instruction.num_results() != 1) return false;
  auto view = views_.find(key(result_of(instruction)));
  return view != views_.end() && instruction.num_operands() > 0 &&
         view->second.first == instruction.operand(0);
}

BufferSlice LoweringContext::place_of(Value value) {
  auto [root, offset] = root_of(value);
  auto found = places_.find(key(root));
  if (found == places_.end()) {
    BufferSlice place;
    if (root.def->is(Opcode::Constant)) {
      place = place_constant(*root.def);
    } else {
      kernel::Buffer buffer;
      buffer.name =
          root.def->name().empty() ? std::string(opcode_name(root.def->opcode())) : root.def->name();
      buffer.bytes = bytes_at_bound(root.type());
      buffer.location = root.def->location();
      place = {program_.add_buffer(std::move(buffer)), 0};
    }
    found = places_.emplace(key(root), place).first;
  }
  return {found->second.buffer, found->second.byte_offset + offset};
}

BufferSlice LoweringContext::place_constant(const Instruction& constant) {
  const LiteralRef& literal = constant.literal();
  Type type = constant.type();
  if (type.dtype == DType::String) return place_text(constant);
  auto [known, is_new] = literal_buffers_.try_emplace({literal.get(), type.to_string()}, -1);
  if (is_new) {
    // Whole vectors may be read of what constants occupy anyway.
    int64_t bytes = static_cast<int64_t>((type.physical_byte_size() + 63) / 64 * 64);
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
  std::vector<IntExpr> given;
  for (const auto* extents : {&context_.program().extents, &context_.counts_})
    for (const SymbolRef& extent : *extents)
      if (mentions(*kernel_, *extent)) {
        kernel_->extents.push_back(extent);
        given.push_back(IntExpr::symbol(extent));
      }
  return given;
}

void LoweringContext::bind_count(const SymbolRef& symbol, BufferSlice place) {
  kernel::Step step;
  step.kind = kernel::Step::Kind::Bind;
  step.symbol = symbol;
  step.condition = {place.buffer, place.byte_offset};
  steps_->push_back(std::move(step));
  counts_.push_back(symbol);
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
