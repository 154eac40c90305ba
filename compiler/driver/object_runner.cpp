// Linking and loading of freshly compiled objects.
#include "compiler/driver/object_runner.h"

#include "compiler/artifact/header_types.h"
#include "compiler/driver/describe.h"
#include "compiler/driver/text_source.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"
#include "include/firn/text.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace firn::driver {
namespace {

std::string read_log(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Heap final : public RunnerMemory {
public:
  std::byte* allocate(int64_t bytes, int64_t alignment) override {
    auto slack = static_cast<size_t>(alignment);
    blocks_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes) + slack));
    auto address = reinterpret_cast<uintptr_t>(blocks_.back().get());
    return blocks_.back().get() + (slack - address % slack) % slack;
  }

private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

constexpr int64_t kArenaAlignment = 64; // and that of weights

using Command = std::vector<std::string>;

// The commands that link the object with files of the program, and with the runtime's part for strings if the
// object calls it. That part is compiled by itself, because its standard is not that of the program's files.
Expected<std::vector<Command>> link_commands(const TemporaryFolder& folder, const std::string& object,
                                             const std::string& library, const Compilation& c) {
  const std::string compiler = compiler_named_by("CC", "cc"), include = "-I" + folder.path();
  Command link{compiler, "-shared", "-o", library, object};
  const bool has_text = calls_text(c);
  if (Result complete = check_program_files(c); !complete) return complete.error();
  if (!has_text && c.link.empty()) return std::vector<Command>{link};
  std::vector<Command> commands;
  for (const TextSource& source : kTextSources) {
    auto written = folder.write(source.name, source.content);
    if (!written) return written.error();
    if (!has_text || !written->ends_with(".cpp")) continue;
    commands.push_back({compiler, "-c", "-O2", "-fPIC", include, "-std=c++17", "-fno-exceptions", "-fno-rtti",
                        *written, "-o", *written + ".o"});
    link.push_back(*written + ".o");
  }
  link.insert(link.end(), {"-O2", "-fPIC", include});
  link.insert(link.end(), c.link.begin(), c.link.end());
  commands.push_back(std::move(link));
  return commands;
}

// Elements whose bytes lie in the runner's memory.
void store_text(const Literal& literal, RunnerMemory& memory, std::byte* to) {
  for (const std::string& each : literal.string_values()) {
    std::byte* bytes = memory.allocate(static_cast<int64_t>(each.size()), 1);
    std::memcpy(bytes, each.data(), each.size());
    firn_text text{};
    text.data = reinterpret_cast<const char*>(bytes);
    text.size = each.size();
    std::memcpy(to, &text, sizeof text);
    to += sizeof text;
  }
}

LiteralRef load_text(const std::byte* from, const std::vector<int64_t>& dims) {
  std::vector<std::string> strings;
  for (int64_t i = checked_num_elements(dims).value_or(0); i > 0; --i, from += sizeof(firn_text)) {
    firn_text text;
    std::memcpy(&text, from, sizeof text);
    strings.emplace_back(text.data ? text.data : "", static_cast<size_t>(text.size));
  }
  return Literal::strings(dims, std::move(strings));
}

} // namespace

std::string compiler_named_by(const char* variable, const char* usual) {
  const char* given = std::getenv(variable);
  return given && *given ? given : usual;
}

bool calls_text(const Compilation& c) {
  const auto& symbols = c.object.undefined_symbols;
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const std::string& symbol) { return symbol.starts_with("firn_rt2_text_"); });
}

Result check_program_files(const Compilation& c) {
  if (c.object.custom_symbols.empty() || !c.link.empty()) return {};
  return usage_error("the model calls the program's function '" + c.object.custom_symbols[0] +
                     "': give the file that defines it, --link FILE (.c, .cpp, .o, .a or .so)");
}

