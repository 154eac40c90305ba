// Expansions that work on any target, in the IR that all targets have.
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

namespace firn::codegen {

using kernel::OpKind;

// Adding and subtracting 2^mantissa_bits rounds |x| to an integer, ties to even; the other modes step from
// there.
llvm::Value* expand_rounding(llvm::IRBuilder<>& ir, OpKind kind, llvm::Value* x) {
  llvm::Type* type = x->getType();
  bool is_double = type->getScalarType()->isDoubleTy();
  auto number = [&](double v) { return llvm::ConstantFP::get(type, v); };
  llvm::Value* limit = number(is_double ? 0x1p52 : 0x1p23);
  llvm::Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* nearest = ir.CreateFSub(ir.CreateFAdd(magnitude, limit), limit);
  auto step = [&](llvm::Value* condition, double size) {
    return ir.CreateSelect(condition, number(size), number(0));
  };
  llvm::Value* result = nearest;
  if (kind == OpKind::FTrunc) {
    result = ir.CreateFSub(nearest, step(ir.CreateFCmpOGT(nearest, magnitude), 1));
  } else if (kind != OpKind::FRoundEven) {
    result = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, nearest, x);
    if (kind == OpKind::FFloor)
      result = ir.CreateFSub(result, step(ir.CreateFCmpOGT(result, x), 1));
    else
      result = ir.CreateFAdd(result, step(ir.CreateFCmpOLT(result, x), 1));
  }
  result = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
  // Beyond the limit all floats are integers; NaN fails the test too.
  return ir.CreateSelect(ir.CreateFCmpOLT(magnitude, limit), result, x);
}

namespace {

// Builds fmod by long division of the mantissas, one bit of the exponents' difference at a time. With |x| =
// mx 2^ex and |y| = my 2^ey, mantissas shifted so that bit `top` is set, each step takes x -= y if it can and
// doubles it.
class FmodBuilder {
public:
  FmodBuilder(llvm::Function* function, llvm::Type* real)
      : function_(function), ir_(function->getContext()), real_(real),
        bits_(ir_.getIntNTy(real->getPrimitiveSizeInBits().getFixedValue())),
        mantissa_bits_(real->isDoubleTy() ? 52 : 23), width_(bits_->getIntegerBitWidth()) {}

