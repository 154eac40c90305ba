// See loaded_code.h.
#include "compiler/driver/loaded_code.h"

#include "compiler/driver/describe.h"
#include "compiler/driver/runtime_symbols.h"
#include "compiler/driver/system_loader.h"
#include "compiler/load/loaded_object.h"
#include "compiler/support/byte_sink.h"
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

// Does what the constructor of a model does, which is not linked here.
Result check_cpu(const artifact::ModelDescription& d, size_t variant) {
  uint64_t features = d.cpus.empty() ? d.required_features : d.cpus[variant].required_features;
  firn_status status = firn_rt2_check_cpu(d.architecture, features);
  return status == FIRN_STATUS_OK ? Result() : usage_error(firn_rt2_status_message(status));
}

// Whether the compilation can be loaded, by what is known once its object is there.
Result complete(Compilation& c, codegen::ObjectFacts facts) {
  c.object = std::move(facts);
  describe_object(c);
  if (Result linked = check_program_files(c); !linked) return linked;
  return check_cpu(c.description, c.run_variant);
}

} // namespace

Expected<std::string> generate_code(Compilation& c) {
  MemorySink object;
  codegen::CodegenOptions options = c.codegen;
  options.omits_weights = !c.prepare;
  auto facts = codegen::emit_object(c.program, options, object);
  if (!facts) return facts.error();
  if (Result loadable = complete(c, std::move(*facts)); !loadable) return loadable.error();
  return object.take();
}

Expected<std::unique_ptr<LoadedCode>> load_object(const artifact::ModelDescription& d, size_t variant,
                                                  const std::map<std::string, void*>& symbols,
                                                  const load::Visibility& visibility,
                                                  std::string_view object) {
  if (Result runs = check_cpu(d, variant); !runs) return runs.error();
  load::LoadOptions options;
  options.name = "the object of " + d.class_name;
  options.symbols = runtime_symbols();
  options.symbols.insert(symbols.begin(), symbols.end());
  options.visibility = visibility;
  auto loaded = load::LoadedObject::load(std::as_bytes(std::span(object)), options);
  if (!loaded) return loaded.error();
  return std::unique_ptr<LoadedCode>(std::make_unique<CodeInProcess>(std::move(*loaded)));
}

bool is_loaded_by_system(const Compilation& c) {
  // Files of the program may keep their functions to what they are linked with.
  return c.loader == Loader::System || !c.link.empty();
}

Expected<std::unique_ptr<LoadedCode>> load_by_system(Compilation& c) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  codegen::CodegenOptions options = c.codegen;
  options.exported = true;
  const std::string object = folder->file("model.o");
  auto facts = codegen::emit_object(c.program, options, object);
  if (!facts) return facts.error();
  if (Result loadable = complete(c, std::move(*facts)); !loadable) return loadable.error();
  return link_and_load(c, *folder, object);
}

} // namespace firn::driver
