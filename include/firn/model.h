// The parts of every generated model class: Status, views, byte spans, weights, executors and reflection.
// C++17 and the standard library's freestanding-friendly parts only; nothing allocates or throws.
#ifndef FIRN_MODEL_H
#define FIRN_MODEL_H

#include "firn/abi.h"
#include "firn/dtypes.h"
#include "firn/view.h"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

static_assert(sizeof(bool) == 1, "bool tensors hold one byte per element");

namespace firn {
inline namespace rt2 {

// Success, or why not. Converts to true on success.
class [[nodiscard]] Status {
public:
  FIRN_HIDDEN constexpr Status() noexcept = default;
  FIRN_HIDDEN constexpr explicit Status(firn_status value) noexcept : value_(value) {}
  FIRN_HIDDEN constexpr explicit operator bool() const noexcept { return value_ == FIRN_STATUS_OK; }
  FIRN_HIDDEN constexpr bool ok() const noexcept { return value_ == FIRN_STATUS_OK; }
  // One of the FIRN_STATUS_ constants, without its detail.
  FIRN_HIDDEN constexpr int code() const noexcept { return value_ & 0xff; }
  FIRN_HIDDEN constexpr firn_status value() const noexcept { return value_; }
  // Text in static storage.
  FIRN_HIDDEN const char* message() const noexcept { return firn_rt2_status_message(value_); }

private:
  firn_status value_ = FIRN_STATUS_OK;
};

namespace detail {
template <class T, class = void> FIRN_HIDDEN inline constexpr bool is_buffer = false;
template <class T>
FIRN_HIDDEN inline constexpr bool
    is_buffer<T, std::void_t<decltype(std::declval<T&>().data()), decltype(std::declval<T&>().size())>> =
        true;
} // namespace detail

// Memory of the caller. Converts from arrays, std::span, std::vector and all else with data() and size().
class ByteSpan {
public:
  FIRN_HIDDEN constexpr ByteSpan() noexcept = default;
  FIRN_HIDDEN ByteSpan(void* data, std::size_t bytes) noexcept
      : data_(static_cast<unsigned char*>(data)), bytes_(bytes) {}
  template <class T, std::size_t n>
  FIRN_HIDDEN ByteSpan(T (&array)[n]) noexcept : ByteSpan(array, n * sizeof(T)) {}
  template <class Buffer, class = std::enable_if_t<detail::is_buffer<Buffer>>>
  FIRN_HIDDEN ByteSpan(Buffer&& buffer) noexcept
      : ByteSpan(buffer.data(), buffer.size() * sizeof(*buffer.data())) {}
  FIRN_HIDDEN unsigned char* data() const noexcept { return data_; }
  FIRN_HIDDEN std::size_t size() const noexcept { return bytes_; }

private:
  unsigned char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class ConstByteSpan {
public:
  FIRN_HIDDEN constexpr ConstByteSpan() noexcept = default;
  FIRN_HIDDEN ConstByteSpan(const void* data, std::size_t bytes) noexcept
      : data_(static_cast<const unsigned char*>(data)), bytes_(bytes) {}
  template <class T, std::size_t n>
  FIRN_HIDDEN ConstByteSpan(const T (&array)[n]) noexcept : ConstByteSpan(array, n * sizeof(T)) {}
  template <class Buffer, class = std::enable_if_t<detail::is_buffer<const Buffer>>>
  FIRN_HIDDEN ConstByteSpan(const Buffer& buffer) noexcept
      : ConstByteSpan(buffer.data(), buffer.size() * sizeof(*buffer.data())) {}
  FIRN_HIDDEN const unsigned char* data() const noexcept { return data_; }
  FIRN_HIDDEN std::size_t size() const noexcept { return bytes_; }

private:
  const unsigned char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Packed weights of one model, immutable and shared by any number of instances. A handle: copies refer to the
// same memory, which outlives every instance. Each generated class derives its own type, so that weights
// cannot be mixed up.
class Weights {
public:
  FIRN_HIDDEN const unsigned char* data() const noexcept { return data_; }
  FIRN_HIDDEN std::size_t size() const noexcept { return bytes_; }

protected:
  FIRN_HIDDEN constexpr Weights(const unsigned char* data, std::size_t bytes) noexcept
      : data_(data), bytes_(bytes) {}
  // The facts of a model from which prepare() computes its weights.
  struct Preparation {
    firn_status (*function)(const firn_rt2_call*); // computes them
    firn_status (*fits)(const unsigned char* raw); // whether they are such as the object's code is made for
    firn_status cpu;
    std::size_t raw_bytes, prepared_bytes, bytes; // raw weights, memory, weights that instances read
  };
  // Lets a model's function compute its weights in the buffer. check() tells what was wrong with the CPU,
  // with `raw` or with the buffer.
  FIRN_HIDDEN static Weights prepare(const Preparation& model, ConstByteSpan raw, ByteSpan buffer) noexcept {
    Weights result(buffer.data(), buffer.size());
    if (model.bytes == 0 || !result.check(model.prepared_bytes)) return result;
    result.bytes_ = model.bytes;
    result.status_ = model.cpu;
    if (result.status_ == FIRN_STATUS_OK)
      result.status_ = Weights(raw.data(), raw.size()).check(model.raw_bytes).value();
    if (result.status_ == FIRN_STATUS_OK) result.status_ = model.fits(raw.data());
    const firn_rt2_call call = {sizeof(firn_rt2_call),
                                buffer.data(),
                                raw.data(),
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr,
                                0,
                                nullptr,
                                nullptr};
    if (result.status_ == FIRN_STATUS_OK) result.status_ = model.function(&call);
    return result;
  }
  // The raw weights themselves, where kernels read them as they are.
  FIRN_HIDDEN static Weights in_place(firn_status (*fits)(const unsigned char* raw), ConstByteSpan raw,
                                      std::size_t bytes) noexcept {
    Weights result(raw.data(), raw.size());
    if (bytes > 0 && result.check(bytes)) result.status_ = fits(raw.data());
    return result;
  }
  // The weights that prepare() made, with or without the memory behind them in which it computed.
  FIRN_HIDDEN static Weights prepared(ConstByteSpan memory, std::size_t prepared_bytes,
                                      std::size_t bytes) noexcept {
    return Weights(memory.data(), memory.size() == prepared_bytes ? bytes : memory.size());
  }
  // Whether these can serve a model that wants `bytes` of weights.
  FIRN_HIDDEN Status check(std::size_t bytes) const noexcept {
    if (bytes == 0) return Status();
    if (status_ != FIRN_STATUS_OK) return Status(status_);
    if (!data_) return Status(FIRN_STATUS_NO_WEIGHTS);
    if (bytes_ != bytes) return Status(FIRN_STATUS_WEIGHTS_SIZE);
    const bool aligned = reinterpret_cast<std::uintptr_t>(data_) % FIRN_WEIGHT_ALIGNMENT == 0;
    return aligned ? Status() : Status(FIRN_STATUS_WEIGHTS_MISALIGNED);
  }

private:
  const unsigned char* data_;
  std::size_t bytes_;
  firn_status status_ = FIRN_STATUS_OK; // status of their preparation
};

// The hash of packed weights; of embedded ones and their copies it is the class's weights_hash.
FIRN_HIDDEN inline std::uint64_t hash_weights(ConstByteSpan packed) noexcept {
  return firn_rt2_hash_weights(packed.data(), packed.size());
}

// Lends threads to run(). Wraps the C struct, or any object callable as pool(count, task) that calls task(i)
// once for each i < count and returns when all are done; the object is referred to, not copied. What its
// concurrency() returns, if it has that, is how many tasks run at the same time at most.
class Executor {
public:
  FIRN_HIDDEN explicit Executor(const firn_executor& executor) noexcept : executor_(executor) {}
  template <class Pool, class = std::enable_if_t<!std::is_same_v<Pool, Executor> && !std::is_const_v<Pool>>>
  FIRN_HIDDEN explicit Executor(Pool& pool) noexcept : executor_(lent(pool, 0)) {}
  FIRN_HIDDEN const firn_executor* c_executor() const noexcept { return &executor_; }

private:
  struct Task {
    firn_task function;
    void* data;
    FIRN_HIDDEN void operator()(std::size_t index) const noexcept { function(data, index); }
  };
  // A pool may say itself how it is lent, as firn::ThreadPool does.
  template <class Pool>
  FIRN_HIDDEN static auto lent(Pool& pool, int) noexcept -> decltype(firn_executor(pool.executor())) {
    return pool.executor();
  }
  template <class Pool> FIRN_HIDDEN static firn_executor lent(Pool& pool, long) noexcept {
    return {sizeof(firn_executor), &pool, concurrency(pool, 0), &call<Pool>, nullptr};
  }
  template <class Pool>
  FIRN_HIDDEN static auto concurrency(Pool& pool, int) noexcept
      -> decltype(static_cast<std::size_t>(pool.concurrency())) {
    return static_cast<std::size_t>(pool.concurrency());
  }
  template <class Pool> FIRN_HIDDEN static std::size_t concurrency(Pool&, long) noexcept { return 0; }
  template <class Pool>
  FIRN_HIDDEN static void call(void* pool, std::size_t count, firn_task task, void* data) {
    (*static_cast<Pool*>(pool))(count, Task{task, data});
  }
  firn_executor executor_;
};

// Reflection: what generic code can ask of any model through Model::info().

enum class ElementType : std::uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I64,
  I32,
  I16,
  I8,
  I4,
  I2,
  U64,
  U32,
  U16,
  U8,
  U4,
  U2,
  Bool,
  C64,
  C128,
  String
};

struct TensorInfo {
  const char* name;          // the accessor
  const char* original_name; // in the model file
  ElementType dtype;
  std::size_t rank;
  const std::size_t* dims; // null for a scalar
  std::size_t bytes;
  bool external;       // no arena space: has to be bound
  bool counted;        // dims are bounds: run() finds the actual size
  bool varies = false; // dims are bounds: input_extent() and output_extent() tell the actual ones
};

// A dim that the program sets (set_dims()): its name, the bounds of its values, and what they are multiples
// of.
using DimInfo = firn_rt2_dim;

struct ModelInfo {
  const char* name;
  const char* source_sha256;
  const char* firn_version;
  const char* cpu;
  const TensorInfo* inputs;
  std::size_t input_count;
  const TensorInfo* outputs;
  std::size_t output_count;
  const TensorInfo* states;
  std::size_t state_count;
  std::size_t arena_bytes, arena_alignment, weight_bytes, stack_bytes;
  std::uint64_t flops;           // floating point operations of one run, at the bounds of dims that vary
  const DimInfo* dims = nullptr; // that vary
  std::size_t dim_count = 0;
};

namespace detail {

// Offset of a tensor that has no place in the arena.
FIRN_HIDDEN inline constexpr std::size_t external = static_cast<std::size_t>(-1);

// A tensor in the arena; null without one.
template <class T> FIRN_HIDDEN T* slot(unsigned char* arena, std::size_t offset) noexcept {
  return static_cast<T*>(firn_rt2_slot(arena, offset));
}

// The number of elements along a dimension that run() has counted.
FIRN_HIDDEN inline std::size_t counted(unsigned char* arena, std::size_t offset) noexcept {
  return arena ? static_cast<std::size_t>(*slot<const std::int64_t>(arena, offset)) : 0;
}

// The extents that runs are given for dims that vary.
template <std::size_t dim_count> struct RunExtents {
  std::size_t extents[dim_count] = {};
  FIRN_HIDDEN const std::size_t* extent_table() const noexcept { return extents; }
};
template <> struct RunExtents<0> {
  FIRN_HIDDEN const std::size_t* extent_table() const noexcept { return nullptr; }
};

// The block of parameters that runs are given.
template <bool has_parameters> struct RunParameters {
  unsigned char* parameters = nullptr;
  FIRN_HIDDEN unsigned char* parameter_block() const noexcept { return parameters; }
};
template <> struct RunParameters<false> {
  FIRN_HIDDEN unsigned char* parameter_block() const noexcept { return nullptr; }
};

// The tensors and extents of one of several functions.
struct FunctionArguments {
  firn_status (*function)(const firn_rt2_call*);
  const void* const* inputs;
  std::size_t input_count;
  void* const* outputs;
  std::size_t output_count;
  const std::size_t* extents; // null: no dim varies
};

// The members of every generated class. A moved-from instance is as if never initialised.
template <std::size_t input_count, std::size_t output_count, std::size_t dim_count = 0,
          bool has_parameters = false>
struct Instance : RunExtents<dim_count>, RunParameters<has_parameters> {
  unsigned char* arena = nullptr; // null unless the status is ok
  const unsigned char* weights = nullptr;
  const void* inputs[input_count + 1] = {};
  void* outputs[output_count + 1] = {};
  firn_status status = FIRN_STATUS_NOT_INITIALISED;

  FIRN_HIDDEN Instance() noexcept = default;
  FIRN_HIDDEN Instance(Instance&& other) noexcept { *this = static_cast<Instance&&>(other); }
  FIRN_HIDDEN Instance& operator=(Instance&& other) noexcept {
    if (this == &other) return *this;
    copy(other);
    other.copy(Instance());
    return *this;
  }

  // Takes the arena, or notes why not.
  FIRN_HIDDEN void construct(ByteSpan memory, std::size_t arena_bytes, std::size_t alignment,
                             const unsigned char* packed, Status weights_status, firn_status cpu) noexcept {
    weights = packed;
    unsigned char* const place =
        firn_rt2_place_arena(memory.data(), memory.size(), arena_bytes, alignment, &status);
    if (status == FIRN_STATUS_OK) status = weights_status.value();
    if (status == FIRN_STATUS_OK) status = cpu;
    if (status == FIRN_STATUS_OK) arena = place;
  }

  // A null buffer binds the tensor's own place in the arena again.
  FIRN_HIDDEN void bind_input(std::size_t index, const void* data, std::size_t offset) noexcept {
    inputs[index] = data || offset == external ? data : firn_rt2_slot(arena, offset);
  }
  FIRN_HIDDEN void bind_output(std::size_t index, void* data, std::size_t offset) noexcept {
    outputs[index] = data || offset == external ? data : firn_rt2_slot(arena, offset);
  }
  // With the offsets of all tensors; fails beyond the last one.
  FIRN_HIDDEN Status bind_any_input(std::size_t index, const void* data,
                                    const std::size_t* offsets) noexcept {
    if (index >= input_count) return Status(FIRN_STATUS_OUT_OF_RANGE);
    bind_input(index, data, offsets[index]);
    return Status();
  }
  FIRN_HIDDEN Status bind_any_output(std::size_t index, void* data, const std::size_t* offsets) noexcept {
    if (index >= output_count) return Status(FIRN_STATUS_OUT_OF_RANGE);
    bind_output(index, data, offsets[index]);
    return Status();
  }
  FIRN_HIDDEN const void* input(std::size_t index) const noexcept {
    return index < input_count ? inputs[index] : nullptr;
  }
  FIRN_HIDDEN const void* output(std::size_t index) const noexcept {
    return index < output_count ? outputs[index] : nullptr;
  }

  // The values of dims that vary; nothing changes if one is not allowed.
  FIRN_HIDDEN Status set_dims(const firn_rt2_dim* dims, const std::ptrdiff_t* values) noexcept {
    if (status != FIRN_STATUS_OK) return Status(status);
    return Status(firn_rt2_set_extents(dims, dim_count, values, this->extents));
  }

  // The value of one of them.
  FIRN_HIDDEN Status set_dim(const firn_rt2_dim* dims, std::size_t index, std::ptrdiff_t value) noexcept {
    std::ptrdiff_t values[dim_count];
    if (index >= dim_count) return Status(FIRN_STATUS_OUT_OF_RANGE);
    for (std::size_t i = 0; i < dim_count; ++i)
      values[i] = static_cast<std::ptrdiff_t>(this->extents[i]) * dims[i].multiple;
    values[index] = value;
    return set_dims(dims, values);
  }

  FIRN_HIDDEN Status run(firn_status (*function)(const firn_rt2_call*), const firn_executor* executor,
                         std::size_t variant = 0) const noexcept {
    const FunctionArguments all = {function, inputs,       input_count,
                                   outputs,  output_count, this->extent_table()};
    return run_function(all, executor, variant);
  }

  FIRN_HIDDEN Status run_function(const FunctionArguments& given, const firn_executor* executor,
                                  std::size_t variant) const noexcept {
    if (status != FIRN_STATUS_OK) return Status(status);
    for (std::size_t i = 0; i < given.input_count; ++i) {
      if (!given.inputs[i]) return Status(FIRN_STATUS_NOT_BOUND);
    }
    for (std::size_t i = 0; i < given.output_count; ++i) {
      if (!given.outputs[i]) return Status(FIRN_STATUS_NOT_BOUND);
    }
    const firn_rt2_call call = {sizeof(firn_rt2_call),
                                arena,
                                weights,
                                given.inputs,
                                given.outputs,
                                given.extents,
                                executor,
                                nullptr,
                                variant,
                                this->parameter_block(),
                                nullptr};
    return Status(given.function(&call));
  }

private:
  FIRN_HIDDEN void copy(const Instance& other) noexcept {
    static_cast<RunExtents<dim_count>&>(*this) = other;
    static_cast<RunParameters<has_parameters>&>(*this) = other;
    arena = other.arena;
    weights = other.weights;
    for (std::size_t i = 0; i < input_count; ++i) inputs[i] = other.inputs[i];
    for (std::size_t i = 0; i < output_count; ++i) outputs[i] = other.outputs[i];
    status = other.status;
  }
};

} // namespace detail

// The types of a model's inputs or outputs, in order.
template <class... Types> struct TypeList {
  FIRN_HIDDEN static constexpr std::size_t size = sizeof...(Types);
  template <std::size_t i> using at = std::tuple_element_t<i, std::tuple<Types...>>;
};

} // namespace rt2
} // namespace firn

#endif
