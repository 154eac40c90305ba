#!/usr/bin/env python3
"""What --math=strict changes, and what the default is allowed: Winograd's algorithm, whose sums differ from the direct
ones in the last digits; factors that move between a layer and its weights; inverses for divisions; signs of zeros."""
import array
import os
import random
import struct

from tool import check, expect, finish, firn, temporary_folder, write_model
from model_writer import ints, node, tensor, value

CPU = "-mcpu=x86-64-v3"
CHANNELS, SIZE = 64, 28


def whole_numbers(count):
    """Small ones: any order of adding their products is exact in f32."""
    return array.array("f", (random.randint(-4, 4) for _ in range(count)))


def convolution_model():
    weights = whole_numbers(CHANNELS * CHANNELS * 9)
    dims = [1, CHANNELS, SIZE, SIZE]
    return weights, write_model("conv.onnx", [node("Conv", ["x", "w"], ["y"], ints("pads", [1, 1, 1, 1]))], [value("x", dims)],
                                [value("y", dims)], [tensor("w", [CHANNELS, CHANNELS, 3, 3], weights.tobytes())])


def direct_sums(x, weights, channel, rows):
    """Some of the results, in whole numbers."""
    sums = []
    for row in rows:
        for column in range(SIZE):
            total = 0
            for c in range(CHANNELS):
                for i in range(3):
                    for j in range(3):
                        r, k = row + i - 1, column + j - 1
                        if 0 <= r < SIZE and 0 <= k < SIZE:
                            total += x[(c * SIZE + r) * SIZE + k] * weights[((channel * CHANNELS + c) * 3 + i) * 3 + j]
            sums.append(total)
    return sums


def read_npy(path):
    data = open(path, "rb").read()
    header = struct.unpack("<H", data[8:10])[0]
    return array.array("f", data[10 + header:])


def check_winograd():
    """One convolution, both ways: the objects differ, strict maths gives exact sums of whole numbers, and the default
    stays within the tolerance of all tests."""
    weights, model = convolution_model()
    x = whole_numbers(CHANNELS * SIZE * SIZE)
    with open("x.pb", "wb") as file:
        file.write(tensor("x", [1, CHANNELS, SIZE, SIZE], x.tobytes()))
    # Larger transforms than the cost model has room for beside so small a model; strict maths leaves the line aside.
    plain = expect(["compile", model, CPU, "-o", "plain", "--class", "Net", "--explain"], 0).stdout
    line = next(line for line in plain.splitlines() if "convolution(" in line and " => " in line and line[0] != "#")
    with open("larger.txt", "w", encoding="utf-8") as file:
        file.write("firn-schedules 1\n" + line.split(" => ")[0] + " => winograd 4x4\n")
    larger = "--schedule-db=larger.txt"
    results, objects = {}, {}
    for math in ("default", "strict"):
        explained = expect(["compile", model, CPU, larger, f"--math={math}", "-o", math, "--class", "Net", "--explain"], 0).stdout
        check(("=> winograd" in explained) == (math == "default"), f"--math={math} chose: {explained}")
        check("; items " in explained and "; packed w (" in explained, f"no items or packed constants in: {explained}")
        check((" f32, transformed)" in explained) == (math == "default"), f"--math={math} packed: {explained}")
        objects[math] = open(math + ".o", "rb").read()
        expect(["run", model, CPU, larger, f"--math={math}", "--input", "x=x.pb", "--output-dir", math + ".out"], 0)
        results[math] = read_npy(math + ".out/y.npy")
    check(objects["default"] != objects["strict"], "the objects are the same")
    for channel in (0, CHANNELS - 1):
        rows = (0, SIZE // 2, SIZE - 1)
        wanted = direct_sums(x, weights, channel, rows)
        for math, tolerance in (("strict", 0), ("default", 1e-5)):
            got = [results[math][(channel * SIZE + row) * SIZE + k] for row in rows for k in range(SIZE)]
            error = max(abs(a - b) for a, b in zip(got, wanted)) / max(map(abs, wanted))
            check(error <= tolerance, f"--math={math}: channel {channel} is off by {error}")
    check(results["default"] != results["strict"], "Winograd's sums are exact: the test shows nothing")


# Name, parameters, body and result type; the op that is there with one of the two rules for floats alone.
PASSES = [
    ("simplify-algebra", "strict", "add", "%x: f32[4]", "f32[4]",
     "%zero = constant [0, 0, 0, 0] : f32[4]\n    %y = add %x, %zero : f32[4]"),
    ("fold-conv-scales,fold-constants", "strict", "multiply", "%x: f32[1,1,4]", "f32[1,1,4]",
     "%w = constant [1, 2, 3] : f32[1,1,3]\n    %c = convolution %x, %w {window = 3 pad 1_1} : f32[1,1,4]\n"
     "    %s = constant [3] : f32[1]\n    %b = broadcast_in_dim %s {dims = [1]} : f32[1,1,4]\n    %y = multiply %c, %b : f32[1,1,4]"),
]


def check_passes():
    for passes, holds, op, parameters, result, body in PASSES:
        with open("graph.hlo", "w") as file:
            file.write(f"module @m {{\n  func @main({parameters}) -> ({result}) {{\n    {body}\n    return %y\n  }}\n}}\n")
        for math in ("default", "strict"):
            text = expect(["opt", f"--passes={passes},eliminate-dead-code", f"--math={math}", "graph.hlo"], 0).stdout
            check((f" = {op} " in text) == (math == holds), f"{passes} with --math={math}: {text}")


with temporary_folder() as folder:
    os.chdir(folder)
    random.seed(1)
    check_winograd()
    check_passes()
finish()
