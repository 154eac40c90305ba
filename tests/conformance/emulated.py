#!/usr/bin/env python3
"""ONNX's conformance cases through objects for another architecture, under an emulator of its programs.

  emulated.py FIRN INCLUDE CASES CXX EMULATOR TRIPLE CPU [PATTERN]

Every folder of CASES whose name matches PATTERN (a regular expression; default: all) is compiled for TRIPLE and CPU, linked by CXX,
and run by EMULATOR, a command such as qemu-aarch64, or by a board that qemu-system-arm emulates, on its stored inputs. Outputs are held
to the stored ones: integers are equal, floats near. Cases that Firn refuses everywhere (refused.txt) or wants sizes for, those in floats that the
CPU does not compute, and those with inputs or outputs that are no plain tensors, are counted; objects for cores without an operating
system run as programs of a Linux of the same architecture. CPU may be features, such as +m,+c, instead.
"""
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from onnx_messages import TYPES, read_tensor


# Every program is this one and an object: it reads all inputs, runs, and writes all outputs. With FREESTANDING there is no C library
# for the machine, a RISC-V of 32 bits: the program calls Linux itself.
PROGRAM = r"""
#include <firn/abi.h>
#include <stdint.h>
#ifdef FREESTANDING
static long call_linux(long number, long a, const void* b, unsigned long c) {
  register long a0 asm("a0") = a;
  register long a1 asm("a1") = reinterpret_cast<long>(b);
  register long a2 asm("a2") = static_cast<long>(c);
  register long a7 asm("a7") = number;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
  return a0;
}
enum { stdin, stdout };
static size_t transfer(long number, long file, const unsigned char* bytes, size_t count) {
  size_t done = 0;
  for (long n = 1; done < count && n > 0; done += static_cast<size_t>(n > 0 ? n : 0))
    n = call_linux(number, file, bytes + done, count - done);
  return done;
}
static size_t fread(void* to, size_t, size_t count, long file) {
  return transfer(63, file, static_cast<const unsigned char*>(to), count);
}
static size_t fwrite(const void* from, size_t, size_t count, long file) {
  return transfer(64, file, static_cast<const unsigned char*>(from), count);
}
static unsigned long strtoull(const char* word, char**, int) {
  unsigned long number = 0;
  for (; *word; ++word) number = number * 10 + static_cast<unsigned long>(*word - '0');
  return number;
}
static unsigned char pool[64 << 20];
static void* malloc(size_t bytes) { return bytes <= sizeof pool ? pool : nullptr; }
extern "C" void* memset(void* to, int value, size_t count) {
  volatile unsigned char* p = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < count; ++i) p[i] = static_cast<unsigned char>(value);
  return to;
}
extern "C" void* memmove(void* to, const void* from, size_t count) {
  volatile unsigned char* p = static_cast<unsigned char*>(to);
  const volatile unsigned char* q = static_cast<const unsigned char*>(from);
  if (p <= q)
    for (size_t i = 0; i < count; ++i) p[i] = q[i];
  else
    for (size_t i = count; i-- > 0;) p[i] = q[i];
  return to;
}
extern "C" void* memcpy(void* to, const void* from, size_t count) { return memmove(to, from, count); }
int main(int, char**);
extern "C" void start(long* stack) {
  call_linux(93, main(static_cast<int>(stack[0]), reinterpret_cast<char**>(stack + 1)), nullptr, 0);
}
asm(".globl _start\n_start:\n.option push\n.option norelax\nla gp, __global_pointer$\n.option pop\nmv a0, sp\nandi sp, sp, -16\ncall start");
#else
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif
extern "C" __attribute__((visibility("hidden"))) firn_status case_run(const firn_rt2_call*);
extern "C" __attribute__((visibility("hidden"))) const unsigned char* case_weights(void);
// usage: case ARENA_BYTES INPUTS OUTPUTS, then OFFSET and BYTES of each of them in the arena
int main(int count, char** words) {
  auto number = [&](int i) { return static_cast<size_t>(i < count ? strtoull(words[i], nullptr, 10) : 0); };
  size_t bytes = number(1), inputs = number(2), outputs = number(3);
  auto* memory = static_cast<unsigned char*>(malloc(bytes + 128));
  unsigned char* arena = memory + (64 - reinterpret_cast<uintptr_t>(memory) % 64);
  memset(arena, 0xa5, bytes);
  void* places[256];
  for (size_t i = 0; i < inputs + outputs && i < 256; ++i) places[i] = arena + number(static_cast<int>(4 + 2 * i));
  for (size_t i = 0; i < inputs; ++i)
    if (fread(places[i], 1, number(static_cast<int>(5 + 2 * i)), stdin) != number(static_cast<int>(5 + 2 * i))) return 2;
  firn_rt2_call call = {};
  call.size = sizeof call;
  call.arena = arena;
  call.weights = case_weights();
  call.inputs = places;
  call.outputs = places + inputs;
  if (case_run(&call) != FIRN_STATUS_OK) return 3;
  for (size_t i = inputs; i < inputs + outputs; ++i) fwrite(places[i], 1, number(static_cast<int>(5 + 2 * i)), stdout);
  return 0;
}
"""

