// The verifier of kernels (programs: verify_program.cpp). It checks that
// - every value is defined once, before its uses, in the block of the use or one around it;
// - operands, results and blocks have the number and types that the op's kind wants;
// - constants have one number or one per lane, and lane numbers exist;
// - every block inside an op ends in its only yield, whose types are those the op wants; the kernel's body
//   has none;
// - symbols of index expressions are in scope: extents, the parallel loop's, those of enclosing loops,
//   earlier `symbolic` ops; the parallel count mentions extents alone;
// - buffers exist, hold storable elements, are marked written if an op writes them; no access lies wholly
//   outside;
// - tiles fit matrix registers, and those of a product fit each other;
// - kernels of threads keep the rules of their level (verify_threads.cpp);
// - loops have positive steps and unroll factors; promises of memory in place are kept (overwrite.cpp).
#include "compiler/kernel/matrix_tiles.h"
#include "compiler/kernel/overwrite.h"
#include "compiler/kernel/verify_threads.h"
#include "compiler/target/machine.h"

#include <algorithm>
#include <bit>

namespace firn::kernel {

namespace {

int scalar_bits(Scalar scalar) {
  return scalar == Scalar::I1 ? 1 : 8 * scalar_bytes(scalar);
}

// Remembers the first error. Checks of an op go on after one, unless they would read what is not there.
class KernelVerifier {
public:
  explicit KernelVerifier(const Kernel& kernel)
      : kernel_(kernel), defined_(kernel.register_types.size()), visible_(kernel.register_types.size()) {}

  Result run() {
    check_buffers();
    for (const SymbolRef& extent : kernel_.extents) {
      if (extent->lower < 0 || extent->upper > kLargestExtent)
        fail("extent '" + extent->name + "' has bounds that no extent has");
      symbols_.push_back(extent.get());
    }
    check_parallel();
    if (std::string wrong = check_tiles(kernel_); !wrong.empty()) fail(wrong);
    if (kernel_.parallel) symbols_.push_back(kernel_.parallel.get());
    if (kernel_.phase) symbols_.push_back(kernel_.phase.get());
    check_block(kernel_.body, nullptr, {});
    if (message_.empty()) return {};
    return internal_error("kernel '" + kernel_.name + "': " + message_);
  }

private:
  void fail(const std::string& text) {
    if (message_.empty()) message_ = text;
  }
  void fail(const Op& op, const std::string& text) {
    std::string prefix(op_kind_info(op.kind).mnemonic);
    if (!op.results.empty()) prefix = "%" + std::to_string(op.results[0].id) + " = " + prefix;
    fail(prefix + ": " + text);
  }
  void want(bool condition, const Op& op, const char* text) {
    if (!condition) fail(op, text);
  }

  void check_parallel() {
    const IntExpr& count = kernel_.parallel_count;
    for (const SymbolRef& symbol : count.symbols())
      if (!is_in_scope(*symbol))
        fail("parallel count mentions symbol '" + symbol->name + "', which is no extent");
    int64_t max = kernel_.max_iterations();
    if (max < 1 || count.lower_bound() < 0) fail("parallel count is below 1");
    if (max > 1 && !kernel_.parallel) fail("has a parallel count but no parallel symbol");
    if (kernel_.parallel && max - 1 > kernel_.parallel->upper)
      fail("parallel count is beyond its symbol's bounds");
    if (kernel_.tasks < 1 || kernel_.tasks > max)
      fail("is shared by " + std::to_string(kernel_.tasks) + " tasks, of " + count.to_string() +
           " iterations");
    check_phases();
  }

  void check_phases() {
    const Symbol* phase = kernel_.phase.get();
    if (!phase && kernel_.phases == 1) return;
    if (!phase || kernel_.phases < 2 || phase->lower != 0 || phase->upper != kernel_.phases - 1)
      return fail("has " + std::to_string(kernel_.phases) +
                  " phases, which its symbol of phases does not fit");
    if (kernel_.max_iterations() == 1 || !kernel_.parallel_count.is_constant())
      fail("has phases, but no parallel loop of known iterations");
  }