  void build() {
    auto block = [&](const char* name) {
      return llvm::BasicBlock::Create(ir_.getContext(), name, function_);
    };
    llvm::BasicBlock *entry = block("entry"), *special = block("special"), *regular = block("regular"),
                     *small = block("small"), *divide = block("divide"), *loop = block("loop"),
                     *done = block("done");
    ir_.SetInsertPoint(entry);
    llvm::Value *x = function_->getArg(0), *y = function_->getArg(1);
    llvm::Value *ux = ir_.CreateBitCast(x, bits_), *uy = ir_.CreateBitCast(y, bits_);
    llvm::Value* sign = ir_.CreateAnd(ux, constant(uint64_t{1} << (width_ - 1)));
    llvm::Value *ax = ir_.CreateXor(ux, sign),
                *ay = ir_.CreateAnd(uy, constant((uint64_t{1} << (width_ - 1)) - 1));
    llvm::Value* infinity = constant(((uint64_t{1} << (width_ - 1 - mantissa_bits_)) - 1) << mantissa_bits_);
    llvm::Value* bad = ir_.CreateOr(ir_.CreateICmpEQ(ay, constant(0)), ir_.CreateICmpUGE(ax, infinity));
    bad = ir_.CreateOr(bad, ir_.CreateICmpUGT(ay, infinity));
    ir_.CreateCondBr(bad, special, regular);

    ir_.SetInsertPoint(special);
    llvm::Value* product = ir_.CreateFMul(x, y);
    ir_.CreateRet(ir_.CreateFDiv(product, product));

    ir_.SetInsertPoint(regular);
    ir_.CreateCondBr(ir_.CreateICmpULT(ax, ay), small, divide);
    ir_.SetInsertPoint(small);
    ir_.CreateRet(x);

    ir_.SetInsertPoint(divide);
    auto [mx, ex] = split(ax);
    auto [my, ey] = split(ay);
    ir_.CreateBr(loop);

    ir_.SetInsertPoint(loop);
    llvm::PHINode *mantissa = ir_.CreatePHI(bits_, 2), *exponent = ir_.CreatePHI(bits_, 2);
    llvm::Value* rest =
        ir_.CreateSelect(ir_.CreateICmpUGE(mantissa, my), ir_.CreateSub(mantissa, my), mantissa);
    llvm::Value* last = ir_.CreateICmpEQ(exponent, ey);
    llvm::Value *doubled = ir_.CreateShl(rest, 1), *lower = ir_.CreateSub(exponent, constant(1));
    mantissa->addIncoming(mx, divide), mantissa->addIncoming(doubled, loop);
    exponent->addIncoming(ex, divide), exponent->addIncoming(lower, loop);
    ir_.CreateCondBr(last, done, loop);

    ir_.SetInsertPoint(done);
    ir_.CreateRet(ir_.CreateBitCast(ir_.CreateOr(join(rest, ey), sign), real_));
  }

private:
  llvm::ConstantInt* constant(uint64_t value) {
    return llvm::ConstantInt::get(ir_.getContext(), llvm::APInt(width_, value));
  }
  llvm::Value* leading_zeros(llvm::Value* v) {
    return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v, ir_.getFalse());
  }
  // Mantissa with its leading bit at position mantissa_bits_, and the biased exponent (below 1 for
  // subnormals).
  std::pair<llvm::Value*, llvm::Value*> split(llvm::Value* bits) {
    llvm::Value* exponent = ir_.CreateLShr(bits, mantissa_bits_);
    llvm::Value* hidden = constant(uint64_t{1} << mantissa_bits_);
    llvm::Value* is_normal = ir_.CreateICmpNE(exponent, constant(0));
    llvm::Value* normal =
        ir_.CreateOr(ir_.CreateAnd(bits, constant((uint64_t{1} << mantissa_bits_) - 1)), hidden);
    llvm::Value* shift = ir_.CreateSub(leading_zeros(bits), constant(width_ - 1 - mantissa_bits_));
    llvm::Value* safe = ir_.CreateSelect(is_normal, constant(0), shift);
    return {ir_.CreateSelect(is_normal, normal, ir_.CreateShl(bits, safe)),
            ir_.CreateSelect(is_normal, exponent, ir_.CreateSub(constant(1), shift))};
  }
  // The bits of rest 2^exponent, where rest is below the hidden bit's double.
  llvm::Value* join(llvm::Value* rest, llvm::Value* exponent) {
    llvm::Value* zero = ir_.CreateICmpEQ(rest, constant(0));
    llvm::Value* shift = ir_.CreateSub(leading_zeros(ir_.CreateSelect(zero, constant(1), rest)),
                                       constant(width_ - 1 - mantissa_bits_));
    llvm::Value* scaled = ir_.CreateSub(exponent, shift);
    llvm::Value* normal = ir_.CreateICmpSGT(scaled, constant(0));
    llvm::Value* mantissa = ir_.CreateShl(rest, shift);
    llvm::Value* fraction = ir_.CreateAnd(mantissa, constant((uint64_t{1} << mantissa_bits_) - 1));
    llvm::Value* as_normal = ir_.CreateOr(fraction, ir_.CreateShl(scaled, mantissa_bits_));
    // A subnormal result: the exponent stands for 1, so shift down by what it lacks.
    llvm::Value* lack = ir_.CreateSelect(normal, constant(0), ir_.CreateSub(constant(1), scaled));
    llvm::Value* joined = ir_.CreateSelect(normal, as_normal, ir_.CreateLShr(mantissa, lack));
    return ir_.CreateSelect(zero, constant(0), joined);
  }

  llvm::Function* function_;
  llvm::IRBuilder<> ir_;
  llvm::Type* real_;
  llvm::IntegerType* bits_;
  unsigned mantissa_bits_, width_;
};

} // namespace

llvm::Function* fmod_function(const ModuleContext& context, llvm::Type* type) {
  std::string name = (type->isDoubleTy() ? "firn.fmod.f64" : "firn.fmod.f32") + context.suffix;
  if (llvm::Function* existing = context.module.getFunction(name)) return existing;
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, /*isVarArg=*/false),
                                          llvm::GlobalValue::InternalLinkage, name, context.module);
  context.set_attributes(*function);
  function->addFnAttr(llvm::Attribute::NoInline);
  FmodBuilder(function, type).build();
  return function;
}

} // namespace firn::codegen
