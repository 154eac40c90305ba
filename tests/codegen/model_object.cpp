// See model_object.h.
#include "tests/codegen/model_object.h"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace firn::test {

Machine target_of(const std::string& triple, const std::string& cpu, const std::string& features) {
  auto target = find_target(triple, cpu, features);
  if (!target) FAIL(target.error().message);
  return *target;
}

Machine host_target() {
  return target_of("", "native");
}

codegen::CodegenOptions options_for(const Machine& target) {
  codegen::CodegenOptions options;
  options.target = target;
  options.run_symbol = "model_run";
  options.weights_symbol = "model_weights";
  options.exported = true;
  options.section_suffix = "model";
  return options;
}

kernel::Program program_of(std::unique_ptr<kernel::Kernel> kernel) {
  kernel::Program program;
  program.name = "test";
  kernel::Step step;
  step.kernel = 0;
  int inputs = 0, outputs = 0;
  for (const kernel::BufferParameter& parameter : kernel->parameters) {
    kernel::Buffer buffer;
    buffer.name = parameter.name;
    buffer.space = parameter.written ? kernel::Space::Output : kernel::Space::Input;
    buffer.bytes = parameter.size * scalar_bytes(parameter.element);
    buffer.io_index = parameter.written ? outputs++ : inputs++;
    step.arguments.push_back({program.add_buffer(buffer), 0});
  }
  program.steps.push_back(step);
  program.kernels.push_back(std::move(kernel));
  return program;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "firn-codegen-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}
TemporaryFolder::~TemporaryFolder() {
  std::filesystem::remove_all(path_);
}

std::string shell(const std::string& command) {
  FILE* pipe = popen(("( " + command + " ) 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  char chunk[4096];
  while (size_t n = fread(chunk, 1, sizeof chunk, pipe)) output.append(chunk, n);
  INFO(command << "\n" << output);
  REQUIRE(pclose(pipe) == 0);
  return output;
}

LoadedObject::LoadedObject(const kernel::Program& program, const codegen::CodegenOptions& options) {
  auto facts = codegen::emit_object(program, options, folder_.file("model.o"));
  if (!facts) FAIL(facts.error().message);
  facts_ = *facts;
  shell("cc -shared -nostdlib -o " + folder_.file("model.so") + " " + folder_.file("model.o"));
  library_ = dlopen(folder_.file("model.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) FAIL(dlerror());
  run_ = dlsym(library_, "model_run");
  weights_ = dlsym(library_, "model_weights");
  REQUIRE(run_);
  REQUIRE(weights_);
}

LoadedObject::~LoadedObject() {
  dlclose(library_);
}

const unsigned char* LoadedObject::weights() const {
  return reinterpret_cast<const unsigned char* (*)()>(weights_)();
}

int LoadedObject::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void* arena,
                      const unsigned char* given, const std::vector<size_t>& extents,
                      const firn_executor* executor) const {
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = static_cast<unsigned char*>(arena);
  call.weights = given ? given : weights();
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  call.extents = extents.data();
  call.executor = executor;
  return reinterpret_cast<firn_status (*)(const firn_rt2_call*)>(run_)(&call);
}

int LoadedObject::prepare(void* packed) const {
  void* function = dlsym(library_, "model_prepare");
  REQUIRE(function);
  firn_rt2_call call{};
  call.size = sizeof call;
  call.arena = static_cast<unsigned char*>(packed);
  call.weights = weights();
  return reinterpret_cast<firn_status (*)(const firn_rt2_call*)>(function)(&call);
}

// The emulator of a target, and the compiler of the driver with its flags.
struct Emulation {
  std::string emulator, compiler, flags;
  bool is_board = false; // whose programs run without a system
};
static Emulation emulation(const Machine& target) {
  if (target.arch == Arch::Arm && target.cpu.vector_bits > 0)
    return {"qemu-system-arm -M mps3-an547 -display none -monitor none -serial none -semihosting-config "
            "enable=on,target=native -kernel",
            "arm-none-eabi-gcc",
            " -mthumb -mcpu=cortex-m55 -mfloat-abi=hard -Wl,-Ttext-segment=0x60000000"
            " -Wl,--section-start=.vectors=0",
            /*is_board=*/true};
  if (target.arch == Arch::AArch64) return {"qemu-aarch64", "aarch64-linux-gnu-gcc", ""};
  if (target.arch == Arch::Arm)
    return {"qemu-arm -cpu max", "arm-none-eabi-gcc",
            " -mthumb -mcpu=" + target.processor +
                " -Wl,-Ttext-segment=0x20000 -mfloat-abi=" + (target.cpu.has_float ? "hard" : "soft")};
  return {"qemu-riscv64", "riscv64-linux-gnu-gcc", " -march=rv64gc -mabi=lp64d -Wl,--no-relax"};
}

static constexpr size_t kEmulatedMemory = 1 << 20; // for inputs and outputs, at whole lines of a cache

bool EmulatedObject::available(const Machine& target) {
  Emulation with = emulation(target);
  std::string emulator = with.emulator.substr(0, with.emulator.find(' '));
  return std::system(("command -v " + with.compiler + " " + emulator + " >/dev/null").c_str()) == 0;
}

EmulatedObject::EmulatedObject(const kernel::Program& program, const codegen::CodegenOptions& options) {
  auto facts = codegen::emit_object(program, options, folder_.file("model.o"));
  if (!facts) FAIL(facts.error().message);
  Emulation with = emulation(options.target);
  emulator_ = with.emulator;
  is_board_ = with.is_board;
  if (is_board_)
    with.flags +=
        " '-DINPUT_FILE=\"" + folder_.file("in") + "\"' '-DOUTPUT_FILE=\"" + folder_.file("out") + "\"'";
  shell(with.compiler + " -O1 -fomit-frame-pointer -ffreestanding -fno-builtin -nostdlib -static -no-pie" +
        with.flags + " -DMEMORY_BYTES=" + std::to_string(kEmulatedMemory) +
        " -DARENA_BYTES=" + std::to_string(std::max<int64_t>(1, program.arena_bytes)) + " -o " +
        folder_.file("model") + " " FIRN_TEST_SOURCES "/freestanding_driver.c " + folder_.file("model.o"));
}

void EmulatedObject::run(const std::vector<std::vector<char>>& inputs,
                         std::vector<std::vector<char>>& outputs) const {
  FILE* file = fopen(folder_.file("in").c_str(), "wb");
  auto word = [&](size_t n) {
    uint32_t value = static_cast<uint32_t>(n);
    fwrite(&value, 1, 4, file);
  };
  size_t memory = 0;
  for (const auto* list : {&inputs, &std::as_const(outputs)})
    for (const auto& bytes : *list) memory += (bytes.size() + 63) / 64 * 64;
  REQUIRE(memory <= kEmulatedMemory);
  word(inputs.size()), word(outputs.size());
  for (const auto& bytes : inputs) word(bytes.size());
  for (const auto& bytes : outputs) word(bytes.size());
  for (const auto& bytes : inputs) fwrite(bytes.data(), 1, bytes.size(), file);
  fclose(file);
  const std::string streams = is_board_ ? "" : " <" + folder_.file("in") + " >" + folder_.file("out");
  shell(emulator_ + " " + folder_.file("model") + streams);
  file = fopen(folder_.file("out").c_str(), "rb");
  for (auto& bytes : outputs) REQUIRE(fread(bytes.data(), 1, bytes.size(), file) == bytes.size());
  fclose(file);
}

std::string LoadedObject::disassembly() const {
  return shell("llvm-objdump-19 -d --no-show-raw-insn " + path());
}

} // namespace firn::test
