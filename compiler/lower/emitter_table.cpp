// Which emitters lower which instruction.
#include "compiler/graph/resample.h"
#include "compiler/lower/contraction_ops.h"
#include "compiler/lower/element_emitter.h"
#include "compiler/lower/emitters.h"

#include <algorithm>

namespace firn::lower {
namespace {

struct OpcodeRow {
  Opcode opcode;
  std::vector<Emitter> emitters;
};
Expected<bool> emit_register_tiles(LoweringContext& context, const Instruction& instruction) {
  return emit_contraction(context, instruction);
}

// Composites such as gelu: their body computes every element on its own.
bool is_elementwise_composite(const Instruction& composite) {
  for (const auto& inner : composite.region().instructions()) {
    Opcode opcode = inner->opcode();
    if (!is_elementwise(opcode) && opcode != Opcode::Constant && opcode != Opcode::Parameter &&
        opcode != Opcode::BroadcastInDim)
      return false;
  }
  return true;
}

std::vector<Emitter> emitters_of_opcode(Opcode opcode) {
  static const OpcodeRow kRows[] = {
      {Opcode::Dot, {emit_register_tiles, emit_elementwise}},
      {Opcode::Convolution, {emit_plane_convolution, emit_register_tiles, emit_elementwise}},
      {Opcode::ReduceWindow, {emit_elementwise}},
      {Opcode::Copy, {emit_relayout, emit_elementwise}},
      {Opcode::Transpose, {emit_relayout, emit_elementwise}},
      {Opcode::Concatenate, {emit_concatenate}},
      {Opcode::DynamicUpdateSlice, {emit_update_slice}},
      {Opcode::ScatterElements, {emit_scatter_elements}},
      {Opcode::ScatterND, {emit_scatter_nd}},
      {Opcode::ArgReduce, {emit_arg_reduce}},
      {Opcode::Cumulative, {emit_cumulative}},
      {Opcode::Sort, {emit_sort}},
      {Opcode::TopK, {emit_top_k}},
      {Opcode::If, {emit_if}},
      {Opcode::While, {emit_while}},
  };
  for (const OpcodeRow& row : kRows)
    if (row.opcode == opcode) return row.emitters;
  return {emit_elementwise};
}

std::vector<Emitter> emitters_of_fusion(std::string_view kind) {
  if (kind == "contraction") return {emit_plane_convolution, emit_register_tiles, emit_elementwise};
  if (kind == "movement") return {emit_movement, emit_elementwise};
  if (kind == "strips") return {emit_strips};
  if (kind == "side_sums") return {emit_side_sums};
  if (kind == "attention") return {emit_attention};
  return {emit_elementwise};
}

// None means that the body is lowered in its place.
std::vector<Emitter> emitters_of_composite(const Instruction& composite) {
  static constexpr std::string_view kRows[] = {"softmax", "log_softmax", "layer_norm", "rms_norm",
                                               "instance_norm"};
  const std::string& name = composite.attributes().word("name");
  if (std::find(std::begin(kRows), std::end(kRows), name) != std::end(kRows) && has_row_form(composite))
    return {emit_rows};
  if (has_recurrent_form(composite)) return {emit_recurrence};
  if (read_resample(composite)) return {emit_resample};
  if (is_elementwise_composite(composite)) return {emit_elementwise};
  return {};
}

} // namespace

std::vector<Emitter> find_emitters(const Instruction& instruction) {
  if (instruction.is(Opcode::Fusion)) return emitters_of_fusion(instruction.attributes().word("kind", ""));
  if (instruction.is(Opcode::Composite)) return emitters_of_composite(instruction);
  return emitters_of_opcode(instruction.opcode());
}

} // namespace firn::lower
