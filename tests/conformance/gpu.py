#!/usr/bin/env python3
"""ONNX's conformance cases through the program of a GPU, without one: its kernels as loops of this CPU, or as PTX in the interpreter.

  gpu.py FIRN CASES SOURCE loops|ptx [--part N] [--update] [--jobs N]

Every case that passes through its object has to pass so, but those that refused_gpu.txt lists with their reasons. --part takes about one
case of N, the same ones every time; --update writes the list anew.
"""
import os
import subprocess
import sys
import json
import zlib

FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def value_of(option, default):
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else default


def draw(cases, part):
    """Folders of cases with their names, by the name's hash."""
    for folder in FOLDERS:
        for case in sorted(os.listdir(os.path.join(cases, folder))):
            name = f"{folder}/{case}"
            if zlib.crc32(name.encode()) % part == 0 and os.path.exists(os.path.join(cases, name, "model.onnx")):
                yield name


def run(firn, cases, names, engine, jobs):
    folders = [os.path.join(cases, name) for name in names]
    done = subprocess.run([firn, "verify", *folders, "--gpu=cuda", f"--engine={engine}", "--json", "--jobs", jobs], stdout=subprocess.PIPE,
                          text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"firn verify ended with exit code {done.returncode}")
    found = json.loads(done.stdout)["cases"]
    if [case["name"] for case in found] != [os.path.basename(name) for name in names]:
        sys.exit(f"firn verify names {len(found)} cases, of {len(names)}, or in another order")
    return zip(names, found)


def read_list(path):
    with open(path) as file:
        return dict(line.rstrip("\n").split(": ", 1) for line in file if line[0] != "#")


def main():
    firn, cases, source, engine = sys.argv[1:5]
    part = int(value_of("--part", "1"))
    folder = os.path.join(source, "tests", "conformance")
    path = os.path.join(folder, "refused_gpu.txt")
    by_all = read_list(os.path.join(folder, "refused.txt"))
    names = [name for name in draw(cases, part) if name not in by_all]
    refused, errors, passed = {}, [], 0
    for name, case in run(firn, cases, names, engine, value_of("--jobs", "2")):
        if case["verdict"] == "pass":
            passed += 1
        elif case["verdict"] == "refused":
            refused[name] = case["message"].split("\n")[0]
        else:
            errors.append(f"{name} is wrong: {case['message']}")
    if "--update" in sys.argv and part == 1:
        with open(path) as file:
            head = [line for line in file if line[0] == "#"]
        with open(path, "w") as file:
            file.write("".join(head) + "".join(f"{name}: {reason}\n" for name, reason in sorted(refused.items())))
    listed = {name: reason for name, reason in read_list(path).items() if name in names}
    for name in sorted({**listed, **refused}):
        if listed.get(name) != refused.get(name):
            errors.append(f"{name}: listed as {listed.get(name, 'passing')!r}, found {refused.get(name, 'passing or wrong')!r}")
    print(f"{passed} pass, {len(refused)} are refused as listed" if not errors else "\n".join(errors))
    return 1 if errors else 0


sys.exit(main())
