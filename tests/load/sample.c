/* An object with code, constants, variables, unwinding tables and calls to the outside. */
#include <stddef.h>
#include <string.h>

int sample_outside(int value);

static const int squares[8] = {0, 1, 4, 9, 16, 25, 36, 49};
static int first_count = 100;
int sample_zeros[16];

int sample_add(int a, int b) {
  return a + b;
}

int sample_square(unsigned value) {
  return squares[value % 8];
}

int sample_count(void) {
  sample_zeros[3] += 2;
  return ++first_count + sample_zeros[3];
}

void sample_copy(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
}

int sample_call(int value) {
  return sample_outside(value) + 1;
}

/* Weights lie in a large section, and code finds them by a distance of 64 bits, as in objects of Firn. The tests
   make both sections larger than this. */
extern const ptrdiff_t sample_distance __attribute__((visibility("hidden")));
extern const unsigned char sample_small[] __attribute__((visibility("hidden")));
__asm__(".pushsection .lrodata.firn.sample,\"al\",@progbits\n"
        ".balign 64\n"
        "sample_large: .quad 42\n"
        ".popsection\n"
        ".pushsection .rodata.sample,\"a\",@progbits\n"
        ".balign 8\n"
        ".hidden sample_small\n"
        ".globl sample_small\n"
        "sample_small: .quad 43\n"
        ".popsection\n"
        ".pushsection .rodata\n"
        ".balign 8\n"
        ".hidden sample_distance\n"
        ".globl sample_distance\n"
        "sample_distance: .quad sample_large - sample_distance\n"
        ".popsection\n");

const unsigned char* sample_weights(void) {
  return (const unsigned char*)&sample_distance + sample_distance;
}

const unsigned char* sample_constants(void) {
  return sample_small;
}
