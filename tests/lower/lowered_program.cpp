// See lowered_program.h.
#include "tests/lower/lowered_program.h"

#include "compiler/graph/evaluate.h"
#include "compiler/graph/verify.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/memory/arena.h"
#include "tests/codegen/model_object.h"
#include "tests/codegen/tile_interpreter.h"
#include "tests/lower/plan_and_lower.h"
#include "tests/lower/read_back.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

namespace firn::test {
namespace {

std::unique_ptr<Module> parse(const std::string& text) {
  auto module = parse_module("test.hlo", text);
  if (!module) FAIL(module.error().message << "\n" << text);
  if (Result result = verify(**module); !result) FAIL(result.error().message << "\n" << text);
  return std::move(*module);
}

using Extents = std::map<std::string, int64_t>;

// The type with numbers for its symbols.
Type type_at(Type type, const Extents& extents) {
  for (Dim& dim : type.dims)
    dim = Dim(dim.extent.substitute(
        [&](const Symbol& symbol) -> std::optional<IntExpr> { return IntExpr(extents.at(symbol.name)); }));
  return type;
}

void run_backwards(void*, size_t count, firn_task task, void* data) {
  while (count > 0) task(data, --count);
}

int run_together(void*, size_t count, firn_task task, void* data) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back(task, data, i);
  for (std::thread& thread : threads) thread.join();
  return 1;
}

LiteralRef random_literal(const Type& type, const Range* range, std::mt19937& random) {
  auto literal = std::make_shared<Literal>(type.dtype, type.static_dims());
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    if (type.dtype == DType::Bool) {
      literal->set_int(i, random() % 2);
    } else if (is_float(type.dtype)) {
      Range r = range ? *range : Range{-2, 2};
      literal->set_double(i, std::uniform_real_distribution<double>(r.low, r.high)(random));
    } else {
      Range r = range ? *range : Range{is_signed(type.dtype) ? -5.0 : 0.0, 5};
      literal->set_int(i, std::uniform_int_distribution<int64_t>(static_cast<int64_t>(r.low),
                                                                 static_cast<int64_t>(r.high))(random));
    }
  }
  return literal;
}

void compare(const Literal& actual, const Literal& expected, double tolerance) {
  double largest = 0;
  bool exact = tolerance == 0 || !is_float(expected.dtype());
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    if (double v = std::fabs(expected.get_double(i)); std::isfinite(v)) largest = std::max(largest, v);
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    double a = actual.get_double(i), e = expected.get_double(i);
    bool same = (std::isnan(a) && std::isnan(e)) || a == e ||
                (!exact && std::isfinite(a) && std::isfinite(e) && std::fabs(a - e) <= tolerance * largest);
    if (exact && !is_float(expected.dtype())) same = actual.get_int(i) == expected.get_int(i);
    if (exact && is_small_float(expected.dtype()) && !std::isnan(e))
      same = same && std::signbit(a) == std::signbit(e);
    if (!same) FAIL("element " << i << " is " << a << ", wanted " << e << " (largest " << largest << ")");
  }
}

kernel::Program lower(const Module& module, const LoweringSetup& setup) {
  auto program = plan_and_lower(module, setup);
  if (!program) FAIL(program.error().message);
  if (Result result = kernel::verify(*program); !result)
    FAIL(result.error().message << "\n" << kernel::print_program(*program));
  if (setup.goals.threads > 1) {
    Goals goals = setup.goals;
    goals.share_all = true;
    kernel::share_kernels(*program, kernel::KernelPassOptions(goals, &setup.target));
  }
  memory::plan_arena(*program);
  kernel::merge_equal_kernels(*program, kernel::KernelPassOptions());
  memory::place_constants(*program);
  kernel::make_entry(*program, kernel::KernelPassOptions());
  if (Result result = kernel::verify(*program); !result)
    FAIL(result.error().message << "\n" << kernel::print_program(*program));
  return std::move(*program);
}

} // namespace

