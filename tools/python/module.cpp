// The module _firn: the C functions of firn/jit.h as classes. Friendly forms, checks and errors are made in
// Python, by the package around it.
#include "compilation.h"
#include "firn/thread_pool.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Array = nb::ndarray<nb::numpy>;
using ReadOnlyArray = nb::ndarray<nb::numpy, nb::ro>;
using Tensor = std::tuple<std::string, int32_t, std::vector<int64_t>, size_t>; // name, dtype, dims, bytes

struct Model {
  explicit Model(firn_jit_model* handle) : handle(handle) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { firn_jit_model_release(handle); }
  firn_jit_model* handle;
};

struct Compiler {
  explicit Compiler(const std::string& folder) {
    const firn_jit_compiler_options options = {sizeof options, 0, folder.empty() ? nullptr : folder.c_str()};
    handle.reset(firn_jit_compiler_create(&options), firn_jit_compiler_free);
    if (!handle) throw std::bad_alloc();
  }
  std::shared_ptr<firn_jit_compiler> handle;
};

// An instance. Methods that change it or run it throw if two threads are in them at the same time.
class Instance {
public:
  explicit Instance(const Model& model) {
    firn_status status = FIRN_STATUS_OK;
    handle_ = firn_jit_instance_create(model.handle, nullptr, 0, &status);
    if (!handle_) throw std::runtime_error(firn_jit_status_message(status));
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() { firn_jit_instance_free(handle_); }

  firn_status run() {
    User user(*this);
    nb::gil_scoped_release released;
    return firn_jit_run(handle_);
  }
  firn_status bind(int32_t kind, size_t index, uintptr_t data, size_t bytes) {
    User user(*this);
    return firn_jit_instance_bind(handle_, kind, index, reinterpret_cast<void*>(data), bytes);
  }
  firn_status set_dim(const std::string& name, int64_t value) {
    User user(*this);
    return firn_jit_instance_set_dim(handle_, name.c_str(), value);
  }
  void reset() {
    User user(*this);
    firn_jit_instance_reset(handle_);
  }
  // Runs use a pool of so many threads from here on; with 1, the caller's alone.
  void lend(size_t threads) {
    User user(*this);
    auto pool = threads > 1 ? std::make_unique<firn::ThreadPool>(threads) : nullptr;
    firn_executor executor = {};
    if (pool) executor = pool->executor();
    firn_jit_instance_lend(handle_, nullptr);
    pool_ = std::move(pool);
    executor_ = executor;
    if (pool_) firn_jit_instance_lend(handle_, &executor_);
  }
  uintptr_t arena() {
    User user(*this);
    return reinterpret_cast<uintptr_t>(firn_jit_instance_entry(handle_).call->arena);
  }
  firn_jit_tensor tensor(int32_t kind, size_t index) {
    User user(*this);
    firn_jit_tensor tensor = {};
    if (!firn_jit_instance_tensor(handle_, kind, index, &tensor)) throw nb::index_error();
    return tensor;
  }

private:
  struct User {
    explicit User(Instance& instance) : instance(instance) {
      if (instance.is_used_.exchange(true))
        throw std::runtime_error("the instance is used by another thread; each thread wants its own");
    }
    ~User() { instance.is_used_ = false; }
    Instance& instance;
  };
  firn_jit_instance* handle_;
  std::unique_ptr<firn::ThreadPool> pool_;
  firn_executor executor_ = {};
  std::atomic<bool> is_used_{false};
};

// A trainer. Methods that change it or run it throw if two threads are in them at the same time.
class Trainer {
public:
  explicit Trainer(const Model& model) {
    firn_jit_messages* messages = nullptr;
    firn_jit_trainer_create(model.handle, &handle_, &messages);
    const std::string reason = text_of(messages);
    if (!handle_) throw std::runtime_error(reason);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() { firn_jit_trainer_free(handle_); }

  firn_status run(firn_status (*function)(firn_jit_trainer*) noexcept) {
    User user(*this);
    nb::gil_scoped_release released;
    return function(handle_);
  }
  double loss() const { return firn_jit_trainer_loss(handle_); }
  double learning_rate() const { return firn_jit_trainer_learning_rate(handle_); }
  void set_learning_rate(double rate) { firn_jit_trainer_set_learning_rate(handle_, rate); }
  int64_t step_count() const { return firn_jit_trainer_step_count(handle_); }
  firn_jit_tensor tensor(int32_t kind, size_t index) {
    User user(*this);
    firn_jit_tensor tensor = {};
    if (!firn_jit_trainer_tensor(handle_, kind, index, &tensor)) throw nb::index_error();
    return tensor;
  }
  std::vector<Tensor> tensors(int32_t kind) {
    User user(*this);
    std::vector<Tensor> all;
    firn_jit_tensor tensor;
    for (size_t i = 0; firn_jit_trainer_tensor(handle_, kind, i, &tensor); ++i)
      all.emplace_back(tensor.name, tensor.dtype,
                       std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank), tensor.bytes);
    return all;
  }
  // Inputs without dims say nothing. The text is why they do not fit, and empty if they do.
  std::string fit(const std::vector<std::vector<int64_t>>& dims, const std::vector<bool>& given) {
    User user(*this);
    std::vector<const int64_t*> pointers;
    static constexpr int64_t none = 0; // a scalar has no extents to point to
    for (size_t i = 0; i < dims.size(); ++i)
      pointers.push_back(!given[i] ? nullptr : dims[i].empty() ? &none : dims[i].data());
    firn_jit_messages* messages = nullptr;
    firn_jit_trainer_fit(handle_, pointers.data(), &messages);
    return text_of(messages);
  }
  void reset() {
    User user(*this);
    firn_jit_trainer_reset(handle_);
  }
  std::pair<int32_t, std::string> save(const std::string& path) {
    User user(*this);
    firn_jit_messages* messages = nullptr;
    const int32_t kind = firn_jit_trainer_save(handle_, path.c_str(), &messages);
    return {kind, text_of(messages)};
  }
  std::pair<int32_t, std::string> load(const std::string& path) {
    User user(*this);
    firn_jit_messages* messages = nullptr;
    const int32_t kind = firn_jit_trainer_load(handle_, path.c_str(), &messages);
    return {kind, text_of(messages)};
  }

private:
  struct User {
    explicit User(Trainer& trainer) : trainer(trainer) {
      if (trainer.is_used_.exchange(true))
        throw std::runtime_error("the trainer is used by another thread; each thread wants its own");
    }
    ~User() { trainer.is_used_ = false; }
    Trainer& trainer;
  };
  static std::string text_of(firn_jit_messages* messages) {
    std::string text = firn_jit_messages_count(messages) > 0 ? firn_jit_message_text(messages, 0) : "";
    firn_jit_messages_free(messages);
    return text;
  }
  firn_jit_trainer* handle_ = nullptr;
  std::atomic<bool> is_used_{false};
};

// The kind of the first error, the model if there is none, and all messages with their kinds.
nb::tuple compile(const Compiler& compiler, std::string name, nb::object data,
                  std::vector<std::string> options, std::vector<std::pair<std::string, uintptr_t>> symbols,
                  const nb::object& progress) {
  auto compilation = std::make_unique<firn::python::Compilation>(
      compiler.handle, std::move(name), std::move(data), std::move(options), std::move(symbols));
  firn::python::Compilation::run(compilation, progress);
  nb::object model = nb::none();
  if (firn_jit_model* made = compilation->take_model())
    model = nb::cast(new Model(made), nb::rv_policy::take_ownership);
  return nb::make_tuple(compilation->code(), model, compilation->messages());
}

// The address of a C-contiguous array's elements.
uintptr_t address_of(nb::handle array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_SIMPLE) != 0) throw nb::python_error();
  auto address = reinterpret_cast<uintptr_t>(buffer.buf);
  PyBuffer_Release(&buffer);
  return address;
}

