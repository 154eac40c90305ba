// The operations of the machine. Each function here gives the code of an operation, or is shared by several.
#pragma once

#include "compiler/ptx/warp.h"

namespace firn::ptx {

enum class BarrierForm { Sync, Arrive, Popc, And, Or };
// bar and barrier: rows a (number) and b (threads, 0: all), c (predicate), d (result); `count` != 0: aligned.
Execute barrier_op();
Execute branch_op(); // `value`: index of the target
Execute exit_op();
Execute trap_op();
Execute no_op();
Execute clock_op(); // d: instructions so far

// Loads and stores: row a + `value` is the address; rows of data are in the kernel's lists.
Execute load_op(int bytes, bool is_signed);
Execute store_op(int bytes);
enum class AtomicOp { Add, Min, Max, Inc, Dec, Cas, Exch, And, Or, Xor };
// d: the old value, b and c operands. `form`: 1 if there is no result.
Execute atomic_op(AtomicOp op, Type type);
Execute copy_async_op(); // d + value: shared, a + form: global; bytes in `bytes`, row b: bytes of the source
Execute copy_commit_op();
Execute copy_wait_op();         // `value`: groups that may be pending; -1: none, nor copies without a group
void finish_copies(Warp& warp); // at the end of the block

// Traffic that the statistics count.
void count_traffic(Warp& warp, const Op& op, Space space, const uint64_t* addresses, uint32_t mask, int width,
                   bool is_write);

enum class Use { Read, Write, Update };
// The bytes of a checked access: `space` and `address` are made those of the space that a generic address
// lies in. Null: the launch has failed.
uint8_t* access(Warp& warp, const Op& op, int lane, Space& space, uint64_t& address, int bytes, Use use);

// Operations that the lanes of a warp do together.
enum class ShuffleMode { Up, Down, Bfly, Idx };
Execute shuffle_op(ShuffleMode mode); // d|e = a, b, c, mask in the first row of the list
enum class VoteMode { All, Any, Uni, Ballot };
Execute vote_op(VoteMode mode); // d = predicate a (negated if `form`), mask b
enum class MatchMode { Any, All };
Execute match_op(MatchMode mode, bool is_wide); // d|e = a, mask b
Execute reduce_op(AtomicOp op, bool is_signed); // redux.sync: d = a, mask b
Execute warp_sync_op();                         // mask a
Execute active_mask_op();                       // d

Execute load_matrix_op();  // ldmatrix: `count` matrices into the list, `form` = 1: transposed
Execute store_matrix_op(); // stmatrix
// mma.sync: the list holds D, A, B, C; see decode_matrix.cpp.
struct MatrixShape {
  int m, n, k;
  Type d, a, b, c;
};
Execute matrix_op();

} // namespace firn::ptx
