// Emits the code between an attention's dots, element by element of the softmax's operand.
#include "compiler/lower/attention/score_code.h"

#include "compiler/graph/fusion.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/kernel_maker.h"

#include <algorithm>

namespace firn::lower {

using kernel::Register;

Value operand_of(const Instruction& fusion, const StridedView& view) {
  Value operand = outside_of(fusion, view.source);
  FIRN_CHECK(operand, "attention on a value that is no operand of its fusion");
  return operand;
}

ScoreCode::ScoreCode(KernelMaker& maker, const Instruction& fusion, const Attention& attention, int lanes)
    : b_(maker.builder()), a_(attention), lanes_(lanes), scale_(find_scale()),
      leaves_(maker, fusion, [this](const Instruction& user) { return !computes_scores(user); }) {}

// Whether the instruction stands between the first dot and softmax, on the way of the scores or beside it.
bool ScoreCode::computes_scores(const Instruction& instruction) const {
  return std::find(a_.path.begin(), a_.path.end(), &instruction) != a_.path.end() ||
         is_mask_code(instruction);
}

// Part of the code between the dots that does not start at the first of them.
bool ScoreCode::is_mask_code(const Instruction& instruction) const {
  if (&instruction == a_.softmax || &instruction == a_.scores || &instruction == a_.values) return false;
  return std::any_of(instruction.users().begin(), instruction.users().end(), [&](const Instruction* user) {
    return user != a_.softmax && user != a_.scores && user != a_.values && computes_scores(*user);
  });
}

double ScoreCode::find_scale() const {
  if (a_.path.size() != 1 || !a_.path[0]->is(Opcode::Multiply)) return 1;
  for (int side : {0, 1}) {
    const Instruction& factor = *a_.path[0]->operand(side).def;
    if (!factor.is(Opcode::BroadcastInDim) || !factor.operand(0).def->is(Opcode::Constant)) continue;
    const Literal& literal = *factor.operand(0).def->literal();
    double scale = literal.is_splat() ? literal.get_double(0) : 0;
    if (scale > 0x1p-60 && scale < 0x1p60) return scale; // far from what overflows or vanishes in f32
  }
  return 1;
}

Register ScoreCode::score_of(const IntExpr& outer, const IntExpr& row, const IntExpr& key, int valid,
                             Register product) {
  if (is_product()) return product;
  std::vector<IntExpr> dims;
  for (const Dim& dim : a_.softmax->type().dims) dims.push_back(dim.extent);
  dims.resize(dims.size() - 2);
  Index index = unflatten(outer, dims);
  index.push_back(row);
  Lanes lanes;
  if (lanes_ > 1) {
    auto symbol = std::make_shared<Symbol>(Symbol{"lane", 0, a_.keys.upper_bound() - 1});
    lanes = {symbol, key, lanes_};
    index.push_back(a_.keys == IntExpr(1) ? IntExpr(0) : IntExpr::symbol(symbol));
  } else {
    index.push_back(key);
  }
  ElementEmitter emitter(b_, lanes);
  for (const RegionLeaves::Entry& entry : leaves_.entries())
    emitter.bind(entry.value, [this, entry, valid](const Index& at, const Lanes& along) {
      return load_valid_lanes(b_, entry.buffer, entry.type, at, along, valid);
    });
  emitter.bind(a_.scores->result(), [product](const Index&, const Lanes&) { return product; });
  return emitter.emit(a_.softmax->operand(0), index);
}

} // namespace firn::lower
