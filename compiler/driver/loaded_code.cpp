// See loaded_code.h.
#include "compiler/driver/loaded_code.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/runtime_symbols.h"
#include "compiler/driver/system_loader.h"
#include "compiler/load/loaded_object.h"
#include "compiler/support/mapped_file.h"
#include "include/firn/abi.h"

namespace firn::driver {
namespace {

class CodeInProcess final : public LoadedCode {
public:
  explicit CodeInProcess(load::LoadedObject object) : object_(std::move(object)) {}
  void* symbol(const std::string& name) const override { return object_.symbol(name); }

private:
  load::LoadedObject object_;
};

Expected<std::unique_ptr<LoadedCode>> load_in_process(const Compilation& c, const std::string& object) {
  auto file = MappedFile::open(object);
  if (!file) return file.error();
  load::LoadOptions options;
  options.name = "the object of " + c.description.class_name;
  options.symbols = runtime_symbols();
  auto loaded = load::LoadedObject::load((*file)->bytes(), options);
  if (!loaded) return loaded.error();
  return std::unique_ptr<LoadedCode>(std::make_unique<CodeInProcess>(std::move(*loaded)));
}

// Does what the constructor of a model does, which is not linked here.
Result check_cpu(const Compilation& c) {
  const artifact::ModelDescription& d = c.description;
  uint64_t features = d.cpus.empty() ? d.required_features : d.cpus[c.run_variant].required_features;
  firn_status status = firn_rt2_check_cpu(d.architecture, features);
  return status == FIRN_STATUS_OK ? Result() : usage_error(firn_rt2_status_message(status));
}

} // namespace

Expected<std::unique_ptr<LoadedCode>> load_code(Compilation& c) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  // Files of the program may keep their functions to what they are linked with.
  const bool by_system = c.loader == Loader::System || !c.link.empty();
  codegen::CodegenOptions options = c.codegen;
  options.exported = by_system;
  const std::string object = folder->file("model.o");
  auto facts = codegen::emit_object(c.program, options, object);
  if (!facts) return facts.error();
  c.object = std::move(*facts);
  describe_object(c);
  if (Result complete = check_program_files(c); !complete) return complete.error();
  if (Result runs = check_cpu(c); !runs) return runs.error();
  return by_system ? load_by_system(c, *folder, object) : load_in_process(c, object);
}

} // namespace firn::driver
