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
  uint64_t required_features; // the CPU's Machine::required_cpu_features
};

// Removes functions whose machine code equals that of an earlier one of their group, if that one needs no
// feature that their CPU lacks; their callers call it instead. A group has functions of several CPUs, the
// least able first. Returns the names of removed functions, each with the name of the one that stands for it.
std::map<std::string, std::string> merge_equal_code(llvm::Module& module, llvm::TargetMachine& machine,
                                                    const std::vector<std::vector<CpuFunction>>& groups);

} // namespace firn::codegen
