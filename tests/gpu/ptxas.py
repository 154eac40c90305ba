#!/usr/bin/env python3
"""The kernels of drawn conformance cases through ptxas: no register is spilled, and a stack is there for a thread's own scratch alone.

  ptxas.py FIRN CASES PART SM,SM,...

CASES holds folders with a model.onnx each, of which about one in PART is drawn, always the same. sm_75 has code of its own; others take
that of sm_80. Prints how many kernels have how many registers; skipped where there is no ptxas (PATH, /usr/local/cuda/bin).
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

INFO = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
                  r".*?Used (\d+) registers", re.S)


def own_scratch(ptx):
    """Bytes of each kernel's own scratch, by name."""
    sizes = {}
    for kernel in re.split(r"(?=\.entry )", ptx)[1:]:
        name = re.match(r"\.entry (\w+)", kernel).group(1)
        sizes[name] = sum(int(size) for size in re.findall(r"\.local [^;]*\[(\d+)\];", kernel))
    return sizes


def main():
    firn, cases, part, sms = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    if not ptxas:
        print("SKIPPED: there is no ptxas in PATH or /usr/local/cuda/bin")
        return 0
    errors, registers, kernels = [], collections.Counter(), collections.Counter()
    names = [name for name in sorted(os.listdir(cases)) if zlib.crc32(name.encode()) % part == 0]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            by_base = {}
            for sm in sms:
                base = "75" if sm == "75" else "80"
                path = os.path.join(folder, base + ".ptx")
                if base not in by_base:
                    done = subprocess.run([firn, "compile", os.path.join(cases, name, "model.onnx"), "--gpu=cuda:sm_" + base, "--emit=ptx", "-o",
                                           path], capture_output=True, text=True)
                    by_base[base] = ""
                    if done.returncode == 0:
                        with open(path) as file:
                            by_base[base] = file.read()
                    elif done.returncode not in (1, 2, 3):
                        errors.append(f"{name}: firn ended with {done.returncode}: {done.stderr[:200]}")
                if ".entry" not in by_base[base]:
                    continue
                with open(path, "w") as file:
                    file.write(by_base[base])
                done = subprocess.run([ptxas, "-v", "-arch=sm_" + sm, path, "-o", os.path.join(folder, "cubin")], capture_output=True, text=True)
                if done.returncode != 0:
                    errors.append(f"{name}, sm_{sm}: ptxas: {done.stderr[:300]}")
                    continue
                own, found = own_scratch(by_base[base]), INFO.findall(done.stderr)
                if len(found) != len(own):
                    errors.append(f"{name}, sm_{sm}: ptxas speaks of {len(found)} kernels, of {len(own)}")
                for kernel, stack, stores, loads, used in found:
                    kernels[sm] += 1
                    registers[int(used) // 32] += 1
                    if int(stores) or int(loads):
                        errors.append(f"{name}, sm_{sm}, {kernel}: spills {stores} bytes, {used} registers")
                    elif int(stack) > own.get(kernel, 0) + 8:
                        errors.append(f"{name}, sm_{sm}, {kernel}: stack of {stack} bytes, {own.get(kernel, 0)} of them its own scratch")
    for sm in sms:
        print(f"sm_{sm}: {kernels[sm]} kernels of {len(names)} cases")
    print("registers: " + ", ".join(f"{32 * n}..{32 * n + 31}: {count}" for n, count in sorted(registers.items())))
    print("\n".join(errors) or "no spill, no stack but for scratch")
    return 1 if errors or not kernels[sms[0]] else 0


sys.exit(main())
