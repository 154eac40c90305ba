// differentiate: writes the bodies of functions that are declared to be gradients.
//
//   func @f(%x: f32[4]) -> (f32[4]) { %y = tanh %x ... }
//   func @g = gradient @f wrt x seedable
// becomes
//   func @g(%x: f32[4], %seed: f32[4]) -> (f32[4]) {
//     %y = tanh %x     %d = multiply %seed, (1 - %y * %y)     return %d
//   }
//
// The body of the callee stands in front; a reverse sweep over it (reverse_sweep.h) writes the cotangents by
// the rules of adjoints.def. The results of the forward part that rules name are the tape: they live as long
// as they are read. A gradient of a gradient is the same sweep over what the first one has written.
//
// - Requires: nothing. Refuses the module if what has no derivative lies between a parameter and the result.
// - Establishes: no function is declared to be a gradient; derived functions, and functions that call
//   gradients, have no calls. Functions that were there to be called and are not any more are gone.
// - Breaks: nothing.
#include "compiler/graph/function_type.h"
#include "compiler/passes/gradient/reverse_sweep.h"
#include "compiler/passes/gradient/straight_through.h"
#include "compiler/passes/passes.h"

#include <algorithm>

namespace firn {
namespace {

using gradient::ReverseSweep;

// Bytes of a value at the bounds of its dims; nothing: a dim has no bound.
std::optional<int64_t> bytes_at_bound(const Type& type) {
  if (!type.is_tensor()) return std::nullopt;
  Type bound = type.at_bound();
  if (!checked_num_elements(bound.static_dims())) return std::nullopt;
  return static_cast<int64_t>(bound.byte_size());
}

// Bytes of what instructions up to `last` compute and those behind it read.
std::optional<int64_t> tape_bytes(const Region& body, const Instruction* last) {
  std::set<gradient::ValueKey> kept;
  std::optional<int64_t> sum = 0;
  std::set<const Instruction*> forward;
  bool is_behind = false;
  auto keep = [&](Value value) {
    const bool is_tape = forward.count(value.def) != 0 && !value.def->is(Opcode::Parameter) &&
                         !value.def->is(Opcode::Constant);
    if (!is_tape || !kept.insert(gradient::key_of(value)).second) return;
    auto bytes = bytes_at_bound(value.type());
    sum = sum && bytes ? std::optional(*sum + *bytes) : std::nullopt;
  };
  for (const auto& instruction : body.instructions()) {
    if (is_behind)
      gradient::visit_reads(*instruction, keep);
    else
      forward.insert(instruction.get());
    is_behind = is_behind || instruction.get() == last;
  }
  return sum;
}

class Differentiation {
public:
  explicit Differentiation(Module& module) : module_(module) {}

  // Writes the function's body, and first those of the gradients that it needs.
  std::optional<Diagnostic> derive(Function& function) {
    if (!function.gradient) return derive_callees(function.body());
    if (!open_.insert(&function).second)
      return unsupported_error("@" + function.name() + ": no gradient: it is computed by its own gradient");
    GradientOf declared = *function.gradient;
    Function& callee = *module_.find(declared.callee);
    if (auto refused = derive(callee)) return refused;
    std::vector<Value> results = write_forward(function, callee, declared);
    if (auto refused = write_backward(function, declared, results)) {
      refused->message = "@" + function.name() + ": " + refused->message;
      return refused;
    }
    name_values(function, callee, declared);
    function.gradient.reset();
    return std::nullopt;
  }

private:
  std::optional<Diagnostic> derive_callees(const Region& region) {
    if (!visited_.insert(&region).second) return std::nullopt;
    for (const auto& instruction : region.instructions()) {
      if (instruction->is(Opcode::Call))
        if (auto refused = derive(*module_.find(instruction->attributes().text("callee")))) return refused;
      for (int i = 0; i < instruction->num_regions(); ++i)
        if (auto refused = derive_callees(instruction->region(i))) return refused;
    }
    return std::nullopt;
  }

  // The callee's body, or a call of what has an adjoint rule. Returns the callee's results.
  static std::vector<Value> write_forward(Function& function, const Function& callee,
                                          const GradientOf& declared) {
    Region& body = function.body();
    std::vector<Value> arguments;
    for (const Instruction* parameter : callee.body().parameters())
      arguments.push_back(body.add_parameter(parameter->type(), parameter->name())->result());
    if (declared.seedable) {
      Value from = callee.body().results()[static_cast<size_t>(declared.from)];
      std::vector<std::string> names;
      for (const Instruction* parameter : body.parameters()) names.push_back(parameter->name());
      body.add_parameter(from.type(), seed_name(names));
    }
    if (callee.adjoint_rule.empty()) return body.inline_region(callee.body(), arguments);
    std::vector<Type> types;
    for (Value result : callee.body().results()) types.push_back(result.type());
    Instruction* call = body.append(Opcode::Call, arguments, types, {{"callee", callee.name()}});
    std::vector<Value> results;
    for (int i = 0; i < call->num_results(); ++i) results.push_back(call->result(i));
    return results;
  }

