#!/usr/bin/env python3
"""Trains the network of models/digits from drawn weights by SGD, for this machine and for another one under an emulator
of it: the losses of the two agree, and fall. A Cortex-M has 192 KiB of RAM, and 40 kB for code.

    sgd_digits.py FIRN SOURCE CXX native|aarch64|cortex-m4|cortex-m7 STEPS

With 400 steps or more, more than 97 of 100 pictures are right in the end. Batches are of 8 pictures, in slices of one.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

PICTURES = 500
# Orders of additions differ, and steps add to what they come to: much later losses are their own.
COMPARED, NEAR = 100, 1e-5
RAM, CODE = 192 * 1024, 40_000
RUNTIME = ("cpu_features", "refusal", "saved_tensors", "status")
CORE = "-mthumb -mfloat-abi=hard -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections".split()
QEMU = "qemu-system-arm -nographic -semihosting-config enable=on,target=native".split()
# Options of Firn and of the compiler, and how a program is run. Cores are compiled for size, and for speed.
TARGETS = {
    "native": ([], ["-pthread"], []),
    "aarch64": (["--target", "aarch64-linux-gnu"], ["-static"], ["qemu-aarch64"]),
    "cortex-m4": (["--target", "arm-none-eabihf", "-mcpu=cortex-m4", "-Os"], ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", *CORE],
                  [*QEMU, "-M", "mps2-an386", "-kernel"]),
    "cortex-m7": (["--target", "arm-none-eabihf", "-mcpu=cortex-m7"], ["-mcpu=cortex-m7", "-mfpu=fpv5-d16", *CORE],
                  [*QEMU, "-M", "mps2-an500", "-kernel"]),
}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


class Training:
    """A program for a target, what it is made of, and what it says."""

    def __init__(self, firn, source, cxx, name, steps, model, folder):
        os.mkdir(folder)
        firn_flags, flags, emulator = TARGETS[name]
        self.is_core, self.program = name.startswith("cortex"), os.path.join(folder, "program")
        run([firn, "compile", model, "-q", "-o", os.path.join(folder, "digits"), "--class", "Digits", "--dim", "batch=1..8",
             "--micro-batch", "1", "--train", "loss=softmax_cross_entropy,optimizer=sgd", *firn_flags,
             *(["--ram-budget", str(RAM)] if self.is_core else [])])
        with open(os.path.join(folder, "digits.json"), encoding="utf-8") as file:
            self.manifest = json.load(file)
        sources = [os.path.join(source, "runtime", name + ".cpp") for name in RUNTIME]
        sources += [os.path.join(source, "tests", "training", "sgd_digits.cpp"), os.path.join(folder, "digits.o")]
        if self.is_core:
            core, start = os.path.join(source, "models", "cortex_m"), os.path.join(folder, "startup.o")
            run([cxx.replace("g++", "gcc"), *(flag for flag in flags if flag != "-fno-rtti"), "-O2", "-c",
                 os.path.join(core, "startup.c"), "-o", start])
            sources += [start, "-T", os.path.join(core, "mps2.ld"), "-nostartfiles", "-Wl,--gc-sections,-z,noexecstack",
                        "--specs=nano.specs"]
        # Pictures are to be the same to the bit, so that nothing is contracted.
        includes = [word for path in ("include", "models") for word in ("-I", os.path.join(source, path))]
        run([cxx, "-std=c++17", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-DSTEPS={steps}",
             f"-DTESTED={PICTURES}", *includes, "-I", folder, *flags, *sources, "-o", self.program])
        lines = [line.split() for line in run([*emulator, self.program]).splitlines() if line]
        self.losses = [struct.unpack(">f", bytes.fromhex(line[1].rjust(8, "0")))[0] for line in lines if line[0] == "loss"]
        self.right = [int(line[1]) for line in lines if line[0] == "right"]
        if len(self.losses) != steps or len(self.right) != 2:
            sys.exit(f"{name}: {len(self.losses)} losses and {len(self.right)} counts in what the program says")

    def check_size(self, size):
        """Of the linked program, less what training begins with."""
        text, data, bss = (int(word) for word in run([size, self.program]).splitlines()[1].split()[:3])
        sizes, trainer = self.manifest["sizes"], self.manifest["trainer"]
        code = text - sizes["weight_bytes"]
        print(f"arena {trainer['arena_bytes']}, parameters {sizes['parameter_bytes']}, RAM {data + bss}, code of the object "
              f"{sizes['code_bytes']}, of the program {code}")
        if data + bss > RAM or code > CODE:
            sys.exit(f"more than {RAM} B of RAM or {CODE} B of code")


def main():
    firn, source, cxx, name, steps = *sys.argv[1:5], int(sys.argv[5])
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "digits.onnx")
        run([sys.executable, "-B", os.path.join(source, "tests", "training", "write_digits.py"), model])
        trained = Training(firn, source, cxx, name, steps, model, os.path.join(folder, name))
        if trained.is_core:
            trained.check_size(cxx.replace("g++", "size"))
        if name != "native":
            native = Training(firn, source, os.environ.get("CXX", "c++"), "native", steps, model, os.path.join(folder, "native"))
            apart = [abs(a - b) / b for a, b in zip(trained.losses[:COMPARED], native.losses)]
            print(f"losses of {len(apart)} steps differ by {max(apart):.1e} of this machine's at most")
            if max(apart) > NEAR:
                sys.exit(f"that of step {apart.index(max(apart))} by more than {NEAR}")
        first, last = (sum(part) / 10 for part in (trained.losses[:10], trained.losses[-10:]))
        print(f"mean loss {first:.4f} at first, {last:.4f} in the end; {trained.right} of {PICTURES} pictures are right")
        if not last < 0.8 * first:
            sys.exit("the loss does not fall")
        if steps >= 400 and not trained.right[1] > 0.97 * PICTURES > 3 * trained.right[0]:
            sys.exit("the network has not learnt")


if __name__ == "__main__":
    main()
