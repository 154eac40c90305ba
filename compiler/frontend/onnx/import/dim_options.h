// What the options say of the dims of graph inputs: numbers, ranges, and sums and products of these.
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

  // By the model's name for the dim or the word that stands for it in messages; null if nothing is said.
  const int64_t* number(const std::string& name) const;
  const DimRange* range(const std::string& name) const;
  bool is_known(const std::string& name) const { return number(name) || range(name); }
  // A shape given for an input makes the name a number. False if it is another already.
  bool bind(const std::string& name, int64_t value);
  // Of dim `axis` of a graph input that the model calls `dim_param`, or does not name.
  static std::string name_of(const std::string& input, int axis, const std::string& dim_param) {
    return dim_param.empty() ? input + "_dim" + std::to_string(axis) : dim_param;
  }

  // The names that one such as "past + seq" or "2*(n-1)" joins, if each of them is known by itself and it is
  // not.
  std::optional<std::vector<std::string>> parts(const std::string& name) const;

private:
  const ImportOptions& options_;
  std::map<std::string, int64_t> numbers_;
};

// The names that such a name joins, if it is an expression of at least one and `is_known` holds for each.
std::optional<std::vector<std::string>> joined_names(const std::string& name,
                                                     const std::function<bool(const std::string&)>& is_known);
// The dim that such a name stands for, where `extent_of` gives that of every part; nothing if the name is no
// expression of sums, differences and products, or its numbers are too large.
std::optional<IntExpr> joined_dim(const std::string& name,
                                  const std::function<std::optional<IntExpr>(const std::string&)>& extent_of);

} // namespace firn::onnx
