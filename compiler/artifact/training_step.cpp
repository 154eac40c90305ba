// See training_step.h.
#include "compiler/artifact/training_step.h"

#include "compiler/artifact/identifiers.h"
#include "compiler/artifact/interface.h"
#include "compiler/artifact/manifest.h"
#include "compiler/support/diagnostic.h"

namespace firn::artifact {
namespace {

std::vector<TensorDescription> states_in(const ModelDescription& model, bool parameters) {
  std::vector<TensorDescription> states;
  for (const TensorDescription& state : model.states)
    if (state.is_parameter == parameters) states.push_back(state);
  return states;
}

// Joins the entries of a model in one description.
class TrainerMaker {
public:
  explicit TrainerMaker(const ModelDescription& model) : model_(model), trainer_(model) {
    trainer_.class_name = model.class_name + "::Trainer";
    trainer_.owner_class = model.class_name;
    trainer_.owner_weights = symbol_names(model).weights;
    for (auto* tensors : {&trainer_.inputs, &trainer_.outputs, &trainer_.states}) tensors->clear();
    trainer_.entries.clear();
    trainer_.dims.clear();
    trainer_.kernels.clear();
    trainer_.specializations.clear();
    trainer_.tape_bytes.reset();
    trainer_.flops = 0;
  }

  ModelDescription make() {
    for (const ModelDescription& entry : model_.entries) add(entry);
    for (TrainingFunction& function : trainer_.functions)
      trainer_.flops = std::max(trainer_.flops, function.flops);
    const bool named = static_cast<bool>(assign_identifiers(trainer_, names_of_main())) ||
                       static_cast<bool>(assign_identifiers(trainer_));
    FIRN_CHECK(named, "a class of training steps has no names for its tensors");
    return std::move(trainer_);
  }

private:
  void add(const ModelDescription& entry) {
    TrainingFunction function;
    function.name = entry.entry;
    function.run_symbol = symbol_names(entry).run;
    function.flops = entry.flops;
    for (const DimDescription& dim : entry.dims) function.dims.push_back(number_of(dim));
    for (const TensorDescription& input : entry.inputs)
      function.inputs.push_back(number_of(entry, input, trainer_.inputs));
    for (const TensorDescription& output : entry.outputs)
      function.outputs.push_back(number_of(entry, output, trainer_.outputs));
    for (const TensorDescription& state : arena_states(entry)) number_of(entry, state, trainer_.states);
    if (entry.updates_parameters && !entry.outputs.empty()) {
      const TensorDescription& first = entry.outputs[0];
      if (first.dims.empty() && (first.dtype == DType::F32 || first.dtype == DType::F64))
        function.loss = function.outputs[0];
    }
    trainer_.arena_bytes = entry.arena_bytes;
    trainer_.arena_lower_bound = entry.arena_lower_bound;
    trainer_.indices = std::max(trainer_.indices, entry.indices);
    if (entry.tape_bytes) trainer_.tape_bytes = std::max(trainer_.tape_bytes.value_or(0), *entry.tape_bytes);
    trainer_.functions.push_back(std::move(function));
  }

  size_t number_of(const DimDescription& dim) {
    size_t number = 0;
    while (number < trainer_.dims.size() && trainer_.dims[number].name != dim.name) ++number;
    if (number == trainer_.dims.size()) trainer_.dims.push_back(dim);
    return number;
  }

  // Functions have symbols of their own for dims that are multiples.
  size_t number_of(const ModelDescription& entry, TensorDescription tensor,
                   std::vector<TensorDescription>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].name == tensor.name) return i;
    for (IntExpr& extent : tensor.dims)
      extent = extent.substitute([&](const Symbol& symbol) -> std::optional<IntExpr> {
        for (const DimDescription& dim : entry.dims)
          if (dim.symbol.get() == &symbol) return IntExpr::symbol(trainer_.dims[number_of(dim)].symbol);
        return {};
      });
    tensors.push_back(std::move(tensor));
    return tensors.size() - 1;
  }

  // Inputs and dims are called what they are called in the model's own class.
  std::vector<std::pair<std::string, std::string>> names_of_main() const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const TensorDescription& input : model_.inputs)
      for (const TensorDescription& each : trainer_.inputs)
        if (each.name == input.name) names.emplace_back(input.identifier, input.name);
    for (const DimDescription& dim : model_.dims)
      for (const DimDescription& each : trainer_.dims)
        if (each.name == dim.name) names.emplace_back(dim.identifier, dim.name);
    return names;
  }

  const ModelDescription& model_;
  ModelDescription trainer_;
};

// The word of the format for a type of elements; the format sorts by their order here.
struct SavedType {
  DType dtype;
  const char* word;
};
constexpr SavedType kSavedTypes[] = {
    {DType::U64, "U64"}, {DType::I64, "I64"}, {DType::F64, "F64"},          {DType::F32, "F32"},
    {DType::U32, "U32"}, {DType::I32, "I32"}, {DType::BF16, "BF16"},        {DType::F16, "F16"},
    {DType::U16, "U16"}, {DType::I16, "I16"}, {DType::F8E4M3FN, "F8_E4M3"}, {DType::F8E5M2, "F8_E5M2"},
    {DType::I8, "I8"},   {DType::U8, "U8"},   {DType::Bool, "BOOL"},
};

size_t order_of(DType dtype) {
  size_t order = 0;
  while (order < std::size(kSavedTypes) && kSavedTypes[order].dtype != dtype) ++order;
  FIRN_CHECK(order < std::size(kSavedTypes), "a state of a type that no file of tensors has");
  return order;
}

} // namespace

std::vector<TensorDescription> arena_states(const ModelDescription& model) {
  return states_in(model, /*parameters=*/false);
}
std::vector<TensorDescription> parameter_tensors(const ModelDescription& model) {
  return states_in(model, /*parameters=*/true);
}

bool has_trainer(const ModelDescription& model) {
  return model.parameter_bytes > 0 && !model.entries.empty();
}

ModelDescription trainer_of(const ModelDescription& model) {
  return TrainerMaker(model).make();
}

int64_t moment_bytes(const ModelDescription& trainer) {
  int64_t bytes = 0;
  for (const TensorDescription& state : arena_states(trainer))
    if (is_float(state.dtype)) bytes += state.byte_size();
  return bytes;
}

SavedTensors saved_tensors(std::vector<TensorDescription> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorDescription& a, const TensorDescription& b) {
    return std::pair(order_of(a.dtype), a.name) < std::pair(order_of(b.dtype), b.name);
  });
  constexpr std::string_view kMetadata = R"({"__metadata__":{"firn":"1"})";
  int64_t header = static_cast<int64_t>(kMetadata.size()) + 1, data = 0;
  SavedTensors saved;
  for (const TensorDescription& tensor : tensors) {
    std::string shape;
    for (int64_t dim : tensor.dims_at_bound()) shape += (shape.empty() ? "" : ",") + std::to_string(dim);
    const int64_t bytes = tensor.byte_size();
    saved.rows.push_back({json_string(tensor.name) + ":{\"dtype\":\"" +
                              kSavedTypes[order_of(tensor.dtype)].word + "\",\"shape\":[" + shape +
                              "],\"data_offsets\":[" + std::to_string(data) + "," +
                              std::to_string(data + bytes) + "]}",
                          *tensor.arena_offset, bytes});
    header += 1 + static_cast<int64_t>(saved.rows.back().entry.size());
    data += bytes;
  }
  saved.bytes = 8 + (header + 7) / 8 * 8 + data;
  return saved;
}

} // namespace firn::artifact
