#!/usr/bin/env python3
"""Tensors without elements through compiled code and the evaluator: they have the right shapes, and what is made of them
has the right values.

    empty_tensors.py FIRN
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import attribute, graph, ints, model, node, num, tensor, value  # noqa: E402 (the path is set above)


def floats(name, dims, *values):
    return tensor(name, dims, struct.pack(f"<{len(values)}f", *values))


def int64s(name, *values):
    return tensor(name, [len(values)], struct.pack(f"<{len(values)}q", *values), dtype=7)


def slice_case(step, dims, axis):
    starts = [int64s("a", -1 if step < 0 else 0), int64s("b", -2147483648 if step < 0 else 2147483647), int64s("c", axis), int64s("d", step)]
    return [node("Slice", ["x", "a", "b", "c", "d"], ["y"])], starts, dims, dims, ()


AXIS_0 = attribute("axis", 2, num(3, 0))
# Name: nodes, initializers, dims of x and y, elements of y. x has no elements.
CASES = {
    "slice_backwards": slice_case(-3, [1, 3, 0, 2], 2),
    "slice_backwards_once": slice_case(-1, [0, 3], 0),
    "slice_forwards": slice_case(2, [2, 0], 1),
    "relu": ([node("Relu", ["x"], ["y"])], [], [0, 3], [0, 3], ()),
    "joined": ([node("Concat", ["x", "w"], ["y"], AXIS_0)], [floats("w", [1, 2], 5, 6)], [0, 2], [1, 2], (5, 6)),
    "product_without_terms": ([node("MatMul", ["x", "w"], ["y"])], [floats("w", [0, 3])], [2, 0], [2, 3], (0,) * 6),
    "product_without_rows": ([node("MatMul", ["x", "w"], ["y"])], [floats("w", [2, 3], *range(6))], [0, 2], [0, 3], ()),
    "convolution": ([node("Conv", ["x", "w"], ["y"], ints("pads", [1, 1, 1, 1]))], [floats("w", [4, 2, 3, 3], *range(72))],
                    [0, 2, 5, 5], [0, 4, 5, 5], ()),
    "pooling": ([node("MaxPool", ["x"], ["y"], ints("kernel_shape", [2, 2]))], [], [0, 2, 5, 5], [0, 2, 4, 4], ()),
    "softmax": ([node("Softmax", ["x"], ["y"])], [], [3, 0], [3, 0], ()),
    "sum": ([node("ReduceSum", ["x", "a"], ["y"])], [int64s("a", 0)], [0, 3], [1, 3], (0, 0, 0)),
    "transposed": ([node("Transpose", ["x"], ["y"], ints("perm", [2, 0, 1]))], [], [2, 0, 3], [3, 2, 0], ()),
    "padded": ([node("Pad", ["x", "p", "v"], ["y"])], [int64s("p", 1, 0, 1, 1), floats("v", [], 7)], [0, 1], [2, 2], (7,) * 4),
    "gathered": ([node("Gather", ["w", "i"], ["g"]), node("Sum", ["x", "g"], ["y"])], [floats("w", [4, 2], *range(8)), int64s("i")],
                 [0, 2], [0, 2], ()),
}


def main():
    firn, bad = sys.argv[1], []
    with tempfile.TemporaryDirectory() as folder:
        for name, (nodes, initializers, given, made, elements) in CASES.items():
            data = os.path.join(folder, name, "test_data_set_0")
            os.makedirs(data)
            files = {os.path.join(folder, name, "model.onnx"):
                     model(graph(nodes, [value("x", given)], [value("y", made)], initializers)),
                     os.path.join(data, "input_0.pb"): floats("x", given), os.path.join(data, "output_0.pb"): floats("y", made, *elements)}
            for path, text in files.items():
                with open(path, "wb") as file:
                    file.write(text)
            done = subprocess.run([firn, "compile", os.path.join(folder, name, "model.onnx"), "-o", os.path.join(folder, "net")],
                                  capture_output=True, text=True)
            if done.returncode:
                bad.append(f"compile {name}: exit code {done.returncode}: {done.stderr}")
        for options in ([], ["-Os"], ["--engine=eval"]):
            done = subprocess.run([firn, "verify", folder, *options], capture_output=True, text=True)
            if done.returncode or f"{len(CASES)} passed" not in done.stdout:
                bad.append(f"verify {options}: {done.stdout}{done.stderr}")
    sys.exit("\n".join(bad) or 0)


main()
