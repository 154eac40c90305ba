// Compilations in the process: where models come from, what is refused and how, and what is shared.
#include "compiler/driver/executable_archive.h"
#include "compiler/support/cache_folder.h"
#include "compiler/support/temporary_folder.h"
#include "tests/jit/sample_models.h"

#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace firn;
using namespace firn::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Empty if the run fails. Any thread may call it, which holds for no assertion of Catch's.
std::vector<float> output_of(const jit::Model& model) {
  jit::Instance net(model);
  auto x = net.input<float>(size_t{0});
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) * 0.25F;
  if (!net.run()) return {};
  auto y = net.output<float>(size_t{0});
  return {y.begin(), y.end()};
}

std::vector<float> run_once(const jit::Model& model) {
  std::vector<float> output = output_of(model);
  REQUIRE(!output.empty());
  return output;
}

// Bytes of this process that are in memory.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

} // namespace

TEST_CASE("a model is a path, bytes or text") {
  jit::Compiler compiler;
  const std::string bytes = content(model_path("digits"));
  jit::Model from_path = compiled(compiler, model_path("digits"));
  jit::Model from_bytes = compiler.compile("digits.onnx", bytes.data(), bytes.size());
  REQUIRE(from_bytes);
  CHECK(run_once(from_path) == run_once(from_bytes));
  const std::string text = small_graph(1);
  jit::Model from_text = compiler.compile("small.hlo", text.data(), text.size());
  if (!from_text) FAIL(from_text.error().message());
  CHECK(run_once(from_text).size() == 8);
}

TEST_CASE("a model tells what it is") {
  jit::Compiler compiler;
  jit::Model model = compiled(compiler, model_path("text_encoder"), jit::ModelOptions().dim("batch", 1, 4));
  REQUIRE(model.inputs().size() == 1);
  CHECK(model.inputs()[0].name == std::string("text"));
  CHECK(model.inputs()[0].dims[0] == 4);
  REQUIRE(model.dims().size() == 1);
  CHECK(model.dims()[0].name == std::string("batch"));
  CHECK(model.dims()[0].upper == 4);
  CHECK(has(model.manifest(), "\"arena"));
  CHECK(model.arena_bytes() > 0);
}

TEST_CASE("what cannot be compiled is a value that says why") {
  jit::Compiler compiler;
  jit::Model missing = compiler.compile("/nowhere/net.onnx");
  CHECK_FALSE(missing);
  CHECK(missing.diagnostics()[0].kind == FIRN_JIT_USAGE);
  CHECK(has(missing.error().message(), "/nowhere/net.onnx"));

  jit::Model misspelt = compiler.compile(model_path("digits"), jit::ModelOptions().option("--thread", "2"));
  CHECK_FALSE(misspelt);
  CHECK(has(misspelt.error().message(), "--threads"));
  CHECK_FALSE(compiler.compile(model_path("digits"), jit::ModelOptions().cpu("x86-64-v9")));
  CHECK(
      has(compiler.compile(model_path("digits"), jit::ModelOptions().option("--target", "aarch64-linux-gnu"))
              .error()
              .message(),
          "this machine"));

  jit::Compiler for_unknown(jit::Options().cpu("x86-64-v9"));
  CHECK(for_unknown.compile(model_path("digits")).error().kind() == FIRN_JIT_USAGE);
  CHECK(for_unknown.compile(model_path("digits"), jit::ModelOptions().cpu("native")));

  const std::string bytes = content(model_path("digits"));
  for (size_t count = 0; count < bytes.size(); count += 1 + bytes.size() / 40) {
    jit::Model cut = compiler.compile("cut.onnx", bytes.data(), count);
    CHECK_FALSE(cut);
    CHECK_FALSE(cut.error().message().empty());
  }
  jit::Model custom = compiler.compile(model_path("median_filter"), jit::ModelOptions().dim("channels", 1));
  CHECK_FALSE(custom);
  CHECK(has(custom.error().message(), "MedianFilter"));
  CHECK(compiled(compiler, model_path("digits"))); // the process lives, and so does the compiler
}

TEST_CASE("a compilation ends when it is asked to") {
  jit::Compiler compiler;
  jit::Stop stop;
  jit::ModelOptions options;
  options.stop(stop);
  options.progress(
      [](void* context, const char* phase) {
        if (phase == std::string("describe")) static_cast<jit::Stop*>(context)->request();
      },
      &stop);
  jit::Model model = compiler.compile(model_path("digits"), options);
  CHECK_FALSE(model);
  CHECK(model.diagnostics()[0].kind == FIRN_JIT_STOPPED);
  CHECK(compiled(compiler, model_path("digits")));
}

