// See header_dims.h.
#include "compiler/artifact/header_dims.h"

#include "compiler/artifact/training_step.h"
#include "compiler/artifact/varying_dims.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace firn::artifact {
namespace {

using Slot = std::pair<std::string_view, std::string_view>;

constexpr Slot cpp_slots[] = {
    {"DIM_COUNT_FACT", "FIRN_HIDDEN static constexpr std::size_t dim_count = {{DIM_COUNT}};"},
    {"DIM_STRUCT", R"(// The dims that vary, {{DIM_RANGES}}; starts at the bounds.
struct Dims {
  std::ptrdiff_t {{DIM_BOUNDS}};
};)"},
    {"SET_BOUNDS", "static_cast<void>(firn_rt2_set_extents(Facts::dims, dim_count, Facts::bounds, "
                   "instance_.extents));"},
    {"DIM_TABLE", R"({{DIM_VALUES}}
FIRN_HIDDEN static constexpr firn_rt2_dim dims[] = { {{DIM_ROWS}} };
FIRN_HIDDEN static constexpr std::ptrdiff_t bounds[] = { {{DIM_UPPER}} };
{{EXTENT_FUNCTIONS}})"},
    {"DIM_COUNT_ARGUMENT", ", dim_count"},
    {"DIM_FACTS", ", dims, dim_count"},
};

constexpr std::string_view cpp_functions =
    R"(// Sets the dims of the runs that follow. Where one is not allowed nothing changes, and the status says so. Inputs
// have to be written anew: tensors are compact at their actual extents. States and what is bound stay.
FIRN_HIDDEN firn::Status set_dims(const Dims& dims) noexcept {
  const std::ptrdiff_t values[] = { {{DIM_MEMBERS}} };
  return instance_.set_dims(Facts::dims, values);
}
{{DIM_SETTERS}}
// Why set_dims() refuses these: writes "batch is 65, wants 1 to 64" for the first that is refused, no more than `size`
// bytes with the zero at the end. Returns the length of the text; 0: they are taken.
FIRN_HIDDEN static std::size_t refusal(const Dims& dims, char* text, std::size_t size) noexcept {
  const std::ptrdiff_t values[] = { {{DIM_MEMBERS}} };
  return firn_rt2_refusal(Facts::dims, dim_count, values, text, size);
}
// The one that is info().dims[index].
FIRN_HIDDEN firn::Status set_dim(std::size_t index, std::ptrdiff_t value) noexcept {
  return instance_.set_dim(Facts::dims, index, value);
}
// The dims of the runs that follow.
FIRN_HIDDEN Dims dims() const noexcept {
  Dims dims;
{{DIM_READS}}
  return dims;
}
// The extents of tensors, by position; 0 beyond the last axis.
FIRN_HIDDEN std::size_t input_extent(std::size_t index, std::size_t axis) const noexcept {
{{INPUT_EXTENTS}}
}
FIRN_HIDDEN std::size_t output_extent(std::size_t index, std::size_t axis) const noexcept {
{{OUTPUT_EXTENTS}}
})";

constexpr std::string_view cpp_setter =
    R"(FIRN_HIDDEN firn::Status set_{{DIM}}(std::ptrdiff_t value) noexcept { return set_dim({{INDEX}}, value); }
)";

constexpr Slot c_slots[] = {
    {"DIM_STRUCT", R"(// The dims that vary: {{DIM_RANGES}}.
typedef struct {{PREFIX}}_dims {
  ptrdiff_t {{DIM_NAMES}};
} {{PREFIX}}_dims;
)"},
    {"DIM_MEMBER", "size_t extents[{{DIM_COUNT}}];"},
    {"SET_BOUNDS", "{{DIM_ASSIGNMENTS}}"},
    {"EXTENTS", "model->extents"},
    {"DIM_FUNCTIONS", R"(
// The values that each dim may be set to.
static inline const firn_rt2_dim* {{PREFIX}}_dim_table(void) {
  {{DIM_VALUES}}
  static const firn_rt2_dim table[] = { {{DIM_ROWS}} };
  return table;
}
// Sets the dims of the runs that follow, which start at the bounds. Where one is not allowed nothing changes, and the
// status says so. Inputs have to be written anew: tensors are compact at their actual extents. States and what is bound
// stay.
static inline firn_status {{PREFIX}}_set_dims({{PREFIX}}* model, const {{PREFIX}}_dims* dims) {
  ptrdiff_t values[{{DIM_COUNT}}];
{{DIM_MEMBERS}}
  if (model->status != FIRN_STATUS_OK) return model->status;
  if (!model->arena) return FIRN_STATUS_NOT_INITIALISED;
  return firn_rt2_set_extents({{PREFIX}}_dim_table(), {{DIM_COUNT}}, values, model->extents);
}
// Why they are refused: writes "batch is 65, wants 1 to 64" for the first that is, no more than `size` bytes with the
// zero at the end. Returns the length of the text; 0: they are taken.
static inline size_t {{PREFIX}}_refusal(const {{PREFIX}}_dims* dims, char* text, size_t size) {
  ptrdiff_t values[{{DIM_COUNT}}];
{{DIM_MEMBERS}}
  return firn_rt2_refusal({{PREFIX}}_dim_table(), {{DIM_COUNT}}, values, text, size);
}
// The dims of the runs that follow.
static inline {{PREFIX}}_dims {{PREFIX}}_get_dims(const {{PREFIX}}* model) {
  {{PREFIX}}_dims dims;
{{DIM_READS}}
  return dims;
}
{{DIM_SETTERS}})"},
};

