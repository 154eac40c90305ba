// Whole programs: weights, arena, control flow between kernels; and what the object file promises.
#include "tests/codegen/model_object.h"
#include "tests/kernel/sample_kernels.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace firn::test {

using namespace kernel;

static std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// y[i] = x[i] + w[i] as a kernel of n floats.
static std::unique_ptr<Kernel> add_kernel(const std::string& name, int64_t n, int alignment = 64) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  Builder b(*kernel);
  int x = b.add_parameter("x", Scalar::F32, n, false, alignment),
      w = b.add_parameter("w", Scalar::F32, n, false, alignment);
  int y = b.add_parameter("y", Scalar::F32, n, true, alignment);
  MachineType wide{Scalar::F32, 8};
  b.loop(0, n, 8, [&](const IntExpr& i) {
    b.store(b.binary(OpKind::FAdd, b.load(wide, x, i, 32), b.load(wide, w, i, 32)), y, i, 32);
  });
  return kernel;
}

static int buffer(Program& program, Space space, int64_t bytes, int64_t offset, int io = -1) {
  Buffer buffer;
  buffer.name = "b" + std::to_string(program.buffers.size());
  buffer.space = space;
  buffer.bytes = bytes;
  buffer.offset = offset;
  buffer.io_index = io;
  return program.add_buffer(buffer);
}

static void fill_with(Program& program, int buffer, float value) {
  int64_t elements = program.buffers[static_cast<size_t>(buffer)].bytes / 4;
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(elements), value);
  ConstantSource source{"values", Scalar::F32, {elements}, values, std::as_bytes(std::span(*values))};
  program.constants.push_back({buffer, std::move(source), padded_copy(4, elements, elements)});
}

// out = (in + w0) + w1 through the arena, with a gap between the constants.
static Program chain_program() {
  Program program;
  program.name = "chain";
  program.kernels.push_back(add_kernel("add", 64));
  int in = buffer(program, Space::Input, 256, -1, 0), out = buffer(program, Space::Output, 256, -1, 0);
  int w1 = buffer(program, Space::Weights, 256, 512), w0 = buffer(program, Space::Weights, 256, 0);
  int middle = buffer(program, Space::Arena, 256, 128);
  program.arena_bytes = 384;
  program.weight_bytes = 768;
  fill_with(program, w1, 10);
  fill_with(program, w0, 0.5f);
  Step first, second;
  first.kernel = second.kernel = 0;
  first.arguments = {{in, 0}, {w0, 0}, {middle, 0}};
  second.arguments = {{middle, 0}, {w1, 0}, {out, 0}};
  program.steps = {first, second};
  return program;
}

TEST_CASE("a program runs its kernels over arena and weights", "[object]") {
  for (const char* cpu : {"x86-64", "native"}) {
    LoadedObject object(chain_program(), options_for(target_of("x86_64-linux-gnu", cpu)));
    alignas(64) unsigned char arena[384];
    // Tensors begin one float behind an aligned address: bound memory is aligned for its elements alone.
    alignas(64) float in[65], out[65];
    for (int i = 0; i < 64; ++i) in[i + 1] = static_cast<float>(i);
    CHECK(object.run({in + 1}, {out + 1}, arena) == 0);
    for (int i = 0; i < 64; ++i) CHECK(out[i + 1] == static_cast<float>(i) + 10.5f);
    CHECK(reinterpret_cast<uintptr_t>(object.weights()) % 64 == 0);
  }
}

TEST_CASE("weights stream into a section of their own", "[object]") {
  LoadedObject object(chain_program(), options_for(host_target()));
  std::string sections = shell("llvm-readelf-19 -SW " + object.path());
  INFO(sections);
  size_t at = sections.find(".lrodata.firn.model");
  REQUIRE(at != std::string::npos);
  std::string line = sections.substr(at, sections.find('\n', at) - at);
  CHECK(line.find("000300") != std::string::npos); // 768 bytes
  CHECK(line.find(" Al ") != std::string::npos);   // allocated, large
  CHECK(line.substr(line.size() - 2) == "64");
  float first, gap, last;
  std::memcpy(&first, object.weights(), 4);
  std::memcpy(&gap, object.weights() + 256, 4);
  std::memcpy(&last, object.weights() + 764, 4);
  CHECK((first == 0.5f && gap == 0 && last == 10));
}

static int64_t peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  FAIL("no peak of memory");
  return 0;
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsSanitized = true; // memory that is given back stays for a while
#else
constexpr bool kIsSanitized = false;
#endif

