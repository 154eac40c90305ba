// gpu-to-loops: kernels of threads become kernels of a CPU, which compute the same, one thread after the
// other. Each `threads` op is a loop; values of threads lie in scratch between them:
//
//   threads %1 as t [0, 255] (%2: f32) {     ->  for from (0) to (256) as t () {
//     ...                                          %2: f32 = load b5[t]
//     yield %3                                     ...
//   }                                              store %3 b6[t]
//                                                  yield
//                                                }
//
// So plans, lowering and memory of a GPU's program can be tried on any machine, at the speed of its CPU.
// Copies arrive at once. A thread's own scratch that outlives a `threads` op, as several touch it or one in a
// loop, is there for each thread.
#include "compiler/kernel/passes/pass.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace firn::kernel {
namespace {

using Ops = std::vector<std::unique_ptr<Op>>;

class LoopMaker {
public:
  explicit LoopMaker(Kernel& kernel) : kernel_(kernel), threads_(kernel.threads) {}

  void run() {
    keep_own_scratch();
    transform(kernel_.body);
    for (BufferParameter& buffer : kernel_.scratch) buffer.shared = false;
    for (MachineType& type : kernel_.register_types) type.spread = false;
    kernel_.threads = 0;
  }

private:
  // Buffers that the ops of a block touch.
  void add_touched(const Block& block, std::set<int>& touched) const {
    for (const auto& op : block.ops) {
      if (op_kind_info(op->kind).group == OpGroup::Memory) touched.insert(op->buffer);
      for (const Block& inner : op->blocks) add_touched(inner, touched);
    }
  }
  struct Region {
    Op* op;
    bool is_in_loop;
  };
  void find_regions(Block& block, bool is_in_loop, std::vector<Region>& regions) const {
    for (auto& op : block.ops) {
      const bool repeats = is_in_loop || op->kind == OpKind::For || op->kind == OpKind::While;
      if (op->kind == OpKind::Threads)
        regions.push_back({op.get(), is_in_loop});
      else
        for (Block& inner : op->blocks) find_regions(inner, repeats, regions);
    }
  }
  void move_access(Block& block, int buffer, const IntExpr& distance) {
    for (auto& op : block.ops) {
      if (op_kind_info(op->kind).group == OpGroup::Memory && op->buffer == buffer)
        op->index = op->index + distance;
      for (Block& inner : op->blocks) move_access(inner, buffer, distance);
    }
  }
  void keep_own_scratch() {
    std::vector<Region> regions;
    find_regions(kernel_.body, /*is_in_loop=*/false, regions);
    for (size_t i = 0; i < kernel_.scratch.size(); ++i) {
      BufferParameter& scratch = kernel_.scratch[i];
      const int number = static_cast<int>(kernel_.parameters.size() + i);
      int touching = 0;
      for (const Region& region : regions) {
        std::set<int> touched;
        add_touched(region.op->blocks[0], touched);
        if (touched.contains(number)) touching += region.is_in_loop ? 2 : 1;
      }
      if (scratch.shared || touching < 2) continue;
      // Threads' parts are aligned as the whole is.
      const int64_t stride = task_stride(scratch) / scalar_bytes(scratch.element);
      for (const Region& region : regions)
        move_access(region.op->blocks[0], number, IntExpr::symbol(region.op->symbol) * stride);
      scratch.size = stride * threads_;
    }
  }

  // The buffer in which the values of a spread register lie; made when first asked for.
  int place_of(Register value) {
    auto [found, is_new] = places_.try_emplace(value.id, -1);
    if (is_new) {
      MachineType type = kernel_.type_of(value);
      BufferParameter buffer;
      buffer.name = "v" + std::to_string(value.id);
      buffer.element = stored(type).scalar;
      buffer.size = int64_t{threads_} * type.lanes;
      buffer.written = true;
      kernel_.scratch.push_back(std::move(buffer));
      found->second = static_cast<int>(kernel_.parameters.size() + kernel_.scratch.size()) - 1;
    }
    return found->second;
  }
  // Truth values and indices do not lie in memory.
  static MachineType stored(MachineType type) {
    return {type.scalar == Scalar::I1      ? Scalar::I8
            : type.scalar == Scalar::Index ? Scalar::I64
                                           : type.scalar,
            type.lanes};
  }
  bool is_spread(Register value) const { return kernel_.type_of(value).spread; }

  Register add_register(MachineType type) {
    kernel_.register_types.push_back(type);
    return {static_cast<int>(kernel_.register_types.size()) - 1};
  }
  static Op& append(Ops& ops, OpKind kind) {
    ops.push_back(std::make_unique<Op>());
    ops.back()->kind = kind;
    return *ops.back();
  }
  void cast(Ops& ops, OpKind kind, Register from, Register to) {
    Op& op = append(ops, kind);
    op.operands = {from};
    op.results = {to};
  }