std::vector<int64_t> dims_of(const firn_jit_tensor& tensor) {
  return {tensor.dims, tensor.dims + tensor.rank};
}

std::vector<Tensor> tensors_of(const Model& model, int32_t kind) {
  std::vector<Tensor> all;
  firn_jit_tensor tensor;
  for (size_t i = 0; firn_jit_model_tensor(model.handle, kind, i, &tensor); ++i)
    all.emplace_back(tensor.name, tensor.dtype, dims_of(tensor), tensor.bytes);
  return all;
}

// Name, lower and upper bound and multiple of each dim that varies.
nb::list varying_dims(const Model& model) {
  nb::list all;
  firn_jit_dim dim;
  for (size_t i = 0; firn_jit_model_dim(model.handle, i, &dim); ++i)
    all.append(nb::make_tuple(dim.name, dim.lower, dim.upper, dim.multiple));
  return all;
}

// The bytes of a tensor, which keep their instance or trainer alive; none where no memory is bound.
template <class Owner> nb::object bytes_of(nb::handle_t<Owner> self, int32_t kind, size_t index) {
  const firn_jit_tensor tensor = nb::cast<Owner&>(self).tensor(kind, index);
  if (!tensor.data) return nb::none();
  return nb::cast(Array(tensor.data, 1, &tensor.bytes, self, nullptr, nb::dtype<uint8_t>()));
}

