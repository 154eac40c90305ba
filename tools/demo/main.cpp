// The digits demo: draws digits with random strokes, shows them as text, lets the compiled network read them,
// and tells what that costs. The network is vision::Digits, compiled from models/digits/model.onnx by the
// build.
#include "digits_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <firn/owned.h>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kSize = 28;
constexpr double kPi = 3.14159265358979;

struct Point {
  double x, y; // in the unit square, y down
};
using Stroke = std::vector<Point>;

Stroke arc(double cx, double cy, double rx, double ry, double start, double end, int steps = 12) {
  Stroke points;
  for (int i = 0; i < steps; ++i) {
    double angle = (start + (end - start) * i / (steps - 1)) * kPi / 180;
    points.push_back({cx + rx * std::cos(angle), cy + ry * std::sin(angle)});
  }
  return points;
}

Stroke join(Stroke first, const Stroke& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Stroke> strokes_of(int digit) {
  switch (digit) {
  case 0: return {arc(.5, .5, .28, .40, 0, 360, 16)};
  case 1: return {{{.32, .28}, {.54, .10}, {.54, .90}}};
  case 2: return {join(arc(.5, .32, .26, .22, -170, 40), {{.24, .88}, {.80, .88}})};
  case 3: return {join(arc(.46, .30, .26, .20, -150, 90), arc(.46, .70, .30, .20, -90, 150))};
  case 4: return {{{.62, .90}, {.62, .10}, {.20, .64}, {.84, .64}}};
  case 5: return {join({{.76, .12}, {.32, .12}, {.29, .46}}, arc(.47, .66, .27, .23, -130, 150))};
  case 6: return {join({{.68, .10}, {.36, .44}}, arc(.50, .68, .23, .22, -160, 200, 14))};
  case 7: return {{{.20, .12}, {.80, .12}, {.42, .90}}};
  case 8: return {arc(.5, .30, .20, .20, 0, 360), arc(.5, .70, .26, .21, 0, 360, 14)};
  default: return {arc(.52, .32, .23, .22, 0, 360, 14), {{.75, .32}, {.66, .90}}};
  }
}

double distance_to(Point p, Point a, Point b) {
  double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  double along = length > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

// Ink in [0, 1] for every pixel: the strokes under random turn, shear, scale, shift and wobble, with some
// noise.
std::vector<float> draw(int digit, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  double turn = .12 * normal(random), shear = .18 * normal(random);
  double sx = .72 + .28 * uniform(random), sy = .72 + .28 * uniform(random);
  double ox = .5 + .04 * normal(random), oy = .5 + .04 * normal(random),
         thickness = .035 + .04 * uniform(random);
  std::vector<Stroke> strokes = strokes_of(digit);
  for (Stroke& stroke : strokes)
    for (Point& point : stroke) {
      double x = (point.x - .5 + .012 * normal(random)) * sx, y = (point.y - .5 + .012 * normal(random)) * sy;
      x -= shear * y;
      point = {std::cos(turn) * x - std::sin(turn) * y + ox, std::sin(turn) * x + std::cos(turn) * y + oy};
    }
  std::vector<float> picture;
  for (int y = 0; y < kSize; ++y)
    for (int x = 0; x < kSize; ++x) {
      double nearest = 9;
      for (const Stroke& stroke : strokes)
        for (size_t i = 0; i + 1 < stroke.size(); ++i)
          nearest =
              std::min(nearest, distance_to({(x + .5) / kSize, (y + .5) / kSize}, stroke[i], stroke[i + 1]));
      double ink = std::clamp((thickness - nearest) * kSize + .5, 0.0, 1.0) + .05 * normal(random);
      picture.push_back(static_cast<float>(std::clamp(ink, 0.0, 1.0)));
    }
  return picture;
}

// Two pixel rows per text line, and beside them the guesses with bars.
void show(const std::vector<float>& picture, const float* probabilities) {
  static const char* const kShades[] = {" ", ".", "o", "#"};
  for (int y = 0; y < kSize; y += 2) {
    std::string line = "  ";
    for (int x = 0; x < kSize; ++x) {
      float ink = (picture[size_t(y * kSize + x)] + picture[size_t((y + 1) * kSize + x)]) / 2;
      line += kShades[std::min(3, int(ink * 4))];
    }
    int digit = y / 2 - 2;
    if (digit >= 0 && digit < 10) {
      float p = probabilities[digit];
      char text[32];
      std::snprintf(text, sizeof text, "   %d %5.1f %% ", digit, double(p) * 100);
      line += text + std::string(size_t(p * 30 + .5f), '=');
    }
    std::puts(line.c_str());
  }
}

// Microseconds of one run, the median of many.
double time_runs(vision::Digits& model) {
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    auto start = std::chrono::steady_clock::now();
    (void)model.run();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 1000, times.end());
  return times[1000];
}

} // namespace

int main() {
  firn::Owned<vision::Digits> digits;
  std::mt19937 random(std::random_device{}());
  int right = 0;
  const int asked[] = {3, 8, 5};
  for (int digit : asked) {
    std::vector<float> picture = draw(digit, random);
    auto image = digits->image();
    for (int y = 0; y < kSize; ++y)
      for (int x = 0; x < kSize; ++x) image(0, 0, y, x) = picture[size_t(y * kSize + x)];
    if (firn::Status status = digits->run(); !status) {
      std::fprintf(stderr, "%s\n", status.message());
      return 1;
    }
    auto probabilities = digits->probabilities();
    size_t guess = firn::argmax(probabilities);
    right += int(guess) == digit;
    show(picture, probabilities.data());
    std::printf("  drawn: %d   read: %zu\n\n", digit, guess);
  }
  std::printf("%d of 3 drawings read rightly.\n", right);
  std::printf("weights %zu B, arena %zu B, stack %zu B, %.1f us per run\n", vision::Digits::weight_bytes,
              vision::Digits::arena_bytes, vision::Digits::stack_bytes, time_runs(*digits));
  std::puts(
      "Read next: tools/demo/CMakeLists.txt, then compiler/driver/compile.cpp, the map of the compiler.");
  return 0;
}