  bool is_in_scope(const Symbol& symbol) const {
    return std::find(symbols_.begin(), symbols_.end(), &symbol) != symbols_.end();
  }

  void check_buffers() {
    for (size_t i = 0; i < kernel_.parameters.size() + kernel_.scratch.size(); ++i) {
      const BufferParameter& buffer = kernel_.buffer(static_cast<int>(i));
      if (buffer.element == Scalar::I1 || buffer.element == Scalar::Index) {
        fail("buffer '" + buffer.name + "' has elements of type " + std::string(scalar_name(buffer.element)) +
             ", which does not lie in memory");
      }
      if (buffer.size < 0 || buffer.size > INT64_MAX / 16) // 16: bytes of the largest scalar, i128
        fail("buffer '" + buffer.name + "' has a bad size");
      if (buffer.alignment < 1 || (buffer.alignment & (buffer.alignment - 1)) || buffer.alignment > 4096)
        fail("buffer '" + buffer.name + "' has alignment " + std::to_string(buffer.alignment) +
             ", which is no power of two up to 4096");
    }
  }

  bool is_value(Register value) const {
    return value.id >= 0 && static_cast<size_t>(value.id) < kernel_.register_types.size();
  }
  void define(Register value, const std::string& what) {
    if (!is_value(value)) return fail(what + " defines a value that has no type");
    size_t id = static_cast<size_t>(value.id);
    MachineType type = kernel_.register_types[id];
    if (type.lanes < 1 || type.lanes > 4096) fail(what + " has " + std::to_string(type.lanes) + " lanes");
    if (defined_[id]) fail("%" + std::to_string(value.id) + " is defined twice");
    defined_[id] = visible_[id] = true;
    scope_.push_back(value);
  }

  // A block that is the body of `op`; `yields` are the types it must end with (`op` null: no yield at all).
  void check_block(const Block& block, const Op* op, const std::vector<MachineType>& yields) {
    size_t scope_start = scope_.size(), symbol_start = symbols_.size();
    if (++depth_ > 200) fail("is nested more than 200 levels deep");
    for (Register argument : block.arguments) define(argument, "a block");
    if (op && (op->kind == OpKind::For || op->kind == OpKind::Threads)) symbols_.push_back(op->symbol.get());
    for (size_t i = 0; message_.empty() && i < block.ops.size(); ++i) {
      const Op& inner = *block.ops[i];
      bool last = i + 1 == block.ops.size();
      if (inner.kind == OpKind::Yield && (!op || !last))
        fail(inner, "only a block inside an op ends in a yield");
      if (op && last && inner.kind != OpKind::Yield) fail(*op, "has a block that does not end in a yield");
      check_op(inner);
      if (inner.kind == OpKind::Yield && message_.empty()) check_types(inner, types(inner.operands), yields);
    }
    if (op && block.ops.empty()) fail(*op, "has an empty block");
    while (scope_.size() > scope_start) {
      visible_[static_cast<size_t>(scope_.back().id)] = false;
      scope_.pop_back();
    }
    symbols_.resize(symbol_start);
    --depth_;
  }

  std::vector<MachineType> types(const std::vector<Register>& values) const {
    std::vector<MachineType> result;
    for (Register value : values) result.push_back(kernel_.type_of(value));
    return result;
  }
  void check_types(const Op& op, const std::vector<MachineType>& got,
                   const std::vector<MachineType>& wanted) {
    if (got == wanted) return;
    auto list = [](const std::vector<MachineType>& types) {
      std::string text;
      for (MachineType type : types) text += (text.empty() ? "" : ", ") + type.to_string();
      return "(" + text + ")";
    };
    fail(op, "has types " + list(got) + ", wants " + list(wanted));
  }

