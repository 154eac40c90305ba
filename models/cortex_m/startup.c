// From reset to main(): the floating point unit, the data section, and what the program says to the debugger.
#include <stdint.h>
#include <string.h>

int main(void);
void reset(void);
extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;

static void stop(void) {
  for (;;) {
  }
}

// The initial stack pointer, and the handlers of reset, NMI and hard fault; the program uses no interrupts.
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    &stack_top, (const void*)&reset, (const void*)&stop, (const void*)&stop};

// A call to the debugger, or to QEMU in its place.
static int semihosting_call(int operation, const void* argument) {
  register int r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char* text) {
  semihosting_call(0x04, text); // SYS_WRITE0
}

void reset(void) {
  *(volatile uint32_t*)0xe000ed88 |= 0xfu << 20; // CPACR: full access to the floating point unit
  __asm__ volatile("dsb\n isb");
  memcpy(&data_start, &data_load, (size_t)((char*)&data_end - (char*)&data_start));
  memset(&bss_start, 0, (size_t)((char*)&bss_end - (char*)&bss_start));
  const uint32_t exit_block[] = {0x20026, (uint32_t)main()}; // ADP_Stopped_ApplicationExit and the exit code
  semihosting_call(0x20, exit_block);                        // SYS_EXIT_EXTENDED
  stop();
}
