// Makes kernel code: a cursor into a kernel's blocks. Constant operands fold, trivial identities vanish
// (x+0 of integers, x*1), so that generators need no special cases of their own.
#pragma once

#include "compiler/kernel/kernel.h"

#include <functional>

namespace firn::kernel {

class Builder {
public:
  // Starts at the end of the kernel's body.
  explicit Builder(Kernel& kernel);
  Kernel& kernel() const { return kernel_; }
  MachineType type(Register value) const { return kernel_.type_of(value); }

  // Parameters and scratch. All parameters must be added before the first scratch is.
  int add_parameter(std::string name, Scalar element, int64_t size, bool written, int alignment = 64);
  int add_scratch(std::string name, Scalar element, int64_t size);
  // Memory that all threads of a block share, in kernels of threads.
  int add_shared(std::string name, Scalar element, int64_t size, int alignment = 16);

  Register constant(MachineType type,
                    double value); // floats: rounded to the type; integers: exact up to 2^53
  Register constant_int(MachineType type, int64_t value);
  Register constant_lanes(MachineType type, std::vector<int64_t> values);
  Register index(const IntExpr& expression);                 // a value of type index
  bool constant_value(Register value, double& number) const; // splat or scalar constants

  Register unary(OpKind kind, Register operand);
  Register binary(OpKind kind, Register lhs, Register rhs);
  Register fma(Register a, Register b, Register c);
  Register compare(OpKind kind, Predicate predicate, Register lhs, Register rhs);
  Register select(Register condition, Register on_true, Register on_false);
  Register cast(OpKind kind, Register operand, Scalar to);
  // f32 to an integer of at most 32 bits: rounds to nearest even, adds `zero` and keeps the bounds.
  // `bounded`: no number is NaN or of a magnitude beyond kMaxBounded.
  Register narrow(Register operand, Scalar to, int64_t low, int64_t high, int64_t zero, bool bounded = false);
  Register splat(Register scalar, int lanes); // the value itself when lanes is 1
  Register extract(Register vector, int lane);
  Register insert(Register vector, Register scalar, int lane);
  Register shuffle(Register lhs, Register rhs, std::vector<int64_t> lanes);
  Register reduce(OpKind kind, Register vector); // the value itself for a scalar
  Register emit(OpKind kind, std::vector<Register> operands,
                MachineType result); // any other op with one result

  // `alignment`: the address is known to be a multiple of so many bytes; 0: of the element's own alignment.
  Register load(MachineType type, int buffer, const IntExpr& index, int alignment = 0);
  Register load_masked(MachineType type, int buffer, const IntExpr& index, Register mask,
                       Register pass_through = {});
  void store(Register value, int buffer, const IntExpr& index, int alignment = 0);
  void store_masked(Register value, int buffer, const IntExpr& index, Register mask);
  Register gather(MachineType type, int buffer, const IntExpr& index, Register offsets, Register mask = {});
  void scatter(Register value, int buffer, const IntExpr& index, Register offsets, Register mask = {});
  void prefetch(int buffer, const IntExpr& index, bool into_l2 = false);
  // Ops on the kernel's tiles, which are named by number. In memory rows lie `stride` elements apart, from
  // `index` on.
  void tile_zero(int tile);
  void tile_load(int tile, int buffer, const IntExpr& index, int64_t stride);
  void tile_store(int tile, int buffer, const IntExpr& index, int64_t stride);
  void tile_dot(OpKind kind, int sums, int lhs, int rhs);
  // A mask i1xN of the first `count` lanes; `count` may be an expression.
  Register lane_mask(int lanes, const IntExpr& count);

  // A call of the runtime with the addresses of buffers, then scalars.
  void call_runtime(std::string callee, std::vector<int> buffers, std::vector<Register> operands);
  // A call of a function of the program with a firn_custom_call: buffers are the info, the workspace and
  // the tensors, operands their dims. Returns the function's i32.
  Register call_custom(const std::string& symbol, std::vector<int> buffers, std::vector<Register> operands,
                       int64_t workspace_bytes);

