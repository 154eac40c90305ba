// Integer expressions over symbols as LLVM values.
#pragma once

#include "compiler/support/int_expr.h"

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <unordered_map>

namespace firn::codegen {

struct SymbolValue {
  llvm::Value* value = nullptr;
  int64_t offset = 0; // constant that an unrolled copy adds to the loop's variable
  int depth = 0;      // depth of the loop that defines it; parts of an expression are added outermost first
};

class ExpressionEmitter {
public:
  // `owner`: for messages, what the symbols belong to.
  ExpressionEmitter(llvm::IRBuilder<>& ir, llvm::IntegerType* type, std::string owner)
      : ir_(ir), type_(type), owner_(std::move(owner)) {}

  void set(const Symbol& symbol, SymbolValue value) { symbols_[&symbol] = value; }
  // Null if the symbol has no value.
  const SymbolValue* find(const Symbol& symbol) const;

  llvm::Value* emit(const IntExpr& expression);
  // `scale` times the expression without its constant part: a sum of terms for each depth of loops that they
  // depend on.
  std::map<int, llvm::Value*> emit_by_depth(const IntExpr& expression, int64_t scale);
  llvm::ConstantInt* constant(int64_t value) const { return llvm::ConstantInt::getSigned(type_, value); }

private:
  const SymbolValue& value_of(const Symbol& symbol) const;
  int depth_of(const IntExpr::Term& term) const;
  llvm::Value* atom(const IntAtom& atom);
  llvm::Value* term(const IntExpr::Term& term, int64_t scale);

  llvm::IRBuilder<>& ir_;
  llvm::IntegerType* type_;
  std::string owner_;
  std::unordered_map<const Symbol*, SymbolValue> symbols_;
};

} // namespace firn::codegen
