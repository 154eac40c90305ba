// EXPECT(condition): prints the failing line and counts it; main returns `failures`.
#ifndef FIRN_TESTS_EXPECT_H
#define FIRN_TESTS_EXPECT_H

#include <stdio.h>

static int failures = 0;

#define EXPECT(condition)                                                                                    \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                       \
      ++failures;                                                                                            \
    }                                                                                                        \
  } while (0)

#endif
