// Builder: appends ops at the end of the current block. Folding lives in builder_fold.cpp.
#include "compiler/kernel/builder.h"

#include <algorithm>
#include <cmath>

namespace firn::kernel {

Builder::Builder(Kernel& kernel) : kernel_(kernel), block_(&kernel.body) {
  definitions_.resize(kernel.register_types.size());
  remember_definitions(kernel.body);
}

void Builder::remember_definitions(const Block& block) {
  for (const auto& op : block.ops) {
    for (Register result : op->results) definitions_[static_cast<size_t>(result.id)] = op.get();
    for (const Block& inner : op->blocks) remember_definitions(inner);
  }
}

const Op* Builder::definition(Register value) const {
  size_t id = static_cast<size_t>(value.id);
  return value && id < definitions_.size() ? definitions_[id] : nullptr;
}

Register Builder::add_value(MachineType type) {
  kernel_.register_types.push_back(type);
  definitions_.resize(kernel_.register_types.size());
  return Register{static_cast<int>(kernel_.register_types.size()) - 1};
}

Op& Builder::append(OpKind kind) {
  block_->ops.push_back(std::make_unique<Op>());
  block_->ops.back()->kind = kind;
  return *block_->ops.back();
}

Register Builder::emit_simple(OpKind kind, std::vector<Register> operands, MachineType result) {
  for (Register operand : operands) {
    FIRN_CHECK(operand.id >= 0 && static_cast<size_t>(operand.id) < kernel_.register_types.size(),
               std::string(op_kind_info(kind).mnemonic) + " has an operand that is no value of this kernel");
  }
  Register value = add_value(result);
  Op& op = append(kind);
  op.operands = std::move(operands);
  op.results = {value};
  definitions_[static_cast<size_t>(value.id)] = &op;
  return value;
}

Register Builder::emit(OpKind kind, std::vector<Register> operands, MachineType result) {
  return emit_simple(kind, std::move(operands), result);
}

std::vector<MachineType> Builder::types_of(const std::vector<Register>& values) const {
  std::vector<MachineType> types;
  for (Register value : values) types.push_back(type(value));
  return types;
}

// Parameters and constants.

int Builder::add_parameter(std::string name, Scalar element, int64_t size, bool written, int alignment) {
  FIRN_CHECK(kernel_.scratch.empty(), "kernel parameter '" + name + "' added after scratch");
  kernel_.parameters.push_back({std::move(name), element, size, written, alignment});
  return static_cast<int>(kernel_.parameters.size()) - 1;
}

int Builder::add_scratch(std::string name, Scalar element, int64_t size) {
  kernel_.scratch.push_back({std::move(name), element, size, /*written=*/true, /*alignment=*/64});
  return static_cast<int>(kernel_.parameters.size() + kernel_.scratch.size()) - 1;
}

Register Builder::constant(MachineType type, double value) {
  if (!is_float(type.scalar)) return constant_int(type, static_cast<int64_t>(value));
  Register result = emit_simple(OpKind::Constant, {}, type);
  Op& op = *block_->ops.back();
  op.numbers = {type.scalar == Scalar::F32 ? static_cast<double>(static_cast<float>(value)) : value};
  return result;
}

Register Builder::constant_int(MachineType type, int64_t value) {
  if (is_float(type.scalar)) return constant(type, static_cast<double>(value));
  return constant_lanes(type, {value});
}

Register Builder::constant_lanes(MachineType type, std::vector<int64_t> values) {
  FIRN_CHECK(!is_float(type.scalar), "lane constants are integers, not " + type.to_string());
  for (int64_t& value : values) {
    int bits = type.scalar == Scalar::I1 ? 1 : 8 * scalar_bytes(type.scalar);
    // Stored sign-extended (i1: 0 or 1), so that equal constants have equal text.
    if (bits == 1)
      value &= 1;
    else if (bits < 64)
      value = static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
  }
  if (std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end())
    values.resize(1);
  FIRN_CHECK(values.size() == 1 || values.size() == static_cast<size_t>(type.lanes),
             "constant has the wrong lanes");
  Register result = emit_simple(OpKind::Constant, {}, type);
  block_->ops.back()->integers = std::move(values);
  return result;
}

Register Builder::index(const IntExpr& expression) {
  if (expression.is_constant()) return constant_int({Scalar::Index, 1}, expression.value());
  Register result = emit_simple(OpKind::IndexValue, {}, {Scalar::Index, 1});
  block_->ops.back()->index = expression;
  return result;
}

// Vectors.

Register Builder::splat(Register scalar, int lanes) {
  FIRN_CHECK(type(scalar).lanes == 1, "splat of a vector");
  if (lanes == 1) return scalar;
  double number;
  int64_t integer;
  MachineType wide = type(scalar).with_lanes(lanes);
  if (is_float(wide.scalar) && constant_value(scalar, number)) return constant(wide, number);
  if (!is_float(wide.scalar) && constant_integer(scalar, integer)) return constant_int(wide, integer);
  return emit_simple(OpKind::Splat, {scalar}, wide);
}

Register Builder::extract(Register vector, int lane) {
  MachineType from = type(vector);
  if (from.lanes == 1) return vector;
  const Op* op = definition(vector);
  if (op && op->kind == OpKind::Splat) return op->operands[0];
  Register result = emit_simple(OpKind::Extract, {vector}, from.with_lanes(1));
  block_->ops.back()->integers = {lane};
  return result;
}

Register Builder::insert(Register vector, Register scalar, int lane) {
  if (type(vector).lanes == 1) return scalar;
  Register result = emit_simple(OpKind::Insert, {vector, scalar}, type(vector));
  block_->ops.back()->integers = {lane};
  return result;
}

Register Builder::shuffle(Register lhs, Register rhs, std::vector<int64_t> lanes) {
  MachineType result_type = type(lhs).with_lanes(static_cast<int>(lanes.size()));
  Register result = emit_simple(OpKind::Shuffle, {lhs, rhs}, result_type);
  block_->ops.back()->integers = std::move(lanes);
  return result;
}

Register Builder::reduce(OpKind kind, Register vector) {
  if (type(vector).lanes == 1) return vector;
  return emit_simple(kind, {vector}, type(vector).with_lanes(1));
}

// Memory.

Op& Builder::emit_memory(OpKind kind, std::vector<Register> operands, int buffer, const IntExpr& index) {
  FIRN_CHECK(buffer >= 0 && static_cast<size_t>(buffer) < kernel_.parameters.size() + kernel_.scratch.size(),
             std::string(op_kind_info(kind).mnemonic) + " of buffer " + std::to_string(buffer) +
                 ", which the kernel does not have");
  Op& op = append(kind);
  op.operands = std::move(operands);
  op.buffer = buffer;
  op.index = index;
  return op;
}

static bool all_ones(const Op* mask) {
  return mask && mask->kind == OpKind::Constant && mask->integers == std::vector<int64_t>{1};
}

Register Builder::load(MachineType type, int buffer, const IntExpr& index, int alignment) {
  Register value = add_value(type);
  Op& op = emit_memory(OpKind::Load, {}, buffer, index);
  op.alignment = alignment;
  op.results = {value};
  definitions_[static_cast<size_t>(value.id)] = &op;
  return value;
}

Register Builder::load_masked(MachineType type, int buffer, const IntExpr& index, Register mask,
                              Register pass_through) {
  if (all_ones(definition(mask))) return load(type, buffer, index);
  std::vector<Register> operands = {mask};
  if (pass_through) operands.push_back(pass_through);
  Register value = add_value(type);
  Op& op = emit_memory(OpKind::Load, std::move(operands), buffer, index);
  op.results = {value};
  definitions_[static_cast<size_t>(value.id)] = &op;
  return value;
}

void Builder::store(Register value, int buffer, const IntExpr& index, int alignment) {
  emit_memory(OpKind::Store, {value}, buffer, index).alignment = alignment;
}

void Builder::store_masked(Register value, int buffer, const IntExpr& index, Register mask) {
  if (all_ones(definition(mask))) return store(value, buffer, index);
  emit_memory(OpKind::Store, {value, mask}, buffer, index);
}

Register Builder::gather(MachineType type, int buffer, const IntExpr& index, Register offsets,
                         Register mask) {
  std::vector<Register> operands = {offsets};
  if (mask && !all_ones(definition(mask))) operands.push_back(mask);
  Register value = add_value(type);
  Op& op = emit_memory(OpKind::Gather, std::move(operands), buffer, index);
  op.results = {value};
  definitions_[static_cast<size_t>(value.id)] = &op;
  return value;
}

void Builder::scatter(Register value, int buffer, const IntExpr& index, Register offsets, Register mask) {
  std::vector<Register> operands = {value, offsets};
  if (mask && !all_ones(definition(mask))) operands.push_back(mask);
  emit_memory(OpKind::Scatter, std::move(operands), buffer, index);
}

void Builder::prefetch(int buffer, const IntExpr& index, bool into_l2) {
  emit_memory(OpKind::Prefetch, {}, buffer, index).streaming = into_l2;
}

Register Builder::lane_mask(int lanes, const IntExpr& count) {
  std::vector<int64_t> numbers(static_cast<size_t>(lanes));
  if (count.is_constant() || count.lower_bound() >= lanes) {
    int64_t on = count.is_constant() ? count.value() : lanes;
    for (int i = 0; i < lanes; ++i) numbers[static_cast<size_t>(i)] = i < on;
    return constant_lanes({Scalar::I1, lanes}, numbers);
  }
  for (int i = 0; i < lanes; ++i) numbers[static_cast<size_t>(i)] = i;
  MachineType wide{Scalar::I32, lanes};
  Register limit = splat(cast(OpKind::IndexCast, index(min(count, IntExpr(lanes))), Scalar::I32), lanes);
  return compare(OpKind::SCmp, Predicate::Lt, constant_lanes(wide, numbers), limit);
}

// Control flow.

SymbolRef Builder::new_symbol(std::string name, int64_t lower, int64_t upper) {
  return std::make_shared<const Symbol>(Symbol{name + "_" + std::to_string(next_symbol_++), lower, upper});
}

void Builder::call_runtime(std::string callee, std::vector<int> buffers, std::vector<Register> operands) {
  Op& op = append(OpKind::CallRuntime);
  op.callee = std::move(callee);
  op.buffers = std::move(buffers);
  op.operands = std::move(operands);
}

Register Builder::call_custom(const std::string& symbol, std::vector<int> buffers,
                              std::vector<Register> operands, int64_t workspace_bytes) {
  operands.push_back(index(workspace_bytes));
  Register result = add_value({Scalar::I32, 1});
  Op& op = append(OpKind::CallRuntime);
  op.results = {result};
  op.callee = std::string(kCustomCallee) + symbol;
  op.buffers = std::move(buffers);
  op.operands = std::move(operands);
  return result;
}

void Builder::fail_if(Register condition, int32_t status) {
  FIRN_CHECK(status_ >= 0, "a kernel without a status word that fails");
  if_then_else(
      condition,
      [&] {
        store(constant_int({Scalar::I32, 1}, status), status_, 0);
        return std::vector<Register>{};
      },
      [] { return std::vector<Register>{}; });
}

IntExpr Builder::symbolic(Register value, int64_t lower, int64_t upper, std::string name) {
  FIRN_CHECK(type(value).lanes == 1 && !is_float(type(value).scalar), "only scalar integers become symbols");
  int64_t number;
  if (constant_integer(value, number)) return number;
  if (const Op* op = definition(value); op && op->kind == OpKind::IndexValue) return op->index;
  if (type(value).scalar != Scalar::Index) value = cast(OpKind::IndexCast, value, Scalar::Index);
  SymbolRef symbol = new_symbol(std::move(name), lower, upper);
  Op& op = append(OpKind::Symbolic);
  op.operands = {value};
  op.symbol = symbol;
  return IntExpr::symbol(symbol);
}

Block Builder::make_block(const std::vector<MachineType>& argument_types,
                          const std::function<std::vector<Register>(const std::vector<Register>&)>& body) {
  Block block;
  for (MachineType type : argument_types) block.arguments.push_back(add_value(type));
  Block* outer = block_;
  block_ = &block;
  std::vector<Register> yielded = body(block.arguments);
  Op& yield = append(OpKind::Yield);
  yield.operands = std::move(yielded);
  block_ = outer;
  return block;
}

void Builder::loop(const IntExpr& lower, const IntExpr& upper, int64_t step,
                   const std::function<void(const IntExpr& iv)>& body, int64_t unroll) {
  loop_carried(
      lower, upper, step, {},
      [&](const IntExpr& iv, const std::vector<Register>&) {
        body(iv);
        return std::vector<Register>();
      },
      unroll);
}

std::vector<Register> Builder::loop_carried(
    const IntExpr& lower, const IntExpr& upper, int64_t step, std::vector<Register> initial,
    const std::function<std::vector<Register>(const IntExpr& iv, const std::vector<Register>& carried)>& body,
    int64_t unroll) {
  FIRN_CHECK(step > 0, "loop step must be positive");
  IntExpr extent = upper - lower;
  if (extent.upper_bound() <= 0) return initial;
  if (extent.lower_bound() >= 1 && extent.upper_bound() <= step) return body(lower, initial);

  int64_t last = upper.upper_bound() == INT64_MAX ? INT64_MAX : upper.upper_bound() - 1;
  if (lower.is_constant() && last != INT64_MAX) last = lower.value() + (last - lower.value()) / step * step;
  SymbolRef symbol = new_symbol("i", lower.lower_bound(), last);
  Block block = make_block(types_of(initial), [&](const std::vector<Register>& carried) {
    std::vector<Register> next = body(IntExpr::symbol(symbol), carried);
    FIRN_CHECK(types_of(next) == types_of(initial),
               "loop body yields other types than its carried values have");
    return next;
  });
  std::vector<Register> results;
  for (Register value : initial) results.push_back(add_value(type(value)));
  Op& op = append(OpKind::For);
  op.symbol = symbol;
  op.lower = lower;
  op.upper = upper;
  op.step = step;
  op.unroll = unroll;
  op.operands = std::move(initial);
  op.results = results;
  op.blocks.push_back(std::move(block));
  return results;
}

std::vector<Register> Builder::if_then_else(Register condition,
                                            const std::function<std::vector<Register>()>& then_body,
                                            const std::function<std::vector<Register>()>& else_body) {
  FIRN_CHECK((type(condition) == MachineType{Scalar::I1, 1}),
             "an if needs a scalar i1, not " + type(condition).to_string());
  int64_t known;
  if (constant_integer(condition, known)) return known ? then_body() : else_body();
  std::vector<MachineType> types;
  Block then_block = make_block({}, [&](const std::vector<Register>&) {
    std::vector<Register> values = then_body();
    types = types_of(values);
    return values;
  });
  Block else_block = make_block({}, [&](const std::vector<Register>&) {
    std::vector<Register> values = else_body();
    FIRN_CHECK(types_of(values) == types, "the branches of an if yield different types");
    return values;
  });
  std::vector<Register> results;
  for (MachineType type : types) results.push_back(add_value(type));
  Op& op = append(OpKind::If);
  op.operands = {condition};
  op.results = results;
  op.blocks.push_back(std::move(then_block));
  op.blocks.push_back(std::move(else_block));
  return results;
}

std::vector<Register>
Builder::while_loop(std::vector<Register> initial,
                    const std::function<Register(const std::vector<Register>&)>& condition,
                    const std::function<std::vector<Register>(const std::vector<Register>&)>& body) {
  std::vector<MachineType> types = types_of(initial);
  Block test = make_block(types, [&](const std::vector<Register>& carried) {
    std::vector<Register> yielded = {condition(carried)};
    FIRN_CHECK((type(yielded[0]) == MachineType{Scalar::I1, 1}), "a while condition must be a scalar i1");
    yielded.insert(yielded.end(), carried.begin(), carried.end());
    return yielded;
  });
  Block repeat = make_block(types, [&](const std::vector<Register>& carried) {
    std::vector<Register> next = body(carried);
    FIRN_CHECK(types_of(next) == types, "while body yields other types than its carried values have");
    return next;
  });
  std::vector<Register> results;
  for (MachineType type : types) results.push_back(add_value(type));
  Op& op = append(OpKind::While);
  op.operands = std::move(initial);
  op.results = results;
  op.blocks.push_back(std::move(test));
  op.blocks.push_back(std::move(repeat));
  return results;
}

IntExpr Builder::set_parallel(const IntExpr& count, std::string name) {
  FIRN_CHECK(!kernel_.parallel, "a kernel has one parallel loop");
  FIRN_CHECK(count.upper_bound() >= 1, "a parallel loop needs at least one iteration");
  // A product of extents that vary does not show that it is never negative.
  kernel_.parallel_count = count.lower_bound() < 0 ? max(count, 0) : count;
  if (count == IntExpr(1)) return 0;
  kernel_.parallel = std::make_shared<const Symbol>(Symbol{std::move(name), 0, count.upper_bound() - 1});
  return IntExpr::symbol(kernel_.parallel);
}

IntExpr Builder::set_phases(int64_t count) {
  FIRN_CHECK(kernel_.parallel && !kernel_.phase && count >= 1, "phases are those of a parallel loop");
  if (count == 1) return 0;
  kernel_.phases = count;
  kernel_.phase = std::make_shared<const Symbol>(Symbol{"phase", 0, count - 1});
  return IntExpr::symbol(kernel_.phase);
}

// Kernels of threads.

int Builder::add_shared(std::string name, Scalar element, int64_t size, int alignment) {
  int number = add_scratch(std::move(name), element, size);
  kernel_.scratch.back().shared = true;
  kernel_.scratch.back().alignment = alignment;
  return number;
}

void Builder::set_threads(int count) {
  kernel_.threads = count;
}

std::vector<Register> Builder::threads(
    const std::vector<Register>& spread,
    const std::function<std::vector<Register>(const IntExpr& thread, const std::vector<Register>& own)>&
        body) {
  SymbolRef symbol = new_symbol("t", 0, kernel_.threads - 1);
  std::vector<MachineType> own;
  for (MachineType type : types_of(spread)) own.push_back(type.with_spread(false));
  std::vector<MachineType> yielded;
  Block block = make_block(own, [&](const std::vector<Register>& values) {
    std::vector<Register> results = body(IntExpr::symbol(symbol), values);
    yielded = types_of(results);
    return results;
  });
  std::vector<Register> results;
  for (MachineType type : yielded) results.push_back(add_value(type.with_spread(true)));
  Op& op = append(OpKind::Threads);
  op.symbol = symbol;
  op.operands = spread;
  op.results = results;
  op.blocks.push_back(std::move(block));
  return results;
}

Register Builder::shuffle_xor(Register spread, int mask) {
  Register result = emit_simple(OpKind::ShuffleXor, {spread}, type(spread));
  block_->ops.back()->integers = {mask};
  return result;
}

Register Builder::shuffle_down(Register spread, int distance) {
  Register result = emit_simple(OpKind::ShuffleDown, {spread}, type(spread));
  block_->ops.back()->integers = {distance};
  return result;
}

void Builder::copy_async(int to, const IntExpr& index, int from, const IntExpr& source, int bytes,
                         Register condition) {
  std::vector<Register> operands;
  if (condition) operands.push_back(condition);
  Op& op = emit_memory(OpKind::CopyAsync, std::move(operands), to, index);
  op.buffers = {from};
  op.source = source;
  op.integers = {bytes};
}

void Builder::copy_commit() {
  append(OpKind::CopyCommit);
}

void Builder::copy_wait(int groups_in_flight) {
  append(OpKind::CopyWait).integers = {groups_in_flight};
}

} // namespace firn::kernel
