// Dots and convolutions as products of matrices, by blocks of threads. In rounds of block_k steps, threads
// bring the round's part of both operands into shared memory, [k][m] and [k][n], zeros where there is none;
// then each adds the products of its rows and columns, which it reads as vectors.
//
// Operands are elements that code gives: producers in the fusion, paddings and conversions are computed on
// the way into shared memory. A convolution's window is read where it lies, and no copy of the input is made.
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/block_contraction/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::OpKind;
using kernel::Register;
using Registers = std::vector<Register>;

// Columns of shared memory between rows, so that threads which store one column meet different banks; vectors
// of four stay aligned.
constexpr int kSpareColumns = 4;

// One operand's part of a round: [k][columns] in shared memory.
struct Panel {
  int buffer = -1;
  int columns = 0; // rows of the lhs, or columns of the rhs
  int thread = 1;  // each thread has so many
  bool k_inner = false;
  int pitch() const { return columns + kSpareColumns; }
};

class BlockContractionKernel {
public:
  BlockContractionKernel(KernelMaker& maker, const Instruction& instruction, const plan::KernelRoot& root,
                         const plan::BlockContractionPlan& plan)
      : maker_(maker), b_(maker.builder()), instruction_(instruction), op_(*root.op), plan_(plan),
        product_(*plan::find_block_product(root)),
        leaves_(is_fusion() ? RegionLeaves(maker, instruction)
                            : RegionLeaves::of_operands(maker, instruction)),
        sum_dtype_(scalar_ops::is_narrow_float(op_.type().dtype) ? DType::F32 : op_.type().dtype),
        type_(value_type(sum_dtype_)), m_(extent(product_.m)), n_(extent(product_.n)),
        k_(extent(product_.k)) {
    for (int i = 0; i < instruction.num_results(); ++i)
      outputs_.push_back(maker.write(result_of(instruction, i)));
  }

  void emit() {
    b_.set_threads(plan_.threads());
    const IntExpr rows = ceil_div(m_, plan_.block_m), columns = ceil_div(n_, plan_.block_n);
    IntExpr block = b_.set_parallel(extent(product_.batch) * rows * columns, "block");
    first_n_ = floor_mod(block, at_least_one(columns)) * plan_.block_n;
    block = floor_div(block, at_least_one(columns));
    first_m_ = floor_mod(block, at_least_one(rows)) * plan_.block_m;
    batch_ = unflatten(floor_div(block, at_least_one(rows)), product_.batch);
    Panel lhs = make_panel("lhs", plan_.block_m, plan_.thread_m, product_.lhs_k_inner),
          rhs = make_panel("rhs", plan_.block_n, plan_.thread_n, product_.rhs_k_inner);
    Registers accumulators = b_.threads({}, [&](const IntExpr&, const Registers&) {
      return Registers(static_cast<size_t>(plan_.thread_m * plan_.thread_n), zero());
    });
    accumulators = b_.loop_carried(
        0, ceil_div(k_, plan_.block_k), 1, accumulators, [&](const IntExpr& round, const Registers& carried) {
          const IntExpr first_k = round * plan_.block_k;
          b_.threads({}, [&](const IntExpr& thread, const Registers&) {
            fill(
                lhs, thread, first_k, [&](const IntExpr& k, const IntExpr& m) { return lhs_element(m, k); },
                first_m_, m_);
            fill(
                rhs, thread, first_k, [&](const IntExpr& k, const IntExpr& n) { return rhs_element(k, n); },
                first_n_, n_);
            return Registers{};
          });
          return b_.threads(carried, [&](const IntExpr& thread, const Registers& own) {
            return add_products(lhs, rhs, thread, own);
          });
        });
    b_.threads(accumulators, [&](const IntExpr& thread, const Registers& own) {
      store_results(thread, own);
      return Registers{};
    });
    const auto at_bound = [](const IntExpr& extent) { return std::max<int64_t>(1, extent.upper_bound()); };
    maker_.set_flops(2 * at_bound(extent(product_.batch)) * at_bound(m_) * at_bound(n_) * at_bound(k_));
  }

private:
  static IntExpr extent(const std::vector<IntExpr>& parts) { return plan::BlockProduct::product(parts); }
  bool is_fusion() const { return &op_ != &instruction_; }
  Register zero() {
    return kernel::is_float(type_.scalar) ? b_.constant(type_, 0) : b_.constant_int(type_, 0);
  }

  Panel make_panel(const char* name, int columns, int thread, bool k_inner) {
    Panel panel{-1, columns, thread, k_inner};
    panel.buffer = b_.add_shared(name, type_.scalar, int64_t{plan_.block_k} * panel.pitch());
    return panel;
  }

