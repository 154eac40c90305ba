// Takes noise from sound, block by block as it would come from a microphone. Without arguments: plays itself
// a melody under noise and says by how much that became cleaner. With -: mono 16-bit samples at 16 kHz from
// standard input to output.
#include "denoiser_model.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kFrame = 64; // 4 ms

// All memory of the network and its state. Nothing is allocated, and run() makes no system call: fit for an
// audio thread.
audio::Denoiser::Arena arena;

bool clean(audio::Denoiser& denoiser, float* samples) {
  std::memcpy(denoiser.frame().data(), samples, kFrame * sizeof(float));
  if (firn::Status status = denoiser.run(); !status) {
    std::fprintf(stderr, "%s\n", status.message());
    return false;
  }
  std::memcpy(samples, denoiser.clean().data(), kFrame * sizeof(float)); // of the frame before
  return true;
}

int filter(audio::Denoiser& denoiser) {
  std::int16_t block[kFrame] = {};
  float samples[kFrame];
  while (std::size_t count = std::fread(block, sizeof *block, kFrame, stdin)) {
    for (std::size_t i = 0; i < kFrame; ++i)
      samples[i] = i < count ? static_cast<float>(block[i]) / 32768 : 0.0f;
    if (!clean(denoiser, samples)) return 1;
    for (std::size_t i = 0; i < kFrame; ++i)
      block[i] = static_cast<std::int16_t>(std::fmin(std::fmax(samples[i] * 32768, -32768.0f), 32767.0f));
    if (std::fwrite(block, sizeof *block, count, stdout) != count) return 1;
  }
  return 0;
}

double melody(std::size_t sample) {
  constexpr double pitches[] = {440, 554, 659, 880, 659, 554};
  const double pi = std::acos(-1.0), time = static_cast<double>(sample) / 16000, beat = std::fmod(time, 0.25);
  const double phase = 2 * pi * pitches[sample / 4000 % 6] * beat;
  return 0.5 * std::fmin(beat / 0.01, 1) * std::exp(-8 * beat) *
         (std::sin(phase) + 0.4 * std::sin(2 * phase));
}

int demonstrate(audio::Denoiser& denoiser) {
  std::mt19937 random;
  std::normal_distribution<double> noise(0, 0.05);
  double signal = 0, noise_before = 0, noise_after = 0;
  float samples[kFrame];
  for (std::size_t start = 0; start < 3 * 16000; start += kFrame) {
    for (std::size_t i = 0; i < kFrame; ++i) {
      const double added = noise(random), truth = melody(start + i);
      samples[i] = static_cast<float>(truth + added);
      signal += truth * truth;
      noise_before += added * added;
    }
    if (!clean(denoiser, samples)) return 1;
    for (std::size_t i = 0; i < kFrame && start > 0; ++i)
      noise_after += std::pow(static_cast<double>(samples[i]) - melody(start - kFrame + i), 2);
  }
  const double before = 10 * std::log10(signal / noise_before), after = 10 * std::log10(signal / noise_after);
  std::printf("signal to noise: %.1f dB before, %.1f dB after\n", before, after);
  return after > before + 5 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  audio::Denoiser denoiser(arena);
  if (firn::Status status = denoiser.status(); !status) { // not this CPU
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
  return argc == 2 && std::strcmp(argv[1], "-") == 0 ? filter(denoiser) : demonstrate(denoiser);
}
