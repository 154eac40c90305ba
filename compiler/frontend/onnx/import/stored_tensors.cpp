// Files of a data set, their order, and values that hold several tensors.
#include "compiler/frontend/onnx/import/stored_tensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace firn::onnx {

namespace {

std::string file_path(const std::string& folder, const char* kind, size_t number) {
  return folder + "/" + kind + "_" + std::to_string(number) + ".pb";
}

// The contents of a value's file. Without `tensors` it is an empty optional.
struct Stored {
  bool is_sequence = false;
  std::optional<std::vector<LiteralRef>> tensors;
  LiteralRef keys; // keys of a map
};

// Tensors of one type as the rows of one tensor; null if their types differ.
LiteralRef stacked(const std::vector<LiteralRef>& tensors) {
  if (tensors.empty() || tensors[0]->dtype() == DType::String) return nullptr;
  std::vector<int64_t> dims = tensors[0]->dims();
  dims.insert(dims.begin(), static_cast<int64_t>(tensors.size()));
  auto rows = std::make_shared<Literal>(tensors[0]->dtype(), dims);
  size_t at = 0;
  for (const LiteralRef& each : tensors) {
    if (!(each->type() == tensors[0]->type()) || bit_width(each->dtype()) % 8) return nullptr;
    std::copy(each->bytes().begin(), each->bytes().end(),
              rows->mutable_bytes().begin() + static_cast<std::ptrdiff_t>(at));
    at += each->bytes().size();
  }
  return rows;
}

// The positions of `keys` among `known`; nothing if the two hold different keys.
std::optional<std::vector<int64_t>> positions_of(const Literal& keys, const Literal& known) {
  if (!(keys.type() == known.type())) return std::nullopt;
  bool texts = keys.dtype() == DType::String;
  std::map<std::string, int64_t> places;
  auto name = [&](const Literal& list, int64_t i) {
    return texts ? list.string_values()[static_cast<size_t>(i)] : std::to_string(list.get_int(i));
  };
  for (int64_t i = 0; i < known.num_elements(); ++i) places[name(known, i)] = i;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    auto found = places.find(name(keys, i));
    if (found == places.end()) return std::nullopt;
    positions.push_back(found->second);
    places.erase(found);
  }
  return positions;
}

// The rows with element i of each moved to positions[i].
LiteralRef reordered(const Literal& rows, const std::vector<int64_t>& positions) {
  auto count = static_cast<int64_t>(positions.size());
  auto source_of = [&](int64_t i) { return i / count * count + positions[static_cast<size_t>(i % count)]; };
  if (rows.dtype() == DType::String) {
    std::vector<std::string> texts(static_cast<size_t>(rows.num_elements()));
    for (int64_t i = 0; i < rows.num_elements(); ++i)
      texts[static_cast<size_t>(source_of(i))] = rows.string_values()[static_cast<size_t>(i)];
    return Literal::strings(rows.dims(), std::move(texts));
  }
  auto made = std::make_shared<Literal>(rows.dtype(), rows.dims());
  size_t width = static_cast<size_t>(bit_width(rows.dtype())) / 8;
  for (int64_t i = 0; i < rows.num_elements(); ++i)
    std::memcpy(made->mutable_bytes().data() + static_cast<size_t>(source_of(i)) * width,
                rows.bytes().data() + static_cast<size_t>(i) * width, width);
  return made;
}

// A sequence of maps with the same keys: the keys, and one row of values for each map.
Expected<Stored> read_maps(const std::string& path) {
  auto maps = read_map_sequence_file(path);
  if (!maps) return maps.error();
  Stored stored;
  stored.keys = maps->empty() ? Literal::of_i64({}) : (*maps)[0].keys;
  stored.tensors.emplace();
  if (maps->empty()) return stored;
  std::vector<LiteralRef> rows;
  for (const StoredMap& map : *maps) {
    auto positions = positions_of(*map.keys, *stored.keys);
    if (!positions) return model_error(path + ": its maps differ in their keys");
    rows.push_back(reordered(*map.values, *positions));
  }
  LiteralRef joined = stacked(rows);
  if (!joined) return model_error(path + ": values of its maps are of several types, or strings");
  stored.tensors->push_back(joined);
  return stored;
}

Expected<Stored> read_stored(const std::string& path, const ValueFacts& value) {
  Stored stored;
  const std::string& type = value.type;
  if (type.starts_with("sequence<map<")) return read_maps(path);
  if (type.starts_with("map<")) {
    auto map = read_map_file(path);
    if (!map) return map.error();
    stored.tensors = {map->values};
    stored.keys = map->keys;
    return stored;
  }
  stored.is_sequence = type.starts_with("sequence<") || type.starts_with("optional<sequence<");
  if (is_tensor(value)) {
    auto tensor = read_tensor_file(path);
    if (!tensor) return tensor.error();
    stored.tensors = {tensor->literal};
  } else if (type.starts_with("sequence<")) {
    auto elements = read_sequence_file(path);
    if (!elements) return elements.error();
    stored.tensors = std::move(*elements);
  } else {
    auto held = read_optional_file(path);
    if (!held) return held.error();
    stored.tensors = std::move(*held);
    if (stored.tensors && !stored.is_sequence && stored.tensors->size() != 1)
      return model_error(path + ": holds a sequence, the value is " + type);
  }
  return stored;
}

// The keys that the module gave for a map; null if it gave none.
LiteralRef known_keys(const StoredOutput& map, const std::vector<std::string>& result_names,
                      const std::vector<LiteralRef>& got) {
  for (size_t i = 0; i < result_names.size() && i < got.size(); ++i)
    if (result_names[i] == keys_name(map.name)) return got[i];
  return nullptr;
}

