// Takes a barrier, a wait or a bound out of the kernels of a GPU, one at a time, and asks whether the
// interpreter of PTX notices: by a race, an access out of bounds, memory that was never written, or another
// result. Prints a table. Fails if it misses more than 5 of 100 of those that can be noticed.
#include "compiler/driver/gpu_target.h"
#include "compiler/driver/ptx_runner.h"
#include "compiler/support/temporary_folder.h"
#include "tests/gpu/mutants.h"
#include "tests/gpu/sample_models.h"

#include <cstdio>
#include <map>
#include <random>

namespace firn::test {
namespace {

using Literals = std::vector<LiteralRef>;

// Mutants of a kind that a model gives; unrolled code has the same one many times.
constexpr size_t kMaxOfKind = 16;
constexpr uint64_t kMaxInstructions = 5'000'000;

[[noreturn]] void give_up(const std::string& message) {
  std::printf("%s\n", message.c_str());
  std::exit(1);
}

class Subject {
public:
  Subject(const SampleModel& model, const TemporaryFolder& folder) {
    auto path = folder.write("model.onnx", model.bytes);
    if (!path) give_up(path.error().message);
    driver::CompileOptions options;
    options.model = *path;
    if (Result chosen = driver::choose_gpu("cuda", options.gpu, options.goals); !chosen)
      give_up(chosen.error().message);
    DiagnosticList diagnostics;
    compilation_ = driver::compile_in_memory(options, diagnostics);
    if (!compilation_) give_up(model.name + ": " + diagnostics.messages()[0].message);
    auto ptx = codegen::emit_ptx(compilation_->program, compilation_->target, OptLevel::O3);
    if (!ptx) give_up(model.name + ": " + ptx.error().message);
    ptx_ = std::move(*ptx);
    draw_inputs();
    if (std::string wrong = run(ptx_.text, /*seed=*/0); !wrong.empty()) give_up(model.name + ": " + wrong);
  }

  const std::string& text() const { return ptx_.text; }

  // Says what is wrong with a run of another text; empty: nothing. The first run's results are right.
  std::string run(const std::string& text, uint64_t seed) {
    auto runner = driver::PtxRunner::create(*compilation_, {text, ptx_.kernels});
    if (!runner) return "refused: " + runner.error().message;
    ptx::Options& options = (*runner)->options();
    options.seed = seed;
    options.copies = seed % 2 == 0 ? ptx::Options::Copies::Latest : ptx::Options::Copies::Earliest;
    options.max_instructions = kMaxInstructions;
    auto results = (*runner)->run(inputs_);
    if (!results) return results.error().message;
    if (wanted_.empty()) wanted_ = *results;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      auto found = (*results)[i]->bytes(), wanted = wanted_[i]->bytes();
      if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end())) return "another result";
    }
    return "";
  }

private:
  void draw_inputs() {
    std::mt19937 random(1);
    for (const Instruction* parameter : compilation_->module->main().body().parameters()) {
      auto literal =
          std::make_shared<Literal>(parameter->type().dtype, parameter->type().at_bound().static_dims());
      for (int64_t i = 0; i < literal->num_elements(); ++i)
        literal->set_double(i, 0.5 + static_cast<double>(random() % 1000) / 1000);
      inputs_.push_back(std::move(literal));
    }
  }

  std::unique_ptr<driver::Compilation> compilation_;
  codegen::PtxModule ptx_;
  Literals inputs_, wanted_;
};

// The kind of what was noticed.
std::string kind_of(const std::string& message) {
  for (const char* kind : {"a race", "never written", "not written", "another result", "refused", "barrier"})
    if (message.find(kind) != std::string::npos) return kind;
  for (const char* bound : {"outside", "beyond", "which has", "no buffer lies"})
    if (message.find(bound) != std::string::npos) return "out of bounds";
  return "other";
}

struct Count {
  int found = 0, missed = 0, equivalent = 0;
};

class Table {
public:
  void examine(Subject& subject, const std::string& model) {
    std::map<Taken, size_t> taken, total;
    std::vector<Mutant> mutants = mutants_of(subject.text());
    for (const Mutant& mutant : mutants) ++total[mutant.taken];
    std::map<Taken, size_t> number;
    for (const Mutant& mutant : mutants) {
      // Evenly spread over the text.
      const size_t of = total[mutant.taken], n = number[mutant.taken]++;
      if (of > kMaxOfKind && n * kMaxOfKind / of == (n + 1) * kMaxOfKind / of) continue;
      examine(subject, model, mutant);
    }
  }

  bool report() const {
    int found = 0, missed = 0;
    std::printf("\n%-12s %8s %8s %12s\n", "taken out", "found", "missed", "equivalent");
    for (const auto& [taken, count] : counts_) {
      std::printf("%-12s %8d %8d %12d\n", std::string(word(taken)).c_str(), count.found, count.missed,
                  count.equivalent);
      found += count.found, missed += count.missed;
    }
    std::printf("\nnoticed by:");
    for (const auto& [kind, count] : kinds_) std::printf(" %s %d;", kind.c_str(), count);
    std::printf("\n%d of %d found\n", found, found + missed);
    return found >= 100 && missed * 20 <= found + missed;
  }

private:
  void examine(Subject& subject, const std::string& model, const Mutant& mutant) {
    Count& count = counts_[mutant.taken];
    for (uint64_t seed : {0, 1, 2, 3}) {
      std::string wrong = subject.run(mutant.text, seed);
      if (wrong.empty()) continue;
      ++count.found;
      ++kinds_[kind_of(wrong)];
      if (kind_of(wrong) == "other" || kind_of(wrong) == "refused")
        std::printf("%s: %s\n", model.c_str(), wrong.c_str());
      return;
    }
    const bool decides = mutant.probe.empty() || !subject.run(mutant.probe, 0).empty();
    ++(decides ? count.missed : count.equivalent);
    std::printf("%s, line %zu, %s: %s:%s\n", model.c_str(), mutant.line,
                std::string(word(mutant.taken)).c_str(),
                decides ? "missed" : "equivalent, as the other operand decides nothing here",
                mutant.statement.c_str());
  }

  std::map<Taken, Count> counts_;
  std::map<std::string, int> kinds_;
};

int examine_all() {
  auto folder = TemporaryFolder::make();
  if (!folder) give_up(folder.error().message);
  Table table;
  for (const SampleModel& model : sample_models()) {
    Subject subject(model, *folder);
    table.examine(subject, model.name);
  }
  return table.report() ? 0 : 1;
}

} // namespace
} // namespace firn::test

int main() {
  return firn::test::examine_all();
}
