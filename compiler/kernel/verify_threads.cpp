// The verifier of kernels of threads. Other rules hold by form: there is no barrier that some threads could
// miss, since threads wait for each other between ops that all of them run, and no condition around such an
// op can differ between threads, as a spread value is no i1. Here it checks that
// - ops, types and buffers of this level are in no other kernel;
// - `threads` ops are not nested, and count the kernel's threads;
// - what lies between them writes nothing, for all threads would, and calls nothing;
// - values of threads move between `threads` ops alone, and within whole warps;
// - a block's shared memory and threads are within the limits of every GPU;
// - no two threads store to one element of shared memory in one `threads` op, if indices tell.
#include "compiler/kernel/verify_threads.h"

#include "compiler/target/machine.h"

#include <algorithm>

namespace firn::kernel {
namespace {

// The largest shared memory that a block has on any GPU: 227 KiB.
constexpr int64_t kMaxSharedBytes = 232448;

class ThreadsVerifier {
public:
  explicit ThreadsVerifier(const Kernel& kernel) : kernel_(kernel) {}

  Result run() {
    check_limits();
    visit(kernel_.body);
    if (message_.empty()) return {};
    return internal_error("kernel '" + kernel_.name + "': " + message_);
  }

private:
  void fail(const std::string& text) {
    if (message_.empty()) message_ = text;
  }
  void fail(const Op& op, const std::string& text) {
    fail(std::string(op_kind_info(op.kind).mnemonic) + ": " + text);
  }

  void check_limits() {
    int64_t shared = 0;
    for (const BufferParameter& buffer : kernel_.scratch)
      if (buffer.shared) shared += buffer.size * scalar_bytes(buffer.element);
    if (shared > 0 && kernel_.threads == 0) fail("has shared memory, but no threads");
    if (shared > kMaxSharedBytes)
      fail("has " + std::to_string(shared) + " bytes of shared memory, of " +
           std::to_string(kMaxSharedBytes));
    if (kernel_.threads < 0 || kernel_.threads > kMaxBlockThreads)
      fail("has " + std::to_string(kernel_.threads) + " threads, of " + std::to_string(kMaxBlockThreads));
    for (const BufferParameter& buffer : kernel_.parameters) {
      if (buffer.shared) fail("buffer '" + buffer.name + "' is a parameter and shared");
      if (buffer.per_task && kernel_.threads > 0)
        fail("buffer '" + buffer.name + "' is scratch of a task, which threads do not have");
    }
    if (kernel_.threads > 0 && (kernel_.tasks > 1 || !kernel_.tiles.empty()))
      fail("has threads, and tasks or matrix registers of a CPU");
  }

  void visit(const Block& block) {
    for (Register argument : block.arguments) check_type(argument);
    for (const auto& op : block.ops) {
      for (Register result : op->results) check_type(result);
      check(*op);
      if (op->kind == OpKind::Threads) thread_ = op->symbol.get();
      conditions_ += op->kind == OpKind::If;
      for (const Block& inner : op->blocks) visit(inner);
      conditions_ -= op->kind == OpKind::If;
      if (op->kind == OpKind::Threads) thread_ = nullptr;
    }
  }

  void check_type(Register value) {
    if (kernel_.type_of(value).spread && (thread_ || kernel_.threads == 0))
      fail("%" + std::to_string(value.id) + " is a value of several threads where there is one");
  }

  void check(const Op& op) {
    const OpGroup group = op_kind_info(op.kind).group;
    const bool is_of_level =
        group == OpGroup::Warp || op.kind == OpKind::Threads || op.kind == OpKind::CopyAsync;
    if (is_of_level && kernel_.threads == 0) return fail(op, "is for kernels of threads");
    if (kernel_.threads == 0) return;
    if (thread_) return check_in_thread(op, group);
    if (op.kind == OpKind::Threads && (op.symbol->lower != 0 || op.symbol->upper != kernel_.threads - 1))
      fail(op, "counts other threads than the kernel's");
    if (group == OpGroup::Memory && op.kind != OpKind::Load)
      fail(op, "lies outside of the code of a thread, and all threads would do it");
    if (op.kind == OpKind::CallRuntime) fail(op, "is for CPUs");
    if (is_shuffle(op) && kernel_.threads % kWarpThreads != 0)
      fail(op, "wants whole warps, of " + std::to_string(kWarpThreads) + " threads");
    const bool passes = is_of_level || op.kind == OpKind::For || op.kind == OpKind::While ||
                        op.kind == OpKind::If || op.kind == OpKind::Yield;
    for (Register operand : op.operands)
      if (kernel_.type_of(operand).spread && !passes)
        fail(op, "computes with values of threads outside of their code");
    for (Register result : op.results)
      if (kernel_.type_of(result).spread && !passes)
        fail(op, "gives values of threads outside of their code");
  }
  static bool is_shuffle(const Op& op) {
    return op.kind == OpKind::ShuffleXor || op.kind == OpKind::ShuffleDown;
  }

  void check_in_thread(const Op& op, OpGroup group) {
    if (op.kind == OpKind::Threads || group == OpGroup::Warp) fail(op, "lies in the code of one thread");
    if (op.kind == OpKind::CallRuntime || group == OpGroup::Tile) fail(op, "is for CPUs");
    for (Register operand : op.operands)
      if (kernel_.type_of(operand).spread) fail(op, "uses a value that the thread's op does not take");
    if (op.kind == OpKind::Store && op.operands.size() == 1 && kernel_.threads > 1 && conditions_ == 0)
      check_store(op);
  }

  // A store of every thread, at an index which mentions no other symbol of a thread's own code than its
  // number.
  void check_store(const Op& op) {
    const BufferParameter& buffer = kernel_.buffer(op.buffer);
    if (!buffer.shared) return;
    const std::vector<SymbolRef> symbols = op.index.symbols();
    if (std::none_of(symbols.begin(), symbols.end(),
                     [&](const SymbolRef& s) { return s.get() == thread_; })) {
      if (symbols.empty())
        fail(op, "stores to element " + op.index.to_string() + " of '" + buffer.name + "' in every thread");
      return;
    }
    const std::optional<int64_t> stride = op.index.linear_coefficient(*thread_);
    const MachineType type = kernel_.type_of(op.operands[0]);
    if (stride && std::abs(*stride) < type.lanes && scalar_bytes(type.scalar) == scalar_bytes(buffer.element))
      fail(op, "stores to elements of '" + buffer.name + "' that the next thread stores to, too");
  }

  const Kernel& kernel_;
  const Symbol* thread_ = nullptr; // in the code of threads: their number
  int conditions_ = 0;             // `if` ops around
  std::string message_;
};

} // namespace

Result verify_threads(const Kernel& kernel) {
  return ThreadsVerifier(kernel).run();
}

} // namespace firn::kernel
