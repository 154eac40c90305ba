// y = (conv(x) - mean) / sqrt(variance + epsilon) * gamma + beta, as one convolution.
#include "compiler/quantize/normalise_model.h"

#include <algorithm>
#include <cmath>

namespace firn::quantize {
namespace {

struct Affine {
  std::vector<double> scale, shift; // by output channel
};

// The scale and shift that the normalisation applies to channels; nothing if a run decides them.
std::optional<Affine> affine_of(const Model& model, const wire::NodeProto& node) {
  if (!is_operator(node, "BatchNormalization") || node.input_size() != 5 ||
      int_attribute(node, "training_mode", 0) != 0)
    return std::nullopt;
  for (int i = 1; i < node.output_size(); ++i)
    if (!node.output(i).empty()) return std::nullopt;
  LiteralRef parts[4]; // gamma, beta, mean, variance
  for (int i = 0; i < 4; ++i) {
    parts[i] = model.constant(node.input(i + 1));
    if (!parts[i] || parts[i]->dtype() != DType::F32 || parts[i]->dims().size() != 1 ||
        parts[i]->num_elements() != parts[0]->num_elements())
      return std::nullopt;
  }
  double epsilon = float_attribute(node, "epsilon", 1e-5F);
  Affine affine;
  for (int64_t c = 0; c < parts[0]->num_elements(); ++c) {
    double scale = parts[0]->get_double(c) / std::sqrt(parts[3]->get_double(c) + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(parts[1]->get_double(c) - parts[2]->get_double(c) * scale);
  }
  return affine;
}

// Elements of the weight times the scale of their output channel.
LiteralRef scaled_weight(const Literal& weight, const std::vector<double>& scale, bool transposed,
                         int64_t groups) {
  const auto& dims = weight.dims();
  int64_t taps = 1;
  for (size_t i = 2; i < dims.size(); ++i) taps *= dims[i];
  auto scaled = std::make_shared<Literal>(DType::F32, dims);
  for (int64_t a = 0; a < dims[0]; ++a)
    for (int64_t b = 0; b < dims[1]; ++b)
      for (int64_t t = 0; t < taps; ++t) {
        int64_t channel = transposed ? a / (dims[0] / groups) * dims[1] + b : a;
        auto at = static_cast<size_t>((a * dims[1] + b) * taps + t);
        scaled->mutable_data<float>()[at] =
            static_cast<float>(weight.data<float>()[at] * scale[static_cast<size_t>(channel)]);
      }
  return scaled;
}

// Whether the convolution at `number` took the normalisation.
bool fold_into(Model& model, int number, const Affine& affine, const std::string& result) {
  wire::NodeProto& conv = *model.graph().mutable_node(number);
  bool transposed = is_operator(conv, "ConvTranspose");
  if ((!is_operator(conv, "Conv") && !transposed) || conv.input_size() < 2) return false;
  LiteralRef weight = model.constant(conv.input(1));
  bool has_bias = conv.input_size() > 2 && !conv.input(2).empty();
  LiteralRef bias = has_bias ? model.constant(conv.input(2)) : nullptr;
  if (!weight || weight->dtype() != DType::F32 || weight->dims().size() < 3 || (has_bias && !bias))
    return false;
  int64_t groups = int_attribute(conv, "group", 1);
  if (groups < 1 || weight->dims()[0] % groups != 0) return false;
  int64_t channels = transposed ? weight->dims()[1] * groups : weight->dims()[0];
  auto count = static_cast<int64_t>(affine.scale.size());
  if (channels != count || (bias && (bias->dtype() != DType::F32 || bias->num_elements() != count)))
    return false;
  auto shifted = std::make_shared<Literal>(DType::F32, std::vector<int64_t>{count});
  for (int64_t c = 0; c < count; ++c) {
    auto at = static_cast<size_t>(c);
    shifted->set_double(c, (bias ? bias->get_double(c) : 0) * affine.scale[at] + affine.shift[at]);
  }
  conv.set_input(1, model.add_constant(conv.input(1) + "_folded",
                                       scaled_weight(*weight, affine.scale, transposed, groups)));
  while (conv.input_size() < 3) conv.add_input("");
  conv.set_input(2, model.add_constant(result + "_bias", shifted));
  conv.set_output(0, result);
  return true;
}

} // namespace

void fold_batch_norms(Model& model, const std::vector<std::string>& keep) {
  auto is_kept = [&](const wire::NodeProto& node) {
    return std::count(keep.begin(), keep.end(), node.name()) ||
           std::count(keep.begin(), keep.end(), node.output(0));
  };
  std::set<int> folded;
  for (int i = 0; i < model.graph().node_size(); ++i) {
    const wire::NodeProto& node = model.graph().node(i);
    auto affine = affine_of(model, node);
    if (!affine || is_kept(node)) continue;
    int made = model.producer(node.input(0));
    if (made >= 0 && model.is_only_for(node.input(0), i) &&
        fold_into(model, made, *affine, std::string(node.output(0))))
      folded.insert(i);
  }
  google::protobuf::RepeatedPtrField<wire::NodeProto> kept;
  for (int i = 0; i < model.graph().node_size(); ++i)
    if (!folded.count(i)) *kept.Add() = std::move(*model.graph().mutable_node(i));
  *model.graph().mutable_node() = std::move(kept);
  model.index();
}

} // namespace firn::quantize
