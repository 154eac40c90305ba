// See system_loader.h.
#include "compiler/driver/system_loader.h"

#include "compiler/driver/run_program.h"
#include "compiler/driver/text_source.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>

namespace firn::driver {
namespace {

std::string read_log(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

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

class SharedLibrary final : public LoadedCode {
public:
  explicit SharedLibrary(void* library) : library_(library) {}
  ~SharedLibrary() override { ::dlclose(library_); }
  SharedLibrary(const SharedLibrary&) = delete;
  void* symbol(const std::string& name) const override { return ::dlsym(library_, name.c_str()); }

private:
  void* library_;
};

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
  if (!c.link.empty()) return {};
  for (const std::string& symbol : c.object.custom_symbols)
    if (!c.symbols.count(symbol))
      return usage_error("the model calls the program's function '" + symbol +
                         "': give the file that defines it, --link FILE (.c, .cpp, .o, .a or .so)");
  return {};
}

Expected<std::unique_ptr<LoadedCode>> link_and_load(const Compilation& c, const TemporaryFolder& folder,
                                                    const std::string& object) {
  const std::string library = folder.file("model.so"), log = folder.file("log");
  auto commands = link_commands(folder, object, library, c);
  if (!commands) return commands.error();
  for (const Command& command : *commands)
    if (run_program(command, log) != 0)
      return usage_error("linking the object with '" + command[0] + "' failed: " + read_log(log));
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return usage_error(std::string("loading the object failed: ") + ::dlerror());
  return std::unique_ptr<LoadedCode>(std::make_unique<SharedLibrary>(loaded));
}

} // namespace firn::driver
