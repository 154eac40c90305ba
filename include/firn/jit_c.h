// The C interface of the compiler in the process (firn/jit.h has it as C++ classes). It is stable: structs
// grow at their ends, and begin with their size where the caller fills them. Programs link libfirn.so (CMake:
// Firn::jit).
#ifndef FIRN_JIT_C_H
#define FIRN_JIT_C_H

#include "firn/abi.h"

#if defined(__GNUC__) && !defined(_WIN32)
#define FIRN_JIT_API __attribute__((visibility("default")))
#else
#define FIRN_JIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Why a compilation gave no model, numbered as the exit codes of `firn`.
enum {
  FIRN_JIT_OK = 0,
  FIRN_JIT_MODEL = 1,       // the model is wrong
  FIRN_JIT_USAGE = 2,       // a file or an option is
  FIRN_JIT_UNSUPPORTED = 3, // the model has what Firn does not compile
  FIRN_JIT_INTERNAL = 4,    // a fault of Firn's
  FIRN_JIT_STOPPED = 5      // it was asked to stop
};

typedef struct firn_jit_compiler firn_jit_compiler;
typedef struct firn_jit_model firn_jit_model;
typedef struct firn_jit_instance firn_jit_instance;
typedef struct firn_jit_trainer firn_jit_trainer;
typedef struct firn_jit_messages firn_jit_messages;
typedef struct firn_jit_stop firn_jit_stop;

// The version of the library, "0.1.0".
FIRN_JIT_API const char* firn_jit_version(void) FIRN_NOEXCEPT;
// The text of what a run returned.
FIRN_JIT_API const char* firn_jit_status_message(firn_status status) FIRN_NOEXCEPT;

// Diagnostics of a compilation; the owner frees them. Texts live as long.
FIRN_JIT_API size_t firn_jit_messages_count(const firn_jit_messages* messages) FIRN_NOEXCEPT;
FIRN_JIT_API int32_t firn_jit_message_kind(const firn_jit_messages* messages, size_t index) FIRN_NOEXCEPT;
FIRN_JIT_API const char* firn_jit_message_text(const firn_jit_messages* messages, size_t index) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_messages_free(firn_jit_messages* messages) FIRN_NOEXCEPT;

typedef struct firn_jit_compiler_options {
  size_t size;        // sizeof(firn_jit_compiler_options)
  size_t threads;     // that compile one model at the same time; 0: as many as there are cores
  const char* folder; // keeps compiled models from program to program; null: nothing is kept
} firn_jit_compiler_options;

// A compiler, which any number of threads may use at the same time; `options` may be null. Null if there is
// no memory.
FIRN_JIT_API firn_jit_compiler*
firn_jit_compiler_create(const firn_jit_compiler_options* options) FIRN_NOEXCEPT;
// Models that it has made live on.
FIRN_JIT_API void firn_jit_compiler_free(firn_jit_compiler* compiler) FIRN_NOEXCEPT;

// Ends compilations that were given it, between passes and kernels; once requested it stays so.
FIRN_JIT_API firn_jit_stop* firn_jit_stop_create(void) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_stop_request(firn_jit_stop* stop) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_stop_free(firn_jit_stop* stop) FIRN_NOEXCEPT;

// A function that a model calls: --custom-op NAME=SYMBOL names it (firn/custom_op.h).
typedef struct firn_jit_symbol {
  const char* name;
  void* address;
} firn_jit_symbol;

typedef struct firn_jit_request {
  size_t size;       // sizeof(firn_jit_request)
  const char* model; // the path of an ONNX file or of a graph in text form (.hlo); with `bytes` what
                     // messages call it, where a name that ends in .hlo says that the bytes are text
  const void* bytes; // the model itself, or null; they are read until the call returns
  size_t byte_count;
  const char* const* options; // the words of `firn compile`: "--dim", "batch=1..8", "--threads", "4"
  size_t option_count;        // the CPU is this machine's unless they name one
  const firn_jit_symbol* symbols;
  size_t symbol_count;
  const firn_jit_stop* stop;                          // may be null
  void (*progress)(void* context, const char* phase); // called as each phase begins; may be null
  void* context;
} firn_jit_request;

