// Gathers the description of a compiled model.
#include "compiler/driver/describe.h"

#include "compiler/artifact/identifiers.h"
#include "compiler/artifact/interface.h"
#include "compiler/driver/describe_dims.h"
#include "compiler/driver/version.h"
#include "compiler/graph/computed_indices.h"
#include "compiler/lower/constant_source.h"
#include "compiler/support/sha256.h"
#include "compiler/target/cpu_table.h"
#include "include/firn/abi.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <span>
#include <tuple>
#include <utility>

static_assert(firn::kernel::kOutOfRange == FIRN_STATUS_OUT_OF_RANGE);

namespace firn::driver {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string public_name(const std::vector<std::string>& names, size_t i, const char* fallback) {
  return i < names.size() ? names[i] : fallback + std::to_string(i);
}

// "f32[64,3,7,7]": what bytes of raw weights are, signs of integers aside.
std::string type_text(const kernel::ConstantSource& source) {
  std::string text(kernel::scalar_name(source.element));
  for (size_t i = 0; i < source.dims.size(); ++i) text += (i ? "," : "[") + std::to_string(source.dims[i]);
  return text + (source.dims.empty() ? "" : "]");
}

const kernel::Buffer* io_buffer(const kernel::Program& program, kernel::Space space, size_t index) {
  for (const kernel::Buffer& buffer : program.buffers)
    if (buffer.io_index == static_cast<int>(index) &&
        (buffer.space == space || (is_state(space) && is_state(buffer.space))))
      return &buffer;
  return nullptr;
}

// An entry function, the program that computes it, and its description.
struct DescribedEntry {
  const Function& function;
  const kernel::Program& program;
  artifact::ModelDescription& description;
};

artifact::TensorDescription describe_tensor(const DescribedEntry& e, const std::string& name,
                                            const Type& type, kernel::Space space, size_t index) {
  artifact::TensorDescription tensor;
  tensor.name = name;
  tensor.dtype = type.dtype;
  for (const Dim& dim : type.dims)
    tensor.dims.push_back(dim.counted ? IntExpr(dim.extent.upper_bound())
                                      : public_extent(dim.extent, e.program, e.description));
  for (const kernel::Buffer& buffer : e.program.buffers)
    if (space == kernel::Space::Output && buffer.extent_of == static_cast<int>(index))
      tensor.counted_dims.push_back({static_cast<size_t>(buffer.extent_axis), buffer.offset});
  const kernel::Buffer* buffer = io_buffer(e.program, space, index);
  if (buffer && buffer->offset >= 0) tensor.arena_offset = buffer->offset;
  tensor.is_parameter = buffer && buffer->space == kernel::Space::Parameters;
  if (buffer && buffer->initial >= 0)
    tensor.initial_weights = e.program.buffers[static_cast<size_t>(buffer->initial)].offset;
  return tensor;
}

// Inputs, outputs and states, each numbered by themselves. The result that a state becomes is the state.
Result describe_tensors(const CompileOptions& options, const DescribedEntry& e) {
  artifact::ModelDescription& d = e.description;
  const Function& main = e.function;
  for (size_t i = 0; i < main.body().parameters().size(); ++i) {
    std::string name = public_name(main.parameter_names, i, "input_");
    bool is_state = main.is_state(i);
    auto& tensors = is_state ? d.states : d.inputs;
    if (is_state && contains(options.external, name))
      return usage_error("input '" + name +
                         "' is a state, which lies in the instance: it cannot be external");
    tensors.push_back(describe_tensor(e, name, main.body().parameters()[i]->type(),
                                      is_state ? kernel::Space::State : kernel::Space::Input,
                                      tensors.size()));
  }
  for (size_t i = 0; i < main.body().results().size(); ++i) {
    std::string name = public_name(main.result_names, i, "output_");
    if (!main.updates_state(i))
      d.outputs.push_back(
          describe_tensor(e, name, main.body().results()[i].type(), kernel::Space::Output, d.outputs.size()));
    else if (contains(options.external, name))
      return usage_error("output '" + name +
                         "' is the new value of a state, which lies in the instance: it "
                         "cannot be external");
  }
  return {};
}

void count_steps(const std::vector<kernel::Step>& steps, std::map<int, int64_t>& calls) {
  for (const kernel::Step& step : steps) {
    if (step.kind == kernel::Step::Kind::Call) ++calls[step.kernel];
    count_steps(step.first, calls);
    count_steps(step.second, calls);
  }
}

void describe_kernels(const kernel::Program& program, artifact::ModelDescription& d) {
  std::map<int, int64_t> calls;
  count_steps(program.steps, calls);
  d.flops = 0;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const kernel::Kernel& kernel = *program.kernels[i];
    artifact::KernelDescription row;
    row.name = kernel.name;
    row.calls = calls[static_cast<int>(i)];
    row.flops = kernel.flops * row.calls;
    row.bytes = kernel.bytes * row.calls;
    d.shared_kernels += kernel.is_for_baseline;
    d.flops += row.flops;
    d.kernels.push_back(std::move(row));
  }
}