constexpr std::string_view c_setter =
    R"(static inline firn_status {{PREFIX}}_set_{{DIM}}({{PREFIX}}* model, ptrdiff_t value) {
  {{PREFIX}}_dims changed = {{PREFIX}}_get_dims(model);
  changed.{{DIM}} = value;
  return {{PREFIX}}_set_dims(model, &changed);
}
)";

// One text per dim, joined.
template <class Text>
std::string each_dim(const ModelDescription& model, const char* separator, const Text& text) {
  std::string result;
  for (size_t i = 0; i < model.dims.size(); ++i)
    result += (i > 0 ? separator : "") + text(model.dims[i], std::to_string(i));
  return result;
}

// Lines without the newline of the last.
std::string trimmed(std::string lines) {
  while (lines.ends_with('\n')) lines.pop_back();
  return lines;
}

// Every expression of an extent that varies, once.
std::vector<IntExpr> extents_of(const ModelDescription& model) {
  std::vector<IntExpr> extents;
  const std::vector<TensorDescription> states = arena_states(model);
  for (const auto* tensors : {&model.inputs, &model.outputs, &states})
    for (const TensorDescription& tensor : *tensors)
      for (const IntExpr& dim : tensor.dims)
        if (!dim.is_constant() && std::find(extents.begin(), extents.end(), dim) == extents.end())
          extents.push_back(dim);
  return extents;
}

std::string extent_functions(const ModelDescription& model) {
  const std::vector<IntExpr> extents = extents_of(model);
  std::string text;
  for (size_t i = 0; i < extents.size(); ++i)
    text += "FIRN_HIDDEN static std::size_t extent_" + std::to_string(i) +
            "(const std::size_t* extents) noexcept { // " + extents[i].to_string() +
            "\n  return static_cast<std::size_t>(" + extent_code(extents[i], model, "extents") + ");\n}\n";
  return trimmed(std::move(text));
}

// Statements that return the extent of tensor `index` along `axis`.
std::string extent_choices(const ModelDescription& model, const std::vector<TensorDescription>& tensors,
                           const std::string& role) {
  if (tensors.empty()) return "  return static_cast<void>(index), static_cast<void>(axis), std::size_t{0};";
  std::string text =
      "  if (index >= " + role + "_count || axis >= Facts::" + role + "s[index].rank) return 0;\n";
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t axis = 0; axis < tensors[i].dims.size(); ++axis)
      if (tensors[i].varies(axis))
        text += "  if (index == " + std::to_string(i) + " && axis == " + std::to_string(axis) + ") return " +
                (tensors[i].is_counted(axis) ? tensors[i].identifier + "().extent(axis)"
                                             : extent_text(model, tensors[i].dims[axis])) +
                ";\n";
  return text + "  return Facts::" + role + "s[index].dims[axis];";
}

// The values of dims that may have some alone, one table each.
std::string value_tables(const ModelDescription& model, const std::string& declaration) {
  return trimmed(each_dim(model, "", [&](const DimDescription& dim, const std::string& i) {
    std::string values;
    for (int64_t value : dim.allowed) values += (values.empty() ? "" : ", ") + std::to_string(value);
    return values.empty() ? "" : declaration + " dim_values_" + i + "[] = {" + values + "};\n";
  }));
}

