// From a dot, a convolution or a contraction fusion to kernels: binds operands, packs the vector operand at
// compile time or by a kernel of its own, and emits the tiles.
#include "compiler/lower/contraction_fusion.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/winograd.h"
#include "compiler/lower/winograd_choices.h"

namespace firn::lower {

std::optional<ContractionRoot> find_contraction_root(const LoweringContext& context,
                                                     const Instruction& instruction) {
  std::optional<plan::KernelRoot> found = plan::find_contraction(instruction);
  if (!found) return std::nullopt;
  ContractionRoot root{found->instruction, {found->operands[0], found->operands[1]}};
  for (Value& operand : root.operands) {
    auto [origin, offset] = context.root_of(operand);
    bool same = offset == 0 && origin.type() == operand.type();
    if (same && origin.def->is(Opcode::Constant)) operand = origin;
  }
  return root;
}

void ContractionRoot::compute_phases(int lanes) {
  phases = PhaseConvolution::create(*contraction, operands[1], lanes);
  if (phases) operands[1] = phases->filter();
}

bool is_packable_constant(Value value) {
  return value.def->is(Opcode::Constant) && !value.def->literal()->is_opaque();
}

Place pack_operand(LoweringContext& context, const Instruction& instruction, const PackedOperand& packed,
                   Value operand) {
  int64_t bytes = packed.elements() * kernel::scalar_bytes(packed.element);
  if (is_packable_constant(operand)) {
    LiteralRef literal = operand.def->literal();
    auto fill = [literal, packed](std::span<std::byte> out) { pack(packed, literal->bytes(), out); };
    return {context.add_constant(bytes, fill, operand.def->location()), 0};
  }
  Place place{context.add_scratch_buffer(bytes, "packed"), 0};
  KernelMaker maker(context, instruction, "pack");
  int source = maker.read(operand);
  int out = maker.parameter(place, packed.element, packed.elements(), true, "packed");
  emit_pack(maker.builder(), packed, source, out);
  maker.finish();
  return place;
}

namespace {

// A convolution by Winograd's algorithm, if that was chosen for it.
bool emit_winograd_convolution(LoweringContext& context, const Instruction& instruction,
                               const ContractionRoot& root, const BindingRef& binding,
                               const PreparedContraction& direct, plan::Explanation& explanation) {
  const plan::WinogradChoice* choice = context.winograd_choice(instruction);
  if (!choice) return false;
  explanation.candidates.insert(explanation.candidates.end(), choice->considered.begin(),
                                choice->considered.end());
  explanation.left_out = choice->left_out;
  const std::optional<plan::WinogradPlan>& plan = choice->plan;
  if (!plan) return false;
  LiteralRef literal = root.operands[1].def->literal();
  explanation.chosen = plan->schedule();
  explanation.added_bytes = choice->added_bytes;
  auto fill = [literal, plan = *plan](std::span<std::byte> out) {
    plan::pack_winograd_filters(plan, plan::aligned_filters(*literal).data(), out);
  };
  std::optional<kernel::RawForm> raw;
  if (context.options().winograd == Winograd::Init) raw = raw_winograd_filters(*plan, literal);
  Place filters{context.add_constant(plan->filter_elements() * 4, fill, root.operands[1].def->location(),
                                     std::move(raw)),
                0};
  KernelMaker maker(context, instruction, "convolution");
  binding->scalar = maker.read(root.operands[0]);
  binding->vector = maker.parameter(filters, kernel::Scalar::F32, plan->filter_elements(), false, "packed");
  int64_t tiles = plan->tiles_high * plan->tiles_wide;
  if (binding->side_sums && binding->side_sums->suits(tiles)) binding->side_sums->take(maker, tiles);
  bind_result(maker, instruction, root, *binding);
  int inputs = maker.scratch(kernel::Scalar::F32, plan->input_scratch(), "inputs"),
      products = maker.scratch(kernel::Scalar::F32, plan->product_scratch(), "products");
  maker.kernel().algorithm = plan->name();
  maker.set_flops(direct.flops);
  emit_winograd(maker.builder(), *plan, binding, inputs, products);
  maker.finish();
  return true;
}

// Sums between the parts of a reduction.
struct PartialSums {
  Place place;
  int64_t elements = 0;
};

// The norm that takes rows of the result while they are near, if blocks of whole rows leave the kernel one
// after the other and the norm needs nothing else that is computed. Where all rows are one block, the norm's
// own kernel finds them as near.
const Instruction* find_norm(const LoweringContext& context, const Instruction& instruction,
                             const PreparedContraction& prepared) {
  if (prepared.tiling.row_block == 0 || prepared.swapped ||
      instruction.type().dims.back() != Dim(prepared.spec.shape.columns))
    return nullptr;
  for (const Instruction* user : instruction.users()) {
    if (!user->is(Opcode::Composite) || user->parent() != instruction.parent()) continue;
    const std::string& name = user->attributes().word("name");
    bool fits = (name == "layer_norm" || name == "rms_norm") && user->operand(0).def == &instruction &&
                user->type() == instruction.type() && has_rows_of_last_dim(*user);
    for (int i = 1; i < user->num_operands(); ++i) fits = fits && user->operand(i).def->is(Opcode::Constant);
    if (fits && !context.is_lowered(*user)) return user;
  }
  return nullptr;
}

// One kernel: the whole contraction, or a part of its reduction.
void emit_part(LoweringContext& context, const Instruction& instruction, const ContractionRoot& root,
               PreparedContraction& prepared, ContractionBinding& binding, ReductionPart part,
               const PartialSums& sums) {
  Value vector = root.operands[prepared.swapped ? 0 : 1], scalar = root.operands[prepared.swapped ? 1 : 0];
  Place packed =
      prepared.vector_direct ? Place{} : pack_operand(context, instruction, prepared.packed, vector);
  KernelMaker maker(context, instruction, root.contraction->is(Opcode::Dot) ? "dot" : "convolution");
  binding.scalar = maker.read(scalar);
  binding.vector = prepared.vector_direct ? maker.read(vector)
                                          : maker.parameter(packed, prepared.packed.element,
                                                            prepared.packed.elements(), false, "packed");
  if (part.count > 1)
    binding.partial =
        maker.parameter(sums.place, kernel::Scalar::F32, sums.elements, !part.is_last(), "sums");
  if (prepared.tiles > 0) binding.side_sums->take(maker, prepared.tiles);
  Bias bias = part.count == 1 ? bias_of_tiles(instruction) : Bias::InEpilogue;
  const Instruction* norm = part.is_last() ? find_norm(context, instruction, prepared) : nullptr;
  if (norm && instruction.num_uses(0) == 1 && !context.is_placed(result_of(instruction)))
    context.set_view(result_of(instruction), result_of(*norm));
  if (part.is_last()) bind_result(maker, instruction, root, binding, bias);
  maker.kernel().algorithm = prepared.algorithm;
  if (norm) {
    prepared.spec.finish_rows = bind_rows(maker, *norm);
    maker.kernel().algorithm += " " + norm->attributes().word("name");
    context.set_lowered(*norm);
  }
  maker.set_flops(prepared.flops / part.count);
  emit_contraction(maker.builder(), prepared.spec, prepared.tiling);
  maker.finish();
}

} // namespace

const plan::Schedule* find_schedule(const LoweringContext& context, const Instruction& contraction,
                                    const Type& result) {
  const plan::ScheduleDatabase* schedules = context.options().schedules;
  return schedules ? schedules->find(plan::contraction_signature(contraction, result, context.target()))
                   : nullptr;
}

BindingRef make_binding(const LoweringContext& context, const Instruction& instruction,
                        const ContractionRoot& root) {
  auto binding = std::make_shared<ContractionBinding>();
  binding->result_type = instruction.type();
  binding->phases = root.phases;
  binding->sum_dtype = root.contraction->type().dtype;
  binding->schedule = find_schedule(context, *root.contraction, instruction.type());
  // Phases of a transposed convolution lie beside each other in a tile: no sum of it is of one channel.
  binding->side_sums = root.phases ? nullptr : context.side_sums_of(instruction);
  binding->compact = context.options().optimize_size;
  binding->long_epilogue = plan::has_long_epilogue(instruction);
  if (root.contraction->is(Opcode::Dot) || is_packable_constant(root.operands[1]))
    binding->weight_bytes = context.model_weight_bytes();
  return binding;
}

plan::Explanation explain_direct(const LoweringContext& context, const Instruction& instruction,
                                 const Instruction& contraction, const plan::Tiling& tiling) {
  plan::Explanation explanation;
  explanation.location = instruction.location();
  explanation.signature = plan::contraction_signature(contraction, instruction.type(), context.target());
  explanation.chosen.rows = tiling.tile.rows;
  explanation.chosen.vectors = tiling.tile.vectors;
  explanation.chosen.phases = tiling.tile.phases;
  explanation.chosen.depth = tiling.tile.depth;
  explanation.chosen.columns_outermost = tiling.columns_outermost;
  explanation.candidates.push_back({explanation.chosen, tiling.cycles, ""});
  return explanation;
}

bool emit_contraction(LoweringContext& context, const Instruction& instruction) {
  auto root = find_contraction_root(context, instruction);
  if (!root) return false;
  bool is_dot = root->contraction->is(Opcode::Dot);
  if (!is_dot) root->compute_phases(context.target().lanes(32));
  BindingRef binding;
  auto prepare = [&](ReductionPart part) {
    binding = make_binding(context, instruction, *root);
    return is_dot ? prepare_dot(*root->contraction, is_packable_constant(root->operands[0]),
                                is_packable_constant(root->operands[1]), binding, context.target(), part)
                  : prepare_convolution(root->computed(), binding, context.target());
  };
  auto prepared = prepare({});
  if (!prepared) return false;
  plan::Explanation explanation = explain_direct(context, instruction, *root->contraction, prepared->tiling);
  bool done =
      !is_dot && emit_winograd_convolution(context, instruction, *root, binding, *prepared, explanation);
  // A schedule that is not allowed here, or that the guard refuses, overrules nothing.
  const plan::Schedule* schedule = binding->schedule;
  explanation.overruled = schedule && schedule->algorithm == explanation.chosen.algorithm;
  if (context.options().explanations) context.options().explanations->push_back(std::move(explanation));
  if (done) return true;
  if (prepared->tiling.parts == 1) {
    emit_part(context, instruction, *root, *prepared, *binding, {}, {});
    return true;
  }
  PartialSums sums{{context.add_scratch_buffer(prepared->partial_elements * 4, "sums"), 0},
                   prepared->partial_elements};
  int count = prepared->tiling.parts;
  for (int number = 0; number < count; ++number) {
    ReductionPart part{number, count};
    prepared = prepare(part);
    emit_part(context, instruction, *root, *prepared, *binding, part, sums);
  }
  return true;
}

} // namespace firn::lower
