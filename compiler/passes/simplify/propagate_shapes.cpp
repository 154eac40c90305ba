// propagate-shapes: computes shapes and turns dynamic ops with known shapes into static ones.
//
//   %n = dim_size %x {dim = 1} : i64[]            %x is f32[2,8]             ->   constant [8]
//   %y = dynamic_reshape %x, %shape : f32[<=n]    %shape is known as [16]    ->   reshape %x : f32[16]
//
// A bounded extent that turns out to be known is replaced in the types of all that depend on it.
//
// - Requires: nothing.
// - Establishes: no dynamic_* op, dynamic_slice or dim_size with operands known at compile time; types are as
//   precise as inference can make them.
// - Breaks: nothing.
#include "compiler/graph/evaluate.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/simplify/shape_values.h"

#include <map>

namespace firn {
namespace {

constexpr int64_t kMaximumIotaElements =
    4096; // a longer range with a known start and step is computed, not stored

class Propagation {
public:
  Propagation(Module& module, const PassOptions& options) : module_(module), options_(options) {}

  bool run() {
    for (const auto& function : module_.functions()) visit(function->body());
    if (!bound_.empty())
      for (const auto& function : module_.functions()) substitute(function->body());
    for (const auto& function : module_.functions()) infer(function->body());
    return changed_;
  }

private:
  void visit(Region& region) {
    for (Instruction* instruction : region.snapshot()) {
      if (has_trait(instruction->opcode(), Captures))
        for (int r = 0; r < instruction->num_regions(); ++r) visit(instruction->region(r));
      if (instruction->num_results() != 1 || !instruction->type().is_tensor() || !instruction->has_uses())
        continue;
      Value value = make_static(*instruction);
      if (!value || value == instruction->result() || !options_.take_rewrite()) continue;
      region.replace_uses(instruction->result(), value);
      changed_ = true;
    }
  }

  Value make_static(Instruction& instruction) {
    GraphBuilder builder(*instruction.parent(), &instruction);
    switch (instruction.opcode()) {
    case Opcode::Constant:
    case Opcode::Parameter: return {};
    case Opcode::DynamicReshape: return static_reshape(instruction, builder);
    case Opcode::DynamicBroadcast: return static_broadcast(instruction, builder);
    case Opcode::DynamicPad: return static_pad(instruction, builder);
    case Opcode::DynamicIota: return static_iota(instruction, builder);
    case Opcode::DynamicSlice: return static_slice(instruction, builder);
    default: {
      // Integer arithmetic on symbolic dims that happens to be a number. Numbers alone are fold-constants'
      // business.
      if (!depends_on_dims(instruction)) return {};
      LiteralRef literal = values_.literal(instruction.result());
      return literal ? builder.constant(literal) : Value{};
    }
    }
  }

  static bool depends_on_dims(const Instruction& instruction) {
    if (instruction.is(Opcode::DimSize)) return true;
    for (Value operand : instruction.operands())
      if (!operand.def->is(Opcode::Constant)) return true;
    return false;
  }

