// Instances: views, dims, states, memory of the caller's, operators of the program, threads.
#include "include/firn/custom_op.h"
#include "include/firn/thread_pool.h"
#include "tests/jit/sample_models.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>

using namespace firn;
using namespace firn::test;

namespace {

int32_t twice(const firn_custom_call* call) {
  const firn_custom_tensor x = firn_custom_input(call, 0), y = firn_custom_output(call, 0);
  for (size_t i = 0; i < x.dims[0] * x.dims[1]; ++i)
    static_cast<float*>(y.data)[i] = 2 * static_cast<const float*>(x.data)[i];
  return 0;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

jit::ModelOptions with_states() {
  jit::ModelOptions options;
  for (const char* name : {"past", "power", "noise", "tail"})
    options.state(name, std::string(name) + "_next");
  return options;
}

} // namespace

TEST_CASE("a view of another name or type says so") {
  jit::Compiler compiler;
  jit::Instance net(compiled(compiler, model_path("digits")));
  CHECK(has(net.input<float>("picture").message(), "name"));
  CHECK(has(net.input<int8_t>("image").message(), "type"));
  CHECK(net.input<double>("image").data() == nullptr);
  CHECK(net.input<float>("image").size() == 28 * 28);
  CHECK(net.output<float>("probabilities").dims() == std::vector<int64_t>{1, 10});
  jit::Instance none;
  CHECK_FALSE(none);
  CHECK_FALSE(none.run());
  CHECK_FALSE(none.input<float>("image"));
}

TEST_CASE("dims that vary are set within their bounds") {
  jit::Compiler compiler;
  jit::Instance net(compiled(compiler, model_path("text_encoder"), jit::ModelOptions().dim("batch", 1, 4)));
  CHECK(net.set_dim("batch", 3));
  CHECK(net.input<uint8_t>("text").dims() == std::vector<int64_t>{3, 128});
  for (auto& byte : net.input<uint8_t>("text")) byte = 'a';
  CHECK(net.run());
  auto three = net.output<float>("embedding");
  CHECK(three.dims() == std::vector<int64_t>{3, 256});
  CHECK(std::equal(three.begin(), three.begin() + 256, three.begin() + 256)); // equal texts
  CHECK_FALSE(net.set_dim("batch", 5));
  CHECK_FALSE(net.set_dim("batch", 0));
  CHECK_FALSE(net.set_dim("length", 1));
  CHECK(net.input<uint8_t>("text").dims() == std::vector<int64_t>{3, 128});
}

TEST_CASE("dims do not outgrow memory that is bound") {
  jit::Compiler compiler;
  jit::Instance net(compiled(compiler, model_path("text_encoder"), jit::ModelOptions().dim("batch", 1, 4)));
  std::vector<float> embedding(2 * 256);
  CHECK(net.set_dim("batch", 2));
  CHECK(net.bind_output(0, embedding.data(), embedding.size() * sizeof(float)));
  CHECK_FALSE(net.set_dim("batch", 3));
  CHECK(net.set_dim("batch", 1));
  CHECK(net.run());
  CHECK(net.bind_output(0, nullptr, 0)); // in the arena again
  CHECK(net.set_dim("batch", 3));
  CHECK_FALSE(net.bind_output(0, embedding.data(), embedding.size() * sizeof(float)));
}

TEST_CASE("what a run counts is nothing before the first run") {
  const std::string text = R"(
module @m {
  symbol c in [0, 6]
  func @main(%x: f32[6]) -> (i64[1,<=c]) {
    %z = constant [0.0] : f32[]
    %b = broadcast_in_dim %z {dims = []} : f32[6]
    %p = compare %x, %b {direction = gt} : bool[6]
    %f:2 = non_zero %p : (i64[1,<=c], i64[])
    return %f#0
  }
}
)";
  jit::Compiler compiler;
  jit::Model model = compiler.compile("count.hlo", text.data(), text.size());
  if (!model) FAIL(model.error().message());
  std::vector<std::byte> dirty(model.arena_bytes() + 64, std::byte{0x5a});
  void* arena = dirty.data();
  size_t space = dirty.size();
  REQUIRE(std::align(model.arena_alignment(), model.arena_bytes(), arena, space));
  jit::Instance net(model, arena, model.arena_bytes());
  CHECK(net.output<int64_t>(size_t{0}).size() == 0);
}

