// The C interface of include/firn/jit.h. Nothing that is thrown within leaves it.
#include "include/firn/jit.h"

#include "compiler/driver/instance.h"
#include "include/firn/thread_pool.h"
#include "tools/jit/compiler.h"

#include <algorithm>
#include <functional>
#include <new>
#include <numeric>

using namespace firn;

struct firn_jit_stop {
  std::atomic<bool> is_requested{false};
};

struct firn_jit_messages {
  struct Message {
    int32_t kind;
    std::string text;
  };
  std::vector<Message> all;
};

struct firn_jit_compiler {
  library::Compiler compiler;
};

struct firn_jit_model {
  explicit firn_jit_model(std::shared_ptr<const library::Model> of) : model(std::move(of)) {}
  std::shared_ptr<const library::Model> model;
  std::atomic<size_t> count{1};
};

struct firn_jit_instance {
  std::shared_ptr<const library::Model> model;
  driver::HeapMemory memory;
  std::unique_ptr<driver::Instance> instance;
  std::map<std::string, int64_t> dims;
  std::map<const artifact::TensorDescription*, size_t> bound; // bytes of memory that the caller has bound
  std::unique_ptr<ThreadPool> pool;
  firn_executor executor = {};
  std::vector<std::vector<int64_t>> shown[3]; // dims of tensors as they were last asked for
};

namespace {

// Runs a body whose memory may run out; `failed` then.
template <class Value, class Body> Value shielded(Value failed, Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return failed;
  }
}

library::Request request_of(const firn_jit_request& given) {
  library::Request request;
  request.model = given.model ? given.model : "model";
  if (given.bytes) request.bytes = std::span(static_cast<const std::byte*>(given.bytes), given.byte_count);
  for (size_t i = 0; i < given.option_count; ++i) request.words.emplace_back(given.options[i]);
  for (size_t i = 0; i < given.symbol_count; ++i)
    request.symbols[given.symbols[i].name] = given.symbols[i].address;
  if (given.stop) request.stop = &given.stop->is_requested;
  if (given.progress)
    request.progress = [call = given.progress, context = given.context](const std::string& phase) {
      call(context, phase.c_str());
    };
  return request;
}

firn_jit_messages* messages_of(const library::Outcome& outcome) {
  auto* messages = new firn_jit_messages;
  for (const std::string& warning : outcome.warnings) messages->all.push_back({FIRN_JIT_OK, warning});
  for (const Diagnostic& each : outcome.diagnostics)
    messages->all.push_back({static_cast<int32_t>(each.fault), each.message});
  return messages;
}

int32_t code_of(const library::Outcome& outcome) {
  if (outcome.model) return FIRN_JIT_OK;
  for (const Diagnostic& each : outcome.diagnostics)
    if (each.fault != Fault::None) return static_cast<int32_t>(each.fault);
  return FIRN_JIT_INTERNAL;
}

const std::vector<driver::Instance::Slot>* slots_of(const driver::Instance& instance, int32_t kind) {
  switch (kind) {
  case FIRN_JIT_INPUT: return &instance.inputs();
  case FIRN_JIT_OUTPUT: return &instance.outputs();
  case FIRN_JIT_STATE: return &instance.states();
  default: return nullptr;
  }
}

// A pool of the instance's own, for a model that makes use of several threads.
void add_pool(firn_jit_instance& instance) {
  int threads = instance.model->description().threads;
  if (threads <= 1) return;
  instance.pool = std::make_unique<ThreadPool>(static_cast<size_t>(threads));
  instance.executor = instance.pool->executor();
  instance.instance->call().executor = &instance.executor;
}

bool is_bound(const std::vector<driver::Instance::Slot>& slots) {
  return std::all_of(slots.begin(), slots.end(), [](const auto& slot) { return slot.memory != nullptr; });
}

firn_status refuse_unbound(const firn_rt2_call* /*call*/) {
  return FIRN_STATUS_NOT_BOUND;
}

// Whether tensors of these dims fit the memory that the caller has bound.
bool fits_bound_memory(const firn_jit_instance& instance, const driver::ActualDims& dims) {
  return std::all_of(instance.bound.begin(), instance.bound.end(), [&](const auto& bound) {
    return driver::actual_bytes(*bound.first, dims) <= bound.second;
  });
}

bool is_aligned(const void* memory, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(alignment) == 0;
}

} // namespace

const char* firn_jit_version(void) noexcept {
  return FIRN_VERSION;
}
const char* firn_jit_status_message(firn_status status) noexcept {
  return firn_rt2_status_message(status);
}

