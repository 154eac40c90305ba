// A module at fixed values of some of its dims, for a while.
#pragma once

#include "compiler/graph/module.h"

#include <map>
#include <string>
#include <vector>

namespace firn {

// In the types and attributes of all instructions stand numbers for these symbols, until the end of its
// life. Instructions stay the same ones, so that what is known of them holds of both forms. Meanwhile nothing
// may be added to the module or taken from it.
class FixedDims {
public:
  FixedDims(Module& module, std::map<const Symbol*, int64_t> values);
  ~FixedDims();
  FixedDims(const FixedDims&) = delete;
  FixedDims& operator=(const FixedDims&) = delete;

private:
  struct Result {
    Instruction* instruction;
    int number;
    Type type;
  };
  struct Range {
    Instruction* instruction;
    std::string attribute;
    Type type;
  };
  void fix(Region& region);
  bool fix(Type& type) const; // false: there was nothing to fix

  std::map<const Symbol*, int64_t> values_;
  std::vector<Result> results_; // as they were
  std::vector<Range> ranges_;
};

} // namespace firn