TEST_CASE("states go on from run to run until they are reset") {
  jit::Compiler compiler;
  jit::Instance net(compiled(compiler, model_path("denoiser"), with_states()));
  auto frame = net.input<float>("frame");
  auto run = [&](float value) {
    std::fill(frame.begin(), frame.end(), value);
    REQUIRE(net.run());
    auto clean = net.output<float>(size_t{0});
    return std::vector<float>(clean.begin(), clean.end());
  };
  const std::vector<float> first = run(0.25F), second = run(0.5F);
  CHECK(first != second);
  net.reset();
  CHECK(run(0.25F) == first);
  CHECK(run(0.5F) == second);
  CHECK(net.state<float>("past").size() == 64);
}

TEST_CASE("arenas and tensors may be the caller's") {
  jit::Compiler compiler;
  jit::Model model = compiled(compiler, model_path("digits"));
  std::vector<std::byte> memory(model.arena_bytes() + 2 * model.arena_alignment());
  void* arena = memory.data();
  size_t space = memory.size();
  REQUIRE(std::align(model.arena_alignment(), model.arena_bytes(), arena, space));
  jit::Instance net(model, arena, model.arena_bytes());
  REQUIRE(net);
  CHECK(jit::Instance(model, arena, model.arena_bytes() - 1).run().code() == FIRN_STATUS_ARENA_TOO_SMALL);
  CHECK(jit::Instance(model, static_cast<char*>(arena) + 1, model.arena_bytes()).run().code() ==
        FIRN_STATUS_ARENA_MISALIGNED);

  std::vector<float> image(28 * 28, 0.5F), scores(10);
  std::memcpy(net.input<float>("image").data(), image.data(), image.size() * sizeof(float));
  REQUIRE(net.run());
  const auto own = net.output<float>("probabilities");
  const std::vector<float> expected(own.begin(), own.end());
  CHECK(net.bind_input(0, image.data(), image.size() * sizeof(float)));
  CHECK(net.bind_output(0, scores.data(), scores.size() * sizeof(float)));
  CHECK(net.run());
  CHECK(scores == expected);
  CHECK(net.output<float>("probabilities").data() == scores.data());
  CHECK_FALSE(net.bind_output(0, scores.data(), 4));
  CHECK_FALSE(net.bind_output(1, scores.data(), 40));
  CHECK_FALSE(net.bind_input(0, reinterpret_cast<char*>(image.data()) + 1, 4 * 28 * 28));

  jit::Instance external(
      compiled(compiler, model_path("digits"), jit::ModelOptions().option("--external", "image")));
  CHECK(external.run().code() == FIRN_STATUS_NOT_BOUND);
  CHECK(external.bind_input(0, image.data(), image.size() * sizeof(float)));
  CHECK(external.run());
}

TEST_CASE("a model calls the program's functions by their addresses") {
  jit::Compiler compiler;
  jit::Instance net(
      compiled(compiler, model_path("median_filter"),
               jit::ModelOptions().dim("channels", 1, 2).custom_op("com.acme:MedianFilter", twice)));
  CHECK(net.set_dim("channels", 2));
  auto signal = net.input<float>("signal");
  for (size_t i = 0; i < signal.size(); ++i) signal[i] = static_cast<float>(i);
  REQUIRE(net.run());
  CHECK(net.output<float>("clean")[7] == 14.0F);
}

TEST_CASE("threads do not change the result") {
  jit::Compiler compiler;
  std::vector<float> results[3];
  ThreadPool pool(3);
  const firn_executor executor = pool.executor();
  for (int i = 0; i < 3; ++i) {
    jit::Instance net(compiled(compiler, model_path("digits"), jit::ModelOptions().threads(i == 0 ? 1 : 3)));
    if (i == 2) net.lend(&executor);
    for (float& pixel : net.input<float>("image")) pixel = 0.5F;
    REQUIRE(net.run());
    auto scores = net.output<float>("probabilities");
    results[i].assign(scores.begin(), scores.end());
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE("code lives until its last instance") {
  jit::Instance net;
  {
    jit::Compiler compiler;
    jit::Model model = compiled(compiler, model_path("digits"));
    jit::Model copy = model;
    net = jit::Instance(copy);
  }
  CHECK(net.run());
}
