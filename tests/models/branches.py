#!/usr/bin/env python3
"""Branches that give values of different ranks, through compiled code and the evaluator: what uses them is right on either path.

    branches.py FIRN
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import attribute, graph, model, msg, node, num, tensor, value  # noqa: E402 (the path is set above)

BOOL, I64 = 9, 7
X, K = [float(i) - 2.5 for i in range(6)], [float(i * i) for i in range(6)]


def branch(*nodes):
    return graph(nodes, [], [msg(1, "given")])


def chosen(condition, output, on_true, on_false):
    return node("If", [condition], [output], attribute("then_branch", 5, msg(6, on_true)), attribute("else_branch", 5, msg(6, on_false)))


def squeezed_if(condition, output):
    """What exporters write for x.squeeze(0) under a condition."""
    return chosen(condition, output, branch(node("Squeeze", ["x", "front"], ["given"])), branch(node("Neg", ["x"], ["given"])))


NESTED = chosen("c", "z", branch(squeezed_if("d", "given")), branch(node("Identity", ["x"], ["given"])))
# Name: nodes from x: f32[1,6], k: f32[6], c and d to y, and y for x or -x in its place.
CASES = {
    "squeezed": ([squeezed_if("c", "z"), node("Add", ["z", "k"], ["w"]), node("Reshape", ["w", "pairs"], ["y"])], [3, 2],
                 lambda c, d: [(x if c else -x) + k for x, k in zip(X, K)]),
    "reduced": ([squeezed_if("c", "z"), node("ReduceSum", ["z"], ["s"], attribute("keepdims", 2, num(3, 0))), node("Mul", ["s", "k"], ["y"])], [6],
                lambda c, d: [(1 if c else -1) * sum(X) * k for k in K]),
    "nested": ([NESTED, node("Mul", ["z", "k"], ["w"]), node("Reshape", ["w", "pairs"], ["y"])], [3, 2],
               lambda c, d: [(-x if c and not d else x) * k for x, k in zip(X, K)]),
    "twice": ([squeezed_if("c", "z"), squeezed_if("d", "v"), node("Sub", ["z", "v"], ["w"]), node("Flatten", ["w"], ["y"], attribute("axis", 2, num(3, 0)))],
              [1, 6], lambda c, d: [(x if c else -x) - (x if d else -x) for x in X]),
}
CONSTANTS = [tensor("front", [1], struct.pack("<q", 0), I64), tensor("pairs", [2], struct.pack("<2q", 3, 2), I64)]
INPUTS = [value("x", [1, 6]), value("k", [6]), value("c", [], BOOL), value("d", [], BOOL)]


def floats(name, dims, values):
    return tensor(name, dims, struct.pack(f"<{len(values)}f", *values))


def write_case(folder, nodes, dims, result):
    files = {"model.onnx": model(graph(nodes, INPUTS, [value("y", dims)], CONSTANTS))}
    for number in range(4):
        c, d = number & 1, number >> 1
        given = [floats("x", [1, 6], X), floats("k", [6], K), tensor("c", [], bytes([c]), BOOL), tensor("d", [], bytes([d]), BOOL)]
        data = f"test_data_set_{number}"
        os.makedirs(os.path.join(folder, data))
        files.update({os.path.join(data, f"input_{i}.pb"): text for i, text in enumerate(given)})
        files[os.path.join(data, "output_0.pb")] = floats("y", dims, result(c, d))
    for path, text in files.items():
        with open(os.path.join(folder, path), "wb") as file:
            file.write(text)


def main():
    firn, bad = sys.argv[1], []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            write_case(os.path.join(folder, name), *case)
            done = subprocess.run([firn, "compile", os.path.join(folder, name, "model.onnx"), "-o", os.path.join(folder, "net")],
                                  capture_output=True, text=True)
            if done.returncode:
                bad.append(f"compile {name}: exit code {done.returncode}: {done.stderr}")
        for options in ([], ["-Os"], ["--threads=3"], ["--engine=eval"]):
            done = subprocess.run([firn, "verify", folder, *options], capture_output=True, text=True)
            if done.returncode or f"{len(CASES)} passed" not in done.stdout:
                bad.append(f"verify {options}: {done.stdout}{done.stderr}")
    sys.exit("\n".join(bad) or 0)


main()
