// Pairs of state, checked against the signature of @main.
#include "compiler/frontend/onnx/import/graph_states.h"

#include "compiler/frontend/onnx/onnx.pb.h"

namespace firn::onnx {
namespace {

class StateDeclarations {
public:
  StateDeclarations(Function& main, DiagnosticList& diagnostics) : main_(main), diagnostics_(diagnostics) {}

  void declare(const std::string& past, const std::string& present) {
    std::string pair = "state " + past + "=" + present + ": ";
    auto input = find(main_.parameter_names, past);
    auto output = find(main_.result_names, present);
    if (!input) return fail(pair + "the model has no input '" + past + "'", "inputs", main_.parameter_names);
    if (!output)
      return fail(pair + "the model has no output '" + present + "'", "outputs", main_.result_names);
    if (main_.is_state(*input)) return fail(pair + "input '" + past + "' is in two pairs");
    if (main_.updates_state(*output)) return fail(pair + "output '" + present + "' is in two pairs");
    const Type &old_type = main_.body().parameter(static_cast<int>(*input)).type(),
               &new_type = main_.body().results()[*output].type();
    if (!(old_type == new_type))
      return fail(pair + "input '" + past + "' is " + old_type.to_string() + ", output '" + present +
                  "' is " + new_type.to_string() + ": a state keeps one type and one shape" +
                  advice(old_type, new_type));
    main_.aliases[*output] = static_cast<int>(*input);
  }

private:
  static std::optional<size_t> find(const std::vector<std::string>& names, const std::string& name) {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return i;
    return std::nullopt;
  }

  void fail(const std::string& text) { diagnostics_.add(usage_error(text)); }
  void fail(const std::string& text, const char* kind, const std::vector<std::string>& names) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "'" : ", '") + name + "'";
    fail(text + (names.empty() ? "; it has no " + std::string(kind)
                               : "; its " + std::string(kind) + " are " + known));
  }

  // A cache that grows from run to run is the usual reason.
  static std::string advice(const Type& past, const Type& present) {
    if (past.dtype != present.dtype || past.rank() != present.rank()) return "";
    return ". A cache that grows has to be exported with a fixed length: one that drops its oldest entries, "
           "or one that is written at a position";
  }

  Function& main_;
  DiagnosticList& diagnostics_;
};

} // namespace

std::map<std::string, LiteralRef> declare_states(const ImportOptions& options, LoadedModel& model,
                                                 Function& main, DiagnosticList& diagnostics) {
  StateDeclarations declarations(main, diagnostics);
  for (const auto& [past, present] : options.states) declarations.declare(past, present);
  std::map<std::string, LiteralRef> initial;
  for (const wire::TensorProto& tensor : model.proto->graph().initializer()) {
    if (!options.is_state(tensor.name())) continue;
    auto literal = read_tensor(tensor, model.source);
    if (!literal) {
      diagnostics.add(
          {literal.error().fault, "initializer '" + tensor.name() + "': " + literal.error().message});
      continue;
    }
    for (size_t i = 0; i < main.parameter_names.size(); ++i) {
      const Type& type = main.body().parameters()[i]->type();
      if (main.parameter_names[i] != tensor.name()) continue;
      if (!((*literal)->type() == type))
        diagnostics.add(model_error("input '" + tensor.name() + "' is " + type.to_string() +
                                    ", its initializer is " + (*literal)->type().to_string()));
      initial[tensor.name()] = *literal;
    }
  }
  return initial;
}

} // namespace firn::onnx
