// Losses of scores of classes [N,C,d...] by the classes that are right, labels [N,d...]: integers, which
// count from the end when negative.
//
// A loss of one position is -weights[label] * logs[label], and 0 at labels of ignore_index. Reductions: none
// gives [N,d...]; sum gives a scalar; mean divides the sum by that of the weights, by the number of positions
// if neither weights nor ignore_index are given.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>
#include <string>

namespace firn {

struct ClassLossOptions {
  std::string reduction = "mean"; // none, sum, mean
  std::optional<int64_t> ignore_index = {};
};

// The composite `negative_log_likelihood` {reduction = mean, ignore_index?}: logs, labels, weights? [C].
// `weights` may be null.
Value make_negative_log_likelihood(GraphBuilder& builder, Value logs, Value labels, Value weights,
                                   const ClassLossOptions& options);
// The composite `softmax_cross_entropy` with the same attributes: logits, labels, weights?; logs are their
// log-softmax. {log_probabilities = true} adds these as a second result.
Instruction* make_softmax_cross_entropy(GraphBuilder& builder, Value logits, Value labels, Value weights,
                                        const ClassLossOptions& options, bool log_probabilities = false);

// The options of either composite.
ClassLossOptions class_loss_options(const Instruction& composite);

} // namespace firn