# The same for a board without a system: the debugger, or the emulator in its place, reads and writes files in the folder at hand.
# "in" begins with the words, in 32 bits each. Nothing else lies at MEMORY.
BOARD_PROGRAM = r"""
#include <firn/abi.h>
#include <stdint.h>
#include <string.h>
extern "C" __attribute__((visibility("hidden"))) firn_status case_run(const firn_rt2_call*);
extern "C" __attribute__((visibility("hidden"))) const unsigned char* case_weights(void);
static intptr_t ask(intptr_t operation, const void* what) {
  register intptr_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = what;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static intptr_t open_file(const char* name, intptr_t mode) {
  const intptr_t what[3] = {reinterpret_cast<intptr_t>(name), mode, static_cast<intptr_t>(strlen(name))};
  return ask(0x01, what);
}
static bool move(intptr_t operation, intptr_t file, void* bytes, uint32_t count) {
  const intptr_t what[3] = {file, reinterpret_cast<intptr_t>(bytes), static_cast<intptr_t>(count)};
  return count == 0 || ask(operation, what) == 0;
}
static int run_case() {
  const intptr_t in = open_file("in", 1), out = open_file("out", 5);
  static uint32_t sizes[3], tensors[256][2]; // bytes of the arena, inputs, outputs; offset and bytes of each
  if (!move(0x06, in, sizes, sizeof sizes) || sizes[1] + sizes[2] > 256) return 4;
  if (!move(0x06, in, tensors, 8 * (sizes[1] + sizes[2]))) return 4;
  auto* arena = reinterpret_cast<unsigned char*>(MEMORY);
  memset(arena, 0xa5, sizes[0]);
  static void* places[256];
  for (uint32_t i = 0; i < sizes[1] + sizes[2]; ++i) places[i] = arena + tensors[i][0];
  for (uint32_t i = 0; i < sizes[1]; ++i)
    if (!move(0x06, in, places[i], tensors[i][1])) return 2;
  firn_rt2_call call = {};
  call.size = sizeof call;
  call.arena = arena;
  call.weights = case_weights();
  call.inputs = places;
  call.outputs = places + sizes[1];
  if (case_run(&call) != FIRN_STATUS_OK) return 3;
  for (uint32_t i = sizes[1]; i < sizes[1] + sizes[2]; ++i)
    if (!move(0x05, out, places[i], tensors[i][1])) return 5;
  return 0;
}
extern "C" void boot() {
  *reinterpret_cast<volatile uint32_t*>(0xe000ed88) |= 0xfu << 20; // CPACR: full access to floats and vectors
  __asm__ volatile("dsb\n isb");
  const intptr_t how[2] = {0x20026, run_case()};
  ask(0x20, how);
}
__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    reinterpret_cast<void*>(MEMORY), reinterpret_cast<const void*>(&boot)}; // the stack grows down from there
"""


class Skipped(Exception):
    pass


def stored_tensor(path):
    """The type and the raw bytes."""
    tensor = read_tensor(path)
    if tensor is None:
        raise Skipped("no plain tensor")
    if tensor.raw is None:
        raise Skipped("elements that are no numbers of whole bytes")
    return tensor.type, tensor.raw


def difference(kind, got, want):
    """What is wrong; None: nothing."""
    size, form = TYPES[kind]
    if len(got) != len(want):
        return f"{len(got)} bytes, wanted {len(want)}"
    if form not in "fed":
        return None if got == want else "other integers"
    left, right = (struct.unpack(f"<{len(x) // size}{form}", x) for x in (got, want))
    largest = max((abs(x) for x in right if math.isfinite(x)), default=0) or 1
    tolerance = (1e-2 if form == "e" else 1e-3) * largest  # some are stored with four digits
    for i, (x, y) in enumerate(zip(left, right)):
        if x == y or (math.isnan(x) and math.isnan(y)):
            continue
        if not (math.isfinite(x) and math.isfinite(y)) or abs(x - y) > tolerance:
            return f"element {i} is {x}, expected {y}"
    return None


