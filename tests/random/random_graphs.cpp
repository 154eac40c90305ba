// Random graphs through the whole compiler against the evaluator.
//   random_graphs --seeds 0..20000 --jobs 2      # exit code 0 only if all pass
//   random_graphs --seed 4711 --write DIR        # one again, shrunk, as a case that `firn verify` reads
//   random_graphs --seeds 0..2000 --gradients 1  # gradients against finite differences; 2: second order
//   random_graphs --seeds 0..300 --gradient-objects  # gradients as objects against the evaluator
//   random_graphs --seeds 0..300 --coverage      # which graph ops and operators they hold
// Each seed is one graph, one CPU and one set of options.
#include "tests/random/campaign.h"
#include "tests/random/coverage.h"
#include "tests/random/generate.h"

#include <CLI/CLI.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  firn::test::CampaignOptions options;
  std::string seeds = "0..300";
  int64_t seed = -1;
  bool keep = false;
  CLI::App app("Compiles random graphs, runs them and compares with the evaluator.");
  app.add_option("--seeds", seeds, "FIRST..END, END not included");
  app.add_option("--seed", seed, "only this one");
  app.add_option("--jobs", options.jobs, "graphs at a time")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "that one graph may take")->check(CLI::PositiveNumber);
  app.add_option("--write", options.write_folder, "folder for failing graphs with their inputs and outputs");
  app.add_flag("--no-shrink", keep, "report failing graphs as they were drawn");
  std::string cpu;
  app.add_option("--cpu", cpu, "for this one alone, such as " + std::string(firn::test::kTileCpu));
  bool coverage = false;
  app.add_flag("--limits", options.limits, "say why graphs are refused whose dims vary, or have no gradient");
  app.add_flag("--gradient-objects", options.gradient_objects,
               "derive each graph by the operator Gradient, and compile both");
  app.add_option(
         "--gradients", options.gradients,
         "compile nothing; compare gradients of this order, by the evaluator, with finite differences")
      ->check(CLI::Range(1, 2));
  app.add_flag("--coverage", coverage,
               "compile nothing; count the graph ops and operators, 1 if one is missing");
  CLI11_PARSE(app, argc, argv);
  options.shrink = !keep;
  firn::test::draw_only(cpu);
  size_t dots = seeds.find("..");
  if (seed >= 0) {
    options.first = static_cast<uint64_t>(seed), options.end = options.first + 1;
  } else if (dots == std::string::npos) {
    return std::fprintf(stderr, "--seeds wants FIRST..END, not '%s'\n", seeds.c_str()), 2;
  } else {
    options.first = std::strtoull(seeds.c_str(), nullptr, 10);
    options.end = std::strtoull(seeds.c_str() + dots + 2, nullptr, 10);
  }
  if (coverage) return firn::test::report_coverage(options.first, options.end) ? 0 : 1;
  return firn::test::run_campaign(options) == 0 ? 0 : 1;
}