  void check_op(const Op& op) {
    for (Register operand : op.operands) {
      if (!is_value(operand) || !visible_[static_cast<size_t>(operand.id)]) {
        return fail(op, "uses %" + std::to_string(operand.id) + ", which is not defined here");
      }
    }
    const OpKindInfo& info = op_kind_info(op.kind);
    if (info.operands >= 0 && op.operands.size() != static_cast<size_t>(info.operands)) {
      return fail(op, "has " + std::to_string(op.operands.size()) + " operands, wants " +
                          std::to_string(info.operands));
    }
    for (Register result : op.results) {
      if (!is_value(result)) return fail(op, "has a result without a type");
    }
    if (op.blocks.size() != blocks_of(op.kind)) return fail(op, "has the wrong number of blocks");
    bool may_have_none = info.group == OpGroup::Memory || info.group == OpGroup::Control ||
                         info.group == OpGroup::Tile || info.group == OpGroup::Warp;
    if (!may_have_none && op.results.size() != 1) {
      return fail(op, "has no single result");
    }
    switch (info.group) {
    case OpGroup::Leaf: check_leaf(op); break;
    case OpGroup::Float: check_uniform(op, /*floats=*/true); break;
    case OpGroup::Integer: check_uniform(op, /*floats=*/false); break;
    case OpGroup::Compare: check_compare(op); break;
    case OpGroup::Cast: check_cast(op); break;
    case OpGroup::Vector: check_vector(op); break;
    case OpGroup::Tile: check_tile(op); break;
    case OpGroup::Memory: check_memory(op); break;
    case OpGroup::Warp: check_warp(op); break;
    case OpGroup::Control: check_control(op); break;
    }
    for (Register result : op.results) define(result, "an op");
  }

  MachineType operand(const Op& op, size_t i) const { return kernel_.type_of(op.operands[i]); }
  MachineType result(const Op& op) const { return kernel_.type_of(op.results[0]); }

  void check_expression(const Op& op, const IntExpr& expression) {
    for (const SymbolRef& symbol : expression.symbols()) {
      if (!is_in_scope(*symbol)) fail(op, "symbol '" + symbol->name + "' is not in scope");
    }
  }

  void check_leaf(const Op& op) {
    if (op.kind == OpKind::IndexValue) {
      want(result(op) == MachineType{Scalar::Index, 1}, op, "must give a scalar index");
      return check_expression(op, op.index);
    }
    bool floats = is_float(result(op).scalar);
    size_t count = floats ? op.numbers.size() : op.integers.size();
    want((floats ? op.integers.size() : op.numbers.size()) == 0, op, "has numbers of the other kind");
    want(count == 1 || count == static_cast<size_t>(result(op).lanes), op,
         "must have one number, or one for each lane");
  }

  void check_uniform(const Op& op, bool floats) {
    MachineType type = result(op);
    want(is_float(type.scalar) == floats, op, floats ? "wants floats" : "wants integers");
    check_types(op, types(op.operands), std::vector<MachineType>(op.operands.size(), type));
  }

  void check_compare(const Op& op) {
    if (op.kind == OpKind::Select) {
      MachineType condition = operand(op, 0);
      want(condition.scalar == Scalar::I1, op, "condition must be i1");
      want(condition.lanes == 1 || condition.lanes == result(op).lanes, op, "condition has the wrong lanes");
      want(operand(op, 1) == result(op) && operand(op, 2) == result(op), op,
           "both values must have its type");
      return;
    }
    MachineType type = operand(op, 0);
    want(operand(op, 1) == type, op, "compares different types");
    want(is_float(type.scalar) == (op.kind == OpKind::FCmp), op, "compares the wrong kind of type");
    want(result(op) == type.with_scalar(Scalar::I1), op, "must give i1 of as many lanes");
  }

