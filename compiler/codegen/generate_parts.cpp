// Kernels come first, the largest ahead, then what calls them: only then is it known which kernels of several
// CPUs have equal code, and which of those is kept.
#include "compiler/codegen/code_cache.h"
#include "compiler/codegen/generate_object.h"
#include "compiler/codegen/generation.h"
#include "compiler/codegen/kernel_thunk.h"
#include "compiler/codegen/merge_objects.h"
#include "compiler/codegen/parts.h"
#include "compiler/support/run_parallel.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>

namespace firn::codegen {
namespace {

// The code of one part.
struct PartCode {
  RelocatableObject object;
  StackDepths stack;
  bool is_cached = false;
};

bool defines(const RelocatableObject& object, const std::string& function) {
  return std::any_of(object.symbols.begin(), object.symbols.end(), [&](const ObjectSymbol& symbol) {
    return symbol.name == function && symbol.section != kUndefined;
  });
}

// Nothing if the cache has no code of the part, or what is none.
std::optional<PartCode> find_code(CodeCache& cache, const KernelPart& part) {
  std::optional<CachedCode> found = cache.find(part.key);
  if (!found) return std::nullopt;
  try {
    PartCode code{read_object(found->object), {}, /*is_cached=*/true};
    code.stack.kernel = found->kernel_stack;
    code.stack.other = found->other_stack;
    return defines(code.object, part.symbol) ? std::optional(std::move(code)) : std::nullopt;
  } catch (const InternalFailure&) {
    return std::nullopt;
  }
}

// Machines that no thread uses. What a machine knows of its CPU takes as long to find out as the code of a
// small kernel takes to generate.
class IdleMachines {
public:
  // Null if there is none.
  std::unique_ptr<llvm::TargetMachine> take() {
    std::lock_guard lock(mutex_);
    if (machines_.empty()) return nullptr;
    std::unique_ptr<llvm::TargetMachine> machine = std::move(machines_.back());
    machines_.pop_back();
    return machine;
  }
  void put(std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    machines_.push_back(std::move(machine));
  }

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<llvm::TargetMachine>> machines_;
};

class PartGenerator {
public:
  PartGenerator(const kernel::Program& program, const CodegenOptions& options)
      : program_(program), options_(options), parts_(list_parts(program, options)),
        codes_(parts_.kernels.size()) {
    for (size_t i = 0; i < codes_.size(); ++i) kept_.push_back(i);
  }

  Expected<GeneratedObject> generate() {
    if (Result done = generate_kernels(); !done) return done.error();
    if (options_.has_choice() || !options_.entries.empty()) merge_equal_parts();
    auto callers = generate_callers();
    if (!callers) return callers.error();
    return merge(**callers);
  }

private:
  Result generate_kernels() {
    std::vector<size_t> order(parts_.kernels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return parts_.kernels[a].ops > parts_.kernels[b].ops; });
    std::vector<Result> results(order.size());
    run_parallel(order.size(), options_.jobs, [&](size_t i) {
      results[order[i]] = is_stopped() ? stopped_error() : generate_kernel(order[i]);
    });
    for (const Result& result : results)
      if (!result) return result;
    return {};
  }

  bool is_stopped() const { return options_.stop && *options_.stop; }

  Result generate_kernel(size_t number) {
    const KernelPart& part = parts_.kernels[number];
    if (options_.cache)
      if (auto code = find_code(*options_.cache, part)) return codes_[number] = std::move(*code), Result();
    auto generated = codegen::generate(
        options_, Stage::Object, ", in kernel '" + part.kernel->name + "'",
        [&](Generation& generation) {
          return emit_module(part, options_, generation.machine->createDataLayout(), generation.context);
        },
        idle_machines_.take());
    if (!generated) return generated.error();
    Generation& generation = **generated;
    const StackDepths stack = stack_depths(generation.report, options_, generation.emitted);
    codes_[number] = {read_object(generation.output), stack, /*is_cached=*/false};
    if (options_.cache)
      options_.cache->keep(part.key,
                           {{generation.output.data(), generation.output.size()}, stack.kernel, stack.other});
    idle_machines_.put(std::move(generation.machine));
    return {};
  }

