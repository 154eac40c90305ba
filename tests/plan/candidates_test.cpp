// Candidates of random kernels: each compiles and computes what the evaluator does.
#include "compiler/graph/composites.h"
#include "compiler/graph/hlo_text.h"
#include "compiler/graph/resample.h"
#include "compiler/graph/tree_ensemble.h"
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/options.h"
#include "compiler/plan/plan_function.h"
#include "tests/codegen/model_object.h"
#include "tests/lower/attention_text.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>

using namespace firn;
using namespace firn::test;

namespace {

constexpr size_t kMaxCandidates = 4;
constexpr int kForms = 16;

class RandomKernel {
public:
  RandomKernel(unsigned seed, const std::string& cpu)
      : random_(seed), block_(std::to_string(target_of("", cpu).cpu.channel_block())) {}

  // A module around one kernel.
  Module module(int form) {
    Module made("m");
    switch (form) {
    case 12: recurrent(made); return made;
    case 13: trees(made); return made;
    case 14: resample(made); return made;
    default:
      auto parsed = parse_module("candidates.hlo", text(form));
      if (!parsed) FAIL(parsed.error().message + "\n" + text(form));
      return std::move(**parsed);
    }
  }

private:
  std::string text(int form) {
    switch (form) {
    case 0: return dot();
    case 1: return convolution(/*groups=*/1);
    case 2: return depthwise();
    case 3: return pooling(/*blocked=*/true);
    case 4: return pooling(/*blocked=*/false);
    case 5: return convolution(1, /*is_dilated=*/true);
    case 6: return elementwise();
    case 7: return softmax();
    case 8: return reduce();
    case 9: return transpose();
    case 10: return cumulative();
    case 11: return top_k();
    default: return attention();
    }
  }

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  static std::string dims(const std::vector<int64_t>& extents) {
    std::string text;
    for (int64_t extent : extents) text += (text.empty() ? "f32[" : ",") + std::to_string(extent);
    return text + "]";
  }
  std::string blocked(const std::string& type) const { return type + "{0,1,2,3:1x" + block_ + "}"; }
  static std::string module(const std::string& in, const std::string& out, const std::string& body) {
    return "module @m { func @main(%x: " + in + ") -> (" + out + ") { " + body + " return %r } }";
  }

  std::string dot() {
    int64_t m = pick(1, 40), k = pick(1, 70), n = pick(1, 90);
    return module(dims({m, k}), dims({m, n}),
                  "%w = " + random_constant(k * n, 3) + " : " + dims({k, n}) +
                      " %r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = "
                      "[0]} : " +
                      dims({m, n}));
  }

  std::string convolution(int64_t groups, bool is_dilated = false) {
    int64_t block = std::stoll(block_), c = groups == 1 ? pick(1, 3) * block : groups,
            f = groups == 1 ? pick(1, 3) * block : groups, h = pick(3, 12), w = pick(3, 15);
    std::string in = dims({1, c, h, w});
    std::string out = is_dilated ? dims({1, f, 2 * h, 2 * w}) : dims({1, f, h, w});
    std::string window = is_dilated ? "2x2 pad 1_1x1_1 input_dilate 2x2" : "3x3 pad 1_1x1_1";
    int64_t taps = is_dilated ? 4 : 9;
    return module(in, out,
                  "%w = " + random_constant(f * (c / groups) * taps, 5) + " : " +
                      dims({f, c / groups, is_dilated ? 2 : 3, is_dilated ? 2 : 3}) +
                      " %i = copy %x : " + blocked(in) + " %c = convolution %i, %w {window = " + window +
                      ", groups = " + std::to_string(groups) + "} : " + blocked(out) +
                      " %r = copy %c : " + out);
  }
  std::string depthwise() { return convolution(pick(1, 3) * std::stoll(block_)); }

  std::string pooling(bool is_blocked) {
    int64_t c = is_blocked ? pick(1, 2) * std::stoll(block_) : pick(1, 5), h = pick(4, 12), w = pick(4, 20);
    std::string in = dims({1, c, h, w}), out = dims({1, c, h - 1, w - 1}),
                combine = pick(0, 1) ? "maximum" : "add", start = combine == "add" ? "0.0" : "-inf";
    std::string window = "{window = 1x1x2x2} region(%a: f32[], %b: f32[]) { %s = " + combine +
                         " %a, %b : f32[] return %s } : ";
    std::string begin = "%z = constant [" + start + "] : f32[] ";
    if (!is_blocked) return module(in, out, begin + "%r = reduce_window %x, %z " + window + out);
    return module(in, out,
                  begin + "%i = copy %x : " + blocked(in) + " %p = reduce_window %i, %z " + window +
                      blocked(out) + " %r = copy %p : " + out);
  }

  std::string elementwise() {
    std::string type = dims({pick(1, 9), pick(1, 70)});
    const char* op = pick(0, 1) ? "tanh" : "abs";
    return module(type, type, std::string("%r = ") + op + " %x : " + type);
  }

