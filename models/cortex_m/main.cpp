// Reads a digit without an operating system: the arena is a static object, the weights stay in flash, nothing
// is allocated.
#include "digits.h"
#include "picture.h"

extern "C" void print(const char* text); // startup.c

namespace {

vision::Digits::Arena arena; // all RAM that the model needs, but for stack_bytes of stack

} // namespace

int main() {
  static_assert(vision::Digits::arena_bytes + vision::Digits::stack_bytes <= 20 * 1024);
  vision::Digits digits(arena);
  if (firn::Status status = digits.status(); !status) {
    print(status.message());
    return 1;
  }
  float* ink = digits.image().data();
  for (std::uint8_t pixel : kPicture) *ink++ = static_cast<float>(pixel) / 255.0f;
  if (firn::Status status = digits.run(); !status) {
    print(status.message());
    return 1;
  }
  char text[] = "this is a ?\n";
  text[10] = static_cast<char>('0' + firn::argmax(digits.probabilities()));
  print(text);
  return 0;
}
