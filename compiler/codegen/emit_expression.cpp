// See emit_expression.h.
#include "compiler/codegen/emit_expression.h"

#include "compiler/support/diagnostic.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

namespace firn::codegen {

const SymbolValue* ExpressionEmitter::find(const Symbol& symbol) const {
  auto found = symbols_.find(&symbol);
  return found == symbols_.end() ? nullptr : &found->second;
}

const SymbolValue& ExpressionEmitter::value_of(const Symbol& symbol) const {
  const SymbolValue* found = find(symbol);
  FIRN_CHECK(found, "symbol '" + symbol.name + "' has no value in " + owner_);
  return *found;
}

int ExpressionEmitter::depth_of(const IntExpr::Term& term) const {
  int depth = 0;
  for (const AtomRef& atom : term.atoms) {
    std::vector<SymbolRef> symbols;
    if (atom->kind == IntAtom::Kind::Symbol)
      symbols.push_back(atom->symbol);
    else {
      symbols = atom->lhs->symbols();
      for (const SymbolRef& symbol : atom->rhs->symbols()) symbols.push_back(symbol);
    }
    for (const SymbolRef& symbol : symbols) depth = std::max(depth, value_of(*symbol).depth);
  }
  return depth;
}

llvm::Value* ExpressionEmitter::atom(const IntAtom& atom) {
  if (atom.kind == IntAtom::Kind::Symbol) return value_of(*atom.symbol).value;
  llvm::Value *lhs = emit(*atom.lhs), *rhs = emit(*atom.rhs);
  if (atom.kind == IntAtom::Kind::Min) return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, lhs, rhs);
  if (atom.kind == IntAtom::Kind::Max) return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, lhs, rhs);
  bool quotient = atom.kind == IntAtom::Kind::FloorDiv;
  int64_t divisor = atom.rhs->is_constant() ? atom.rhs->value() : 0;
  if (divisor > 0 && (divisor & (divisor - 1)) == 0) {
    uint64_t shift = static_cast<uint64_t>(__builtin_ctzll(static_cast<uint64_t>(divisor)));
    return quotient ? ir_.CreateAShr(lhs, shift) : ir_.CreateAnd(lhs, constant(divisor - 1));
  }
  if (atom.lhs->lower_bound() >= 0) return quotient ? ir_.CreateUDiv(lhs, rhs) : ir_.CreateURem(lhs, rhs);
  // Rounds towards minus infinity: a negative remainder takes one more step down.
  llvm::Value* remainder = ir_.CreateSRem(lhs, rhs);
  llvm::Value* negative = ir_.CreateICmpSLT(remainder, constant(0));
  if (!quotient) return ir_.CreateSelect(negative, ir_.CreateAdd(remainder, rhs), remainder);
  return ir_.CreateAdd(ir_.CreateSDiv(lhs, rhs), ir_.CreateSExt(negative, type_));
}

llvm::Value* ExpressionEmitter::term(const IntExpr::Term& term, int64_t scale) {
  llvm::Value* product = nullptr;
  for (const AtomRef& factor : term.atoms) {
    llvm::Value* value = atom(*factor);
    product = product ? ir_.CreateNSWMul(product, value) : value;
  }
  int64_t coefficient = term.coefficient * scale;
  return coefficient == 1 ? product : ir_.CreateNSWMul(product, constant(coefficient));
}

std::map<int, llvm::Value*> ExpressionEmitter::emit_by_depth(const IntExpr& expression, int64_t scale) {
  std::map<int, llvm::Value*> by_depth;
  for (const IntExpr::Term& part : expression.terms()) {
    llvm::Value*& sum = by_depth[depth_of(part)];
    llvm::Value* value = term(part, scale);
    sum = sum ? ir_.CreateNSWAdd(sum, value) : value;
  }
  return by_depth;
}

llvm::Value* ExpressionEmitter::emit(const IntExpr& expression) {
  llvm::Value* total = nullptr;
  for (auto& [depth, sum] : emit_by_depth(expression, 1)) total = total ? ir_.CreateNSWAdd(total, sum) : sum;
  if (!total) return constant(expression.constant_part());
  if (expression.constant_part() == 0) return total;
  return ir_.CreateNSWAdd(total, constant(expression.constant_part()));
}

} // namespace firn::codegen