  // The value of `make` if all conditions hold, zeros otherwise. Conditions are left < right.
  Register where(const std::vector<std::pair<IntExpr, IntExpr>>& conditions,
                 const std::function<Register()>& make) {
    Register holds;
    for (const auto& [left, right] : conditions) {
      if ((right - left).lower_bound() > 0) continue;
      if ((right - left).upper_bound() <= 0) return zero();
      Register each = b_.compare(OpKind::SCmp, kernel::Predicate::Lt, b_.index(left), b_.index(right));
      holds = holds ? b_.binary(OpKind::And, holds, each) : each;
    }
    if (!holds) return make();
    return b_.if_then_else(
        holds, [&] { return Registers{make()}; }, [&] { return Registers{zero()}; })[0];
  }

  // Brings a panel's elements, a block's threads side by side along what lies side by side in memory.
  template <class Element>
  void fill(const Panel& panel, const IntExpr& thread, const IntExpr& first_k, Element element,
            const IntExpr& first, const IntExpr& end) {
    const int all = plan_.block_k * panel.columns, threads = plan_.threads();
    auto bring = [&](const IntExpr& at) {
      const IntExpr k = panel.k_inner ? floor_mod(at, plan_.block_k) : floor_div(at, panel.columns);
      const IntExpr column = panel.k_inner ? floor_div(at, plan_.block_k) : floor_mod(at, panel.columns);
      Register value = where({{first_k + k, k_}, {first + column, end}},
                             [&] { return element(first_k + k, first + column); });
      b_.store(value, panel.buffer, k * panel.pitch() + column);
    };
    for (int i = 0; i + threads <= all; i += threads) bring(thread + i);
    const int rest = all % threads;
    if (rest == 0) return;
    Register has_rest = b_.compare(OpKind::SCmp, kernel::Predicate::Lt, b_.index(thread), b_.index(rest));
    b_.if_then_else(
        has_rest,
        [&] {
          bring(thread + (all - rest));
          return Registers{};
        },
        [] { return Registers{}; });
  }

  ElementEmitter emitter() {
    ElementEmitter emitter(b_);
    leaves_.bind_to(emitter);
    return emitter;
  }
  Register operand(int number, const Index& index) {
    KernelScalars scalars(b_);
    Value value = op_.operand(number);
    return scalar_ops::convert(scalars, value.dtype(), sum_dtype_, emitter().emit(value, index), false);
  }

  // An operand of a dot: its index from those of batch, free dims and contracted dims.
  Register dot_operand(int number, const std::vector<IntExpr>& free, const std::vector<IntExpr>& k) {
    const Attributes& attributes = op_.attributes();
    const auto &batch = attributes.ints(number == 0 ? "lhs_batch" : "rhs_batch"),
               &contract = attributes.ints(number == 0 ? "lhs_contract" : "rhs_contract");
    Index index(op_.operand(number).type().dims.size(), IntExpr(0));
    std::vector<bool> is_bound(index.size());
    auto bind = [&](const std::vector<int64_t>& dims, const std::vector<IntExpr>& values) {
      for (size_t i = 0; i < dims.size(); ++i) {
        index[static_cast<size_t>(dims[i])] = values[i];
        is_bound[static_cast<size_t>(dims[i])] = true;
      }
    };
    bind(batch, batch_);
    bind(contract, k);
    size_t next = 0;
    for (size_t d = 0; d < index.size(); ++d)
      if (!is_bound[d]) index[d] = free[next++];
    return operand(number, index);
  }

  Register lhs_element(const IntExpr& m, const IntExpr& k) {
    std::vector<IntExpr> steps = unflatten(k, product_.k);
    if (op_.is(Opcode::Dot)) return dot_operand(0, unflatten(m, product_.m), steps);
    Index index = {batch_[0] * product_.m[0] + m};
    index.insert(index.end(), steps.begin(), steps.end());
    return operand(1, index); // filters are the second operand
  }

  Register rhs_element(const IntExpr& k, const IntExpr& n) {
    std::vector<IntExpr> steps = unflatten(k, product_.k), columns = unflatten(n, product_.n);
    if (op_.is(Opcode::Dot)) return dot_operand(1, columns, steps);
    const Window& window = op_.attributes().window();
    Index index = {columns[0], batch_[0] * product_.k[0] + steps[0]};
    std::vector<std::pair<IntExpr, IntExpr>> inside;
    for (size_t s = 0; s < window.dims.size(); ++s) {
      const WindowDim& dim = window.dims[s];
      const IntExpr at = columns[s + 1] * dim.stride + steps[s + 1] * dim.dilation - dim.pad_low;
      inside.push_back({-1, at});
      inside.push_back({at, op_.operand(0).type().dims[s + 2].extent});
      index.push_back(at);
    }
    return where(inside, [&] { return operand(0, index); });
  }