  void check_cast(const Op& op) {
    MachineType from = operand(op, 0), to = result(op);
    if (op.kind == OpKind::Bitcast) {
      want(from.lanes * scalar_bits(from.scalar) == to.lanes * scalar_bits(to.scalar) &&
               from.scalar != Scalar::Index && to.scalar != Scalar::Index,
           op, "operand and result must have the same number of bits");
      return;
    }
    want(from.lanes == to.lanes, op, "must keep the lanes");
    bool float_from = is_float(from.scalar), float_to = is_float(to.scalar);
    int from_bits = scalar_bits(from.scalar), to_bits = scalar_bits(to.scalar);
    bool integers = !float_from && !float_to && from.scalar != Scalar::Index && to.scalar != Scalar::Index;
    switch (op.kind) {
    case OpKind::FExt: want(float_from && float_to && to_bits > from_bits, op, "must widen a float"); break;
    case OpKind::FTruncTo:
      want(float_from && float_to && to_bits < from_bits, op, "must narrow a float");
      break;
    case OpKind::SIToF:
    case OpKind::UIToF:
      want(!float_from && float_to && from.scalar != Scalar::Index, op, "must turn integers into floats");
      break;
    case OpKind::FToSI:
    case OpKind::FToUI:
    case OpKind::FToSISat:
    case OpKind::FToUISat:
      want(float_from && !float_to && to.scalar != Scalar::Index && to.scalar != Scalar::I1, op,
           "must turn floats into integers");
      break;
    case OpKind::Narrow: check_narrow(op, from.scalar, to.scalar); break;
    case OpKind::SExt:
    case OpKind::ZExt: want(integers && to_bits > from_bits, op, "must widen an integer"); break;
    case OpKind::Trunc: want(integers && to_bits < from_bits, op, "must narrow an integer"); break;
    case OpKind::IndexCast:
      want(!float_from && !float_to && (from.scalar == Scalar::Index) != (to.scalar == Scalar::Index) &&
               from.scalar != Scalar::I1 && to.scalar != Scalar::I1,
           op, "must cast between index and an integer");
      break;
    default: FIRN_UNREACHABLE("op is no cast");
    }
  }

  void check_narrow(const Op& op, Scalar from, Scalar to) {
    constexpr int64_t kWholeFloats = 1 << 24; // f32 holds every integer up to it
    want(from == Scalar::F32 && (to == Scalar::I8 || to == Scalar::I16 || to == Scalar::I32), op,
         "must turn f32 into i8, i16 or i32");
    int64_t half = int64_t{1} << (scalar_bits(to) - 1);
    bool fits = op.low < 0 ? op.low >= -half && op.high < half : op.high < 2 * half;
    want(op.low <= op.high && fits, op, "must have bounds that its type holds");
    want(op.low - op.zero >= -kWholeFloats && op.high - op.zero <= kWholeFloats, op,
         "must have bounds that f32 holds without the zero point");
  }

  void check_lanes(const Op& op, int limit) {
    for (int64_t lane : op.integers) want(lane >= 0 && lane < limit, op, "names a lane that does not exist");
  }