// Waits for the end of a child that leads a process group.
static int wait_for(pid_t child, int seconds) {
  using Clock = std::chrono::steady_clock;
  auto deadline = Clock::now() + std::chrono::seconds(seconds);
  for (bool limited = seconds > 0;;) {
    int status = 0;
    pid_t ended = ::waitpid(child, &status, limited ? WNOHANG : 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0) return -1;
    if (Clock::now() > deadline) {
      ::kill(-child, SIGKILL);
      limited = false;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

int run_program(const std::vector<std::string>& arguments, const std::string& log, int seconds) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // Compilers that are killed leave temporary files; they do so in the folder that goes.
  std::string temporary = "TMPDIR=" + std::filesystem::path(log).parent_path().string();
  std::vector<char*> environment{temporary.data()};
  for (char** entry = environ; *entry; ++entry)
    if (std::strncmp(*entry, "TMPDIR=", 7) != 0) environment.push_back(*entry);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failed, noted = -1;
  {
    SignalsHeld held;
    // The child does not hold signals back, and ends with all that it started: compilers start others.
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setsigmask(&attributes, &held.before());
    failed = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environment.data());
    ::posix_spawnattr_destroy(&attributes);
    if (failed == 0) noted = Unfinished::note_group(child);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int code = wait_for(child, seconds);
  Unfinished::forget(noted);
  return code;
}

Expected<std::unique_ptr<ObjectRunner>> ObjectRunner::create(Compilation& c, RunnerMemory* memory) {
  auto runner = std::unique_ptr<ObjectRunner>(new ObjectRunner);
  runner->compilation_ = &c;
  if (!memory) runner->heap_ = std::make_unique<Heap>();
  runner->memory_ = memory ? memory : runner->heap_.get();
  if (Result loaded = runner->load(); !loaded) return loaded.error();
  runner->arena_ = runner->memory_->allocate(c.program.arena_bytes, kArenaAlignment);
  runner->bind_weights(/*copied=*/memory != nullptr);
  if (c.module) runner->bind_tensors(); // programs made by hand take nothing and give nothing
  runner->reset();
  if (c.description.threads > 1) {
    runner->pool_ = std::make_unique<ThreadPool>(static_cast<size_t>(c.description.threads));
    runner->pool_executor_ = runner->pool_->executor();
    runner->executor_ = &runner->pool_executor_;
  }
  return runner;
}

std::unique_ptr<ObjectRunner> ObjectRunner::make_twin() const {
  auto twin = std::unique_ptr<ObjectRunner>(new ObjectRunner);
  twin->compilation_ = compilation_;
  twin->function_ = function_;
  twin->weights_ = weights_;
  twin->heap_ = std::make_unique<Heap>();
  twin->memory_ = twin->heap_.get();
  twin->arena_ = twin->memory_->allocate(compilation_->program.arena_bytes, kArenaAlignment);
  if (compilation_->module) twin->bind_tensors();
  twin->reset();
  return twin;
}

Result ObjectRunner::load() {
  Compilation& c = *compilation_;
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  std::string object = folder->file("model.o"), library = folder->file("model.so"), log = folder->file("log");
  codegen::CodegenOptions loadable = c.codegen;
  loadable.exported = true;
  auto facts = codegen::emit_object(c.program, loadable, object);
  if (!facts) return facts.error();
  c.object = std::move(*facts);
  describe_object(c);
  auto commands = link_commands(*folder, object, library, c);
  if (!commands) return commands.error();
  for (const Command& command : *commands)
    if (run_program(command, log) != 0)
      return usage_error("linking the object with '" + command[0] + "' failed: " + read_log(log));
  // Does what a constructor does, which is not linked here.
  const artifact::ModelDescription& d = c.description;
  uint64_t features = d.cpus.empty() ? d.required_features : d.cpus[c.run_variant].required_features;
  if (firn_status status = firn_rt2_check_cpu(d.architecture, features); status != FIRN_STATUS_OK)
    return usage_error(firn_rt2_status_message(status));
  library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) return usage_error(std::string("loading the object failed: ") + ::dlerror());
  function_ = reinterpret_cast<int (*)(const void*)>(::dlsym(library_, c.codegen.run_symbol.c_str()));
  auto weights =
      reinterpret_cast<const unsigned char* (*)()>(::dlsym(library_, c.codegen.weights_symbol.c_str()));
  FIRN_CHECK(function_ && weights, "the object lacks its exported functions");
  weights_ = weights();
  return {};
}

// Weights that the object does not hold as they are are prepared.
void ObjectRunner::bind_weights(bool copied) {
  if (!compilation_->prepare && !copied) return;
  const int64_t bytes =
      compilation_->prepare ? compilation_->prepare->arena_bytes : compilation_->program.weight_bytes;
  std::byte* bound = memory_->allocate(bytes, kArenaAlignment);
  const unsigned char* raw = weights_;
  prepared_ = bound;
  weights_ = reinterpret_cast<const unsigned char*>(bound);
  if (compilation_->prepare)
    prepare(raw);
  else
    std::copy_n(raw, bytes, reinterpret_cast<unsigned char*>(bound));
}

void ObjectRunner::prepare(const unsigned char* raw) {
  auto function =
      reinterpret_cast<int (*)(const void*)>(::dlsym(library_, compilation_->codegen.prepare_symbol.c_str()));
  FIRN_CHECK(function, "the object lacks its prepare function");
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = reinterpret_cast<unsigned char*>(prepared_);
  call.weights = raw;
  function(&call);
}

std::span<const std::byte> ObjectRunner::own_weights() const {
  auto weights = reinterpret_cast<const std::byte* (*)()>(
      ::dlsym(library_, compilation_->codegen.weights_symbol.c_str()));
  return {weights(), static_cast<size_t>(compilation_->description.embedded_weight_bytes())};
}

Result ObjectRunner::refit(std::span<const std::byte> raw) {
  const artifact::ModelDescription& d = compilation_->description;
  FIRN_CHECK(d.raw_weight_bytes && static_cast<int64_t>(raw.size()) == *d.raw_weight_bytes && prepared_,
             "refitting an object that holds packed weights");
  auto given = reinterpret_cast<const unsigned char*>(raw.data());
  auto own = reinterpret_cast<const unsigned char*>(own_weights().data());
  for (const artifact::RawWeights& tensor : d.raw_weights) {
    if (tensor.may_change) continue;
    const firn_rt2_range range = {static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.bytes)};
    if (firn_status status = firn_rt2_check_weights(given, own, &range, 1); status != FIRN_STATUS_OK)
      return usage_error(firn_rt2_status_message(status));
  }
  if (compilation_->prepare)
    prepare(given);
  else
    std::copy(raw.begin(), raw.end(), prepared_);
  return {};
}