std::string rows(const ModelDescription& model, const std::string& null) {
  return each_dim(model, ", ", [&](const DimDescription& dim, const std::string& i) {
    return "{\"" + dim.identifier + "\", " + c_string(dim.name) + ", " + std::to_string(dim.symbol->lower) +
           ", " + std::to_string(dim.symbol->upper) + ", " + std::to_string(dim.multiple) + ", " +
           (dim.allowed.empty() ? null : "dim_values_" + i) + ", " + std::to_string(dim.allowed.size()) + "}";
  });
}

// Statements that fill `dims` from what runs are given.
std::string reads(const ModelDescription& model, const std::string& cast, const std::string& extents) {
  return each_dim(model, "\n", [&](const DimDescription& dim, const std::string& i) {
    const std::string multiple = dim.multiple == 1 ? "" : std::to_string(dim.multiple) + " * ";
    return "  dims." + dim.identifier + " = " + multiple + cast + extents + "[" + i + "]" +
           (cast.ends_with('(') ? ");" : ";");
  });
}

std::string setters(const ModelDescription& model, Slots slots, std::string_view text) {
  return trimmed(each_dim(model, "", [&](const DimDescription& dim, const std::string& i) {
    slots["DIM"] = dim.identifier;
    slots["INDEX"] = i;
    return expand_template(text, slots);
  }));
}

// Expands slots that use those before them; empties them where no dim varies.
void add(Slots& slots, const ModelDescription& model, std::span<const Slot> texts) {
  for (const auto& [name, text] : texts) slots[name] = model.dims.empty() ? "" : expand_template(text, slots);
}

void add_names(Slots& slots, const ModelDescription& model) {
  slots["DIM_COUNT"] = std::to_string(model.dims.size());
  slots["DIM_RANGES"] = dims_text(model);
}

} // namespace

std::string extent_text(const ModelDescription& model, const IntExpr& extent) {
  const std::vector<IntExpr> extents = extents_of(model);
  const auto found = std::find(extents.begin(), extents.end(), extent);
  return "Facts::extent_" + std::to_string(std::distance(extents.begin(), found)) + "(instance_.extents)";
}

std::string dim_functions(const ModelDescription& model) {
  if (model.dims.empty()) return "";
  Slots slots;
  slots["DIM_MEMBERS"] = each_dim(
      model, ", ", [](const DimDescription& dim, const std::string&) { return "dims." + dim.identifier; });
  slots["DIM_SETTERS"] = setters(model, {}, cpp_setter);
  slots["DIM_READS"] = reads(model, "static_cast<std::ptrdiff_t>(", "instance_.extents");
  slots["INPUT_EXTENTS"] = extent_choices(model, model.inputs, "input");
  slots["OUTPUT_EXTENTS"] = extent_choices(model, model.outputs, "output");
  return expand_template(cpp_functions, slots);
}

void add_dim_slots(Slots& slots, const ModelDescription& model) {
  add_names(slots, model);
  slots["DIM_BOUNDS"] = each_dim(model, ", ", [](const DimDescription& dim, const std::string&) {
    return dim.identifier + " = " + std::to_string(dim.symbol->upper);
  });
  slots["DIM_UPPER"] = each_dim(model, ", ", [](const DimDescription& dim, const std::string&) {
    return std::to_string(dim.symbol->upper);
  });
  slots["DIM_VALUES"] = value_tables(model, "FIRN_HIDDEN static constexpr std::ptrdiff_t");
  slots["DIM_ROWS"] = rows(model, "nullptr");
  slots["EXTENT_FUNCTIONS"] = extent_functions(model);
  add(slots, model, cpp_slots);
}

void add_c_dim_slots(Slots& slots, const ModelDescription& model) {
  add_names(slots, model);
  slots["DIM_NAMES"] =
      each_dim(model, ", ", [](const DimDescription& dim, const std::string&) { return dim.identifier; });
  slots["DIM_ASSIGNMENTS"] = each_dim(model, "\n", [](const DimDescription& dim, const std::string& i) {
    return "model->extents[" + i + "] = " + std::to_string(dim.symbol->upper / dim.multiple) + ";";
  });
  slots["DIM_VALUES"] = value_tables(model, "static const ptrdiff_t");
  slots["DIM_ROWS"] = rows(model, "NULL");
  slots["DIM_MEMBERS"] = each_dim(model, "\n", [](const DimDescription& dim, const std::string& i) {
    return "  values[" + i + "] = dims->" + dim.identifier + ";";
  });
  slots["DIM_READS"] = reads(model, "(ptrdiff_t)", "model->extents");
  slots["DIM_SETTERS"] = setters(model, slots, c_setter);
  add(slots, model, c_slots);
  if (model.dims.empty()) slots["EXTENTS"] = "NULL";
}

} // namespace firn::artifact
