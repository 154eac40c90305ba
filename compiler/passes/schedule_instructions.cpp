// schedule-instructions: orders the instructions of @main so that the peak of live bytes is low.
//
//   %a = broadcast_in_dim %x {dims = [0]}    %a = broadcast_in_dim %x {dims = [0]}
//   %b = broadcast_in_dim %y {dims = [0]}    %c = reduce %a, %zero {dims = [1]} ...
//   %c = reduce %a, %zero {dims = [1]} ...   %b = broadcast_in_dim %y {dims = [0]}
//   %d = reduce %b, %zero {dims = [1]} ...   %d = reduce %b, %zero {dims = [1]} ...
//
// Greedy list scheduling: always the ready instruction that leaves the least memory alive, kept only if its
// peak is below that of the given order.
//
// - Requires: fusions as lowering is to see them: their results take the memory.
// - Establishes: nothing that another pass needs.
// - Breaks: nothing; passes that remove or replace instructions keep the order of the others.
#include "compiler/graph/named_symbols.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace firn {
namespace {

constexpr size_t kMaxInstructions = 20000; // the greedy choice looks at all ready instructions at every step

struct Node {
  Instruction* instruction;
  int64_t bytes = 0;            // bytes of the results that take memory
  std::vector<size_t> operands; // distinct nodes read, views followed to what they view
  std::vector<size_t> waits;    // distinct nodes that must come before
  size_t uses_left = 0;
  bool is_result = false;
};

bool is_view(const Instruction& instruction) {
  return instruction.is(Opcode::Reshape) || instruction.is(Opcode::BitcastConvert);
}

int64_t result_bytes(const Instruction& instruction) {
  if (instruction.is(Opcode::Constant) || is_view(instruction)) return 0;
  int64_t bytes = 0;
  for (int i = 0; i < instruction.num_results(); ++i)
    if (instruction.type(i).is_static())
      bytes += static_cast<int64_t>(instruction.type(i).physical_byte_size());
  return bytes;
}

// Instructions outside `region` that the regions of `instruction` read.
void collect_captures(const Instruction& instruction, std::set<const Instruction*>& found) {
  for (int r = 0; r < instruction.num_regions(); ++r)
    for (const auto& inner : instruction.region(r).instructions()) {
      for (const Value& operand : inner->operands()) found.insert(operand.def);
      collect_captures(*inner, found);
    }
  for (int r = 0; r < instruction.num_regions(); ++r)
    for (const Value& result : instruction.region(r).results()) found.insert(result.def);
}

using Counters = std::map<const Symbol*, const Instruction*>;

// The instructions that count what the instruction names, or its regions.
void collect_counters(const Instruction& instruction, const Counters& counters,
                      std::set<const Instruction*>& found) {
  for (const SymbolRef& symbol : named_symbols(instruction))
    if (auto counter = counters.find(symbol.get()); counter != counters.end()) found.insert(counter->second);
  for (int r = 0; r < instruction.num_regions(); ++r)
    for (const auto& inner : instruction.region(r).instructions()) collect_counters(*inner, counters, found);
}

std::vector<Node> build_nodes(Region& region) {
  std::vector<Node> nodes;
  std::unordered_map<const Instruction*, size_t> numbers;
  Counters counters;
  for (const auto& owned : region.instructions()) {
    Node node{owned.get(), result_bytes(*owned), {}, {}, 0, false};
    std::set<const Instruction*> read, counting;
    for (const Value& operand : owned->operands()) read.insert(operand.def);
    if (owned->num_regions() > 0 && has_trait(owned->opcode(), Captures)) collect_captures(*owned, read);
    std::set<size_t> waits, operands;
    for (const Instruction* operand : read) {
      auto found = numbers.find(operand);
      if (found == numbers.end()) continue; // inside the instruction's own regions
      waits.insert(found->second);
      // A view keeps alive what it views.
      if (is_view(*operand))
        operands.insert(nodes[found->second].operands.begin(), nodes[found->second].operands.end());
      else
        operands.insert(found->second);
    }
    if (!counters.empty()) collect_counters(*owned, counters, counting);
    for (const Instruction* counter : counting) waits.insert(numbers.at(counter));
    node.waits.assign(waits.begin(), waits.end());
    node.operands.assign(operands.begin(), operands.end());
    numbers[owned.get()] = nodes.size();
    nodes.push_back(std::move(node));
    if (owned->is(Opcode::NonZero))
      for (const SymbolRef& symbol : named_symbols(*owned)) counters[symbol.get()] = owned.get();
  }
  for (const Node& node : nodes)
    if (!is_view(*node.instruction))
      for (size_t operand : node.operands) ++nodes[operand].uses_left;
  for (const Value& result : region.results()) {
    const Node& node = nodes[numbers[result.def]];
    nodes[numbers[result.def]].is_result = true;
    if (is_view(*node.instruction))
      for (size_t operand : node.operands) nodes[operand].is_result = true;
  }
  return nodes;
}

// Keeps the readers of a state before the instruction that makes its next value, which then can be computed
// in place.
void keep_state_readers_first(const Function& main, std::vector<Node>& nodes) {
  for (size_t i = 0; i < main.body().results().size(); ++i) {
    if (!main.updates_state(i)) continue;
    const Instruction *state = main.body().parameter(main.aliases[i]).def,
                      *made = main.body().results()[i].def;
    auto writer =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.instruction == made; });
    for (auto reader = nodes.begin(); reader < writer; ++reader) {
      auto number = static_cast<size_t>(reader - nodes.begin());
      const std::vector<Value>& read = reader->instruction->operands();
      bool reads = std::any_of(read.begin(), read.end(), [&](Value value) { return value.def == state; });
      bool waits = std::find(writer->waits.begin(), writer->waits.end(), number) != writer->waits.end();
      if (reads && !waits) writer->waits.push_back(number);
    }
  }
}

