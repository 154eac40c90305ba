#!/usr/bin/env python3
"""Compiles valid models that a careless compiler takes for ever or all memory for: subexpressions that are shared again and
again, so that paths through the graph are 2 to the power of their number; deep chains; little data repeated many times.

    compile_cost.py FIRN [NAME...]

Every model has its bound in seconds of the CPU, generous by ten times or more, and in memory.
"""
import os
import resource
import struct
import subprocess
import sys
import tempfile

from hostile import attribute, graph, ints, model, node, num, tensor, value

MEMORY_KIB = 400 << 10


def int64s(name, values, dims=None):
    return tensor(name, [len(values)] if dims is None else dims, struct.pack(f"<{len(values)}q", *values), dtype=7)


def floats(name, values, dims):
    return tensor(name, dims, struct.pack(f"<{len(values)}f", *values))


AXIS = attribute("axis", 2, num(3, 0))
TRANSPOSED = ints("perm", [1, 0])


def chain(step, count, dims=(4, 16), inits=(), result=None, dtype=1):
    """`step(k, v)` gives the nodes of step k, whose input is v and whose output is `v<k>`."""
    nodes, v = [], "x"
    for k in range(count):
        nodes += step(k, v)
        v = f"v{k}"
    nodes.append(node("Identity", [v], ["y"]))
    return model(graph(nodes, [value("x", dims, dtype)], [value("y", result or dims, dtype)], inits))


def shared(op):
    return lambda k, v: [node(op, [v, v], [f"v{k}"])]


def diamond(k, v):
    return [node("Tanh", [v], [f"a{k}"]), node("Abs", [v], [f"b{k}"]), node("Add", [f"a{k}", f"b{k}"], [f"v{k}"])]


def transposes(k, v):
    return [node("Transpose", [v], [f"t{k}"], TRANSPOSED), node("Sub", [v, f"t{k}"], [f"u{k}"]), node("Relu", [f"u{k}"], [f"v{k}"])]


def products(k, v):
    return [node("MatMul", [v, v], [f"a{k}"]), node("Mul", [f"a{k}", v], [f"v{k}"])]


def halves(k, v):
    return [node("Slice", [v, "zero", "eight", "one"], [f"a{k}"]), node("Slice", [v, "eight", "far", "one"], [f"b{k}"]),
            node("Concat", [f"b{k}", f"a{k}"], [f"c{k}"], attribute("axis", 2, num(3, 1))), node("Mul", [v, f"c{k}"], [f"v{k}"])]


def means(k, v):
    return [node("ReduceMean", [v], [f"m{k}"], ints("axes", [1])), node("Sub", [v, f"m{k}"], [f"v{k}"])]


def choices(k, v):
    return [node("Less", [v, "half"], [f"p{k}"]), node("Mul", [v, "half"], [f"m{k}"]), node("Where", [f"p{k}", f"m{k}", v], [f"v{k}"])]


def reshapes(k, v):
    return [node("Reshape", [v, "wide"], [f"a{k}"]), node("Transpose", [f"a{k}"], [f"b{k}"], TRANSPOSED),
            node("Reshape", [f"b{k}", "dims"], [f"c{k}"]), node("Add", [v, f"c{k}"], [f"v{k}"])]


NUMBERS = [int64s("zero", [0]), int64s("one", [1]), int64s("eight", [8]), int64s("far", [1 << 40]), int64s("wide", [16, 4]),
           int64s("dims", [4, 16]), floats("half", [0.5], [])]


def shrinking(count):
    """Sums of a value with itself moved by another distance each time: an element depends on 2^count at as many places."""
    inits, width = list(NUMBERS), 16 + sum(k % 7 + 1 for k in range(count))

    def step(k, v):
        inits.extend([int64s(f"e{k}", [-(k % 7 + 1)]), int64s(f"s{k}", [k % 7 + 1])])
        return [node("Slice", [v, "zero", f"e{k}", "one"], [f"a{k}"]), node("Slice", [v, f"s{k}", "far", "one"], [f"b{k}"]),
                node("Add", [f"a{k}", f"b{k}"], [f"t{k}"]), node("Tanh", [f"t{k}"], [f"v{k}"])]
    return chain(step, count, (4, width), inits, (4, 16))


