// The arena plan: in-place merging, then offsets of what is alive when.
#include "compiler/memory/arena.h"

#include "compiler/memory/in_place.h"
#include "compiler/memory/liveness.h"
#include "compiler/memory/offsets.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace firn::memory {
namespace {

using kernel::Program;
using kernel::Space;
using kernel::Step;

int64_t align_up(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Whether the caller's program finds the buffer by its offset: inputs, outputs, states, and the counts of
// outputs' dims.
bool is_interface(const kernel::Buffer& buffer) {
  return buffer.space == Space::Input || buffer.space == Space::Output || buffer.space == Space::State ||
         buffer.extent_of >= 0;
}

// The buffer of the other program that is the same part of the interface.
const kernel::Buffer* find_counterpart(const Program& other, const kernel::Buffer& buffer) {
  for (const kernel::Buffer& each : other.buffers)
    if (each.space == buffer.space && each.io_index == buffer.io_index &&
        each.extent_of == buffer.extent_of && each.extent_axis == buffer.extent_axis && is_interface(each))
      return &each;
  return nullptr;
}

// The ONNX nodes that the step of that number computes, or its kernel.
std::string computed_by(const Program& program, const Liveness& liveness, int number) {
  const auto at = static_cast<size_t>(number);
  const Step* call = at < liveness.calls.size() ? liveness.calls[at] : nullptr;
  if (!call) return "a condition or concurrent calls";
  return call->location.empty() ? program.kernels[static_cast<size_t>(call->kernel)]->name : call->location;
}

// `numbers`: those of the items' buffers.
ArenaPeak describe_peak(const Program& program, const Liveness& liveness, const std::vector<Item>& items,
                        const std::vector<size_t>& numbers) {
  const Peak fullest = peak_of(items);
  ArenaPeak peak{fullest.bytes, fullest.step, liveness.num_steps, "", {}};
  if (peak.step < liveness.num_steps) peak.computes = computed_by(program, liveness, peak.step);
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].first > peak.step || peak.step > items[i].last) continue;
    const bool is_last = items[i].last + 1 >= liveness.num_steps;
    peak.alive.push_back(
        {static_cast<int>(numbers[i]), is_last ? "" : computed_by(program, liveness, items[i].last)});
  }
  return peak;
}

} // namespace

void SharedLayout::add(Space space, const std::string& name, int64_t buffer_bytes) {
  if (offsets.emplace(std::pair(space, name), bytes).second) bytes += align_up(buffer_bytes, alignment);
}

int64_t SharedLayout::find(const kernel::Buffer& buffer) const {
  auto found = offsets.find({buffer.space, buffer.name});
  return found == offsets.end() ? -1 : found->second;
}

ArenaPeak plan_arena(Program& program, const ArenaOptions& options) {
  merge_in_place(program);
  const int64_t alignment = kernel::buffer_alignment(program);
  Liveness liveness = compute_liveness(program);
  auto is_external = [](const std::vector<bool>& flags, int index) {
    return index >= 0 && static_cast<size_t>(index) < flags.size() && flags[static_cast<size_t>(index)];
  };
  std::vector<Item> items;
  std::vector<size_t> numbers;                                // numbers of the items' buffers
  int64_t fixed = options.shared ? options.shared->bytes : 0; // bytes of what comes first
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    kernel::Buffer& buffer = program.buffers[i];
    buffer.offset = buffer.space == Space::Weights ? buffer.offset : -1;
    LiveInterval life = liveness.buffers[i];
    int end = std::max(liveness.num_steps - 1, 0);
    if (buffer.space == Space::Input && !is_external(options.external_inputs, buffer.io_index))
      life = {0, end};
    else if (buffer.space == Space::Output && !is_external(options.external_outputs, buffer.io_index))
      life = {life.is_used() ? life.first : 0, end};
    else if (is_state(buffer.space) || buffer.space == Space::Status)
      life = {0, end};
    else if (buffer.space != Space::Arena || !life.is_used())
      continue;
    if (buffer.space == Space::Parameters) {
      buffer.offset = options.parameters ? options.parameters->find(buffer) : -1;
      FIRN_CHECK(buffer.offset >= 0, "parameter '" + buffer.name + "' has no place in the block");
      continue;
    }
    if (const int64_t at = options.shared ? options.shared->find(buffer) : -1; at >= 0) {
      buffer.offset = at;
      continue;
    }
    if (options.interface_of && is_interface(buffer)) {
      const kernel::Buffer* placed = find_counterpart(*options.interface_of, buffer);
      FIRN_CHECK(placed && placed->offset >= 0 && placed->bytes >= buffer.bytes,
                 "buffer '" + buffer.name + "' has no place in the program before");
      buffer.offset = placed->offset;
      fixed = std::max(fixed, placed->offset + align_up(placed->bytes, alignment));
      continue;
    }
    if (options.fixes_interface && is_interface(buffer)) {
      buffer.offset = fixed;
      fixed += align_up(buffer.bytes, alignment);
      continue;
    }
    items.push_back({align_up(buffer.bytes, alignment), life.first, life.last});
    numbers.push_back(i);
  }
  Packing packing = pack_items(items);
  for (size_t i = 0; i < items.size(); ++i) program.buffers[numbers[i]].offset = fixed + packing.offsets[i];
  program.arena_bytes = fixed + (items.empty() ? 0 : packing.bytes);
  program.arena_lower_bound = fixed + packing.lower_bound;
  ArenaPeak peak = describe_peak(program, liveness, items, numbers);
  peak.bytes += fixed;
  return peak;
}

