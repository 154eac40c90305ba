// See generate.h.
#include "tests/random/generate.h"

#include "compiler/target/cpu_table.h"
#include "tests/random/motifs.h"

#include <algorithm>

namespace firn::test {
namespace {

const std::vector<Motif>& all_motifs() {
  static const std::vector<Motif> motifs = [] {
    std::vector<Motif> all;
    for (auto family : {elementwise_motifs(), movement_motifs(), indexing_motifs(), reduction_motifs(),
                        contraction_motifs(), convolution_motifs(), window_motifs(), normalization_motifs(),
                        recurrent_motifs(), quantization_motifs(), in_place_motifs(), control_motifs(),
                        counted_motifs(), sized_motifs(), container_motifs(), signal_motifs()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return motifs;
}

// Graphs prefer a few motifs each, so that the same ones meet often.
std::vector<const Motif*> draw_favourites(RandomSource& random) {
  std::vector<const Motif*> drawn;
  for (const Motif& motif : all_motifs())
    drawn.insert(drawn.end(), static_cast<size_t>(motif.weight), &motif);
  std::vector<const Motif*> favourites;
  for (int i = 0; i < 8; ++i) favourites.push_back(random.pick(drawn));
  drawn.insert(drawn.end(), favourites.begin(), favourites.end());
  for (size_t i = drawn.size() / 8; i-- > 0;) drawn.insert(drawn.end(), favourites.begin(), favourites.end());
  return drawn;
}

// Values that nothing uses are outputs, and some that are used as well.
void draw_outputs(TestGraph& graph, const Growth& growth, RandomSource& random) {
  for (const TestNode& node : graph.nodes)
    for (const std::string& name : node.outputs) {
      bool wanted = !growth.is_used(name) || random.chance(0.08);
      for (const auto& state : graph.states) wanted |= state.second == name;
      if (wanted) graph.outputs.push_back(name);
    }
  // With two symbols, unused inputs stay: a run learns the symbols' values from inputs.
  if (graph.symbols.size() < 2)
    std::erase_if(graph.inputs, [&](const std::string& name) { return !growth.is_used(name); });
  std::erase_if(graph.constants, [&](const std::string& name) { return !growth.is_used(name); });
}

std::string only_cpu;

// Draws CPUs for one object: all of one kind, and no two whose code would be the same.
std::vector<std::string> draw_cpus(RandomSource& random) {
  std::vector<std::string> names;
  for (const char* name : {"x86-64-v2", "x86-64-v3", "x86-64-v4"})
    if (std::find(runnable_cpus().begin(), runnable_cpus().end(), name) != runnable_cpus().end())
      names.emplace_back(name);
  if (names.size() > 2 && random.chance(0.5))
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(random.between(0, 2)));
  return names.size() > 1 ? names : std::vector<std::string>{};
}

// Dims that vary, each with its values in three runs; else one or two runs with different elements. The upper
// bounds are numbers that no other dim is drawn as, so that what fits such a dim varies as it does.
void draw_runs(TestGraph& graph, RandomSource& random) {
  int64_t count = random.pick({0, 0, 0, 0, 0, 0, 1, 1, 1, 2});
  graph.runs.resize(count > 0 ? 3 : random.pick({1, 1, 1, 1, 1, 1, 2, 2, 4}));
  std::vector<int64_t> bounds{10, 14, 15, 18, 20, 21, 28, 30, 35, 40, 48};
  for (int64_t i = 0; i < count; ++i) {
    TestSymbol symbol{i == 0 ? "n" : "m", {}, {}};
    onnx::DimRange& range = symbol.range;
    range.upper = random.pick(bounds);
    std::erase(bounds, range.upper);
    for (int64_t multiple : {5, 6, 7})
      if (range.upper % multiple == 0 && random.chance(0.25)) range.multiple = multiple;
    int64_t steps = range.upper / range.multiple;
    int64_t fewest = random.chance(0.6) ? 1 : random.between(1, steps - 1);
    range.lower = fewest * range.multiple;
    symbol.at = {range.upper, range.lower, range.multiple * random.between(fewest, steps)};
    if (random.chance(0.15) && symbol.at[2] > range.lower && symbol.at[2] < range.upper)
      range.multiple = 1, range.values = {range.lower, symbol.at[2], range.upper};
    graph.symbols.push_back(symbol);
  }
}

} // namespace

const std::vector<std::string>& runnable_cpus() {
  static const std::vector<std::string> names = [] {
    auto host = find_target("", "native", "");
    FIRN_CHECK(host, "this machine's CPU is known");
    std::vector<std::string> runnable{"native"};
    for (const CpuRow& row : cpu_table()) {
      auto target = find_target("", row.name, "");
      if (row.arch == host->arch && target && target->triple == host->triple &&
          (target->required_cpu_features & ~host->required_cpu_features) == 0)
        runnable.emplace_back(row.name);
    }
    if (std::find(runnable.begin(), runnable.end(), "x86-64-v4") != runnable.end())
      runnable.emplace_back(kTileCpu);
    return runnable;
  }();
  return names;
}

void draw_only(const std::string& cpu) {
  only_cpu = cpu;
}

Setting draw_setting(uint64_t seed) {
  using firn::OptLevel;
  RandomSource random(seed ^ 0x73657474696e6700u); // the graph of a seed does not depend on it
  Setting setting;
  setting.cpu = random.chance(0.2) ? "native" : random.pick(runnable_cpus());
  if (random.chance(0.12)) setting.cpus = draw_cpus(random);
  if (!only_cpu.empty()) setting.cpu = only_cpu, setting.cpus.clear();
  setting.opt_level = random.pick({OptLevel::O3, OptLevel::O3, OptLevel::O3, OptLevel::O2, OptLevel::O2,
                                   OptLevel::O1, OptLevel::O0, OptLevel::Os, OptLevel::Os});
  setting.math =
      random.pick({firn::Math::Default, firn::Math::Default, firn::Math::Strict, firn::Math::Default});
  int weights = random.pick({0, 1, 2, 3});
  if (weights > 1) setting.weights = driver::Weights::Init;
  setting.no_winograd = weights == 1;
  setting.check_indices = random.chance(0.5);
  setting.threads = random.pick({1, 1, 1, 1, 2, 3, 5, 8});
  setting.external = random.chance(0.5);
  setting.guard_before = random.chance(0.5);
  setting.specializations = random.pick({-1, -1, 0, 1, 2});
  return setting;
}

std::string Setting::to_string() const {
  static constexpr const char* levels[] = {"-O0", "-O1", "-O2", "-O3", "-Os", "-Oz"};
  static constexpr const char* maths[] = {"", " --math=strict", " --math=fast"};
  std::string machine = "-mcpu=" + cpu;
  for (const std::string& name : cpus)
    machine = (&name == &cpus[0] ? "--multiversion=" : machine + ",") + name;
  return machine + " " + levels[static_cast<int>(opt_level)] + maths[static_cast<int>(math)] +
         (weights == driver::Weights::Init ? " --weights=init" : "") + (no_winograd ? " --no-winograd" : "") +
         (check_indices ? " --check-indices" : "") +
         (threads > 1 ? " --threads=" + std::to_string(threads) : "");
}

std::map<std::string, int64_t> TestCase::specializations() const {
  std::map<std::string, int64_t> values;
  auto run = static_cast<size_t>(setting.specializations);
  if (setting.specializations < 0 || run >= graph.runs.size()) return values;
  std::map<std::string, onnx::DimRange> ranges = graph.import_options().ranges;
  for (const TestSymbol& symbol : graph.symbols)
    if (ranges.count(symbol.name)) values[symbol.name] = symbol.at[run];
  return values;
}

std::string TestCase::flags() const {
  std::string flags = setting.to_string() + graph.import_flags();
  for (const auto& [name, value] : specializations())
    flags += (flags.find(" --hot ") == flags.npos ? " --hot " : ",") + name + "=" + std::to_string(value);
  return flags;
}

TestCase generate_case(uint64_t seed) {
  TestCase result;
  result.setting = draw_setting(seed);
  RandomSource random(seed);
  draw_runs(result.graph, random);
  Growth growth(result.graph, random, /*max_elements=*/random.chance(0.15) ? 16384 : 2048);
  for (int64_t i = random.between(1, 3); i > 0; --i) {
    DType dtype = random.chance(0.85) ? growth.draw_float() : growth.draw_integer();
    growth.input(growth.draw_literal(dtype, growth.draw_dims(random.pick({1, 2, 2, 3, 3, 4, 4, 4, 5}))));
  }
  std::vector<const Motif*> motifs = draw_favourites(random);
  auto size = static_cast<size_t>(random.chance(0.6) ? random.between(2, 12) : random.between(8, 30));
  for (int tries = 0; result.graph.nodes.size() < size && tries < 60; ++tries) {
    Growth::Mark mark = growth.mark();
    if (random.pick(motifs)->grow(growth).empty()) growth.roll_back(mark);
  }
  draw_outputs(result.graph, growth, random);
  result.refusal = growth.refusal();
  return result;
}

} // namespace firn::test
