// Layers are tried in floats, those that are alike at once: a network has few kinds of layers, and a trial is
// a compilation. What a layer gains depends on its neighbours, between which nothing has to be converted, so
// the passes over all kinds end when one changes nothing.
#include "compiler/quantize/gains.h"

#include "compiler/quantize/write.h"

#include <map>

namespace firn::quantize {
namespace {

constexpr int kMaxPasses = 3;
constexpr char kSlower[] = "it is not faster in 8 bits",
               kNoneFaster[] = "no layer makes the model faster in 8 bits";

// Layers with weights of equal dims and attributes that are equal.
std::string kind_of(const Model& model, const LayerChoice& planned) {
  const wire::NodeProto& node = model.graph().node(planned.layer.node);
  std::string kind = node.op_type();
  for (const auto& attribute : node.attribute()) kind += " " + attribute.SerializeAsString();
  if (planned.weight)
    for (int64_t dim : planned.weight->integers->dims()) kind += "x" + std::to_string(dim);
  return kind;
}

using Group = std::vector<size_t>; // numbers of layers

std::vector<Group> groups_of(const Model& model, const LayerChoices& plan) {
  std::vector<Group> groups;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    if (plan.layers[i].precision == Precision::Float) continue;
    auto [kind, is_new] = known.try_emplace(kind_of(model, plan.layers[i]), groups.size());
    if (is_new) groups.emplace_back();
    groups[kind->second].push_back(i);
  }
  return groups;
}

LayerChoices with(const LayerChoices& plan, const Group& group, Precision precision) {
  LayerChoices changed = plan;
  for (size_t layer : group) changed.layers[layer].precision = precision;
  return changed;
}

void leave_out(LayerChoices& plan, const Group& group, const char* reason) {
  for (size_t layer : group) {
    plan.layers[layer].precision = Precision::Float;
    plan.layers[layer].layer.reason = reason;
  }
}

} // namespace

Expected<double> Predictor::cycles(const LayerChoices& plan) const {
  if (Result written = quantized_model(model_, plan).write(path_); !written) return written.error();
  auto executable = engine_(path_);
  if (!executable) return executable.error();
  return (*executable)->predicted_cycles(sample_);
}

Result leave_out_slow(const Predictor& predictor, const Model& model, LayerChoices& plan) {
  std::vector<Group> groups = groups_of(model, plan);
  auto cycles = predictor.cycles(plan);
  if (!cycles) return cycles.error();
  bool changes = true;
  for (int pass = 0; changes && pass < kMaxPasses; ++pass) {
    changes = false;
    for (const Group& group : groups) {
      if (plan.layers[group[0]].precision == Precision::Float) continue;
      auto without = predictor.cycles(with(plan, group, Precision::Float));
      if (!without) return without.error();
      for (size_t layer : group)
        plan.layers[layer].gain = (*without - *cycles) / static_cast<double>(group.size());
      if (*without > *cycles) continue;
      leave_out(plan, group, kSlower);
      cycles = *without;
      changes = true;
    }
  }
  // Layers that gain beside each other may cost more than they gain where they meet floats.
  Group left;
  for (const Group& group : groups)
    if (plan.layers[group[0]].precision != Precision::Float)
      left.insert(left.end(), group.begin(), group.end());
  if (left.empty()) return {};
  auto without = predictor.cycles(with(plan, left, Precision::Float));
  if (!without) return without.error();
  if (*without <= *cycles) leave_out(plan, left, kNoneFaster);
  return {};
}

} // namespace firn::quantize
