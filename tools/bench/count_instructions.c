// A plugin of QEMU (version 1 of its interface) that counts the instructions that a program executes between
// two addresses, by function. Debian has no header of that interface, so what is used of it is declared here.
//
//   -plugin count_instructions.so,begin=ADDRESS,end=ADDRESS,functions=FILE,out=FILE
//
// `functions` has a line "ADDRESS NAME" for each function, ascending. `out` becomes a line "COUNT NAME" for
// each that ran.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translate_callback)(uint64_t plugin, struct qemu_plugin_tb* block);
typedef void (*execute_callback)(unsigned cpu, void* data);
extern int qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, translate_callback callback);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t number);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* instruction);
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn* instruction, int add,
                                                       void* counter, uint64_t count);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* instruction,
                                                   execute_callback callback, int flags, void* data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct function {
  uint64_t address, count;
  char name[240];
};
static struct function* functions;
static size_t function_count;
static uint64_t begin, end;
static char out[4096];

// The function that an address lies in: the last one that begins at it or before.
static struct function* find_function(uint64_t address) {
  size_t first = 0, last = function_count;
  while (first + 1 < last) {
    size_t middle = (first + last) / 2;
    if (functions[middle].address <= address)
      first = middle;
    else
      last = middle;
  }
  return &functions[first];
}

static void start_counting(unsigned cpu, void* data) {
  (void)cpu, (void)data;
  for (size_t i = 0; i < function_count; ++i) functions[i].count = 0;
}

static void write_counts(unsigned cpu, void* data) {
  (void)cpu, (void)data;
  FILE* file = fopen(out, "w");
  if (!file) return;
  for (size_t i = 0; i < function_count; ++i)
    if (functions[i].count > 0)
      fprintf(file, "%llu %s\n", (unsigned long long)functions[i].count, functions[i].name);
  fclose(file);
}

static void count_block(uint64_t plugin, struct qemu_plugin_tb* block) {
  (void)plugin;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    const uint64_t address = qemu_plugin_insn_vaddr(instruction);
    if (address == begin || address == end)
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, address == begin ? start_counting : write_counts, 0,
                                             NULL);
    else
      qemu_plugin_register_vcpu_insn_exec_inline(instruction, 0, &find_function(address)->count, 1);
  }
}

static int read_functions(const char* path) {
  FILE* file = fopen(path, "r");
  if (!file) return -1;
  struct function next = {0, 0, ""};
  while (fscanf(file, "%llx %239s", (unsigned long long*)&next.address, next.name) == 2) {
    functions = realloc(functions, (function_count + 1) * sizeof next);
    if (!functions) return -1;
    functions[function_count++] = next;
  }
  fclose(file);
  return function_count > 0 ? 0 : -1;
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t plugin, const void* about, int count,
                                                               char** arguments) {
  (void)about;
  int status = -1;
  for (int i = 0; i < count; ++i) {
    char* value = strchr(arguments[i], '=');
    if (!value) return -1;
    *value++ = '\0';
    if (strcmp(arguments[i], "begin") == 0) begin = strtoull(value, NULL, 16) & ~1ull;
    if (strcmp(arguments[i], "end") == 0) end = strtoull(value, NULL, 16) & ~1ull;
    if (strcmp(arguments[i], "functions") == 0) status = read_functions(value);
    if (strcmp(arguments[i], "out") == 0) snprintf(out, sizeof out, "%s", value);
  }
  if (status == 0) qemu_plugin_register_vcpu_tb_trans_cb(plugin, count_block);
  return status;
}