// The hash of everything that decides what the object computes. Constants are made from the model, its
// external data and the flags; the planned program shows what schedules and bound dims did.
std::string content_hash(const Compilation& c) {
  const artifact::ModelDescription& d = c.description;
  std::string text = "firn " + d.firn_version + "\nmodel " + c.facts.digest.hex() + "\n";
  for (const FileDigest& digest : c.facts.external_digests) text += "external " + digest.hex() + "\n";
  text += "target " + d.triple + " " + c.target.display_name() + "\n";
  for (const std::string& flag : d.flags) text += "flag " + flag + "\n";
  text += kernel::print_program(c.program);
  for (const Variant& variant : c.variants)
    text += "target " + variant.cpu.name + "\n" + kernel::print_program(variant.program);
  for (const SpecializedProgram& specializations : c.specializations)
    text += "hot " + specializations.values + "\n" + kernel::print_program(specializations.program);
  for (const EntryPrograms& entry : c.entries) {
    text += "entry " + entry.function->name() + "\n" + kernel::print_program(entry.program);
    for (const Variant& variant : entry.variants) text += kernel::print_program(variant.program);
  }
  if (c.prepare) text += kernel::print_program(*c.prepare);
  return sha256_hex(std::as_bytes(std::span(text)));
}

// The features that a CPU must have for the code of the variant. Those of tiles count only if a kernel uses
// tiles, as systems may keep them from a process.
uint64_t features_for(const Compilation& c, size_t variant) {
  const Machine& target = c.target_of(variant);
  const auto& kernels = c.program_of(variant).kernels;
  uint64_t features = target.required_cpu_features;
  if (std::any_of(kernels.begin(), kernels.end(), [](const auto& kernel) { return !kernel->tiles.empty(); }))
    return features;
  for (const CpuFeature& feature : cpu_features(target.arch))
    if (feature.name.starts_with("amx-")) features &= ~(uint64_t{1} << feature.bit);
  return features;
}

// Describes the CPUs of an object for several.
void describe_cpus(Compilation& c) {
  artifact::ModelDescription& d = c.description;
  if (c.variants.empty()) return;
  d.cpus.push_back({c.cpu_name, features_for(c, 0), 0});
  for (size_t i = 0; i < c.variants.size(); ++i)
    d.cpus.push_back({c.variants[i].cpu.name, features_for(c, i + 1), c.variants[i].own_weight_bytes});
  d.cpu.clear();
  for (const artifact::CpuDescription& cpu : d.cpus) d.cpu += (d.cpu.empty() ? "" : ", ") + cpu.name;
}

void describe_specializations(Compilation& c) {
  for (const SpecializedProgram& specializations : c.specializations) {
    std::string name = c.variants.empty()
                           ? specializations.values
                           : specializations.values + ", " + c.name_of(specializations.variant);
    c.description.specializations.push_back({std::move(name), 0, specializations.own_weight_bytes});
  }
}

artifact::Indices indices_of(const CompileOptions& options, const Function& entry) {
  if (!has_computed_indices(entry.body())) return artifact::Indices::None;
  return options.goals.check_indices ? artifact::Indices::Checked : artifact::Indices::Clamped;
}

// "train_step" as the end of a class's name: "TrainStep".
std::string class_suffix(const std::string& function) {
  std::string suffix;
  bool begins = true;
  for (char letter : function) {
    bool is_letter = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (is_letter)
      suffix += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    begins = !is_letter;
  }
  return suffix;
}

bool updates_parameters(const Function& entry) {
  const Region& body = entry.body();
  for (size_t i = 0; i < body.results().size(); ++i) {
    if (!entry.updates_state(i)) continue;
    const auto state = static_cast<size_t>(entry.aliases[i]);
    if (entry.module()->is_parameter(public_name(entry.parameter_names, state, "input_")) &&
        !(body.results()[i] == body.parameter(static_cast<int>(state))))
      return true;
  }
  return false;
}

// Bytes of the arena in which an entry function beside @main runs, and their lower bound: those of @main's,
// or the most that the functions of a training step need.
std::pair<int64_t, int64_t> entry_arena(const Compilation& c) {
  std::pair<int64_t, int64_t> need{0, 0};
  auto add = [&](const kernel::Program& program) {
    need = {std::max(need.first, program.arena_bytes), std::max(need.second, program.arena_lower_bound)};
  };
  if (!c.has_trainer()) add(c.program);
  for (const EntryPrograms& entry : c.entries) {
    add(entry.program);
    for (const Variant& variant : entry.variants) add(variant.program);
  }
  return need;
}