namespace {

// Visits the buffers that steps name, in the order in which they run.
void visit_arguments(const std::vector<Step>& steps, const std::function<void(int)>& visit) {
  for (const Step& step : steps) {
    for (const kernel::Argument& argument : step.arguments) visit(argument.buffer);
    if (step.has_condition()) visit(step.condition.buffer);
    visit_arguments(step.first, visit);
    visit_arguments(step.second, visit);
  }
}

// Whether both become the same bytes. Values that a program may replace are compared by their tensor.
bool are_equal(const kernel::Constant& a, const kernel::Constant& b) {
  const kernel::ConstantSource &x = a.source, &y = b.source;
  if (x.element != y.element || x.bytes.size() != y.bytes.size() || a.packing != b.packing) return false;
  if (x.is_refittable || y.is_refittable) return x.bytes.data() == y.bytes.data();
  return x.bytes.data() == y.bytes.data() || std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin());
}

// The first of equal constants: those that several layers share are in the object once.
class EqualConstants {
public:
  int find_or_add(const kernel::Constant& constant) {
    if (constant.source.bytes.empty()) return constant.buffer; // an opaque literal, which equals no other
    std::vector<const kernel::Constant*>& alike = by_key_[key(constant)];
    for (const kernel::Constant* other : alike)
      if (are_equal(*other, constant)) return other->buffer;
    alike.push_back(&constant);
    return constant.buffer;
  }

private:
  using Key = std::tuple<size_t, int64_t, uint64_t>;
  // A key of the sizes and a sample of the bytes.
  static Key key(const kernel::Constant& constant) {
    constexpr size_t kSamples = 64;
    std::span<const std::byte> bytes = constant.source.bytes;
    uint64_t sample = 0;
    for (size_t at = 0; at < bytes.size(); at += std::max<size_t>(1, bytes.size() / kSamples))
      sample = sample * 31 + std::to_integer<uint64_t>(bytes[at]);
    return {bytes.size(), constant.packing.packed_elements, sample};
  }

  std::map<Key, std::vector<const kernel::Constant*>> by_key_;
};

} // namespace

void place_constants(Program& program) {
  for (kernel::Buffer& buffer : program.buffers)
    if (buffer.space == Space::Weights) buffer.offset = -1;
  std::map<int, kernel::Constant*> constants;
  for (kernel::Constant& constant : program.constants) constants[constant.buffer] = &constant;
  int64_t end = 0;
  const int64_t alignment = kernel::buffer_alignment(program);
  std::vector<kernel::Constant> placed; // in the order of their offsets; what nothing reads is dropped
  EqualConstants known;
  auto place = [&](int number) {
    kernel::Buffer& buffer = program.buffers[static_cast<size_t>(number)];
    if (buffer.space != Space::Weights || buffer.offset >= 0) return;
    auto constant = constants.find(number);
    if (constant != constants.end()) {
      if (int first = known.find_or_add(*constant->second); first != number) {
        buffer.offset = program.buffers[static_cast<size_t>(first)].offset;
        return;
      }
      placed.push_back(*constant->second);
    }
    buffer.offset = end;
    end = align_up(end + buffer.bytes, alignment);
  };
  visit_arguments(program.steps, place);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].initial >= 0) place(program.buffers[i].initial);
  program.constants = std::move(placed);
  program.weight_bytes = end;
}

int64_t share_constants(Program& program, Program& holder) {
  place_constants(program);
  int64_t before = holder.weight_bytes;
  size_t known = 0;                 // the holder's constant that is likely the next
  std::map<int64_t, int64_t> moved; // own offsets to the holder's
  for (kernel::Constant& constant : program.constants) {
    const kernel::Buffer& buffer = program.buffers[static_cast<size_t>(constant.buffer)];
    const kernel::Constant* equal = nullptr;
    for (size_t i = 0; i < holder.constants.size() && !equal; ++i) {
      size_t at = (known + i) % holder.constants.size();
      if (!are_equal(constant, holder.constants[at])) continue;
      equal = &holder.constants[at];
      known = at + 1;
    }
    if (equal) {
      moved[buffer.offset] = holder.buffers[static_cast<size_t>(equal->buffer)].offset;
      continue;
    }
    kernel::Constant added = constant;
    added.buffer = holder.add_buffer(buffer);
    holder.buffers[static_cast<size_t>(added.buffer)].offset = moved[buffer.offset] = holder.weight_bytes;
    holder.weight_bytes = align_up(holder.weight_bytes + buffer.bytes, kernel::buffer_alignment(holder));
    holder.constants.push_back(std::move(added));
  }
  for (kernel::Buffer& buffer : program.buffers)
    if (buffer.space == Space::Weights && buffer.offset >= 0) buffer.offset = moved.at(buffer.offset);
  program.weight_bytes = holder.weight_bytes;
  return holder.weight_bytes - before;
}

} // namespace firn::memory
