// The outputs of a compilation.
#include "compiler/driver/write_outputs.h"

#include "compiler/artifact/depfile.h"
#include "compiler/artifact/header.h"
#include "compiler/artifact/manifest.h"
#include "compiler/artifact/report.h"
#include "compiler/codegen/ptx.h"
#include "compiler/driver/describe.h"
#include "compiler/driver/gpu_report.h"
#include "compiler/driver/packed_weights.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/kernel/weights_hash.h"
#include "compiler/support/mapped_file.h"
#include "compiler/support/output_set.h"

#include <filesystem>

namespace firn::driver {
namespace {

std::string model_stem(const CompileOptions& options) {
  if (options.model == kStandardInput) return "model";
  return std::filesystem::path(options.model).stem().string();
}

// Whether -o can only mean a folder: its files get the model's name.
bool is_folder(const std::string& output) {
  std::string name = output.substr(output.rfind('/') + 1);
  return name.empty() || name == "." || name == "..";
}

// The output without its extension: `-o build/digits` and `-o build/digits.o` mean the same.
std::string output_stem(const CompileOptions& options) {
  if (options.output.empty() || options.output == "-") return model_stem(options);
  std::filesystem::path path(options.output);
  if (is_folder(options.output)) return (path / model_stem(options)).string();
  if (path.extension() == ".o" || path.extension() == ".h" || path.extension() == ".json")
    path.replace_extension();
  return path.string();
}

// One program after the other.
std::string kernel_text(const Compilation& c) {
  std::string text = kernel::print_program(c.program);
  for (const Variant& variant : c.variants) text += "\n" + kernel::print_program(variant.program);
  for (const SpecializedProgram& specializations : c.specializations)
    text += "\n" + kernel::print_program(specializations.program);
  return text + (c.prepare ? "\n" + kernel::print_program(*c.prepare) : "");
}

Expected<std::string> emit_text(const CompileOptions& options, Compilation& c) {
  switch (options.emit) {
  case Emit::Graph: return print_module(*c.module);
  case Emit::Prepare: return print_module(*c.prepare_module);
  case Emit::Kernel: return kernel_text(c);
  case Emit::Llvm: return codegen::emit_llvm_text(c.program, c.codegen);
  case Emit::Assembly: return codegen::emit_assembly(c.program, c.codegen);
  case Emit::Ptx: {
    auto ptx = codegen::emit_ptx(c.program, c.target, options.goals.opt_level);
    return ptx ? Expected<std::string>(std::move(ptx->text)) : Expected<std::string>(ptx.error());
  }
  case Emit::Report: return gpu_report_text(c);
  case Emit::Header:
    c.description.weights_hash = kernel::hash_weights(c.prepare ? *c.prepare : c.program);
    return artifact::write_header(c.description);
  case Emit::Manifest: return artifact::write_manifest(c.description);
  case Emit::Object: break;
  }
  FIRN_UNREACHABLE("emitting an object as text");
}

const char* extension(Emit emit) {
  switch (emit) {
  case Emit::Graph:
  case Emit::Prepare: return ".hlo";
  case Emit::Kernel: return ".kir";
  case Emit::Llvm: return ".ll";
  case Emit::Assembly: return ".s";
  case Emit::Ptx: return ".ptx";
  case Emit::Report: return ".txt";
  case Emit::Header: return ".h";
  case Emit::Manifest: return ".json";
  case Emit::Object: return ".o";
  }
  FIRN_UNREACHABLE("emitting something unknown");
}

// Says what is written, then puts it into place.
Result finish(const CompileOptions& options, const Compilation& c, OutputSet& outputs) {
  if (options.announce)
    if (Result announced = options.announce(c); !announced) return announced;
  return outputs.commit();
}

// Writes the constants of the graph, or of the kernels.
Result write_side_file(const CompileOptions& options, const Compilation& c, OutputSet& outputs) {
  if (options.emit == Emit::Graph) return outputs.write(options.weights_out, write_literals(*c.module));
  if (c.prepare || !c.variants.empty() || !c.specializations.empty() || !c.entries.empty())
    return usage_error("--weights-out with --emit=kernel is for one program: not with --multiversion, --hot, "
                       "--train or --weights=init");
  StagedFile file(outputs, options.weights_out);
  return write_packed_weights(c.program, file);
}

// Writes one text to the file given, or hands it to the options' print.
Result write_text(const CompileOptions& options, Compilation& c, OutputSet& outputs) {
  auto text = emit_text(options, c);
  if (!text) return text.error();
  if (!options.weights_out.empty())
    if (Result written = write_side_file(options, c, outputs); !written) return written;
  if (options.output.empty() || options.output == "-") {
    if (!options.print) return usage_error("the text of --emit has no file to go to");
    if (Result printed = options.print(*text); !printed) return printed;
    return finish(options, c, outputs);
  }
  std::string path = options.output;
  if (is_folder(path)) path = output_stem(options) + extension(options.emit);
  if (Result written = outputs.write(path, *text); !written) return written;
  c.files.push_back(path);
  return finish(options, c, outputs);
}

// Generates the object and adds its sizes to the description.
Result make_object(const CompileOptions& options, Compilation& c, ByteSink& sink) {
  auto facts = codegen::emit_object(c.program, c.codegen, sink);
  if (!facts) return facts.error();
  c.object = std::move(*facts);
  describe_object(c);
  return artifact::check_budgets(c.description, {options.flash_budget, options.ram_budget});
}

// The rule that says which files the outputs depend on.
Expected<std::string> depfile_text(const CompileOptions& options, const Compilation& c) {
  std::vector<std::string> inputs;
  if (options.model != kStandardInput && !options.model_bytes) inputs.push_back(options.model);
  inputs.insert(inputs.end(), c.facts.external_files.begin(), c.facts.external_files.end());
  if (!options.schedule_db.empty()) inputs.push_back(options.schedule_db);
  return artifact::write_depfile(c.files, inputs);
}

} // namespace

Expected<ObjectTexts> write_object(const CompileOptions& options, Compilation& c, ByteSink& sink) {
  if (Result made = make_object(options, c, sink); !made) return made.error();
  return ObjectTexts{artifact::write_header(c.description), artifact::write_manifest(c.description)};
}

Result write_outputs(const CompileOptions& options, Compilation& c) {
  OutputSet outputs;
  if (options.emit != Emit::Object) {
    DiscardingSink object; // header and manifest state its sizes
    if (options.emit == Emit::Manifest || options.emit == Emit::Header)
      if (Result made = make_object(options, c, object); !made) return made;
    return write_text(options, c, outputs);
  }
  std::string stem = output_stem(options), object = stem + ".o", header = stem + ".h",
              manifest = stem + ".json";
  StagedFile object_file(outputs, object);
  auto texts = write_object(options, c, object_file);
  if (!texts) return texts.error();
  if (Result written = outputs.write(header, texts->header); !written) return written;
  if (Result written = outputs.write(manifest, texts->manifest); !written) return written;
  c.files = {object, header, manifest};
  if (!options.depfile.empty()) {
    auto rule = depfile_text(options, c);
    if (!rule) return rule.error();
    if (Result written = outputs.write(options.depfile, *rule); !written) return written;
  }
  return finish(options, c, outputs);
}

} // namespace firn::driver