class Simulation {
public:
  explicit Simulation(const std::vector<Node>& nodes) : nodes_(nodes) {
    for (const Node& node : nodes) uses_left_.push_back(node.uses_left);
  }
  // Bytes freed by running node i now.
  int64_t freed_by(size_t i) const {
    if (is_view(*nodes_[i].instruction)) return 0;
    int64_t freed = 0;
    for (size_t operand : nodes_[i].operands)
      if (uses_left_[operand] == 1 && dies(operand)) freed += nodes_[operand].bytes;
    return freed;
  }
  void run(size_t i) {
    alive_ += nodes_[i].bytes;
    peak_ = std::max(peak_, alive_);
    alive_ -= freed_by(i);
    if (!is_view(*nodes_[i].instruction))
      for (size_t operand : nodes_[i].operands) --uses_left_[operand];
  }
  int64_t peak() const { return peak_; }

private:
  bool dies(size_t i) const { return !nodes_[i].is_result && !nodes_[i].instruction->is(Opcode::Parameter); }
  const std::vector<Node>& nodes_;
  std::vector<size_t> uses_left_;
  int64_t alive_ = 0, peak_ = 0;
};

int64_t peak_of(const std::vector<Node>& nodes, const std::vector<size_t>& order) {
  Simulation simulation(nodes);
  for (size_t i : order) simulation.run(i);
  return simulation.peak();
}

// Always runs the ready instruction that leaves the least memory alive; ties keep the given order.
std::vector<size_t> greedy_order(const std::vector<Node>& nodes) {
  Simulation simulation(nodes);
  std::vector<size_t> waiting(nodes.size());
  std::vector<std::vector<size_t>> wakes(nodes.size());
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    waiting[i] = nodes[i].waits.size();
    for (size_t before : nodes[i].waits) wakes[before].push_back(i);
    if (waiting[i] == 0) ready.insert(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t best = *ready.begin();
    int64_t best_growth = INT64_MAX;
    for (size_t i : ready) {
      bool parameter = nodes[i].instruction->is(Opcode::Parameter);
      int64_t growth = parameter ? INT64_MIN : nodes[i].bytes - simulation.freed_by(i);
      if (growth < best_growth) best = i, best_growth = growth;
    }
    ready.erase(best);
    simulation.run(best);
    order.push_back(best);
    for (size_t woken : wakes[best])
      if (--waiting[woken] == 0) ready.insert(woken);
  }
  return order;
}

bool schedule(Function& function, const PassOptions& options) {
  Region& region = function.body();
  if (region.instructions().size() > kMaxInstructions) return false;
  std::vector<Node> nodes = build_nodes(region);
  keep_state_readers_first(function, nodes);
  std::vector<size_t> given(nodes.size());
  for (size_t i = 0; i < given.size(); ++i) given[i] = i;
  std::vector<size_t> greedy = greedy_order(nodes);
  if (peak_of(nodes, greedy) >= peak_of(nodes, given) || !options.take_rewrite()) return false;
  // Moving each to the front in reverse order leaves them in order.
  for (size_t i = greedy.size(); i-- > 0;) {
    Instruction* instruction = nodes[greedy[i]].instruction;
    Instruction* front = region.instructions().front().get();
    if (instruction != front) region.move_before(instruction, front);
  }
  return true;
}

} // namespace

bool schedule_instructions(Module& module, const PassOptions& options) {
  if (!has_main(module)) return false;
  bool changed = false;
  for (Function* entry : module.entries()) changed |= schedule(*entry, options);
  return changed;
}

} // namespace firn
