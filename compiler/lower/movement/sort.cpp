// Sort, and top_k of many, by one stable merge sort: passes over runs of doubling width between the result
// and a scratch buffer. The merge takes the right element only if it must come before the left one, so any
// comparator terminates.
#include "compiler/lower/movement/sort.h"

#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/element/kernel_scalars.h"
#include "compiler/lower/emitters.h"
#include "compiler/lower/kernel_maker.h"
#include "compiler/plan/fixed/plan.h"

#include <bit>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using Registers = std::vector<kernel::Register>;

// One array of a line being sorted: its element at a position.
struct Array {
  DType dtype;
  int buffer;
  std::function<IntExpr(const IntExpr&)> offset;
};

class MergeSort {
public:
  // `before(right, left)`: whether the right elements must come before the left ones.
  using Before = std::function<kernel::Register(const Registers& right, const Registers& left)>;
  MergeSort(Builder& builder, IntExpr extent, Before before)
      : b_(builder), extent_(std::move(extent)), before_(std::move(before)) {}

  // Sorts `data`; `scratch` is as large.
  void emit(const std::vector<Array>& data, const std::vector<Array>& scratch) {
    kernel::MachineType type{kernel::Scalar::I64, 1};
    int64_t pairs = 0; // pairs of passes, there and back: the last pass may be a plain copy
    for (int64_t width = 1; width < extent_.upper_bound(); width *= 4) ++pairs;
    b_.loop_carried(0, pairs, 1, {b_.constant_int(type, 1)}, [&](const IntExpr&, const Registers& carried) {
      kernel::Register width = carried[0];
      emit_pass(data, scratch, width);
      width = b_.binary(OpKind::IAdd, width, width);
      emit_pass(scratch, data, width);
      return Registers{b_.binary(OpKind::IAdd, width, width)};
    });
  }

private:
  kernel::Register number(int64_t value) { return b_.constant_int({kernel::Scalar::I64, 1}, value); }
  kernel::Register number(const IntExpr& value) {
    return value.is_constant() ? number(value.value())
                               : b_.cast(OpKind::IndexCast, b_.index(value), kernel::Scalar::I64);
  }
  kernel::Register add(kernel::Register a, kernel::Register c) { return b_.binary(OpKind::IAdd, a, c); }
  kernel::Register lowest(kernel::Register a, kernel::Register c) { return b_.binary(OpKind::SMin, a, c); }
  kernel::Register less(kernel::Register a, kernel::Register c) {
    return b_.compare(OpKind::SCmp, kernel::Predicate::Lt, a, c);
  }

  Registers load(const std::vector<Array>& arrays, kernel::Register position) {
    IntExpr at = clamped_symbol(b_, position, 0, extent_ - 1);
    Registers values;
    for (const Array& array : arrays)
      values.push_back(load_at(b_, array.buffer, array.dtype, array.offset(at), {}));
    return values;
  }

  // Merges neighbouring runs of `width`, a power of two.
  void emit_pass(const std::vector<Array>& from, const std::vector<Array>& to, kernel::Register width) {
    kernel::Register two = add(width, width), mask = add(two, number(int64_t{-1}));
    b_.loop_carried(0, extent_, 1, {number(int64_t{0}), number(int64_t{0})},
                    [&](const IntExpr& k, const Registers& carried) {
                      kernel::Register at = b_.cast(OpKind::IndexCast, b_.index(k), kernel::Scalar::I64);
                      kernel::Register within = b_.binary(OpKind::And, at, mask);
                      kernel::Register start = b_.binary(OpKind::ISub, at, within);
                      kernel::Register middle = lowest(add(start, width), number(extent_)),
                                       end = lowest(add(start, two), number(extent_));
                      kernel::Register first =
                          b_.compare(OpKind::SCmp, kernel::Predicate::Eq, within, number(int64_t{0}));
                      kernel::Register left = b_.select(first, start, carried[0]),
                                       right = b_.select(first, middle, carried[1]);
                      Registers left_values = load(from, left), right_values = load(from, right);
                      kernel::Register left_empty = b_.binary(OpKind::Xor, less(left, middle),
                                                              b_.constant_int({kernel::Scalar::I1, 1}, 1));
                      kernel::Register take_right =
                          b_.binary(OpKind::Or, left_empty, before_(right_values, left_values));
                      take_right = b_.binary(OpKind::And, take_right, less(right, end));
                      for (size_t i = 0; i < to.size(); ++i)
                        store_at(b_, to[i].buffer, to[i].dtype, to[i].offset(k), {},
                                 b_.select(take_right, right_values[i], left_values[i]));
                      kernel::Register one = number(int64_t{1});
                      return Registers{b_.select(take_right, left, add(left, one)),
                                       b_.select(take_right, add(right, one), right)};
                    });
  }

  Builder& b_;
  IntExpr extent_;
  Before before_;
};

Array scratch_array(KernelMaker& maker, DType dtype, const IntExpr& extent) {
  int parameter = maker.scratch(memory_scalar(dtype), extent.upper_bound(), "sorted");
  return {dtype, parameter, [](const IntExpr& at) { return at; }};
}

Array line_of(const Type& type, int buffer, const Index& line, size_t dim) {
  return {type.dtype, buffer, [&type, line, dim](const IntExpr& at) {
            Index index = line;
            index[dim] = at;
            return type.offset_of(index);
          }};
}

