// Emits one kernel as one LLVM function. The class holds what all architectures share, split by concern over
// emit_kernel, emit_threads, emit_arithmetic, emit_call, emit_cast, emit_narrowing, emit_mac, emit_vector and
// emit_memory; instruction_set.h gives it the instructions of an architecture, emit_expression computes
// indices, and emit_expand holds code for targets that lack an instruction.
#pragma once

#include "compiler/codegen/emit_expression.h"
#include "compiler/codegen/instruction_set.h"
#include "compiler/codegen/kernel_calls.h"
#include "compiler/kernel/kernel.h"
#include "compiler/target/mac.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

namespace firn::codegen {

// Names of functions in other modules.
using KernelNames = std::map<const kernel::Kernel*, std::string>;

// A module under construction and what every emitter needs to know.
struct ModuleContext {
  llvm::LLVMContext& context;
  llvm::Module& module;
  const Machine& target;
  std::string text_section;
  bool flushes_bf16 = false; // CodegenOptions::flushes_bf16
  std::string suffix = {};   // ends names that the module's programs would share; empty: there is one program
  // Names of the functions of kernels that other modules have; null: this one has them.
  const KernelNames* parts = nullptr;

  llvm::IntegerType* index_type() const {
    return llvm::Type::getIntNTy(context, static_cast<unsigned>(target.pointer_bits));
  }
  // The attributes every function has: cpu, features, no unwinding, no library idioms.
  void set_attributes(llvm::Function& function) const;
};

// The LLVM name of a kernel's function.
std::string kernel_symbol(const kernel::Kernel& kernel);
// The LLVM name of the function that runs a task of a shared kernel.
std::string task_symbol(const kernel::Kernel& kernel);
// The name of the thunk of its function, if it has one.
std::string thunk_symbol(const kernel::Kernel& kernel);

class KernelEmitter {
public:
  KernelEmitter(ModuleContext& context, const kernel::Kernel& kernel, const CallFacts& facts);
  KernelFunction emit();
  // Emits a kernel of threads, for a GPU, as a function of this name.
  llvm::Function* emit_blocks(const std::string& symbol);

private:
  struct AddressEntry {
    int buffer;
    IntExpr variable_part;
    llvm::Value* pointer;
  };

  // emit_kernel.cpp
  llvm::Function* create_function();
  void set_extents(llvm::Function& function);
  // Gives the function the arguments that it takes, and the others their values.
  KernelFunction reduce_arguments();
  void emit_scratch();
  // Emits the parallel loop over the range in arguments from `argument` on. `is_back`: whether it runs from
  // its end to its start, as it does in every other phase, to begin with data that the phase before left in
  // cache; null: no.
  void emit_iterations(unsigned argument, llvm::Value* is_back);
  template <class Body> void emit_range(unsigned argument, Body body);
  void emit_block(const kernel::Block& block, std::vector<llvm::Value*>* yielded);
  void emit_op(const kernel::Op& op, std::vector<llvm::Value*>* yielded);
  void emit_for(const kernel::Op& op);
  // One rotated loop; `body` emits an iteration given the variable and carried values and returns the next
  // ones.
  template <class Body>
  std::vector<llvm::Value*> emit_loop(llvm::Value* lower, llvm::Value* upper, int64_t step,
                                      bool runs_at_least_once, std::vector<llvm::Value*> carried, Body body);
  void emit_while(const kernel::Op& op);
  void emit_if(const kernel::Op& op);
  void emit_call_runtime(const kernel::Op& op);
  void emit_call_custom(const kernel::Op& op);
  void emit_constant(const kernel::Op& op);
  llvm::BasicBlock* new_block(const char* name);
  void start_block(llvm::BasicBlock* block);

