// Walks the graph as lowering will, and gathers what the choice depends on.
#include "compiler/lower/winograd_choices.h"

#include "compiler/lower/contraction_fusion.h"
#include "compiler/plan/predicted_cycles.h"

#include <algorithm>
#include <cmath>

namespace firn::lower {
namespace {

// A parameter of the fusions around an instruction is what they are given.
Value given_from_outside(Value value) {
  while (value.def->is(Opcode::Parameter)) {
    const Region& region = *value.def->parent();
    if (!region.owner() || !region.owner()->is(Opcode::Fusion)) break;
    auto at = std::find(region.parameters().begin(), region.parameters().end(), value.def);
    value = region.owner()->operand(static_cast<int>(at - region.parameters().begin()));
  }
  return value;
}

class CandidateWalk {
public:
  explicit CandidateWalk(const LoweringContext& context) : context_(context) {}

  WinogradChoices run(const Region& body) {
    visit(body);
    std::vector<plan::WinogradChoice> chosen =
        plan::choose_winograd(std::move(candidates_), network_cycles_, context_.model_weight_bytes());
    WinogradChoices result;
    for (size_t i = 0; i < chosen.size(); ++i) result.choices[instructions_[i]] = std::move(chosen[i]);
    return result;
  }

private:
  void visit(const Region& region) {
    for (const auto& pointer : region.instructions()) {
      const Instruction& instruction = *pointer;
      if (instruction.is(Opcode::Constant) || instruction.is(Opcode::Parameter) || !instruction.has_uses())
        continue;
      bool has_own = instruction.is(Opcode::Composite) && context_.has_emitter(instruction);
      if (plan::holds_kernels(instruction) && !has_own) {
        for (int i = 0; i < instruction.num_regions(); ++i) visit(instruction.region(i));
        continue;
      }
      if (!context_.is_view_of_operand(instruction) && !add_convolution(instruction))
        network_cycles_ +=
            plan::predicted_cycles(instruction, context_.target(), context_.model_weight_bytes());
    }
  }

  // False if the algorithm does not apply.
  bool add_convolution(const Instruction& instruction) {
    auto root = find_contraction_root(context_, instruction);
    if (!root || !root->contraction->is(Opcode::Convolution)) return false;
    root->operands[1] = given_from_outside(root->operands[1]);
    root->compute_phases(context_.target().lanes(32));
    if (!is_packable_constant(root->operands[1])) return false;
    BindingRef binding = make_binding(context_, instruction, *root);
    const plan::Schedule* schedule = binding->schedule;
    if (schedule && schedule->algorithm != plan::Schedule::Algorithm::Winograd) return false;
    Type sums_type = binding->sums_type(root->computed());
    plan::WinogradCandidate candidate;
    candidate.filter = root->operands[1].def->literal();
    candidate.plans = plan::plan_winograd(
        {root->computed(), sums_type, context_.target(), context_.model_weight_bytes(), schedule});
    if (candidate.plans.empty()) return false;
    auto direct = prepare_convolution(root->computed(), binding, context_.target());
    if (!direct) return false;
    double stream = plan::stream_cycles(static_cast<double>(root->operands[1].type().byte_size()), 1,
                                        context_.target(), context_.model_weight_bytes());
    candidate.direct_cycles = plan::overlapped(direct->tiling.cycles, stream);
    network_cycles_ += candidate.direct_cycles;
    candidate.is_asked = schedule || context_.options().winograd != Winograd::Auto;
    if (schedule) candidate.direct_cycles = INFINITY;
    candidates_.push_back(std::move(candidate));
    instructions_.push_back(&instruction);
    return true;
  }

  const LoweringContext& context_;
  std::vector<plan::WinogradCandidate> candidates_; // in the order of the graph
  std::vector<const Instruction*> instructions_;    // theirs
  double network_cycles_ = 0;                       // of one run, all convolutions direct
};

} // namespace

WinogradChoices choose_winograd(const LoweringContext& context, const Region& body) {
  const Options& options = context.options();
  if (options.math == Math::Strict || options.optimize_size || options.winograd == Winograd::Off) return {};
  return CandidateWalk(context).run(body);
}

} // namespace firn::lower