  static std::optional<Diagnostic> write_backward(Function& function, const GradientOf& declared,
                                                  const std::vector<Value>& forward) {
    Region& body = function.body();
    body.set_results(forward); // inlining replaces them
    std::vector<Value> wrt, results;
    for (int number : declared.wrt) wrt.push_back(body.parameter(number));
    if (auto refused = gradient::inline_active(body, wrt)) return refused;
    if (declared.straight_through) gradient::pass_straight_through(body, wrt);
    std::vector<Value> primals = body.results();
    ReverseSweep sweep(body, wrt);
    const Instruction* last = body.snapshot().back(); // ends the forward computation
    GraphBuilder builder(body);
    Value from = primals[static_cast<size_t>(declared.from)];
    Value seed = declared.seedable ? body.parameter(static_cast<int>(body.parameters().size()) - 1)
                                   : builder.splat_like(from, 1);
    if (sweep.is_active(from)) sweep.seed(from, seed);
    if (auto refused = sweep.run()) return refused;
    for (Value parameter : wrt) {
      Value cotangent = sweep.cotangent(parameter);
      results.push_back(cotangent ? cotangent : gradient::zeros_like(builder, parameter));
    }
    // The sweep may have put other instructions in the place of loops.
    for (int number : declared.keeping) results.push_back(body.results()[static_cast<size_t>(number)]);
    body.set_results(std::move(results));
    function.tape_bytes = tape_bytes(body, last);
    return gradient::inline_calls(body);
  }

  // Gradients are called after their parameters, kept results what the callee calls them.
  static void name_values(Function& function, const Function& callee, const GradientOf& declared) {
    function.parameter_names = callee.parameter_names;
    for (size_t i = function.parameter_names.size(); i < function.body().parameters().size(); ++i) {
      bool is_seed = declared.seedable && i + 1 == function.body().parameters().size();
      function.parameter_names.push_back(is_seed ? seed_name(function.parameter_names)
                                                 : function.body().parameters()[i]->name());
    }
    for (int number : declared.wrt)
      function.result_names.push_back("d_" + function.parameter_names[static_cast<size_t>(number)]);
    for (int number : declared.keeping) {
      auto index = static_cast<size_t>(number);
      bool is_named = index < callee.result_names.size();
      function.result_names.push_back(is_named ? callee.result_names[index]
                                               : "result" + std::to_string(number));
    }
  }

  Module& module_;
  std::set<const Region*> visited_; // functions with a body
  std::set<const Function*> open_;  // gradients that have been begun
};

using Names = std::set<std::string>;

// Adds the functions that calls in the region name.
void add_callees(const Region& region, Names& names) {
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Call)) names.insert(instruction->attributes().text("callee"));
    for (int i = 0; i < instruction->num_regions(); ++i) add_callees(instruction->region(i), names);
  }
}

bool calls_one_of(const Region& region, const Names& names) {
  Names callees;
  add_callees(region, callees);
  return std::any_of(callees.begin(), callees.end(), [&](const auto& callee) { return names.count(callee); });
}

// The functions that are there for others: private ones, those that calls name and, if one function alone is
// compiled, those that gradients among these are of.
Names subordinate_functions(const Module& module) {
  Names names;
  for (const auto& function : module.functions()) {
    add_callees(function->body(), names);
    if (function->is_private) names.insert(function->name());
  }
  for (size_t before = 0; !module.entry.empty() && before != names.size();) {
    before = names.size();
    for (const auto& function : module.functions())
      if (function->gradient && names.count(function->name())) names.insert(function->gradient->callee);
  }
  return names;
}

// Bytes of the tapes of the functions that calls in the region name.
std::optional<int64_t> called_tapes(const Module& module, const Region& region) {
  std::optional<int64_t> sum;
  auto add = [&](std::optional<int64_t> bytes) {
    if (bytes) sum = sum.value_or(0) + *bytes;
  };
  for (const auto& instruction : region.instructions()) {
    if (instruction->is(Opcode::Call)) add(module.find(instruction->attributes().text("callee"))->tape_bytes);
    for (int i = 0; i < instruction->num_regions(); ++i) add(called_tapes(module, instruction->region(i)));
  }
  return sum;
}

// Puts the bodies of gradients in the place of their calls, which kernels do not have. True if it was done.
std::optional<Diagnostic> inline_gradients(Module& module, const Names& gradients, bool& done) {
  for (const auto& function : module.functions()) {
    if (!calls_one_of(function->body(), gradients)) continue;
    done = true;
    if (!function->tape_bytes) function->tape_bytes = called_tapes(module, function->body());
    if (auto refused = gradient::inline_calls(function->body())) return refused;
  }
  return std::nullopt;
}

// Removes those of the functions that nothing else names any more: otherwise they would be entries.
void erase_unnamed(Module& module, const Names& subordinate) {
  const std::string entry = module.entry.empty() ? "main" : module.entry; // a graph in text form may lack it
  Names kept;
  std::vector<const Function*> open;
  for (const auto& function : module.functions())
    if (!subordinate.count(function->name()) || function->name() == entry) open.push_back(function.get());
  while (!open.empty()) {
    const Function& function = *open.back();
    open.pop_back();
    if (!kept.insert(function.name()).second) continue;
    Names names;
    add_callees(function.body(), names);
    names.insert(function.adjoint_rule);
    if (function.gradient) names.insert(function.gradient->callee);
    for (const std::string& name : names)
      if (const Function* named = module.find(name)) open.push_back(named);
  }
  module.erase_functions([&](const Function& function) { return !kept.count(function.name()); });
}

} // namespace

bool differentiate(Module& module, const PassOptions& options) {
  bool changed = false, is_inlined = false;
  const Names subordinate = subordinate_functions(module);
  Differentiation differentiation(module);
  Names gradients;
  for (const auto& function : module.functions()) {
    if (!function->gradient || !options.take_rewrite()) continue;
    changed = true;
    gradients.insert(function->name());
    if (auto refused = differentiation.derive(*function)) {
      options.refuse(*refused);
      return changed;
    }
  }
  if (auto refused = inline_gradients(module, gradients, is_inlined)) options.refuse(*refused);
  if (is_inlined) erase_unnamed(module, subordinate);
  return gradient::remove_straight_through_marks(module) || changed;
}

} // namespace firn