kernel::Program lower_text(const std::string& text, const std::string& cpu, firn::Winograd winograd) {
  return lower(*parse(text), {target_of("", cpu), {.winograd = winograd}});
}

kernel::Program lower_program(const Module& module, const std::string& cpu) {
  return lower(module, {target_of("", cpu), {.winograd = Winograd::All}});
}

void expect_lowered_module(const std::string& text, const LoweredOptions& options) {
  expect_lowered_module(*parse(text), options);
}

namespace {

Goals goals_of(const LoweredOptions& options) {
  return {.opt_level = options.optimize_size ? OptLevel::Os : OptLevel::O3,
          .math = options.math,
          .winograd = Winograd::All,
          .threads = options.threads};
}

// `packed_as`: plans for a wider CPU, whose packed constants these are to read.
plan::KernelPlans plans_for(const Module& module, const Machine& target, const LoweredOptions& options,
                            const plan::KernelPlans* packed_as = nullptr) {
  Goals goals = goals_of(options);
  auto plans = plan::plan_function(module.main(), {target, goals, nullptr, nullptr, packed_as});
  if (!plans) FAIL(plans.error().message);
  return std::move(*plans);
}

codegen::CodegenOptions code_options(const Machine& target, bool optimize_size) {
  codegen::CodegenOptions options = options_for(target);
  if (optimize_size) options.opt_level = firn::OptLevel::Os;
  return options;
}

// A compiled module with its memory; states lie in the arena. Guard pages lie around inputs, outputs, weights
// and arena, and in the arena in the ranges `between`. The content of memory before a run must not matter,
// but for states.
class LoadedModule {
public:
  LoadedModule(const Module& module, const kernel::Program& program, const codegen::CodegenOptions& options,
               Placement placement, const std::vector<Range64>& between)
      : main_(module.main()), object_(program, options), placement_(placement),
        memory_(whole_rows(program.arena_bytes), placement),
        weights_(whole_rows(program.weight_bytes), placement), arena_(memory_.data()),
        symbols_(program.extents) {
    if (options.target.cpu.has_tile_matrices) interpret_tiles(); // or asks Linux for their registers
    if (program.weight_bytes > 0)
      std::memcpy(weights_.data(), object_.weights(), static_cast<size_t>(program.weight_bytes));
    for (auto [begin, end] : between)
      memory_.forbid(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    for (const kernel::Buffer& buffer : program.buffers)
      if (buffer.space == kernel::Space::State) states_.push_back(arena_ + buffer.offset);
  }

  // Only the first run sets states.
  std::vector<LiteralRef> run(const std::vector<LiteralRef>& inputs, bool set_states,
                              const Extents& extents = {}, int threads = 1) {
    std::vector<const void*> arguments;
    std::vector<void*> state_of(inputs.size());
    std::vector<GuardedBlock> bound;
    size_t states = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      auto bytes = inputs[i]->bytes();
      if (!main_.is_state(i)) {
        bound.emplace_back(bytes.size(), placement_);
        if (!bytes.empty()) std::memcpy(bound.back().data(), bytes.data(), bytes.size());
        arguments.push_back(bound.back().data());
        continue;
      }
      state_of[i] = states_[states++];
      if (set_states && !bytes.empty()) std::memcpy(state_of[i], bytes.data(), bytes.size());
    }
    std::vector<std::shared_ptr<Literal>> outputs;
    std::vector<void*> results;
    for (size_t i = 0; i < main_.body().results().size(); ++i) {
      Type type = type_at(main_.body().results()[i].type(), extents);
      outputs.push_back(std::make_shared<Literal>(type.dtype, type.static_dims()));
      if (main_.updates_state(i)) continue;
      bound.emplace_back(outputs.back()->bytes().size(), placement_);
      results.push_back(bound.back().data());
    }
    int status = -1;
    std::vector<size_t> values;
    for (const SymbolRef& symbol : symbols_) values.push_back(static_cast<size_t>(extents.at(symbol->name)));
    firn_executor executor{sizeof(firn_executor), nullptr, static_cast<size_t>(threads), run_backwards,
                           run_together};
    std::string fault = run_guarded([&] {
      status =
          object_.run(arguments, results, arena_, weights_.data(), values, threads > 1 ? &executor : nullptr);
    });
    if (!fault.empty()) FAIL(fault);
    REQUIRE(status == 0);
    size_t result = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const void* from =
          main_.updates_state(i) ? state_of[static_cast<size_t>(main_.aliases[i])] : results[result++];
      if (!outputs[i]->bytes().empty())
        std::memcpy(outputs[i]->mutable_bytes().data(), from, outputs[i]->bytes().size());
    }
    return {outputs.begin(), outputs.end()};
  }

private:
  static size_t whole_rows(int64_t bytes) { return static_cast<size_t>((bytes + 63) / 64 * 64); }