  void check_vector(const Op& op) {
    MachineType first = operand(op, 0), to = result(op);
    switch (op.kind) {
    case OpKind::Splat:
      want(first.lanes == 1 && first.scalar == to.scalar, op, "wants a scalar of its type");
      break;
    case OpKind::Extract:
      want(op.integers.size() == 1, op, "needs one lane");
      check_lanes(op, first.lanes);
      want(to == first.with_lanes(1), op, "must give one lane's type");
      break;
    case OpKind::Insert:
      want(op.integers.size() == 1, op, "needs one lane");
      check_lanes(op, first.lanes);
      want(to == first && operand(op, 1) == first.with_lanes(1), op, "wants a vector and one lane's type");
      break;
    case OpKind::Shuffle:
      check_lanes(op, 2 * first.lanes);
      want(first == operand(op, 1), op, "wants two vectors of one type");
      want(to == first.with_lanes(static_cast<int>(op.integers.size())), op,
           "must have a lane per lane number");
      break;
    case OpKind::LookUp:
      want(first.lanes > 1 && std::has_single_bit(static_cast<unsigned>(first.lanes)), op,
           "wants a table of a power of two");
      want(operand(op, 1) == to.with_scalar(Scalar::I32) && first.scalar == to.scalar, op,
           "wants a number of 32 bits per lane");
      break;
    case OpKind::MacU8S8:
    case OpKind::MacS8S8:
    case OpKind::MacU8U8: {
      want(first == to && first.scalar == Scalar::I32, op, "accumulates in the wrong type");
      MachineType bytes = first.with_scalar(Scalar::I8);
      want(operand(op, 1) == bytes && operand(op, 2) == bytes, op, "multiplies the wrong types");
      break;
    }
    case OpKind::DotU8S8:
    case OpKind::DotU8S8Narrow:
    case OpKind::DotS8S8:
    case OpKind::DotU8U8:
    case OpKind::DotS16:
    case OpKind::DotBF16: {
      bool is_float = op.kind == OpKind::DotBF16, bytes = !is_float && op.kind != OpKind::DotS16;
      bool is_row = bytes && first.lanes == 1 && operand(op, 1).lanes == kDotRow;
      MachineType narrow{is_float ? Scalar::BF16
                         : bytes  ? Scalar::I8
                                  : Scalar::I16,
                         is_row  ? kDotRow
                         : bytes ? 4 * first.lanes
                                 : 2 * first.lanes};
      want(first == to && first.scalar == (is_float ? Scalar::F32 : Scalar::I32), op,
           "accumulates in the wrong type");
      want(operand(op, 1) == narrow && operand(op, 2) == narrow, op, "multiplies the wrong types");
      break;
    }
    default: // reductions
      want(is_float(first.scalar) == (op.kind != OpKind::ReduceIAdd), op, "reduces the wrong kind of type");
      want(to == first.with_lanes(1), op, "must give a scalar of the same type");
    }
  }

  void check_mask(const Op& op, size_t position, int lanes) {
    if (op.operands.size() > position) {
      want(operand(op, position) == MachineType{Scalar::I1, lanes}, op, "mask must be i1 of as many lanes");
    }
  }

  void check_tile(const Op& op) {
    if (std::string wrong = check_tile_op(kernel_, op); !wrong.empty()) fail(op, wrong);
  }

  void check_warp(const Op& op) {
    bool moves = op.kind == OpKind::ShuffleXor || op.kind == OpKind::ShuffleDown;
    int64_t min = op.kind == OpKind::CopyWait ? 0 : 1;
    if (op.kind != OpKind::CopyCommit)
      want(op.integers.size() == 1 && op.integers[0] >= min && op.integers[0] < kWarpThreads, op,
           "needs a number below that of a warp's threads");
    if (op.results.size() != moves) return fail(op, "has the wrong number of results");
    if (!moves) return;
    want(result(op) == operand(op, 0) && result(op).spread, op, "moves a value for each thread");
    want(result(op).scalar != Scalar::I1 && result(op).scalar != Scalar::Index, op,
         "cannot move i1 or index");
  }

  void check_copy_async(const Op& op) {
    size_t buffers = kernel_.parameters.size() + kernel_.scratch.size();
    if (op.buffers.size() != 1 || op.buffers[0] < 0 || static_cast<size_t>(op.buffers[0]) >= buffers)
      return fail(op, "reads a buffer that does not exist");
    check_expression(op, op.source);
    want(op.results.empty() && op.operands.size() <= 1, op, "has the wrong number of operands or results");
    if (!op.operands.empty()) want(operand(op, 0) == MachineType{Scalar::I1, 1}, op, "condition must be i1");
    bool is_piece =
        op.integers.size() == 1 && (op.integers[0] == 4 || op.integers[0] == 8 || op.integers[0] == 16);
    want(is_piece, op, "copies 4, 8 or 16 bytes");
    const BufferParameter &to = kernel_.buffer(op.buffer), &from = kernel_.buffer(op.buffers[0]);
    const bool is_global = static_cast<size_t>(op.buffers[0]) < kernel_.parameters.size();
    want(to.shared && is_global, op, "copies from global memory into memory that threads share");
    if (!to.written) fail(op, "writes buffer '" + to.name + "', which is not marked written");
    want(to.element == from.element, op, "copies elements of another type");
    if (!message_.empty()) return;
    const int64_t elements = op.integers[0] / scalar_bytes(to.element);
    want(elements > 0, op, "copies parts of elements");
    check_bounds(op, op.index, to, elements);
    if (op.operands.empty()) check_bounds(op, op.source, from, elements);
  }