// Every entry function beside @main has a class of its own, with the facts that all share.
Result describe_entries(const CompileOptions& options, Compilation& c) {
  artifact::ModelDescription& d = c.description;
  const artifact::SymbolNames owner = artifact::symbol_names(d);
  CompileOptions without_external = options; // names the tensors of @main
  without_external.external.clear();
  for (const EntryPrograms& entry : c.entries) {
    artifact::ModelDescription e = d;
    e.entries.clear();
    for (auto* tensors : {&e.inputs, &e.outputs, &e.states}) tensors->clear();
    e.dims.clear();
    e.kernels.clear();
    e.specializations.clear();
    e.shared_kernels = 0;
    e.entry = entry.function->name();
    e.class_name += class_suffix(e.entry);
    std::tie(e.arena_bytes, e.arena_lower_bound) = entry_arena(c);
    e.owner_class = d.class_name;
    e.owner_weights = owner.weights;
    if (Result described = describe_dims(entry.program, c.dims, e); !described) return described;
    if (Result described = describe_tensors(without_external, {*entry.function, entry.program, e});
        !described)
      return described;
    if (Result named = artifact::assign_identifiers(e, {}); !named) return named;
    e.updates_parameters = updates_parameters(*entry.function);
    e.indices = indices_of(options, *entry.function);
    e.tape_bytes = entry.function->tape_bytes;
    describe_kernels(entry.program, e);
    d.entries.push_back(std::move(e));
  }
  return {};
}

int32_t abi_architecture(Arch arch) {
  return arch == Arch::X86_64    ? FIRN_ARCH_X86_64
         : arch == Arch::AArch64 ? FIRN_ARCH_AARCH64
         : arch == Arch::Arm     ? FIRN_ARCH_ARM
                                 : FIRN_ARCH_OTHER;
}

} // namespace

artifact::Contributor contributor(const kernel::Buffer& buffer) {
  switch (buffer.space) {
  case kernel::Space::Input: return {"input '" + buffer.name + "'", buffer.bytes};
  case kernel::Space::Output: return {"output '" + buffer.name + "'", buffer.bytes};
  case kernel::Space::State:
  case kernel::Space::Parameters: return {"state '" + buffer.name + "'", buffer.bytes};
  case kernel::Space::Status: return {"the status of a run", buffer.bytes};
  default: break;
  }
  return {buffer.location.empty() ? buffer.name : "result of " + buffer.location, buffer.bytes};
}

Result check_names(const CompileOptions& options, const Function& main,
                   const std::vector<onnx::VaryingDim>& dims) {
  std::string known;
  for (const auto* names : {&main.parameter_names, &main.result_names})
    for (const std::string& name : *names) known += (known.empty() ? "'" : ", '") + name + "'";
  auto check = [&](const char* option, const std::string& name) -> Result {
    if (contains(main.parameter_names, name) || contains(main.result_names, name)) return {};
    return usage_error(std::string(option) + ": the model has no input or output '" + name + "'; it has " +
                       known);
  };
  for (const std::string& name : options.external)
    if (Result checked = check("--external", name); !checked) return checked;
  auto is_dim = [&](const std::string& name) {
    return std::any_of(dims.begin(), dims.end(), [&](const auto& dim) { return dim.name == name; });
  };
  for (const onnx::VaryingDim& dim : dims) known += ", dim '" + dim.name + "'";
  for (const auto& [new_name, old_name] : options.renames)
    if (Result checked = is_dim(old_name) ? Result() : check("--name", old_name); !checked) return checked;
  return {};
}

memory::ArenaOptions arena_options(const CompileOptions& options, const Function& entry) {
  memory::ArenaOptions plan;
  plan.fixes_interface = options.cpus.size() > 1 || !options.specializations.empty();
  for (size_t i = 0; i < entry.body().parameters().size(); ++i)
    if (!entry.is_state(i))
      plan.external_inputs.push_back(
          contains(options.external, public_name(entry.parameter_names, i, "input_")));
  for (size_t i = 0; i < entry.body().results().size(); ++i)
    if (!entry.updates_state(i))
      plan.external_outputs.push_back(
          contains(options.external, public_name(entry.result_names, i, "output_")));
  return plan;
}

