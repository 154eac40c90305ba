// Kernels that nvcc and LLVM wrote, against plain C++; and each barrier or wait taken out of them has to be
// found.
#include "compiler/ptx/module.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <ctime>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

namespace firn::ptx {
namespace {

std::string read_text(const std::string& name) {
  std::ifstream file(std::string(PTX_TEST_FOLDER) + "/kernels/" + name + ".ptx");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
  return values;
}

// One kernel with its data: runs a text of PTX and returns the error, empty if the results are right.
using Run = std::function<std::string(const std::string& text, const Options& options)>;

std::string compare(const std::vector<float>& found, const std::vector<float>& wanted, float tolerance) {
  float largest = 0, difference = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::fabs(wanted[i]));
    if (!(std::fabs(found[i] - wanted[i]) <= difference)) difference = std::fabs(found[i] - wanted[i]);
  }
  return difference <= tolerance * largest ? "" : "wrong: differs by " + std::to_string(difference);
}

Statistics last;

std::string start(const std::string& text, const std::string& kernel, Dim3 grid, Dim3 block,
                  const Arguments& arguments, Memory& memory, const Options& options) {
  auto module = parse(text);
  if (!module) return module.error().message;
  auto done = launch(*module, kernel, grid, block, 0, arguments, memory, options);
  if (done) last = *done;
  return done ? "" : done.error().message;
}

std::string run_block_sum(const std::string& text, const Options& options) {
  constexpr int kRows = 3, kColumns = 700;
  auto in = random_floats(kRows * kColumns, 1);
  Memory memory;
  uint64_t a = memory.allocate("in", in), out = memory.allocate("out", kRows * 4);
  auto error = start(text, "block_sum", {kRows, 1, 1}, {256, 1, 1}, Arguments().add(a).add(out).add(kColumns),
                     memory, options);
  std::vector<float> wanted(kRows);
  for (int i = 0; i < kRows * kColumns; ++i)
    wanted[static_cast<size_t>(i / kColumns)] += in[static_cast<size_t>(i)];
  return error.empty() ? compare(memory.read<float>(out, kRows), wanted, 1e-5f) : error;
}

std::string run_transpose(const std::string& text, const Options& options) {
  constexpr int kRows = 70, kColumns = 45;
  auto in = random_floats(kRows * kColumns, 2);
  Memory memory;
  uint64_t a = memory.allocate("in", in), out = memory.allocate("out", in.size() * 4);
  auto error = start(text, "transpose", {2, 3, 1}, {32, 8, 1},
                     Arguments().add(a).add(out).add(kRows).add(kColumns), memory, options);
  std::vector<float> wanted(in.size());
  for (int y = 0; y < kRows; ++y)
    for (int x = 0; x < kColumns; ++x)
      wanted[static_cast<size_t>(x * kRows + y)] = in[static_cast<size_t>(y * kColumns + x)];
  return error.empty() ? compare(memory.read<float>(out, in.size()), wanted, 0) : error;
}

std::string run_softmax(const std::string& text, const Options& options) {
  constexpr int kRows = 2, kColumns = 300;
  auto in = random_floats(kRows * kColumns, 3);
  Memory memory;
  uint64_t a = memory.allocate("in", in), out = memory.allocate("out", in.size() * 4);
  auto error = start(text, "softmax", {kRows, 1, 1}, {128, 1, 1}, Arguments().add(a).add(out).add(kColumns),
                     memory, options);
  std::vector<float> wanted(in.size());
  for (size_t row = 0; row < kRows; ++row) {
    double total = 0;
    for (size_t i = 0; i < kColumns; ++i) total += std::exp(double{in[row * kColumns + i]});
    for (size_t i = 0; i < kColumns; ++i)
      wanted[row * kColumns + i] = static_cast<float>(std::exp(double{in[row * kColumns + i]}) / total);
  }
  return error.empty() ? compare(memory.read<float>(out, in.size()), wanted, 1e-5f) : error;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, size_t n) {
  std::vector<float> c(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += double{a[i * n + k]} * b[k * n + j];
      c[i * n + j] = static_cast<float>(sum);
    }
  return c;
}

std::string run_gemm(const std::string& text, const Options& options) {
  constexpr int n = 64;
  auto a = random_floats(n * n, 4), b = random_floats(n * n, 5);
  Memory memory;
  uint64_t pa = memory.allocate("a", a), pb = memory.allocate("b", b),
           pc = memory.allocate("c", a.size() * 4);
  auto error = start(text, "gemm", {n / 32, n / 32, 1}, {64, 1, 1},
                     Arguments().add(pa).add(pb).add(pc).add(n), memory, options);
  return error.empty() ? compare(memory.read<float>(pc, a.size()), product(a, b, n), 1e-5f) : error;
}

