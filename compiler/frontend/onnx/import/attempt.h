// Branches of Ifs, and bodies of Loops, that cannot be computed for the shapes at hand. Exporters write a
// branch for each sample rate or layout of inputs, of which a program uses one: the other branch fits none of
// its shapes. Such a branch is left out, and a run that comes to it ends.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/support/diagnostic.h"

namespace firn::onnx {

struct BranchErrors {
  DiagnosticList list;
  size_t by_shapes = 0; // how many of them may depend on the shapes at hand
  bool none() const { return list.empty(); }
  bool all_by_shapes() const { return !none() && by_shapes == list.count(); }
};

// From here to end(), errors are those of one branch of `node`, set apart from others.
class Attempt {
public:
  explicit Attempt(NodeContext& node);
  // Adds the errors since to `earlier`. Without them, and without a disagreement, the node has not failed.
  void end(BranchErrors& earlier);

private:
  NodeContext& node_;
  DiagnosticList outer_;
  size_t outer_by_shapes_, warnings_;
  bool was_out_of_budget_;
};

// The branch of an If (0: then) that cannot be computed for these shapes while the other can, so far.
std::optional<int> unfit_branch(const BranchErrors& then_errors, const BranchErrors& else_errors);

// Fails with the errors of the node's branches on `condition`. If only one branch has errors, they say how to
// leave it out.
void report(NodeContext& node, Value condition, BranchErrors (&errors)[2]);

// The nodes that follow are imported as though `condition`, of the If `node`, chose the branch that is not
// `unfit`. A run in which it chooses the other ends here. Warns of it.
void take_other_branch(NodeContext& node, Value condition, int unfit, const BranchErrors& errors);

// The nodes that follow are imported as though the loop `node`, whose body has these errors, took no step. A
// run in which `starts` (bool[]) holds ends here. Fails with the errors if they do not depend on shapes, or
// if every run takes a step.
void take_no_step(NodeContext& node, Value starts, BranchErrors& errors);

} // namespace firn::onnx
