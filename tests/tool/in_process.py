#!/usr/bin/env python3
"""Verbs that run code load it in their own process: they need no compiler, and no program at all.

    in_process.py FIRN ROOT
"""
import os
import struct
import subprocess

from tool import DIGITS, FIRN, IMAGE, MODEL, SOURCE, attribute, check, expect, finish, graph, model, node, num, temporary_folder, tensor, value

NOTHING = {"PATH": ""}  # no program can be found
MEDIAN_FILTER = os.path.join(SOURCE, "models", "median_filter")


def write_strings_case(folder):
    """Numbers to strings and back: the object calls the runtime's part for strings."""
    casts = [node("Cast", ["x"], ["text"], attribute("to", 2, num(3, 8))), node("Cast", ["text"], ["y"], attribute("to", 2, num(3, 1)))]
    os.makedirs(os.path.join(folder, "test_data_set_0"))
    for name, data in (("model.onnx", model(graph(casts, [value("x", [2])], [value("y", [2])]))),
                       *((f"test_data_set_0/{kind}_0.pb", tensor("", [2], struct.pack("<2f", 1, -2.5))) for kind in ("input", "output"))):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    return folder


def check_without_programs(folder):
    run = ["run", MODEL, "--input", "image=" + IMAGE]
    alone = expect(run, 0, env=NOTHING)
    linked = expect([*run, "--loader=system"], 0)
    check(alone.stdout == linked.stdout != "", f"outputs differ: {alone.stdout} {linked.stdout}")
    expect([*run, "--loader=system"], 2, "linking the object with 'cc' failed", env=NOTHING)
    strings = write_strings_case(os.path.join(folder, "strings"))
    expect(["verify", DIGITS, strings], 0, "2 passed, 0 wrong, 0 refused", env=NOTHING)
    expect(["verify", "--against", "f32", "--precision=bf16", MODEL], 0, env=NOTHING)
    expect(["bench", MODEL, "--seconds", "0.05"], 0, "softmax", env=NOTHING)
    expect(["bench", MODEL, "--seconds", "0.05", "--threads", "2"], 0, "2 threads wait", env=NOTHING)
    data = os.path.join(folder, "data")
    os.makedirs(data)
    for i in range(2):
        os.symlink(DIGITS + "/test_data_set_0", os.path.join(data, f"test_data_set_{i}"))
    expect(["quantize", MODEL, "--data", data, "-o", os.path.join(folder, "quantized.onnx")], 0, env=NOTHING)


def check_visible_to_perf():
    command = [FIRN, "run", MODEL, "--input", "image=" + IMAGE, "--visible-to", "perf,debugger"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    check(process.wait() == 0, "run --visible-to fails")
    names = f"/tmp/perf-{process.pid}.map"
    with open(names) as file:
        check("firn.k." in file.read(), f"{names} names no kernel")
    os.remove(names)


def check_temporary_files(folder):
    scratch = os.path.join(folder, "scratch")
    os.makedirs(scratch)
    expect(["run", MODEL, "--input", "image=" + IMAGE], 0, env={"PATH": "", "TMPDIR": scratch})
    check(os.listdir(scratch) == [], f"files stay behind: {os.listdir(scratch)}")


def check_faults(folder):
    """A fault of loaded code is one wrong case, and the others run: the function crashes where it can remove a file."""
    source, mark, other = (os.path.join(folder, name) for name in ("median_filter.c", "mark", "other"))
    with open(source, "w") as file:
        file.write(f'#include <stdio.h>\n#define median_filter filter\n#include "{MEDIAN_FILTER}/median_filter.c"\n#undef median_filter\n'
                   "int32_t median_filter(const firn_custom_call* call) {\n"
                   f'  if (remove("{mark}") == 0) *(volatile int*)8 = 0;\n  return filter(call);\n}}\n')
    os.symlink(MEDIAN_FILTER, other)
    custom = ["--custom-op", "com.acme:MedianFilter=median_filter:1K", "--link", source]
    for jobs in ("1", "2"):
        with open(mark, "w"):
            pass
        expect(["verify", MEDIAN_FILTER, other, "-j", jobs, *custom], 1, "crashed: Segmentation fault", "1 passed, 1 wrong, 0 refused")


with temporary_folder() as scratch_folder:
    check_without_programs(scratch_folder)
    check_visible_to_perf()
    check_temporary_files(scratch_folder)
    check_faults(scratch_folder)
finish()
