#!/usr/bin/env python3
"""Shapes that a run computes: right within the bounds that --max gives or the compiler derives, a status beyond them."""
import os
import struct

from tool import BOOL, F32, I64, check, expect, finish, firn, temporary_folder, write_model, write_npy
from model_writer import attribute, graph, msg, node, num, tensor, value


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


def check_case(name, nodes, types, flags, right, beyond, initializers=(), output=F32, ended=None):
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
            said = ended or ("ended early" if engine == "object" else "is not within")
            check(isinstance(found, str) and said in found, f"{name} of {numbers}, {engine}: {found}, wanted '{said}'")


def shape_cases():
    x = (F32, [6])
    six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    check_case("Reshape", [node("Reshape", ["x", "s"], ["y"])], {"x": x, "s": (I64, [2])}, [],
               [([six, [2, 3]], [2, 3], six), ([six, [-1, 2]], [3, 2], six), ([six, [0, 1]], [6, 1], six)],
               [[six, [2, 2]], [six, [7, 1]], [six, [-2, -3]], [six, [2**62, 4]], [six, [-1, -1]], [six, [4, -1]]])
    both = node("Concat", ["s", "two"], ["both"], attribute("axis", 2, num(3, 0)))
    two = tensor("two", [1], struct.pack("<q", 2), I64)
    check_case("Reshape of one", [both, node("Reshape", ["x", "both"], ["y"])], {"x": (F32, [3, 2]), "s": (I64, [1])}, [],
               [([six, [3]], [3, 2], six), ([six, [-1]], [3, 2], six), ([six, [0]], [3, 2], six)],
               [[six, [2]], [six, [4]], [six, [-2]], [six, [-2**63]], [six, [2**63 - 1]]], [two])
    check_case("Reshape of one, 0 as it is", [both, node("Reshape", ["x", "both"], ["y"], attribute("allowzero", 2, num(3, 1)))],
               {"x": (F32, [3, 2]), "s": (I64, [1])}, [], [([six, [3]], [3, 2], six)], [[six, [0]]], [two])
    check_case("Reshape of a scalar", [node("Reshape", ["x", "s"], ["y"])], {"x": (F32, []), "s": (I64, [2])}, [],
               [([[7], [1, 1]], [1, 1], [7]), ([[7], [1, -1]], [1, 1], [7])], [[[7], [-1, -1]], [[7], [0, 1]], [[7], [1, 2]]])
    check_case("Reshape of nothing", [node("Reshape", ["x", "s"], ["y"], attribute("allowzero", 2, num(3, 1)))], {"x": (F32, [0, 3]), "s": (I64, [2])},
               ["--max", "s=5"], [([[], [0, 5]], [0, 5], []), ([[], [4, 0]], [4, 0], [])], [[[], [0, 6]], [[], [1, 1]]])
    check_case("Expand", [node("Expand", ["x", "s"], ["y"])], {"x": (F32, [2, 1]), "s": (I64, [2])}, ["--max", "s=4"],
               [([[1, 2], [2, 3]], [2, 3], [1, 1, 1, 2, 2, 2]), ([[1, 2], [1, 1]], [2, 1], [1, 2]), ([[1, 2], [2, 0]], [2, 0], [])],
               [[[1, 2], [2, 5]], [[1, 2], [2, -1]], [[1, 2], [3, 3]], [[1, 2], [0, 3]]])
    check_case("Expand of what is there", [node("Expand", ["x", "s"], ["y"])], {"x": (F32, [2]), "s": (I64, [1])}, [],
               [([[1, 2], [2]], [2], [1, 2]), ([[1, 2], [1]], [2], [1, 2])], [[[1, 2], [3]], [[1, 2], [-1]], [[1, 2], [0]]])
    check_case("ConstantOfShape", [node("ConstantOfShape", ["s"], ["y"])], {"s": (I64, [2])}, ["--max", "s=3,4"],
               [([[3, 4]], [3, 4], [0] * 12), ([[2, 1]], [2, 1], [0, 0]), ([[0, 4]], [0, 4], [])], [[[4, 3]], [[1, 5]], [[-1, 1]], [[2**40, 0]]])
    product = [node("Mul", ["m", "n"], ["s"]), node("ConstantOfShape", ["s"], ["y"])]
    check_case("ConstantOfShape of what is computed", product, {"m": (I64, [1]), "n": (I64, [1])}, ["--max", "s=6"],
               [([[2], [3]], [6], [0] * 6), ([[0], [9]], [0], [])], [[[7], [1]], [[-1], [1]]])
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
               [([[1, 2], [1, 2]], [5], [0, 1, 2, 0, 0]), ([[1, 2], [0, 0]], [2], [1, 2]), ([[1, 2], [0, -1]], [1], [1]), ([[1, 2], [-2, 2]], [2], [0, 0])],
               [[[1, 2], [3, 0]], [[1, 2], [3, -1]], [[1, 2], [0, -3]], [[1, 2], [-2**62, 2**62]], [[1, 2], [-2**63, 2]]])
    check_case("Tile", [node("Tile", ["x", "r"], ["y"])], {"x": (F32, [2]), "r": (I64, [1])}, ["--max", "r=3"],
               [([[1, 2], [3]], [6], [1, 2] * 3), ([[1, 2], [0]], [0], [])], [[[1, 2], [4]], [[1, 2], [-1]]])
    five = [1, 2, 3, 4, 5]
    check_case("Split", [node("Split", ["x", "p"], ["a", "y"])], {"x": (F32, [5]), "p": (I64, [2])}, [],
               [([five, [2, 3]], [3], [3, 4, 5]), ([five, [5, 0]], [0], []), ([five, [0, 5]], [5], five)],
               [[five, [2, 2]], [five, [3, 3]], [five, [-1, 6]], [five, [6, -1]], [five, [2**63 - 1, 6 - 2**63]]])
    check_case("TopK", [node("TopK", ["x", "k"], ["y", "i"])], {"x": (F32, [3]), "k": (I64, [1])}, [],
               [([[5, 7, 6], [2]], [2], [7, 6]), ([[5, 7, 6], [0]], [0], []), ([[5, 7, 6], [3]], [3], [7, 6, 5])],
               [[[5, 7, 6], [4]], [[5, 7, 6], [-1]]])
    check_case("OneHot", [node("OneHot", ["i", "d", "v"], ["y"])], {"i": (I64, [2]), "d": (I64, [])}, ["--max", "d=3"],
               [([[1, -1], [2]], [2, 2], [0, 1, 0, 1]), ([[0, -3], [3]], [2, 3], [1, 0, 0, 1, 0, 0]), ([[0, 0], [0]], [2, 0], [])],
               [[[0, 0], [4]], [[0, 0], [-1]]], [tensor("v", [2], struct.pack("<2f", 0, 1))])


