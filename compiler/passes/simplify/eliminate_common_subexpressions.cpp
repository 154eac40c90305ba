// eliminate-common-subexpressions: computes equal values once.
//
//   %a = add %x, %y : f32[4]
//   %b = add %y, %x : f32[4]      ->   uses of %b become uses of %a
//
// Instructions are equal if opcode, attributes, types, operands (in any order for commutative ops) and
// regions are. A value computed outside a branch or loop also serves inside. Equal constants merge by
// content. A recurrent layer that keeps residuals for its gradient serves for one that does not.
//
// - Requires: nothing.
// - Establishes: no two equal instructions where one dominates the other.
// - Breaks: nothing.
#include "compiler/graph/recurrent_cells.h"
#include "compiler/passes/passes.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace firn {
namespace {

using Numbering = std::unordered_map<const Instruction*, int64_t>;

bool equal_literals(const Literal& a, const Literal& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims() || a.is_opaque() != b.is_opaque()) return false;
  if (a.is_opaque()) return a.hash() == b.hash();
  if (a.dtype() == DType::String) return a.string_values() == b.string_values();
  auto x = a.plain_bytes(), y = b.plain_bytes();
  if (!a.values_may_be_used() || !b.values_may_be_used()) return x.data() == y.data(); // one tensor
  return x.data() == y.data() ||
         (x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0));
}

bool equal_regions(const Region& a, const Region& b,
                   std::unordered_map<const Instruction*, const Instruction*>& same);

// `same`: what instructions of a's regions are in b's.
bool equal_operand(Value a, Value b, const std::unordered_map<const Instruction*, const Instruction*>& same) {
  auto found = same.find(a.def);
  return a.index == b.index && (found == same.end() ? a.def : found->second) == b.def;
}

bool equal_instructions(const Instruction& a, const Instruction& b,
                        std::unordered_map<const Instruction*, const Instruction*>& same) {
  if (a.opcode() != b.opcode() || a.num_results() != b.num_results() ||
      a.num_operands() != b.num_operands() || a.num_regions() != b.num_regions() ||
      !(a.attributes() == b.attributes()))
    return false;
  for (int i = 0; i < a.num_results(); ++i)
    if (!(a.type(i) == b.type(i))) return false;
  for (int i = 0; i < a.num_operands(); ++i)
    if (!equal_operand(a.operand(i), b.operand(i), same)) return false;
  if (a.is(Opcode::Constant)) return equal_literals(*a.literal(), *b.literal());
  for (int r = 0; r < a.num_regions(); ++r)
    if (!equal_regions(a.region(r), b.region(r), same)) return false;
  return true;
}

bool equal_regions(const Region& a, const Region& b,
                   std::unordered_map<const Instruction*, const Instruction*>& same) {
  if (a.instructions().size() != b.instructions().size() || a.results().size() != b.results().size())
    return false;
  for (auto x = a.instructions().begin(), y = b.instructions().begin(); x != a.instructions().end();
       ++x, ++y) {
    if (!equal_instructions(**x, **y, same)) return false;
    same[x->get()] = y->get();
  }
  for (size_t i = 0; i < a.results().size(); ++i)
    if (!equal_operand(a.results()[i], b.results()[i], same)) return false;
  return true;
}

// Finds equal instructions by a key of opcode, attributes and operand numbers; equality decides.
class Table {
public:
  explicit Table(const PassOptions& options) : options_(options) {}