  // Appends ops that make `to`, of type `type`, the value of thread `thread` at `place`.
  void load(Ops& ops, Register to, MachineType type, int place, const IntExpr& thread) {
    Register raw = stored(type) == type ? to : add_register(stored(type));
    Op& op = append(ops, OpKind::Load);
    op.results = {raw};
    op.buffer = place;
    op.index = thread * type.lanes;
    if (raw == to) return;
    cast(ops, type.scalar == Scalar::I1 ? OpKind::Trunc : OpKind::IndexCast, raw, to);
  }
  void store(Ops& ops, Register value, MachineType type, int place, const IntExpr& thread) {
    if (!(stored(type) == type)) {
      Register raw = add_register(stored(type));
      cast(ops, type.scalar == Scalar::I1 ? OpKind::ZExt : OpKind::IndexCast, value, raw);
      value = raw;
    }
    Op& op = append(ops, OpKind::Store);
    op.operands = {value};
    op.buffer = place;
    op.index = thread * type.lanes;
  }

  // A loop over all threads; `body` makes the ops of one.
  template <class Body> void each_thread(Ops& ops, const SymbolRef& thread, Body body) {
    auto loop = std::make_unique<Op>();
    loop->kind = OpKind::For;
    loop->symbol = thread;
    loop->lower = 0;
    loop->upper = threads_;
    loop->blocks.emplace_back();
    body(loop->blocks[0].ops, IntExpr::symbol(thread));
    append(loop->blocks[0].ops, OpKind::Yield);
    ops.push_back(std::move(loop));
  }
  SymbolRef new_thread() {
    return std::make_shared<const Symbol>(Symbol{"t" + std::to_string(next_thread_++), 0, threads_ - 1});
  }

  // Copies values of all threads, all at once: places may be swapped.
  void copy(Ops& ops, const std::vector<std::pair<int, Register>>& to_from) {
    if (to_from.empty()) return;
    each_thread(ops, new_thread(), [&](Ops& inner, const IntExpr& thread) {
      std::vector<Register> values;
      for (auto [to, from] : to_from) {
        const MachineType type = stored(kernel_.type_of(from));
        values.push_back(add_register(type));
        load(inner, values.back(), type, place_of(from), thread);
      }
      for (size_t i = 0; i < to_from.size(); ++i)
        store(inner, values[i], kernel_.type_of(values[i]), to_from[i].first, thread);
    });
  }

  void transform(Block& block) {
    Ops before = std::move(block.ops);
    block.ops.clear();
    for (auto& op : before) {
      switch (op->kind) {
      case OpKind::Threads: make_loop(*op, block.ops); break;
      case OpKind::ShuffleXor:
      case OpKind::ShuffleDown: shuffle(*op, block.ops); break;
      case OpKind::CopyCommit:
      case OpKind::CopyWait: break;
      case OpKind::For: carry_in_memory(std::move(op), block.ops); break;
      case OpKind::While: carry_around_while(std::move(op), block.ops); break;
      case OpKind::If: choose_in_memory(std::move(op), block.ops); break;
      default: block.ops.push_back(std::move(op));
      }
    }
  }

  void make_loop(Op& threads, Ops& ops) {
    each_thread(ops, threads.symbol, [&](Ops& inner, const IntExpr& thread) {
      Block& body = threads.blocks[0];
      for (size_t i = 0; i < threads.operands.size(); ++i)
        load(inner, body.arguments[i], kernel_.type_of(body.arguments[i]), place_of(threads.operands[i]),
             thread);
      copy_at_once(body);
      const std::vector<Register> yielded = body.ops.back()->operands;
      body.ops.pop_back();
      for (auto& op : body.ops) inner.push_back(std::move(op));
      for (size_t i = 0; i < yielded.size(); ++i)
        store(inner, yielded[i], kernel_.type_of(yielded[i]), place_of(threads.results[i]), thread);
    });
  }

  // The condition of a copy for all lanes of a load; none: it has no condition.
  std::vector<Register> copy_mask(const Op& copy, int lanes, Ops& ops) {
    if (copy.operands.empty() || lanes == 1) return copy.operands;
    const Register mask = add_register({Scalar::I1, lanes});
    Op& splat = append(ops, OpKind::Splat);
    splat.operands = copy.operands;
    splat.results = {mask};
    return {mask};
  }

  // Copies in a thread's code become a load and a store.
  void copy_at_once(Block& block) {
    Ops before = std::move(block.ops);
    block.ops.clear();
    for (auto& op : before) {
      for (Block& inner : op->blocks) copy_at_once(inner);
      if (op->kind != OpKind::CopyAsync) {
        block.ops.push_back(std::move(op));
        continue;
      }
      const Scalar element = kernel_.buffer(op->buffer).element;
      const MachineType type{element, static_cast<int>(op->integers[0] / scalar_bytes(element))};
      const Register value = add_register(type);
      const std::vector<Register> mask = copy_mask(*op, type.lanes, block.ops);
      Op& read = append(block.ops, OpKind::Load);
      read.operands = mask;
      read.results = {value};
      read.buffer = op->buffers[0];
      read.index = op->source;
      Op& write = append(block.ops, OpKind::Store);
      write.operands = {value};
      write.buffer = op->buffer;
      write.index = op->index;
    }
  }

