// Operators that the program computes itself: what `firn compile --custom-op com.acme:FancyPool=fancy_pool`
// calls, as C11 and C++17. The function is the program's:
//
//   extern "C" int32_t fancy_pool(const firn_custom_call* call) {
//     const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
//     const firn_custom_tensor kernel = firn_custom_attribute(call, "kernel_shape"); // i64
//     ...
//     return 0;
//   }
//
// It returns 0, or a number from 1 to 255 of its own: run() then ends with FIRN_STATUS_CUSTOM_OP | number
// << 8. It is called on the thread that runs, or on one of those that it lends; what it computes depends on
// its inputs alone, and it keeps no address. Its stack comes on top of the model's stack_bytes.
#ifndef FIRN_CUSTOM_OP_H
#define FIRN_CUSTOM_OP_H

#include "firn/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// Types of elements, numbered as in ONNX.
enum {
  FIRN_DTYPE_F32 = 1,
  FIRN_DTYPE_U8 = 2,
  FIRN_DTYPE_I8 = 3,
  FIRN_DTYPE_U16 = 4,
  FIRN_DTYPE_I16 = 5,
  FIRN_DTYPE_I32 = 6,
  FIRN_DTYPE_I64 = 7,
  FIRN_DTYPE_STRING = 8, // firn_text of firn/text.h; inputs and attributes alone
  FIRN_DTYPE_BOOL = 9,   // one byte, 0 or 1
  FIRN_DTYPE_F16 = 10,
  FIRN_DTYPE_F64 = 11,
  FIRN_DTYPE_U32 = 12,
  FIRN_DTYPE_U64 = 13,
  FIRN_DTYPE_BF16 = 16
};

// Elements in row-major order without gaps. Of inputs and attributes they are read only.
typedef struct firn_custom_tensor {
  void* data;         // null: an input that is left out, or an attribute that the node does not have
  const size_t* dims; // `rank` extents
  int32_t rank;
  int32_t dtype;
} firn_custom_tensor;

// The call of an operator. Objects make it, and the functions below read it.
typedef struct firn_custom_call {
  size_t size;         // sizeof(firn_custom_call); later versions append fields
  const int32_t* info; // numbers of inputs, outputs and attributes; of each tensor FIRN_CUSTOM_WORDS words
  void* const* data;   // addresses of tensors that are there
  const size_t* dims;  // extents of those tensors, one tensor after the other
  void* workspace;     // 64-byte aligned; what it holds at first is anything
  size_t workspace_bytes;
} firn_custom_call;

// dtype, rank, number within data or -1, number of its first dim, and where its name begins, in words of
// info.
enum { FIRN_CUSTOM_WORDS = 5, FIRN_CUSTOM_FIRST = 3 };

FIRN_INLINE size_t firn_custom_input_count(const firn_custom_call* call) FIRN_NOEXCEPT {
  return FIRN_CAST(size_t, call->info[0]);
}
FIRN_INLINE size_t firn_custom_output_count(const firn_custom_call* call) FIRN_NOEXCEPT {
  return FIRN_CAST(size_t, call->info[1]);
}

// The tensor of that number: inputs come first, then outputs, then attributes.
FIRN_INLINE firn_custom_tensor firn_custom_tensor_at(const firn_custom_call* call,
                                                     size_t number) FIRN_NOEXCEPT {
  const int32_t* words = call->info + FIRN_CUSTOM_FIRST + number * FIRN_CUSTOM_WORDS;
  firn_custom_tensor tensor;
  tensor.dtype = words[0];
  tensor.rank = words[1];
  tensor.data = words[2] < 0 ? FIRN_NULL : call->data[words[2]];
  tensor.dims = call->dims + words[3];
  return tensor;
}
// One that is left out, and one behind the last, has null data.
FIRN_INLINE firn_custom_tensor firn_custom_input(const firn_custom_call* call, size_t number) FIRN_NOEXCEPT {
  const firn_custom_tensor none = {FIRN_NULL, FIRN_NULL, 0, 0};
  return number < firn_custom_input_count(call) ? firn_custom_tensor_at(call, number) : none;
}
FIRN_INLINE firn_custom_tensor firn_custom_output(const firn_custom_call* call, size_t number) FIRN_NOEXCEPT {
  const firn_custom_tensor none = {FIRN_NULL, FIRN_NULL, 0, 0};
  if (number >= firn_custom_output_count(call)) return none;
  return firn_custom_tensor_at(call, firn_custom_input_count(call) + number);
}
// Attributes are tensors: integers i64, reals f32, strings firn_text; one of a kind has rank 0, a list rank
// 1.
FIRN_INLINE firn_custom_tensor firn_custom_attribute(const firn_custom_call* call,
                                                     const char* name) FIRN_NOEXCEPT {
  const firn_custom_tensor none = {FIRN_NULL, FIRN_NULL, 0, 0};
  const size_t first = firn_custom_input_count(call) + firn_custom_output_count(call);
  size_t i, at;
  for (i = 0; i < FIRN_CAST(size_t, call->info[2]); ++i) {
    const int32_t* words = call->info + FIRN_CUSTOM_FIRST + (first + i) * FIRN_CUSTOM_WORDS;
    const void* bytes = call->info + words[4];
    const char* known = FIRN_CAST(const char*, bytes);
    for (at = 0; name[at] != 0 && name[at] == known[at]; ++at) continue;
    if (name[at] == known[at]) return firn_custom_tensor_at(call, first + i);
  }
  return none;
}
FIRN_INLINE size_t firn_custom_element_count(firn_custom_tensor tensor) FIRN_NOEXCEPT {
  size_t count = 1;
  int32_t i;
  for (i = 0; i < tensor.rank; ++i) count *= tensor.dims[i];
  return count;
}

#ifdef __cplusplus
}
#endif

#endif