  bool merge_in(Region& region) {
    bool changed = false;
    std::vector<std::string> added;
    for (Instruction* instruction : region.snapshot()) {
      numbers_.emplace(instruction, static_cast<int64_t>(numbers_.size()));
      if (has_trait(instruction->opcode(), NeverMerged)) {
        for (int r = 0; r < instruction->num_regions(); ++r)
          if (has_trait(instruction->opcode(), Captures)) changed |= merge_in(instruction->region(r));
        continue;
      }
      sort_operands(*instruction);
      std::string key = key_of(*instruction);
      Instruction* earlier = find_layer(*instruction, /*residuals=*/true);
      if (!earlier) earlier = find(key, *instruction);
      if (earlier) {
        if (!options_.take_rewrite()) return changed;
        replace_uses(*instruction, *earlier);
        region.erase(instruction);
        changed = true;
        continue;
      }
      if (Instruction* plain = find_layer(*instruction, /*residuals=*/false); plain && plain->has_uses()) {
        if (!options_.take_rewrite()) return changed;
        region.move_before(instruction, plain);
        replace_uses(*plain, *instruction);
        changed = true;
      }
      table_[key].push_back(instruction);
      added.push_back(std::move(key));
    }
    for (const std::string& key : added) table_[key].pop_back(); // out of scope for what follows the region
    return changed;
  }

private:
  // Puts the operands of the lookup into operands_, in one order for commutative ops. The instruction keeps
  // its own.
  void sort_operands(const Instruction& instruction) {
    operands_ = instruction.operands();
    if (has_trait(instruction.opcode(), Commutative))
      std::sort(operands_.begin(), operands_.end(), [this](Value a, Value b) {
        return std::pair(numbers_[a.def], a.index) < std::pair(numbers_[b.def], b.index);
      });
  }

  std::string key_of(const Instruction& instruction) { return key_of(instruction, instruction.attributes()); }
  std::string key_of(const Instruction& instruction, const Attributes& attributes) {
    std::string key(opcode_name(instruction.opcode()));
    for (Value operand : operands_)
      key += ' ' + std::to_string(numbers_[operand.def]) + '.' + std::to_string(operand.index);
    if (!instruction.is(Opcode::Constant)) return key + attributes.to_string();
    const Literal& literal = *instruction.literal();
    key += literal.type().to_string();
    if (literal.is_opaque() || literal.dtype() == DType::String) return key;
    auto bytes = literal.plain_bytes(); // both ends tell most constants apart without reading gigabytes
    size_t end = std::min<size_t>(bytes.size(), 32);
    key.append(reinterpret_cast<const char*>(bytes.data()), end);
    key.append(reinterpret_cast<const char*>(bytes.data() + bytes.size() - end), end);
    return key;
  }

  Instruction* find(const std::string& key, const Instruction& instruction) {
    auto found = table_.find(key);
    if (found == table_.end()) return nullptr;
    for (Instruction* candidate : found->second) {
      std::unordered_map<const Instruction*, const Instruction*> same;
      if (equal_but_for_order(*candidate, instruction, same)) return candidate;
    }
    return nullptr;
  }

  // The recurrent layer of the region that differs from this one in that it has residuals, or has none.
  Instruction* find_layer(const Instruction& instruction, bool residuals) {
    auto layer = read_recurrent(instruction);
    if (!layer || layer->options.residuals == residuals) return nullptr;
    Attributes attributes = instruction.attributes();
    if (residuals)
      attributes.set("residuals", true);
    else
      attributes.erase("residuals");
    auto found = table_.find(key_of(instruction, attributes));
    if (found == table_.end()) return nullptr;
    for (Instruction* candidate : found->second)
      if (candidate->parent() == instruction.parent() && read_recurrent(*candidate)) return candidate;
    return nullptr;
  }

  // The results that both have.
  static void replace_uses(Instruction& from, Instruction& to) {
    for (int i = 0; i < std::min(from.num_results(), to.num_results()); ++i)
      from.parent()->replace_uses(from.result(i), to.result(i));
    merge_locations(to, from);
  }

  static bool equal_but_for_order(const Instruction& a, const Instruction& b,
                                  std::unordered_map<const Instruction*, const Instruction*>& same) {
    if (!has_trait(a.opcode(), Commutative)) return equal_instructions(a, b, same);
    return a.type() == b.type() && a.attributes() == b.attributes(); // the key holds the sorted operands
  }

  static void merge_locations(Instruction& kept, const Instruction& merged) {
    if (kept.is(Opcode::Constant) || merged.location().empty() || kept.location() == merged.location())
      return;
    if (kept.location().empty()) kept.set_location(merged.location());
  }

  const PassOptions& options_;
  Numbering numbers_;
  std::vector<Value> operands_;
  std::unordered_map<std::string, std::vector<Instruction*>> table_;
};

} // namespace

bool eliminate_common_subexpressions(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= Table(options).merge_in(function->body());
  return changed;
}

} // namespace firn