  const Function& main_;
  LoadedObject object_;
  Placement placement_;
  GuardedBlock memory_, weights_;
  unsigned char* arena_;
  std::vector<unsigned char*> states_;
  std::vector<SymbolRef> symbols_;
};

// One run of a module without states.
void expect_emulated(const Module& module, const kernel::Program& program,
                     const codegen::CodegenOptions& options, const std::vector<LiteralRef>& inputs,
                     double tolerance) {
  auto expected = evaluate(module, inputs);
  if (!expected) FAIL(expected.error().message);
  auto bytes_of = [](const Literal& literal) {
    auto bytes = literal.bytes();
    const char* first = reinterpret_cast<const char*>(bytes.data());
    return std::vector<char>(first, first + bytes.size());
  };
  std::vector<std::vector<char>> given, outputs;
  for (const LiteralRef& input : inputs) given.push_back(bytes_of(*input));
  for (const auto& result : *expected) outputs.emplace_back(result->bytes().size());
  EmulatedObject(program, options).run(given, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Literal actual((*expected)[i]->dtype(), (*expected)[i]->dims());
    if (!outputs[i].empty()) std::memcpy(actual.mutable_bytes().data(), outputs[i].data(), outputs[i].size());
    compare(actual, *(*expected)[i], tolerance);
  }
}

// The inputs of the next run: states are what the results made of them.
std::vector<LiteralRef> next_inputs(const Function& main, std::vector<LiteralRef> inputs,
                                    const std::vector<LiteralRef>& results) {
  for (size_t i = 0; i < results.size(); ++i)
    if (main.updates_state(i)) inputs[static_cast<size_t>(main.aliases[i])] = results[i];
  return inputs;
}

// The features that the target has and this machine lacks; tile matrices are interpreted.
uint64_t lacking_here(const Machine& target) {
  uint64_t tiles = target_of("", "x86-64-v4", "+amx-tile,+amx-int8,+amx-bf16").required_cpu_features &
                   ~target_of("", "x86-64-v4").required_cpu_features;
  return target.required_cpu_features & ~(host_target().required_cpu_features | tiles);
}

} // namespace

