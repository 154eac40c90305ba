#!/usr/bin/env python3
"""The program that `firn bench --build` writes: for people, and for programs that tell it what to do.

    bench_program.py FIRN ROOT
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

FIRN, ROOT = sys.argv[1:]
sys.path.insert(0, os.path.join(ROOT, "tests", "hostile"))
from model_writer import attribute, graph, model, node, num, tensor, value  # noqa: E402 (the path is set above)

DIGITS, DENOISER, MEDIAN_FILTER = (os.path.join(ROOT, "models", name) for name in ("digits", "denoiser", "median_filter"))
bad = []


def check(holds, what):
    if not holds:
        bad.append(what)


def check_cases(folder):
    """What a program may be linked with, and states: each case is right, with the options that it needs."""
    program, strings = os.path.join(folder, "case"), os.path.join(folder, "strings")
    casts = [node("Cast", ["x"], ["text"], attribute("to", 2, num(3, 8))), node("Cast", ["text"], ["y"], attribute("to", 2, num(3, 1)))]
    os.makedirs(os.path.join(strings, "test_data_set_0"))
    for name, data in (("model.onnx", model(graph(casts, [value("x", [2])], [value("y", [2])]))),
                       *((f"test_data_set_0/{kind}_0.pb", tensor("", [2], struct.pack("<2f", 1, -2.5))) for kind in ("input", "output"))):
        with open(os.path.join(strings, name), "wb") as file:
            file.write(data)
    operator = ["--custom-op", "com.acme:MedianFilter=median_filter:1K"]
    states = [word for name in ("past", "power", "noise", "tail") for word in ("--state", f"{name}={name}_next")]
    # The same function in C++: its file says that it has the name of C.
    wrapped = os.path.join(folder, "median_filter.cpp")
    with open(wrapped, "w") as file:
        file.write(f'#include "firn/custom_op.h"\n#include <cstddef>\nextern "C" {{\n#include "{MEDIAN_FILTER}/median_filter.c"\n}}\n')
    for case, options in ((strings, []), (DENOISER, []), (DENOISER, states), (DENOISER, [*states, "--weights=init"]),
                          (MEDIAN_FILTER, [*operator, "--link", os.path.join(MEDIAN_FILTER, "median_filter.c")]),
                          (MEDIAN_FILTER, [*operator, "--link", wrapped])):
        built = subprocess.run([FIRN, "bench", "--build", case, "-o", program, *options], capture_output=True, text=True)
        done = built.returncode == 0 and subprocess.run([program, "--seconds", "0.01"], capture_output=True, text=True)
        check(done and done.returncode == 0, f"{case} {options}: {done or built.stderr}")
    done = subprocess.run([FIRN, "bench", "--build", MEDIAN_FILTER, "-o", program, *operator], capture_output=True, text=True)
    check(done.returncode == 2 and "'median_filter': give the file that defines it, --link FILE" in done.stderr, f"no --link: {done}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, wrong = os.path.join(folder, "program"), os.path.join(folder, "wrong")

        def run(*arguments, lines=""):
            return subprocess.run([program, *arguments], input=lines, capture_output=True, text=True)

        subprocess.run([FIRN, "bench", "--build", DIGITS, "-o", program, "--threads", "2"], check=True)
        shutil.copytree(DIGITS, wrong)
        stored = os.path.join(wrong, "test_data_set_0", "output_0.pb")
        with open(stored, "rb") as file:
            data = bytearray(file.read())
        data[-1] ^= 0x40  # the exponent of the last probability
        with open(stored, "wb") as file:
            file.write(data)

        done = run("--help")
        check(done.returncode == 0 and "usage: " in done.stdout and DIGITS in done.stdout and "run S hot|cold K" in done.stdout,
              f"--help: {done}")
        for arguments in ([], [DIGITS], [DIGITS, "--threads", "1"]):
            done = run(*arguments, "--seconds", "0.01")
            check(done.returncode == 0 and "test_data_set_0" in done.stdout and "WRONG" not in done.stdout, f"{arguments}: {done}")
        done = run(wrong, "--seconds", "0.01")
        check(done.returncode == 1 and "WRONG" in done.stdout, f"a wrong output: {done}")
        done = run(wrong, "--seconds", "0.01", "--tolerance", "1e9")
        check(done.returncode == 0 and "WRONG" not in done.stdout, f"a tolerance for it: {done}")
        done = run(os.path.join(folder, "nowhere"))
        check(done.returncode == 1 and "cannot read" in done.stderr and not done.stdout, f"no folder: {done}")
        for arguments in (["--frob"], [DIGITS, "--threads"], ["--threads", "0"], ["--seconds", "soon"], [DIGITS, "some"],
                          [DIGITS, "1", "2"]):
            done = run(*arguments)
            check(done.returncode == 2 and "--help" in done.stderr and not done.stdout, f"{arguments}: {done}")

        answers = run(DIGITS, "1", lines="run 0.01 hot\nrun 0.01 cold 0\nrun 0.01 hot 7\nquit\n").stdout.splitlines()
        answers = [json.loads(line) for line in answers]
        check(len(answers) == 5 and answers[0]["ready"] and answers[0]["max_error"] < 1e-5 and answers[1]["median_ns"] > 0 and
              answers[2]["runs"] > 0 and "test_data_set_7" in answers[3]["reason"] and answers[4]["peak_rss_kib"] > 0,
              f"the protocol: {answers}")
        done = run('no "where\\', "1")
        check(done.returncode == 1 and json.loads(done.stdout)["reason"].startswith('cannot read no "where\\/'), f"no folder, in JSON: {done}")
        check_cases(folder)
    sys.exit("\n".join(bad) or 0)


main()