// Whether a is smaller than c, where NaN counts as larger than every number.
kernel::Register smaller(Builder& b, DType dtype, kernel::Register a, kernel::Register c) {
  KernelScalars scalars(b);
  kernel::Register less = scalar_ops::compare(scalars, "lt", dtype, a, c);
  if (!is_float(dtype)) return less;
  kernel::Register a_number = scalars.fcmp(Cmp::Eq, a, a), c_nan = scalars.fcmp(Cmp::Ne, c, c);
  return scalars.ior(less, scalars.iand(a_number, c_nan));
}

} // namespace

void emit_sort_lines(KernelMaker& maker, const Type& type, size_t dim,
                     const std::function<void(const Index&)>& body) {
  ElementLoops loops;
  loops.type = Type::tensor(type.dtype, type.dims);
  loops.type.dims[dim] = Dim(1);
  loops.code.lanes = 1;
  int64_t extent = type.dims[dim].extent.upper_bound();
  loops.parallel = maker.context().options().goals.threads > 1;
  loops.body_k = extent * std::bit_width(static_cast<uint64_t>(extent));
  loops.uses = [&](const Index& index) {
    ElementUses uses;
    uses.decisions = index;
    uses.operations = 100;
    return uses;
  };
  loops.body = [&](const Index& index, const Lanes&) { body(index); };
  emit_element_loops(maker, loops);
}

void emit_sort(LoweringContext& context, const Instruction& sort, const plan::FixedPlan&) {
  const Type& type = sort.type();
  if (type.is_static() && type.num_elements() == 0) return;
  size_t dim = static_cast<size_t>(sort.attributes().integer("dim")),
         count = static_cast<size_t>(sort.num_operands());
  const IntExpr& extent = type.dims[dim].extent;
  KernelMaker maker(context, sort, "sort");
  Builder& b = maker.builder();
  std::vector<int> in, out;
  std::vector<Array> scratch;
  for (size_t i = 0; i < count; ++i) {
    in.push_back(maker.read(sort.operand(static_cast<int>(i))));
    out.push_back(maker.write(result_of(sort, static_cast<int>(i))));
    scratch.push_back(scratch_array(maker, sort.operand(static_cast<int>(i)).dtype(), extent));
  }
  MergeSort merge(b, extent, [&](const Registers& right, const Registers& left) {
    const Region& region = sort.region();
    ElementEmitter emitter(b);
    for (size_t i = 0; i < count; ++i) {
      emitter.bind(region.parameter(static_cast<int>(2 * i)),
                   [v = right[i]](const Index&, const Lanes&) { return v; });
      emitter.bind(region.parameter(static_cast<int>(2 * i + 1)),
                   [v = left[i]](const Index&, const Lanes&) { return v; });
    }
    return emitter.emit(region.results()[0], {});
  });
  emit_sort_lines(maker, type, dim, [&](const Index& line) {
    std::vector<Array> data;
    for (size_t i = 0; i < count; ++i)
      data.push_back(line_of(sort.type(static_cast<int>(i)), out[i], line, dim));
    b.loop(0, extent, 1, [&](const IntExpr& k) {
      Index at = line;
      at[dim] = k;
      for (size_t i = 0; i < count; ++i) {
        const Type& from = sort.operand(static_cast<int>(i)).type();
        store_at(b, out[i], from.dtype, data[i].offset(k), {}, load_element(b, in[i], from, at, {}));
      }
    });
    merge.emit(data, scratch);
  });
  maker.finish();
}

void emit_sorted_top_k(LoweringContext& context, const Instruction& top_k) {
  Value operand = top_k.operand(0);
  size_t dim = static_cast<size_t>(top_k.attributes().integer("dim"));
  const IntExpr &extent = operand.type().dims[dim].extent, &kept = top_k.type().dims[dim].extent;
  bool largest = top_k.attributes().flag("largest", true);
  DType dtype = operand.dtype();
  KernelMaker maker(context, top_k, "top_k");
  Builder& b = maker.builder();
  int in = maker.read(operand), values = maker.write(result_of(top_k, 0)),
      indices = maker.write(result_of(top_k, 1));
  std::vector<Array> data = {scratch_array(maker, dtype, extent), scratch_array(maker, DType::I64, extent)};
  std::vector<Array> scratch = {scratch_array(maker, dtype, extent),
                                scratch_array(maker, DType::I64, extent)};
  // The sort is stable: equal values keep the order of their indices.
  MergeSort merge(b, extent, [&](const Registers& right, const Registers& left) {
    return largest ? smaller(b, dtype, left[0], right[0]) : smaller(b, dtype, right[0], left[0]);
  });
  emit_sort_lines(maker, operand.type(), dim, [&](const Index& line) {
    Index at = line;
    b.loop(0, extent, 1, [&](const IntExpr& k) {
      at[dim] = k;
      store_at(b, data[0].buffer, dtype, k, {}, load_element(b, in, operand.type(), at, {}));
      store_at(b, data[1].buffer, DType::I64, k, {}, index_lanes(b, k, {}));
    });
    merge.emit(data, scratch);
    b.loop(0, kept, 1, [&](const IntExpr& k) {
      at[dim] = k;
      store_element(b, values, top_k.type(0), at, {}, load_at(b, data[0].buffer, dtype, k, {}));
      store_element(b, indices, top_k.type(1), at, {}, load_at(b, data[1].buffer, DType::I64, k, {}));
    });
  });
  maker.finish();
}

} // namespace firn::lower
