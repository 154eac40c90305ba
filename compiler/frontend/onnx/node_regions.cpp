// NodeContext: ops with regions, and subgraphs.
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>

namespace firn::onnx {

void NodeContext::in_region(Region& region, const std::function<void()>& f) {
  Region* outer = region_;
  region_ = &region;
  f();
  region_ = outer;
}

void NodeContext::discard(Instruction* instruction) {
  state_->known.forget_all(*instruction);
  instruction->parent()->erase(instruction);
}

bool NodeContext::fill_region(Region& region, const Values& parameters, const Body& body) {
  Values results;
  in_region(region, [&] { results = body(parameters); });
  if (failed_) return false;
  for (Value result : results)
    if (!result) return false;
  region.set_results(std::move(results));
  return true;
}

namespace {

Values add_parameters(Region& region, const Values& like) {
  Values parameters;
  for (Value value : like) parameters.push_back(region.add_parameter(value.type())->result());
  return parameters;
}

std::vector<Type> types_of(const Values& values) {
  std::vector<Type> types;
  for (Value value : values) types.push_back(value.type());
  return types;
}

} // namespace

Instruction* NodeContext::composite(std::string_view name, Values operands, Attributes attributes,
                                    const Body& body) {
  if (!usable(operands)) return nullptr;
  attributes.set("name", Word{std::string(name)});
  Instruction* made = make_typed(Opcode::Composite, operands, {}, std::move(attributes));
  if (!made) return nullptr;
  Region& region = made->add_region();
  if (!fill_region(region, add_parameters(region, operands), body)) {
    discard(made);
    fail("internal body of composite '" + std::string(name) + "' could not be made");
    return nullptr;
  }
  made->set_types(types_of(region.results()));
  return made;
}

// Exporters give a scalar from one branch and a vector of one element from the other. Both take the shape
// that the first has.
void NodeContext::unify_one_element(Region& first, Region& second) {
  for (size_t i = 0; i < std::min(first.results().size(), second.results().size()); ++i) {
    const Type &wanted = first.results()[i].type(), &found = second.results()[i].type();
    bool one = wanted.is_static() && found.is_static() && wanted.is_tensor() && found.is_tensor() &&
               wanted.dtype == found.dtype && wanted.num_elements() == 1 && found.num_elements() == 1;
    if (!one || wanted == found) continue;
    warn("the branches give " + wanted.to_string() + " and " + found.to_string() + " as output " +
         std::to_string(i) + "; the first is taken");
    std::vector<Dim> dims = wanted.dims;
    in_region(second, [&] { second.set_result(static_cast<int>(i), reshape(second.results()[i], dims)); });
  }
}

// Pads both regions' result `result` to the larger bounds of the extents that differ, and appends these
// extents to the regions' results. Returns the dims that differ; nothing if dtypes or ranks do.
Ints NodeContext::unify_extents(Region& first, Region& second, size_t result) {
  const Type lhs = first.results()[result].type(), rhs = second.results()[result].type();
  if (!lhs.is_tensor() || !rhs.is_tensor() || lhs.dtype != rhs.dtype || lhs.rank() != rhs.rank()) return {};
  Type type = Type::tensor(lhs.dtype, {});
  Ints differing;
  for (int d = 0; d < lhs.rank(); ++d) {
    const Dim &one = lhs.dims[static_cast<size_t>(d)], &other = rhs.dims[static_cast<size_t>(d)];
    if (one == other) {
      type.dims.push_back(one);
      continue;
    }
    differing.push_back(d);
    int64_t bound = std::max(one.extent.upper_bound(), other.extent.upper_bound());
    type.dims.push_back(Dim(std::min(bound, int64_t{1} << 40)));
  }
  if (!is_sane_type(type)) return {};
  for (Region* region : {&first, &second})
    in_region(*region, [&] {
      Values results = region->results();
      for (int64_t d : differing) results.push_back(dim_size(results[result], static_cast<int>(d)));
      results[result] = bounded(*this, results[result], type.dims);
      if (!failed_) region->set_results(std::move(results));
    });
  return differing;
}

std::optional<Values> NodeContext::finish_if(Instruction* made, Value condition) {
  Region &on_true = made->region(0), &on_false = made->region(1);
  unify_one_element(on_true, on_false);
  const std::vector<Type> types = types_of(on_true.results()), others = types_of(on_false.results());
  std::vector<Ints> counted(types.size());
  std::string differ = types.size() == others.size() ? "" : "different numbers of outputs";
  for (size_t i = 0; i < types.size() && differ.empty(); ++i) {
    if (types[i] == others[i]) continue;
    counted[i] = unify_extents(on_true, on_false, i);
    if (counted[i].empty())
      differ = types[i].to_string() + " and " + others[i].to_string() + " as output " + std::to_string(i);
  }
  if (!differ.empty() || failed_) {
    discard(made);
    fail_unknown({condition},
                 "the branches give " + differ + "; extents may differ within bounds, types may not");
    return std::nullopt;
  }
  made->set_types(types_of(on_true.results()));
  Values results;
  auto count = static_cast<int>(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    Value result = made->result(static_cast<int>(i));
    for (int64_t dim : counted[i])
      result = first_rows(*this, result, static_cast<int>(dim), made->result(count++));
    results.push_back(result);
  }
  return results;
}

Instruction* NodeContext::while_loop(Values initial, const Body& condition, const Body& body) {
  if (!usable(initial)) return nullptr;
  Instruction* made = make_typed(Opcode::While, initial, types_of(initial));
  if (!made) return nullptr;
  Region &test = made->add_region(), &step = made->add_region();
  if (!fill_region(test, add_parameters(test, initial), condition) ||
      !fill_region(step, add_parameters(step, initial), body)) {
    discard(made);
    failed_ = true;
    return nullptr;
  }
  auto before = types_of(initial), after = types_of(step.results());
  for (size_t i = 0; i < before.size(); ++i) {
    if (i < after.size() && before[i] == after[i]) continue;
    std::string text = "a loop-carried value is " + before[i].to_string() + " at first and " +
                       (i < after.size() ? after[i].to_string() : "nothing") +
                       " after a step; its type must not change";
    discard(made);
    fail_unsupported(text);
    return nullptr;
  }
  return made;
}

Instruction* NodeContext::sort(Values operands, int dim, bool descending) {
  if (!usable(operands)) return nullptr;
  Attributes attributes{{"dim", int64_t{dim}}, {"stable", true}};
  auto types = infer_types(Opcode::Sort, operands, attributes);
  if (!types) return fail(types.error().message), nullptr;
  Instruction* made = make_typed(Opcode::Sort, operands, std::move(*types), std::move(attributes));
  if (!made) return nullptr;
  Region& region = made->add_region();
  Values parameters;
  for (Value operand : operands)
    for (const char* side : {"lhs", "rhs"})
      parameters.push_back(region.add_parameter(Type::tensor(operand.dtype(), {}), side)->result());
  fill_region(region, parameters, [&](const Values& values) {
    return Values{compare(descending ? "gt" : "lt", values[0], values[1])};
  });
  return made;
}

std::optional<Values> NodeContext::import_subgraph(const wire::GraphProto& graph, const Values& arguments,
                                                   bool is_branch) {
  if (failed_) return std::nullopt;
  if (state_->depth >= kMaxDepth)
    return fail_form("functions and subgraphs are nested more than " + std::to_string(kMaxDepth) + " deep"),
           std::nullopt;
  if (static_cast<int>(arguments.size()) != graph.input_size())
    return fail_form("its subgraph has " + std::to_string(graph.input_size()) + " inputs, wants " +
                     std::to_string(arguments.size())),
           std::nullopt;
  Scope scope(scope_, scope_->frame());
  for (int i = 0; i < graph.input_size(); ++i)
    if (graph.input(i).name().empty() ||
        !scope.define(graph.input(i).name(), {arguments[static_cast<size_t>(i)], false}))
      return fail_form("its subgraph has two inputs '" + graph.input(i).name() + "'"), std::nullopt;
  GraphImporter importer(*state_, *region_);
  const size_t decided = state_->decided.size();
  ++state_->depth;
  importer.import_body(graph, scope, is_branch);
  --state_->depth;
  state_->decided.resize(decided); // choices made within the subgraph do not hold outside
  if (state_->disagreement) return failed_ = true, std::nullopt;
  auto results = importer.outputs(graph, scope, label() + ": subgraph '" + graph.name() + "': ");
  if (!results) failed_ = true;
  return results;
}

} // namespace firn::onnx
