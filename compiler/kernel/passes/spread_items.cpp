// spread-items: on a GPU, the items of a kernel's parallel loop go to threads, one to each:
//
//   parallel p [0, 999] count 1000      ->  parallel block [0, 3] count 4
//   ...                                     block_threads 256
//                                           threads as t [0, 255] () {
//                                             for from (256*block + t)
//                                                 to (min(256*block + t + 1, 1000)) as p () {
//                                               ...
//
// It takes the kernels that were made without a thought of GPUs, whose items are independent of each other. A
// kernel whose items reuse scratch gets a few blocks of one thread, each with scratch of its own, which take
// many items each. Calls of the runtime are refused: it is code of the CPU.
//
// Runs before memory is planned: results lie apart from operands, for another item may still read these.
#include "compiler/kernel/passes/pass.h"

#include <algorithm>

namespace firn::kernel {
namespace {

constexpr int kBlockThreads = 256;
// Blocks of a kernel whose items reuse scratch: each of them takes memory.
constexpr int64_t kMaxScratchBlocks = 64;

const Op* find_call(const Block& block) {
  for (const auto& op : block.ops) {
    if (op->kind == OpKind::CallRuntime) return op.get();
    for (const Block& inner : op->blocks)
      if (const Op* call = find_call(inner)) return call;
  }
  return nullptr;
}

bool holds_text(const Kernel& kernel) {
  return std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                     [](const BufferParameter& each) { return each.element == Scalar::I128; });
}

// Blocks have as few threads as let every SM have some.
// A warp at least: fewer threads would leave lanes of it idle.
int block_threads(int64_t items, const GpuFacts& gpu) {
  int threads = kBlockThreads;
  while (threads > kWarpThreads && items < int64_t{threads} * gpu.sms) threads /= 2;
  return static_cast<int>(std::min<int64_t>(threads, items));
}

class ItemSpreader {
public:
  ItemSpreader(Kernel& kernel, const GpuFacts& gpu) : kernel_(kernel), gpu_(gpu) {}

  void spread() {
    IntExpr items = kernel_.parallel_count;
    const int64_t max_items = kernel_.max_iterations();
    SymbolRef item = kernel_.parallel;
    if (!item) item = std::make_shared<const Symbol>(Symbol{"item", 0, 0});
    const bool reuses = std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                                    [](const BufferParameter& each) { return each.per_task; });
    kernel_.threads = reuses ? 1 : block_threads(max_items, gpu_);
    if (reuses) {
      set_blocks(std::min(max_items, kMaxScratchBlocks));
      give_scratch();
    } else {
      set_blocks(ceil_div(items, kernel_.threads));
    }
    SymbolRef thread = std::make_shared<const Symbol>(Symbol{"t", 0, kernel_.threads - 1});
    IntExpr block = IntExpr::symbol(kernel_.parallel), lower, upper;
    if (reuses) {
      const int64_t blocks = kernel_.max_iterations();
      lower = floor_div(block * items, blocks);
      upper = floor_div((block + 1) * items, blocks);
    } else {
      lower = block * kernel_.threads + IntExpr::symbol(thread);
      upper = min(lower + 1, items);
    }
    wrap(item, lower, upper);
    wrap_in_threads(thread);
    kernel_.in_place.clear();
  }

private:
  void set_blocks(const IntExpr& count) {
    kernel_.parallel_count = count;
    kernel_.parallel =
        std::make_shared<const Symbol>(Symbol{"block", 0, std::max<int64_t>(0, count.upper_bound() - 1)});
  }

  // Makes each block's part of a buffer from which items took scratch.
  void give_scratch() {
    move_scratch(kernel_.body);
    for (BufferParameter& buffer : kernel_.parameters) {
      if (!buffer.per_task) continue;
      buffer.size = task_stride(buffer) / scalar_bytes(buffer.element) * kernel_.max_iterations();
      buffer.per_task = false;
    }
  }
  void move_scratch(Block& block) {
    for (auto& op : block.ops) {
      for (Block& inner : op->blocks) move_scratch(inner);
      if (op_kind_info(op->kind).group != OpGroup::Memory) continue;
      const BufferParameter& buffer = kernel_.buffer(op->buffer);
      if (buffer.per_task)
        op->index = op->index +
                    IntExpr::symbol(kernel_.parallel) * (task_stride(buffer) / scalar_bytes(buffer.element));
    }
  }

  // The body becomes that of one op around it.
  Op& wrap(OpKind kind) {
    auto op = std::make_unique<Op>();
    op->kind = kind;
    op->blocks.push_back(std::move(kernel_.body));
    op->blocks[0].ops.push_back(std::make_unique<Op>());
    op->blocks[0].ops.back()->kind = OpKind::Yield;
    kernel_.body = {};
    kernel_.body.ops.push_back(std::move(op));
    return *kernel_.body.ops[0];
  }
  void wrap(const SymbolRef& item, const IntExpr& lower, const IntExpr& upper) {
    Op& loop = wrap(OpKind::For);
    loop.symbol = item;
    loop.lower = lower;
    loop.upper = upper;
  }
  void wrap_in_threads(const SymbolRef& thread) { wrap(OpKind::Threads).symbol = thread; }

  Kernel& kernel_;
  const GpuFacts& gpu_;
};

// Makes the buffers that calls pass as scratch large enough for all blocks.
void widen_scratch(Program& program, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    widen_scratch(program, step.first);
    widen_scratch(program, step.second);
    if (step.kind != Step::Kind::Call) continue;
    const Kernel& kernel = *program.kernels[static_cast<size_t>(step.kernel)];
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const BufferParameter& parameter = kernel.parameters[i];
      Buffer& buffer = program.buffers[static_cast<size_t>(step.arguments[i].buffer)];
      if (buffer.space == Space::Arena && step.arguments[i].byte_offset == 0)
        buffer.bytes = std::max(buffer.bytes, parameter.size * scalar_bytes(parameter.element));
    }
  }
}

} // namespace

bool spread_items(Program& program, const KernelPassOptions& options) {
  if (!options.target || !options.target->gpu) return false;
  bool changed = false;
  for (auto& kernel : program.kernels) {
    if (kernel->threads > 0) continue;
    if (const Op* call = find_call(kernel->body)) {
      options.refuse(unsupported_error(kernel->location + ": " + call->callee +
                                       " is code of the CPU, which a GPU cannot call"));
      return changed;
    }
    if (holds_text(*kernel)) {
      options.refuse(unsupported_error(kernel->location +
                                       ": strings lie in memory of the CPU, which a GPU cannot read"));
      return changed;
    }
    if (!options.take_rewrite()) break;
    ItemSpreader(*kernel, *options.target->gpu).spread();
    changed = true;
  }
  if (changed) widen_scratch(program, program.steps);
  return changed;
}

} // namespace firn::kernel
