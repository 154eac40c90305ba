// Operators that make features out of raw columns and tokens.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

void import_tfidf_vectorizer(NodeContext& node);
void import_category_mapper(NodeContext& node);
void import_label_encoder_1(NodeContext& node);
void import_label_encoder(NodeContext& node);

} // namespace firn::onnx