  // A thread's elements of a row of a panel.
  Registers load_row(const Panel& panel, const IntExpr& k, const IntExpr& column) {
    const int lanes = panel.thread % 4 == 0 && kernel::scalar_bytes(type_.scalar) == 4 ? 4 : 1;
    Registers elements;
    for (int i = 0; i < panel.thread; i += lanes) {
      Register row = b_.load(type_.with_lanes(lanes), panel.buffer, k * panel.pitch() + column + i,
                             lanes * kernel::scalar_bytes(type_.scalar));
      for (int lane = 0; lane < lanes; ++lane) elements.push_back(lanes == 1 ? row : b_.extract(row, lane));
    }
    return elements;
  }

  IntExpr row_of(const IntExpr& thread) const {
    return floor_div(thread, plan_.block_n / plan_.thread_n) * plan_.thread_m;
  }
  IntExpr column_of(const IntExpr& thread) const {
    return floor_mod(thread, plan_.block_n / plan_.thread_n) * plan_.thread_n;
  }

  Registers add_products(const Panel& lhs, const Panel& rhs, const IntExpr& thread,
                         const Registers& accumulators) {
    KernelScalars scalars(b_);
    return b_.loop_carried(
        0, plan_.block_k, 1, accumulators,
        [&](const IntExpr& k, const Registers& carried) {
          const Registers rows = load_row(lhs, k, row_of(thread)),
                          columns = load_row(rhs, k, column_of(thread));
          Registers next;
          for (size_t i = 0; i < rows.size(); ++i)
            for (size_t j = 0; j < columns.size(); ++j) {
              Register sum = carried[i * columns.size() + j];
              next.push_back(is_float(sum_dtype_) ? b_.fma(rows[i], columns[j], sum)
                                                  : scalars.iadd(sum, scalars.imul(rows[i], columns[j])));
            }
          return next;
        },
        std::min(plan_.block_k, 8));
  }

  // The index of a result from its row and column.
  Index result_index(const IntExpr& m, const IntExpr& n) const {
    std::vector<IntExpr> rows = unflatten(m, product_.m), columns = unflatten(n, product_.n);
    Index index;
    if (op_.is(Opcode::Dot)) {
      index = batch_;
      index.insert(index.end(), rows.begin(), rows.end());
      index.insert(index.end(), columns.begin(), columns.end());
      return index;
    }
    index = {columns[0], batch_[0] * product_.m[0] + m};
    index.insert(index.end(), columns.begin() + 1, columns.end());
    return index;
  }

  void store_result(const Index& index, Register sum) {
    KernelScalars scalars(b_);
    sum = scalar_ops::rounded(scalars, op_.type().dtype, sum);
    ElementEmitter element = emitter();
    element.bind(const_cast<Instruction&>(op_).result(0), [sum](const Index&, const Lanes&) { return sum; });
    Registers values;
    for (size_t i = 0; i < outputs_.size(); ++i)
      values.push_back(is_fusion() ? element.emit(instruction_.region().results()[i], index) : sum);
    for (size_t i = 0; i < outputs_.size(); ++i)
      store_element(b_, outputs_[i], instruction_.type(static_cast<int>(i)), index, Lanes{}, values[i]);
  }

  void store_results(const IntExpr& thread, const Registers& accumulators) {
    for (int i = 0; i < plan_.thread_m; ++i)
      for (int j = 0; j < plan_.thread_n; ++j) {
        const IntExpr m = first_m_ + row_of(thread) + i, n = first_n_ + column_of(thread) + j;
        Register sum = accumulators[static_cast<size_t>(i * plan_.thread_n + j)];
        where({{m, m_}, {n, n_}}, [&] {
          store_result(result_index(m, n), sum);
          return zero();
        });
      }
  }

  KernelMaker& maker_;
  kernel::Builder& b_;
  const Instruction& instruction_;
  const Instruction& op_;
  const plan::BlockContractionPlan& plan_;
  plan::BlockProduct product_;
  RegionLeaves leaves_;
  DType sum_dtype_;
  kernel::MachineType type_; // accumulators have it, and operands in shared memory
  IntExpr m_, n_, k_, first_m_, first_n_;
  std::vector<IntExpr> batch_;
  std::vector<int> outputs_;
};

} // namespace

void emit_block_contraction(LoweringContext& context, const Instruction& instruction,
                            const plan::BlockContractionPlan& plan) {
  const plan::KernelRoot root = *plan::find_contraction(instruction);
  KernelMaker maker(context, instruction, std::string(opcode_name(root.op->opcode())));
  BlockContractionKernel(maker, instruction, root, plan).emit();
  maker.kernel().algorithm = std::string(opcode_name(root.op->opcode())) + " " +
                             std::to_string(plan.block_m) + "x" + std::to_string(plan.block_n) + "x" +
                             std::to_string(plan.block_k);
  maker.finish();
}

} // namespace firn::lower