def symbolic(count, steps):
    """Arithmetic on a symbolic dim, whose result `d<count>` scales the input."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "index"], ["d0"], AXIS)]
    for k in range(count):
        nodes += steps(k)
    nodes += [node("Cast", [f"d{count}"], ["f"], attribute("to", 2, num(3, 1))), node("Mul", ["x", "f"], ["y"])]
    inits = [int64s("index", [0], []), int64s("two", [2], []), int64s("three", [3], [])]
    return model(graph(nodes, [value("x", ["n", 1])], [value("y", ["n", 1])], inits))


def powers(k):
    return [node("Mul", [f"d{k}", f"d{k}"], [f"m{k}"]), node("Add", [f"m{k}", f"d{k}"], [f"a{k}"]), node("Div", [f"a{k}", "two"], [f"d{k + 1}"])]


def quotients(k):
    return [node("Div", [f"d{k}", "two"], [f"m{k}"]), node("Add", [f"d{k}", "two"], [f"a{k}"]),
            node("Div", [f"a{k}", "three"], [f"q{k}"]), node("Add", [f"m{k}", f"q{k}"], [f"d{k + 1}"])]


def readers(count, first):
    """The value r of the node `first` with many readers, each of which does something else with it."""
    nodes = [first] + [node("Mul", ["r", f"c{k}"], [f"v{k}"]) for k in range(count)]
    nodes += [node("Tanh", [f"v{k}"], [f"t{k}"]) for k in range(count)]
    nodes.append(node("Concat", [f"t{k}" for k in range(count)], ["y"], AXIS))
    numbers = [int64s("sixteen", [16])] + [floats(f"c{k}", [k + 1.5], []) for k in range(count)]
    return model(graph(nodes, [value("x", [1, 16])], [value("y", [count, 16])], numbers))


def repeated(count):
    """A constant of 1 MB, repeated by 4 each time; every repetition is read."""
    side = 512
    nodes, v = [], "w"
    for k in range(count):
        nodes.append(node("Concat", [v] * 4, [f"c{k}"], AXIS))
        v = f"c{k}"
    nodes.append(node("Add", ["x", v], ["y"]))
    dims = [side * 4 ** count, side]
    return model(graph(nodes, [value("x", dims)], [value("y", dims)], [floats("w", [k % 97 / 7 for k in range(side * side)], [side, side])]))


def scaled(count):
    """A constant of 1 MB times many numbers, each tiled to 4 MB."""
    side = 512
    inits = [floats("w", [k % 97 / 7 for k in range(side * side)], [side, side]), int64s("times", [2, 2])]
    nodes, v = [], "x"
    for k in range(count):
        inits.append(floats(f"c{k}", [k + 1.5], []))
        nodes += [node("Mul", ["w", f"c{k}"], [f"m{k}"]), node("Tile", [f"m{k}", "times"], [f"t{k}"]),
                  node("Add", [v, f"t{k}"], [f"s{k}"])]
        v = f"s{k}"
    nodes.append(node("Identity", [v], ["y"]))
    return model(graph(nodes, [value("x", [2 * side, 2 * side])], [value("y", [2 * side, 2 * side])], inits))


# Name: seconds of the CPU, model, arguments.
MODELS = {
    "value_added_to_itself": (10, lambda: chain(shared("Add"), 200), []),
    "value_times_itself": (10, lambda: chain(shared("Mul"), 200), []),
    "value_times_itself_as_a_matrix": (20, lambda: chain(products, 60, (16, 16)), []),
    "diamonds": (30, lambda: chain(diamond, 200), []),
    "value_minus_its_transpose": (30, lambda: chain(transposes, 100, (16, 16)), []),
    "halves_exchanged": (30, lambda: chain(halves, 200, inits=NUMBERS), []),
    "means_subtracted": (30, lambda: chain(means, 200), []),
    "choices_of_two": (20, lambda: chain(choices, 200, inits=NUMBERS), []),
    "reshaped_and_transposed": (40, lambda: chain(reshapes, 200, inits=NUMBERS), []),
    "moved_by_other_distances": (6, lambda: shrinking(100), []),
    "many_readers": (30, lambda: readers(500, node("Relu", ["x"], ["r"])), []),
    "very_many_readers": (8, lambda: readers(4000, node("Relu", ["x"], ["r"])), ["--emit=graph"]),
    "very_many_readers_of_one_result_of_two": (8, lambda: readers(4000, node("TopK", ["x", "sixteen"], ["r", "places"])),
                                               ["--emit=graph"]),
    "symbolic_powers": (5, lambda: symbolic(200, powers), ["--dim=n=3"]),
    "symbolic_powers_unbound": (5, lambda: symbolic(200, powers), None),
    "symbolic_quotients_unbound": (5, lambda: symbolic(200, quotients), None),
    "deep_chain": (60, lambda: chain(shared("Add"), 20000), ["--emit=graph"]),
    "deep_chain_of_transposes": (60, lambda: chain(lambda k, v: [node("Transpose", [v], [f"v{k}"], TRANSPOSED)], 20000),
                                 ["--emit=graph"]),
    "constant_repeated": (20, lambda: repeated(4), []),
    "constant_scaled": (20, lambda: scaled(100), []),
}


def compile_model(firn, path, folder, seconds, arguments):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    command = [firn, "compile", path, "-O1", "-o", os.path.join(folder, "out"), *(arguments or [])]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limit) as process:
        message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    used = usage.ru_utime + usage.ru_stime
    return process.returncode, message, used, usage.ru_maxrss


def main():
    firn, names, bad = sys.argv[1], sys.argv[2:] or MODELS, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            seconds, make, arguments = MODELS[name]
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(make())
            code, message, used, kib = compile_model(firn, path, folder, seconds, arguments)
            # Without its dims a symbolic model is refused, in no time.
            good = code in (1, 2, 3) if arguments is None else code == 0
            good = good and (kib <= MEMORY_KIB or "asan" in firn)
            print(f"{'ok ' if good else 'BAD'} {name}: {used:.2f} s, {kib >> 10} MB, exit code {code}" + ("" if good else f"\n{message}"))
            bad += not good
    sys.exit(f"{bad} models cost too much" if bad else 0)


if __name__ == "__main__":
    main()
