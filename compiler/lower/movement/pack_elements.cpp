// Elements of fewer than 8 bits, several in a byte, low bits first: how they lie in inputs, outputs, states
// and constants. A byte is written once and whole, so that code for them walks bytes; what begins in the
// middle of one has no address. Everywhere else such elements lie one to a byte
// (passes/precision/legalise_narrow_types.cpp).
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/movement/plan.h"

namespace firn::lower {
namespace {

using kernel::OpKind;

class PackElements {
public:
  PackElements(KernelMaker& maker, const Instruction& convert, const plan::ElementCode& code)
      : maker_(maker), b_(maker.builder()), convert_(convert), code_(code), from_(convert.operand(0).type()),
        to_(convert.type().dtype), bits_(bit_width(to_)), per_byte_(8 / bits_),
        in_(maker.read(convert.operand(0))), out_(maker.write(result_of(convert))) {
    for (const IntExpr& extent : from_.physical_extents()) elements_ = elements_ * extent;
  }

  void emit() {
    ElementLoops loops;
    loops.type = Type::tensor(DType::U8, {Dim(ceil_div(elements_, per_byte_))});
    loops.code = code_;
    loops.uses = [&](const Index& index) {
      ElementUses uses;
      uses.offsets = {index[0]};
      if (from_.is_static()) uses.split_points.push_back({index[0], elements_.value() / per_byte_, false});
      uses.operations = per_byte_ * 8; // kernel ops, about 8 for an element
      return uses;
    };
    loops.body = [&](const Index& index, const Lanes& lanes) {
      kernel::Register byte =
          lanes.count > 1 ? whole_bytes(index[0], lanes) : one_byte(lanes.at_first(index[0]));
      store_at(b_, out_, DType::U8, index[0], lanes, byte);
    };
    emit_element_loops(maker_, loops);
  }

private:
  kernel::Register converted(kernel::Register value) {
    KernelScalars scalars(b_);
    return scalar_ops::convert(scalars, from_.dtype, to_, value, convert_.attributes().flag("saturate"));
  }

  // Element `number` of its byte, shifted to its place there.
  kernel::Register in_place(kernel::Register element, int number) {
    kernel::MachineType type = b_.type(element);
    kernel::Register low = b_.binary(OpKind::And, element, b_.constant_int(type, (1 << bits_) - 1));
    return b_.binary(OpKind::Shl, low, b_.constant_int(type, number * bits_));
  }

  kernel::Register whole_bytes(const IntExpr& at, const Lanes& bytes) {
    int count = bytes.count * per_byte_;
    SymbolRef element = std::make_shared<const Symbol>(
        Symbol{"element", 0, std::max<int64_t>(0, elements_.upper_bound() - 1)});
    Lanes elements{element, bytes.at_first(at) * per_byte_, count};
    kernel::Register values = converted(load_at(b_, in_, from_.dtype, IntExpr::symbol(element), elements));
    kernel::Register result;
    for (int number = 0; number < per_byte_; ++number) {
      std::vector<int64_t> order;
      for (int i = number; i < count; i += per_byte_) order.push_back(i);
      kernel::Register part = in_place(b_.shuffle(values, values, std::move(order)), number);
      result = number == 0 ? part : b_.binary(OpKind::Or, result, part);
    }
    return result;
  }

  // Unused bits of a tensor's last byte are zeros.
  kernel::Register one_byte(const IntExpr& at) {
    kernel::Register result;
    for (int number = 0; number < per_byte_; ++number) {
      IntExpr place = at * per_byte_ + number;
      if ((place - elements_).lower_bound() >= 0) break;
      bool is_there = (place - elements_).upper_bound() < 0;
      kernel::Register value =
          converted(load_at(b_, in_, from_.dtype, is_there ? place : min(place, elements_ - 1), Lanes{}));
      kernel::Register part = in_place(value, number);
      if (!is_there) {
        kernel::Register within =
            b_.compare(OpKind::SCmp, kernel::Predicate::Lt, b_.index(place), b_.index(elements_));
        part = b_.select(within, part, b_.constant_int(b_.type(part), 0));
      }
      result = number == 0 ? part : b_.binary(OpKind::Or, result, part);
    }
    return result;
  }

  KernelMaker& maker_;
  kernel::Builder& b_;
  const Instruction& convert_;
  const plan::ElementCode& code_;
  const Type& from_;
  DType to_;
  int bits_, per_byte_, in_, out_;
  IntExpr elements_ = 1;
};

} // namespace

void emit_pack_elements(LoweringContext& context, const Instruction& convert,
                        const plan::MovementPlan& plan) {
  if (convert.type().at_bound().num_elements() == 0) return;
  KernelMaker maker(context, convert, "pack_elements");
  PackElements(maker, convert, plan.code).emit();
  maker.set_flops(convert.type().at_bound().num_elements());
  maker.finish();
}

} // namespace firn::lower