// NumPy's array over the memory of another library's, and the name of its type. Types that NumPy lacks are
// integers of the same size.
template <class Given, class Result> nb::object borrowed(const nb::object& object) {
  Given given;
  if (!nb::try_cast(object, given)) return nb::none();
  nb::dlpack::dtype type = given.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  if (type.lanes != 1 || type.bits % 8 != 0) return nb::none();
  std::string name;
  switch (code) {
  case nb::dlpack::dtype_code::Bool:
  case nb::dlpack::dtype_code::Int:
  case nb::dlpack::dtype_code::UInt:
  case nb::dlpack::dtype_code::Float:
  case nb::dlpack::dtype_code::Complex: break;
  case nb::dlpack::dtype_code::Bfloat: name = "bfloat16"; break;
  case nb::dlpack::dtype_code::Float8_E4M3FN: name = "float8_e4m3fn"; break;
  case nb::dlpack::dtype_code::Float8_E4M3FNUZ: name = "float8_e4m3fnuz"; break;
  case nb::dlpack::dtype_code::Float8_E5M2: name = "float8_e5m2"; break;
  case nb::dlpack::dtype_code::Float8_E5M2FNUZ: name = "float8_e5m2fnuz"; break;
  case nb::dlpack::dtype_code::Float8_E8M0FNU: name = "float8_e8m0fnu"; break;
  default: return nb::none();
  }
  if (!name.empty()) type.code = static_cast<uint8_t>(nb::dlpack::dtype_code::UInt);
  std::vector<size_t> shape;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < given.ndim(); ++i) {
    shape.push_back(given.shape(i));
    strides.push_back(given.stride(i));
  }
  auto* data = given.data();
  nb::capsule owner(new Given(std::move(given)),
                    [](void* held) noexcept { delete static_cast<Given*>(held); });
  return nb::make_tuple(Result(data, shape.size(), shape.data(), owner, strides.data(), type), name);
}

nb::object borrow(const nb::object& object, bool writable) {
  return writable ? borrowed<nb::ndarray<nb::device::cpu>, Array>(object)
                  : borrowed<nb::ndarray<nb::ro, nb::device::cpu>, ReadOnlyArray>(object);
}

} // namespace

