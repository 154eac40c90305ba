// See tile_interpreter.h. Instructions by their VEX forms: map 2, opcodes 49, 4b, 5c and 5e.
#include "tests/codegen/tile_interpreter.h"

#include <atomic>
#include <cmath>
#include <cpuid.h>
#include <csignal>
#include <cstring>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace firn::test {
namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

// The tiles of one thread. Palette 1 is the only one.
struct TileState {
  bool is_configured = false;
  uint8_t rows[kTiles] = {};
  uint16_t row_bytes[kTiles] = {};
  uint8_t data[kTiles][kRows][kRowBytes] = {};
};

thread_local TileState state;
thread_local const char* fault = "";
std::atomic<int64_t> configurations, releases, loads, stores, zeroes, products;
bool is_installed = false;
struct sigaction before;

using Registers = greg_t*;

// Registers by their numbers in instructions.
constexpr int kNumbers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Decoded {
  uint8_t opcode = 0, prefix = 0; // 0: none, 1: 66, 2: f3, 3: f2
  int reg = 0, rm = 0, vvvv = 0;  // numbers of registers
  bool is_register = false;       // no memory operand
  uint8_t* base = nullptr;        // with the displacement
  int64_t index = 0;              // scaled: the stride of tile loads and stores
  bool has_sib = false;
  int length = 0;
};

// A VEX instruction of three prefix bytes in 64-bit mode; false: it is of another form.
bool decode(const uint8_t* code, Registers registers, Decoded& d) {
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false; // W 0, L 0
  int r = code[1] & 0x80 ? 0 : 8, x = code[1] & 0x40 ? 0 : 8, b = code[1] & 0x20 ? 0 : 8;
  d.vvvv = ~(code[2] >> 3) & 15;
  d.prefix = code[2] & 3;
  d.opcode = code[3];
  int mod = code[4] >> 6, rm = code[4] & 7;
  d.reg = (code[4] >> 3 & 7) + r;
  d.rm = rm + b;
  d.length = 5;
  d.is_register = mod == 3;
  if (d.is_register) return true;
  int64_t base = 0;
  bool has_base = true, is_relative = mod == 0 && rm == 5;
  if (rm == 4) {
    uint8_t sib = code[d.length++];
    d.has_sib = true;
    int index = (sib >> 3 & 7) + x;
    if (index != 4) d.index = registers[kNumbers[index]] << (sib >> 6);
    has_base = (sib & 7) != 5 || mod != 0;
    if (has_base) base = registers[kNumbers[(sib & 7) + b]];
  } else if (!is_relative) {
    base = registers[kNumbers[d.rm]];
  }
  if (mod == 1) {
    base += static_cast<int8_t>(code[d.length++]);
  } else if (mod == 2 || is_relative || !has_base) {
    int32_t displacement;
    std::memcpy(&displacement, code + d.length, 4);
    base += displacement;
    d.length += 4;
  }
  if (is_relative) base += reinterpret_cast<int64_t>(code) + d.length;
  d.base = reinterpret_cast<uint8_t*>(base);
  return true;
}

const char* configure(const uint8_t* memory) {
  uint8_t c[64];
  std::memcpy(c, memory, sizeof c);
  ++configurations;
  if (c[0] > 1) return "ldtilecfg: no such palette";
  state = TileState();
  if (c[0] == 0) return nullptr;
  if (c[1] != 0) return "ldtilecfg: it starts behind the first row";
  for (int i = 2; i < 64; ++i)
    if ((i < 16 || (i >= 32 && i < 48) || i >= 56) && c[i] != 0)
      return "ldtilecfg: reserved bytes are not zero";
  for (int tile = 0; tile < kTiles; ++tile) {
    uint16_t bytes = static_cast<uint16_t>(c[16 + 2 * tile] | c[17 + 2 * tile] << 8);
    uint8_t rows = c[48 + tile];
    if (bytes > kRowBytes || rows > kRows || (bytes == 0) != (rows == 0)) return "ldtilecfg: no such tile";
    state.row_bytes[tile] = bytes;
    state.rows[tile] = rows;
  }
  state.is_configured = true;
  return nullptr;
}

const char* check_tile(int tile) {
  if (tile >= kTiles) return "there are eight tiles";
  if (!state.is_configured) return "no tiles are configured";
  return state.rows[tile] == 0 ? "this tile is not configured" : nullptr;
}

// Rows and bytes beyond the configuration's become zeros.
const char* load(const Decoded& d) {
  if (const char* wrong = check_tile(d.reg)) return wrong;
  ++loads;
  uint8_t loaded[kRows][kRowBytes] = {};
  for (int row = 0; row < state.rows[d.reg]; ++row)
    std::memcpy(loaded[row], d.base + row * d.index, state.row_bytes[d.reg]);
  std::memcpy(state.data[d.reg], loaded, sizeof loaded);
  return nullptr;
}

const char* store(const Decoded& d) {
  if (const char* wrong = check_tile(d.reg)) return wrong;
  ++stores;
  for (int row = 0; row < state.rows[d.reg]; ++row)
    std::memcpy(d.base + row * d.index, state.data[d.reg][row], state.row_bytes[d.reg]);
  return nullptr;
}

template <class T> T element(int tile, int row, int number) {
  T value;
  std::memcpy(&value, &state.data[tile][row][number * static_cast<int>(sizeof value)], sizeof value);
  return value;
}