  // Makes the extents of `type` equal to `dims`, by binding extents that only the run decides. False if one
  // is fixed to something else.
  bool bind(const Type& type, const std::vector<IntExpr>& dims, Type& result) {
    if (type.dims.size() != dims.size()) return false;
    result = type;
    std::map<const Symbol*, std::pair<SymbolRef, IntExpr>> bound;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i].lower_bound() < 0) return false;
      const IntExpr& extent = type.dims[i].extent;
      if (extent == dims[i]) continue;
      std::vector<SymbolRef> symbols = extent.symbols();
      if (symbols.size() != 1 || extent != IntExpr::symbol(symbols[0]) || !type.dims[i].counted ||
          dims[i].mentions(*symbols[0]))
        return false;
      bound.emplace(symbols[0].get(), std::pair(symbols[0], dims[i]));
      result.dims[i] = Dim(dims[i]);
    }
    bound_.insert(bound.begin(), bound.end());
    return true;
  }

  Value static_reshape(Instruction& instruction, GraphBuilder& builder) {
    auto dims = values_.of(instruction.operand(1));
    Type type;
    if (!dims || !bind(instruction.type(), *dims, type)) return {};
    return builder.reshape(instruction.operand(0), type.dims);
  }

  Value static_broadcast(Instruction& instruction, GraphBuilder& builder) {
    auto wanted = values_.of(instruction.operand(1));
    if (!wanted) return {};
    std::vector<Dim> target(wanted->begin(), wanted->end());
    auto dims = broadcast_dims(instruction.operand(0).type().dims, target);
    if (!dims) return {};
    std::vector<IntExpr> extents;
    for (const Dim& dim : *dims) extents.push_back(dim.extent);
    Type type;
    if (!bind(instruction.type(), extents, type)) return {};
    return builder.broadcast_to(instruction.operand(0), type.dims);
  }

  std::optional<std::vector<int64_t>> numbers(Value value) {
    LiteralRef literal = values_.literal(value);
    return literal ? std::optional(literal->to_ints()) : std::nullopt;
  }

  // Infers the type of a static op and binds the dynamic one's extents to it, before the op is made.
  bool bind_inferred(const Instruction& instruction, Opcode opcode, const std::vector<Value>& operands,
                     const Attributes& attributes) {
    auto types = infer_types(opcode, operands, attributes);
    if (!types) return false;
    std::vector<IntExpr> extents;
    for (const Dim& dim : (*types)[0].dims) extents.push_back(dim.extent);
    Type type;
    return bind(instruction.type(), extents, type);
  }

  Value static_pad(Instruction& instruction, GraphBuilder& builder) {
    if (instruction.num_operands() != 4) return {};
    auto low = numbers(instruction.operand(2)), high = numbers(instruction.operand(3));
    if (!low || !high) return {};
    Attributes attributes{{"low", *low}, {"high", *high}, {"interior", std::vector<int64_t>(low->size(), 0)}};
    std::vector<Value> operands{instruction.operand(0), instruction.operand(1)};
    if (!bind_inferred(instruction, Opcode::Pad, operands, attributes)) return {};
    return builder.op(Opcode::Pad, operands, attributes);
  }

  // start + delta * iota; where the operands are unknown, the type says how many elements there are.
  Value static_iota(Instruction& instruction, GraphBuilder& builder) {
    std::vector<LiteralRef> operands;
    for (Value operand : instruction.operands())
      if (LiteralRef literal = values_.literal(operand)) operands.push_back(literal);
    Type type = instruction.type();
    if (operands.size() == 3) {
      auto results = evaluate_instruction(instruction, operands);
      if (!results || !bind(instruction.type(), {IntExpr((*results)[0]->num_elements())}, type)) return {};
      if (type.dims[0].value() <= kMaximumIotaElements) return builder.constant((*results)[0]);
    }
    if (!type.is_static()) return {};
    Value index = builder.make_typed(Opcode::Iota, {}, {type}, {{"dim", int64_t{0}}})->result();
    Value scaled = builder.binary(Opcode::Multiply, index, instruction.operand(2));
    return builder.binary(Opcode::Add, scaled, instruction.operand(0));
  }

  Value static_slice(Instruction& instruction, GraphBuilder& builder) {
    const Type& type = instruction.operand(0).type();
    if (!type.is_static()) return {};
    std::vector<int64_t> starts, limits;
    const std::vector<int64_t>& sizes = instruction.attributes().ints("sizes");
    for (size_t d = 0; d < sizes.size(); ++d) {
      auto start = numbers(instruction.operand(static_cast<int>(d) + 1));
      if (!start) return {};
      int64_t last = type.dims[d].value() - sizes[d];
      starts.push_back(std::max<int64_t>(0, std::min((*start)[0], last)));
      limits.push_back(starts.back() + sizes[d]);
    }
    return builder.slice(instruction.operand(0), starts, limits, std::vector<int64_t>(sizes.size(), 1));
  }

  // Replaces bound extents in all types beneath a region.
  void substitute(Region& region) {
    for (auto& instruction : region.instructions()) {
      for (int i = 0; i < instruction->num_results(); ++i) {
        Type type = instruction->type(i);
        if (!type.is_tensor()) continue;
        bool different = false;
        for (Dim& dim : type.dims) {
          IntExpr extent = resolve(dim.extent);
          if (extent == dim.extent) continue;
          dim.extent = extent;
          dim.counted = dim.counted && !extent.is_constant();
          different = true;
        }
        if (different) instruction->set_type(type, i);
      }
      substitute_ranges(*instruction);
      for (int r = 0; r < instruction->num_regions(); ++r) substitute(instruction->region(r));
    }
  }

  void substitute_ranges(Instruction& slice) {
    if (!slice.is(Opcode::SymbolicSlice)) return;
    for (const char* name : {"sizes", "starts"}) {
      Type range = slice.attributes().type(name);
      for (Dim& dim : range.dims) dim.extent = resolve(dim.extent);
      slice.attributes().set(name, range);
    }
  }

  IntExpr resolve(IntExpr extent) const {
    // A binding may mention symbols that are bound themselves; chains are short and free of cycles by
    // construction.
    for (size_t step = 0; step <= bound_.size(); ++step) {
      IntExpr next = extent.substitute([this](const Symbol& symbol) -> std::optional<IntExpr> {
        auto found = bound_.find(&symbol);
        return found == bound_.end() ? std::nullopt : std::optional(found->second.second);
      });
      if (next == extent) return extent;
      extent = next;
    }
    return extent;
  }

  static bool same_extents(const Type& a, const Type& b) {
    for (size_t i = 0; i < a.dims.size(); ++i)
      if (a.dims[i].extent != b.dims[i].extent) return false;
    return true;
  }

  // Infers types anew, in order; inference keeps what it cannot know (reshape, broadcast, regions).
  void infer(Region& region) {
    for (auto& instruction : region.instructions()) {
      for (int r = 0; r < instruction->num_regions(); ++r)
        if (has_trait(instruction->opcode(), Captures)) infer(instruction->region(r));
      if (instruction->num_regions() > 0 && !instruction->is(Opcode::Reduce) &&
          !instruction->is(Opcode::ReduceWindow))
        continue;
      auto types = infer_types(instruction->opcode(), instruction->operands(), instruction->attributes());
      if (!types || static_cast<int>(types->size()) != instruction->num_results()) continue;
      for (int i = 0; i < instruction->num_results(); ++i) {
        Type& inferred = (*types)[static_cast<size_t>(i)];
        if (!inferred.is_tensor() || same_extents(inferred, instruction->type(i))) continue;
        inferred.layout = instruction->type(i).layout;
        instruction->set_type(inferred, i);
        changed_ = true;
      }
    }
  }

  Module& module_;
  const PassOptions& options_;
  ShapeValues values_;
  std::map<const Symbol*, std::pair<SymbolRef, IntExpr>> bound_;
  bool changed_ = false;
};

} // namespace

bool propagate_shapes(Module& module, const PassOptions& options) {
  return Propagation(module, options).run();
}

} // namespace firn
