// Machine code that two CPUs of one object share.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <map>
#include <string>
#include <vector>

namespace firn::codegen {

// A function of one CPU's program, by its name in the module.
struct CpuFunction {
  std::string symbol;
  uint64_t required_features; // of the CPU: TargetInfo::required_cpu_features
};

// Of the functions of each group, of several CPUs with the least able first, those whose machine code is that
// of an earlier one go, and their callers call that one: it needs no feature that theirs lack. The names of
// the functions that went, with those that stand for them.
std::map<std::string, std::string> merge_equal_code(llvm::Module& module, llvm::TargetMachine& machine,
                                                    const std::vector<std::vector<CpuFunction>>& groups);

} // namespace firn::codegen