// Compiles a model. FIRN_JIT_OK, or the kind of the first error; `messages`, if not null, gets warnings and
// errors. Equal requests at the same time are compiled once, and give the same model while it lives.
FIRN_JIT_API int32_t firn_jit_compile(firn_jit_compiler* compiler, const firn_jit_request* request,
                                      firn_jit_model** model, firn_jit_messages** messages) FIRN_NOEXCEPT;

// Models do not change and are counted: each retain and the compilation want a release. Instances hold
// theirs.
FIRN_JIT_API void firn_jit_model_retain(firn_jit_model* model) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_model_release(firn_jit_model* model) FIRN_NOEXCEPT;
// All facts as the JSON that `firn compile` writes beside an object.
FIRN_JIT_API const char* firn_jit_model_manifest(const firn_jit_model* model) FIRN_NOEXCEPT;
FIRN_JIT_API size_t firn_jit_model_arena_bytes(const firn_jit_model* model) FIRN_NOEXCEPT;
FIRN_JIT_API size_t firn_jit_model_arena_alignment(const firn_jit_model* model) FIRN_NOEXCEPT;

// Only trainers have parameters.
enum { FIRN_JIT_INPUT = 0, FIRN_JIT_OUTPUT = 1, FIRN_JIT_STATE = 2, FIRN_JIT_PARAMETER = 3 };

// A tensor: row-major, without gaps.
typedef struct firn_jit_tensor {
  const char* name;
  int32_t dtype; // FIRN_DTYPE_ of firn/custom_op.h, or the number of ONNX's type
  int32_t rank;
  const int64_t* dims; // the largest in a model; in an instance those that are set or that a run counted
  void* data;          // null in a model, and where the caller has to bind memory and has not
  size_t bytes;        // for these dims
} firn_jit_tensor;

FIRN_JIT_API size_t firn_jit_model_count(const firn_jit_model* model, int32_t kind) FIRN_NOEXCEPT;
// False if there is no such tensor.
FIRN_JIT_API int32_t firn_jit_model_tensor(const firn_jit_model* model, int32_t kind, size_t index,
                                           firn_jit_tensor* tensor) FIRN_NOEXCEPT;

// A dim that varies.
typedef struct firn_jit_dim {
  const char* name;
  int64_t lower, upper, multiple;
} firn_jit_dim;
FIRN_JIT_API size_t firn_jit_model_dim_count(const firn_jit_model* model) FIRN_NOEXCEPT;
FIRN_JIT_API int32_t firn_jit_model_dim(const firn_jit_model* model, size_t index,
                                        firn_jit_dim* dim) FIRN_NOEXCEPT;

// A run is run(call), which is what firn_jit_run() does. Binding memory changes the entry.
typedef struct firn_jit_entry {
  firn_status (*run)(const firn_rt2_call*);
  const firn_rt2_call* call;
} firn_jit_entry;

// An instance, for one thread at a time. `arena`: memory of the caller's, as large and aligned as the model
// says, which outlives it; null: from the heap. Null with the reason in `status`.
FIRN_JIT_API firn_jit_instance* firn_jit_instance_create(firn_jit_model* model, void* arena,
                                                         size_t arena_bytes,
                                                         firn_status* status) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_instance_free(firn_jit_instance* instance) FIRN_NOEXCEPT;
FIRN_JIT_API firn_jit_entry firn_jit_instance_entry(const firn_jit_instance* instance) FIRN_NOEXCEPT;
// Computes the outputs, without allocating or locking.
FIRN_JIT_API firn_status firn_jit_run(firn_jit_instance* instance) FIRN_NOEXCEPT;
FIRN_JIT_API int32_t firn_jit_instance_tensor(firn_jit_instance* instance, int32_t kind, size_t index,
                                              firn_jit_tensor* tensor) FIRN_NOEXCEPT;
// Has an input or output lie in the caller's memory; null: in the arena again.
FIRN_JIT_API firn_status firn_jit_instance_bind(firn_jit_instance* instance, int32_t kind, size_t index,
                                                void* data, size_t bytes) FIRN_NOEXCEPT;
// Sets a dim that varies: FIRN_STATUS_OUT_OF_RANGE where it may not have the value, or there is none of that
// name.
FIRN_JIT_API firn_status firn_jit_instance_set_dim(firn_jit_instance* instance, const char* name,
                                                   int64_t value) FIRN_NOEXCEPT;
