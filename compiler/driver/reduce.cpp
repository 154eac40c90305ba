// Delta debugging over the nodes of a model's graph (Zeller and Hildebrandt, "Simplifying and isolating
// failure-inducing input"): parts and complements of parts are tried, ever smaller, as long as the check
// still fails as it did on the whole.
#include "compiler/driver/reduce.h"

#include "compiler/driver/guarded.h"
#include "compiler/driver/run_program.h"
#include "compiler/frontend/onnx/import/model_part.h"
#include "compiler/support/mapped_file.h"
#include "compiler/support/output_set.h"
#include "compiler/support/temporary_folder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

namespace firn::driver {
namespace {

using onnx::ModelPart, onnx::WholeModel;
using Nodes = std::vector<size_t>;

std::string counted(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string quoted(const std::string& path) {
  std::string text = "'";
  for (char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// How a check ended.
struct Ending {
  int code = 0;
  bool has_message = true;
  std::string printed;
};

class Check {
public:
  Check(const ReduceOptions& options, TemporaryFolder& folder) : options_(options), folder_(folder) {}
  int count() const { return count_; }

  Expected<Ending> run(const std::string& model) {
    ++count_;
    auto path = folder_.write("part.onnx", model);
    if (!path) return path.error();
    std::string command = options_.check;
    const std::string name = quoted(*path);
    for (size_t at = 0; (at = command.find("{}", at)) != std::string::npos; at += name.size())
      command.replace(at, 2, name);
    std::string log = folder_.file("log");
    int code = run_program({"/bin/sh", "-c", command}, log, options_.timeout_seconds);
    if (code < 0) return usage_error("/bin/sh could not be started");
    Ending ending{code, true, read_all(log)};
    ending.has_message = ending.printed.find(options_.message) != std::string::npos;
    return ending;
  }

private:
  const ReduceOptions& options_;
  TemporaryFolder& folder_;
  int count_ = 0;
};

class Reduction {
public:
  Reduction(const ReduceOptions& options, const WholeModel& whole, Check& check)
      : options_(options), whole_(whole), check_(check) {}
  const std::string& model() const { return model_; }
  const ModelPart& part() const { return part_; }

  // Checks the whole model, which has to fail.
  Result begin() {
    part_.nodes.resize(whole_.num_nodes());
    std::iota(part_.nodes.begin(), part_.nodes.end(), size_t{0});
    auto all = whole_.encode(part_);
    if (!all) return model_error("the graph has no outputs that nodes compute, nothing can be left out");
    model_ = std::move(*all);
    auto ending = check_.run(model_);
    if (!ending) return ending.error();
    if (ending->code == 0)
      return usage_error("the check passes on the whole model (exit code 0), wants one that fails");
    if (ending->code == 126 || ending->code == 127)
      return usage_error("the check cannot be run (exit code " + std::to_string(ending->code) +
                         "): " + ending->printed.substr(0, 400));
    if (!ending->has_message)
      return usage_error("on the whole model the check does not print '" + options_.message +
                         "', but: " + ending->printed.substr(0, 400));
    code_ = ending->code;
    progress("exit code " + std::to_string(code_));
    return {};
  }

  Result run() {
    for (Nodes& nodes : whole_.nodes_of_outputs()) {
      if (nodes.size() >= part_.nodes.size() || nodes.empty()) continue;
      ModelPart less = part_;
      less.nodes = std::move(nodes);
      if (take(std::move(less))) break;
    }
    fewer_nodes();
    fewer_outputs();
    fewer_constants();
    return failure_ ? Result(*failure_) : Result();
  }

private:
  // Whether the part fails as the whole does; if so, it becomes the part to reduce further.
  bool take(ModelPart less) {
    if (failure_) return false;
    auto model = whole_.encode(less);
    if (!model || !tried_.insert(*model).second) return false;
    auto ending = check_.run(*model);
    if (!ending) return failure_ = ending.error(), false;
    if (ending->code != code_ || !ending->has_message) return false;
    part_ = std::move(less);
    model_ = std::move(*model);
    progress("");
    return true;
  }

  bool take_nodes(Nodes nodes) {
    ModelPart less = part_;
    less.nodes = std::move(nodes);
    return !less.nodes.empty() && less.nodes.size() < part_.nodes.size() && take(std::move(less));
  }

  void fewer_nodes() {
    for (size_t pieces = 2; part_.nodes.size() > 1 && !failure_;) {
      pieces = std::min(pieces, part_.nodes.size());
      if (take_piece(pieces, /*complement=*/false)) {
        pieces = 2;
      } else if (pieces > 2 && take_piece(pieces, /*complement=*/true)) {
        pieces = std::max<size_t>(pieces - 1, 2);
      } else {
        if (pieces == part_.nodes.size()) break;
        pieces *= 2;
      }
    }
  }

  // Tries each of so many pieces of the nodes, or all nodes but those of one piece.
  bool take_piece(size_t pieces, bool complement) {
    const Nodes nodes = part_.nodes;
    for (size_t i = 0; i < pieces; ++i) {
      auto first = nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() * i / pieces);
      auto last = nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() * (i + 1) / pieces);
      Nodes kept(nodes.begin(), complement ? first : nodes.begin());
      kept.insert(kept.end(), complement ? last : first, complement ? nodes.end() : last);
      if (take_nodes(std::move(kept))) return true;
    }
    return false;
  }

  void fewer_outputs() {
    for (const std::string& name : whole_.outputs(part_)) {
      ModelPart less = part_;
      less.left_out_outputs.insert(name);
      take(std::move(less));
    }
  }

  // Makes constants inputs: the file gets small, and discloses no weights.
  void fewer_constants() {
    std::vector<std::string> names = whole_.initializers(part_);
    ModelPart less = part_;
    less.freed_initializers.insert(names.begin(), names.end());
    if (names.empty() || take(std::move(less))) return;
    for (const std::string& name : names) {
      less = part_;
      less.freed_initializers.insert(name);
      take(std::move(less));
    }
  }

  void progress(const std::string& note) const {
    if (!options_.progress) return;
    options_.progress(counted(part_.nodes.size(), "node") + ", " +
                      counted(whole_.outputs(part_).size(), "output") + ": the check fails" +
                      (note.empty() ? "" : " with " + note) + " (" +
                      counted(static_cast<size_t>(check_.count()), "check") + " so far)");
  }

  const ReduceOptions& options_;
  const WholeModel& whole_;
  Check& check_;
  ModelPart part_;
  std::string model_;
  int code_ = 0;
  std::set<std::string> tried_; // models
  std::optional<Diagnostic> failure_;
};

std::string default_output(const std::string& model) {
  if (model == kStandardInput) return "model.reduced.onnx";
  size_t dot = model.rfind(".onnx");
  return (dot != std::string::npos && dot + 5 == model.size() ? model.substr(0, dot) : model) +
         ".reduced.onnx";
}

} // namespace

static Result reduce_model(const ReduceOptions& options) {
  if (options.check.find("{}") == std::string::npos)
    return usage_error("--check wants a command with {} in the place of the model, found '" + options.check +
                       "'");
  auto start = std::chrono::steady_clock::now();
  auto whole = WholeModel::open(options.model);
  if (!whole) return whole.error();
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  Check check(options, *folder);
  Reduction reduction(options, *whole, check);
  if (Result begun = reduction.begin(); !begun) return begun.error();
  if (Result done = reduction.run(); !done) return done.error();
  std::string output = options.output.empty() ? default_output(options.model) : options.output;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Nodes& nodes = reduction.part().nodes;
  char note[64];
  std::snprintf(note, sizeof note, " in %.1f s", seconds);
  std::string text = output + ": " + std::to_string(nodes.size()) + " of " +
                     counted(whole->num_nodes(), "node") + ", " +
                     counted(static_cast<size_t>(check.count()), "check") + note + "\n";
  constexpr size_t kListed = 20;
  for (size_t i = 0; i < nodes.size() && i < kListed; ++i) text += "  " + whole->label(nodes[i]) + "\n";
  if (nodes.size() > kListed) text += "  and " + std::to_string(nodes.size() - kListed) + " more\n";
  OutputSet outputs;
  if (Result written = outputs.write(output, reduction.model()); !written) return written;
  if (options.announce)
    if (Result announced = options.announce(text); !announced) return announced;
  return outputs.commit();
}

Result reduce(const ReduceOptions& options) {
  return guarded(options.model, [&] { return reduce_model(options); });
}

} // namespace firn::driver
