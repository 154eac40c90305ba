// The table as a whole, and lookup in it.
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>
#include <tuple>

namespace firn::onnx {
namespace {

std::vector<OperatorRow> collect() {
  std::vector<OperatorRow> rows;
  for (auto family : {activation_operators(),   attention_operators(),
                      contrib_operators(),      contrib_quantized_operators(),
                      control_flow_operators(), convolution_operators(),
                      elementwise_operators(),  feature_operators(),
                      gather_operators(),       generator_operators(),
                      linear_operators(),       loss_operators(),
                      map_operators(),          matmul_operators(),
                      movement_operators(),     normalization_operators(),
                      pad_operators(),          pooling_operators(),
                      quantization_operators(), random_operators(),
                      recurrent_operators(),    reduction_operators(),
                      resize_operators(),       sequence_operators(),
                      shape_operators(),        signal_operators(),
                      slice_operators(),        text_operators(),
                      training_operators(),     tree_operators(),
                      unique_operators(),       vision_operators()})
    rows.insert(rows.end(), family.begin(), family.end());
  std::sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return std::make_tuple(std::string_view(a.domain), std::string_view(a.name), a.since) <
           std::make_tuple(std::string_view(b.domain), std::string_view(b.name), b.since);
  });
  return rows;
}

} // namespace

const std::vector<OperatorRow>& operator_table() {
  static const std::vector<OperatorRow> rows = collect();
  return rows;
}

const OperatorRow* find_operator(std::string_view domain, std::string_view name, int version) {
  if (domain == "ai.onnx") domain = "";
  const auto& rows = operator_table();
  auto before = [&](const OperatorRow& row, int) {
    return std::make_pair(std::string_view(row.domain), std::string_view(row.name)) <
           std::make_pair(domain, name);
  };
  for (auto row = std::lower_bound(rows.begin(), rows.end(), 0, before); row != rows.end(); ++row) {
    if (row->domain != domain || row->name != name) break;
    if (row->since <= version && version <= row->until) return &*row;
  }
  return nullptr;
}

} // namespace firn::onnx