  uint64_t required_features(size_t part) const {
    return options_.target_of(parts_.kernels[part].variant).required_cpu_features;
  }

  bool can_stand_for(size_t kept, size_t part) const {
    const KernelPart &a = parts_.kernels[kept], &b = parts_.kernels[part];
    return (required_features(kept) & ~required_features(part)) == 0 &&
           taken_arguments(*a.kernel, a.facts) == taken_arguments(*b.kernel, b.facts) &&
           are_equal_but_for_names(codes_[kept].object, a.symbol, codes_[part].object, b.symbol);
  }

  // Keeps one of the parts of several CPUs that have equal code.
  void merge_equal_parts() {
    for (const std::vector<size_t>& group : parts_of_equal_text(parts_, options_)) {
      std::vector<size_t> different;
      for (size_t part : group) {
        auto equal = std::find_if(different.begin(), different.end(),
                                  [&](size_t kept) { return can_stand_for(kept, part); });
        if (equal == different.end())
          different.push_back(part);
        else
          kept_[part] = *equal;
      }
    }
  }

  const KernelPart& part_of(const kernel::Kernel& kernel) const {
    return parts_.kernels[kept_[parts_.numbers.at(&kernel)]];
  }

  Expected<std::unique_ptr<Generation>> generate_callers() {
    KernelNames names;
    for (const auto& [kernel, number] : parts_.numbers) names[kernel] = part_of(*kernel).symbol;
    return codegen::generate(
        options_, Stage::Object, "",
        [&](Generation& generation) {
          return emit_module(program_, options_, generation.machine->createDataLayout(), generation.context,
                             /*embed_weights=*/false, &names);
        },
        idle_machines_.take());
  }

  GeneratedObject merge(const Generation& callers) {
    GeneratedObject result;
    result.stack = stack_depths(callers.report, options_, callers.emitted);
    RelocatableObject calling = read_object(callers.output);
    MergeOptions merging;
    merging.sections = {{kPartSection, text_section(options_)}};
    std::vector<const RelocatableObject*> objects;
    for (size_t i = 0; i < codes_.size(); ++i) {
      if (kept_[i] != i) continue;
      const KernelPart& part = parts_.kernels[i];
      const bool has_thunk = defines(codes_[i].object, behind_thunk(part.symbol));
      merging.local_names[has_thunk ? behind_thunk(part.symbol) : part.symbol] = kernel_symbol(*part.kernel);
      if (has_thunk) merging.local_names[part.symbol] = thunk_symbol(*part.kernel);
      objects.push_back(&codes_[i].object);
      result.stack.include(codes_[i].stack);
    }
    objects.push_back(&calling);
    result.parts = static_cast<int64_t>(codes_.size());
    result.cached_parts =
        std::count_if(codes_.begin(), codes_.end(), [](const PartCode& code) { return code.is_cached; });
    result.bytes = write_object(merge_objects(objects, merging));
    result.kernel_symbols = callers.emitted.kernel_symbols;
    result.merged = callers.merged;
    for (const auto& [kernel, number] : parts_.numbers)
      if (const std::string own = kernel_symbol(*kernel), kept = kernel_symbol(*part_of(*kernel).kernel);
          own != kept)
        result.merged[own] = kept;
    return result;
  }

  const kernel::Program& program_;
  const CodegenOptions& options_;
  PartList parts_;
  std::vector<PartCode> codes_;
  IdleMachines idle_machines_;
  std::vector<size_t> kept_; // by part, the one that stands for it
};

} // namespace

Expected<GeneratedObject> generate_in_parts(const kernel::Program& program, const CodegenOptions& options) {
  return PartGenerator(program, options).generate();
}

} // namespace firn::codegen
