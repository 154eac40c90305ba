// Branches of Ifs, and bodies of Loops, that cannot be computed for the shapes at hand. Exporters put one for
// each sample rate or layout of inputs into a model, of which a program uses one: the other fits none of its
// shapes. Such a branch is left out, and a run that comes to it ends.
#pragma once

#include "compiler/frontend/onnx/import_context.h"
#include "compiler/support/diagnostic.h"

namespace firn::onnx {

struct BranchErrors {
  DiagnosticList list;
  size_t by_shapes = 0; // how many of them are of nodes that may be right for other shapes
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

// Which of an If's branches (0: then) cannot be computed for these shapes while the other can, so far.
std::optional<int> unfit_branch(const BranchErrors& then_errors, const BranchErrors& else_errors);

// The node fails by the errors of its branches on `condition`. Those of one branch alone say how to leave it
// out.
void report(NodeContext& node, Value condition, BranchErrors (&errors)[2]);

// Behind this the region goes on as though `condition`, that of the If `node`, chose the branch that is not
// `unfit`: a run in which it does not ends here. Warns of it.
void take_other_branch(NodeContext& node, Value condition, int unfit, const BranchErrors& errors);

// The same for the steps of a loop whose body has these errors: a run in which `starts` (bool[]) holds ends.
// Fails by the errors where other shapes would not mend them, or a run certainly starts.
void take_no_step(NodeContext& node, Value starts, BranchErrors& errors);

} // namespace firn::onnx
