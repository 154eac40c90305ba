// Measures the cost of varying extents: one program for a range of them and a program for each run in turns,
// at the same extents. `extents_bench native` prints a table.
#include "tests/codegen/model_object.h"
#include "tests/lower/lowered_program.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <list>
#include <random>

namespace firn::test {
namespace {

using Clock = std::chrono::steady_clock;

// A module with one dim as text: the name of a symbol, or a number.
struct Case {
  const char* name;
  const char* bound;
  std::vector<int64_t> values;
  std::string (*body)(const std::string& n);
};

std::string module_of(const Case& measured, const std::string& symbol, const std::string& n) {
  return "module @bench {\n" + symbol + "  func @main" + measured.body(n) + "\n}\n";
}

std::string elements_text(const std::string& n) {
  std::string type = "f32[" + n + ",33]";
  return "(%x: " + type + ", %y: " + type + ", %b: f32[33]) -> (" + type +
         ") {\n    %r = fusion %x, %y, %b {kind = elementwise} region (%p: " + type + ", %o: " + type +
         ", %q: f32[33]) {\n      %w = broadcast_in_dim %q {dims = [1]} : " + type +
         "\n      %s = add %p, %w : " + type + "\n      %t = maximum %s, %o : " + type +
         "\n      return %t\n    } : " + type + "\n    return %r\n  }";
}

std::string flat_elements_text(const std::string& n) {
  std::string type = "f32[" + n + ",33]";
  return "(%x: " + type + ", %y: " + type + ") -> (" + type + ") {\n    %r = add %x, %y : " + type +
         "\n    return %r\n  }";
}

std::string product_text(const std::string& m) {
  std::string type = "f32[" + m + ",192]";
  return "(%x: " + type + ") -> (" + type + ") {\n    %w = " + random_constant(192 * 192, 1) +
         " : f32[192,192]\n    %r = dot %x, %w {lhs_batch = [], rhs_batch = [], lhs_contract = [1], "
         "rhs_contract = [0]} : " +
         type + "\n    return %r\n  }";
}

std::string convolution_text(const std::string& dims, const char* filter, int64_t taps, const char* window) {
  std::string type = "f32[" + dims + "]";
  std::string blocked = type + (taps > 3 ? "{0,1,2,3:1x16}" : "{0,1,2:1x16}");
  return "(%x: " + blocked + ") -> (" + blocked + ") {\n    %w = " + random_constant(64 * 64 * taps, 2) +
         " : f32[64,64," + filter + "]\n    %r = convolution %x, %w {window = " + window + "} : " + blocked +
         "\n    return %r\n  }";
}

std::string batch_text(const std::string& n) {
  return convolution_text(n + ",64,14,14", "3,3", 9, "3x3 pad 1_1x1_1");
}
std::string line_text(const std::string& n) {
  return convolution_text("1,64," + n, "3", 3, "3 pad 1_1");
}
std::string image_text(const std::string& n) {
  return convolution_text("1,64,28," + n, "3,3", 9, "3x3 pad 1_1x1_1");
}

// A program with memory of its own.
class Runner {
public:
  Runner(const std::string& text, const std::string& cpu, std::vector<size_t> extents)
      : program_(lower_text(text, cpu, firn::Winograd::Off)),
        object_(program_, options_for(target_of("", cpu))),
        arena_(static_cast<size_t>(program_.arena_bytes) / 4 + 16), extents_(std::move(extents)) {
    std::mt19937 random(1);
    for (const kernel::Buffer& buffer : program_.buffers) {
      bool io = buffer.space == kernel::Space::Input || buffer.space == kernel::Space::Output;
      if (!io) continue;
      memory_.emplace_back(static_cast<size_t>(buffer.bytes) / 4 + 16);
      for (float& value : memory_.back()) value = std::uniform_real_distribution<float>(-1, 1)(random);
      (buffer.space == kernel::Space::Input ? inputs_ : outputs_).push_back(&memory_.back());
    }
  }
  void set_extents(std::vector<size_t> extents) { extents_ = std::move(extents); }

  double seconds(int64_t repeats) {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (auto* memory : inputs_) inputs.push_back(aligned(*memory));
    for (auto* memory : outputs_) outputs.push_back(aligned(*memory));
    auto start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i)
      if (object_.run(inputs, outputs, aligned(arena_), nullptr, extents_) != 0) std::abort();
    return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(repeats);
  }

private:
  static float* aligned(std::vector<float>& memory) {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / 4;
  }

  kernel::Program program_;
  LoadedObject object_;
  std::list<std::vector<float>> memory_;
  std::vector<float> arena_;
  std::vector<std::vector<float>*> inputs_, outputs_;
  std::vector<size_t> extents_;
};

void measure(const Case& measured, const std::string& cpu) {
  Runner varying(module_of(measured, "  symbol n in " + std::string(measured.bound) + "\n", "n"), cpu, {1});
  for (int64_t value : measured.values) {
    Runner fixed(module_of(measured, "", std::to_string(value)), cpu, {});
    varying.set_extents({static_cast<size_t>(value)});
    int64_t repeats = 1;
    while (fixed.seconds(repeats) * static_cast<double>(repeats) < 3e-4) repeats *= 2;
    double min[2] = {1, 1};
    for (int round = 0; round < 60; ++round) {
      min[0] = std::min(min[0], fixed.seconds(repeats));
      min[1] = std::min(min[1], varying.seconds(repeats));
    }
    std::printf("%-28s n %5lld of %-10s fixed %9.3f us  varying %9.3f us  ratio %.3f\n", measured.name,
                static_cast<long long>(value), measured.bound, min[0] * 1e6, min[1] * 1e6, min[1] / min[0]);
    std::fflush(stdout);
  }
}

const Case cases[] = {
    {"add [n,33]", "[0, 4096]", {1, 7, 64, 500, 4096}, flat_elements_text},
    {"bias, maximum [n,33]", "[0, 4096]", {1, 7, 64, 500, 4096}, elements_text},
    {"product [n,192]x[192,192]",
     "[0, 512]",
     {1, 2, 3, 5, 8, 13, 16, 31, 64, 100, 128, 197, 512},
     product_text},
    {"convolution 3x3 [n,64,14,14]", "[0, 8]", {1, 3, 8}, batch_text},
    {"convolution 3 [1,64,n]", "[0, 512]", {7, 14, 28, 57, 100, 512}, line_text},
    {"convolution 3x3 [1,64,28,n]", "[0, 112]", {7, 14, 28, 57, 112}, image_text},
};

} // namespace

TEST_CASE("native") {
  for (const Case& measured : cases) measure(measured, "native");
}

TEST_CASE("x86-64-v3") {
  for (const Case& measured : cases) measure(measured, "x86-64-v3");
}

} // namespace firn::test
