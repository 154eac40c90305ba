// The case that the program of `firn bench --build` (worker.cpp) runs: stored tensors, the measure of error,
// the model, and data sets. `facts.h` is written beside this file for the model: symbols, required CPU
// features, arena size, the tables of inputs, outputs and states, their dims in each set, and the places
// where runs leave the dims that depend on data.
#pragma once

#include "facts.h"

#include "firn/abi.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Ends the program with the reason, in the words of its user.
[[noreturn]] void refuse(const std::string& reason);

namespace {

// ---- Stored tensors: the few fields of ONNX's TensorProto that test data use.

struct StoredTensor {
  int type = 0;
  std::vector<long long> dims;
  std::vector<unsigned char> bytes;
};

class WireReader {
public:
  WireReader(const unsigned char* data, size_t size) : at_(data), end_(data + size) {}
  bool at_end() const { return at_ == end_; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < end_; shift += 7) {
      unsigned char byte = *at_++;
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128) return value;
    }
    refuse("broken tensor file");
  }
  WireReader take(uint64_t size) {
    if (size > size_t(end_ - at_)) refuse("broken tensor file");
    at_ += size;
    return {at_ - size, size_t(size)};
  }
  const unsigned char* data() const { return at_; }
  size_t size() const { return size_t(end_ - at_); }

private:
  const unsigned char *at_, *end_;
};

std::vector<unsigned char> read_file(const std::string& path) {
  std::vector<unsigned char> bytes;
  if (FILE* file = std::fopen(path.c_str(), "rb")) {
    unsigned char buffer[65536];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
      bytes.insert(bytes.end(), buffer, buffer + got);
    std::fclose(file);
  }
  if (bytes.empty()) refuse("cannot read " + path);
  return bytes;
}

int element_bytes(int type) {
  switch (type) {
  case 2:
  case 3:
  case 9: return 1; // u8, i8, bool
  case 4:
  case 5:
  case 10:
  case 16: return 2; // u16, i16, f16, bf16
  case 1:
  case 6:
  case 12: return 4; // f32, i32, u32
  case 7:
  case 11:
  case 13: return 8; // i64, f64, u64
  default: refuse("stored tensor of type " + std::to_string(type));
  }
}

StoredTensor read_tensor(const std::string& path) {
  std::vector<unsigned char> file = read_file(path);
  WireReader wire(file.data(), file.size());
  StoredTensor tensor;
  std::vector<uint64_t> integers;
  while (!wire.at_end()) {
    uint64_t key = wire.varint();
    uint64_t field = key >> 3, kind = key & 7;
    uint64_t value = kind == 0 ? wire.varint() : 0;
    WireReader body = kind == 2 ? wire.take(wire.varint()) : wire.take(kind == 5 ? 4 : kind == 1 ? 8 : 0);
    if (field == 1 && kind == 0) tensor.dims.push_back((long long)(value));
    while (field == 1 && kind == 2 && !body.at_end()) tensor.dims.push_back((long long)(body.varint()));
    if (field == 2 && kind == 0) tensor.type = int(value);
    bool is_integer = field == 5 || field == 7 || field == 11; // int32_data, int64_data, uint64_data
    if (is_integer && kind == 0) integers.push_back(value);
    while (is_integer && kind == 2 && !body.at_end()) integers.push_back(body.varint());
    if (field == 4 || field == 9 || field == 10) // float_data, raw_data, double_data
      tensor.bytes.insert(tensor.bytes.end(), body.data(), body.data() + body.size());
  }
  for (uint64_t value : integers) {
    auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + element_bytes(tensor.type));
  }
  return tensor;
}

// ---- The measure of error.

double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                : exponent == 0 ? std::ldexp(fraction, -24)
                                : std::ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 ? -size : size;
}