NB_MODULE(_firn, m) {
  nb::set_leak_warnings(false); // models that live until the interpreter ends are no leaks
  m.attr("INPUT") = static_cast<int>(FIRN_JIT_INPUT);
  m.attr("OUTPUT") = static_cast<int>(FIRN_JIT_OUTPUT);
  m.attr("STATE") = static_cast<int>(FIRN_JIT_STATE);
  m.attr("PARAMETER") = static_cast<int>(FIRN_JIT_PARAMETER);
  m.def("version", &firn_jit_version);
  m.def("status_message", &firn_jit_status_message);
  m.def("address_of", &address_of, "array"_a);
  m.def("borrow", &borrow, "object"_a, "writable"_a,
        nb::sig("def borrow(object: object, writable: bool) -> tuple[numpy.typing.NDArray[typing.Any], str] "
                "| None"));

  nb::class_<Compiler>(m, "Compiler")
      .def(nb::init<std::string>(), "folder"_a)
      .def("compile", &compile, "name"_a, "data"_a.none(), "options"_a, "symbols"_a, "progress"_a.none(),
           nb::sig("def compile(self, name: str, data: bytes | None, options: list[str], "
                   "symbols: list[tuple[str, int]], progress: collections.abc.Callable[[str], object] | None)"
                   " -> tuple[int, Model | None, list[tuple[int, str]]]"));
  nb::class_<Model>(m, "Model")
      .def("manifest", [](const Model& self) { return firn_jit_model_manifest(self.handle); })
      .def("arena_bytes", [](const Model& self) { return firn_jit_model_arena_bytes(self.handle); })
      .def("tensors", &tensors_of, "kind"_a)
      .def("dims", &varying_dims, nb::sig("def dims(self) -> list[tuple[str, int, int, int]]"));
  nb::class_<Instance>(m, "Instance")
      .def(nb::init<const Model&>(), "model"_a)
      .def("run", &Instance::run)
      .def("bind", &Instance::bind, "kind"_a, "index"_a, "data"_a, "bytes"_a)
      .def("set_dim", &Instance::set_dim, "name"_a, "value"_a)
      .def("reset", &Instance::reset)
      .def("lend", &Instance::lend, "threads"_a)
      .def("arena", &Instance::arena)
      .def(
          "shape",
          [](Instance& self, int32_t kind, size_t index) { return dims_of(self.tensor(kind, index)); },
          "kind"_a, "index"_a)
      .def("bytes", &bytes_of<Instance>, "kind"_a, "index"_a,
           nb::sig("def bytes(self, kind: int, index: int) -> numpy.typing.NDArray[numpy.uint8] | None"));
  nb::class_<Trainer>(m, "Trainer")
      .def(nb::init<const Model&>(), "model"_a)
      .def("step", [](Trainer& self) { return self.run(&firn_jit_trainer_step); })
      .def("evaluate", [](Trainer& self) { return self.run(&firn_jit_trainer_evaluate); })
      .def("infer", [](Trainer& self) { return self.run(&firn_jit_trainer_infer); })
      .def("loss", &Trainer::loss)
      .def("learning_rate", &Trainer::learning_rate)
      .def("set_learning_rate", &Trainer::set_learning_rate, "rate"_a)
      .def("step_count", &Trainer::step_count)
      .def("tensors", &Trainer::tensors, "kind"_a)
      .def("fit", &Trainer::fit, "dims"_a, "given"_a)
      .def("reset", &Trainer::reset)
      .def("save", &Trainer::save, "path"_a)
      .def("load", &Trainer::load, "path"_a)
      .def(
          "shape",
          [](Trainer& self, int32_t kind, size_t index) { return dims_of(self.tensor(kind, index)); },
          "kind"_a, "index"_a)
      .def("bytes", &bytes_of<Trainer>, "kind"_a, "index"_a,
           nb::sig("def bytes(self, kind: int, index: int) -> numpy.typing.NDArray[numpy.uint8]"));
}
