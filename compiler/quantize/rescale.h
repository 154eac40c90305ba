// Factors of channels moved through a model: a value is divided by them where it is made and its readers
// multiply, so that the model computes the same and the value's channels reach equally far.
#pragma once

#include "compiler/quantize/model.h"
#include "compiler/quantize/statistics.h"

namespace firn::quantize {

// A value whose channels can be divided by factors, and the edits that do it.
class Rescale {
public:
  // `axis` of the channels: 1 for images [n,c,h,w], or -1 for the last. Nothing if a reader cannot multiply,
  // or the value is no such image. The result refers to `model`.
  static std::optional<Rescale> find(const Model& model, const std::string& value, int axis,
                                     const Channels& channels);

  // Whether what makes the value divides it for nothing; else a product is added behind it.
  bool is_free() const { return is_free_; }
  // A constant factor of a layer that reads the value, directly or by mean or maximum, and the axis along its
  // channels.
  struct Reader {
    int node;
    int axis; // axis of the input channels in the weight
    int64_t groups = 1;
    bool transposed = false;
  };
  const std::vector<Reader>& readers() const { return readers_; }

  // Edits the model. `factors`: one for each channel. Numbers of nodes change; names of values stay, and
  // those of products that are added are new.
  void apply(Model& model, const std::vector<float>& factors) const;

private:
  Rescale(const Model& model, std::string value, int64_t channels)
      : model_(&model), value_(std::move(value)), channels_(channels) {}
  bool multiply_readers(const std::string& value, bool is_image);
  bool multiply_reader(const std::string& value, int reader, bool is_image);
  bool divide_maker(const std::string& value, bool is_image);
  bool divide_layer(int number, bool is_image);
  bool divide_product(int number, bool is_image);
  bool divide_sum(int number, bool is_image);
  bool is_channel_constant(const std::string& name, bool is_image) const;
  bool stays_in_registers() const;

  struct Edit {
    enum class Kind : uint8_t {
      MultiplyInputs,
      DivideOutputs,
      DivideConstant,
      MultiplyOperand,
      DivideOperand
    };
    Kind kind;
    int node;
    int input = 1;
  };
  void edit(Model& model, const Edit& edit, const std::vector<float>& factors,
            std::map<int, std::vector<wire::NodeProto>>& before) const;

  const Model* model_; // the one that find() was given
  std::string value_;
  int64_t channels_;     // their number
  bool is_image_ = true; // [n,c,h,w]; else channels are the last dim
  bool is_free_ = false;
  std::vector<Reader> readers_;
  std::vector<Edit> edits_;
};

} // namespace firn::quantize
