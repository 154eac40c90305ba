#!/usr/bin/env python3
"""Shapes that a run computes: right within the bounds that --max gives or the compiler derives, a status beyond them."""
import os
import struct

from tool import check, expect, finish, firn, temporary_folder, write_model
from model_writer import attribute, graph, msg, node, num, tensor, value

F32, I64, BOOL = 1, 7, 9
FORMS = {F32: ("<f4", "f"), I64: ("<i8", "q"), BOOL: ("|b1", "?")}


def write_npy(path, dtype, dims, numbers):
    descriptor, letter = FORMS[dtype]
    header = f"{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({''.join(f'{d},' for d in dims)}), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}{letter}", *numbers))


def read_npy(path):
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length].decode())
    letter = {"<f4": "f", "<i8": "q"}[header["descr"]]
    return list(header["shape"]), list(struct.unpack(f"<{(len(data) - 10 - length) // struct.calcsize(letter)}{letter}", data[10 + length:]))


def run(flags, inputs, engine):
    """Shape and elements of y, or the message."""
    words = []
    for name, (dtype, dims, numbers) in inputs.items():
        write_npy(f"{name}.npy", dtype, dims, numbers)
        words += ["--input", f"{name}={name}.npy"]
    done = firn("run", "m.onnx", *words, "--output-dir", "out", *flags, f"--engine={engine}")
    return read_npy("out/y.npy") if done.returncode == 0 else done.stderr


def check_case(name, nodes, types, flags, right, beyond, initializers=(), output=F32):
    """`types`: dtype and dims of inputs. `right`: values of inputs with shape and elements of y; `beyond`: values that end a run."""
    dims = ["a", "b", "c"][:len(right[0][1])]
    write_model("m.onnx", nodes, [value(n, d, t) for n, (t, d) in types.items()], [value("y", dims, output)], initializers)

    def given(numbers):
        return {n: (t, d, v) for (n, (t, d)), v in zip(types.items(), numbers)}
    for engine in ("object", "eval"):
        for numbers, *wanted in right:
            found = run(flags, given(numbers), engine)
            check(list(found) == wanted, f"{name} of {numbers}, {engine}: {found}, wanted {wanted}")
        for numbers in beyond:
            found = run(flags, given(numbers), engine)
            said = "ended early" if engine == "object" else "is not within"
            check(isinstance(found, str) and said in found, f"{name} of {numbers}, {engine}: {found}, wanted '{said}'")


def shape_cases():
    x = (F32, [6])
    six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    check_case("Reshape", [node("Reshape", ["x", "s"], ["y"])], {"x": x, "s": (I64, [2])}, [],
               [([six, [2, 3]], [2, 3], six), ([six, [-1, 2]], [3, 2], six), ([six, [0, 1]], [6, 1], six)],
               [[six, [2, 2]], [six, [7, 1]], [six, [-2, -3]], [six, [2**62, 4]], [six, [-1, -1]], [six, [4, -1]]])
    check_case("Reshape of one", [node("Concat", ["s", "three"], ["both"], attribute("axis", 2, num(3, 0))), node("Reshape", ["x", "both"], ["y"])],
               {"x": x, "s": (I64, [1])}, [], [([six, [2]], [2, 3], six)], [], [tensor("three", [1], struct.pack("<q", 3), I64)])
    check_case("Expand", [node("Expand", ["x", "s"], ["y"])], {"x": (F32, [2, 1]), "s": (I64, [2])}, ["--max", "s=4"],
               [([[1, 2], [2, 3]], [2, 3], [1, 1, 1, 2, 2, 2]), ([[1, 2], [1, 1]], [2, 1], [1, 2]), ([[1, 2], [2, 0]], [2, 0], [])],
               [[[1, 2], [2, 5]], [[1, 2], [2, -1]]])
    check_case("ConstantOfShape", [node("ConstantOfShape", ["s"], ["y"])], {"s": (I64, [2])}, ["--max", "s=3,4"],
               [([[3, 4]], [3, 4], [0] * 12), ([[2, 1]], [2, 1], [0, 0]), ([[0, 4]], [0, 4], [])], [[[4, 3]], [[1, 5]], [[-1, 1]], [[2**40, 0]]])
    clip = [node("Clip", ["n", "low", "high"], ["s"]), node("ConstantOfShape", ["s"], ["y"])]
    check_case("a derived bound", clip, {"n": (I64, [2])}, [], [([[9, 2]], [3, 2], [0] * 6), ([[-5, 1]], [0, 1], [])], [],
               [tensor("low", [], struct.pack("<q", 0), I64), tensor("high", [], struct.pack("<q", 3), I64)])


def movement_cases():
    scalars = {"s": (I64, []), "l": (I64, []), "d": (I64, [])}
    check_case("Range", [node("Range", ["s", "l", "d"], ["y"])], scalars, ["--max", "y=4"],
               [([[1], [4], [1]], [3], [1, 2, 3]), ([[5], [-4], [-3]], [3], [5, 2, -1]), ([[0], [7], [2]], [4], [0, 2, 4, 6]),
                ([[3], [1], [1]], [0], [])], [[[0], [5], [1]], [[0], [4], [0]], [[-2**62], [2**62], [1]]], output=I64)
    floats = {"s": (F32, []), "l": (F32, []), "d": (F32, [])}
    check_case("Range of floats", [node("Range", ["s", "l", "d"], ["y"])], floats, ["--max", "y=4"],
               [([[1], [2], [0.25]], [4], [1, 1.25, 1.5, 1.75]), ([[1], [0], [0.5]], [0], [])],
               [[[0], [4.5], [1]], [[0], [float("nan")], [1]], [[0], [1], [0]], [[0], [float("inf")], [1]]])
    check_case("Pad", [node("Pad", ["x", "p"], ["y"])], {"x": (F32, [2]), "p": (I64, [2])}, ["--max", "p=2"],
               [([[1, 2], [1, 2]], [5], [0, 1, 2, 0, 0]), ([[1, 2], [0, 0]], [2], [1, 2])], [[[1, 2], [3, 0]], [[1, 2], [0, -1]]])
    check_case("Tile", [node("Tile", ["x", "r"], ["y"])], {"x": (F32, [2]), "r": (I64, [1])}, ["--max", "r=3"],
               [([[1, 2], [3]], [6], [1, 2] * 3), ([[1, 2], [0]], [0], [])], [[[1, 2], [4]], [[1, 2], [-1]]])


def loop_cases():
    passed = graph([node("Identity", ["go"], ["on"]), node("Cast", ["i"], ["row"], attribute("to", 2, num(3, F32)))],
                   [value("i", [], I64), value("go", [], BOOL)], [value("on", [], BOOL), value("row", [])])
    check_case("Loop", [node("Loop", ["m", ""], ["y"], attribute("body", 5, msg(6, passed)))], {"m": (I64, [])}, ["--max", "y=3"],
               [([[2]], [2], [0, 1]), ([[3]], [3], [0, 1, 2]), ([[0]], [0], []), ([[-4]], [0], [])], [[[4]]])


with temporary_folder() as folder:
    os.chdir(folder)
    shape_cases()
    movement_cases()
    loop_cases()
    write_model("m.onnx", [node("ConstantOfShape", ["s"], ["y"])], [value("s", [2], I64)], [value("y", ["a", "b"])])
    expect(["compile", "m.onnx", "-o", "out"], 3, "input 's' is known only when it runs, and nothing bounds it", "--max s=<n>")
    expect(["compile", "m.onnx", "-o", "out", "--max", "s=3", "--max", "t=3"], 2, "no value 't'")
finish()
