// Finds the sentences nearest to a question: text_encoder QUESTION. One instance of the network encodes all
// texts.
#include "encoder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <firn/owned.h>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kSentences[] = {
    "the cat sat on the mat",
    "compile the network ahead of time",
    "a quick brown fox jumps over the lazy dog",
    "the arena holds everything that a run needs",
    "weights are shared by all instances",
};

using Vector = std::array<float, nlp::Encoder::Outputs::at<0>().size()>;

// The unit vector of a text, of which 128 bytes count.
bool encode(nlp::Encoder& encoder, std::string_view text, Vector& vector) {
  auto bytes = encoder.text(); // firn::View<uint8_t, 1, 128>
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::copy_n(text.begin(), std::min(text.size(), bytes.size()), bytes.begin());
  if (firn::Status status = encoder.run(); !status) {
    std::fprintf(stderr, "%s\n", status.message());
    return false;
  }
  auto result = encoder.embedding(); // valid until the next run: copied
  std::copy(result.begin(), result.end(), vector.begin());
  return true;
}

// The cosine of the angle between two unit vectors.
float similarity(const Vector& a, const Vector& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: text_encoder QUESTION\n");
    return 2;
  }
  firn::Owned<nlp::Encoder> encoder;
  if (firn::Status status = encoder->status(); !status) { // no memory, or not this CPU
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
  Vector question, vector;
  if (!encode(*encoder, argv[1], question)) return 1;
  std::vector<std::pair<float, std::string_view>> ranking;
  for (std::string_view sentence : kSentences) {
    if (!encode(*encoder, sentence, vector)) return 1;
    ranking.emplace_back(similarity(question, vector), sentence);
  }
  std::sort(ranking.rbegin(), ranking.rend());
  for (const auto& [score, sentence] : ranking)
    std::printf("%.2f %.*s\n", static_cast<double>(score), static_cast<int>(sentence.size()),
                sentence.data());
  return 0;
}
