// See shrink.h.
#include "tests/random/shrink.h"

#include <algorithm>
#include <set>

namespace firn::test {
namespace {

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Removes nodes, states, inputs and constants that no output needs.
void prune(TestGraph& graph) {
  std::set<std::string> live(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const TestNode& node = graph.nodes[i];
    bool needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                              [&](const auto& name) { return live.count(name); });
    if (!needed) {
      graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    for (const std::string& name : node.operands()) live.insert(name);
  }
  std::erase_if(graph.states, [&](const auto& state) {
    return !live.count(state.first) || !contains(graph.outputs, state.second);
  });
  for (Names* names : {&graph.inputs, &graph.constants})
    std::erase_if(*names, [&](const std::string& name) { return !live.count(name); });
}

// The case with inputs in place of the node's results; nothing if one of these is an output or cannot be an
// input.
std::optional<TestCase> without_node(const TestCase& test, size_t index) {
  TestCase less = test;
  for (const std::string& name : test.graph.nodes[index].outputs) {
    if (contains(test.graph.outputs, name) || !test.graph.is_declarable(name)) return std::nullopt;
    less.graph.inputs.push_back(name);
  }
  // The compiler may have derived their bounds from the node.
  for (TestNode& node : less.graph.nodes)
    for (TestBound& bound : node.bounds)
      if (contains(test.graph.nodes[index].outputs, bound.value)) bound.derived = false;
  less.graph.nodes.erase(less.graph.nodes.begin() + static_cast<std::ptrdiff_t>(index));
  prune(less.graph);
  return less;
}

class Shrinking {
public:
  Shrinking(TestCase& test, const StillFails& still_fails) : test_(test), still_fails_(still_fails) {}

  void to_one_output() {
    for (const std::string& output : Names(test_.graph.outputs)) {
      TestCase less = test_;
      less.graph.outputs = {output};
      prune(less.graph);
      if (test_.graph.outputs.size() > 1 && take(std::move(less))) return;
    }
    for (size_t i = test_.graph.outputs.size(); i-- > 0 && test_.graph.outputs.size() > 1;) {
      TestCase less = test_;
      less.graph.outputs.erase(less.graph.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      prune(less.graph);
      take(std::move(less));
    }
  }

  // A value in the middle may already be wrong.
  void to_earlier_output() {
    for (const TestNode& node : std::vector<TestNode>(test_.graph.nodes))
      for (const std::string& name : node.outputs) {
        if (test_.graph.outputs == Names{name}) return;
        TestCase less = test_;
        less.graph.outputs = {name};
        prune(less.graph);
        if (less.graph.nodes.size() < test_.graph.nodes.size() && take(std::move(less))) return;
      }
  }

  void to_fewer_runs() {
    for (size_t i = test_.graph.runs.size(); i-- > 0 && test_.graph.runs.size() > 1;) {
      TestCase less = test_;
      less.graph.runs.erase(less.graph.runs.begin() + static_cast<std::ptrdiff_t>(i));
      for (TestSymbol& symbol : less.graph.symbols)
        symbol.at.erase(symbol.at.begin() + static_cast<std::ptrdiff_t>(i));
      take(std::move(less));
    }
  }

  bool to_fewer_nodes() {
    bool changed = false;
    for (size_t i = test_.graph.nodes.size(); i-- > 0;)
      if (i < test_.graph.nodes.size())
        if (auto less = without_node(test_, i)) changed |= take(std::move(*less));
    return changed;
  }

  void to_plain_setting() {
    using firn::OptLevel;
    auto with = [&](auto change) {
      TestCase less = test_;
      change(less);
      return take(std::move(less));
    };
    with([](TestCase& t) { t.graph.states.clear(); });
    with([](TestCase& t) { t.setting.threads = 1; });
    with([](TestCase& t) { t.setting.specializations = -1; });
    while (!test_.setting.cpus.empty() && with([](TestCase& t) { t.setting.cpus.pop_back(); })) {
    }
    with([](TestCase& t) { t.setting.math = firn::Math::Default; });
    with([](TestCase& t) { t.setting.weights = driver::Weights::Embed; });
    with([](TestCase& t) { t.setting.no_winograd = false; });
    with([](TestCase& t) { t.setting.check_indices = false; });
    with([](TestCase& t) { t.setting.external = false; });
    for (OptLevel level : {OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3})
      if (with([&](TestCase& t) { t.setting.opt_level = level; })) break;
    for (const char* cpu : {"x86-64-v3", "x86-64", "x86-64-v4"})
      if (contains(runnable_cpus(), cpu) && with([&](TestCase& t) { t.setting.cpu = cpu; })) break;
  }

private:
  bool take(TestCase less) {
    if (!still_fails_(less)) return false;
    test_ = std::move(less);
    return true;
  }

  TestCase& test_;
  const StillFails& still_fails_;
};

} // namespace

TestCase shrink(TestCase test, const StillFails& still_fails) {
  Shrinking shrinking(test, still_fails);
  shrinking.to_one_output();
  shrinking.to_earlier_output();
  shrinking.to_fewer_runs();
  while (shrinking.to_fewer_nodes()) {
  }
  shrinking.to_plain_setting();
  return test;
}

} // namespace firn::test
