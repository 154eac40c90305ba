// Rewrites that make a model ready for quantisation without changing what it computes.
#pragma once

#include "compiler/quantize/model.h"

namespace firn::quantize {

// The values whose ranks raise_opset() has to know: what softmax reads, which took all axes from its own on
// as one before opset 13.
std::vector<std::string> softmax_operands(const Model& model);
// Opset 13, the first whose DequantizeLinear has an axis, for models of older ones. An error names an
// operator whose meaning changed in a way that no rule here covers.
Result raise_opset(Model& model, const std::map<std::string, int64_t>& ranks);

// Nodes of constants alone become constants, so that weights which exporters transpose or reshape are
// weights; not those that widen integers (DequantizeLinear), nor what takes more bytes than it is made of.
void fold_constants(Model& model);

// Batch normalisations behind convolutions become their weights and biases, but for nodes to `keep`, by their
// name or that of their output.
void fold_batch_norms(Model& model, const std::vector<std::string>& keep);

} // namespace firn::quantize