size_t firn_jit_messages_count(const firn_jit_messages* messages) noexcept {
  return messages ? messages->all.size() : 0;
}
int32_t firn_jit_message_kind(const firn_jit_messages* messages, size_t index) noexcept {
  return messages->all[index].kind;
}
const char* firn_jit_message_text(const firn_jit_messages* messages, size_t index) noexcept {
  return messages->all[index].text.c_str();
}
void firn_jit_messages_free(firn_jit_messages* messages) noexcept {
  delete messages;
}

firn_jit_compiler* firn_jit_compiler_create(const firn_jit_compiler_options* options) noexcept {
  return shielded<firn_jit_compiler*>(nullptr, [&] {
    std::string folder = options && options->folder ? options->folder : "";
    const auto threads = static_cast<unsigned>(options ? options->threads : 0);
    return new firn_jit_compiler{library::Compiler(threads, std::move(folder))};
  });
}
void firn_jit_compiler_free(firn_jit_compiler* compiler) noexcept {
  delete compiler;
}

firn_jit_stop* firn_jit_stop_create(void) noexcept {
  return new (std::nothrow) firn_jit_stop;
}
void firn_jit_stop_request(firn_jit_stop* stop) noexcept {
  if (stop) stop->is_requested = true;
}
void firn_jit_stop_free(firn_jit_stop* stop) noexcept {
  delete stop;
}

int32_t firn_jit_compile(firn_jit_compiler* compiler, const firn_jit_request* request, firn_jit_model** model,
                         firn_jit_messages** messages) noexcept {
  *model = nullptr;
  if (messages) *messages = nullptr;
  library::Outcome outcome;
  try {
    if (compiler)
      outcome = compiler->compiler.compile(request_of(*request));
    else
      outcome.diagnostics.push_back({Fault::Usage, "there is no compiler"});
    auto made = outcome.model ? std::make_unique<firn_jit_model>(outcome.model) : nullptr;
    if (messages) *messages = messages_of(outcome);
    *model = made.release();
    return code_of(outcome);
  } catch (const std::bad_alloc&) {
    return FIRN_JIT_USAGE;
  } catch (...) {
    return FIRN_JIT_INTERNAL;
  }
}

void firn_jit_model_retain(firn_jit_model* model) noexcept {
  ++model->count;
}
void firn_jit_model_release(firn_jit_model* model) noexcept {
  if (model && --model->count == 0) delete model;
}
const char* firn_jit_model_manifest(const firn_jit_model* model) noexcept {
  return model->model->manifest().c_str();
}
size_t firn_jit_model_arena_bytes(const firn_jit_model* model) noexcept {
  return static_cast<size_t>(model->model->description().arena_bytes);
}
size_t firn_jit_model_arena_alignment(const firn_jit_model* model) noexcept {
  return static_cast<size_t>(model->model->description().arena_alignment);
}
size_t firn_jit_model_count(const firn_jit_model* model, int32_t kind) noexcept {
  const auto* tensors = model->model->tensors(kind);
  return tensors ? tensors->size() : 0;
}
int32_t firn_jit_model_tensor(const firn_jit_model* model, int32_t kind, size_t index,
                              firn_jit_tensor* tensor) noexcept {
  return model->model->describe(kind, index, *tensor);
}
size_t firn_jit_model_dim_count(const firn_jit_model* model) noexcept {
  return model->model->description().dims.size();
}
int32_t firn_jit_model_dim(const firn_jit_model* model, size_t index, firn_jit_dim* dim) noexcept {
  const auto& dims = model->model->description().dims;
  if (index >= dims.size()) return 0;
  *dim = {dims[index].name.c_str(), dims[index].symbol->lower, dims[index].symbol->upper,
          dims[index].multiple};
  return 1;
}

