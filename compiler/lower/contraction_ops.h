// Convolutions and dots of the graph as contractions: which dims become rows, columns and reduction loops,
// and where operands and results lie.
#pragma once

#include "compiler/lower/contraction.h"
#include "compiler/lower/element_emitter.h"
#include "compiler/lower/pack.h"
#include "compiler/lower/phase_convolution.h"
#include "compiler/lower/side_sums.h"

namespace firn::lower {

// A part of a tensor in memory of its own: the tensor's element `index` is the part's `index - first`.
struct TensorPart {
  Type type;
  Index first;
  Index within(const Index& index) const;
};

// What the code of a contraction refers to; filled in before it is emitted.
struct ContractionBinding {
  int scalar = -1, vector = -1, result = -1; // parameter numbers; no result: it is summed, and not stored
  int partial = -1;                          // sums between parts of the reduction
  Type result_type;                          // of what is stored
  // Set if the contraction computes the phases of a transposed convolution.
  std::shared_ptr<const PhaseConvolution> phases;
  // Of what `computed` computes for it: the result's own type but for phases.
  Type sums_type(const Instruction& computed) const {
    Type type = result_type;
    type.dims = computed.type().dims;
    return type;
  }
  std::optional<TensorPart> scalar_part, result_part; // that those parameters hold, rather than the whole
  SideSums* side_sums = nullptr;                      // what wants the sums of the result's positions
  bool by_lines = false;                              // the caller has the loop over lines of the image
  bool shares_vectors = false;                        // lanes behind a group's last channel are the next's
  int64_t weight_bytes = 0;                           // of the whole model, if this reads some of them
  const plan::Schedule* schedule = nullptr;           // what the schedule database says of this contraction
  bool compact = false;                               // small code before speed
  bool long_epilogue = false;                         // a copy of its code per accumulator would be too much
  DType sum_dtype = DType::F32; // of the contraction: sums are rounded to it before the epilogue
  // What the sums of `lanes` channels start from, the first of them `channel`. Unset: zeros.
  std::function<kernel::Value(kernel::Builder&, const IntExpr& channel, int lanes)> initial;
  // What is stored in place of the sums (in value_type of the contraction's dtype) at `index`. Unset: the
  // sums. The first `valid` lanes are inside the tensor.
  std::function<kernel::Value(kernel::Builder&, const Index&, const Lanes&, int valid, kernel::Value sums)>
      epilogue;
};
using BindingRef = std::shared_ptr<ContractionBinding>;

struct PreparedContraction {
  ContractionSpec spec;
  plan::Tiling tiling;
  PackedOperand packed; // of the vector operand, unless it is read where it lies
  bool vector_direct = false;
  bool swapped = false;  // dot: the lhs is the vector operand
  std::string algorithm; // for reports: "3x3 direct 7x4"
  int64_t flops = 0;
  int64_t partial_elements = 0; // of the sums between parts, if there are several
  int64_t tiles = 0;            // that give side sums, per vector of channels of an image; 0: none does
};

// One of the parts into which a reduction is cut; sums pass from one to the next in memory.
struct ReductionPart {
  int number = 0, count = 1;
  bool is_first() const { return number == 0; }
  bool is_last() const { return number + 1 == count; }
};

// Describes a convolution. Nothing if this emitter does not cover it (input dilation, integers or f64,
// layouts other than plain and blocked channels, depthwise).
std::optional<PreparedContraction>
prepare_convolution(const Instruction& convolution, const BindingRef& binding, const TargetMachine& target);
// Likewise for a dot; the flags say which operands can be packed at compile time. Where the tiling asks for
// parts, each of them is prepared by a call of its own.
std::optional<PreparedContraction> prepare_dot(const Instruction& dot, bool lhs_constant, bool rhs_constant,
                                               const BindingRef& binding, const TargetMachine& target,
                                               ReductionPart part = {});

// Runs the epilogue and stores one vector of results whose lanes lie along `lane_dim`, first at
// index[lane_dim] of what the contraction computes. Returns the results; phases have none.
kernel::Value finish_lanes(kernel::Builder& builder, const ContractionBinding& binding, Index index,
                           int lane_dim, int lanes, int valid, kernel::Value sums);
// Reads a tensor as load_element does, but no memory outside it: lanes from `valid` on, and those whose index
// lies outside when the code runs, hold anything.
kernel::Value load_valid_lanes(kernel::Builder& builder, int buffer, const Type& type, const Index& index,
                               const Lanes& lanes, int valid);

// `count` consecutive channels from index[1] on, which a blocked layout keeps together.
kernel::Value load_channels(kernel::Builder& builder, int buffer, const Type& type, const Index& index,
                            int count);

// Lowers a dot, a convolution, or a contraction fusion to kernels. False, with nothing added, if it is not
// covered.
bool emit_contraction(LoweringContext& context, const Instruction& instruction);

} // namespace firn::lower
