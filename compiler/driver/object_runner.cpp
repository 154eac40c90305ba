// Linking and loading of freshly compiled objects.
#include "compiler/driver/object_runner.h"

#include "compiler/driver/describe.h"
#include "include/firn/abi.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace firn::driver {
namespace {

std::string read_log(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Memory of `bytes` in `memory`, aligned as arenas and weights are.
std::byte* allocate(std::unique_ptr<std::byte[]>& memory, int64_t bytes) {
  memory = std::make_unique<std::byte[]>(static_cast<size_t>(bytes) + 64);
  auto address = reinterpret_cast<uintptr_t>(memory.get());
  return memory.get() + (64 - address % 64) % 64;
}

} // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "firn-XXXXXX").string();
  if (!error && ::mkdtemp(pattern.data())) path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

int run_program(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

Expected<std::unique_ptr<ObjectRunner>> ObjectRunner::create(Compilation& c) {
  TemporaryFolder folder;
  if (folder.path().empty()) return usage_error("cannot make a temporary folder");
  std::string object = folder.path() + "/model.o", library = folder.path() + "/model.so",
              log = folder.path() + "/log";
  auto facts = codegen::emit_object(c.program, c.codegen, object);
  if (!facts) return facts.error();
  c.object = std::move(*facts);
  describe_object(c);
  const char* compiler = std::getenv("CC");
  int code = run_program({compiler && *compiler ? compiler : "cc", "-shared", "-o", library, object}, log);
  if (code != 0) return usage_error("linking the object with 'cc' failed: " + read_log(log));
  auto runner = std::unique_ptr<ObjectRunner>(new ObjectRunner);
  runner->compilation_ = &c;
  runner->library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!runner->library_) return usage_error(std::string("loading the object failed: ") + ::dlerror());
  runner->function_ =
      reinterpret_cast<int (*)(const void*)>(::dlsym(runner->library_, c.codegen.run_symbol.c_str()));
  auto weights = reinterpret_cast<const unsigned char* (*)()>(
      ::dlsym(runner->library_, c.codegen.weights_symbol.c_str()));
  FIRN_CHECK(runner->function_ && weights, "the object lacks its exported functions");
  runner->weights_ = weights();
  if (c.prepare) runner->prepare_weights();
  runner->arena_ = allocate(runner->memory_, c.program.arena_bytes);
  if (c.module) runner->bind_tensors(); // programs made by hand take nothing and give nothing
  runner->reset();
  if (c.codegen.profile) runner->stamps_.resize(c.program.steps.size() + 1);
  return runner;
}

void ObjectRunner::bind_tensors() {
  const artifact::ModelDescription& d = compilation_->description;
  const Function& main = compilation_->module->main();
  auto slot = [&](const artifact::TensorDescription& tensor) -> Slot {
    if (tensor.arena_offset) return {&tensor, arena_ + *tensor.arena_offset};
    external_.emplace_back(static_cast<size_t>(tensor.byte_size()));
    return {&tensor, external_.back().data()};
  };
  size_t states = 0;
  for (size_t i = 0; i < main.body().parameters().size(); ++i) {
    bool is_state = main.is_state(i);
    parameters_.push_back(slot(is_state ? d.states[states++] : d.inputs[inputs_.size()]));
    if (!is_state) inputs_.push_back(parameters_.back().memory);
  }
  for (size_t i = 0; i < main.body().results().size(); ++i) {
    bool is_state = main.updates_state(i);
    results_.push_back(is_state ? parameters_[static_cast<size_t>(main.aliases[i])]
                                : slot(d.outputs[outputs_.size()]));
    if (!is_state) outputs_.push_back(results_.back().memory);
  }
}

void ObjectRunner::reset() {
  for (const artifact::TensorDescription& state : compilation_->description.states) {
    std::byte* memory = arena_ + *state.arena_offset;
    auto bytes = static_cast<size_t>(state.byte_size());
    if (state.initial_weights)
      std::memcpy(memory, weights_ + *state.initial_weights, bytes);
    else
      std::memset(memory, 0, bytes);
  }
}

void ObjectRunner::prepare_weights() {
  auto prepare =
      reinterpret_cast<int (*)(const void*)>(::dlsym(library_, compilation_->codegen.prepare_symbol.c_str()));
  FIRN_CHECK(prepare, "the object lacks its prepare function");
  auto* packed = reinterpret_cast<unsigned char*>(allocate(prepared_, compilation_->program.weight_bytes));
  firn_rt1_call call{packed, weights_, nullptr, nullptr, nullptr};
  prepare(&call);
  weights_ = packed;
}

ObjectRunner::~ObjectRunner() {
  if (library_) ::dlclose(library_);
}

void ObjectRunner::run_again() {
  firn_rt1_call call{reinterpret_cast<unsigned char*>(arena_), weights_, inputs_.data(), outputs_.data(),
                     stamps_.empty() ? nullptr : reinterpret_cast<const firn_executor*>(stamps_.data())};
  function_(&call);
}

std::vector<double> ObjectRunner::profile(double seconds) {
  FIRN_CHECK(!stamps_.empty(), "only profiled code tells the time of its steps");
  std::vector<std::vector<double>> cycles(stamps_.size() - 1);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int runs = 0; runs < 5 || (std::chrono::steady_clock::now() < end && runs < 10000); ++runs) {
    run_again();
    for (size_t i = 0; i < cycles.size(); ++i)
      cycles[i].push_back(static_cast<double>(stamps_[i + 1] - stamps_[i]));
  }
  std::vector<double> shares;
  double total = 0;
  for (std::vector<double>& samples : cycles) {
    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                     samples.end());
    shares.push_back(samples[samples.size() / 2]);
    total += shares.back();
  }
  for (double& share : shares) share /= total > 0 ? total : 1;
  return shares;
}

Expected<std::vector<LiteralRef>> ObjectRunner::run(const std::vector<LiteralRef>& inputs) {
  if (inputs.size() != parameters_.size())
    return usage_error("got " + std::to_string(inputs.size()) + " inputs, the model has " +
                       std::to_string(parameters_.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] && compilation_->module->main().is_state(i)) continue;
    const artifact::TensorDescription& wanted = *parameters_[i].tensor;
    if (!inputs[i]) return usage_error("input '" + wanted.name + "' is not given");
    if (inputs[i]->dtype() != wanted.dtype || inputs[i]->dims() != wanted.dims)
      return usage_error("input '" + wanted.name + "' is " + inputs[i]->type().to_string() +
                         ", the model wants " + Type::tensor_of(wanted.dtype, wanted.dims).to_string());
    std::memcpy(parameters_[i].memory, inputs[i]->bytes().data(), inputs[i]->bytes().size());
  }
  run_again();
  std::vector<LiteralRef> results;
  for (const Slot& result : results_) {
    auto literal = std::make_shared<Literal>(result.tensor->dtype, result.tensor->dims);
    std::memcpy(literal->mutable_bytes().data(), result.memory, literal->bytes().size());
    results.push_back(std::move(literal));
  }
  return results;
}

} // namespace firn::driver
