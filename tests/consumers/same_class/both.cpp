// Which of the two classes is meant cannot be told.
#include FIRST
#include SECOND

std::size_t bytes() {
  return demo::Affine::arena_bytes;
}
