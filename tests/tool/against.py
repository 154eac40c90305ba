#!/usr/bin/env python3
"""The error that fewer digits bring, stated by verify --against f32 and compile --report."""
import json
import math
import os
import struct

from tool import MODEL, check, expect, finish, firn, temporary_folder, write_model
from model_writer import node, tensor, value

STEPS, I64 = 64, 7
MISSED = 2.0 ** -9  # bf16 holds 1, not 1 + MISSED
COLUMNS = [1 + MISSED, 2.0, -1.0, 0.5]


def packed(numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def make_model(folder, has_data):
    """y = x * W, of whose weights bf16 holds all but one, and the index of the largest element of y."""
    os.mkdir(folder)
    weights = COLUMNS + [1.0] * (4 * STEPS - 4)
    write_model(os.path.join(folder, "model.onnx"), [node("MatMul", ["x", "w"], ["y"]), node("ArgMax", ["y"], ["best"])],
                [value("x", [1, STEPS])], [value("y", [1, 4]), value("best", [1, 4], I64)], [tensor("w", [STEPS, 4], packed(weights))])
    if not has_data:
        return
    data = os.path.join(folder, "test_data_set_0")
    os.mkdir(data)
    with open(os.path.join(data, "input_0.pb"), "wb") as file:
        file.write(tensor("x", [1, STEPS], packed([1.0] + [0.0] * (STEPS - 1))))


def stated(*arguments, code=0):
    return json.loads(expect(["verify", "--against", "f32", "--json", *arguments], code).stdout)


def check_figures():
    found = stated("data", "--weight-type=bf16")
    case = found["cases"][0]
    check(found["passed"] == 1 and case["verdict"] == "pass" and case["data"] == "1 data set", f"no figures: {found}")
    y, best = case["outputs"]
    expected_rms = math.sqrt(sum(c * c for c in COLUMNS) / 4)
    for name, wanted in (("largest", MISSED), ("rms", MISSED / 2), ("expected_rms", expected_rms),
                         ("decibels", 20 * math.log10(2 * expected_rms / MISSED))):
        check(abs(y[name] - wanted) <= 1e-6 * wanted, f"{name} is {y[name]}, not {wanted}")
    check(best["differ"] == 0 and best["elements"] == 4, f"integers: {best}")
    check(abs(case["error"] - MISSED / 2) < 1e-8, f"relative to the largest expected value: {case['error']}")
    check(stated("data")["cases"][0]["outputs"][0]["largest"] == 0, "an error without anything narrow")


def check_verdicts():
    flags = ["verify", "--against", "f32", "data", "--weight-type=bf16"]
    expect([*flags, "--tolerance=1e-2"], 0, "1 passed", "1.95e-03")
    expect([*flags, "--tolerance=1e-4"], 1, "WRONG", "1.95e-03", "0 passed, 1 wrong")
    expect([*flags, "--engine=eval"], 2, "excludes")
    expect([*flags, "--absolute-floor"], 2, "excludes")
    expect(["verify", "--against", "f32", "nowhere"], 2, "'nowhere' is not a folder or a file")
    expect(["verify", MODEL], 2, "is not a folder")
    with open("no_model", "w") as file:
        file.write("text")
    expect(["verify", "--against", "f32", "no_model"], 1, "1 wrong", "not a readable ONNX file")


def check_seeded():
    first = stated("plain", "plain/model.onnx", "--weight-type=bf16")
    for case in first["cases"]:
        check(case["data"] == "4 seeded inputs" and case["outputs"][1]["elements"] == 16, f"seeded: {case}")
        check(0 < case["outputs"][0]["largest"] < 0.02, f"seeded error: {case}")
    again = stated("plain", "--weight-type=bf16")
    check(first["cases"][0] == again["cases"][0], "seeded inputs are not the same again")


def check_report():
    here = ["compile", "data/model.onnx", "-o", "out", "-q", "--report"]
    check("error" not in expect(here, 0).stdout, "--report states an error where nothing is narrow")
    expect([*here, "--weight-type=bf16"], 0, "error against the model's own precision, on 1 data set", "1.95e-03")
    other = "riscv64-linux-gnu"
    expect([*here, "--weight-type=bf16", "--target", other], 0, "error unknown: code for riscv64", "does not run on this machine")
    expect(["compile", "data/model.onnx", "--emit=graph", "-o", "out.hlo", "--weights-out=out.weights"], 0)
    expect(["compile", "out.hlo", "--weights-in=out.weights", "--passes=none", "-o", "out", "-q", "--report", "--precision=bf16"], 0, "4 seeded inputs")


with temporary_folder() as folder:
    os.chdir(folder)
    make_model("data", has_data=True)
    make_model("plain", has_data=False)
    check_figures()
    check_verdicts()
    check_seeded()
    check_report()
finish()
