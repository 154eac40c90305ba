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
                        recurrent_motifs(), quantization_motifs(), in_place_motifs(), control_motifs()})
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
  std::erase_if(graph.inputs, [&](const std::string& name) { return !growth.is_used(name); });
  std::erase_if(graph.constants, [&](const std::string& name) { return !growth.is_used(name); });
}

Setting draw_setting(RandomSource& random) {
  using codegen::OptLevel;
  Setting setting;
  setting.cpu = random.chance(0.2) ? "native" : random.pick(runnable_cpus());
  setting.opt_level = random.pick({OptLevel::O3, OptLevel::O3, OptLevel::O3, OptLevel::O2, OptLevel::O2,
                                   OptLevel::O1, OptLevel::O0, OptLevel::Os, OptLevel::Os});
  setting.math =
      random.pick({lower::Math::Default, lower::Math::Default, lower::Math::Strict, lower::Math::Default});
  int weights = random.pick({0, 1, 2, 3});
  if (weights > 1) setting.weights = driver::Weights::Init;
  setting.no_winograd = weights == 1;
  setting.external = random.chance(0.5);
  setting.guard_before = random.chance(0.5);
  return setting;
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
    return runnable;
  }();
  return names;
}

Setting draw_setting(uint64_t seed) {
  RandomSource random(seed);
  return draw_setting(random);
}

std::string Setting::to_string() const {
  static constexpr const char* levels[] = {"-O0", "-O1", "-O2", "-O3", "-Os", "-Oz"};
  static constexpr const char* maths[] = {"", " --math=strict", " --math=fast"};
  return "-mcpu=" + cpu + " " + levels[static_cast<int>(opt_level)] + maths[static_cast<int>(math)] +
         (weights == driver::Weights::Init ? " --weights=init" : "") + (no_winograd ? " --no-winograd" : "") +
         (check_indices ? " --check-indices" : "") +
         (threads > 1 ? " --threads=" + std::to_string(threads) : "");
}

// From numbers of its own: the graph of a seed does not depend on it.
static int draw_threads(uint64_t seed) {
  return RandomSource(seed ^ 0x7468726561647300u).pick({1, 1, 1, 2, 3, 8});
}

// Likewise.
static bool draw_check_indices(uint64_t seed) {
  return RandomSource(seed ^ 0x696e646963657300u).chance(0.5);
}

TestCase generate_case(uint64_t seed) {
  TestCase result;
  RandomSource random(seed);
  result.setting = draw_setting(random);
  result.setting.threads = draw_threads(seed);
  result.setting.check_indices = draw_check_indices(seed);
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
