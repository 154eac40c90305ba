// Runs a model object under an emulator without any library: reads its call from the standard input, writes
// its outputs. Input: words count of inputs, count of outputs, then their sizes in bytes, then the inputs'
// bytes. ARENA_BYTES and MEMORY_BYTES, for inputs and outputs, are defined on the compiler's command line.
// Emulated boards without a system have files in place of the streams, INPUT_FILE and OUTPUT_FILE.
#include <stddef.h>
#include <stdint.h>

struct call {
  size_t size;
  unsigned char* arena;
  const unsigned char* weights;
  const void* const* inputs;
  void* const* outputs;
  const size_t* extents;
  const void* executor;
  uint64_t* profile;
  size_t variant;
};
int32_t model_run(const struct call*);
const unsigned char* model_weights(void);

#if defined(INPUT_FILE)
// Asks the debugger, or the emulator in its place, as a system would be asked.
static long semihosting_call(long operation, const void* argument) {
  register long r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static long files[2];
static void open_files(void) {
  const char *input = INPUT_FILE, *output = OUTPUT_FILE;
  const long to_read[3] = {(long)input, 1, sizeof INPUT_FILE - 1},
             to_write[3] = {(long)output, 5, sizeof OUTPUT_FILE - 1};
  files[0] = semihosting_call(0x01, to_read);
  files[1] = semihosting_call(0x01, to_write);
}
#endif

static long system_call(long number, long a, long b, long c) {
#if defined(INPUT_FILE)
  if (number == 1) { // ADP_Stopped_ApplicationExit and the exit code
    const long how[2] = {0x20026, a};
    return semihosting_call(0x20, how);
  }
  const long what[3] = {files[a], b, c};
  return c - semihosting_call(number == 3 ? 0x06 : 0x05, what); // it says how many bytes are left
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#elif defined(__arm__)
  register long r7 __asm__("r7") = number, r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
  return r0;
#elif defined(__riscv)
  register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
  return a0;
#endif
}
#if defined(__arm__)
enum { sys_read = 3, sys_write = 4, sys_exit = 1 };
#else
enum { sys_read = 63, sys_write = 64, sys_exit = 93 };
#endif

void* memcpy(void* to, const void* from, size_t n) {
  for (size_t i = 0; i < n; ++i) ((volatile char*)to)[i] = ((const char*)from)[i];
  return to;
}
void* memset(void* to, int value, size_t n) {
  for (size_t i = 0; i < n; ++i) ((volatile char*)to)[i] = (char)value;
  return to;
}

static unsigned char memory[MEMORY_BYTES] __attribute__((aligned(64))),
    arena[ARENA_BYTES] __attribute__((aligned(64)));
static const void* inputs[16];
static void* outputs[16];
static uint32_t header[2], sizes[32];

static void read_all(void* to, long n) {
  for (long done = 0, got; done < n; done += got) {
    got = system_call(sys_read, 0, (long)to + done, n - done);
    if (got <= 0) system_call(sys_exit, 100, 0, 0);
  }
}

__attribute__((used)) void start_c(void) {
#if defined(INPUT_FILE)
  *(volatile uint32_t*)0xe000ed88 |= 0xfu << 20; // CPACR: full access to floats and vectors
  __asm__ volatile("dsb\n isb");
  open_files();
#endif
  read_all(header, sizeof header);
  read_all(sizes, 4 * (long)(header[0] + header[1]));
  long at = 0;
  for (uint32_t i = 0; i < header[0] + header[1]; ++i) {
    if (i < header[0])
      inputs[i] = memory + at;
    else
      outputs[i - header[0]] = memory + at;
    if (i < header[0]) read_all(memory + at, sizes[i]);
    at = (at + sizes[i] + 63) / 64 * 64;
  }
  struct call call = {sizeof call, arena, model_weights(), inputs, outputs, 0, 0, 0, 0};
  int32_t status = model_run(&call);
  for (uint32_t i = 0; i < header[1]; ++i) system_call(sys_write, 1, (long)outputs[i], sizes[header[0] + i]);
  system_call(sys_exit, status, 0, 0);
}

#if defined(__aarch64__) || defined(__riscv)
__asm__(".globl _start\n_start:\n  "
#if defined(__riscv)
        "call start_c\n"
#else
        "bl start_c\n"
#endif
);
#else
// The address of Thumb code has its low bit set, which the compiler does for functions in C.
__attribute__((naked)) void _start(void) {
  __asm__("bl start_c");
}
#endif

#if defined(INPUT_FILE)
// The initial stack pointer and the handler of reset. A fault has no handler, which ends the emulation.
static unsigned char stack[1 << 18] __attribute__((aligned(64)));
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {stack + sizeof stack,
                                                                                 (const void*)&_start};
#endif
