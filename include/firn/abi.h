// What generated headers, model objects and the runtime share, as C11 and C++17. Frozen: an incompatible
// change takes a new ABI number and new symbol names (firn_rt2_...), so that models of different Firn
// versions live in one program.
#ifndef FIRN_ABI_H
#define FIRN_ABI_H

#include <stddef.h>
#include <stdint.h>

#define FIRN_ABI 1

// Not exported by the shared library that a program or model is linked into: each library and program uses
// its own.
#if defined(__GNUC__) && !defined(_WIN32) && !defined(__CYGWIN__)
#define FIRN_HIDDEN __attribute__((visibility("hidden")))
// The same for member templates of class templates, where Clang before 18 forgets the attribute.
#define FIRN_HIDDEN_TEMPLATE __attribute__((visibility("hidden"), always_inline))
#else
#define FIRN_HIDDEN
#define FIRN_HIDDEN_TEMPLATE
#endif

#ifdef __cplusplus
#define FIRN_NOEXCEPT noexcept
#define FIRN_INLINE FIRN_HIDDEN inline
extern "C" {
#else
#define FIRN_NOEXCEPT
#define FIRN_INLINE static inline
#endif

// 0 is success; otherwise the low 8 bits are a FIRN_STATUS_ code and the next 8 bits a detail that
// firn_rt1_status_message() turns into text.
typedef int32_t firn_status;

enum {
  FIRN_STATUS_OK = 0,
  FIRN_STATUS_NOT_INITIALISED = 1, // never initialised, or moved from
  FIRN_STATUS_UNSUPPORTED_CPU = 2, // detail: number of the first missing feature (firn/cpu_features.h)
  FIRN_STATUS_ARENA_TOO_SMALL = 3,
  FIRN_STATUS_ARENA_MISALIGNED = 4, // room for the arena, but none for aligning it
  FIRN_STATUS_WEIGHTS_SIZE = 5, // bound or prepared weights are not weight_bytes long, raw ones not theirs
  FIRN_STATUS_WEIGHTS_MISALIGNED = 6,
  FIRN_STATUS_NOT_BOUND = 7,    // an external input or output has no buffer
  FIRN_STATUS_NO_MEMORY = 8,    // the memory for the arena is null: an allocation failed
  FIRN_STATUS_OUT_OF_RANGE = 9, // an index or size, argument or computed, beyond its bound
  FIRN_STATUS_NO_WEIGHTS = 10   // the object embeds none and none were bound
};

// Architectures that feature masks speak about.
enum { FIRN_ARCH_OTHER = 0, FIRN_ARCH_X86_64 = 1, FIRN_ARCH_AARCH64 = 2, FIRN_ARCH_ARM = 3 };

// Alignment of the packed weights, embedded or bound.
enum { FIRN_WEIGHT_ALIGNMENT = 64 };

// One piece of parallel work: must be called once for each index below the count.
typedef void (*firn_task)(void* task_data, size_t index);

// Runs tasks for a model. parallel_for calls task(task_data, i) once for every i < count, in any order and on
// any threads, and returns when all calls have returned.
typedef struct firn_executor {
  void* context;
  void (*parallel_for)(void* context, size_t count, firn_task task, void* task_data);
} firn_executor;

// The argument of an object's run function. inputs and outputs hold one pointer each in the order of the
// model: a slot of the arena or a buffer of the caller, aligned for its element type.
typedef struct firn_rt1_call {
  unsigned char* arena;         // aligned as the header says
  const unsigned char* weights; // packed, FIRN_WEIGHT_ALIGNMENT aligned
  const void* const* inputs;
  void* const* outputs;
  const firn_executor* executor; // null: run on the calling thread
} firn_rt1_call;

// An object defines, with PREFIX from the class name and HASH of interface and content, hidden:
//   firn_status PREFIX_run_a1_HASH(const firn_rt1_call*);       computes; FIRN_STATUS_OK or why not
//   const unsigned char* PREFIX_weights_a1_HASH(void);          its embedded weights, null if there are none
// and, if those are raw weights from which the packed ones are made before the first run:
//   firn_status PREFIX_prepare_a1_HASH(const firn_rt1_call*);   arena: where to; weights: the raw ones

// The text of a status: static storage, never null.
FIRN_HIDDEN const char* firn_rt1_status_message(firn_status status) FIRN_NOEXCEPT;

// FIRN_STATUS_OK if this CPU and its operating system have every feature of the mask (bits are the numbers in
// firn/cpu_features.h), else FIRN_STATUS_UNSUPPORTED_CPU with the first one missing.
FIRN_HIDDEN firn_status firn_rt1_check_cpu(int32_t architecture, uint64_t features) FIRN_NOEXCEPT;

// The first address within memory that is aligned and has room for need bytes; null with a status if there is
// none.
FIRN_INLINE unsigned char* firn_rt1_place_arena(void* memory, size_t bytes, size_t need, size_t alignment,
                                                firn_status* status) FIRN_NOEXCEPT {
  const size_t excess = (size_t)((uintptr_t)memory & (alignment - 1));
  const size_t slack = excess == 0 ? 0 : alignment - excess;
  *status = FIRN_STATUS_OK;
  if (!memory) {
    *status = FIRN_STATUS_NO_MEMORY;
  } else if (bytes < need) {
    *status = FIRN_STATUS_ARENA_TOO_SMALL;
  } else if (bytes - need < slack) {
    *status = FIRN_STATUS_ARENA_MISALIGNED;
  }
  return *status == FIRN_STATUS_OK ? (unsigned char*)memory + slack : (unsigned char*)0;
}

// A tensor in the arena; null without one.
FIRN_INLINE void* firn_rt1_slot(unsigned char* arena, size_t offset) FIRN_NOEXCEPT {
  return arena ? arena + offset : (unsigned char*)0;
}

#ifdef __cplusplus
}
#endif

#endif
