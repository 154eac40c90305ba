// From a dot, a convolution or a contraction fusion to kernels: binds operands and epilogue, packs the vector operand
// at compile time or by a kernel of its own, and emits the tiles.
#include "compiler/lower/winograd.h"

namespace firn::lower {
namespace {

using kernel::Builder;

// The contraction of an instruction, and where its operands come from outside a fusion.
struct Root {
  const Instruction* contraction = nullptr;
  Value operands[2];
};

std::optional<Root> find_root(const Instruction& instruction) {
  auto is_contraction = [](const Instruction& i) { return i.is(Opcode::Dot) || i.is(Opcode::Convolution); };
  if (is_contraction(instruction)) return Root{&instruction, {instruction.operand(0), instruction.operand(1)}};
  if (!instruction.is(Opcode::Fusion)) return std::nullopt;
  const Region& region = instruction.region();
  Root root;
  for (const auto& inner : region.instructions())
    if (is_contraction(*inner)) {
      if (root.contraction) return std::nullopt;
      root.contraction = inner.get();
    }
  if (!root.contraction || region.results().size() != 1) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    const Instruction* parameter = root.contraction->operand(i).def;
    for (size_t p = 0; p < region.parameters().size(); ++p)
      if (region.parameters()[p] == parameter) root.operands[i] = instruction.operand(static_cast<int>(p));
    if (!root.operands[i]) return std::nullopt;  // computed inside the fusion
  }
  if (region.results()[0].type().dims != root.contraction->type().dims) return std::nullopt;
  return root;
}

bool is_constant(Value value) { return value.def->is(Opcode::Constant) && !value.def->literal()->is_opaque(); }

class ContractionLowering {
public:
  ContractionLowering(LoweringContext& context, const Instruction& instruction, const Root& root)
      : context_(context), instruction_(instruction), root_(root), binding_(std::make_shared<ContractionBinding>()) {
    binding_->result_type = instruction.type();
    binding_->sum_dtype = root.contraction->type().dtype;
  }

  bool run() {
    bool is_dot = root_.contraction->is(Opcode::Dot);
    auto prepared = is_dot ? prepare_dot(*root_.contraction, is_constant(root_.operands[0]), is_constant(root_.operands[1]),
                                         binding_, context_.target())
                           : prepare_convolution(*root_.contraction, binding_, context_.target());
    if (!prepared || !epilogue_is_covered()) return false;
    if (!is_dot && run_winograd(*prepared)) return true;
    Value vector = root_.operands[prepared->swapped ? 0 : 1], scalar = root_.operands[prepared->swapped ? 1 : 0];
    Place packed = prepared->vector_direct ? Place{} : pack_vector_operand(*prepared, vector);

    KernelMaker maker(context_, instruction_, is_dot ? "dot" : "convolution");
    binding_->scalar = maker.read(scalar);
    binding_->vector = prepared->vector_direct
                           ? maker.read(vector)
                           : maker.parameter(packed, prepared->packed.element, prepared->packed.elements(), false, "packed");
    if (instruction_.is(Opcode::Fusion)) bind_epilogue(maker);
    binding_->result = maker.write(result_of(instruction_));
    for (int buffer : in_place_) maker.allow_in_place(binding_->result, buffer);
    maker.kernel().algorithm = prepared->algorithm;
    maker.set_flops(prepared->flops);
    emit_contraction(maker.builder(), prepared->spec, prepared->tiling);
    maker.finish();
    return true;
  }

private:
  // By Winograd's algorithm, if that is allowed and faster than `direct`.
  bool run_winograd(const PreparedContraction& direct) {
    const Options& options = context_.options();
    if (options.math == Math::Strict || options.optimize_size || !is_constant(root_.operands[1])) return false;
    LiteralRef literal = root_.operands[1].def->literal();
    auto plan = plan_winograd(*root_.contraction, binding_->result_type, *literal, context_.target(), direct.tiling.cycles);
    if (!plan) return false;
    auto fill = [literal, plan = *plan](std::span<std::byte> out) {
      pack_winograd_filters(plan, reinterpret_cast<const float*>(literal->bytes().data()), out);
    };
    Place filters{context_.add_constant(plan->filter_elements() * 4, fill, root_.operands[1].def->location()), 0};
    KernelMaker maker(context_, instruction_, "convolution");
    binding_->scalar = maker.read(root_.operands[0]);
    binding_->vector = maker.parameter(filters, kernel::Scalar::F32, plan->filter_elements(), false, "packed");
    if (instruction_.is(Opcode::Fusion)) bind_epilogue(maker);
    binding_->result = maker.write(result_of(instruction_));
    auto scratch = [&](int64_t elements, const char* name) {
      Place place{context_.add_scratch_buffer(elements * 4, name), 0};
      int number = maker.parameter(place, kernel::Scalar::F32, elements, /*written=*/true, name);
      maker.kernel().parameters[static_cast<size_t>(number)].per_worker = true;
      return number;
    };
    int inputs = scratch(plan->input_scratch(), "inputs"), products = scratch(plan->product_scratch(), "products");
    for (int buffer : in_place_) maker.allow_in_place(binding_->result, buffer);
    maker.kernel().algorithm = plan->name();
    maker.set_flops(direct.flops);
    emit_winograd(maker.builder(), *plan, binding_, inputs, products);
    maker.finish();
    return true;
  }

  // The rest of the fusion must be code per element.
  bool epilogue_is_covered() const {
    if (!instruction_.is(Opcode::Fusion)) return true;
    for (const auto& inner : instruction_.region().instructions())
      if (inner.get() != root_.contraction && !ElementEmitter::can_emit(*inner)) return false;
    return true;
  }