template <class T> T load(const unsigned char* data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

double element(int type, const unsigned char* data, size_t i) {
  switch (type) {
  case 1: return load<float>(data, i);
  case 2:
  case 9: return load<uint8_t>(data, i);
  case 3: return load<int8_t>(data, i);
  case 4: return load<uint16_t>(data, i);
  case 5: return load<int16_t>(data, i);
  case 6: return load<int32_t>(data, i);
  case 7: return double(load<int64_t>(data, i));
  case 10: return half_value(load<uint16_t>(data, i));
  case 11: return load<double>(data, i);
  case 12: return load<uint32_t>(data, i);
  case 13: return double(load<uint64_t>(data, i));
  default: {
    uint32_t bits = uint32_t(load<uint16_t>(data, i)) << 16; // bf16
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  }
}

// Whether elements must be equal: indices, counts and bools. Narrower integers may be quantised values.
bool is_exact(int type) {
  return type == 6 || type == 7 || type == 9 || type == 12 || type == 13;
}

constexpr double kWrong = 1e308;

double error_of(const unsigned char* got, const StoredTensor& want) {
  double difference = 0, scale = 0;
  if (is_exact(want.type) && std::memcmp(got, want.bytes.data(), want.bytes.size()) != 0) return kWrong;
  for (size_t i = 0; i < want.bytes.size() / size_t(element_bytes(want.type)); ++i) {
    double g = element(want.type, got, i), w = element(want.type, want.bytes.data(), i);
    if (std::isfinite(w)) scale = std::max(scale, std::fabs(w));
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    double d = std::fabs(g - w);
    difference = std::max(difference, std::isnan(d) ? INFINITY : d);
  }
  return std::min(scale > 0 ? difference / scale : difference, 1e300);
}

// ---- The model.

void expect(firn_status status) {
  if (status != FIRN_STATUS_OK) refuse(firn_rt2_status_message(status));
}

struct Model {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  firn_rt2_call call{};
  firn_executor executor{};

  Model() {
    // Constructors of models check the same: the CPU's features, and that Linux grants AMX's registers.
    expect(firn_rt2_check_cpu(kArchitecture, kFeatures));
    call.size = sizeof call;
    call.variant = kVariant;
    auto* arena = static_cast<unsigned char*>(std::aligned_alloc(64, (kArenaBytes + 127) / 64 * 64));
    call.parameters = static_cast<unsigned char*>(std::aligned_alloc(64, (kParameterBytes + 127) / 64 * 64));
    auto slot = [&](const IoFacts& io) -> void* {
      if (io.is_parameter) return call.parameters + io.offset;
      return io.offset >= 0 ? arena + io.offset : std::aligned_alloc(64, (size_t(io.bytes) + 127) / 64 * 64);
    };
    for (int i = 0; i < kNumInputs; ++i) inputs.push_back(slot(kInputs[i]));
    for (int i = 0; i < kNumOutputs; ++i) outputs.push_back(slot(kOutputs[i]));
    call.weights = FIRN_WEIGHTS_SYMBOL();
#ifdef FIRN_PREPARE_SYMBOL
    call.arena = static_cast<unsigned char*>(std::aligned_alloc(64, (kWeightBytes + 127) / 64 * 64));
    expect(FIRN_PREPARE_SYMBOL(&call));
    call.weights = call.arena;
#endif
    call.arena = arena;
    call.inputs = inputs.data();
    call.outputs = outputs.data();
  }
  // Makes runs read this set from now on, starting from the states of a new instance unless the set has
  // states.
  void select(size_t set, const std::vector<StoredTensor>& tensors) {
    call.extents = kExtents[set];
    reset();
    for (size_t i = 0; i < tensors.size(); ++i)
      std::memcpy(const_cast<void*>(inputs[i]), tensors[i].bytes.data(), tensors[i].bytes.size());
  }
  void reset() {
    for (const StateFacts& state : kStates) {
      if (state.bytes == 0) continue;
      unsigned char* const block = state.is_parameter ? call.parameters : call.arena;
      if (state.initial >= 0)
        std::memcpy(block + state.offset, call.weights + state.initial, size_t(state.bytes));
      else
        std::memset(block + state.offset, 0, size_t(state.bytes));
    }
  }
  // Lets runs share their work among so many threads.
  void lend(size_t threads) {
    executor = firn_rt2_thread_pool_executor(firn_rt2_thread_pool_create(threads, /*pinned=*/0));
    call.executor = &executor;
  }
  void run() {
    expect(FIRN_RUN_SYMBOL(&call));
  }
};

// ---- Data sets.

struct DataSet {
  std::vector<StoredTensor> inputs, outputs;
};

std::vector<StoredTensor> read_tensors(const std::string& folder, size_t set, const char* kind,
                                       const IoFacts* facts, int count,
                                       const std::vector<std::vector<long long>>& dims) {
  std::vector<StoredTensor> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back(read_tensor(folder + "/test_data_set_" + std::to_string(set) + "/" + kind + "_" +
                                  std::to_string(facts[i].file) + ".pb"));
    size_t elements = 1;
    for (long long dim : dims[size_t(i)]) elements *= size_t(dim);
    bool is_input = kind[0] == 'i';
    if (is_input && tensors.back().bytes.size() != elements * size_t(element_bytes(tensors.back().type)))
      refuse("stored input of another size");
  }
  return tensors;
}

// The dims of an output after the last run.
std::vector<long long> dims_of(const Model& model, size_t set, size_t output) {
  std::vector<long long> dims = kOutputDims[set][output];
  for (const CountFacts& counted : kCounts)
    if (counted.output == int(output))
      dims[size_t(counted.axis)] = load<int64_t>(model.call.arena + counted.offset, 0);
  return dims;
}

double error_of_output(const Model& model, const DataSet& data, size_t set, size_t output) {
  const StoredTensor& want = data.outputs[output];
  if (want.dims != dims_of(model, set, output)) return kWrong;
  return error_of(static_cast<const unsigned char*>(model.outputs[output]), want);
}

// The largest error of all outputs.
double error_of(const Model& model, const DataSet& data, size_t set) {
  double error = 0;
  for (size_t i = 0; i < data.outputs.size(); ++i)
    error = std::max(error, error_of_output(model, data, set, i));
  return error;
}

// Reads all data sets whose dims fit the object.
std::vector<DataSet> read_sets(const std::string& folder) {
  std::vector<DataSet> sets(kNumSets);
  for (size_t k = 0; k < sets.size(); ++k) {
    if (!kFits[k]) continue;
    sets[k].inputs = read_tensors(folder, k, "input", kInputs, kNumInputs, kInputDims[k]);
    sets[k].outputs = read_tensors(folder, k, "output", kOutputs, kNumOutputs, kOutputDims[k]);
  }
  return sets;
}

} // namespace
