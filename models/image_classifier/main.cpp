// Says which digit a picture shows: image_classifier PICTURE.ppm, a binary PPM of any size, dark ink on a
// light ground.
#include "digits.h"

#include <cstdint>
#include <cstdio>
#include <firn/owned.h>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

struct Picture {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels; // red, green and blue of each, row by row
};

// A number of the header, which may have comments before it.
std::size_t read_number(std::istream& file) {
  while ((file >> std::ws).peek() == '#') file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  std::size_t number = 0;
  file >> number;
  return number;
}

bool read_ppm(const char* name, Picture& picture) {
  std::ifstream file(name, std::ios::binary);
  std::string magic(2, ' ');
  file.read(magic.data(), 2);
  picture.width = read_number(file);
  picture.height = read_number(file);
  const std::size_t largest = read_number(file);
  file.ignore(1);
  if (!file || magic != "P6" || largest != 255 || picture.width < 28 || picture.height < 28 ||
      picture.width > 1 << 14 || picture.height > 1 << 14)
    return false;
  picture.pixels.resize(3 * picture.width * picture.height);
  file.read(reinterpret_cast<char*>(picture.pixels.data()),
            static_cast<std::streamsize>(picture.pixels.size()));
  return static_cast<bool>(file);
}

// Darkness from 0 to 1, averaged over the part of the picture that becomes the pixel (x, y) of 28 x 28.
float ink_at(const Picture& picture, std::size_t x, std::size_t y) {
  unsigned long long sum = 0, count = 0;
  for (std::size_t row = y * picture.height / 28; row < (y + 1) * picture.height / 28; ++row)
    for (std::size_t column = x * picture.width / 28; column < (x + 1) * picture.width / 28; ++column)
      for (std::size_t color = 0; color < 3; ++color, ++count)
        sum += picture.pixels[3 * (row * picture.width + column) + color];
  return 1.0f - static_cast<float>(sum) / (255.0f * static_cast<float>(count));
}

} // namespace

int main(int argc, char** argv) {
  Picture picture;
  if (argc != 2 || !read_ppm(argv[1], picture)) {
    std::fprintf(stderr, "usage: image_classifier PICTURE.ppm, a binary PPM of at least 28 x 28 pixels\n");
    return 2;
  }
  firn::Owned<vision::Digits> digits;
  if (firn::Status status = digits->status(); !status) { // no memory, or not this CPU
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
  auto image = digits->image(); // firn::View<float, 1, 1, 28, 28>
  for (std::size_t y = 0; y < 28; ++y)
    for (std::size_t x = 0; x < 28; ++x) image(0, 0, y, x) = ink_at(picture, x, y);
  if (firn::Status status = digits->run(); !status) {
    std::fprintf(stderr, "%s\n", status.message());
    return 1;
  }
  auto probabilities = digits->probabilities(); // firn::View<const float, 1, 10>
  const std::size_t digit = firn::argmax(probabilities);
  std::printf("%zu (%.1f %%)\n", digit, 100.0 * static_cast<double>(probabilities(0, digit)));
  return 0;
}
