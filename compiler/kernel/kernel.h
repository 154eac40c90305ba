// The kernel IR: structured loops over buffers. It says how a computation runs: tiles, vectors, addresses.
// A Kernel is one function; a Program is the model: buffers, kernels, and the order in which they are
// called.
#pragma once

#include "compiler/support/diagnostic.h"
#include "compiler/support/int_expr.h"
#include "compiler/support/packing.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firn::kernel {

enum class OpKind : uint8_t {
#define FIRN_KERNEL_OP(enumerator, mnemonic, operands, group) enumerator,
#include "compiler/kernel/kernel_ops.def"
};
enum class OpGroup : uint8_t { Leaf, Float, Integer, Compare, Cast, Vector, Tile, Memory, Warp, Control };
struct OpKindInfo {
  std::string_view mnemonic;
  int operands;
  OpGroup group;
};
const OpKindInfo& op_kind_info(OpKind kind);
// The blocks that an op of the kind holds.
size_t blocks_of(OpKind kind);

// Machine types. Signedness is in the ops; Index is an integer as wide as a pointer; Bool lies in memory as
// I8 does, so I1 exists in values only. I128 is only moved and selected: it holds text, as an address and a
// size.
enum class Scalar : uint8_t { I1, I8, I16, I32, I64, Index, F16, BF16, F32, F64, I128 };
std::string_view scalar_name(Scalar scalar); // "i1", "i8", ..., "index", "f16", "bf16", "f32", "f64", "i128"
int scalar_bytes(Scalar scalar);             // in memory; Index: 8
// The alignment of callers' tensors of this type: that of its elements in C.
inline int caller_alignment(Scalar scalar) {
  return scalar == Scalar::I128 ? 8 : scalar_bytes(scalar);
}
inline bool is_float(Scalar scalar) {
  return scalar >= Scalar::F16 && scalar <= Scalar::F64;
}

inline constexpr int32_t kOutOfRange = 9; // FIRN_STATUS_OUT_OF_RANGE

// The products of bytes that a dot adds to a single sum, if it does not take four for each lane.
inline constexpr int kDotRow = 16;

// The type of a register; graph values have a firn::Type.
struct MachineType {
  Scalar scalar = Scalar::F32;
  int lanes = 1; // 1: a scalar, not a vector
  // In a kernel of threads, outside of their code: one value for each thread of the block.
  bool spread = false;
  bool operator==(const MachineType&) const = default;
  MachineType with_lanes(int n) const { return {scalar, n, spread}; }
  MachineType with_scalar(Scalar s) const { return {s, lanes, spread}; }
  MachineType with_spread(bool is_spread) const { return {scalar, lanes, is_spread}; }
  std::string to_string() const; // "f32", "f32x16", "spread f32x4"
};

// A virtual register, as in LLVM MIR and PTX: one op defines it (SSA) and others read it. A kernel has as
// many as it likes; the backend maps them to the machine's. The id is an index into Kernel::register_types.
struct Register {
  int id = -1;
  explicit operator bool() const { return id >= 0; }
  bool operator==(const Register&) const = default;
};

enum class Predicate : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

// Begins the callee of a call of the program's function, which gets one struct (include/firn/custom_op.h).
inline constexpr std::string_view kCustomCallee = "custom.";

struct Op;
struct Block {
  std::vector<Register> arguments; // For: the carried values
  std::vector<std::unique_ptr<Op>> ops;
};

// A narrow op whose numbers are promised to lie within adds its zero point in 32 bits without care.
inline constexpr double kMaxBounded = 1 << 30;