class Machine:
    def __init__(self, firn, include, cxx, emulator, triple, cpu, folder):
        self.firn, self.cxx, self.emulator, self.folder = firn, cxx.split(), emulator.split(), folder
        self.flags = ["--target", triple] + ([f"-mattr={cpu}" if cpu.startswith("+") else f"-mcpu={cpu}"] if cpu else [])
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "refused.txt")) as file:
            self.refused = {re.split("[/:]", line)[1] for line in file if line.startswith("node/")}
        self.is_arm = triple.startswith(("arm", "thumb"))
        source = os.path.join(folder, "program.cpp")
        self.is_board = "-system-" in emulator
        if self.is_board:
            self.cxx += ["-DMEMORY=0x68000000", "-nostartfiles", "-fno-exceptions", "-Wl,-Ttext-segment=0x60000000",
                         "-Wl,--section-start=.vectors=0", "-Wl,-e,boot"]
        with open(source, "w") as file:
            file.write(BOARD_PROGRAM if self.is_board else PROGRAM)
        self.main = os.path.join(folder, "program.o")
        subprocess.run(self.cxx + ["-std=c++17", "-O1", "-I", include, "-c", source, "-o", self.main], check=True)

    def run(self, program, numbers, given):
        """What is wrong, or None, and what the program writes."""
        if not self.is_board:
            done = subprocess.run([*self.emulator, program, *(str(number) for number in numbers)], input=given, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            return f"exit code {done.returncode} {done.stderr[:200]}" if done.returncode else None, done.stdout
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "in"), "wb") as file:
                file.write(struct.pack(f"<{len(numbers)}I", *numbers) + given)
            done = subprocess.run([*self.emulator, "-semihosting-config", "enable=on,target=native", "-kernel", program],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder)
            if done.returncode:
                return f"exit code {done.returncode} {done.stdout[:200]}", b""
            with open(os.path.join(folder, "out"), "rb") as file:
                return None, file.read()

    def check(self, case):
        name = os.path.basename(case)
        sets = [os.path.join(case, d) for d in sorted(os.listdir(case)) if d.startswith("test_data_set_")]
        stored = [[stored_tensor(os.path.join(s, f"{what}_{i}.pb")) for i in range(
            sum(f.startswith(what + "_") for f in os.listdir(s)))] for s in sets[:1] for what in ("input", "output")]
        if not stored:
            raise Skipped("no data")
        base = os.path.join(self.folder, name)
        done = subprocess.run([self.firn, "compile", os.path.join(case, "model.onnx"), "-o", base, "-q", *self.flags],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            if name in self.refused or re.search("--dim|--length|--shape|--const", done.stdout):
                raise Skipped("refused")
            if re.search("computes in b?f(16|32|64), for which", done.stdout):
                raise Skipped("floats that this CPU does not compute")
            return "firn compile: " + done.stdout.strip()
        with open(base + ".json") as file:
            manifest = json.load(file)
        inputs, outputs = manifest["inputs"], manifest["outputs"]
        if len(inputs) != len(stored[0]) or len(outputs) != len(stored[1]) or manifest["sizes"].get("text_bytes"):
            raise Skipped("other inputs or outputs than are stored")
        if any(value["bytes"] != len(raw) for value, (_, raw) in zip(inputs + outputs, stored[0] + stored[1])):
            raise Skipped("sizes that vary")
        if self.is_arm and not self.is_board:  # attributes would keep the linker from joining code for cores of two profiles
            objcopy = self.cxx[0].replace("g++", "objcopy")
            subprocess.run([objcopy, "--remove-section=.ARM.attributes", base + ".o"], check=True)
        link = self.cxx + [*([] if self.is_board else ["-static"]), self.main, base + ".o", "-o", base,
                           "-Wl,--defsym=case_run=" + manifest["run_symbol"],
                           "-Wl,--defsym=case_weights=" + manifest["weights_symbol"]]
        done = subprocess.run(link, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return "link: " + done.stdout.strip()[:500]
        numbers = [manifest["sizes"]["arena_bytes"], len(inputs), len(outputs)]
        numbers += [x for value in inputs + outputs for x in (value["arena_offset"], value["bytes"])]
        code, said = self.run(base, numbers, b"".join(raw for _, raw in stored[0]))
        for suffix in ("", ".o", ".h", ".json"):
            os.remove(base + suffix)
        if code:
            return code
        at = 0
        for value, (kind, want) in zip(outputs, stored[1]):
            wrong = difference(kind, said[at:at + value["bytes"]], want)
            if wrong:
                return f"output {value['name']}: {wrong}"
            at += value["bytes"]
        return None


def main():
    if len(sys.argv) not in (8, 9):
        sys.exit(__doc__)
    firn, include, cases, cxx, emulator, triple, cpu = sys.argv[1:8]
    pattern = re.compile(sys.argv[8] if len(sys.argv) > 8 else "")
    names = [n for n in sorted(os.listdir(cases)) if pattern.search(n) and os.path.exists(os.path.join(cases, n, "model.onnx"))]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(firn, include, cxx, emulator, triple, cpu, folder)

        def outcome(name):
            try:
                return machine.check(os.path.join(cases, name)) or "pass"
            except Skipped as reason:
                return f"skipped: {reason}"

        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(outcome, names))
    wrong = [(n, o) for n, o in zip(names, outcomes) if o != "pass" and not o.startswith("skipped")]
    for name, what in wrong:
        print(f"{name}: {what}")
    passed = outcomes.count("pass")
    print(f"{triple} {cpu}: {passed} passed, {len(wrong)} wrong, {len(names) - passed - len(wrong)} skipped")
    sys.exit(1 if wrong or not passed else 0)


if __name__ == "__main__":
    main()