Result describe(const CompileOptions& options, Compilation& c) {
  artifact::ModelDescription& d = c.description;
  d.model_name = c.module->name();
  d.source_file = options.model == kStandardInput ? "standard input" : options.model;
  d.source_sha256 = c.facts.digest.hex();
  d.class_name =
      options.class_name.empty() ? artifact::default_class_name(options.model) : options.class_name;
  if (Result valid = artifact::check_class_name(d.class_name); !valid) return valid;
  if (Result described = describe_dims(c.program, c.dims, d); !described) return described;
  if (Result described = describe_tensors(options, {c.module->main(), c.program, d}); !described)
    return described;
  if (Result named = artifact::assign_identifiers(d, options.renames); !named) return named;
  d.arena_alignment = kernel::buffer_alignment(c.program);
  d.arena_bytes = c.program.arena_bytes;
  d.arena_lower_bound = c.program.arena_lower_bound;
  d.parameter_bytes = c.parameters.bytes;
  d.tape_bytes = c.module->main().tape_bytes;
  d.weight_bytes = c.program.weight_bytes;
  d.peak = {c.peak.bytes, c.peak.step, c.peak.steps, c.peak.computes, {}};
  for (const memory::ArenaPeak::Alive& each : c.peak.alive) {
    artifact::Contributor what = contributor(c.program.buffers[static_cast<size_t>(each.buffer)]);
    d.peak.alive.push_back({std::move(what), each.until});
  }
  if (options.weights == Weights::Init) {
    d.raw_in_place = !c.prepare;
    d.prepared_bytes = c.prepare ? c.prepare->arena_bytes : 0;
    d.raw_weight_bytes = c.prepare ? c.prepare->weight_bytes : c.program.weight_bytes;
  }
  d.parameters = c.facts.parameters;
  d.node_count = c.facts.nodes;
  d.firn_version = kVersion;
  d.triple = c.target.triple;
  d.cpu = c.target.display_name();
  describe_cpus(c);
  describe_specializations(c);
  d.threads = c.target.gpu ? 1 : options.goals.threads; // a GPU asks no executor
  for (const auto& kernel : c.program.kernels) d.threads = std::max(d.threads, kernel->tasks);
  d.architecture = abi_architecture(c.target.arch);
  d.required_features = features_for(c, c.variants.size());
  d.flags = options.flags;
  d.content_hash = content_hash(c);
  d.indices = indices_of(options, c.module->main());
  describe_kernels(c.program, d);
  const kernel::Program& embedded = c.prepare ? *c.prepare : c.program;
  for (const kernel::Constant& constant : embedded.constants) {
    const kernel::Buffer& buffer = embedded.buffers[static_cast<size_t>(constant.buffer)];
    d.weights.push_back({buffer.name, buffer.bytes});
    bool may_change = lower::refittable_literal(constant.source) != nullptr;
    if (d.raw_weight_bytes)
      d.raw_weights.push_back(
          {constant.source.name, type_text(constant.source), buffer.offset, buffer.bytes, may_change});
  }
  std::sort(d.raw_weights.begin(), d.raw_weights.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return describe_entries(options, c);
}

codegen::CodegenOptions codegen_options(const CompileOptions& options, const Compilation& c) {
  artifact::SymbolNames symbols = artifact::symbol_names(c.description);
  codegen::CodegenOptions result{c.code_target(), options.goals.opt_level, symbols.run, symbols.weights,
                                 symbols.prefix};
  result.jobs = options.jobs;
  result.stop = options.stop;
  if (c.prepare) result.prepare = &*c.prepare;
  result.prepare_symbol = symbols.prepare;
  result.flushes_bf16 = options.goals.precision == Precision::BF16 && options.goals.math != Math::Strict;
  for (const Variant& variant : c.variants) result.variants.push_back({variant.cpu.target, &variant.program});
  for (const SpecializedProgram& specializations : c.specializations)
    result.specializations.push_back(
        {specializations.variant, &specializations.program, specializations.extents});
  for (size_t i = 0; i < c.entries.size(); ++i) {
    const EntryPrograms& entry = c.entries[i];
    codegen::EntryCode code{artifact::symbol_names(c.description.entries[i]).run, &entry.program, {}};
    for (const Variant& variant : entry.variants)
      code.variants.push_back({variant.cpu.target, &variant.program});
    result.entries.push_back(std::move(code));
  }
  return result;
}

void describe_object(Compilation& c) {
  c.description.code_bytes = c.object.text_bytes + c.object.rodata_bytes;
  c.description.weights_hash = c.object.weights_hash;
  c.description.object_bytes = c.object.object_bytes;
  c.description.stack_bytes = c.object.stack_bytes;
  for (artifact::ModelDescription& entry : c.description.entries) {
    entry.stack_bytes = c.object.stack_bytes;
    entry.weights_hash = c.object.weights_hash;
  }
  for (size_t i = 0; i < c.object.specialization_text_bytes.size(); ++i)
    c.description.specializations[i].code_bytes = c.object.specialization_text_bytes[i];
  for (auto& row : c.description.kernels)
    for (const auto& [name, bytes] : c.object.kernel_text_bytes)
      if (name == row.name) row.code_bytes = bytes;
}

} // namespace firn::driver