  Place pack_vector_operand(const PreparedContraction& prepared, Value vector) {
    const PackedOperand& packed = prepared.packed;
    int64_t bytes = packed.elements() * kernel::scalar_bytes(packed.element);
    if (is_constant(vector)) {
      LiteralRef literal = vector.def->literal();
      auto fill = [literal, packed](std::span<std::byte> out) { pack(packed, literal->bytes(), out); };
      return {context_.add_constant(bytes, fill, vector.def->location()), 0};
    }
    Place place{context_.add_scratch_buffer(bytes, "packed"), 0};
    KernelMaker maker(context_, instruction_, "pack");
    int source = maker.read(vector);
    int out = maker.parameter(place, packed.element, packed.elements(), true, "packed");
    emit_pack(maker.builder(), packed, source, out);
    maker.finish();
    return place;
  }

  void bind_epilogue(KernelMaker& maker) {
    auto leaves = std::make_shared<RegionLeaves>(
        maker, instruction_, [this](const Instruction& user) { return &user == root_.contraction; });
    const Region& region = instruction_.region();
    Value root = result_of(*root_.contraction);
    for (const RegionLeaves::Entry& entry : leaves->entries()) allow_in_place(entry);
    binding_->epilogue = [leaves, root, &region](Builder& b, const Index& index, const Lanes& lanes, int valid, kernel::Value sums) {
      ElementEmitter emitter(b, lanes);
      for (const RegionLeaves::Entry& entry : leaves->entries())
        emitter.bind(entry.value, [&b, entry, valid](const Index& at, const Lanes& along) {
          return load_valid_lanes(b, entry.buffer, entry.type, at, along, valid);
        });
      emitter.bind(root, [sums](const Index&, const Lanes&) { return sums; });
      return emitter.emit(region.results()[0], index);
    };
  }

  // A residual of the result's own type may be overwritten, unless the contraction still reads it.
  void allow_in_place(const RegionLeaves::Entry& entry) {
    if (!(entry.type == instruction_.type()) || entry.buffer == binding_->scalar || entry.buffer == binding_->vector) return;
    const Region& region = instruction_.region();
    for (size_t p = 0; p < region.parameters().size(); ++p) {
      if (region.parameters()[p] != entry.value.def) continue;
      int buffer = context_.place_of(instruction_.operand(static_cast<int>(p))).buffer;
      for (Value operand : root_.operands)
        if (!is_constant(operand) && context_.place_of(operand).buffer == buffer) return;
      in_place_.push_back(entry.buffer);
    }
  }

  LoweringContext& context_;
  const Instruction& instruction_;
  Root root_;
  BindingRef binding_;
  std::vector<int> in_place_;
};

// The lanes of a vector from `index[lane_dim]` on: that index becomes a symbol of its own.
Lanes make_lanes(Index& index, int lane_dim, int count) {
  if (count == 1) return {};
  IntExpr first = index[static_cast<size_t>(lane_dim)];
  auto symbol = std::make_shared<Symbol>(Symbol{"lane", first.lower_bound(), first.upper_bound() + count - 1});
  index[static_cast<size_t>(lane_dim)] = IntExpr::symbol(symbol);
  return {symbol, first, count};
}

} // namespace

kernel::Value load_valid_lanes(Builder& b, int buffer, const Type& type, const Index& index, const Lanes& lanes, int valid) {
  if (valid >= lanes.count || !type.layout.blocks.empty()) return load_element(b, buffer, type, index, lanes);
  IntExpr offset = type.offset_of(index);
  auto step = lanes.step(offset);
  if (step && *step == 0) return load_element(b, buffer, type, index, lanes);
  // One element at a time: partial vectors are at the edge of a tensor only.
  kernel::Value vector = b.constant(value_type(type.dtype, lanes.count), 0);
  for (int lane = 0; lane < valid; ++lane) {
    IntExpr at = offset.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
      if (&symbol == lanes.symbol.get()) return lanes.first + lane;
      return std::nullopt;
    });
    vector = b.insert(vector, load_at(b, buffer, type.dtype, at, Lanes{}), lane);
  }
  return vector;
}

void finish_lanes(Builder& b, const ContractionBinding& binding, Index index, int lane_dim, int count, int valid,
                  kernel::Value sums) {
  Lanes lanes = make_lanes(index, lane_dim, count);
  if (kernel::Scalar narrow = memory_scalar(binding.sum_dtype); narrow != kernel::Scalar::F32)
    sums = b.cast(kernel::OpKind::FExt, b.cast(kernel::OpKind::FTruncTo, sums, narrow), kernel::Scalar::F32);
  kernel::Value value = binding.epilogue ? binding.epilogue(b, index, lanes, valid, sums) : sums;
  const Type& type = binding.result_type;
  // Unused lanes of a block may be written; beyond a plain row other elements begin.
  if (valid >= count || !type.layout.blocks.empty()) return store_element(b, binding.result, type, index, lanes, value);
  for (int lane = 0; lane < valid; ++lane) {
    Index at = index;
    at[static_cast<size_t>(lane_dim)] = lanes.first + lane;
    store_element(b, binding.result, type, at, Lanes{}, b.extract(value, lane));
  }
}

bool emit_contraction(LoweringContext& context, const Instruction& instruction) {
  auto root = find_root(instruction);
  return root && ContractionLowering(context, instruction, *root).run();
}

} // namespace firn::lower