void multiply_bytes(int sums, int lhs, int rhs, bool lhs_signed, bool rhs_signed) {
  auto byte = [](int tile, int row, int number, bool is_signed) {
    uint8_t value = element<uint8_t>(tile, row, number);
    return is_signed ? static_cast<int8_t>(value) : static_cast<int>(value);
  };
  for (int m = 0; m < state.rows[sums]; ++m)
    for (int k = 0; k < state.row_bytes[lhs] / 4; ++k)
      for (int n = 0; n < state.row_bytes[sums] / 4; ++n) {
        auto sum = element<uint32_t>(sums, m, n);
        for (int i = 0; i < 4; ++i)
          sum += static_cast<uint32_t>(byte(lhs, m, 4 * k + i, lhs_signed) *
                                       byte(rhs, k, 4 * n + i, rhs_signed));
        std::memcpy(&state.data[sums][m][4 * n], &sum, 4);
      }
}

// Subnormal operands and results are zeros.
float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}
float bf16(int tile, int row, int number) {
  uint32_t bits = static_cast<uint32_t>(element<uint16_t>(tile, row, number)) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return flushed(value);
}

// Even and odd steps are summed apart; then the two sums are added, and their total is added to `sums`.
void multiply_bf16(int sums, int lhs, int rhs) {
  for (int m = 0; m < state.rows[sums]; ++m)
    for (int n = 0; n < state.row_bytes[sums] / 4; ++n) {
      float parts[2] = {0, 0};
      for (int k = 0; k < state.row_bytes[lhs] / 4; ++k)
        for (int i = 0; i < 2; ++i)
          parts[i] = flushed(std::fma(bf16(lhs, m, 2 * k + i), bf16(rhs, k, 2 * n + i), parts[i]));
      float sum = flushed(flushed(element<float>(sums, m, n)) + flushed(parts[0] + parts[1]));
      std::memcpy(&state.data[sums][m][4 * n], &sum, 4);
    }
}

const char* multiply(const Decoded& d) {
  int sums = d.reg, lhs = d.rm, rhs = d.vvvv;
  for (int tile : {sums, lhs, rhs})
    if (const char* wrong = check_tile(tile)) return wrong;
  if (sums == lhs || sums == rhs || lhs == rhs) return "a product of fewer than three tiles";
  if (state.row_bytes[sums] % 4 != 0 || state.row_bytes[lhs] % 4 != 0 || state.row_bytes[rhs] % 4 != 0)
    return "a product of parts of words";
  if (state.rows[sums] != state.rows[lhs] || state.row_bytes[lhs] != 4 * state.rows[rhs] ||
      state.row_bytes[sums] != state.row_bytes[rhs])
    return "a product of tiles that do not fit";
  ++products;
  if (d.opcode == 0x5c)
    multiply_bf16(sums, lhs, rhs);
  else // bssd f2, bsud f3, busd 66, buud none
    multiply_bytes(sums, lhs, rhs, (d.prefix & 2) != 0, (d.prefix & 1) != 0);
  for (int row = state.rows[sums]; row < kRows; ++row) std::memset(state.data[sums][row], 0, kRowBytes);
  return nullptr;
}

enum Prefix : uint8_t { None = 0, P66 = 1, Pf3 = 2, Pf2 = 3 };

// False: it is no tile instruction.
bool interpret(const Decoded& d, const char*& wrong) {
  wrong = nullptr;
  switch (d.opcode) {
  case 0x49:
    if (d.vvvv != 0) return false;
    if (d.prefix == None && !d.is_register) return wrong = configure(d.base), true;
    if (d.prefix == None && d.reg == 0 && d.rm == 0) return state = TileState(), ++releases, true;
    if (d.prefix != Pf2 || !d.is_register || d.rm != 0) return false;
    wrong = check_tile(d.reg);
    if (!wrong) std::memset(state.data[d.reg], 0, sizeof state.data[d.reg]), ++zeroes;
    return true;
  case 0x4b: // the hint of tileloaddt1 changes nothing
    if (!d.has_sib || d.vvvv != 0 || d.prefix == None) return false;
    return wrong = d.prefix == Pf3 ? store(d) : load(d), true;
  case 0x5c:
    if (!d.is_register || d.prefix != Pf3) return false;
    return wrong = multiply(d), true;
  case 0x5e:
    if (!d.is_register) return false;
    return wrong = multiply(d), true;
  default: return false;
  }
}

void handle(int, siginfo_t*, void* raw) {
  Registers registers = static_cast<ucontext_t*>(raw)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  Decoded decoded;
  const char* wrong = nullptr;
  if (!decode(code, registers, decoded) || !interpret(decoded, wrong)) {
    sigaction(SIGILL, &before, nullptr); // the former handler gets the signal
    return;
  }
  if (wrong) {
    fault = wrong;
    raise(SIGSEGV);
    return;
  }
  registers[REG_RIP] += decoded.length;
}

bool cpu_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTile = 1U << 24, kInt8 = 1U << 25, kBf16 = 1U << 22;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (kTile | kInt8 | kBf16)) == (kTile | kInt8 | kBf16);
}

} // namespace

void interpret_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool is_native =
      cpu_has_tiles() && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  struct sigaction action = {};
  if (is_native || (sigaction(SIGILL, nullptr, &action) == 0 && action.sa_sigaction == handle)) return;
  action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, &before);
  is_installed = true;
}

bool tiles_are_interpreted() {
  return is_installed;
}

TileCounts take_tile_counts() {
  return {configurations.exchange(0), releases.exchange(0), loads.exchange(0),
          stores.exchange(0),         zeroes.exchange(0),   products.exchange(0)};
}

std::string take_tile_fault() {
  std::string text = fault;
  fault = "";
  return text;
}

bool has_tile_configuration() {
  return state.is_configured;
}

} // namespace firn::test
