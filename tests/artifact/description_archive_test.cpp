// Descriptions as bytes: what is written is read again, and damaged bytes are refused.
#include "compiler/artifact/description_archive.h"

#include <catch2/catch.hpp>

#include <random>

using namespace firn;
using namespace firn::artifact;

namespace {

ModelDescription varying() {
  auto batch = std::make_shared<const Symbol>(Symbol{"batch", 1, 8}),
       length = std::make_shared<const Symbol>(Symbol{"length", 0, 512});
  ModelDescription d;
  d.class_name = "nlp::Encoder";
  d.dims = {{batch, "batch", "batch", 1, {}}, {length, "length", "length", 16, {16, 32, 512}}};
  IntExpr b = IntExpr::symbol(batch), l = IntExpr::symbol(length);
  TensorDescription x;
  x.name = "x\n\0y";
  x.dtype = DType::BF16;
  x.dims = {b, l * 3 + 1, floor_div(l, 4), max(b, l), 7};
  x.arena_offset = 128;
  TensorDescription y = x;
  y.name = "y";
  y.arena_offset.reset();
  y.counted_dims = {{2, 4096}};
  d.inputs = {x};
  d.outputs = {y, x};
  d.states = {y, x};
  d.states[1].is_parameter = true;
  d.parameter_bytes = 4096;
  d.arena_bytes = 1 << 20;
  d.raw_weight_bytes = 12;
  d.raw_weights = {{"w", "f32[3]", 0, 12, true}};
  d.cpus = {{"x86-64-v4", 31, 0}, {"x86-64-v2", 3, 64}};
  d.threads = 4;
  return d;
}

} // namespace

TEST_CASE("a description is read as it was written") {
  const ModelDescription d = varying();
  const std::string bytes = write_description(d);
  auto read = read_description(bytes);
  REQUIRE(read);
  CHECK(write_description(*read) == bytes);
  CHECK(read->inputs[0].name == d.inputs[0].name);
  CHECK(read->inputs[0].dims[3].to_string() == d.inputs[0].dims[3].to_string());
  CHECK(read->outputs[0].counted_dims[0].arena_offset == 4096);
  CHECK_FALSE(read->outputs[0].arena_offset);
  CHECK(read->dims[0].symbol == read->inputs[0].dims[0].symbols()[0]); // one symbol, not two of one name
  CHECK(read->dims[1].allows(32));
  CHECK(read->states[1].is_parameter);
  CHECK(read->parameter_bytes == 4096);
  CHECK(read->inputs[0].byte_size() == d.inputs[0].byte_size());
}

TEST_CASE("damaged descriptions are refused or read, and nothing else") {
  const std::string bytes = write_description(varying());
  for (size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(read_description(bytes.substr(0, size)));
  CHECK_FALSE(read_description(bytes + "x"));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)read_description(damaged);
  }
}