TEST_CASE("only one constant is in memory at a time", "[object]") {
  // Many packed ones, of one small source.
  constexpr int64_t kBytes = 8 << 20, kCount = 16;
  Program program = chain_program();
  auto source = std::make_shared<std::vector<std::byte>>(64, std::byte{1});
  for (int64_t i = 0; i < kCount; ++i) {
    int number = buffer(program, Space::Weights, kBytes, 768 + i * kBytes);
    Packing repeated{4, kBytes / 4, 16, {}, {}};
    repeated.boxes.push_back({0, 0, {{kBytes / 64, 16, 0}, {16, 1, 1}}, {}, 0});
    program.constants.push_back({number, {"", Scalar::F32, {16}, source, *source}, repeated});
  }
  program.weight_bytes = 768 + kCount * kBytes;
  TemporaryFolder folder;
  std::ofstream("/proc/self/clear_refs") << 5; // the peak begins anew
  int64_t before = peak_kilobytes();
  CHECK(codegen::emit_object(program, options_for(host_target()), folder.file("a.o")));
  CHECK(std::filesystem::file_size(folder.file("a.o")) > static_cast<size_t>(kCount * kBytes));
  CHECK((kIsSanitized || peak_kilobytes() - before < 4 * kBytes / 1024));
}

TEST_CASE("an object that prepares its weights holds the raw ones", "[object]") {
  // packed = raw + raw, for the two constants that the chain reads.
  Program prepare;
  prepare.name = "prepare";
  prepare.kernels.push_back(add_kernel("prepare_0", 64));
  prepare.arena_bytes = 768;
  prepare.weight_bytes = 512;
  for (int64_t i : {0, 1}) {
    int raw = buffer(prepare, Space::Weights, 256, 256 * i),
        packed = buffer(prepare, Space::Arena, 256, 512 * i);
    fill_with(prepare, raw, i == 0 ? 0.25f : 5.0f);
    Step step;
    step.kernel = 0;
    step.arguments = {{raw, 0}, {raw, 0}, {packed, 0}};
    prepare.steps.push_back(step);
  }
  Program program = chain_program();
  // Packed weights are not in the object: a source of another size would be refused.
  for (Constant& constant : program.constants) constant.source.bytes = constant.source.bytes.first(4);
  codegen::CodegenOptions options = options_for(host_target());
  options.prepare = &prepare;
  options.prepare_symbol = "model_prepare";
  // Stamps are for steps of the program itself.
  options.profile = true;
  LoadedObject object(program, options);
  CHECK(object.facts().object_bytes > 512);
  alignas(64) float packed[192];
  CHECK(object.prepare(packed) == 0);
  CHECK((packed[0] == 0.5f && packed[63] == 0.5f && packed[128] == 10 && packed[191] == 10));
  float raw[2];
  std::memcpy(&raw[0], object.weights(), 4);
  std::memcpy(&raw[1], object.weights() + 256, 4);
  CHECK((raw[0] == 0.25f && raw[1] == 5));
}

TEST_CASE("a program without weights has none", "[object]") {
  auto kernel = add_kernel("add", 8, 4);
  LoadedObject object(program_of(std::move(kernel)), options_for(host_target()));
  CHECK(object.weights() == nullptr);
  float x[8] = {1, 2, 3}, w[8] = {4}, y[8];
  CHECK(object.run({x, w}, {y}) == 0);
  CHECK(y[0] == 5);
}

TEST_CASE("steps branch and loop on bytes in buffers", "[object]") {
  Program program;
  // count -= 1; flag = count > 0; total += count
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "step";
  Builder b(*kernel);
  int count = b.add_parameter("count", Scalar::I32, 1, true, 4),
      flag = b.add_parameter("flag", Scalar::I8, 1, true, 1);
  int total = b.add_parameter("total", Scalar::I32, 1, true, 4);
  MachineType i32{Scalar::I32, 1};
  Register left = b.binary(OpKind::ISub, b.load(i32, count, 0), b.constant_int(i32, 1));
  b.store(left, count, 0);
  b.store(
      b.cast(OpKind::ZExt, b.compare(OpKind::SCmp, Predicate::Gt, left, b.constant_int(i32, 0)), Scalar::I8),
      flag, 0);
  b.store(b.binary(OpKind::IAdd, b.load(i32, total, 0), left), total, 0);
  program.kernels.push_back(std::move(kernel));
  int counts = buffer(program, Space::Arena, 64, 0), flags = buffer(program, Space::Arena, 64, 64),
      totals = buffer(program, Space::Output, 4, -1, 0);
  Step step, loop, branch;
  step.kernel = 0;
  step.arguments = {{counts, 0}, {flags, 5}, {totals, 0}};
  loop.kind = Step::Kind::While;
  loop.condition = {flags, 5};
  loop.first = {step};
  branch.kind = Step::Kind::If;
  branch.condition = {flags, 5};
  branch.first = {step};
  branch.second = {step, step};
  program.steps = {loop, branch};
  LoadedObject object(program, options_for(host_target()));
  alignas(64) int32_t arena[32] = {4};
  int32_t sum = 100;
  CHECK(object.run({}, {&sum}, arena) == 0);
  CHECK(sum == 100 + 3 + 2 + 1 + 0 - 1 - 2);
}

