// Rows of the report.
#include "compiler/quantize/describe.h"

#include <cmath>

namespace firn::quantize {
namespace {

std::string number_text(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

LayerReport describe(const Model& model, const LayerChoices& plan, const LayerChoice& planned,
                     ActivationType activations, bool has_harm) {
  LayerReport row;
  row.name = planned.layer.name;
  row.op = model.graph().node(planned.layer.node).op_type();
  row.precision = planned.precision;
  row.local_error = planned.local_error;
  row.harm = std::sqrt(planned.harm);
  row.has_harm = has_harm;
  row.gain = planned.gain;
  for (const std::string& name : planned.activations)
    row.rules += (row.rules.empty() ? "" : ", ") + std::string(rule_name(plan.tensors.at(name).rule));
  if (planned.layer.kind == Layer::Kind::Lookup) row.rules = "a scale for each row";
  row.reason = planned.layer.reason;
  if (planned.precision != Precision::Narrow && row.reason.empty())
    row.reason = "for the budget: alone it costs " + number_text("%.2g", row.harm);
  // A table that is looked up has no activations: it is in bytes whatever these are.
  bool is_wide = activations == ActivationType::U16 && !planned.activations.empty();
  if (is_wide && row.precision == Precision::Narrow) row.precision = Precision::Wide;
  return row;
}

} // namespace

std::vector<LayerReport> describe_layers(const Model& model, const LayerChoices& plan,
                                         const std::vector<Layer>& left_out, ActivationType activations,
                                         bool has_harm) {
  std::map<int, LayerReport> rows;
  for (const LayerChoice& planned : plan.layers)
    rows[planned.layer.node] = describe(model, plan, planned, activations, has_harm);
  for (const Layer& layer : left_out) {
    LayerReport& row = rows[layer.node];
    row.name = layer.name;
    row.op = model.graph().node(layer.node).op_type();
    row.precision = Precision::Float;
    row.reason = layer.reason;
  }
  std::vector<LayerReport> list;
  for (auto& [node, row] : rows) list.push_back(std::move(row));
  return list;
}

} // namespace firn::quantize
