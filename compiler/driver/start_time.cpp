// Starts a model again and again, each time in a child that has compiled nothing before.
#include "compiler/driver/start_time.h"

#include "compiler/driver/guarded.h"
#include "compiler/driver/instance.h"
#include "compiler/driver/kept_executable.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace firn::driver {
namespace {

using Clock = std::chrono::steady_clock;

enum Part { kCompile, kLoad, kFirstRun, kAll, kParts };
constexpr const char* kPartNames[] = {"compile", "code and weights", "first run", "all"};
using Seconds = std::array<double, kParts>;

// No folder if it cannot be used, of which the compilation warns.
std::optional<CacheFolder> opened(const std::string& folder) {
  auto opened = CacheFolder::open(folder);
  return opened ? std::optional(std::move(*opened)) : std::nullopt;
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// The executable, and times until the program is compiled, or the kept one is found, and until code and
// weights are there. With a folder it is what clients of the library do that name one (tools/jit).
Expected<std::unique_ptr<LoadedExecutable>> make_executable(const CompileOptions& options,
                                                            std::shared_ptr<const CachedBytes>& kept_bytes,
                                                            HeapMemory& memory, Clock::time_point& compiled) {
  auto folder = options.cache_folder.empty() ? std::nullopt : opened(options.cache_folder);
  std::function<void(const ExecutableArchive&)> keep;
  if (folder && !depends_on_other_files(options)) {
    std::string content = file_identity(options.model);
    for (const std::string& flag : options.flags) content += "\n" + flag;
    const std::string name = kept_name(options, "start\n" + content);
    auto kept = find_kept(*folder, name, options, memory);
    compiled = Clock::now();
    if (kept) return kept_bytes = std::move(kept->bytes), std::move(kept->executable);
    keep = keeper(*folder, name);
  }
  DiagnosticList diagnostics;
  auto compilation = compile_in_memory(options, diagnostics);
  if (!compilation) return diagnostics.messages()[0];
  compiled = Clock::now();
  return LoadedExecutable::load(*compilation, memory, keep);
}

// Gives memory to what the arena has no place for.
void bind(Instance& instance, HeapMemory& memory) {
  for (size_t i = 0; i < instance.inputs().size(); ++i)
    if (const auto& slot = instance.inputs()[i]; !slot.memory)
      instance.bind_input(i, memory.allocate(slot.tensor->byte_size(), FIRN_WEIGHT_ALIGNMENT));
  for (size_t i = 0; i < instance.outputs().size(); ++i)
    if (const auto& slot = instance.outputs()[i]; !slot.memory)
      instance.bind_output(i, memory.allocate(slot.tensor->byte_size(), FIRN_WEIGHT_ALIGNMENT));
}

// From the model's file to its first output, on inputs of zeros.
Expected<Seconds> start_once(const CompileOptions& options) {
  const auto begun = Clock::now();
  auto compiled = begun;
  std::shared_ptr<const CachedBytes> kept_bytes; // outlive the executable
  HeapMemory memory;
  auto executable = make_executable(options, kept_bytes, memory, compiled);
  if (!executable) return executable.error();
  const auto loaded = Clock::now();
  const artifact::ModelDescription& d = (*executable)->description();
  std::byte* arena = memory.allocate(d.arena_bytes, d.arena_alignment);
  std::fill_n(arena, d.arena_bytes, std::byte{0});
  std::byte* parameters = memory.allocate(d.parameter_bytes, d.arena_alignment);
  Instance instance(**executable, arena, parameters);
  bind(instance, memory);
  if (firn_status status = instance.run(); status != FIRN_STATUS_OK)
    return usage_error(std::string("the first run ended early: ") + firn_rt2_status_message(status));
  const auto run = Clock::now();
  return Seconds{seconds_between(begun, compiled), seconds_between(compiled, loaded),
                 seconds_between(loaded, run), seconds_between(begun, run)};
}

// Starts the model in a child; nothing if that gave no times.
std::optional<Seconds> start_in_child(const CompileOptions& options) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  pid_t child = ::fork();
  if (child == 0) {
    auto seconds = start_once(options);
    bool written = seconds && ::write(ends[1], seconds->data(), sizeof(Seconds)) == sizeof(Seconds);
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  Seconds seconds;
  bool has_times = child > 0 && ::read(ends[0], seconds.data(), sizeof seconds) == sizeof seconds;
  ::close(ends[0]);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  return has_times ? std::optional(seconds) : std::nullopt;
}

// The repetition whose sum is the median.
Seconds median(std::vector<Seconds> all) {
  std::sort(all.begin(), all.end(), [](const Seconds& a, const Seconds& b) { return a[kAll] < b[kAll]; });
  return all[all.size() / 2];
}

std::string text_of(const Seconds& seconds, const StartOptions& options) {
  std::string text = options.json ? "{\n" : "";
  char line[128];
  for (int part = 0; part < kParts; ++part) {
    const char* comma = part + 1 < kParts ? "," : "";
    if (options.json)
      std::snprintf(line, sizeof line, "  \"%s\": %.6f%s\n", kPartNames[part],
                    seconds[static_cast<size_t>(part)], comma);
    else
      std::snprintf(line, sizeof line, "%-18s %9.4f s\n", kPartNames[part],
                    seconds[static_cast<size_t>(part)]);
    text += line;
  }
  return text + (options.json ? "}\n" : "");
}

} // namespace

std::optional<std::string> start_time(const StartOptions& options, DiagnosticList& diagnostics) {
  std::vector<Seconds> all;
  for (int i = 0; i < options.repetitions; ++i) {
    if (auto seconds = start_in_child(options.compile)) {
      all.push_back(*seconds);
      continue;
    }
    // The reason is found in this process.
    auto again = guarded(options.compile.model, [&] { return start_once(options.compile); });
    diagnostics.add(again ? internal_error("a child that starts the model gave no times") : again.error());
    return std::nullopt;
  }
  return text_of(median(std::move(all)), options);
}

} // namespace firn::driver