// Adds values and keys of a map, in the order of the known keys if these are the same.
void add_map(const StoredOutput& map, const LiteralRef& known, std::vector<LiteralRef>& results) {
  if (map.tensors.empty()) { // an empty sequence of maps fits any keys
    LiteralRef keys = known ? known : map.keys;
    results.push_back(std::make_shared<Literal>(DType::F32, std::vector<int64_t>{0, keys->num_elements()}));
    return results.push_back(keys);
  }
  auto positions = known ? positions_of(*map.keys, *known) : std::nullopt;
  results.push_back(positions ? reordered(*map.tensors[0], *positions) : map.tensors[0]);
  results.push_back(positions ? known : map.keys);
}

} // namespace

bool is_tensor(const ValueFacts& value) {
  return !value.type.starts_with("sequence<") && !value.type.starts_with("optional<") &&
         !value.type.starts_with("map<");
}

bool is_map(const ValueFacts& value) {
  return value.type.starts_with("map<");
}

Expected<std::vector<NamedTensor>> read_stored_tensors(const std::string& folder, const std::string& kind) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0;; ++i) {
    std::string path = file_path(folder, kind.c_str(), i);
    if (!std::filesystem::exists(path)) return tensors;
    auto tensor = read_tensor_file(path);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
}

Expected<std::vector<size_t>> match_stored_inputs(const ModelFacts& facts,
                                                  const std::vector<NamedTensor>& tensors) {
  std::vector<size_t> all, required, named;
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < facts.inputs.size(); ++i) {
    all.push_back(i);
    if (!facts.inputs[i].has_initializer) required.push_back(i);
    numbers[facts.inputs[i].name] = i;
  }
  std::set<size_t> distinct;
  for (const NamedTensor& tensor : tensors) {
    auto found = numbers.find(tensor.name);
    if (found != numbers.end() && distinct.insert(found->second).second) named.push_back(found->second);
  }
  if (named.size() == tensors.size()) return named;
  std::vector<size_t>& counted = tensors.size() <= required.size() ? required : all;
  if (tensors.size() > counted.size())
    return model_error("got " + std::to_string(tensors.size()) + " stored inputs, the model has " +
                       std::to_string(all.size()));
  counted.resize(tensors.size());
  return counted;
}

Result add_stored_input(const std::string& path, const ValueFacts& input, StoredInputs& inputs) {
  auto stored = read_stored(path, input);
  if (!stored) return stored.error();
  if (!stored->tensors) {
    inputs.lengths[input.name] = kAbsent;
  } else if (stored->keys && stored->tensors->size() == 1) {
    inputs.tensors[input.name] = (*stored->tensors)[0];
    inputs.tensors[keys_name(input.name)] = stored->keys;
  } else if (!stored->is_sequence) {
    inputs.tensors[input.name] = (*stored->tensors)[0];
  } else {
    inputs.lengths[input.name] = static_cast<int64_t>(stored->tensors->size());
    for (size_t i = 0; i < stored->tensors->size(); ++i)
      inputs.tensors[element_name(input.name, i)] = (*stored->tensors)[i];
  }
  return {};
}

Expected<StoredInputs> read_stored_inputs(const std::string& folder, const ModelFacts& facts) {
  StoredInputs inputs;
  bool tensors_only = std::all_of(facts.inputs.begin(), facts.inputs.end(), is_tensor);
  if (tensors_only) {
    auto tensors = read_stored_tensors(folder, "input");
    if (!tensors) return tensors.error();
    auto numbers = match_stored_inputs(facts, *tensors);
    if (!numbers) return numbers.error();
    for (size_t i = 0; i < tensors->size(); ++i)
      inputs.tensors[facts.inputs[(*numbers)[i]].name] = (*tensors)[i].literal;
    return inputs;
  }
  size_t number = 0;
  for (const ValueFacts& input : facts.inputs) {
    std::string path = file_path(folder, "input", number);
    if (input.has_initializer || !std::filesystem::exists(path)) continue;
    if (Result added = add_stored_input(path, input, inputs); !added) return added.error();
    ++number;
  }
  return inputs;
}

Expected<std::vector<StoredOutput>> read_stored_outputs(const std::string& folder, const ModelFacts& facts) {
  std::vector<StoredOutput> outputs;
  for (size_t i = 0;; ++i) {
    std::string path = file_path(folder, "output", i);
    if (!std::filesystem::exists(path)) return outputs;
    ValueFacts output = i < facts.outputs.size() ? facts.outputs[i] : ValueFacts();
    auto stored = read_stored(path, output);
    if (!stored) return stored.error();
    outputs.push_back({output.name, stored->is_sequence, stored->tensors.value_or(std::vector<LiteralRef>()),
                       stored->keys});
  }
}

std::vector<LiteralRef> as_results(const std::vector<StoredOutput>& outputs,
                                   const std::vector<std::string>& result_names,
                                   const std::vector<LiteralRef>& got) {
  std::vector<LiteralRef> results;
  for (const StoredOutput& output : outputs) {
    if (output.keys) {
      add_map(output, known_keys(output, result_names, got), results);
      continue;
    }
    bool has_name = std::find(result_names.begin(), result_names.end(), output.name) != result_names.end();
    LiteralRef rows = output.is_sequence && has_name ? stacked(output.tensors) : nullptr;
    if (rows)
      results.push_back(rows);
    else
      results.insert(results.end(), output.tensors.begin(), output.tensors.end());
  }
  return results;
}

} // namespace firn::onnx
