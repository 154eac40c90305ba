// Turns a set of instructions, or of fusions, into a fusion.
#include "compiler/passes/fusion/fusion_builder.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace firn {
namespace {

constexpr size_t kMaximumNames = 4; // a fusion's location lists so many ONNX nodes

std::string merged_location(const std::vector<Instruction*>& members) {
  std::vector<std::string> names;
  for (const Instruction* member : members) {
    const std::string& location = member->location();
    bool leaf = member->is(Opcode::Constant) || member->is(Opcode::BroadcastInDim);
    if (leaf || location.empty() || std::find(names.begin(), names.end(), location) != names.end()) continue;
    names.push_back(location);
  }
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaximumNames; ++i) text += (i ? ";" : "") + names[i];
  return names.size() > kMaximumNames ? text + ";..." : text;
}

class FusionBuilder {
public:
  FusionBuilder(const std::vector<Instruction*>& members, FusionKind kind,
                const std::vector<Instruction*>& exported, Instruction* before)
      : members_(members), exported_(exported) {
    for (Instruction* member : members_) copies_[member] = nullptr;
    collect_operands();
    std::vector<Type> types;
    for (const Instruction* member : exported_)
      for (int i = 0; i < member->num_results(); ++i) types.push_back(member->type(i));
    Region& parent = *before->parent();
    fusion_ = parent.append(Opcode::Fusion, operands_, types,
                            {{"kind", Word{std::string(fusion_kind_word(kind))}}}, before);
    fusion_->set_location(merged_location(members_));
  }

  Instruction* run() {
    Region& region = fusion_->add_region();
    for (size_t i = 0; i < operands_.size(); ++i)
      parameters_.push_back(region.add_parameter(operands_[i].type())->result());
    for (Instruction* member : members_) copy(*member, region);
    std::vector<Value> results;
    for (Instruction* member : exported_)
      for (int i = 0; i < member->num_results(); ++i) {
        Value result = fusion_->result(static_cast<int>(results.size()));
        results.push_back({copies_[member], i});
        fusion_->parent()->replace_uses(member->result(i), result);
      }
    region.set_results(results);
    return fusion_;
  }

private:
  static bool moves_inside(const Instruction& instruction, const Instruction& user) {
    return instruction.is(Opcode::Constant) && !sums_products(user) &&
           instruction.type().num_elements() == 1 && instruction.type().dtype != DType::String;
  }

  void collect_operands() {
    for (Instruction* member : members_)
      for (Value operand : member->operands()) {
        bool inside = copies_.count(operand.def) > 0 || moves_inside(*operand.def, *member);
        if (!inside && std::find(operands_.begin(), operands_.end(), operand) == operands_.end())
          operands_.push_back(operand);
      }
  }

  Value inside(Value value, Region& region) {
    if (auto found = copies_.find(value.def); found != copies_.end() && found->second)
      return {found->second, value.index};
    auto operand = std::find(operands_.begin(), operands_.end(), value);
    if (operand != operands_.end()) return parameters_[static_cast<size_t>(operand - operands_.begin())];
    Instruction* constant = region.append_constant(value.def->literal());
    constant->set_type(value.type());
    copies_[value.def] = constant;
    return constant->result();
  }

  void copy(Instruction& member, Region& region) {
    std::vector<Value> operands;
    for (Value operand : member.operands()) operands.push_back(inside(operand, region));
    std::vector<Type> types;
    for (int i = 0; i < member.num_results(); ++i) types.push_back(member.type(i));
    Instruction* made = region.append(member.opcode(), operands, types, member.attributes());
    made->set_literal(member.literal());
    made->set_location(member.location());
    for (int r = 0; r < member.num_regions(); ++r) { // reducers: isolated
      Region& nested = made->add_region();
      std::vector<Value> arguments;
      for (Instruction* parameter : member.region(r).parameters())
        arguments.push_back(nested.add_parameter(parameter->type(), parameter->name())->result());
      nested.set_results(nested.inline_region(member.region(r), arguments));
    }
    copies_[&member] = made;
  }

  const std::vector<Instruction*>&members_, &exported_;
  Instruction* fusion_ = nullptr;
  std::vector<Value> operands_, parameters_;
  std::unordered_map<const Instruction*, Instruction*> copies_;
};

} // namespace

Instruction* make_fusion(const std::vector<Instruction*>& members, FusionKind kind,
                         const std::vector<Instruction*>& exported, Instruction* before) {
  return FusionBuilder(members, kind, exported, before).run();
}

Instruction* make_fusion(const std::vector<Instruction*>& members, FusionKind kind) {
  return make_fusion(members, kind, {members.back()}, members.back());
}

Instruction* join_fusions(const std::vector<Instruction*>& members,
                          const std::vector<Instruction*>& exported) {
  std::vector<Value> operands;
  for (const Instruction* member : members)
    for (Value operand : member->operands()) {
      bool is_inside = std::find(members.begin(), members.end(), operand.def) != members.end();
      if (!is_inside && std::find(operands.begin(), operands.end(), operand) == operands.end())
        operands.push_back(operand);
    }
  std::vector<Type> types;
  for (Instruction* member : exported)
    for (int i = 0; i < member->num_results(); ++i) types.push_back(member->type(i));
  Region& parent = *members.back()->parent();
  Instruction* joined = parent.append(
      Opcode::Fusion, operands, types,
      {{"kind", Word{std::string(fusion_kind_word(*fusion_kind(*members[0])))}}}, members.back());
  joined->set_location(merged_location(members));

  Region& region = joined->add_region();
  std::vector<Value> parameters;
  for (Value operand : operands) parameters.push_back(region.add_parameter(operand.type())->result());
  std::unordered_map<const Instruction*, std::vector<Value>> computed;
  for (Instruction* member : members) {
    std::vector<Value> arguments;
    for (Value operand : member->operands()) {
      auto found = computed.find(operand.def);
      auto given =
          static_cast<size_t>(std::find(operands.begin(), operands.end(), operand) - operands.begin());
      arguments.push_back(found != computed.end() ? found->second[static_cast<size_t>(operand.index)]
                                                  : parameters[given]);
    }
    computed[member] = region.inline_region(member->region(), arguments);
  }
  std::vector<Value> results;
  for (Instruction* member : exported)
    for (int i = 0; i < member->num_results(); ++i) {
      Value result = joined->result(static_cast<int>(results.size()));
      results.push_back(computed.at(member)[static_cast<size_t>(i)]);
      parent.replace_uses(member->result(i), result);
    }
  region.set_results(results);
  for (size_t i = members.size(); i-- > 0;) parent.erase(members[i]);
  return joined;
}

} // namespace firn