  // Refuses only what is certainly wrong: bounds of expressions are not tight.
  void check_bounds(const Op& op, const IntExpr& index, const BufferParameter& buffer, int64_t elements) {
    if (index.upper_bound() >= 0 && index.lower_bound() <= buffer.size - elements) return;
    fail(op, "accesses " + std::to_string(elements) + " elements at " + index.to_string() + " of buffer '" +
                 buffer.name + "', which has " + std::to_string(buffer.size));
  }

  void check_memory(const Op& op) {
    size_t buffers = kernel_.parameters.size() + kernel_.scratch.size();
    if (op.buffer < 0 || static_cast<size_t>(op.buffer) >= buffers) return fail(op, "buffer does not exist");
    check_expression(op, op.index);
    if (!message_.empty() || op.kind == OpKind::Prefetch) return;
    want(!op.streaming, op, "is streaming, which only prefetches may be");
    if (op.kind == OpKind::CopyAsync) return check_copy_async(op);
    if (op.kind == OpKind::TileLoad || op.kind == OpKind::TileStore) return check_tile(op);
    const BufferParameter& buffer = kernel_.buffer(op.buffer);
    bool reads = op.kind == OpKind::Load || op.kind == OpKind::Gather;
    bool offsets = op.kind == OpKind::Gather || op.kind == OpKind::Scatter;
    // A value to write and offsets are always there; a mask, and with it a load's pass-through, may follow.
    size_t fixed = (reads ? 0 : 1) + (offsets ? 1 : 0), max = fixed + 1 + (op.kind == OpKind::Load);
    bool fits = op.operands.size() >= fixed && op.operands.size() <= max;
    if (!fits) return fail(op, "has the wrong number of operands");
    if (op.results.size() != (reads ? 1u : 0u)) return fail(op, "has the wrong number of results");
    if (op.alignment < 0 || (op.alignment & (op.alignment - 1))) fail(op, "alignment is no power of two");
    MachineType type = reads ? result(op) : operand(op, 0);
    want(type.scalar != Scalar::I1 && type.scalar != Scalar::Index, op, "i1 and index do not lie in memory");
    if (!reads && !buffer.written)
      fail(op, "writes buffer '" + buffer.name + "', which is not marked written");
    check_mask(op, fixed, type.lanes);
    if (op.kind == OpKind::Load && op.operands.size() == 2)
      want(operand(op, 1) == type, op, "pass-through has another type");
    if (offsets) {
      MachineType offset = operand(op, fixed - 1);
      want(offset.lanes == type.lanes && (offset.scalar == Scalar::I32 || offset.scalar == Scalar::I64 ||
                                          offset.scalar == Scalar::Index),
           op, "offsets must be i32, i64 or index, one per lane");
      return;
    }
    // A mask may leave nothing.
    int64_t bytes = static_cast<int64_t>(type.lanes) * scalar_bytes(type.scalar);
    int64_t elements = (bytes + scalar_bytes(buffer.element) - 1) / scalar_bytes(buffer.element);
    bool masked = op.operands.size() > fixed;
    if (!masked) check_bounds(op, op.index, buffer, elements);
  }