TEST_CASE("arguments that share memory are not promised apart", "[object]") {
  Program program = chain_program();
  // In place: the second call reads and writes the same bytes.
  program.kernels[0]->in_place.push_back({2, 0, Overwriting::Pointwise, 0});
  program.steps[0].arguments[2] = {4, 0};
  program.steps[1].arguments = {{4, 0}, {2, 0}, {4, 0}};
  auto text = codegen::emit_llvm_text(program, options_for(host_target()));
  REQUIRE(text);
  size_t at = text->find("define internal fastcc void @firn.k.add(");
  REQUIRE(at != std::string::npos);
  std::string line = text->substr(at, text->find('\n', at) - at);
  std::string x = line.substr(line.find('('), line.find("%x") - line.find('('));
  std::string w = line.substr(line.find("%x"), line.find("%w") - line.find("%x"));
  CHECK(x.find("noalias") == std::string::npos);
  CHECK(w.find("noalias") != std::string::npos);
}

TEST_CASE("objects are equal byte for byte", "[object]") {
  TemporaryFolder folder;
  Program program = kernel::sample_program();
  program.kernels[1]->body.ops.erase(
      std::remove_if(program.kernels[1]->body.ops.begin(), program.kernels[1]->body.ops.end(),
                     [](const auto& op) { return op->kind == OpKind::CallRuntime; }),
      program.kernels[1]->body.ops.end());
  for (const char* cpu : {"x86-64-v3", "znver4", "cortex-a72", "generic-rv64"}) {
    codegen::CodegenOptions options = options_for(target_of("", cpu));
    std::string files[2];
    for (std::string& file : files) {
      auto facts = codegen::emit_object(program, options, folder.file("a.o"));
      if (!facts) FAIL(facts.error().message);
      file = bytes_of_file(folder.file("a.o"));
      CHECK(facts->object_bytes == static_cast<int64_t>(file.size()));
    }
    INFO(cpu);
    CHECK(files[0] == files[1]);
  }
}

TEST_CASE("facts of the object are those of the file", "[object]") {
  Program program = kernel::sample_program();
  TemporaryFolder folder;
  auto facts = codegen::emit_object(program, options_for(host_target()), folder.file("a.o"));
  if (!facts) FAIL(facts.error().message);
  CHECK(facts->undefined_symbols == std::vector<std::string>{"firn_rt2_sort"});
  REQUIRE(facts->kernel_text_bytes.size() == 2);
  CHECK(facts->kernel_text_bytes[0].first == "flow");
  CHECK(facts->kernel_text_bytes[0].second > 100);
  CHECK(facts->kernel_text_bytes[1].first == "vectors");
  CHECK(facts->text_bytes >= facts->kernel_text_bytes[0].second + facts->kernel_text_bytes[1].second);
  CHECK(facts->stack_bytes >= 64 * 4); // the scratch of 64 floats
  CHECK(facts->stack_bytes < 2048);
}

