#!/usr/bin/env python3
"""Instructions, flash and RAM of a model on a Cortex-M: compiles it, links a program for a board that QEMU emulates, and
counts what one run executes.

    microcontroller.py FIRN MODEL... [--cpu cortex-m4,cortex-m0] [--kernels N] [--json] [-- FLAGS OF firn compile...]

Needs arm-none-eabi-gcc, qemu-system-arm and a compiler for this machine (CC, or cc). Counts are the same on every machine;
they are instructions, not cycles. Flash is the linked program's and RAM its data and its stack, both without those of a
program that runs no model; inputs are small numbers, and lie in RAM as the model's arena has them. Exit code 2: a tool is
missing; 1: a model does not compile or run.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HARD = ["-mfloat-abi=hard"]
AN385 = ("mps2-an385", "0x00000000", "4M", "0x20000000")
# Firn's target, flags of gcc, and the board with the places of its memory. An M3 runs the code of an M0.
CPUS = {
    "cortex-m0": ("thumbv6m-none-eabi", [], AN385),
    "cortex-m3": ("thumbv7m-none-eabi", [], AN385),
    "cortex-m4": ("thumbv7em-none-eabihf", [*HARD, "-mfpu=fpv4-sp-d16"], ("mps2-an386", *AN385[1:])),
    "cortex-m7": ("thumbv7em-none-eabihf", [*HARD, "-mfpu=fpv5-d16"], ("mps2-an500", *AN385[1:])),
    "cortex-m33": ("thumbv8m.main-none-eabihf", [*HARD, "-mfpu=fpv5-sp-d16"], ("mps2-an505", "0x10000000", "4M", "0x38000000")),
    "cortex-m55": ("thumbv8.1m.main-none-eabihf", HARD, ("mps3-an547", "0x00000000", "512K", "0x21000000")),
}
PAINTED = 1 << 17  # bytes below the stack pointer that show how deep a run reaches

PROGRAM = r"""
#include <stdint.h>
#include <string.h>
void print(const char* text);
int run_model(void);
void fill_inputs(void);
__attribute__((noinline)) void count_begin(void) { __asm__ volatile("nop"); }
__attribute__((noinline)) void count_end(void) { __asm__ volatile("nop"); }

static void print_number(const char* name, uint32_t number) {
  char digits[12], *first = digits + 11;
  *first = '\0';
  do *--first = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  print(name), print(" "), print(first), print("\n");
}

int main(void) {
  volatile uint8_t* end; // what is below the stack pointer is free: there are no interrupts
  fill_inputs();
  __asm__ volatile("mov %0, sp" : "=r"(end));
  volatile uint8_t* low = end - PAINTED;
  for (volatile uint8_t* at = low; at < end; ++at) *at = 0xa5;
  count_begin();
  int status = run_model();
  count_end();
  while (low < end && *low == 0xa5) ++low;
  print_number("status", (uint32_t)status);
  print_number("stack", (uint32_t)(end - low));
  return 0;
}
"""


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class Board:
    """Links programs for a CPU and runs them, in a folder."""

    def __init__(self, cpu, folder):
        self.target, flags, (self.machine, flash, size, ram) = CPUS[cpu]
        self.flags = [f"-mcpu={cpu}", "-mthumb", *flags, "-ffunction-sections", "-fdata-sections", "-O2"]
        self.folder = folder
        core = os.path.join(ROOT, "models", "cortex_m")
        with open(os.path.join(core, "mps2.ld"), encoding="utf-8") as file:
            script = file.read()
        script = script.replace("0x00000000, LENGTH = 4M", f"{flash}, LENGTH = {size}").replace("0x20000000", ram)
        self.script = write(os.path.join(folder, "board.ld"), script)
        self.program = write(os.path.join(folder, "program.c"), PROGRAM.replace("PAINTED", str(PAINTED)))
        self.startup = os.path.join(core, "startup.c")

    def link(self, name, sources, includes=()):
        elf, objects = os.path.join(self.folder, name), []
        for source in [self.startup, self.program, *sources]:
            if source.endswith(".o"):
                objects.append(source)
                continue
            objects.append(os.path.join(self.folder, os.path.basename(source) + ".o"))
            tool = ["arm-none-eabi-gcc"] if source.endswith(".c") else \
                ["arm-none-eabi-g++", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
            run([*tool, *self.flags, *(f"-I{folder}" for folder in includes), "-c", source, "-o", objects[-1]])
        run(["arm-none-eabi-g++", *self.flags, "-T", self.script, "-nostartfiles", "-Wl,--gc-sections,-z,noexecstack",
             "--specs=nano.specs", "--specs=nosys.specs", *objects, "-lm", "-o", elf])
        return elf

    def sizes(self, elf):
        text, data, bss = (int(word) for word in run(["arm-none-eabi-size", elf]).splitlines()[1].split()[:3])
        return text + data, data + bss

    def execute(self, elf, plugin):
        symbols = [line.split() for line in run(["arm-none-eabi-nm", elf]).splitlines()]
        places = sorted((int(words[0], 16) & ~1, words[2]) for words in symbols
                        if len(words) == 3 and words[1] in "tT" and not words[2].startswith("$"))
        marks = {name: address for address, name in places}
        functions = write(os.path.join(self.folder, "functions"), "".join(f"{at:x} {name}\n" for at, name in places))
        counts = os.path.join(self.folder, "counts")
        said = run(["qemu-system-arm", "-M", self.machine, "-nographic", "-monitor", "none", "-serial", "null",
                    "-semihosting-config", "enable=on,target=native", "-plugin",
                    f"{plugin},functions={functions},begin={marks['count_begin']:x},end={marks['count_end']:x},out={counts}",
                    "-kernel", elf], stdin=subprocess.DEVNULL, timeout=600)
        facts = {words[0]: int(words[1]) for words in (line.split() for line in said.splitlines()) if len(words) == 2}
        if facts.get("status") != 0:
            raise RuntimeError(f"the run ended with {facts.get('status', 'no status')}\n{said}")
        with open(counts, encoding="utf-8") as file:
            return facts["stack"], {name: int(count) for count, name in (line.split() for line in file)}


def glue_of(manifest):
    """C code that fills the model's inputs and runs it."""
    fill = ""
    for tensor in manifest["inputs"]:
        name = tensor["identifier"]
        value = "0.125f * (float)(i % 9) - 0.5f" if tensor["dtype"] in ("f32", "f64") else "i % 2"
        fill += f"  for (unsigned i = 0; i < COUNTED_NET_{name.upper()}_BYTES / sizeof *counted_net_{name}(&net); ++i)\n" \
                f"    counted_net_{name}(&net)[i] = {value};\n"
    return f"""#include "net.h"
static union {{ uint8_t bytes[COUNTED_NET_ARENA_BYTES]; uint64_t word; }} arena;
static counted_net net;
void fill_inputs(void) {{
  counted_net_init(&net, arena.bytes, sizeof arena.bytes);
{fill}}}
int run_model(void) {{ return (int)counted_net_run(&net); }}
"""


