// SHA-256 after FIPS 180-4, by the CPU's own instructions where it has them.
#include "compiler/support/sha256.h"

#include "compiler/support/run_parallel.h"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#define FIRN_HAS_SHA_INSTRUCTIONS 1
#endif

namespace firn {
namespace {

constexpr size_t kBlock = 64; // bytes

alignas(16) constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

void add_block(std::array<uint32_t, 8>& state, const uint8_t* block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 | uint32_t(block[4 * i + 2]) << 8 |
           block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t t1 =
        h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t sums[] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += sums[i];
}

#ifdef FIRN_HAS_SHA_INSTRUCTIONS
bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSsse3 = 1u << 9, kSse41 = 1u << 19, kSha = 1u << 29;
  bool has_vectors = __get_cpuid(1, &a, &b, &c, &d) && (c & kSsse3) && (c & kSse41);
  return has_vectors && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kSha);
}

// The instructions keep the state as the words a, b, e, f and c, d, g, h, and take four rounds at a time, for
// which they make the words of the schedule out of the last sixteen.
__attribute__((target("sha,sse4.1,ssse3"))) void
add_blocks_by_instructions(std::array<uint32_t, 8>& state, const uint8_t* data, size_t count) {
  const __m128i bytes_reversed = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  auto* words = reinterpret_cast<__m128i*>(state.data());
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1),
                hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  for (; count > 0; --count, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (size_t i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i), bytes_reversed);
    for (size_t i = 0; i < 16; ++i) {
      __m128i &now = w[i % 4], last = w[(i + 3) % 4];
      if (i >= 4) {
        __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]),
                                    _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(sum, last);
      }
      const auto* round = reinterpret_cast<const __m128i*>(kRound.data()) + i;
      __m128i added = _mm_add_epi32(now, _mm_load_si128(round));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}
#endif

void add_blocks(std::array<uint32_t, 8>& state, const uint8_t* data, size_t count) {
#ifdef FIRN_HAS_SHA_INSTRUCTIONS
  static const bool by_instructions = has_sha_instructions();
  if (by_instructions) return add_blocks_by_instructions(state, data, count);
#endif
  for (; count > 0; --count, data += 64) add_block(state, data);
}

} // namespace

Sha256::Sha256()
    : state_(
          {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}) {}

void Sha256::add(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t size = bytes.size();
  bytes_ += size;
  if (rest_bytes_ > 0) {
    const size_t taken = std::min(size, kBlock - rest_bytes_);
    if (taken > 0) std::memcpy(rest_.data() + rest_bytes_, data, taken);
    rest_bytes_ += taken, data += taken, size -= taken;
    if (rest_bytes_ < kBlock) return;
    add_blocks(state_, rest_.data(), 1);
  }
  add_blocks(state_, data, size / kBlock);
  rest_bytes_ = size % kBlock;
  if (rest_bytes_ > 0) std::memcpy(rest_.data(), data + size - rest_bytes_, rest_bytes_);
}

std::string Sha256::hex() {
  std::fill(rest_.begin() + static_cast<ptrdiff_t>(rest_bytes_), rest_.end(), uint8_t{0});
  rest_[rest_bytes_] = 0x80;
  const size_t size = rest_bytes_ < kBlock - 8 ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i) rest_[size - 1 - i] = static_cast<uint8_t>(bytes_ * 8 >> (8 * i));
  add_blocks(state_, rest_.data(), size / kBlock);
  std::string hex;
  for (uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
  return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 sha;
  sha.add(bytes);
  return sha.hex();
}

std::string sha256_tree_hex(std::span<const std::byte> bytes) {
  constexpr size_t kPiece = size_t{4} << 20;
  std::vector<std::string> digests((bytes.size() + kPiece - 1) / kPiece);
  run_parallel(digests.size(), 0, [&](size_t i) {
    digests[i] = sha256_hex(bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece)));
  });
  std::string all = std::to_string(bytes.size());
  for (const std::string& digest : digests) all += digest;
  return sha256_hex(std::as_bytes(std::span(all)));
}

} // namespace firn
