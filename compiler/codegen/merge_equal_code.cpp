// Compares functions by their assembly: the backend compiles each in a module of its own, under one name
// and with the constants that it reads. Equal text may be encoded in several ways, with VEX or EVEX for
// example; the function that is kept is encoded for the less able CPU, which the other understands.
#include "compiler/codegen/merge_equal_code.h"

#include "compiler/codegen/machine.h"

#include <llvm/Transforms/Utils/Cloning.h>

namespace firn::codegen {
namespace {

// Empty if the backend fails; it will fail again for the whole module, and say why.
std::string assembly_of(const llvm::Function& function, llvm::TargetMachine& machine) {
  llvm::ValueToValueMapTy values;
  auto is_it = [&](const llvm::GlobalValue* value) { return value == &function; };
  std::unique_ptr<llvm::Module> alone = llvm::CloneModule(*function.getParent(), values, is_it);
  values[&function]->setName("firn.function");
  llvm::SmallVector<char, 0> output;
  if (!run_backend(*alone, machine, /*assembly=*/true, output).error.empty()) return "";
  return {output.data(), output.size()};
}

// Whether callers of one may call the other.
bool is_called_alike(const llvm::Function& a, const llvm::Function& b) {
  return a.getFunctionType() == b.getFunctionType() && a.getCallingConv() == b.getCallingConv();
}

} // namespace

std::map<std::string, std::string> merge_equal_code(llvm::Module& module, llvm::TargetMachine& machine,
                                                    const std::vector<std::vector<CpuFunction>>& groups) {
  struct Kept {
    llvm::Function* function;
    uint64_t required_features;
    std::string assembly;
  };
  std::map<std::string, std::string> merged;
  for (const std::vector<CpuFunction>& group : groups) {
    std::vector<Kept> kept;
    for (const auto& [symbol, features] : group) {
      llvm::Function* function = module.getFunction(symbol);
      if (!function || function->isDeclaration()) continue; // the optimiser needed it nowhere
      Kept own{function, features, assembly_of(*function, machine)};
      const Kept* equal = nullptr;
      for (const Kept& other : kept)
        if (!equal && !own.assembly.empty() && own.assembly == other.assembly &&
            (other.required_features & ~features) == 0 && is_called_alike(*function, *other.function))
          equal = &other;
      if (!equal) {
        kept.push_back(std::move(own));
        continue;
      }
      merged[symbol] = equal->function->getName().str();
      function->replaceAllUsesWith(equal->function);
      function->eraseFromParent();
    }
  }
  return merged;
}

} // namespace firn::codegen