def slice_cases():
    row = [node("Add", ["i", "one"], ["next"]), node("Slice", ["x", "i", "next"], ["y"])]
    one = [tensor("one", [1], struct.pack("<q", 1), I64)]
    check_case("Slice of a row", row, {"x": (F32, [3]), "i": (I64, [1])}, [],
               [([[5, 6, 7], [i]], [1], [5 + i % 3]) for i in (0, 2, -2, -3)], [[[5, 6, 7], [i]] for i in (3, -1, -4, -2**63, 2**63 - 1)], one)
    check_case("Slice of the only row", row, {"x": (F32, [1]), "i": (I64, [1])}, [], [([[5], [0]], [1], [5])], [[[5], [i]] for i in (1, -2, 7)], one)
    between = [node("Slice", ["x", "s", "e", "axis", "step"], ["y"])]
    for step, right in ((1, [([0, 3], [5, 6, 7]), ([-2, 2**63 - 1], [6, 7]), ([-2**63, -1], [5, 6]), ([2, 1], []), ([2**63 - 1, 9], [])]),
                        (-2**63, [([2, -2**63], [7]), ([-2**63, -9], [5]), ([0, 1], [])]), (2, [([0, 3], [5, 7]), ([1, 9], [6])])):
        consts = [tensor("axis", [1], struct.pack("<q", 0), I64), tensor("step", [1], struct.pack("<q", step), I64)]
        check_case(f"Slice by {step}", between, {"x": (F32, [3]), "s": (I64, [1]), "e": (I64, [1])}, [],
                   [([[5, 6, 7], [s], [e]], [len(y)], y) for (s, e), y in right], [], consts)