// One operation. Which fields mean something depends on the kind; the rest keep their defaults.
struct Op {
  OpKind kind;
  std::vector<Register> operands;
  std::vector<Register> results;
  Predicate predicate = Predicate::Eq; // compares
  std::vector<double> numbers;         // Constant of a float type
  std::vector<int64_t> integers; // Constant of an integer type, lanes of extract, insert, shuffle, tiles
  int64_t low = 0, high = 0;     // Narrow: the bounds of the result
  int64_t zero = 0;              // Narrow: the integer that 0.0 becomes
  bool bounded = false;          // Narrow: no number is NaN or of a magnitude beyond kMaxBounded
  int buffer = -1;               // memory ops: parameter or scratch number
  IntExpr index;                 // memory ops: element index in units of the buffer's element; IndexValue
  int alignment = 0;             // memory ops: known alignment in bytes; 0: the element's
  bool streaming = false;        // prefetch: into L2 rather than L1
  SymbolRef
      symbol; // For: the induction variable; Threads: the number of the thread; Symbolic: what it defines
  IntExpr lower, upper;     // For
  int64_t step = 1;         // For, > 0
  int64_t unroll = 1;       // For: copies of the body that code generation makes
  std::string callee;       // CallRuntime: a function of the runtime, or kCustomCallee and one of the program
  std::vector<int> buffers; // CallRuntime; CopyAsync: the one that is read
  IntExpr source;           // CopyAsync: the index there
  std::vector<Block> blocks;
};

// State lies in the instance as the arena does, but stays from run to run and shares its memory with nothing.
// Parameters are state in a block that instances share. Status is one word of the arena, an i32 that is 0
// when a run begins; a kernel that fails stores a status of include/firn/abi.h there, which ends the run.
enum class Space : uint8_t { Arena, Weights, Input, Output, State, Parameters, Status, Scratch };
inline bool is_state(Space space) {
  return space == Space::State || space == Space::Parameters;
}

// A pointer parameter of a kernel, or a small array on its stack (Scratch).
struct BufferParameter {
  std::string name;
  Scalar element = Scalar::F32;
  int64_t size = 0; // elements that may be touched
  bool written = false;
  int alignment = 64;    // known alignment of the pointer, in bytes
  bool per_task = false; // scratch that iterations of the parallel loop reuse: each task has its own
  bool shared = false;   // scratch that all threads of a block share; any other is a thread's own
};

// Bytes from one task's part of a buffer that is per_task to the next one's.
inline int64_t task_stride(const BufferParameter& parameter) {
  return (parameter.size * scalar_bytes(parameter.element) + 63) / 64 * 64;
}

// A register that holds a matrix. Ops name it by its position in Kernel::tiles.
struct MatrixTile {
  int rows = 0, row_bytes = 0;
  bool operator==(const MatrixTile&) const = default;
};

// How a kernel writes over memory that it reads. Patterns are sorted by how much they demand of the order of
// its accesses, least first; None demands separate memory.
enum class Overwriting : uint8_t {
  Pointwise, // an element is read only in the iteration that writes it, before it does
  RowWise,   // all that is read of a row is read before any of it is written; rows share nothing
  Sliding,   // bytes that an iteration writes were read by it or earlier ones, and are read by no later one
  None
};
std::string_view overwriting_name(Overwriting pattern); // "pointwise", "row_wise", "sliding", "none"

// The promise of a kernel that parameter `written` may lie in the memory of parameter `read`.
struct InPlace {
  int written = -1, read = -1;
  Overwriting pattern = Overwriting::Pointwise;
  int64_t distance = 0; // bytes by which `read` begins behind `written`
  bool operator==(const InPlace&) const = default;
};

// One function: runs `body` once for every value of `parallel` in [begin, end), the range given at the call;
// the iterations are independent of each other. With phases it does so for one value of `phase` after the
// other, within a range given at the call: an iteration may read what any iteration of an earlier phase
// wrote. Extents that vary are scalar arguments, which expressions of indices and ends of loops mention;
// sizes of buffers are those at the extents' upper bounds.
struct Kernel {
  std::string name;
  std::vector<BufferParameter> parameters;
  std::vector<BufferParameter> scratch; // numbered after the parameters; per call, uninitialised
  std::vector<SymbolRef> extents;       // scalar arguments, within their bounds at every call
  SymbolRef parallel;                   // induction variable of the outermost loop, the parallel loop
  IntExpr parallel_count = 1;           // its iterations, an expression over extents; may come to 0
  bool is_for_baseline = false; // in an object for several CPUs: all run the code for the least able one
  int tasks = 1;      // most parts into which an executor's threads share the parallel loop; 1: not shared
  SymbolRef phase;    // number of the current phase, in kernels with several; these have a parallel loop
  int64_t phases = 1; // tasks wait for each other at the end of each
  // The matrix registers, configured when a call begins and released when it ends; empty: the kernel uses
  // none.
  std::vector<MatrixTile> tiles;
  // A kernel of threads, for GPUs: each iteration of the parallel loop is a block of so many of them. Its
  // body is the block's: control flow, which is the same for all threads, and `threads` ops, which hold the
  // code of each. All threads wait for each other between one such op and the next, and see there what the
  // others wrote. Within one, no thread touches memory that another one writes. 0: not a kernel of threads.
  int threads = 0;
  Block body;
  std::vector<InPlace> in_place;           // promises that calls rely on; others lie apart if one is written
  std::vector<MachineType> register_types; // by Register::id
  // Facts for reports: work of one whole run, the ONNX nodes it computes, what algorithm it is.
  int64_t flops = 0, bytes = 0;
  std::string location, algorithm;

