// Loops over elements and the reductions within their code: vectors, copies of the body, accumulators.
#pragma once

#include "compiler/plan/elements/plan.h"
#include "compiler/plan/options.h"
#include "compiler/target/machine.h"

namespace firn::plan {

// Whether code holds the elements of a constant as one number, without a place in memory.
bool is_immediate(const Literal& literal);

// Bits of an element while code computes with it: narrow floats are floats, truth values bytes.
int value_bits(DType dtype);

// The code for elements of `bits` bits.
ElementCode element_code(int bits, const Machine& target);
// Copies per iteration of a body that takes `operations` operations.
int64_t unroll_of(const ElementCode& code, int64_t operations);

// How loops over elements are cut into items: from `min_elements` on, into at least `wanted`. Whether sharing
// them pays is weighed once all of a kernel is known; without threads, the items only describe the loop.
struct ElementItems {
  int64_t min_elements, wanted;
};
// `k_extent`: steps that each element takes in a loop of its own.
ElementItems element_items(int threads, int64_t k_extent);
// How many steps of a loop an item takes, in a nest whose `outer` steps around that loop are items of their
// own and whose `inner` elements belong to each step: one, unless dividing an item's number by an extent that
// varies would take as long as its elements.
int64_t steps_of_item(const ElementItems& items, int64_t outer, const IntExpr& extent, int64_t inner);

// How many vectors an item takes of a single loop over up to `vectors` vectors: whole iterations of `unroll`
// copies.
int64_t vectors_of_item(const ElementItems& items, int64_t vectors, int64_t lanes, int64_t unroll);
// Copies per iteration of a loop over up to `vectors` vectors: loops of few iterations have one.
int64_t unroll_along(int64_t vectors, int64_t unroll);

// How many parts the slices of a scatter are cut into along their last dim of `extent`, each part an item
// that reads all indices: one, unless each takes enough of the `elements` of all updates, and some vectors.
int64_t parts_of_slices(int threads, int64_t elements, int64_t extent, int64_t lanes);

// How a reduction walks its elements: in vectors along neighbours in memory, in the blocks that its operand
// lies in, or one by one (every lane has its own result).
enum class ReductionWalk : uint8_t { Vectors, Blocks, Elements };
// Partial results that hide the latency of combining them, taken round robin along the innermost loop's
// steps.
int64_t accumulators_of(const ElementCode& code, const Instruction& reduce, ReductionWalk walk,
                        int64_t k_extent);

// The operand's blocks in which result `result` should be walked: it is plain but reduces an operand in
// blocks, as a mean over all positions does, so its vectors are vectors of the operand. Nothing if there are
// none.
std::optional<Layout::Block> reduced_blocks(const Instruction& instruction, int result);

// Why vectors cannot have so many lanes; empty: they can.
std::string check_lanes(int64_t lanes, const Machine& target);

// Completes a plan whose lanes are left to the cost model. Says why it cannot be followed; empty: it can.
std::string complete(ElementsPlan& plan, const Instruction& instruction, const Machine& target);

} // namespace firn::plan
