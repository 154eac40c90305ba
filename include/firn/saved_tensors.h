// Tensors of a program saved to bytes and loaded from them, C11 and C++17: the trained tensors of a model,
// and what its optimizer keeps. The bytes are a file of safetensors (github.com/huggingface/safetensors), so
// that tools and other frameworks read and write them:
//
//   8 bytes      number of bytes of the header, little-endian
//   the header   JSON, {"__metadata__":{"firn":"1"},"NAME":{"dtype":"F32","shape":[8,1,3,3],
//                "data_offsets":[0,288]},...}, with spaces up to a multiple of 8 bytes
//   the data     little-endian and row-major, without gaps
//
// Tensors come in the order of the format's own library: larger elements first, then by name. "firn" is the
// version of the format; other metadata are ignored, and there may be none. Everything else of a header has
// to be equal to the model's own for its tensors to be loaded.
#ifndef FIRN_SAVED_TENSORS_H
#define FIRN_SAVED_TENSORS_H

#include "firn/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// A tensor among saved ones: its part of the header, and its place in the program's memory.
typedef struct firn_rt2_saved_tensor {
  const char* entry; // "NAME":{...}
  size_t entry_bytes;
  size_t offset, bytes;
} firn_rt2_saved_tensor;

// Writes the tensors, which are given in the order of the format, to the first bytes of the memory. It has
// to have the bytes that they take, which generated headers know: FIRN_STATUS_TENSORS_UNFIT otherwise.
FIRN_HIDDEN firn_status firn_rt2_save_tensors(const firn_rt2_saved_tensor* tensors, size_t count,
                                              const unsigned char* from, void* to,
                                              size_t bytes) FIRN_NOEXCEPT;

// Reads the tensors, all or none: FIRN_STATUS_TENSORS_UNFIT if names, types, dims or the number of bytes are
// others.
FIRN_HIDDEN firn_status firn_rt2_load_tensors(const firn_rt2_saved_tensor* tensors, size_t count,
                                              unsigned char* to, const void* from,
                                              size_t bytes) FIRN_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
