// Reductions along rows, a block of threads to each row. Every thread reduces elements that lie a block
// apart, so that threads side by side read neighbours; a butterfly of shuffles makes one number of a warp's,
// and the numbers of warps meet in shared memory. The order of all of that depends on the plan alone.
#include "compiler/graph/builder.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/block_rows/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Register;
using Registers = std::vector<Register>;

class BlockRowsKernel {
public:
  BlockRowsKernel(KernelMaker& maker, const Instruction& instruction, const plan::BlockRowsPlan& plan)
      : maker_(maker), b_(maker.builder()), instruction_(instruction), threads_(plan.threads),
        rows_(*plan::find_block_rows(instruction)),
        leaves_(instruction.is(Opcode::Reduce) ? RegionLeaves::of_operands(maker, instruction)
                                               : RegionLeaves(maker, instruction)) {
    for (int i = 0; i < instruction.num_results(); ++i)
      outputs_.push_back(maker.write(result_of(instruction, i)));
  }

  void emit() {
    b_.set_threads(threads_);
    std::vector<IntExpr> outer;
    IntExpr count = 1;
    for (size_t d = 0; d < rows_.operand.dims.size(); ++d)
      (is_reduced(d) ? inner_ : outer).push_back(rows_.operand.dims[d].extent);
    for (const IntExpr& extent : outer) count = count * extent;
    for (const IntExpr& extent : inner_) length_ = length_ * extent;
    kept_ = unflatten(b_.set_parallel(count, "block"), outer);
    for (Value reduction : rows_.reductions) totals_.push_back(reduce(reduction));
    emit_results();
    const Type bound = rows_.operand.at_bound();
    maker_.set_flops(bound.num_elements() * (rows_.keeps_rows ? 8 : 1)); // a guess for code behind reductions
  }

private:
  bool is_reduced(size_t dim) const {
    return std::binary_search(rows_.dims.begin(), rows_.dims.end(), static_cast<int64_t>(dim));
  }

  // The index of an element of the row at hand, or without one that of what is left of the row.
  Index index_at(const IntExpr& position) const {
    std::vector<IntExpr> along = unflatten(position, inner_);
    Index index;
    size_t reduced = 0, kept = 0;
    for (size_t d = 0; d < rows_.operand.dims.size(); ++d)
      index.push_back(is_reduced(d) ? along[reduced++] : kept_[kept++]);
    return index;
  }

  // Code for elements, in which reductions that are done have their totals: `own`, a thread's.
  ElementEmitter emitter(const Registers& own) {
    ElementEmitter emitter(b_);
    leaves_.bind_to(emitter);
    for (size_t i = 0; i < own.size(); ++i)
      emitter.bind(rows_.reductions[i], [total = own[i]](const Index&, const Lanes&) { return total; });
    return emitter;
  }

  Register combine(const Instruction& reduce, Register lhs, Register rhs) {
    KernelScalars scalars(b_);
    const DType dtype = reduce.type().dtype;
    // Sums of narrow floats are kept in f32 until the end.
    return scalar_ops::binary(scalars, *simple_reducer(reduce),
                              scalar_ops::is_narrow_float(dtype) ? DType::F32 : dtype, lhs, rhs);
  }
  Register identity(const Instruction& reduce) {
    const DType dtype = reduce.type().dtype;
    LiteralRef literal = reducer_identity(*simple_reducer(reduce), dtype);
    const kernel::MachineType type = value_type(dtype);
    return kernel::is_float(type.scalar) ? b_.constant(type, literal->get_double(0))
                                         : b_.constant_int(type, literal->get_int(0));
  }

  // The total of a reduction, the same in every thread.
  Register reduce(Value reduction) {
    const Instruction& reduce = *reduction.def;
    Register total = b_.threads(totals_, [&](const IntExpr& thread, const Registers& own) {
      return b_.loop_carried(
          thread, length_, threads_, {identity(reduce)}, [&](const IntExpr& at, const Registers& sum) {
            ElementEmitter element = emitter(own);
            return Registers{combine(reduce, sum[0], element.emit(reduce.operand(0), index_at(at)))};
          });
    })[0];
    for (int mask = kWarpThreads / 2; mask > 0; mask /= 2) {
      Register other = b_.shuffle_xor(total, mask);
      total = b_.threads({total, other}, [&](const IntExpr&, const Registers& own) {
        return Registers{combine(reduce, own[0], own[1])};
      })[0];
    }
    if (threads_ > kWarpThreads) total = across_warps(reduce, total);
    return b_.threads({total}, [&](const IntExpr&, const Registers& own) {
      KernelScalars scalars(b_);
      Register start = emitter({}).emit(reduce.operand(1), {});
      return Registers{scalar_ops::rounded(scalars, reduce.type().dtype, combine(reduce, start, own[0]))};
    })[0];
  }

  Register across_warps(const Instruction& reduce, Register total) {
    const kernel::MachineType type = b_.type(total).with_spread(false);
    const int warps = threads_ / kWarpThreads;
    const int partials = b_.add_shared("warps" + std::to_string(totals_.size()), type.scalar, warps);
    b_.kernel().scratch.back().written = true;
    b_.threads({total}, [&](const IntExpr& thread, const Registers& own) {
      Register lane = b_.index(floor_mod(thread, kWarpThreads));
      Register is_first = b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Eq, lane, b_.index(0));
      b_.if_then_else(
          is_first,
          [&] {
            b_.store(own[0], partials, floor_div(thread, kWarpThreads));
            return Registers{};
          },
          [] { return Registers{}; });
      return Registers{};
    });
    return b_.threads({}, [&](const IntExpr&, const Registers&) {
      Register all = b_.load(type, partials, 0);
      for (int warp = 1; warp < warps; ++warp) all = combine(reduce, all, b_.load(type, partials, warp));
      return Registers{all};
    })[0];
  }

  void emit_results() {
    b_.threads(totals_, [&](const IntExpr& thread, const Registers& own) {
      const IntExpr end = rows_.keeps_rows ? length_ : IntExpr(1);
      b_.loop(thread, end, threads_, [&](const IntExpr& at) {
        const Index index = rows_.keeps_rows ? index_at(at) : kept_;
        ElementEmitter element = emitter(own);
        Registers values;
        for (size_t i = 0; i < outputs_.size(); ++i)
          values.push_back(instruction_.is(Opcode::Reduce)
                               ? own[0]
                               : element.emit(instruction_.region().results()[i], index));
        for (size_t i = 0; i < outputs_.size(); ++i)
          store_element(b_, outputs_[i], instruction_.type(static_cast<int>(i)), index, Lanes{}, values[i]);
      });
      return Registers{};
    });
  }

  KernelMaker& maker_;
  kernel::Builder& b_;
  const Instruction& instruction_;
  const int threads_;
  plan::BlockRows rows_;
  RegionLeaves leaves_;
  std::vector<int> outputs_;
  std::vector<IntExpr> inner_; // extents of a row's dims
  IntExpr length_ = 1;
  Index kept_;       // the index of the row
  Registers totals_; // the reductions so far have these, spread
};

} // namespace

void emit_block_rows(LoweringContext& context, const Instruction& instruction,
                     const plan::BlockRowsPlan& plan) {
  const bool is_composite = instruction.is(Opcode::Composite);
  KernelMaker maker(context, instruction,
                    is_composite ? std::string(instruction.attributes().word("name")) : "reduce");
  BlockRowsKernel(maker, instruction, plan).emit();
  maker.finish();
}

} // namespace firn::lower