  void check_control(const Op& op) {
    switch (op.kind) {
    case OpKind::Symbolic: {
      MachineType type = operand(op, 0);
      want(type.lanes == 1 && type.scalar == Scalar::Index, op, "wants a scalar index");
      want(op.symbol && op.results.empty(), op, "must define a symbol and no value");
      if (op.symbol) symbols_.push_back(op.symbol.get());
      return;
    }
    case OpKind::For: return check_for(op);
    case OpKind::While: return check_while(op);
    case OpKind::Threads: return check_threads(op);
    case OpKind::If:
      want(operand(op, 0) == MachineType{Scalar::I1, 1}, op, "condition must be a scalar i1");
      for (const Block& block : op.blocks) {
        want(block.arguments.empty(), op, "blocks have no arguments");
        check_block(block, &op, types(op.results));
      }
      return;
    case OpKind::CallRuntime:
      want(op.callee.starts_with("firn_rt2_") || op.callee.starts_with(kCustomCallee), op,
           "callee must be a runtime function, or one of the program");
      if (op.callee.starts_with(kCustomCallee))
        want(op.results.size() == 1 && op.buffers.size() >= 2 && !op.operands.empty(), op,
             "a call of the program's function wants info, workspace and its size");
      want(op.results.size() <= 1, op, "has more than one result");
      for (int buffer : op.buffers) {
        want(buffer >= 0 && static_cast<size_t>(buffer) < kernel_.parameters.size() + kernel_.scratch.size(),
             op, "buffer does not exist");
      }
      for (MachineType type : types(op.operands)) want(type.lanes == 1, op, "passes scalars only");
      return;
    default: want(op.results.empty(), op, "has no results");
    }
  }

  std::vector<MachineType> argument_types(const Op& op, const Block& block) {
    for (Register argument : block.arguments) {
      if (!is_value(argument)) {
        fail(op, "has a block argument without a type");
        return {};
      }
    }
    return types(block.arguments);
  }

  void check_for(const Op& op) {
    if (!op.symbol) return fail(op, "has no induction variable");
    want(op.step > 0, op, "step must be positive");
    want(op.unroll >= 1 && op.unroll <= 1024, op, "unroll must lie in 1..1024");
    check_expression(op, op.lower);
    check_expression(op, op.upper);
    std::vector<MachineType> carried = types(op.operands);
    check_types(op, types(op.results), carried);
    check_types(op, argument_types(op, op.blocks[0]), carried);
    if (message_.empty()) check_block(op.blocks[0], &op, carried);
  }

  // The block takes a thread's own values, and yields those that are its part of the results.
  void check_threads(const Op& op) {
    if (!op.symbol) return fail(op, "has no number of the thread");
    auto own = [&](const std::vector<MachineType>& all) {
      std::vector<MachineType> types = all;
      for (MachineType& type : types) {
        want(type.spread, op, "takes and gives a value for each thread");
        type.spread = false;
      }
      return types;
    };
    check_types(op, argument_types(op, op.blocks[0]), own(types(op.operands)));
    if (message_.empty()) check_block(op.blocks[0], &op, own(types(op.results)));
  }

  // Block 0 takes what is carried, and yields whether to go on and what block 1 takes; block 1 yields what is
  // carried. The results are what block 0 hands on last.
  void check_while(const Op& op) {
    std::vector<MachineType> carried = types(op.operands), test = {MachineType{Scalar::I1, 1}};
    check_types(op, argument_types(op, op.blocks[0]), carried);
    std::vector<MachineType> passed = argument_types(op, op.blocks[1]);
    check_types(op, types(op.results), passed);
    test.insert(test.end(), passed.begin(), passed.end());
    if (message_.empty()) check_block(op.blocks[0], &op, test);
    if (message_.empty()) check_block(op.blocks[1], &op, carried);
  }

  const Kernel& kernel_;
  std::vector<bool> defined_, visible_;
  std::vector<Register> scope_;
  std::vector<const Symbol*> symbols_;
  int depth_ = 0;
  std::string message_;
};

} // namespace

Result verify(const Kernel& kernel) {
  Result result = KernelVerifier(kernel).run();
  if (result) result = verify_threads(kernel);
  return result ? verify_in_place(kernel) : result;
}

} // namespace firn::kernel
