// x86: VNNI and its older likes, bf16, estimates, tables in registers.
#include "compiler/codegen/emit_x86_narrowing.h"
#include "compiler/codegen/emit_x86_tiles.h"
#include "compiler/codegen/instruction_set.h"
#include "compiler/codegen/vector_parts.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <utility>

namespace firn::codegen {
namespace {

// The intrinsic for as many lanes of 32 bits: of 16, of 8, or of 4.
llvm::Intrinsic::ID by_lanes(int lanes, llvm::Intrinsic::ID of_16, llvm::Intrinsic::ID of_8,
                             llvm::Intrinsic::ID of_4) {
  return lanes == 16 ? of_16 : lanes == 8 ? of_8 : of_4;
}

class X86Instructions : public InstructionSet {
public:
  using InstructionSet::InstructionSet;

  llvm::Value* multiply(const MacOperation& product, llvm::Value* sum, llvm::Value* a,
                        llvm::Value* b) override {
    switch (product.kind) {
    case MacOperation::Kind::BF16: return bf16_dot2(sum, a, b);
    case MacOperation::Kind::I16: {
      llvm::Type* halves = lanes_like(ir_.getInt16Ty(), a);
      return ir_.CreateAdd(
          sum, multiply_pairs(lanes_of(sum), ir_.CreateBitCast(a, halves), ir_.CreateBitCast(b, halves)));
    }
    case MacOperation::Kind::NarrowBytes: return narrow_dot4(sum, a, b);
    case MacOperation::Kind::Bytes: break;
    }
    return product.form == MacForm::Native ? dot4(product, sum, a, b) : dot4_pairs(product, sum, a, b);
  }

  // Division is slow: a step of Newton's method refines an estimate e of 14 bits, e (2 - a e).
  llvm::Value* reciprocal(llvm::Value* a) override {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
    unsigned lanes = vector && vector->getElementType()->isFloatTy() ? vector->getNumElements() : 1;
    if (!target_.cpu.has_reciprocal_estimate || (lanes != 4 && lanes != 8 && lanes != 16)) return nullptr;
    llvm::Intrinsic::ID id =
        by_lanes(static_cast<int>(lanes), llvm::Intrinsic::x86_avx512_rcp14_ps_512,
                 llvm::Intrinsic::x86_avx512_rcp14_ps_256, llvm::Intrinsic::x86_avx512_rcp14_ps_128);
    llvm::Value* all = llvm::ConstantInt::getAllOnesValue(ir_.getIntNTy(std::max(lanes, 8u)));
    llvm::Value* estimate = ir_.CreateIntrinsic(id, {}, {a, llvm::Constant::getNullValue(a->getType()), all});
    llvm::Value* two = llvm::ConstantFP::get(a->getType(), 2);
    llvm::Value* correction =
        ir_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {ir_.CreateFNeg(a), estimate, two});
    return ir_.CreateFMul(estimate, correction);
  }

  llvm::Value* round_to_bf16(llvm::Value* value) override {
    int lanes = lanes_of(value);
    if (lanes * 32 > target_.cpu.bf16_rounding_bits || (lanes != 8 && lanes != 16)) return nullptr;
    return ir_.CreateIntrinsic(lanes == 16 ? llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512
                                           : llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256,
                               {}, {value});
  }

  // The conversion of f32 to i32 rounds like all of x86's instructions.
  llvm::Value* round_to_words(llvm::Value* value, llvm::Type* words) override {
    bool fits = words->getScalarType()->isIntegerTy(32) && value->getType()->getScalarType()->isFloatTy();
    if (!fits) return nullptr;
    return ir_.CreateIntrinsic(llvm::Intrinsic::lrint, {words, value->getType()}, {value});
  }

  llvm::Value* narrow(const kernel::Op& op, llvm::Value* number, llvm::Type* integers) override {
    return narrow_on_x86(target_, ir_, op, number, integers);
  }
  std::optional<NarrowedBytes> joinable(const kernel::Op& op, llvm::Value* number,
                                        llvm::Type* integers) override {
    return joinable_on_x86(target_, op, number, integers);
  }
  llvm::Value* narrow_together(std::span<const NarrowedBytes> all) override {
    return narrow_together_on_x86(ir_, all);
  }

  // One permutation looks up 16 words.
  llvm::Value* look_up(llvm::Value* table, llvm::Value* numbers) override {
    bool is_register = lanes_of(table) == 16 && lanes_of(numbers) == 16 && target_.cpu.has_word_tables;
    if (!is_register || !table->getType()->getScalarType()->isFloatTy()) return nullptr;
    return ir_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {table, numbers});
  }

