// Strings in C.
#include "words.h"

static unsigned char arena[DEMO_WORDS_ARENA_BYTES];

int main(void) {
  static const char sentence[] = {'t', 'h', 'e', ' ', 'F', 'o', 'x'};
  demo_words words;
  const firn_text* marked;
  if (demo_words_init(&words, arena, sizeof arena) != FIRN_STATUS_OK) return 1;
  demo_words_sentence(&words)[1].data = sentence;
  demo_words_sentence(&words)[1].size = sizeof sentence;
  if (demo_words_run(&words) != FIRN_STATUS_OK) return 2;
  marked = demo_words_marked(&words);
  if (marked[0].size != 1 || marked[0].data[0] != '!') return 3;
  if (marked[1].size != 8 || memcmp(marked[1].data, "the fox!", 8) != 0) return 4;
  if (demo_words_sums(&words)[2] != 11.0f || demo_words_counts(&words)[1] != 2) return 5;
  return 0;
}