TEST_CASE("embedded targets need no library for integer and float kernels", "[object]") {
  TemporaryFolder folder;
  Program program = kernel::sample_program();
  for (const char* cpu : {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-a53"}) {
    auto facts = codegen::emit_object(program, options_for(target_of("", cpu)), folder.file("a.o"));
    if (!facts) FAIL(cpu << ": " << facts.error().message);
    CHECK(facts->undefined_symbols == std::vector<std::string>{"firn_rt2_sort"});
    std::string sections = shell("llvm-readelf-19 -SW " + folder.file("a.o"));
    CHECK(sections.find(".ARM.exidx") == std::string::npos);
    CHECK(sections.find(".eh_frame") == std::string::npos);
  }
}

TEST_CASE("types without instructions are refused by name", "[object]") {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "kernel_under_test";
  kernel->location = "/net/sum";
  Builder b(*kernel);
  b.store(b.constant({Scalar::F64, 1}, 1), b.add_parameter("y", Scalar::F64, 1, true), 0);
  Program program = program_of(std::move(kernel));
  TemporaryFolder folder;
  auto facts = codegen::emit_object(program, options_for(target_of("", "cortex-m4")), folder.file("a.o"));
  REQUIRE_FALSE(facts);
  CHECK(facts.error().fault == Fault::Unsupported);
  CHECK(facts.error().message ==
        "'/net/sum' computes in f64, for which cortex-m4 (thumbv7em-unknown-none-eabihf) has no "
        "instructions; name a CPU that has them with -mcpu (in CMake, CPU)");
}

TEST_CASE("an unwritable path is a usage error", "[object]") {
  auto facts = codegen::emit_object(chain_program(), options_for(host_target()), "/nonexistent/a.o");
  REQUIRE_FALSE(facts);
  CHECK(facts.error().fault == Fault::Usage);
}

TEST_CASE("objects of every format are measured alike", "[object]") {
  TemporaryFolder folder;
  Program program = chain_program();
  for (const char* triple : {"x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "x86_64-w64-mingw32",
                             "x86_64-apple-macosx", "aarch64-unknown-linux-gnu", "aarch64-pc-windows-msvc",
                             "arm64-apple-macosx", "thumbv7em-none-eabihf", "riscv64-unknown-linux-gnu"}) {
    auto facts = codegen::emit_object(program, options_for(target_of(triple, "")), folder.file("a.o"));
    if (!facts) FAIL(triple << ": " << facts.error().message);
    INFO(triple << ": " << facts->text_bytes << " of code, " << facts->rodata_bytes << " of its constants");
    CHECK(facts->object_bytes == static_cast<int64_t>(bytes_of_file(folder.file("a.o")).size()));
    REQUIRE(facts->kernel_text_bytes.size() == 1);
    CHECK(facts->kernel_text_bytes[0].first == "add");
    CHECK(facts->kernel_text_bytes[0].second > 16);
    CHECK(facts->text_bytes > facts->kernel_text_bytes[0].second);
    CHECK(facts->text_bytes < 2048);
    // The 768 bytes of weights are not the code's.
    CHECK(facts->rodata_bytes >= 0);
    CHECK(facts->rodata_bytes < 128);
    CHECK(facts->stack_bytes < 512);
  }
}

TEST_CASE("weights that code beside them cannot reach are refused", "[object]") {
  TemporaryFolder folder;
  Program program = chain_program();
  program.weight_bytes = int64_t{3} << 30;
  for (const char* triple : {"x86_64-pc-windows-msvc", "arm64-apple-macosx"}) {
    auto facts = codegen::emit_object(program, options_for(target_of(triple, "")), folder.file("a.o"));
    REQUIRE_FALSE(facts);
    CHECK(facts.error().fault == Fault::Unsupported);
    CHECK(facts.error().message.find("the weights take 3221225472 bytes") != std::string::npos);
  }
}

// y = x * w + y, in one instruction.
static Program fma_program() {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = "fma";
  Builder b(*kernel);
  MachineType real{Scalar::F32, 1};
  int x = b.add_parameter("x", Scalar::F32, 2, false), y = b.add_parameter("y", Scalar::F32, 1, true);
  b.store(b.fma(b.load(real, x, 0), b.load(real, x, 1), b.load(real, y, 0)), y, 0);
  return program_of(std::move(kernel));
}

TEST_CASE("symbols that nothing promises are found in every format", "[object]") {
  TemporaryFolder folder;
  for (const char* triple : {"x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "arm64-apple-macosx"}) {
    INFO(triple);
    auto facts = codegen::emit_object(kernel::sample_program(), options_for(target_of(triple, "")),
                                      folder.file("a.o"));
    if (!facts) FAIL(facts.error().message);
    auto& symbols = facts->undefined_symbols;
    CHECK(std::find(symbols.begin(), symbols.end(), "firn_rt2_sort") != symbols.end());
    for (const std::string& symbol : symbols) CHECK((symbol == "firn_rt2_sort" || symbol == "_fltused"));
    // The backend calls the library if the CPU has less than the kernels ask for.
    codegen::CodegenOptions options = options_for(target_of(triple, ""));
    if (options.target.arch != Arch::X86_64) continue;
    options.target.features += ",-fma";
    facts = codegen::emit_object(fma_program(), options, folder.file("b.o"));
    REQUIRE_FALSE(facts);
    CHECK(facts.error().fault == Fault::Internal);
    CHECK(facts.error().message.find("needs the symbol 'fmaf'") != std::string::npos);
  }
}

} // namespace firn::test