// Threads for runs of a model that was compiled for several: an executor that outlives the instance, or null
// for the calling thread alone. At first it is a pool of the model's.
FIRN_JIT_API void firn_jit_instance_lend(firn_jit_instance* instance,
                                         const firn_executor* executor) FIRN_NOEXCEPT;
// States back to their first values.
FIRN_JIT_API void firn_jit_instance_reset(firn_jit_instance* instance) FIRN_NOEXCEPT;

// A trainer of a model that was compiled with "--train", "loss=mse,optimizer=adam", say, for one thread at a
// time. It has tensors of its own to train, which are at first as the model has them. FIRN_JIT_OK, or
// FIRN_JIT_USAGE for a model without a training step; `messages`, if not null, gets the reason.
FIRN_JIT_API int32_t firn_jit_trainer_create(firn_jit_model* model, firn_jit_trainer** trainer,
                                             firn_jit_messages** messages) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_trainer_free(firn_jit_trainer* trainer) FIRN_NOEXCEPT;
// Forward, backward and update; the loss without an update; the model's outputs. Without allocating or
// locking. A loss that is not finite is FIRN_STATUS_NOT_FINITE, and changes nothing.
FIRN_JIT_API firn_status firn_jit_trainer_step(firn_jit_trainer* trainer) FIRN_NOEXCEPT;
FIRN_JIT_API firn_status firn_jit_trainer_evaluate(firn_jit_trainer* trainer) FIRN_NOEXCEPT;
FIRN_JIT_API firn_status firn_jit_trainer_infer(firn_jit_trainer* trainer) FIRN_NOEXCEPT;
// The loss that the last step or evaluation found.
FIRN_JIT_API double firn_jit_trainer_loss(const firn_jit_trainer* trainer) FIRN_NOEXCEPT;
// 0 until it is set.
FIRN_JIT_API double firn_jit_trainer_learning_rate(const firn_jit_trainer* trainer) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_trainer_set_learning_rate(firn_jit_trainer* trainer, double rate) FIRN_NOEXCEPT;
// Steps since the first values, those before a file was loaded among them.
FIRN_JIT_API int64_t firn_jit_trainer_step_count(const firn_jit_trainer* trainer) FIRN_NOEXCEPT;
// Inputs are those of the model and, last, labels where the loss wants them; they stay as they are until they
// are written. Parameters are the tensors that are trained, states what the optimizer keeps beside them:
// their moments, and the number of steps. False if there is no such tensor.
FIRN_JIT_API int32_t firn_jit_trainer_tensor(firn_jit_trainer* trainer, int32_t kind, size_t index,
                                             firn_jit_tensor* tensor) FIRN_NOEXCEPT;
// The functions of these names for trainers.
FIRN_JIT_API firn_status firn_jit_trainer_set_dim(firn_jit_trainer* trainer, const char* name,
                                                  int64_t value) FIRN_NOEXCEPT;
// Sets dims that vary to what inputs have: dims[i] has as many extents as input i, or is null where it says
// nothing. FIRN_JIT_OK, or FIRN_JIT_USAGE where they cannot be so; `messages`, if not null, gets the reason.
FIRN_JIT_API int32_t firn_jit_trainer_fit(firn_jit_trainer* trainer, const int64_t* const* dims,
                                          firn_jit_messages** messages) FIRN_NOEXCEPT;
FIRN_JIT_API void firn_jit_trainer_lend(firn_jit_trainer* trainer,
                                        const firn_executor* executor) FIRN_NOEXCEPT;
// Parameters and states back to their first values.
FIRN_JIT_API void firn_jit_trainer_reset(firn_jit_trainer* trainer) FIRN_NOEXCEPT;
// Writes the parameters by their names, as .npz or .safetensors by the ending of `path`, and PATH.state,
// which has the states too and is what loading reads: training goes on from there as if nothing had been
// between. FIRN_JIT_OK, or the kind of what went wrong; `messages`, if not null, gets it, and files or
// trainer are as they were.
FIRN_JIT_API int32_t firn_jit_trainer_save(const firn_jit_trainer* trainer, const char* path,
                                           firn_jit_messages** messages) FIRN_NOEXCEPT;
FIRN_JIT_API int32_t firn_jit_trainer_load(firn_jit_trainer* trainer, const char* path,
                                           firn_jit_messages** messages) FIRN_NOEXCEPT;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FIRN_JIT_C_H