  std::string softmax() {
    int64_t m = pick(1, 7), n = pick(2, 50);
    std::string type = dims({m, n}), reduced = dims({m});
    std::string max =
        "{dims = [1]} region (%a: f32[], %b: f32[]) { %s = maximum %a, %b : f32[] return %s } : ";
    std::string add = "{dims = [1]} region (%a: f32[], %b: f32[]) { %s = add %a, %b : f32[] return %s } : ";
    return module(type, type,
                  "%r = composite %x {name = softmax, dim = 1} region (%p: " + type +
                      ") { %l = constant [-inf] : f32[] %mx = reduce %p, %l " + max + reduced +
                      " %w = broadcast_in_dim %mx {dims = [0]} : " + type +
                      " %d = subtract %p, %w : " + type + " %e = exponential %d : " + type +
                      " %z = constant [0.0] : f32[] %t = reduce %e, %z " + add + reduced +
                      " %u = broadcast_in_dim %t {dims = [0]} : " + type + " %y = divide %e, %u : " + type +
                      " return %y } : " + type);
  }

  std::string reduce() {
    int64_t m = pick(1, 20), n = pick(1, 60), axis = pick(0, 1);
    return module(dims({m, n}), dims({axis ? m : n}),
                  "%z = constant [0.0] : f32[] %r = reduce %x, %z {dims = [" + std::to_string(axis) +
                      "]} region (%a: f32[], %b: f32[]) { %s = add %a, %b : f32[] return %s } : " +
                      dims({axis ? m : n}));
  }

  std::string transpose() {
    int64_t a = pick(1, 5), m = pick(1, 30), n = pick(1, 30);
    return module(dims({a, m, n}), dims({a, n, m}),
                  "%r = transpose %x {permutation = [0, 2, 1]} : " + dims({a, n, m}));
  }

  std::string cumulative() {
    std::string type = dims({pick(1, 4), pick(1, 20), pick(1, 30)});
    return module(type, type,
                  "%r = cumulative %x {dim = " + std::to_string(pick(0, 2)) + ", reducer = add} : " + type);
  }

  std::string top_k() {
    int64_t m = pick(1, 5), n = pick(2, 60), k = pick(1, std::min<int64_t>(n, 9));
    return module(dims({m, n}), dims({m, k}),
                  "%t:2 = top_k %x {dim = 1, k = " + std::to_string(k) + ", largest = true} : (" +
                      dims({m, k}) + ", i64[" + std::to_string(m) + "," + std::to_string(k) +
                      "]) %r = copy %t#0 : " + dims({m, k}));
  }

  std::string attention() {
    auto size = [&](int64_t low, int64_t high) { return static_cast<int>(pick(low, high)); };
    const Sizes sizes{size(1, 2), size(1, 3), size(1, 20), size(2, 40), size(1, 3) * 8, size(4, 20)};
    const std::string scores = dims({sizes.batch, sizes.heads, sizes.rows, sizes.keys});
    const Text text =
        attention_text(sizes, {},
                       "%f0 = constant [0.25] : f32[] %f = broadcast_in_dim %f0 {dims = []} : " + scores +
                           " %m = multiply %s, %f : " + scores + "\n",
                       "");
    return "module @m { func @main(" + text.parameters + ") -> (" + text.type + ") { " + text.body +
           " return %r } }";
  }

  LiteralRef numbers(DType dtype, std::vector<int64_t> dims, double magnitude) {
    std::vector<double> values;
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(pick(-64, 64)) / 64 * magnitude);
    return Literal::of(dtype, std::move(dims), values);
  }

  void recurrent(Module& module) {
    const int64_t kind = pick(0, 2), in = pick(1, 20), hidden = pick(1, 50), steps = pick(1, 4),
                  batch = pick(1, 5),
                  rows = (kind == 0   ? 4
                          : kind == 1 ? 3
                                      : 1) *
                         hidden;
    Region& body = module.add_function("main").body();
    GraphBuilder b(body);
    auto input = [&](const char* name, std::vector<Dim> dims) {
      return body.add_parameter(Type::tensor(DType::F32, std::move(dims)), name)->result();
    };
    RecurrentOperands o;
    o.x = input("x", {steps, batch, in});
    o.w = b.constant(numbers(DType::F32, {rows, in}, 0.25));
    o.b = b.constant(numbers(DType::F32, {rows}, 0.25));
    o.r = b.constant(numbers(DType::F32, {rows, hidden}, 0.25));
    o.h0 = input("h0", {batch, hidden});
    if (kind == 0) o.c0 = input("c0", {batch, hidden});
    Instruction* layer = kind == 0   ? make_lstm(b, o, {})
                         : kind == 1 ? make_gru(b, o, {})
                                     : make_rnn(b, o, {});
    body.set_results({layer->result(0)});
  }

