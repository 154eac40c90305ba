#!/usr/bin/env python3
"""One object for a range of dims: networks with several data sets, verified by one compilation each, and what is said of
dims that are not allowed.

    varying_dims.py FIRN
"""
import itertools
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from model_writer import graph, ints, model, node, tensor, value  # noqa: E402 (the path is set above)

failures = []


def floats(name, dims, values):
    return tensor(name, dims, struct.pack(f"<{len(values)}f", *values))


def int64s(name, *values):
    return tensor(name, [len(values)], struct.pack(f"<{len(values)}q", *values), dtype=7)


def numbers(count, first=1):
    """Small whole numbers, so that sums are exact."""
    return [(first + 7 * i) % 11 - 5 for i in range(count)]


def write(folder, nodes, inputs, outputs, initializers, data_sets):
    """A case; a data set is the tensors of the inputs and of the outputs, as (dims, elements)."""
    files = {"model.onnx": model(graph(nodes, inputs, outputs, initializers))}
    for k, (given, made) in enumerate(data_sets):
        for kind, tensors in (("input", given), ("output", made)):
            for i, (dims, elements) in enumerate(tensors):
                files[f"test_data_set_{k}/{kind}_{i}.pb"] = floats("", dims, elements)
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text)


def product(folder):
    """y = relu(x w), x: [batch,seq,5], w: [5,7]."""
    w = numbers(35, 3)

    def data_set(batch, seq):
        x, y = numbers(batch * seq * 5, batch), []
        for row, column in itertools.product(range(batch * seq), range(7)):
            y.append(max(0, sum(x[5 * row + k] * w[7 * k + column] for k in range(5))))
        return [([batch, seq, 5], x)], [([batch, seq, 7], y)]

    write(folder, [node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["y"])], [value("x", ["batch", "seq", 5])],
          [value("y", ["batch", "seq", 7])], [floats("w", [5, 7], w)],
          [data_set(*shape) for shape in ((1, 1), (4, 33), (2, 17), (3, 1), (1, 32))])


def longer(folder):
    """z = concat(past, new) + mask, whose dim the model calls a sum."""
    def data_set(past, seq):
        x, y, mask = numbers(2 * past), numbers(2 * seq, 5), numbers(2 * (past + seq), 9)
        return [([past, 2], x), ([seq, 2], y), ([past + seq, 2], mask)], [([past + seq, 2], [a + b for a, b in zip(x + y, mask)])]

    from model_writer import attribute, num
    write(folder, [node("Concat", ["past_in", "new"], ["c"], attribute("axis", 2, num(3, 0))), node("Add", ["c", "mask"], ["z"])],
          [value("past_in", ["past", 2]), value("new", ["seq", 2]), value("mask", ["past + seq", 2])], [value("z", ["past + seq", 2])],
          [], [data_set(*shape) for shape in ((0, 1), (5, 3), (16, 8), (15, 1))])


def multiples(folder):
    """Tiles of 32 columns: y = reshape(x) to [n/32 * rows, 32]."""
    def data_set(rows, width):
        x = numbers(rows * width)
        return [([rows, width], x)], [([rows * width // 32, 32], [-each for each in x])]

    write(folder, [node("Reshape", ["x", "s"], ["r"]), node("Neg", ["r"], ["y"])], [value("x", ["rows", "width"])],
          [value("y", ["tiles", 32])], [int64s("s", -1, 32)],
          [data_set(*shape) for shape in ((1, 32), (8, 96), (4, 64))])


def turned(folder):
    """y = transpose(x)."""
    def data_set(rows, columns):
        x = numbers(rows * columns)
        return [([rows, columns], x)], [([columns, rows], [x[r * columns + c] for c in range(columns) for r in range(rows)])]

    write(folder, [node("Transpose", ["x"], ["y"], ints("perm", [1, 0]))], [value("x", ["r", ""])], [value("y", ["c", "r"])], [],
          [data_set(*shape) for shape in ((1, 9), (9, 1), (4, 7))])


def embedded(folder):
    """y = x + the first rows of a table, z = x without its first row."""
    from model_writer import attribute, num
    table = numbers(18, 2)

    def data_set(rows):
        x = numbers(2 * rows)
        return [([rows, 2], x)], [([rows, 2], [a + b for a, b in zip(x, table)]), ([rows - 1, 2], x[2:])]

    write(folder, [node("Shape", ["x"], ["n"], attribute("start", 2, num(3, 0)), attribute("end", 2, num(3, 1))),
                   node("Slice", ["t", "zero", "n", "zero"], ["first"]), node("Add", ["x", "first"], ["y"]),
                   node("Slice", ["x", "one", "far", "zero"], ["z"])],
          [value("x", ["rows", 2])], [value("y", ["rows", 2]), value("z", ["others", 2])],
          [floats("t", [9, 2], table), int64s("zero", 0), int64s("one", 1), int64s("far", 2**63 - 1)],
          [data_set(rows) for rows in (9, 1, 4)])


CASES = {
    embedded: (["rows=1..9"], "rows=1..8", "rows = 9 is outside 1..8"),
    product: (["batch=1..4", "seq=1..33"], "batch=1..3", "dim 0 is 4, batch = 4 is outside 1..3"),
    longer: (["past=0..16", "seq=1..8"], "seq=1..7", "seq = 8 is outside 1..7"),
    multiples: (["rows=1|4|8", "width=32..96:32"], "rows=1|3|8", "dim 'rows' is 4, the object is for 1|3|8"),
    turned: (["r=1..9", "x_dim1=1..9"], "r=1..4", "r = 9 is outside 1..4"),
}


def main():
    firn = sys.argv[1]

    def run(*arguments):
        done = subprocess.run([firn, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def check(arguments, code, text):
        found = run(*arguments)
        if found[0] != code or text not in found[1]:
            failures.append(f"firn {' '.join(arguments)}: wanted {code} and '{text}', found {found[0]}: {found[1]}")

    with tempfile.TemporaryDirectory() as scratch:
        for make, (ranges, narrow, complaint) in CASES.items():
            folder = os.path.join(scratch, make.__name__)
            make(folder)
            dims = [f"--dim={text}" for text in ranges]
            for more in ([], ["-Os"], ["--mcpu=native"], ["--threads=4"], ["--multiversion=x86-64-v2,x86-64-v3"], ["--engine=eval"]):
                check(["verify", folder, *dims, "--tolerance=0", *more], 0, "1 passed")
            check(["verify", folder, "--tolerance=0"], 0, "1 passed")
            check(["verify", folder, dims[0], "--tolerance=0"], 0, "1 passed")  # the others as the data sets say
            narrowed = [f"--dim={narrow}" if text.split("=")[0] == narrow.split("=")[0] else f"--dim={text}" for text in ranges]
            check(["verify", folder, *narrowed], 1, complaint)
    sys.exit("\n".join(failures) or 0)


main()
