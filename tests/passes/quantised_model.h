// Writes ONNX models of one quantised layer or a few, in the forms that quantisers give them, and counts what
// these take in the file.
#pragma once

#include "compiler/graph/dtype.h"
#include "tests/frontend/model_writer.h"

#include <random>
#include <string>
#include <vector>

namespace firn::test {

// The type that a layer's input is quantised to; F32: it is not quantised.
struct Activations {
  DType dtype = DType::U8;
  int64_t zero_point = 0;
};

// The part of a tensor that has one scale, and one zero point if there are any.
enum class Per : uint8_t { Tensor, Channel, Block };

inline constexpr int64_t kBlock = 32; // steps of the reduction

// Middle: the middle of the type's range, which quantisers that call themselves symmetric use.
enum class ZeroPoints : uint8_t { None, Middle, Any };

struct Weights {
  DType dtype = DType::I8;
  ZeroPoints zero_points = ZeroPoints::None;
  Per scale_per = Per::Channel;
  int bits() const { return bit_width(dtype); }
};

using Dims = std::vector<int64_t>;
using AttributeList = std::vector<Message>;

class QuantisedModel {
public:
  QuantisedModel(const Activations& activations, const Weights& weights)
      : activations_(activations), weights_(weights) {}
  const Activations& activations() const { return activations_; }

  // Each returns the name of the value that it adds.
  std::string input(const Dims& dims);
  std::string index_input(const Dims& dims);
  std::string op(const std::string& type, const Names& inputs, const AttributeList& attributes = {},
                 const std::string& domain = "");
  Names ops(const std::string& type, const Names& inputs, int results, const AttributeList& attributes = {},
            const std::string& domain = "");
  std::string floats(const Dims& dims); // a constant
  std::string scalar(float value);
  std::string zero_point(DType dtype, int64_t value);
  std::string indices(const std::vector<int64_t>& values);
  std::string bias(int64_t count); // i32 through DequantizeLinear

  // Each puts QuantizeLinear, DequantizeLinear or both behind a value; if activations are f32, returns the
  // value.
  std::string quantise(const std::string& value);
  std::string dequantise(const std::string& value);
  std::string qdq(const std::string& value);
  // Weights through DequantizeLinear. Blocks lie along `steps`, a dim of the reduction.
  std::string weights(const Dims& dims, int64_t channels, int64_t steps = 1);
  // Weights of f32 through QuantizeLinear and DequantizeLinear, whose bytes are counted as integers.
  std::string float_weights(const Dims& dims, int64_t channels);
  // Weights as integers, and their scales and zero points: of the model's type, and as many as dims say.
  std::string integers(const Dims& dims);
  std::string scales(const Dims& dims);
  std::string zero_points(const Dims& dims);
  // Weights in bytes from 0 on, whatever the type, in the form that MatMulNBits reads.
  std::string packed(const Dims& dims);
  // Zero points in such bytes; empty: the model's weights have none.
  std::string packed_zero_points(const Dims& dims);

  std::string encode(const std::string& output);
  int64_t bytes() const { return bytes_; } // bytes of constants as integers, their parameters and biases
  int64_t weight_bytes() const { return weight_bytes_; } // bytes of the integers alone

private:
  std::string next() { return "v" + std::to_string(++values_); }
  std::string constant(const Message& tensor, int64_t bytes);
  std::string tensor(DType dtype, const Dims& dims, int64_t min, int64_t max);
  Dims parameter_dims(const Dims& dims, int64_t channels, int64_t steps) const;
  bool is_wide() const { return bit_width(activations_.dtype) == 16; }

  Activations activations_;
  Weights weights_;
  Graph graph_;
  std::mt19937 random_{7};
  int values_ = 0;
  int64_t bytes_ = 0, weight_bytes_ = 0;
};

} // namespace firn::test
