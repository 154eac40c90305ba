// See attempt.h.
#include "compiler/frontend/onnx/import/attempt.h"

#include "compiler/frontend/onnx/import/deciding_inputs.h"
#include "compiler/frontend/onnx/import_state.h"

#include <utility>

namespace firn::onnx {
namespace {

const char* branch_name(int branch) {
  return branch == 0 ? "then_branch" : "else_branch";
}

// Ends a run in which `condition` is not as wanted.
void end_unless(NodeContext& node, Value condition, bool wanted) {
  Value taken = node.convert(condition, DType::I64), allowed = node.scalar_int(DType::I64, wanted);
  node.op(Opcode::Clamp, {allowed, taken, allowed}, {{"branch", true}, {"checked", true}});
}

} // namespace

Attempt::Attempt(NodeContext& node)
    : node_(node), outer_(std::exchange(node.state().diagnostics, DiagnosticList())),
      outer_by_shapes_(std::exchange(node.state().errors_by_shapes, 0)),
      warnings_(node.state().facts.warnings.size()), was_out_of_budget_(node.state().out_of_budget) {}

void Attempt::end(BranchErrors& earlier) {
  ImportState& state = node_.state();
  bool has_failed = !state.diagnostics.empty();
  earlier.list.append(std::exchange(state.diagnostics, std::move(outer_)));
  earlier.by_shapes += std::exchange(state.errors_by_shapes, outer_by_shapes_);
  if (has_failed || state.disagreement) node_.failed_ = false;
  if (!has_failed) return;
  state.facts.warnings.resize(warnings_);
  if (state.nodes <= kMaxNodes) state.out_of_budget = was_out_of_budget_; // set by many errors
}

std::optional<int> unfit_branch(const BranchErrors& then_errors, const BranchErrors& else_errors) {
  if (then_errors.all_by_shapes() && else_errors.none()) return 0;
  if (else_errors.all_by_shapes() && then_errors.none()) return 1;
  return std::nullopt;
}

void report(NodeContext& node, Value condition, BranchErrors (&errors)[2]) {
  auto inputs = inputs_that_make({condition}, node.state());
  for (int i = 0; i < 2; ++i) {
    bool is_alone = errors[1 - i].none();
    for (Diagnostic diagnostic : errors[i].list.messages()) {
      if (is_alone && !inputs.empty() && diagnostic.unknown_inputs.empty()) {
        diagnostic.unknown_inputs = inputs;
        diagnostic.message += std::string("; it is in the ") + branch_name(i) + " of " + node.label() +
                              ": leave that out with" + choosing_flags(node, condition, i == 1, inputs);
      }
      node.state().diagnostics.add(std::move(diagnostic));
    }
    node.state().errors_by_shapes += errors[i].by_shapes;
  }
  node.give_up(); // even if an If further out handles the disagreement
}

void take_other_branch(NodeContext& node, Value condition, int unfit, const BranchErrors& errors) {
  end_unless(node, condition, unfit == 1);
  node.state().decided.emplace_back(node.input(0), unfit == 1);
  std::string flags =
      choosing_flags(node, condition, unfit == 1, inputs_that_make({condition}, node.state()));
  node.warn(std::string("its ") + branch_name(unfit) + " cannot be computed for these shapes (" +
            errors.list.messages()[0].message + "); a run that takes it ends with FIRN_STATUS_OUT_OF_RANGE" +
            (flags.empty() ? "" : ", and" + flags + " leaves it out"));
}

void take_no_step(NodeContext& node, Value starts, BranchErrors& errors) {
  if (!starts || !errors.all_by_shapes() || node.constant_ints(starts) == Ints{1}) {
    node.state().errors_by_shapes += errors.by_shapes;
    node.state().diagnostics.append(std::move(errors.list));
    return node.give_up();
  }
  end_unless(node, starts, false);
  node.warn("its body cannot be computed for these shapes (" + errors.list.messages()[0].message +
            "); a run that takes a step ends with FIRN_STATUS_OUT_OF_RANGE");
}

} // namespace firn::onnx