  // emit_arithmetic.cpp
  llvm::Value* emit_float(const kernel::Op& op);
  llvm::Value* emit_float_op(kernel::OpKind kind, std::span<llvm::Value* const> operands);
  llvm::Value* emit_minimum(llvm::Value* a, llvm::Value* b, bool maximum);
  llvm::Value* emit_integer(const kernel::Op& op);
  llvm::Value* emit_division(kernel::OpKind kind, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_shift(kernel::OpKind kind, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_compare(const kernel::Op& op);

  // emit_cast.cpp
  llvm::Value* emit_cast(const kernel::Op& op);
  llvm::Value* rounded_by_conversion(const kernel::Op& op);
  // 16-bit floats are carried as i16; these convert the carrier.
  llvm::Value* to_f32(llvm::Value* carrier, kernel::Scalar from);
  llvm::Value* from_f32(llvm::Value* value, kernel::Scalar to);
  llvm::Value* round_to_odd(llvm::Value* wide);
  llvm::Value* half_to_float_bits(llvm::Value* carrier);
  llvm::Value* float_to_half_bits(llvm::Value* value);

  // emit_narrowing.cpp
  struct NarrowedStore {
    llvm::StoreInst* store = nullptr;
    int buffer = 0;
    IntExpr variable_part; // its index without the constant part
    int64_t offset = 0;    // the constant part, in elements, which are bytes
    NarrowedBytes bytes;
  };
  llvm::Value* emit_narrow(const kernel::Op& op);
  llvm::Value* rounded_words(llvm::Value* floats);
  void note_narrowed_store(const kernel::Op& op, llvm::StoreInst* store);
  void pass_narrowed_stores(const kernel::Op& op);
  void join_narrowed_stores();
  void store_joined(llvm::Value* bytes, std::span<const NarrowedStore> stores);

  // emit_vector.cpp
  llvm::Value* emit_vector(const kernel::Op& op);
  llvm::Value* emit_reduction(const kernel::Op& op);
  llvm::Value* look_up(llvm::Value* table, llvm::Value* numbers);

  // emit_mac.cpp
  llvm::Value* emit_lane_products(const kernel::Op& op);
  llvm::Value* emit_product(const kernel::Op& op);
  llvm::Value* emit_dot4(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_dot_row(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_i16_dot2(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_dot2(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* dot4_offset(Factor lhs, Factor rhs, llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Type* shaped_integer(llvm::Value* like);

  // emit_memory.cpp
  void emit_memory(const kernel::Op& op);
  llvm::Value* address(int buffer, const IntExpr& index);
  llvm::Value* expression(const IntExpr& expression) { return expressions_.emit(expression); }
  IntExpr resolve(const IntExpr& expression) const;
  llvm::Align access_alignment(const kernel::Op& op) const;
  void emit_indexed(const kernel::Op& op, llvm::Value* pointer,
                    const std::function<llvm::Value*(kernel::MachineType)>& all_lanes);
  // Emits `body` under a condition; the result is its value, or `otherwise` if the condition is false.
  llvm::Value* emit_guarded(llvm::Value* condition, llvm::Value* otherwise,
                            const std::function<llvm::Value*()>& body);

  // emit_threads.cpp
  llvm::Function* create_block_function(const std::string& symbol);
  llvm::Value* special_register(unsigned intrinsic);
  void emit_shared();
  void wait_before(const kernel::Op& op);
  void emit_threads(const kernel::Op& op);
  void emit_warp(const kernel::Op& op);
  llvm::Value* shuffle_words(const kernel::Op& op, llvm::Value* words);
  void emit_shuffle(const kernel::Op& op);
  void emit_copy_async(const kernel::Op& op, llvm::Value* to);

  llvm::Type* type_of(kernel::MachineType type) const;
  llvm::Value* value(kernel::Register value) const { return values_[static_cast<size_t>(value.id)]; }
  kernel::MachineType type(kernel::Register value) const { return kernel_.type_of(value); }
  // The op that gives a register, if it is of that kind; else null.
  const kernel::Op* defined_by(kernel::Register value, kernel::OpKind kind) const {
    const kernel::Op* op = definitions_[static_cast<size_t>(value.id)];
    return op && op->kind == kind ? op : nullptr;
  }
  void set(kernel::Register to, llvm::Value* value) { values_[static_cast<size_t>(to.id)] = value; }
  llvm::ConstantInt* index_constant(int64_t value) const {
    return llvm::ConstantInt::getSigned(context_.index_type(), value);
  }

  ModuleContext& context_;
  const kernel::Kernel& kernel_;
  const CallFacts& facts_;
  llvm::IRBuilder<> ir_;
  std::unique_ptr<InstructionSet> instructions_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> buffers_;          // parameters, then scratch
  std::vector<llvm::Value*> values_;           // by register
  std::vector<const kernel::Op*> definitions_; // by register; null: no op that is emitted yet gives it
  ExpressionEmitter expressions_;
  std::vector<AddressEntry> addresses_;   // computed in the current basic block
  bool has_offsets_ = false;              // some symbol has an offset
  std::map<int, NarrowedBytes> narrowed_; // by the Register::id of what `narrow` gives
  std::vector<NarrowedStore> waiting_;    // stores of the current block that may be joined
  int depth_ = 0;
  std::unordered_set<const kernel::Op*> barriers_; // before which the threads of a block wait
  llvm::Value* thread_ = nullptr;                  // the number of the thread
};

// Declares the function of a kernel that another module has under this name.
KernelFunction declare_kernel(ModuleContext& context, const kernel::Kernel& kernel, const CallFacts& facts,
                              const std::string& symbol);

// emit_expand.cpp: code for targets that lack an instruction.

// floor, ceil, trunc or roundeven (by `kind`) with additions alone.
llvm::Value* expand_rounding(llvm::IRBuilder<>& ir, kernel::OpKind kind, llvm::Value* value);
// The internal function T firn_fmod(T, T), exact as C's fmod, made on first use.
llvm::Function* fmod_function(const ModuleContext& context, llvm::Type* type);

} // namespace firn::codegen
