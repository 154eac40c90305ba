// Follows the buffers that threads touched since they last waited, along every path through a block's body.
#include "compiler/kernel/barriers.h"

#include <map>
#include <set>

namespace firn::kernel {
namespace {

// Buffers that any thread may have touched.
struct Touched {
  std::set<int> read, written;
  void add(const Touched& other) {
    read.insert(other.read.begin(), other.read.end());
    written.insert(other.written.begin(), other.written.end());
  }
  bool operator==(const Touched&) const = default;
};

bool meet(const std::set<int>& a, const std::set<int>& b) {
  for (int buffer : a)
    if (b.contains(buffer)) return true;
  return false;
}

class BarrierFinder {
public:
  explicit BarrierFinder(const Kernel& kernel) : kernel_(kernel) {
    find_memory();
    find_copies(kernel.body);
  }

  std::unordered_set<const Op*> find() {
    visit(kernel_.body, {});
    return std::move(barriers_);
  }

private:
  void find_copies(const Block& block) {
    for (const auto& op : block.ops) {
      if (op->kind == OpKind::CopyAsync) copied_.insert(op->buffer);
      for (const Block& inner : op->blocks) find_copies(inner);
    }
  }

  // A thread's own scratch, and what the kernel only reads, passes nothing on.
  bool passes(int buffer) const {
    const bool is_parameter = static_cast<size_t>(buffer) < kernel_.parameters.size();
    return is_parameter ? kernel_.buffer(buffer).written : kernel_.buffer(buffer).shared;
  }

  // Calls may pass one memory for both parameters of a promise: such are one buffer here.
  int memory_of(int buffer) const {
    auto found = memory_.find(buffer);
    return found == memory_.end() ? buffer : found->second;
  }
  void find_memory() {
    for (const InPlace& pair : kernel_.in_place) {
      const int joined = memory_of(pair.written), other = memory_of(pair.read);
      memory_[pair.written] = memory_[pair.read] = joined;
      for (auto& [buffer, memory] : memory_)
        if (memory == other) memory = joined;
    }
  }

  void add_ops(const Block& block, Touched& touched) const {
    for (const auto& op : block.ops) {
      if (op->kind == OpKind::CopyAsync && passes(memory_of(op->buffers[0])))
        touched.read.insert(memory_of(op->buffers[0]));
      const bool reads = op->kind == OpKind::Load || op->kind == OpKind::Gather;
      if (op_kind_info(op->kind).group == OpGroup::Memory && op->kind != OpKind::Prefetch &&
          passes(memory_of(op->buffer)))
        (reads ? touched.read : touched.written).insert(memory_of(op->buffer));
      for (const Block& inner : op->blocks) add_ops(inner, touched);
    }
  }

  void arrive(const Op& op, const Touched& own, Touched& before) {
    if (meet(own.written, before.written) || meet(own.written, before.read) || meet(own.read, before.written))
      barriers_.insert(&op);
    if (barriers_.contains(&op)) before = {};
    before.add(own);
  }

  Touched visit(const Block& block, Touched before) {
    for (const auto& op : block.ops) {
      switch (op->kind) {
      case OpKind::Threads: {
        Touched own;
        add_ops(op->blocks[0], own);
        arrive(*op, own, before);
        break;
      }
      case OpKind::Load:
        if (passes(memory_of(op->buffer))) arrive(*op, {{memory_of(op->buffer)}, {}}, before);
        break;
      // A copy that a thread has waited for is there for that thread alone.
      case OpKind::CopyWait: before.written.insert(copied_.begin(), copied_.end()); break;
      case OpKind::If: {
        Touched other = visit(op->blocks[1], before);
        before = visit(op->blocks[0], before);
        before.add(other);
        break;
      }
      case OpKind::For: before.add(around({&op->blocks[0]}, before)); break;
      // It ends behind its condition.
      case OpKind::While:
        before = visit(op->blocks[0], around({&op->blocks[0], &op->blocks[1]}, before));
        break;
      default: break;
      }
    }
    return before;
  }

  // Blocks that run over and over; barriers only become more, so that this ends.
  Touched around(const std::vector<const Block*>& blocks, Touched before) {
    for (;;) {
      Touched after = before;
      for (const Block* block : blocks) after = visit(*block, after);
      after.add(before);
      if (after == before) return after;
      before = after;
    }
  }

  const Kernel& kernel_;
  std::map<int, int> memory_; // by buffer that shares it with another
  std::set<int> copied_;      // buffers that copies arrive in
  std::unordered_set<const Op*> barriers_;
};

} // namespace

std::unordered_set<const Op*> barriers_of(const Kernel& kernel) {
  return BarrierFinder(kernel).find();
}

} // namespace firn::kernel
