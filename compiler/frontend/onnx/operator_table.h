// The table of ONNX operators that Firn imports: one row per operator and range of opset versions. Each
// ops_<family>.cpp holds its importers and their rows; operator_table.cpp concatenates the families
// explicitly.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace firn::onnx {

class NodeContext;

// Writes the graph ops of one node and sets its outputs, or calls NodeContext::fail. Arity and input dtypes
// have been checked against the row.
using Importer = void (*)(NodeContext& node);

inline constexpr int kVariadic = 1 << 20; // for max_inputs, max_outputs: any number
inline constexpr int kLatest = 1 << 20;   // for until: every later version

// How an importer gets inputs of f16 and bf16.
enum class NarrowFloats : unsigned char {
  AsGiven, // the operator is one graph op, or its importer chooses what is computed in f32
  Widened, // they are f32, and outputs of f32 are narrowed: nothing between is rounded or overflows
};

struct OperatorRow {
  const char* domain; // "" is ai.onnx
  const char* name;
  int since, until; // opset versions of the domain, inclusive
  int min_inputs, max_inputs, min_outputs, max_outputs;
  // Input dtypes, one word per input, the last word repeats. A word is `class` or `Var=class` or `Var`:
  // inputs of one Var have one dtype. Classes, joined by '|': any, num (int or float), float, int, signed,
  // unsigned, bool, string, complex, index (i32 or i64), or a dtype's name. After '~' stand classes that are
  // accepted with a warning. "T=float T T" is Conv; "bool T=any T" is Where; "" checks nothing.
  const char* types;
  Importer import;
  const char* documentation; // one line for `firn ops`
  NarrowFloats narrow_floats = NarrowFloats::AsGiven;
};

// All rows, sorted by domain, name, since.
const std::vector<OperatorRow>& operator_table();
// The row for an operator at an opset version of its domain; null if there is none. Domain "ai.onnx" equals
// "".
const OperatorRow* find_operator(std::string_view domain, std::string_view name, int version);

// The families. Each is defined in ops_<family>.cpp.
std::span<const OperatorRow> activation_operators();
std::span<const OperatorRow> attention_operators();
std::span<const OperatorRow> contrib_operators();
std::span<const OperatorRow> contrib_quantized_operators();
std::span<const OperatorRow> control_flow_operators();
std::span<const OperatorRow> convolution_operators();
std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> feature_operators();
std::span<const OperatorRow> gather_operators();
std::span<const OperatorRow> generator_operators();
std::span<const OperatorRow> linear_operators();
std::span<const OperatorRow> loss_operators();
std::span<const OperatorRow> map_operators();
std::span<const OperatorRow> matmul_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> normalization_operators();
std::span<const OperatorRow> pad_operators();
std::span<const OperatorRow> pooling_operators();
std::span<const OperatorRow> quantization_operators();
std::span<const OperatorRow> random_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> reduction_operators();
std::span<const OperatorRow> resize_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> shape_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> slice_operators();
std::span<const OperatorRow> text_operators();
std::span<const OperatorRow> training_operators();
std::span<const OperatorRow> tree_operators();
std::span<const OperatorRow> unique_operators();
std::span<const OperatorRow> vision_operators();

} // namespace firn::onnx
