// The interface of generated headers, model objects and the runtime, C11 and C++17. Frozen: an incompatible
// change takes a new ABI number and new symbol names (firn_rt3_...), so that models of different Firn
// versions live in one program.
#ifndef FIRN_ABI_H
#define FIRN_ABI_H

#include <stddef.h>
#include <stdint.h>

#define FIRN_ABI 2

// Not exported by the shared library that a program or model is linked into: each library and program uses
// its own.
#if defined(__GNUC__) && !defined(_WIN32) && !defined(__CYGWIN__)
#define FIRN_HIDDEN __attribute__((visibility("hidden")))
// Member templates of class templates are always inlined, because Clang before 18 forgets to hide them.
#define FIRN_HIDDEN_TEMPLATE __attribute__((visibility("hidden"), always_inline))
#else
#define FIRN_HIDDEN
#define FIRN_HIDDEN_TEMPLATE
#endif

#ifdef __cplusplus
#define FIRN_NOEXCEPT noexcept
#define FIRN_INLINE FIRN_HIDDEN inline
#define FIRN_CAST(type, value) static_cast<type>(value)
#define FIRN_ADDRESS(pointer) reinterpret_cast<uintptr_t>(pointer)
#define FIRN_NULL nullptr
extern "C" {
#else
#define FIRN_NOEXCEPT
#define FIRN_INLINE static inline
#define FIRN_CAST(type, value) ((type)(value))
#define FIRN_ADDRESS(pointer) ((uintptr_t)(pointer))
#define FIRN_NULL ((void*)0)
#endif

// 0 is success; otherwise the low 8 bits are a FIRN_STATUS_ code and the next 8 bits a detail that
// firn_rt2_status_message() turns into text. Bits above these hold the number of a dim, if the detail says
// so.
typedef int32_t firn_status;

enum {
  FIRN_STATUS_OK = 0,
  FIRN_STATUS_NOT_INITIALISED = 1, // never initialised, or moved from
  // Detail: the number of the first missing feature (firn/cpu_features.h); 0xfe: the object has no code for a
  // CPU of that name.
  FIRN_STATUS_UNSUPPORTED_CPU = 2,
  FIRN_STATUS_ARENA_TOO_SMALL = 3,
  FIRN_STATUS_ARENA_MISALIGNED = 4, // room for the arena, but none for aligning it
  FIRN_STATUS_WEIGHTS_SIZE = 5, // bound or prepared weights are not weight_bytes long, raw ones not theirs
  FIRN_STATUS_WEIGHTS_MISALIGNED = 6,
  FIRN_STATUS_NOT_BOUND = 7, // an external input or output has no buffer
  FIRN_STATUS_NO_MEMORY = 8, // the memory for the arena is null: an allocation failed
  // An index or size, argument or computed, is beyond its bound. Detail 1: a dim was to be set to a value
  // that it may not have; 2: the room for strings is full; 3: a string has more pieces than there is room
  // for; 4: a string is no number; 5: the branch that an If took does not fit the shapes.
  FIRN_STATUS_OUT_OF_RANGE = 9,
  FIRN_STATUS_NO_WEIGHTS = 10, // the object embeds none and none were bound
  FIRN_STATUS_NO_TILES = 11,   // the operating system grants the process no registers of tiles (AMX)
  // An operator of the program failed (firn/custom_op.h). Detail: the low 8 bits of what it returned.
  FIRN_STATUS_CUSTOM_OP = 12,
  FIRN_STATUS_WEIGHTS_UNFIT = 13, // raw weights differ from the object's own where its code depends on them
  FIRN_STATUS_NOT_FINITE = 14,    // the loss of a training step is infinite or no number; nothing was changed
  // Saved tensors are not those of the model, or the memory for them has another size. Nothing was changed.
  FIRN_STATUS_TENSORS_UNFIT = 15
};

// Architectures that feature masks speak about.
enum { FIRN_ARCH_OTHER = 0, FIRN_ARCH_X86_64 = 1, FIRN_ARCH_AARCH64 = 2, FIRN_ARCH_ARM = 3 };

// Alignment of the packed weights, embedded or bound.
enum { FIRN_WEIGHT_ALIGNMENT = 64 };

// One piece of parallel work: must be called once for each index below the count.
typedef void (*firn_task)(void* task_data, size_t index);

// Runs tasks for a model. Later versions append fields: nothing beyond `size` is read.
typedef struct firn_executor {
  size_t size; // sizeof(firn_executor)
  void* context;
  size_t concurrency; // how many tasks run at the same time at most; 0: unknown
  // Calls task(task_data, i) once for every i < count, in any order and on any threads, and returns when
  // all calls have returned.
  void (*parallel_for)(void* context, size_t count, firn_task task, void* task_data);
  // May be null. The same with all calls at the same time, each on a thread of its own, so that tasks may
  // wait for each other; or returns 0 and has called nothing.
  int (*parallel_together)(void* context, size_t count, firn_task task, void* task_data);
} firn_executor;

// The argument of an object's run function: a word per field. inputs and outputs hold one pointer each in
// the order of the model: a slot of the arena or a buffer of the caller, aligned for its element type.
// Later versions append fields: nothing beyond `size` is read.
typedef struct firn_rt2_call {
  size_t size;                  // sizeof(firn_rt2_call)
  unsigned char* arena;         // aligned as the header says
  const unsigned char* weights; // packed, FIRN_WEIGHT_ALIGNMENT aligned
  const void* const* inputs;
  void* const* outputs;
  const size_t* extents;         // one per dim that varies; null if there are none
  const firn_executor* executor; // null: run on the calling thread
  uint64_t* profile;             // receives the cycle counter before the first step and after each, from
                                 // objects built to be profiled
  size_t variant;                // which of the CPUs that the object holds kernels for
  unsigned char* parameters; // tensors that a run changes and that outlive it, as training does; null: none
  void* device;              // the handle of an accelerator that the object has code for; null: none
} firn_rt2_call;

// An object defines, with PREFIX from the class name and HASH of interface and content, hidden:
//   firn_status PREFIX_run_abi2_HASH(const firn_rt2_call*);       computes; FIRN_STATUS_OK or why not
//   const unsigned char* PREFIX_weights_abi2_HASH(void);          embedded weights, null if there are none
// and, if those are raw weights from which the packed ones are made before the first run:
//   firn_status PREFIX_prepare_abi2_HASH(const firn_rt2_call*);   arena: where to; weights: the raw ones

// The text of a status: static storage, never null.
FIRN_HIDDEN const char* firn_rt2_status_message(firn_status status) FIRN_NOEXCEPT;

// FIRN_STATUS_OK if this CPU and its operating system have every feature of the mask (bits are the numbers in
// firn/cpu_features.h), else FIRN_STATUS_UNSUPPORTED_CPU with the first one missing. Asks Linux for the
// registers of AMX, if that is among them, for the whole process: FIRN_STATUS_NO_TILES if it refuses.
FIRN_HIDDEN firn_status firn_rt2_check_cpu(int32_t architecture, uint64_t features) FIRN_NOEXCEPT;

// Bytes of weights.
typedef struct firn_rt2_range {
  size_t offset, bytes;
} firn_rt2_range;

// FIRN_STATUS_OK if raw weights are as the object's own in those ranges, which its code depends on.
FIRN_INLINE firn_status firn_rt2_check_weights(const unsigned char* raw, const unsigned char* own,
                                               const firn_rt2_range* ranges, size_t count) FIRN_NOEXCEPT {
  unsigned char difference = 0;
  size_t i, at;
  if (raw == own) return FIRN_STATUS_OK;
  for (i = 0; i < count; ++i) {
    for (at = ranges[i].offset; at < ranges[i].offset + ranges[i].bytes; ++at)
      difference = FIRN_CAST(unsigned char, difference | (raw[at] ^ own[at]));
  }
  return difference == 0 ? FIRN_STATUS_OK : FIRN_STATUS_WEIGHTS_UNFIT;
}

// The hash of packed weights that headers name, so that a program can check a copy of them: over words of 8
// bytes, little-endian, as FNV-1a is over bytes, with the high half mixed into the low one.
FIRN_INLINE uint64_t firn_rt2_hash_weights(const void* weights, size_t bytes) FIRN_NOEXCEPT {
  const unsigned char* const data = FIRN_CAST(const unsigned char*, weights);
  uint64_t hash = 0xcbf29ce484222325u;
  size_t at, i;
  for (at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    for (i = 0; i < 8 && at + i < bytes; ++i) word |= FIRN_CAST(uint64_t, data[at + i]) << 8 * i;
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}

// A CPU for which an object has code.
typedef struct firn_rt2_cpu {
  const char* name;
  uint64_t features; // mask for firn_rt2_check_cpu()
} firn_rt2_cpu;

// The number of the first of `count` CPUs of that architecture, the most able first, whose features this
// one has; with a `name`, of that one. If there is none, a status, and the number is 0.
FIRN_INLINE firn_status firn_rt2_choose_cpu(int32_t architecture, const firn_rt2_cpu* cpus, size_t count,
                                            const char* name, size_t* number) FIRN_NOEXCEPT {
  firn_status status = FIRN_STATUS_UNSUPPORTED_CPU | 0xfe << 8; // no CPU of that name
  size_t i, at;
  *number = 0;
  for (i = 0; i < count; ++i) {
    for (at = 0; name && name[at] != 0 && name[at] == cpus[i].name[at]; ++at) continue;
    if (name && name[at] != cpus[i].name[at]) continue;
    status = firn_rt2_check_cpu(architecture, cpus[i].features);
    if (status != FIRN_STATUS_OK) continue;
    *number = i;
    break;
  }
  return status;
}

// The first address within memory that is aligned and has room for need bytes; null with a status if there
// is none.
FIRN_INLINE unsigned char* firn_rt2_place_arena(void* memory, size_t bytes, size_t need, size_t alignment,
                                                firn_status* status) FIRN_NOEXCEPT {
  const size_t excess = FIRN_ADDRESS(memory) & (alignment - 1);
  const size_t slack = excess == 0 ? 0 : alignment - excess;
  *status = FIRN_STATUS_OK;
  if (!memory) {
    *status = FIRN_STATUS_NO_MEMORY;
  } else if (bytes < need) {
    *status = FIRN_STATUS_ARENA_TOO_SMALL;
  } else if (bytes - need < slack) {
    *status = FIRN_STATUS_ARENA_MISALIGNED;
  }
  return *status == FIRN_STATUS_OK ? FIRN_CAST(unsigned char*, memory) + slack : FIRN_NULL;
}

// A pool of threads (firn/thread_pool.h).
typedef struct firn_rt2_thread_pool firn_rt2_thread_pool;

// Makes a pool of `threads` that work at the same time, the caller's among them; 0: as many as the process
// may run on. Fewer if the system gives no more, null if there is no memory or no threads at all. `pinned`:
// keeps every thread but the caller's on a processor of its own, where the system allows that.
FIRN_HIDDEN firn_rt2_thread_pool* firn_rt2_thread_pool_create(size_t threads, int pinned) FIRN_NOEXCEPT;
// Ends the threads; no run may use the pool any more. Null is nothing.
FIRN_HIDDEN void firn_rt2_thread_pool_destroy(firn_rt2_thread_pool* pool) FIRN_NOEXCEPT;
// An executor that lends the pool to run_with(), valid while the pool is. For a null pool it uses the
// caller's thread alone.
FIRN_HIDDEN firn_executor firn_rt2_thread_pool_executor(firn_rt2_thread_pool* pool) FIRN_NOEXCEPT;

// A tensor in the arena; null without one.
FIRN_INLINE void* firn_rt2_slot(unsigned char* arena, size_t offset) FIRN_NOEXCEPT {
  return arena ? arena + offset : FIRN_NULL;
}

// A dim that varies, and what it may be set to.
typedef struct firn_rt2_dim {
  const char* name;          // in the class and in functions
  const char* original_name; // in the model file
  ptrdiff_t lower, upper;    // inclusive
  ptrdiff_t multiple;        // every value is a multiple of this; a run is given the quotient
  const ptrdiff_t* allowed;  // null: every multiple within the bounds
  size_t allowed_count;
} firn_rt2_dim;

// Whether a dim may be set to the value.
FIRN_INLINE int firn_rt2_allows(const firn_rt2_dim* dim, ptrdiff_t value) FIRN_NOEXCEPT {
  size_t i;
  if (value < dim->lower || value > dim->upper || value % dim->multiple != 0) return 0;
  for (i = 0; i < dim->allowed_count; ++i)
    if (dim->allowed[i] == value) return 1;
  return dim->allowed_count == 0;
}

// Writes why values, one per dim, are refused: "batch is 65, wants 1 to 64" for the first that is. No more
// than `size` bytes with the zero at the end; returns the length of the text, 0 if all are allowed.
FIRN_HIDDEN size_t firn_rt2_refusal(const firn_rt2_dim* dims, size_t count, const ptrdiff_t* values,
                                    char* text, size_t size) FIRN_NOEXCEPT;

// Sets the extents of runs to those of the values, one per dim; if one is not allowed, leaves all as they
// are and returns FIRN_STATUS_OUT_OF_RANGE with the number of the dim above its detail.
FIRN_INLINE firn_status firn_rt2_set_extents(const firn_rt2_dim* dims, size_t count, const ptrdiff_t* values,
                                             size_t* extents) FIRN_NOEXCEPT {
  size_t i;
  for (i = 0; i < count; ++i)
    if (!firn_rt2_allows(&dims[i], values[i]))
      return FIRN_STATUS_OUT_OF_RANGE | 1 << 8 | FIRN_CAST(firn_status, i << 16);
  for (i = 0; i < count; ++i) extents[i] = FIRN_CAST(size_t, values[i] / dims[i].multiple);
  return FIRN_STATUS_OK;
}

// Whether a float of 4 or 8 bytes is a finite number, by its bits: compilers that are told to assume that all
// numbers are finite do not see through it.
FIRN_INLINE int firn_rt2_is_finite(const void* number, size_t bytes) FIRN_NOEXCEPT {
  const unsigned char* const data = FIRN_CAST(const unsigned char*, number);
  const unsigned exponent = (data[bytes - 1] & 0x7fu) << 8 | data[bytes - 2];
  const unsigned all = bytes == 4 ? 0x7f80u : 0x7ff0u;
  return (exponent & all) != all;
}

// Generated headers compute extents of tensors with these functions: one reads an extent of a run, and the
// integer divisions round towards minus infinity. Divisors are positive.
FIRN_INLINE int64_t firn_rt2_extent(const size_t* extents, size_t index) FIRN_NOEXCEPT {
  return FIRN_CAST(int64_t, extents[index]);
}
FIRN_INLINE int64_t firn_rt2_floor_div(int64_t value, int64_t divisor) FIRN_NOEXCEPT {
  return value / divisor - (value % divisor < 0);
}
FIRN_INLINE int64_t firn_rt2_floor_mod(int64_t value, int64_t divisor) FIRN_NOEXCEPT {
  return value % divisor + (value % divisor < 0 ? divisor : 0);
}
FIRN_INLINE int64_t firn_rt2_least(int64_t lhs, int64_t rhs) FIRN_NOEXCEPT {
  return lhs < rhs ? lhs : rhs;
}
FIRN_INLINE int64_t firn_rt2_greatest(int64_t lhs, int64_t rhs) FIRN_NOEXCEPT {
  return lhs < rhs ? rhs : lhs;
}

#ifdef __cplusplus
}
#endif

#endif