void expect_lowered_module(const Module& module, const LoweredOptions& options) {
  std::string text = print_module(module);
  const Region& body = module.main().body();
  std::mt19937 random(1);
  bool has_states = false;
  for (size_t i = 0; i < body.parameters().size(); ++i) has_states |= module.main().is_state(i);
  auto make_inputs = [&](const Extents& extents) {
    std::vector<LiteralRef> inputs;
    for (size_t i = 0; i < body.parameters().size(); ++i) {
      auto range = options.ranges.find(body.parameters()[i]->name());
      inputs.push_back(random_literal(type_at(body.parameter(static_cast<int>(i)).type(), extents),
                                      range == options.ranges.end() ? nullptr : &range->second, random));
    }
    return inputs;
  };
  std::vector<std::vector<LiteralRef>> given;
  std::vector<Extents> all_extents = options.extents.empty() ? std::vector<Extents>{{}} : options.extents;
  for (const Extents& extents : all_extents) given.push_back(make_inputs(extents));
  for (const std::string& cpu : options.cpus) {
    INFO(cpu << (options.placement == Placement::AtEnd ? "\n" : ", at the start of pages\n") << text);
    size_t space = std::min(cpu.find(' '), cpu.size()), in = cpu.find(" in ");
    Machine target = target_of("", cpu.substr(0, space),
                               in == cpu.npos ? cpu.substr(std::min(space + 1, cpu.size())) : "");
    std::optional<plan::KernelPlans> plans;
    if (in != cpu.npos) {
      Machine widest = target_of("", cpu.substr(in + 4));
      target = with_vectors_of(target, widest);
      plan::KernelPlans packed_as = plans_for(module, widest, options);
      plans = plans_for(module, target, options, &packed_as);
    }
    const Goals goals = goals_of(options);
    if (!plans) CHECK(expect_plans_read_back(module, {target, goals}));
    bool is_emulated = target.arch != Arch::X86_64;
    if (!is_emulated && lacking_here(target)) continue;
    if (is_emulated && (!options.extents.empty() || !EmulatedObject::available(target))) continue;
    LoweringSetup setup{target, goals_of(options)};
    setup.plans = plans ? &*plans : nullptr;
    kernel::Program program = lower(module, setup);
    INFO(kernel::print_program(program));
    if (is_emulated) {
      expect_emulated(module, program, code_options(target, options.optimize_size), given[0],
                      options.tolerance);
      continue;
    }
    std::vector<Range64> between = spread_buffers(program, options.placement);
    LoadedModule object(module, program, code_options(target, options.optimize_size), options.placement,
                        between);
    for (size_t n = 0; n < given.size(); ++n) {
      std::string values;
      for (const auto& [name, value] : all_extents[n]) values += name + " = " + std::to_string(value) + " ";
      INFO(values);
      std::vector<LiteralRef> inputs = given[n];
      for (int run = 0; run < (has_states ? 3 : 1); ++run) {
        INFO("run " << run);
        auto expected = evaluate(module, inputs);
        if (!expected) FAIL(expected.error().message << "\n" << text);
        std::vector<LiteralRef> outputs = object.run(inputs, run == 0, all_extents[n], options.threads);
        for (size_t i = 0; i < outputs.size(); ++i) compare(*outputs[i], *(*expected)[i], options.tolerance);
        if (options.threads > 1 && !has_states) {
          std::vector<LiteralRef> alone = object.run(inputs, run == 0, all_extents[n], 1);
          for (size_t i = 0; i < outputs.size(); ++i) compare(*outputs[i], *alone[i], 0);
        }
        inputs = next_inputs(module.main(), inputs, *expected);
      }
    }
  }
}

std::vector<std::string> runnable_cpus() {
  std::vector<std::string> cpus = {"native"};
  Machine host = host_target();
  for (const char* cpu : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "sapphirerapids"})
    if (host.arch == Arch::X86_64 &&
        !(target_of("", cpu).required_cpu_features & ~host.required_cpu_features))
      cpus.push_back(cpu);
  return cpus;
}

void expect_lowered(const std::string& parameters, const std::string& body, const std::string& type,
                    const LoweredOptions& options) {
  expect_lowered_module("module @test {\n  func @main(" + parameters + ") -> (" + type + ") {\n" + body +
                            "\n    return %r\n  }\n}\n",
                        options);
}

std::string random_constant(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::string text = "constant [";
  for (int64_t i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(uniform(random));
  return text + "]";
}

std::string lowering_error(const std::string& text, const std::string& cpu) {
  auto program = plan_and_lower(*parse(text), {target_of("", cpu)});
  return program ? "" : program.error().message;
}

int64_t count_ops(const kernel::Block& block, kernel::OpKind kind) {
  int64_t count = 0;
  for (const auto& op : block.ops) {
    count += op->kind == kind;
    for (const kernel::Block& inner : op->blocks) count += count_ops(inner, kind);
  }
  return count;
}

} // namespace firn::test