void ObjectRunner::bind_tensors() {
  const artifact::ModelDescription& d = compilation_->description;
  const Function& main = compilation_->module->main();
  auto slot = [&](const artifact::TensorDescription& tensor) -> Slot {
    if (tensor.arena_offset) return {&tensor, arena_ + *tensor.arena_offset};
    int64_t element = std::clamp(bit_width(tensor.dtype) / 8, 1, 8);
    return {&tensor, memory_->allocate(tensor.byte_size(), element)};
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

ObjectRunner::~ObjectRunner() {
  if (library_) ::dlclose(library_);
}

int ObjectRunner::run_again() {
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = reinterpret_cast<unsigned char*>(arena_);
  call.weights = weights_;
  call.inputs = inputs_.data();
  call.outputs = outputs_.data();
  call.extents = dims_.extents.data();
  call.executor = executor_;
  std::fill(stamps_.begin(), stamps_.end(), 0);
  call.profile = stamps_.data();
  call.variant = compilation_->run_variant;
  return function_(&call);
}

bool ObjectRunner::inputs_are(const std::vector<LiteralRef>& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto bytes = inputs[i]->bytes();
    if (inputs[i]->dtype() == DType::String &&
        load_text(parameters_[i].memory, inputs[i]->dims())->string_values() != inputs[i]->string_values())
      return false;
    if (!compilation_->module->main().is_state(i) && !bytes.empty() &&
        std::memcmp(parameters_[i].memory, bytes.data(), bytes.size()) != 0)
      return false;
  }
  return true;
}

// Type and rank, and every dim that does not vary.
Result ObjectRunner::check_input(size_t parameter, const LiteralRef& input) const {
  const artifact::TensorDescription& wanted = *parameters_[parameter].tensor;
  if (!input && compilation_->module->main().is_state(parameter)) return {};
  if (!input) return usage_error("input '" + wanted.name + "' is not given");
  bool fits = input->dtype() == wanted.dtype && input->dims().size() == wanted.dims.size();
  for (size_t axis = 0; fits && axis < wanted.dims.size(); ++axis)
    fits = !wanted.dims[axis].is_constant() || wanted.dims[axis].value() == input->dims()[axis];
  if (fits) return {};
  return usage_error("input '" + wanted.name + "' is " + input->type().to_string() + ", the model wants " +
                     artifact::type_text(wanted));
}

Expected<std::vector<LiteralRef>> ObjectRunner::run(const std::vector<LiteralRef>& inputs) {
  if (inputs.size() != parameters_.size())
    return usage_error("got " + std::to_string(inputs.size()) + " inputs, the model has " +
                       std::to_string(parameters_.size()));
  std::vector<KnownExtent> known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (Result fits = check_input(i, inputs[i]); !fits) return fits.error();
    if (inputs[i]) add_known(*parameters_[i].tensor, inputs[i]->dims(), known);
  }
  auto dims = find_dims(compilation_->description, std::move(known));
  if (!dims) return dims.error();
  dims_ = std::move(*dims);
  const Compilation& c = *compilation_;
  if (c.codegen.profile) stamps_.resize(c.program_at(c.run_variant, dims_.extents).steps.size() + 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && inputs[i]->dtype() == DType::String)
      store_text(*inputs[i], *memory_, parameters_[i].memory);
    else if (inputs[i])
      std::copy_n(inputs[i]->bytes().data(), inputs[i]->bytes().size(), parameters_[i].memory);
  if (int status = run_again(); status != FIRN_STATUS_OK)
    return usage_error(std::string("the run ended early: ") + firn_rt2_status_message(status));
  std::vector<LiteralRef> results;
  for (const Slot& result : results_) {
    std::vector<int64_t> dims = actual_dims(*result.tensor, dims_);
    for (const artifact::CountedDim& counted : result.tensor->counted_dims)
      std::memcpy(&dims[counted.axis], arena_ + counted.arena_offset, sizeof(int64_t));
    if (result.tensor->dtype == DType::String) {
      results.push_back(load_text(result.memory, dims));
      continue;
    }
    auto literal = std::make_shared<Literal>(result.tensor->dtype, dims);
    std::copy_n(result.memory, literal->bytes().size(), literal->mutable_bytes().data());
    results.push_back(std::move(literal));
  }
  return results;
}

} // namespace firn::driver