  void shuffle(const Op& op, Ops& ops) {
    const MachineType type = stored(kernel_.type_of(op.results[0]));
    each_thread(ops, new_thread(), [&](Ops& inner, const IntExpr& thread) {
      const int64_t n = op.integers[0];
      const IntExpr lane = floor_mod(thread, kWarpThreads);
      IntExpr from = thread;
      if (op.kind == OpKind::ShuffleXor) {
        // Each bit of the mask turns one bit of the lane.
        for (int64_t bit = 1; bit < kWarpThreads; bit *= 2)
          if (n & bit) from = from + bit - floor_mod(floor_div(lane, bit), 2) * (2 * bit);
      } else {
        from = min(thread + n, thread - lane + (kWarpThreads - 1));
      }
      Register value = add_register(type);
      if (op.kind == OpKind::ShuffleDown) {
        // A lane without another one n behind keeps its own.
        Register own = add_register(type);
        load(inner, own, type, place_of(op.operands[0]), thread);
        load(inner, value, type, place_of(op.operands[0]), from);
        Register at = add_register({Scalar::Index, 1}), limit = add_register({Scalar::Index, 1}),
                 is_there = add_register({Scalar::I1, 1}), chosen = add_register(type);
        Op& index = append(inner, OpKind::IndexValue);
        index.results = {at};
        index.index = lane;
        Op& constant = append(inner, OpKind::Constant);
        constant.results = {limit};
        constant.integers = {kWarpThreads - n};
        Op& compare = append(inner, OpKind::SCmp);
        compare.predicate = Predicate::Lt;
        compare.operands = {at, limit};
        compare.results = {is_there};
        Op& select = append(inner, OpKind::Select);
        select.operands = {is_there, value, own};
        select.results = {chosen};
        value = chosen;
      } else {
        load(inner, value, type, place_of(op.operands[0]), from);
      }
      store(inner, value, type, place_of(op.results[0]), thread);
    });
  }

  // Takes the spread values out of a list and gives them.
  std::vector<Register> take_spread(std::vector<Register>& values) const {
    std::vector<Register> spread;
    for (Register value : values)
      if (is_spread(value)) spread.push_back(value);
    std::erase_if(values, [&](Register value) { return is_spread(value); });
    return spread;
  }
  std::vector<std::pair<int, Register>> pairs(const std::vector<Register>& to,
                                              const std::vector<Register>& from) {
    std::vector<std::pair<int, Register>> result;
    for (size_t i = 0; i < to.size(); ++i) result.emplace_back(place_of(to[i]), from[i]);
    return result;
  }
  // Replaces the spread values that a block ends with by copies to places.
  void end_with_copies(Block& block, const std::vector<Register>& to) {
    transform(block);
    auto yield = std::move(block.ops.back());
    block.ops.pop_back();
    copy(block.ops, pairs(to, take_spread(yield->operands)));
    block.ops.push_back(std::move(yield));
  }

  // The places of a loop's arguments hold what it carries, and are those of its results.
  void carry_in_memory(std::unique_ptr<Op> loop, Ops& ops) {
    std::vector<Register> initial = take_spread(loop->operands), results = take_spread(loop->results),
                          carried = take_spread(loop->blocks[0].arguments);
    copy(ops, pairs(carried, initial));
    for (size_t i = 0; i < results.size(); ++i) places_[results[i].id] = place_of(carried[i]);
    end_with_copies(loop->blocks[0], carried);
    ops.push_back(std::move(loop));
  }

  void carry_around_while(std::unique_ptr<Op> loop, Ops& ops) {
    std::vector<Register> initial = take_spread(loop->operands), results = take_spread(loop->results),
                          tested = take_spread(loop->blocks[0].arguments),
                          passed = take_spread(loop->blocks[1].arguments);
    copy(ops, pairs(tested, initial));
    for (size_t i = 0; i < results.size(); ++i) places_[results[i].id] = place_of(passed[i]);
    end_with_copies(loop->blocks[0], passed);
    end_with_copies(loop->blocks[1], tested);
    ops.push_back(std::move(loop));
  }

  void choose_in_memory(std::unique_ptr<Op> branch, Ops& ops) {
    std::vector<Register> results = take_spread(branch->results);
    for (Block& block : branch->blocks) end_with_copies(block, results);
    ops.push_back(std::move(branch));
  }

  Kernel& kernel_;
  const int threads_; // each block has so many
  int next_thread_ = 0;
  std::unordered_map<int, int> places_; // buffers by Register::id
};

} // namespace

bool gpu_to_loops(Program& program, const KernelPassOptions& options) {
  bool changed = false;
  for (auto& kernel : program.kernels) {
    if (kernel->threads == 0 || !options.take_rewrite()) continue;
    LoopMaker(*kernel).run();
    changed = true;
  }
  return changed;
}

} // namespace firn::kernel