  // The parameter that points to the run's status word, in kernels that can fail; -1: there is none.
  void set_status(int parameter) { status_ = parameter; }
  int status() const { return status_; }
  // Stores `status` in the status word if the scalar `condition` holds.
  void fail_if(Register condition, int32_t status);

  // A runtime value as a symbol for index expressions; the caller promises lower <= value <= upper.
  IntExpr symbolic(Register value, int64_t lower, int64_t upper, std::string name = "s");

  // for iv = lower; iv < upper; iv += step. A loop that provably runs once is emitted straight with iv =
  // lower, one that provably never runs not at all. The induction variable's bounds are derived from lower
  // and upper.
  void loop(const IntExpr& lower, const IntExpr& upper, int64_t step,
            const std::function<void(const IntExpr& iv)>& body, int64_t unroll = 1);
  // With loop-carried values: the body gets their current values and returns the next.
  std::vector<Register> loop_carried(
      const IntExpr& lower, const IntExpr& upper, int64_t step, std::vector<Register> initial,
      const std::function<std::vector<Register>(const IntExpr& iv, const std::vector<Register>& carried)>&
          body,
      int64_t unroll = 1);
  std::vector<Register> if_then_else(Register condition,
                                     const std::function<std::vector<Register>()>& then_body,
                                     const std::function<std::vector<Register>()>& else_body);
  std::vector<Register>
  while_loop(std::vector<Register> initial,
             const std::function<Register(const std::vector<Register>&)>& condition,
             const std::function<std::vector<Register>(const std::vector<Register>&)>& body);
  // Sets the kernel's outermost parallel loop: `count` independent iterations, a number or an expression
  // over extents; returns its induction variable.
  IntExpr set_parallel(const IntExpr& count, std::string name = "p");
  // Sets how many phases the iterations of that loop have; returns the number of the current one.
  IntExpr set_phases(int64_t count);

  // Makes the kernel one of threads, so many in each block.
  void set_threads(int count);
  // The code of each thread: it gets the thread's number and its own values of `spread`, and returns its own
  // values of the results.
  std::vector<Register>
  threads(const std::vector<Register>& spread,
          const std::function<std::vector<Register>(const IntExpr& thread, const std::vector<Register>& own)>&
              body);
  // Values of other threads of the warp, see kernel_ops.def.
  Register shuffle_xor(Register spread, int mask);
  Register shuffle_down(Register spread, int distance);
  // In the code of a thread: begins to copy `bytes` from `source` of buffer `from` to `index` of buffer `to`,
  // which is shared; zeros if the condition, which may be none, is false.
  void copy_async(int to, const IntExpr& index, int from, const IntExpr& source, int bytes,
                  Register condition = {});
  void copy_commit();
  void copy_wait(int groups_in_flight);

private:
  Op& append(OpKind kind);
  Register add_value(MachineType type);
  Register emit_simple(OpKind kind, std::vector<Register> operands, MachineType result);
  Op& emit_memory(OpKind kind, std::vector<Register> operands, int buffer, const IntExpr& index);
  SymbolRef new_symbol(std::string name, int64_t lower, int64_t upper);
  Block make_block(const std::vector<MachineType>& argument_types,
                   const std::function<std::vector<Register>(const std::vector<Register>&)>& body);
  void remember_definitions(const Block& block);
  const Op* definition(Register value) const;
  // The constant that all lanes of an integer value hold.
  bool constant_integer(Register value, int64_t& number) const;
  Register fold_float(OpKind kind, Register lhs, Register rhs);
  Register fold_integer(OpKind kind, Register lhs, Register rhs);
  Register fold_cast(OpKind kind, Register operand, MachineType to);
  std::vector<MachineType> types_of(const std::vector<Register>& values) const;

  Kernel& kernel_;
  Block* block_;
  std::vector<const Op*> definitions_; // by Register::id; null for block arguments
  int next_symbol_ = 0;
  int status_ = -1;
};

} // namespace firn::kernel