def measure(arguments, model, cpu, plugin, folder):
    board = Board(cpu, folder)
    net = os.path.join(folder, "net")
    run([arguments.firn, "compile", model, "-q", "-o", net, "--class", "counted::Net", "--target", board.target,
         f"-mcpu={cpu}", *arguments.flags])
    with open(net + ".json", encoding="utf-8") as file:
        manifest = json.load(file)
    empty = board.link("empty", [write(os.path.join(folder, "none.c"),
                                       "void fill_inputs(void) {}\nint run_model(void) { return 0; }\n")])
    runtime = [os.path.join(ROOT, "runtime", name) for name in ("cpu_features.cpp", "status.cpp", "refusal.cpp")]
    elf = board.link("program", [write(os.path.join(folder, "glue.c"), glue_of(manifest)), net + ".o", *runtime],
                     [os.path.join(ROOT, "include"), folder])
    (flash, ram), (no_flash, no_ram) = board.sizes(elf), board.sizes(empty)
    no_stack, nothing = board.execute(empty, plugin)
    stack, counts = board.execute(elf, plugin)
    kernels = {re.sub(r"^firn\.k\.", "", name): count for name, count in counts.items()}
    return {"model": model, "cpu": cpu, "instructions": sum(counts.values()) - sum(nothing.values()), "flash": flash - no_flash,
            "ram": ram - no_ram + stack - no_stack, "stack": stack - no_stack, "weights": manifest["sizes"]["weight_bytes"],
            "kernels": dict(sorted(kernels.items(), key=lambda each: -each[1]))}


def show(row, kernels):
    print(f"{row['model']} {row['cpu']}: {row['instructions']:,} instructions, flash {row['flash']:,} B "
          f"({row['weights']:,} of weights), RAM {row['ram']:,} B ({row['stack']:,} of stack)", flush=True)
    for name, count in list(row["kernels"].items())[:kernels]:
        print(f"  {count:>12,} {100 * count / row['instructions']:5.1f} %  {name}")


def main():
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--cpu", default="cortex-m4", help=", ".join(CPUS))
    parser.add_argument("--kernels", type=int, default=0, help="so many functions that take most instructions")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each model and CPU")
    arguments = parser.parse_args(arguments)
    arguments.flags = flags
    cpus = arguments.cpu.split(",")
    if unknown := [cpu for cpu in cpus if cpu not in CPUS]:
        parser.error(f"--cpu {unknown[0]}: wanted some of {', '.join(CPUS)}")
    cc = os.environ.get("CC", "cc")
    if missing := [tool for tool in ("arm-none-eabi-gcc", "arm-none-eabi-g++", "qemu-system-arm", cc) if not shutil.which(tool)]:
        print(f"microcontroller.py: {missing[0]} is not installed", file=sys.stderr)
        return 2
    failed = False
    with tempfile.TemporaryDirectory(prefix="firn-count-") as work:
        plugin = os.path.join(work, "count_instructions.so")
        run([cc, "-O2", "-shared", "-fPIC", os.path.join(ROOT, "tools", "bench", "count_instructions.c"), "-o", plugin])
        for model in arguments.models:
            for cpu in cpus:
                folder = tempfile.mkdtemp(dir=work)
                try:
                    row = measure(arguments, model, cpu, plugin, folder)
                    print(json.dumps(row), flush=True) if arguments.json else show(row, arguments.kernels)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{model} {cpu}: {error}", file=sys.stderr, flush=True)
                    failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