TEST_CASE("equal requests share one model") {
  jit::Compiler compiler;
  jit::Model first = compiled(compiler, model_path("digits"));
  jit::Instance a(first), b(compiled(compiler, model_path("digits")));
  CHECK(firn_jit_instance_entry(a.handle()).run == firn_jit_instance_entry(b.handle()).run);
  jit::Instance c(compiled(compiler, model_path("digits"), jit::ModelOptions().strict_math()));
  CHECK(firn_jit_instance_entry(a.handle()).run != firn_jit_instance_entry(c.handle()).run);

  std::vector<std::thread> threads;
  std::vector<jit::Model> models(6);
  std::atomic<int> compilations{0};
  auto count = [](void* context, const char* phase) {
    if (phase == std::string("import")) ++*static_cast<std::atomic<int>*>(context);
  };
  for (jit::Model& model : models)
    threads.emplace_back([&] {
      jit::ModelOptions options;
      options.progress(count, &compilations).optimize("2");
      model = compiler.compile(model_path("digits"), options);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(compilations == 1);
  for (const jit::Model& model : models) CHECK(run_once(model) == run_once(models[0]));
}

TEST_CASE("a model that was kept is not compiled again") {
  TemporaryFolder scratch = std::move(*TemporaryFolder::make());
  const std::string folder = scratch.path() + "/cache", path = scratch.path() + "/net.onnx";
  auto write_model = [&](const std::string& model) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content(model_path(model));
  };
  write_model("digits");
  int compilations = 0;
  auto compile = [&](const jit::ModelOptions& given = {}) {
    jit::Compiler compiler(jit::Options().cache(folder)); // knows no model of the others
    jit::ModelOptions options = given;
    options.progress(
        [](void* context, const char* phase) {
          *static_cast<int*>(context) += phase == std::string("import") ? 1 : 0;
        },
        &compilations);
    return compiled(compiler, path, options);
  };
  const std::vector<float> expected = run_once(compile());
  CHECK(compilations == 1);
  jit::Model kept = compile();
  CHECK(compilations == 1);
  CHECK(run_once(kept) == expected);
  CHECK(kept.inputs()[0].name == std::string("image"));
  CHECK(has(kept.manifest(), "digits") == has(compile().manifest(), "digits"));
  CHECK(run_once(compile(jit::ModelOptions().strict_math())).size() == 10);
  CHECK(compilations == 2); // other options, another model

  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::string bytes = content(file.path());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << bytes;
  }
  CHECK(run_once(compile()) == expected);
  CHECK(compilations == 3); // a damaged file is made again
  CHECK(run_once(compile()) == expected);
  CHECK(compilations == 3);

  // An archive that is whole, but whose object has no such function, is of no use either.
  auto cache = CacheFolder::open(folder);
  REQUIRE(cache);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string key = file.path().filename();
    auto kept = cache->find(key);
    if (!kept) continue; // still damaged
    auto archive = driver::read_archive(kept->bytes());
    REQUIRE(archive);
    archive->run_symbol += "_none";
    std::string storage;
    cache->keep(key, driver::pieces_of(*archive, storage));
  }
  CHECK(run_once(compile()) == expected);
  CHECK(compilations == 4);

  write_model("denoiser");
  CHECK(compile().inputs().size() > 1);
  CHECK(compilations == 5); // another file of that name
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  jit::Model warned = compile();
  CHECK(compilations == 6);
  REQUIRE(warned.diagnostics().size() == 1);
  CHECK(warned.diagnostics()[0].kind == FIRN_JIT_OK);
  CHECK(has(warned.diagnostics()[0].message, "chmod"));
}

TEST_CASE("a declared gradient is a model, and is kept as one") {
  TemporaryFolder scratch = std::move(*TemporaryFolder::make());
  const std::string folder = scratch.path() + "/cache";
  const std::string text = R"(module @m {
    func @main(%x: f32[8]) -> (f32[8]) {
      %y = multiply %x, %x : f32[8]
      return %y
    }
    func @g = gradient @main wrt x
    func @h = gradient @g wrt x
  })";
  int compilations = 0;
  auto compile = [&](const char* entry) {
    jit::Compiler compiler(jit::Options().cache(folder));
    jit::ModelOptions options;
    options.option("--entry", entry);
    options.progress(
        [](void* context, const char* phase) {
          *static_cast<int*>(context) += phase == std::string("import") ? 1 : 0;
        },
        &compilations);
    jit::Model model = compiler.compile("m.hlo", text.data(), text.size(), options);
    if (!model) FAIL(model.error().message());
    return model;
  };
  const std::vector<float> slope = run_once(compile("g")), curvature = run_once(compile("h"));
  CHECK(compilations == 2);
  CHECK(compile("g").outputs()[0].name == std::string("d_x"));
  CHECK(run_once(compile("g")) == slope);
  CHECK(compilations == 2);
  CHECK(slope.size() == 8);
  CHECK(curvature == std::vector<float>(8, 2));
}

TEST_CASE("threads compile, run and drop models", "[.stress]") {
  jit::Compiler compiler;
  int64_t early = 0;
  std::atomic<int> failures{0};
  constexpr int kThreads = 8, kModels = 2000;
  auto work = [&](int first, int end) {
    for (int i = first; i < end; i += kThreads) {
      const std::string text = small_graph(i % 300);
      jit::Model model = compiler.compile("small.hlo", text.data(), text.size());
      if (!model || output_of(model).size() != 8) ++failures;
    }
  };
  auto round = [&](int first, int end) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, first + i, end);
    for (std::thread& thread : threads) thread.join();
  };
  round(0, 500);
  early = resident_bytes();
  round(500, kModels);
  CHECK(failures == 0);
  CHECK(static_cast<double>(resident_bytes()) <= 1.05 * static_cast<double>(early));
}
