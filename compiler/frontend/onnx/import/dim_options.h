// Options for the dims of graph inputs: numbers, ranges, and sums and products of these.
#pragma once

#include "compiler/frontend/onnx/import.h"

#include <functional>
#include <optional>

namespace firn::onnx {

namespace wire {
class GraphProto;
}

// Gives the dims of graph inputs the names that the options say; a usage error names one that is no dim.
Result rename_dims(wire::GraphProto& graph, const ImportOptions& options);

class DimOptions {
public:
  explicit DimOptions(const ImportOptions& options) : options_(options), numbers_(options.dims) {}

  // The option for a dim, by the model's name for it or the word that stands for it in messages; null if
  // there is none.
  const int64_t* number(const std::string& name) const;
  const DimRange* range(const std::string& name) const;
  bool is_known(const std::string& name) const { return number(name) || range(name); }
  // Makes the name a number, as a shape given for an input does. False if it is another number already.
  bool bind(const std::string& name, int64_t value);
  // The name of dim `axis` of a graph input: `dim_param`, or one made of the input's name if that is empty.
  static std::string name_of(const std::string& input, int axis, const std::string& dim_param) {
    return dim_param.empty() ? input + "_dim" + std::to_string(axis) : dim_param;
  }

  // The names in an expression such as "past + seq" or "2*(n-1)", if each is known and the whole is not.
  std::optional<std::vector<std::string>> parts(const std::string& name) const;

private:
  const ImportOptions& options_;
  std::map<std::string, int64_t> numbers_;
};

// The names in such an expression, if it has at least one and `is_known` holds for each.
std::optional<std::vector<std::string>> joined_names(const std::string& name,
                                                     const std::function<bool(const std::string&)>& is_known);
// The dim that such an expression stands for, from the extents of its names. Nothing if the name is no
// expression of sums, differences and products, or its numbers are too large.
std::optional<IntExpr> joined_dim(const std::string& name,
                                  const std::function<std::optional<IntExpr>(const std::string&)>& extent_of);

} // namespace firn::onnx