  // Looks up in the table's first half or its second, as the top bit of each byte says.
  llvm::Value* look_up_bytes(llvm::Value* table, llvm::Value* bytes) override {
    if (!target_.cpu.has_byte_tables) return nullptr;
    constexpr int kRegister = 64;
    auto* whole = llvm::FixedVectorType::get(ir_.getInt8Ty(), kRegister);
    llvm::Value* parts[4];
    for (unsigned i = 0; i < 4; ++i)
      parts[i] = ir_.CreateAlignedLoad(whole, ir_.CreateConstGEP1_32(ir_.getInt8Ty(), table, kRegister * i),
                                       llvm::Align(1));
    const int lanes = lanes_of(bytes);
    std::vector<llvm::Value*> found;
    for (int first = 0; first < lanes; first += kRegister) {
      std::vector<int> order;
      for (int lane = 0; lane < kRegister; ++lane) order.push_back(std::min(first + lane, lanes - 1));
      llvm::Value* indices =
          lanes == kRegister
              ? bytes
              : ir_.CreateShuffleVector(bytes, llvm::PoisonValue::get(bytes->getType()), order);
      auto half = [&](int i) {
        return ir_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, {},
                                   {parts[2 * i], indices, parts[2 * i + 1]});
      };
      llvm::Value* is_upper = ir_.CreateICmpSLT(indices, llvm::Constant::getNullValue(whole));
      found.push_back(
          slice(ir_, ir_.CreateSelect(is_upper, half(1), half(0)), 0, std::min(kRegister, lanes - first)));
    }
    return concatenate(ir_, found);
  }

  // Hides from LLVM how a vector was made whose bytes an instruction permutes (vpermb). It would join the
  // vector's parts in the one that permutes the bytes of two registers (vpermt2b), which takes three times as
  // long.
  llvm::Value* shuffled(llvm::Value* vector, const std::vector<int>& lanes) override {
    auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
    bool permutes_bytes = target_.cpu.has_byte_tables && type->getElementType()->isIntegerTy(8) &&
                          lanes.size() == type->getNumElements() &&
                          static_cast<int>(lanes.size()) * 8 == target_.cpu.register_bits();
    if (!permutes_bytes) return vector;
    unsigned words = type->getPrimitiveSizeInBits().getFixedValue() / 32;
    auto* floats = llvm::FixedVectorType::get(ir_.getFloatTy(), words);
    llvm::Value* fenced =
        ir_.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {floats}, {ir_.CreateBitCast(vector, floats)});
    return ir_.CreateBitCast(fenced, type);
  }

  void configure_tiles(const std::vector<kernel::MatrixTile>& tiles) override {
    configure_x86_tiles(module_, ir_, tiles);
  }
  void release_tiles() override { release_x86_tiles(ir_); }
  void emit_tile(const kernel::Op& op, llvm::Value* pointer, int64_t element_bytes) override {
    emit_x86_tile(ir_, op, pointer, element_bytes);
  }

  void pause() override { ir_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_pause, {}, {}); }

private:
  // Multiplies i16 lanes and sums neighbouring pairs.
  llvm::Value* multiply_pairs(int lanes, llvm::Value* x, llvm::Value* y) {
    return ir_.CreateIntrinsic(by_lanes(lanes, llvm::Intrinsic::x86_avx512_pmaddw_d_512,
                                        llvm::Intrinsic::x86_avx2_pmadd_wd,
                                        llvm::Intrinsic::x86_sse2_pmadd_wd),
                               {}, {x, y});
  }

  // Multiplies unsigned by signed bytes and sums neighbouring pairs in 16 bits.
  llvm::Value* multiply_byte_pairs(int lanes, llvm::Value* x, llvm::Value* y) {
    return ir_.CreateIntrinsic(by_lanes(lanes, llvm::Intrinsic::x86_avx512_pmaddubs_w_512,
                                        llvm::Intrinsic::x86_avx2_pmadd_ub_sw,
                                        llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128),
                               {}, {x, y});
  }

  llvm::Value* dot4(const MacOperation& product, llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    if (product.lhs == Factor::S8 && product.rhs == Factor::U8) std::swap(a, b);
    return ir_.CreateIntrinsic(by_lanes(lanes_of(sum), llvm::Intrinsic::x86_avx512_vpdpbusd_512,
                                        llvm::Intrinsic::x86_avx512_vpdpbusd_256,
                                        llvm::Intrinsic::x86_avx512_vpdpbusd_128),
                               {}, {sum, a, b});
  }

  llvm::Value* narrow_dot4(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    llvm::Type* bytes = lanes_like(ir_.getInt8Ty(), a);
    llvm::Value* pairs =
        multiply_byte_pairs(lanes_of(sum), ir_.CreateBitCast(a, bytes), ir_.CreateBitCast(b, bytes));
    llvm::Value* ones = llvm::ConstantInt::get(pairs->getType(), 1);
    return ir_.CreateAdd(sum, multiply_pairs(lanes_of(sum), pairs, ones));
  }

  // A lane adds two 16-bit products of its even steps, and two of its odd ones.
  llvm::Value* dot4_pairs(const MacOperation& product, llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    llvm::Value* added[2] = {};
    for (bool odd : {false, true}) {
      llvm::Value *x = alternate_bytes(ir_, a, product.lhs == Factor::S8, odd),
                  *y = alternate_bytes(ir_, b, product.rhs == Factor::S8, odd);
      added[odd] = multiply_pairs(lanes_of(sum), x, y);
    }
    return ir_.CreateAdd(sum, ir_.CreateAdd(added[0], added[1]));
  }

  llvm::Value* bf16_dot2(llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
    llvm::Type* halves = lanes_like(llvm::Type::getBFloatTy(ir_.getContext()), a);
    a = ir_.CreateBitCast(a, halves);
    b = ir_.CreateBitCast(b, halves);
    return ir_.CreateIntrinsic(by_lanes(lanes_of(sum), llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512,
                                        llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256,
                                        llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128),
                               {}, {sum, a, b});
  }
};

} // namespace

std::unique_ptr<InstructionSet> make_x86(const Machine& target, llvm::Module& module, llvm::IRBuilder<>& ir) {
  return std::make_unique<X86Instructions>(target, module, ir);
}

} // namespace firn::codegen