std::string run_mma_gemm(const std::string& text, const Options& options) {
  constexpr int n = 96; // one turn of the loop that nvcc unrolls by four, and a remainder
  std::vector<float> a(n * n), b(n * n);
  std::vector<uint16_t> ha(n * n), hb(n * n);
  // Small integers are exact in f16; 1024 + i has the bits 0x6400 + i, which makes the test free of
  // conversions.
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(1024 + i * 7 % 13);
    b[i] = static_cast<float>(1024 + i * 5 % 11);
    ha[i] = static_cast<uint16_t>(0x6400 + i * 7 % 13);
    hb[i] = static_cast<uint16_t>(0x6400 + i * 5 % 11);
  }
  Memory memory;
  uint64_t pa = memory.allocate("a", ha), pb = memory.allocate("b", hb),
           pc = memory.allocate("c", a.size() * 4);
  auto error = start(text, "mma_gemm", {n / 8, n / 16, 1}, {32, 1, 1},
                     Arguments().add(pa).add(pb).add(pc).add(n), memory, options);
  return error.empty() ? compare(memory.read<float>(pc, a.size()), product(a, b, n), 1e-6f) : error;
}

struct Case {
  const char* name;
  Run run;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {{"block_sum", run_block_sum}, {"transpose", run_transpose},
                                         {"softmax", run_softmax},     {"gemm", run_gemm},
                                         {"mma_gemm", run_mma_gemm},   {"llvm_block_sum", run_block_sum}};
  return list;
}

// Lines of barriers, waits and warp barriers.
std::vector<size_t> synchronisations(const std::vector<std::string>& lines) {
  std::vector<size_t> found;
  for (size_t i = 0; i < lines.size(); ++i)
    for (const char* word : {"bar.sync", "cp.async.wait", "barrier.sync"})
      if (lines[i].find(word) != std::string::npos) found.push_back(i);
  return found;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

} // namespace

TEST_CASE("kernels compute what C++ does, in any order and at both moments of copies") {
  for (const Case& c : cases())
    for (uint64_t seed : {0, 1, 2, 3})
      for (auto copies : {Options::Copies::Earliest, Options::Copies::Latest}) {
        Options options;
        options.seed = seed;
        options.copies = copies;
        INFO(c.name << ", seed " << seed);
        CHECK(c.run(read_text(c.name), options) == "");
      }
}

TEST_CASE("a barrier or a wait taken out is found") {
  size_t found = 0;
  for (const Case& c : cases()) {
    auto lines = split(read_text(c.name));
    for (size_t line : synchronisations(lines)) {
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i) text += (i == line ? "" : lines[i]) + "\n";
      std::string error = c.run(text, {});
      INFO(c.name << " without line " << line + 1 << ": " << lines[line]);
      CHECK(error != "");
      CHECK(error.find("line ") != std::string::npos);
      ++found;
    }
  }
  CHECK(found >= 14);
}

TEST_CASE("statistics count instructions, bytes, conflicts and sectors") {
  REQUIRE(run_transpose(read_text("transpose"), {}) == "");
  CHECK(last.barriers == 6);
  CHECK(last.global_bytes_read == 70 * 45 * 4);
  CHECK(last.global_bytes_written == 70 * 45 * 4);
  CHECK(last.shared_bytes_read == last.shared_bytes_written);
  CHECK(last.bank_conflicts == 0); // the tile is padded to 33 columns
  REQUIRE(run_gemm(read_text("gemm"), {}) == "");
  CHECK(last.async_bytes == 4 * 4 * (32 * 16 + 16 * 32) * 4); // 4 blocks, 4 steps along k
  CHECK(last.lane_instructions[static_cast<size_t>(1)] >= 64 * 64 * 64);
}

TEST_CASE("speed", "[.speed]") {
  constexpr int n = 192;
  auto module = parse(read_text("gemm"));
  REQUIRE(module);
  auto a = random_floats(n * n, 4);
  for (bool check_races : {true, false}) {
    Memory memory;
    uint64_t in = memory.allocate("a", a), out = memory.allocate("c", a.size() * 4);
    Options options;
    options.check_races = check_races;
    std::clock_t begin = std::clock();
    auto done = launch(*module, "gemm", {n / 32, n / 32, 1}, {64, 1, 1}, 0,
                       Arguments().add(in).add(in).add(out).add(n), memory, options);
    REQUIRE(done);
    double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    WARN(static_cast<double>(done->lanes()) / seconds / 1e6 << " million lane instructions per CPU second"
                                                            << (check_races ? ", races checked" : ""));
  }
}

} // namespace firn::ptx
