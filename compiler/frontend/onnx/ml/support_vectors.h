// Importers of SVMClassifier and SVMRegressor.
#pragma once

namespace firn::onnx {

class NodeContext;

void import_svm_classifier(NodeContext& node);
void import_svm_regressor(NodeContext& node);

} // namespace firn::onnx
