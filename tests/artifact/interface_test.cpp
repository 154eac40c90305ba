// The hash changes with everything that header and object both rely on and with what the model computes, and
// with nothing else.
#include "compiler/artifact/interface.h"
#include "tests/artifact/sample_models.h"

#include <catch2/catch.hpp>
#include <functional>

using namespace firn;
using namespace firn::artifact;

namespace {

bool changes_hash(const std::function<void(ModelDescription&)>& change) {
  ModelDescription model = digits_sample();
  const std::string before = contract_hash(model);
  change(model);
  return contract_hash(model) != before;
}

} // namespace

TEST_CASE("symbols carry the ABI number and the hash") {
  const ModelDescription model = digits_sample();
  const std::string hash = contract_hash(model);
  CHECK(hash.size() == 12);
  CHECK(symbol_names(model).run == "vision_digits_run_abi2_" + hash);
  CHECK(symbol_names(model).weights == "vision_digits_weights_abi2_" + hash);
  CHECK(symbol_names(model).prepare.empty());
  CHECK(symbol_names(prepared_sample()).prepare ==
        "vision_prepared_prepare_abi2_" + contract_hash(prepared_sample()));
  CHECK(symbol_names(in_place_sample()).prepare.empty());
}

TEST_CASE("what both sides rely on is hashed") {
  CHECK(changes_hash([](ModelDescription& m) { m.inputs[0].dims[3] = 29; }));
  CHECK(changes_hash([](ModelDescription& m) { m.inputs[0].dtype = DType::I32; }));
  CHECK(changes_hash([](ModelDescription& m) { m.inputs[0].name = "picture"; }));
  CHECK(changes_hash([](ModelDescription& m) { m.inputs[0].identifier = "picture"; }));
  CHECK(changes_hash([](ModelDescription& m) { m.inputs[0].arena_offset = 64; }));
  CHECK(changes_hash([](ModelDescription& m) { m.inputs[0].arena_offset = std::nullopt; }));
  CHECK(changes_hash([](ModelDescription& m) { m.outputs[0].counted_dims = {{0, 64}}; }));
  CHECK(changes_hash([](ModelDescription& m) { m.outputs.swap(m.inputs); }));
  CHECK(changes_hash([](ModelDescription& m) { m.states = m.outputs; }));
  CHECK(changes_hash([](ModelDescription& m) { m.arena_bytes += 64; }));
  CHECK(changes_hash([](ModelDescription& m) { m.parameter_bytes += 64; }));
  CHECK(changes_hash([](ModelDescription& m) { m.weight_bytes += 64; }));
  CHECK(changes_hash([](ModelDescription& m) { m.raw_weight_bytes = m.weight_bytes; }));
  ModelDescription prepared = in_place_sample();
  prepared.raw_in_place = false;
  CHECK(contract_hash(prepared) != contract_hash(in_place_sample()));
  CHECK(changes_hash([](ModelDescription& m) { m.required_features ^= 1; }));
  CHECK(changes_hash([](ModelDescription& m) { m.content_hash = "other"; }));
}

TEST_CASE("what dims may be is hashed") {
  auto changes = [](const std::function<void(ModelDescription&)>& change) {
    ModelDescription model = varying_sample();
    change(model);
    return contract_hash(model) != contract_hash(varying_sample());
  };
  CHECK_FALSE(changes([](ModelDescription&) {}));
  CHECK(changes([](ModelDescription& m) { m.dims[3].allowed = {1, 5, 8}; }));
  CHECK(changes([](ModelDescription& m) { m.dims[2].multiple = 16; }));
  CHECK(changes([](ModelDescription& m) {
    m.dims[0].symbol = std::make_shared<Symbol>(Symbol{"batch", 1, 9});
  }));
  CHECK(changes([](ModelDescription& m) { m.dims[1].identifier = "length"; }));
}

TEST_CASE("paths and sizes of code are not hashed") {
  CHECK_FALSE(changes_hash([](ModelDescription& m) { m.source_file = "elsewhere.onnx"; }));
  CHECK_FALSE(changes_hash([](ModelDescription& m) { m.code_bytes = m.stack_bytes = 1; }));
  CHECK_FALSE(changes_hash([](ModelDescription& m) { m.kernels.clear(); }));
}
