/* Pictures of digits of seven strokes, 28 x 28, drawn with noise, for programs in C and C++. */
#ifndef DRAWN_DIGITS_H
#define DRAWN_DIGITS_H

#include <stdint.h>

enum { kSize = 28 };

static uint32_t drawn_seed = 1;

static inline float drawn(void) { /* from 0 to 1 */
  drawn_seed = drawn_seed * 1664525U + 1013904223U;
  return (float)(drawn_seed >> 8) / 16777216.0F;
}

static inline void draw(int digit, float* picture) {
  /* The strokes of a digit, a bit each: top, upper left, upper right, middle, lower left, lower right, bottom. */
  static const unsigned strokes[10] = {0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f};
  /* Rectangles of strokes in a box of 12 x 20: column, row, width, height. */
  static const int boxes[7][4] = {{0, 0, 12, 2},  {0, 0, 2, 10},   {10, 0, 2, 10}, {0, 9, 12, 2},
                                  {0, 10, 2, 10}, {10, 10, 2, 10}, {0, 18, 12, 2}};
  int i, left, top, stroke, x, y;
  float ink;
  for (i = 0; i < kSize * kSize; ++i) picture[i] = 0.2F * drawn();
  left = 4 + (int)(8 * drawn());
  top = 1 + (int)(6 * drawn());
  ink = 0.7F + 0.3F * drawn();
  for (stroke = 0; stroke < 7; ++stroke) {
    const int* box = boxes[stroke];
    if (!(strokes[digit] >> stroke & 1U)) continue;
    for (y = top + box[1]; y < top + box[1] + box[3]; ++y)
      for (x = left + box[0]; x < left + box[0] + box[2]; ++x) picture[y * kSize + x] = ink;
  }
}

#endif