  MachineType type_of(Register value) const { return register_types[static_cast<size_t>(value.id)]; }
  int64_t max_iterations() const { return parallel_count.upper_bound(); } // at most
  const BufferParameter& buffer(int number) const {
    size_t n = static_cast<size_t>(number);
    return n < parameters.size() ? parameters[n] : scratch[n - parameters.size()];
  }
};

// A stretch of memory that the program uses. Arena offsets are set by the memory planner, weight offsets by
// layout of constants.
struct Buffer {
  std::string name;
  Space space = Space::Arena;
  bool kept = false; // Arena: other buffers hold addresses in it, so that none shares its place at any time
  int64_t bytes = 0;
  int alignment = 64;
  // Input, Output, State and Parameters (which are numbered together): which one; its slot, if any, is
  // `offset`, in the block of parameters or the arena.
  int io_index = -1;
  int initial = -1; // State, Parameters: the weights buffer that holds its first value; -1: zeros
  int64_t offset = -1;
  // Arena: the buffer is an i64 that a run leaves for its caller: the extent of output `extent_of` along
  // `extent_axis`. No other buffer shares its place. -1: it is no such number.
  int extent_of = -1, extent_axis = -1;
  std::string location;
};

// A pointer handed to a kernel: a place in a buffer.
struct Argument {
  int buffer = -1;
  int64_t byte_offset = 0;
};

// One step of the program: a kernel call, control flow whose condition is a bool in a buffer, an extent that
// only the run knows (an i64 in a buffer, which later calls may mention as a symbol), or calls that may run
// at the same time, as none writes what another touches.
//
// Lowering and passes say no more. make-entry adds steps for all else that the entry function does, so that
// code generation prints steps and implies nothing: it refuses extents out of their bounds, clears the status
// word, ends the run after a call that failed, runs a call only if it has iterations, and shares its
// iterations among threads. Each step around a call holds that one step.
struct Step {
  enum class Kind : uint8_t {
    Call,
    If,
    While,
    Bind,
    Concurrent,
    Require, // ends the run with kOutOfRange if an extent of the program is out of its bounds
    Clear,   // stores 0 to the status word
    Checked, // runs `first`, then ends the run with the status word unless that is 0
    When,    // runs `first` if `count` is above 0
    Share    // runs the call in `first` by as many of an executor's threads as its kernel has tasks
  } kind = Kind::Call;
  int kernel = -1;                 // Call
  bool is_copy = false;            // Call: gives the second argument the bytes of the first and does no more
  std::vector<Argument> arguments; // Call: one per parameter
  std::vector<IntExpr> extents;    // Call: one per extent of the kernel, over those of the program
  // Call: the iterations of the kernel's parallel loop, over the program's extents; nothing: they do not
  // vary, or the program has no entry yet. When: the condition.
  std::optional<IntExpr> count;
  std::string location;
  // If, While; Bind: the number, which is clamped to the symbol's bounds; Clear, Checked: the status word
  Argument condition;
  SymbolRef symbol; // Bind
  // If: then, else. While: steps that compute the condition, the body. Concurrent: the calls, two or more.
  std::vector<Step> first, second;