  // Trees of two comparisons: entries 0 and 1 compare, 2 to 4 are leaves.
  void trees(Module& module) {
    const int64_t count = pick(1, 20), features = pick(2, 9), rows = pick(1, 40);
    TreeEnsemble made;
    while ((int64_t{1} << made.shift) < features) ++made.shift;
    std::vector<double> thresholds, values;
    std::vector<int64_t> links, roots;
    for (int64_t tree = 0; tree < count; ++tree) {
      const int64_t root = 5 * tree;
      roots.push_back(root);
      for (int64_t entry = 0; entry < 5; ++entry) {
        const bool compares = entry < 2;
        thresholds.push_back(compares ? static_cast<double>(pick(-8, 8)) / 4 : std::nan(""));
        // An entry that compares is followed by the two that it leads to, and its link is the second's.
        const int64_t beyond = root + (entry == 0 ? 2 : 4);
        links.push_back(compares ? beyond << made.shift | pick(0, features - 1)
                                 : (root + entry) << made.shift);
        values.push_back(static_cast<double>(pick(-9, 9)));
      }
    }
    made.thresholds = Literal::of(DType::F32, {5 * count}, thresholds);
    made.links = Literal::of(DType::I32, {5 * count}, links);
    made.values = Literal::of(DType::F32, {5 * count}, values);
    made.roots = Literal::of(DType::I32, {count}, roots);
    made.targets = Literal::of(DType::I32, {count}, std::vector<int64_t>(static_cast<size_t>(count)));
    made.depth = 2, made.results = 1, made.reducer = Opcode::Add;
    Region& body = module.add_function("main").body();
    GraphBuilder b(body);
    Value x = body.add_parameter(Type::tensor(DType::F32, {Dim(rows), Dim(features)}), "x")->result();
    body.set_results({make_tree_ensemble(b, x, made)});
  }

  // Lines and rows to twice their length, by two taps each.
  void resample(Module& module) {
    const int64_t channels = pick(1, 4), in[] = {pick(2, 9), pick(2, 40)};
    Region& body = module.add_function("main").body();
    GraphBuilder b(body);
    Value x =
        body.add_parameter(Type::tensor(DType::F32, {Dim(1), Dim(channels), Dim(in[0]), Dim(in[1])}), "x")
            ->result();
    std::vector<ResampledDim> resampled;
    for (int d = 0; d < 2; ++d) {
      std::vector<int64_t> indices;
      std::vector<double> weights;
      for (int64_t tap = 0; tap < 2; ++tap)
        for (int64_t i = 0; i < 2 * in[d]; ++i) {
          indices.push_back(std::min(i / 2 + tap, in[d] - 1));
          weights.push_back((i + tap) % 2 ? 0.25 : 0.75);
        }
      resampled.push_back({d + 2, Literal::of(DType::I32, {2, 2 * in[d]}, indices),
                           Literal::of(DType::F32, {2, 2 * in[d]}, weights)});
    }
    body.set_results({make_resample(b, x, resampled)});
  }

  std::mt19937 random_;
  std::string block_;
};

// Checks the candidates of every instruction of the module.
void check_candidates(const Module& module, const std::string& cpu,
                      std::map<std::string, size_t>& algorithms) {
  const Machine target = target_of("", cpu);
  const plan::PlanOptions options{target};
  const plan::PlanningContext context{options};
  for (const auto& instruction : module.main().body().instructions()) {
    if (instruction->is(Opcode::Constant) || instruction->is(Opcode::Parameter)) continue;
    for (const plan::Candidate& each : plan::all_candidates(*instruction, context, kMaxCandidates)) {
      const std::string plan = to_string(each.plan);
      INFO(cpu << ": " << plan << "\n" << print_module(module));
      CHECK(each.cycles > 0);
      instruction->attributes().set("plan", plan);
      expect_lowered_module(module, {.tolerance = 2e-5, .cpus = {cpu}});
      instruction->attributes().erase("plan");
      ++algorithms[name_of(each.plan.algorithm())];
    }
  }
}

// Kernels of all forms, `draws` of each.
void check_kernels(int draws) {
  std::map<std::string, size_t> algorithms;
  unsigned seed = 0;
  for (int draw = 0; draw < draws; ++draw)
    for (int form = 0; form < kForms; ++form) {
      const char* cpu = (form + draw) % 2 ? "x86-64-v3" : "x86-64";
      check_candidates(RandomKernel(++seed, cpu).module(form), cpu, algorithms);
    }
  for (const char* word :
       {"direct", "polyphase", "winograd", "depthwise", "pooling", "row_pooling", "elements", "rows",
        "relayout", "scan", "top_k", "attention", "recurrent", "trees", "resample"}) {
    INFO(word);
    CHECK(algorithms[word] > 0);
  }
}

} // namespace

TEST_CASE("every candidate of random kernels computes its instruction", "[candidates]") {
  check_kernels(3);
}

TEST_CASE("every candidate of 208 random kernels computes its instruction", "[.many_candidates]") {
  check_kernels(13);
}