def empty_cases():
    some = [node("Compress", ["x", "m"], ["part"], attribute("axis", 2, num(3, 1)))]
    types, x = {"x": (F32, [2, 3]), "m": (BOOL, [3])}, [5, 6, 7, 3, 2, 1]
    one_of_each = [([x, [0, 1, 1]], [2], [1, 0]), ([x, [0, 0, 1]], [2], [0, 0])]
    arg = node("ArgMax", ["part"], ["y"], attribute("axis", 2, num(3, 1)), attribute("keepdims", 2, num(3, 0)))
    check_case("ArgMax", some + [arg], types, [], one_of_each, [[x, [0, 0, 0]]], output=I64)
    check_case("Hardmax", some + [node("Hardmax", ["part"], ["y"])], types, [],
               [([x, [1, 0, 1]], [2, 2], [0, 1, 1, 0]), ([x, [0, 0, 0]], [2, 0], [])], [])


def loop_cases():
    passed = graph([node("Identity", ["go"], ["on"]), node("Cast", ["i"], ["row"], attribute("to", 2, num(3, F32)))],
                   [value("i", [], I64), value("go", [], BOOL)], [value("on", [], BOOL), value("row", [])])
    check_case("Loop", [node("Loop", ["m", ""], ["y"], attribute("body", 5, msg(6, passed)))], {"m": (I64, [])}, ["--max", "y=3"],
               [([[2]], [2], [0, 1]), ([[3]], [3], [0, 1, 2]), ([[0]], [0], []), ([[-4]], [0], [])], [[[4]]])


def if_cases():
    """One branch fits the shapes; a run that takes the other ends."""
    def rows_of(width, name):
        shape = tensor("s" + name, [2], struct.pack("<2q", -1, width), I64)
        return graph([node("Reshape", ["x", "s" + name], ["r" + name]), node("MatMul", ["r" + name, "w"], [name])], [], [msg(1, name)], [shape])

    def branches(condition, then_branch, else_branch, y):
        return node("If", [condition], [y], attribute("then_branch", 5, msg(6, then_branch)), attribute("else_branch", 5, msg(6, else_branch)))
    weights, high = tensor("w", [2, 1], struct.pack("<2f", 1, 10)), tensor("high", [], struct.pack("<q", 16000), I64)
    asked, x = node("Equal", ["sr", "high"], ["c"]), [1, 2, 3, 4]
    types, right = {"x": (F32, [1, 4]), "sr": (I64, [])}, ([x, [16000]], [2, 1], [21, 43])
    inner = graph([branches("c", rows_of(2, "e"), rows_of(1, "f"), "g")], [], [msg(1, "g")])
    for name, more, y in (("If", [branches("c", rows_of(2, "a"), rows_of(4, "b"), "y")], "y"), ("If in a branch", [branches("c", inner, rows_of(4, "b"), "y")], "y"),
                          ("If that nothing reads", [branches("c", rows_of(2, "a"), rows_of(4, "b"), "z"), node("Reshape", ["x", "two"], ["h"]), node("MatMul", ["h", "w"], ["y"])], "y")):
        two = tensor("two", [2], struct.pack("<2q", 2, 2), I64)
        check_case(name, [asked, *more], types, [], [right], [[x, [8000]]], [weights, high, two], ended="a branch that does not fit")
    write_model("if.onnx", [asked, branches("c", rows_of(2, "a"), rows_of(4, "b"), "y")], [value("x", [1, 4]), value("sr", [], I64)], [value("y", ["a", "b"])], [weights, high])
    expect(["compile", "if.onnx", "-o", "out/if"], 0, "if.onnx: warning: if (If, node 1): its else_branch cannot be computed for these shapes", "--const sr=16000 leaves it out")
    done = expect(["compile", "if.onnx", "-o", "out/if", "--const", "sr=16000"], 0)
    check("warning" not in done.stderr, f"a branch that is left out is warned of: {done.stderr}")


with temporary_folder() as folder:
    os.chdir(folder)
    if_cases()
    shape_cases()
    movement_cases()
    slice_cases()
    empty_cases()
    loop_cases()
    write_model("m.onnx", [node("ConstantOfShape", ["s"], ["y"])], [value("s", [2], I64)], [value("y", ["a", "b"])])
    expect(["compile", "m.onnx", "-o", "out"], 3, "input 's' is known only when it runs, and nothing bounds it", "--max s=<n>")
    expect(["compile", "m.onnx", "-o", "out", "--max", "s=3", "--max", "t=3"], 2, "no value 't'")
finish()
