// A module, or a part of it, at fixed values of some of its dims.
#pragma once

#include "compiler/graph/module.h"

#include <map>
#include <string>
#include <vector>

namespace firn {

// Puts numbers for symbols into a type, or into the types and attributes of all instructions, for good.
// False: there was nothing to fix.
bool fix_dims(Type& type, const std::map<const Symbol*, int64_t>& values);
void fix_dims(Region& region, const std::map<const Symbol*, int64_t>& values);

// Puts numbers for symbols into the types and attributes of all instructions, and takes them out at the end
// of its life. Instructions stay the same objects, so that facts about them hold in both forms. Meanwhile
// nothing may be added to the module or taken from it.
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

  std::map<const Symbol*, int64_t> values_;
  std::vector<Result> results_; // types with their symbols, to restore
  std::vector<Range> ranges_;
};

} // namespace firn