  bool has_status() const { return kind == Kind::Clear || kind == Kind::Checked; }
  bool has_condition() const {
    return kind == Kind::If || kind == Kind::While || kind == Kind::Bind || has_status();
  }
  // Whether the step begins every run, before the program's own steps.
  bool is_preamble() const { return kind == Kind::Require || kind == Kind::Clear; }
};

// A tensor of the model from which a constant is made.
struct ConstantSource {
  std::string name;                  // the initializer's, if it has one
  Scalar element = Scalar::I8;       // without signedness
  std::vector<int64_t> dims;         // row-major
  std::shared_ptr<const void> owner; // keeps `bytes` alive, which may lie at any address
  std::span<const std::byte> bytes;  // empty, as in text: zeros stand for them
  bool is_refittable = false;        // a program may be given other values, so equal constants stay separate
};

// One weights buffer: made from its source when the object is written, so that only one is in memory at a
// time, or where the program runs (prepare_program.h).
struct Constant {
  int buffer = -1;
  ConstantSource source;
  Packing packing;
};
void write_constant(const Constant& constant, std::span<std::byte> out);

// A tensor that callers of a program see.
struct Tensor {
  std::string name;          // the model's own, any bytes
  std::string element;       // the graph's word for its type: "f32", "u8", "bool"
  std::vector<IntExpr> dims; // over the program's extents; at its bound if only a run knows a dim
  // The number of the parameter, a state, whose new value a result is; -1: none.
  int updates = -1;
};

// The dim that callers know an extent by.
struct NamedDim {
  std::string name;            // the model's own, any bytes
  int64_t multiple = 1;        // the dim is this many times the extent
  std::vector<int64_t> values; // that the dim may have, ascending; empty: every one within the bounds
};

// The facts that a header says of a program, in the order of the function that it computes. Kernels and steps
// do not depend on it.
struct Interface {
  std::vector<Tensor> parameters, results;
  std::vector<NamedDim> dims; // by extent of the program; empty: they have the extents' names
};

struct Program {
  std::string name;
  Interface interface;
  std::vector<SymbolRef> extents; // arguments of a run, which first checks them against their bounds
  std::vector<Buffer> buffers;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<Step> steps;
  std::vector<Constant> constants;
  int64_t arena_bytes = 0, arena_lower_bound = 0, weight_bytes = 0;

  int add_buffer(Buffer buffer) {
    buffers.push_back(std::move(buffer));
    return static_cast<int>(buffers.size()) - 1;
  }
};

// Bytes to which a program's arena and its weights are aligned, and the places of its buffers: the most that
// one of its buffers is promised.
int buffer_alignment(const Program& program);

// The steps behind the preamble: those that a profile counts.
inline std::span<const Step> work_steps(const Program& program) {
  size_t first = 0;
  while (first < program.steps.size() && program.steps[first].is_preamble()) ++first;
  return std::span(program.steps).subspan(first);
}

// The iterations of a call, over the extents of its program.
IntExpr iterations_of(const Step& call, const Kernel& kernel);

// Writes all constants of a program to their places in its weights, which have Program::weight_bytes.
void write_weights(const Program& program, std::span<std::byte> weights);

// Text form (`.kir`): prints, and parses back to the identical program (constants keep sizes, not bytes).
std::string print_kernel(const Kernel& kernel);
std::string print_program(const Program& program);
Expected<Program> parse_program(std::string file, std::string_view text);

// Checks the invariants listed at the head of verify.cpp; a failure is a bug of Firn or of hand-written
// text.
Result verify(const Kernel& kernel);
Result verify(const Program& program);
// Checks what code generation asks for beyond that, and make-entry adds: steps say all that a run does
// (verify_entry.cpp).
Result verify_entry(const Program& program);

// The least pattern in which the body writes over what it reads when parameter `read` begins `distance`
// bytes behind parameter `written`; None if that is wrong or cannot be shown. The one place where this is
// decided.
Overwriting may_overwrite(const Kernel& kernel, int written, int read, int64_t distance = 0);
// Whether two calls may neither change places nor run at the same time: one of them writes a buffer that
// the other touches.
bool depend_on_each_other(const Step& a, const Step& b, const Program& program);

} // namespace firn::kernel
