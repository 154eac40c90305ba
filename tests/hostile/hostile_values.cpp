// Runs compiled cases on values that no caller means: indices, counts and lengths far outside, coordinates
// that are no numbers. Whatever a run makes of them, it reads and writes nothing outside of its memory, and
// the next run on good values gives what it gave before.
//   hostile_values [--jobs N] FOLDER...
// Folders hold cases as `firn verify` takes them. All integers and bools that a run takes are hostile in
// turn, then all floats, then both, between pages that die before and behind the memory given.
#include "compiler/driver/given_inputs.h"
#include "compiler/driver/object_runner.h"
#include "compiler/frontend/onnx/import/stored_tensors.h"
#include "tests/random/guarded_heap.h"
#include "tests/random/process.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <limits>

namespace firn::test {
namespace {

namespace fs = std::filesystem;
using Literals = std::vector<LiteralRef>;

constexpr int64_t kIntegers[] = {-1, 0, 1, 7, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 40};
constexpr int64_t kLoopIntegers[] = {-1, 0, 1, 7, INT32_MIN, INT64_MIN}; // a loop of more steps takes them
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(),
                 kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFloats[] = {kNaN, kInfinity, -kInfinity, 1e30, -1e30, 3e9, -3e9, 1e4, -0.5};

constexpr int kOfIntegers = 1, kOfFloats = 2; // which inputs are hostile

// The literal with hostile elements: one value, or all in turn beginning with it.
LiteralRef hostile(const LiteralRef& good, int kinds, size_t number, bool in_turn,
                   std::span<const int64_t> integers) {
  bool is_real = is_float(good->dtype());
  if (good->dtype() == DType::String || !(kinds & (is_real ? kOfFloats : kOfIntegers))) return good;
  auto bad = std::make_shared<Literal>(good->dtype(), good->dims());
  for (int64_t i = 0; i < good->num_elements(); ++i) {
    size_t at = number + (in_turn ? static_cast<size_t>(i) : 0);
    if (is_real)
      bad->set_double(i, kFloats[at % std::size(kFloats)]);
    else
      bad->set_int(i, good->dtype() == DType::Bool ? static_cast<int64_t>(at % 2)
                                                   : integers[at % integers.size()]);
  }
  return bad;
}

bool has_loop(const Region& region) {
  return std::any_of(region.instructions().begin(), region.instructions().end(), [](const auto& instruction) {
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (has_loop(instruction->region(i))) return true;
    return instruction->is(Opcode::While);
  });
}

bool equal_bits(const Literals& a, const Literals& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const LiteralRef& x, const LiteralRef& y) {
    auto left = x->bytes(), right = y->bytes();
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  });
}

Verdict run_hostile(driver::ObjectRunner& runner, GuardedHeap& memory, const Literals& good,
                    std::span<const int64_t> integers) {
  auto before = runner.run(good);
  if (!before) return {"run", before.error().message};
  for (int kinds : {kOfIntegers, kOfFloats, kOfIntegers | kOfFloats})
    for (size_t number = 0; number < std::size(kIntegers); ++number)
      for (bool in_turn : {false, true}) {
        Literals bad;
        for (const LiteralRef& literal : good)
          bad.push_back(literal ? hostile(literal, kinds, number, in_turn, integers) : literal);
        (void)runner.run(bad); // a status is as good as a result
        std::string what = "kinds " + std::to_string(kinds) + ", value " + std::to_string(number) +
                           (in_turn ? " and others" : "");
        if (!memory.is_intact()) return {"outside", what};
        if (!runner.inputs_are(bad)) return {"overwrites", what};
      }
  runner.reset();
  auto after = runner.run(good);
  if (!after) return {"run", after.error().message};
  return equal_bits(*before, *after) ? Verdict{} : Verdict{"changed", "a later run on good values differs"};
}

struct Build {
  const char* cpu;
  firn::OptLevel opt_level;
  bool check_indices, guard_before;
};

Verdict check_folder(const std::string& folder, const Build& build) {
  driver::CompileOptions options;
  options.model = folder + "/model.onnx";
  options.cpu = build.cpu;
  options.goals.opt_level = build.opt_level;
  options.goals.check_indices = build.check_indices;
  auto facts = onnx::inspect_onnx(options.model);
  if (!facts) return {};
  auto inputs = onnx::read_stored_inputs(folder + "/test_data_set_0", *facts);
  if (!inputs) return {};
  for (const auto& [name, length] : inputs->lengths) options.import.lengths[name] = length;
  driver::bind_inputs(inputs->tensors, *facts, options.import);
  DiagnosticList diagnostics;
  auto compilation = driver::with_unknown_inputs_fixed(
      inputs->tensors, options.import, diagnostics,
      [&](DiagnosticList& reasons) { return driver::compile_in_memory(options, reasons); });
  if (!compilation) return {}; // a refusal is for other tests
  GuardedHeap memory(build.guard_before);
  auto runner = driver::ObjectRunner::create(*compilation, &memory);
  if (!runner) return {"object", runner.error().message};
  std::span<const int64_t> integers = kIntegers;
  if (has_loop(compilation->module->main().body())) integers = kLoopIntegers;
  return run_hostile(**runner, memory, driver::arguments_of(compilation->module->main(), inputs->tensors),
                     integers);
}

void find_cases(const fs::path& folder, std::vector<std::string>& cases) {
  if (fs::exists(folder / "model.onnx")) return cases.push_back(folder.string());
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) find_cases(entry.path(), cases);
}

} // namespace

int check_all(const std::vector<std::string>& folders, size_t jobs) {
  std::vector<std::string> cases;
  for (const std::string& folder : folders) find_cases(folder, cases);
  std::sort(cases.begin(), cases.end());
  static constexpr Build builds[] = {{"", firn::OptLevel::O2, false, false},
                                     {"native", firn::OptLevel::O3, true, true}};
  int failures = 0;
  std::deque<std::pair<std::string, CheckProcess>> running;
  auto finish = [&] {
    Verdict verdict = running.front().second.wait();
    if (!verdict.passed())
      std::printf("%s: %s: %s\n", running.front().first.c_str(), verdict.kind.c_str(),
                  verdict.message.c_str()),
          ++failures;
    running.pop_front();
  };
  for (const std::string& folder : cases)
    for (const Build& build : builds) {
      if (running.size() >= jobs) finish();
      running.emplace_back(folder + (build.check_indices ? " with --check-indices" : ""),
                           CheckProcess([&](const Phase&) { return check_folder(folder, build); }, 60));
    }
  while (!running.empty()) finish();
  std::printf("%zu cases, %d failures\n", cases.size(), failures);
  return cases.empty() || failures > 0 ? 1 : 0;
}

} // namespace firn::test

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  size_t jobs = 2;
  if (words.size() > 1 && words[0] == "--jobs") {
    jobs = static_cast<size_t>(std::atoi(words[1].c_str()));
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.empty() || jobs == 0)
    return std::fprintf(stderr, "usage: hostile_values [--jobs N] FOLDER...\n"), 2;
  return firn::test::check_all(words, jobs);
}
