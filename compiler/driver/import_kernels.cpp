// See import_kernels.h.
#include "compiler/driver/import_kernels.h"

#include "compiler/driver/import_model.h"
#include "compiler/driver/packed_weights.h"
#include "compiler/driver/program_interface.h"
#include "compiler/driver/read_graph.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/kernel/weights_hash.h"
#include "compiler/support/mapped_file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/text_scanner.h"

#include <algorithm>
#include <span>
#include <vector>

namespace firn::driver {
namespace {

using kernel::Space;

// Refuses options that decide what kernels are made of a model: these are made.
Result check_options(const CompileOptions& options) {
  const std::string given = given_import_option(options.import);
  for (const auto& [name, is_given] : {std::pair<std::string, bool>{given, !given.empty()},
                                       {"--entry", !options.entry.empty()},
                                       {"--train", options.training.has_value()},
                                       {"--multiversion", !options.cpus.empty()},
                                       {"--hot", !options.specializations.empty()},
                                       {"--weights=init", options.weights == Weights::Init},
                                       {"--external", !options.external.empty()},
                                       {"--passes", options.passes != "default"},
                                       {"--schedule-db", !options.schedule_db.empty()},
                                       {"--memory-budget", options.memory_budget.has_value()},
                                       {"--emit=graph", options.emit == Emit::Graph},
                                       {"--emit=prepare", options.emit == Emit::Prepare}})
    if (is_given)
      return usage_error(name + " goes with a model or a graph: kernels in text form are made already");
  return {};
}

void mark_used(std::span<const kernel::Step> steps, std::vector<bool>& used) {
  for (const kernel::Step& step : steps) {
    for (const kernel::Argument& argument : step.arguments) used[static_cast<size_t>(argument.buffer)] = true;
    if (step.has_condition()) used[static_cast<size_t>(step.condition.buffer)] = true;
    mark_used(step.first, used);
    mark_used(step.second, used);
  }
}

// Every buffer that a run uses lies within the memory that the program says it takes. Values that fusion made
// needless have buffers without a place.
Result check_places(const kernel::Program& program) {
  std::vector<bool> used(program.buffers.size());
  mark_used(program.steps, used);
  for (const kernel::Constant& constant : program.constants)
    used[static_cast<size_t>(constant.buffer)] = true;
  for (size_t i = 0; i < used.size(); ++i) {
    const kernel::Buffer& buffer = program.buffers[i];
    if (buffer.space == Space::Parameters)
      return unsupported_error(
          "buffer '" + buffer.name +
          "' is a parameter of a training step, which is not made of kernels in text form");
    const bool may_be_elsewhere = buffer.space == Space::Input || buffer.space == Space::Output || !used[i];
    const int64_t size = buffer.space == Space::Weights ? program.weight_bytes : program.arena_bytes;
    const char* memory = buffer.space == Space::Weights ? "weights" : "arena";
    if (buffer.bytes == 0 || (buffer.offset < 0 && may_be_elsewhere)) continue;
    if (buffer.offset < 0) return model_error("buffer '" + buffer.name + "' has no offset in the " + memory);
    if (buffer.offset > size - buffer.bytes)
      return model_error("buffer '" + buffer.name + "' ends at " +
                         std::to_string(buffer.offset + buffer.bytes) + " of the " + memory + ", which has " +
                         std::to_string(size) + " bytes");
  }
  return {};
}

// Constants share no byte of the weights.
Result check_constants(const kernel::Program& program) {
  const kernel::Buffer* before = nullptr;
  for (const kernel::Constant* constant : kernel::constants_by_offset(program)) {
    const kernel::Buffer& buffer = program.buffers[static_cast<size_t>(constant->buffer)];
    if (buffer.bytes == 0) continue;
    if (before && buffer.offset < before->offset + before->bytes)
      return model_error("constants '" + before->name + "' and '" + buffer.name + "' overlap");
    before = &buffer;
  }
  return {};
}

onnx::ModelFacts facts_of(const Module& module, std::string digest) {
  onnx::ModelFacts facts;
  facts.graph_name = module.name();
  facts.digest = FileDigest(std::move(digest));
  const Function& main = module.main();
  for (size_t i = 0; i < main.parameter_names.size(); ++i)
    facts.inputs.push_back({main.parameter_names[i], main.body().parameters()[i]->type().to_string(),
                            /*has_initializer=*/main.is_state(i)});
  return facts;
}

} // namespace

bool is_kernel_text(const CompileOptions& options) {
  if (options.model.ends_with(".kir")) return true;
  auto opens_program = [&](std::span<const std::byte> bytes) {
    return TextScanner(options.model, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
        .next_is("program");
  };
  if (options.model_bytes) return opens_program(*options.model_bytes);
  if (options.model != kStandardInput) return false;
  auto input = MappedFile::open(kStandardInput);
  return input && opens_program((*input)->bytes());
}

Expected<ImportedKernels> import_kernels(const CompileOptions& options) {
  if (Result allowed = check_options(options); !allowed) return allowed.error();
  auto model = open_model(options);
  if (!model) return model.error();
  const MappedFile& file = *model->file;
  const std::string text(text_of(file));
  auto program = parse_kernels(file.path(), text);
  if (!program) return program.error();
  auto located = [&](const Diagnostic& error) {
    Diagnostic with_file = error;
    with_file.message = file.path() + ": " + error.message;
    return with_file;
  };
  if (Result placed = check_places(*program); !placed) return located(placed.error());
  if (Result apart = check_constants(*program); !apart) return located(apart.error());
  auto module = module_of(*program);
  if (!module) return located(module.error());
  kernel::make_entry(*program, kernel::KernelPassOptions());
  ImportedKernels imported{std::move(*program), std::move(*module), {}, {}};
  imported.facts = facts_of(*imported.module, sha256_hex(std::as_bytes(std::span(text))));
  imported.dims = dims_of(imported.program);
  std::shared_ptr<const MappedFile> weights;
  if (!options.weights_in.empty()) {
    auto opened = MappedFile::open(options.weights_in);
    if (!opened) return opened.error();
    weights = std::move(*opened);
    imported.facts.external_files = {options.weights_in};
    imported.facts.external_digests.emplace_back(weights);
  }
  if (Result taken = take_packed_weights(imported.program, weights); !taken) return taken.error();
  return imported;
}

} // namespace firn::driver
