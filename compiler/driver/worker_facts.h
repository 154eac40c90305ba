// Facts for the benchmark worker about a model and the data sets stored beside it: a header that is compiled
// with it.
#pragma once

#include "compiler/driver/actual_dims.h"
#include "compiler/driver/bench.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/given_inputs.h"

namespace firn::driver {

// One test_data_set_K, by its number.
struct StoredSet {
  GivenInputs inputs;
  std::map<std::string, size_t> files; // numbers of the inputs' files
  bool fits = false;                   // whether the object can be run on it
  ActualDims dims;                     // if it fits
};

// Reads all sets of a folder, one at least. An error if the first cannot be read.
Expected<std::vector<StoredSet>> read_stored_sets(const onnx::ModelFacts& facts, const std::string& folder);
// Finds the sets that the object can be run on: with the dims and fixed inputs that it was compiled for. An
// error if the first is none of them.
Result fit_stored_sets(const Compilation& c, const onnx::ImportOptions& import, std::vector<StoredSet>& sets);

// The text of facts.h (tools/bench/worker_case.h).
std::string worker_facts(const Compilation& c, const std::vector<StoredSet>& sets,
                         const BenchOptions& options);

} // namespace firn::driver