firn_jit_instance* firn_jit_instance_create(firn_jit_model* model, void* arena, size_t arena_bytes,
                                            firn_status* status) noexcept {
  firn_status result = FIRN_STATUS_NO_MEMORY;
  auto* created = shielded<firn_jit_instance*>(nullptr, [&]() -> firn_jit_instance* {
    const artifact::ModelDescription& d = model->model->description();
    if (arena && arena_bytes < static_cast<size_t>(d.arena_bytes)) {
      result = FIRN_STATUS_ARENA_TOO_SMALL;
      return nullptr;
    }
    if (arena && !is_aligned(arena, d.arena_alignment)) {
      result = FIRN_STATUS_ARENA_MISALIGNED;
      return nullptr;
    }
    auto instance = std::make_unique<firn_jit_instance>();
    instance->model = model->model;
    auto* memory = static_cast<std::byte*>(arena);
    if (!memory) memory = instance->memory.allocate(d.arena_bytes, d.arena_alignment);
    std::byte* parameters =
        d.parameter_bytes > 0 ? instance->memory.allocate(d.parameter_bytes, d.arena_alignment) : nullptr;
    instance->instance = std::make_unique<driver::Instance>(model->model->executable(), memory, parameters);
    for (int32_t kind : {FIRN_JIT_INPUT, FIRN_JIT_OUTPUT, FIRN_JIT_STATE})
      instance->shown[kind].resize(model->model->tensors(kind)->size());
    add_pool(*instance);
    result = FIRN_STATUS_OK;
    return instance.release();
  });
  if (status) *status = result;
  return created;
}
void firn_jit_instance_free(firn_jit_instance* instance) noexcept {
  delete instance;
}
firn_jit_entry firn_jit_instance_entry(const firn_jit_instance* instance) noexcept {
  bool can_run = is_bound(instance->instance->inputs()) && is_bound(instance->instance->outputs());
  return {can_run ? instance->model->executable().entry() : refuse_unbound, &instance->instance->call()};
}
firn_status firn_jit_run(firn_jit_instance* instance) noexcept {
  firn_jit_entry entry = firn_jit_instance_entry(instance);
  return entry.run(entry.call);
}

int32_t firn_jit_instance_tensor(firn_jit_instance* instance, int32_t kind, size_t index,
                                 firn_jit_tensor* tensor) noexcept {
  return shielded(0, [&] {
    const auto* slots = slots_of(*instance->instance, kind);
    if (!slots || index >= slots->size()) return 0;
    const driver::Instance::Slot& slot = (*slots)[index];
    std::vector<int64_t>& dims = instance->shown[kind][index];
    dims = instance->instance->dims_of(*slot.tensor);
    const size_t elements = static_cast<size_t>(
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>()));
    *tensor = {slot.tensor->name.c_str(),
               driver::onnx_number(slot.tensor->dtype),
               static_cast<int32_t>(dims.size()),
               dims.data(),
               slot.memory,
               byte_size(slot.tensor->dtype, elements)};
    return 1;
  });
}

firn_status firn_jit_instance_bind(firn_jit_instance* instance, int32_t kind, size_t index, void* data,
                                   size_t bytes) noexcept {
  const auto* slots = slots_of(*instance->instance, kind);
  if (!slots || index >= slots->size() || kind == FIRN_JIT_STATE) return FIRN_STATUS_OUT_OF_RANGE;
  const artifact::TensorDescription& tensor = *(*slots)[index].tensor;
  int64_t element = std::clamp<int64_t>(bit_width(tensor.dtype) / 8, 1, 8);
  if (data && !is_aligned(data, element)) return FIRN_STATUS_ARENA_MISALIGNED;
  return shielded<firn_status>(FIRN_STATUS_NO_MEMORY, [&]() -> firn_status {
    if (data && bytes < driver::actual_bytes(tensor, instance->instance->dims()))
      return FIRN_STATUS_OUT_OF_RANGE;
    instance->bound.erase(&tensor);
    if (data) instance->bound[&tensor] = bytes;
    auto* memory = static_cast<std::byte*>(data);
    if (kind == FIRN_JIT_INPUT)
      instance->instance->bind_input(index, memory);
    else
      instance->instance->bind_output(index, memory);
    return FIRN_STATUS_OK;
  });
}

firn_status firn_jit_instance_set_dim(firn_jit_instance* instance, const char* name, int64_t value) noexcept {
  return shielded<firn_status>(FIRN_STATUS_NO_MEMORY, [&]() -> firn_status {
    std::map<std::string, int64_t> values = instance->dims;
    values[name] = value;
    auto dims = driver::dims_at(instance->model->description(), values);
    if (!dims || !fits_bound_memory(*instance, *dims)) return FIRN_STATUS_OUT_OF_RANGE | 1 << 8;
    instance->dims = std::move(values);
    instance->instance->set_dims(std::move(*dims));
    return FIRN_STATUS_OK;
  });
}

void firn_jit_instance_lend(firn_jit_instance* instance, const firn_executor* executor) noexcept {
  instance->instance->call().executor = executor;
}
void firn_jit_instance_reset(firn_jit_instance* instance) noexcept {
  instance->instance->reset();
}
