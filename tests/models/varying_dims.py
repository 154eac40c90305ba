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


def resized(folder):
    """Twice as large by nearest places, and in between of neighbours to the size of another tensor."""
    def line(x, extent):
        y = []
        for i in range(extent):
            place = (i + 0.5) * len(x) / extent - 0.5
            low = int(place // 1)
            first, second = (x[min(max(at, 0), len(x) - 1)] for at in (low, low + 1))
            y.append(first * (1 - (place - low)) + second * (place - low))
        return y

    def data_set(rows, columns):
        x = numbers(rows * columns, rows)
        image = [x[i * columns:][:columns] for i in range(rows)]
        twice = [image[i // 2][j // 2] for i in range(2 * rows) for j in range(2 * columns)]
        tall = list(zip(*[line(column, 4 * rows) for column in zip(*image)]))
        return [([1, 1, rows, columns], x), ([4 * rows], numbers(4 * rows))], [
            ([1, 1, 2 * rows, 2 * columns], twice), ([1, 1, 4 * rows, columns], [each for row in tall for each in row])]

    from model_writer import attribute, msg, num
    mode = lambda name, text: attribute(name, 3, msg(4, text))
    axis = lambda name, n: attribute(name, 2, num(3, n))
    write(folder, [node("Resize", ["x", "", "scales"], ["y"], mode("mode", "nearest"), mode("coordinate_transformation_mode", "asymmetric"),
                        mode("nearest_mode", "floor")),
                   node("Shape", ["x"], ["n"], axis("end", 2)), node("Shape", ["x"], ["columns"], axis("start", 3)), node("Shape", ["like"], ["tall"]),
                   node("Concat", ["n", "tall", "columns"], ["sizes"], axis("axis", 0)),
                   node("Resize", ["x", "", "", "sizes"], ["z"], mode("mode", "linear"))],
          [value("x", [1, 1, "rows", "columns"]), value("like", ["tall"])], [value("y", [1, 1, "a", "b"]), value("z", [1, 1, "c", "columns"])],
          [floats("scales", [4], [1, 1, 2, 2])], [data_set(*shape) for shape in ((1, 1), (5, 9), (2, 3), (4, 8))])


def padded(folder):
    """Rows up to nine, of zeros, of the last one, and of all from behind and from the start again."""
    def data_set(rows):
        x = numbers(2 * rows)
        image = [x[2 * i:][:2] for i in range(rows)]
        period = max(1, 2 * (rows - 1))
        mirror = [min(i % period, period - i % period) for i in range(9)]
        flat = lambda places: [each for i in places for each in image[i]]
        return [([rows, 2], x)], [([9, 2], x + [0] * (18 - 2 * rows)), ([9, 2], flat([min(i, rows - 1) for i in range(9)])),
                                  ([9, 2], flat(mirror)), ([9, 2], flat([i % rows for i in range(9)]))]

    from model_writer import attribute, msg, num
    nodes = [node("Shape", ["x"], ["n"], attribute("end", 2, num(3, 1))), node("Sub", ["nine", "n"], ["more"]),
             node("Concat", ["zeros", "more", "zero"], ["pads"], attribute("axis", 2, num(3, 0)))]
    modes = ("constant", "edge", "reflect", "wrap")
    nodes += [node("Pad", ["x", "pads"], [mode], attribute("mode", 3, msg(4, mode))) for mode in modes]
    write(folder, nodes, [value("x", ["rows", 2])], [value(mode, ["all", 2]) for mode in modes],
          [int64s("nine", 9), int64s("zeros", 0, 0), int64s("zero", 0)], [data_set(rows) for rows in (9, 1, 4)])


def scanned(folder):
    """Sums of the rows up to each, from both ends; and doubled rows until one starts with 5, or there are no more."""
    def sums(rows):
        total, made = [0, 0], []
        for row in rows:
            total = [a + b for a, b in zip(total, row)]
            made.append(total)
        return made

    def data_set(rows):
        x = numbers(2 * rows, rows)
        image = [x[2 * i:][:2] for i in range(rows)]
        stop = next((i + 1 for i, row in enumerate(image) if row[0] == 5), rows)
        flat = lambda image: [each for row in image for each in row]
        return [([rows, 2], x)], [([rows, 2], flat(sums(image))), ([rows, 2], flat(sums(image[::-1])[::-1])),
                                  ([stop, 2], [2 * each for each in flat(image[:stop])])]

    from model_writer import attribute, msg, num
    body = graph([node("Add", ["s", "row"], ["t"]), node("Identity", ["t"], ["out"])], [value("s", [2]), value("row", [2])],
                 [value("t", [2]), value("out", [2])])
    step = graph([node("Gather", ["x", "i"], ["row"]), node("Add", ["row", "row"], ["out"]), node("Slice", ["row", "zero", "one"], ["first"]),
                  node("Squeeze", ["first"], ["f"]), node("Equal", ["f", "five"], ["is"]), node("Not", ["is"], ["on"])],
                 [value("i", [], 7), value("go", [], 9)], [value("on", [], 9), value("out", [2])])
    scan = lambda *more: [attribute("body", 5, msg(6, body)), attribute("num_scan_inputs", 2, num(3, 1)), *more]
    write(folder, [node("Scan", ["start", "x"], ["", "down"], *scan()),
                   node("Scan", ["start", "x"], ["", "up"], *scan(ints("scan_input_directions", [1]), ints("scan_output_directions", [1]))),
                   node("Shape", ["x"], ["n"], attribute("end", 2, num(3, 1))), node("Squeeze", ["n"], ["count"]),
                   node("Loop", ["count", ""], ["until"], attribute("body", 5, msg(6, step)))],
          [value("x", ["rows", 2])], [value("down", ["rows", 2]), value("up", ["rows", 2]), value("until", ["found", 2])],
          [floats("start", [2], [0, 0]), int64s("zero", 0), int64s("one", 1), floats("five", [], [5])],
          [data_set(rows) for rows in (9, 1, 2, 6)])


def cut(folder):
    """Rows from the largest of the first column on, every second one before it, and those before it from behind."""
    def data_set(rows):
        x = numbers(2 * rows, rows)
        image = [x[2 * i:][:2] for i in range(rows)]
        at = max(range(rows), key=lambda i: (image[i][0], -i))
        flat = lambda image: [each for row in image for each in row]
        return [([rows, 2], x)], [([rows - at, 2], flat(image[at:])), ([len(image[:at:2]), 2], flat(image[:at:2])),
                                  ([at + 1, 2], flat(image[at::-1]))]

    from model_writer import attribute, num
    write(folder, [node("Slice", ["x", "zero", "one", "axis"], ["column"]), node("Squeeze", ["column", "axis"], ["c"]),
                   node("ArgMax", ["c"], ["at"], attribute("axis", 2, num(3, 0))), node("Slice", ["x", "at", "far", "zero"], ["a"]),
                   node("Slice", ["x", "zero", "at", "zero", "two"], ["b"]), node("Slice", ["x", "at", "back", "zero", "minus"], ["d"])],
          [value("x", ["rows", 2])], [value("a", ["ra", 2]), value("b", ["rb", 2]), value("d", ["rd", 2])],
          [int64s("zero", 0), int64s("one", 1), int64s("axis", 1), int64s("far", 2**63 - 1), int64s("back", -2**63), int64s("two", 2),
           int64s("minus", -1)], [data_set(rows) for rows in (9, 1, 4)])


def gathered(folder):
    """Places of what is not 0 in rows of 4, and the columns that are above 0 in the first row in rows of 3."""
    def data_set(rows, *x):
        columns = len(x) // rows
        places = [each for i in range(len(x)) if x[i] for each in divmod(i, columns)]
        kept = [x[r * columns + c] for r in range(rows) for c in range(columns) if x[c] > 0]
        return [([rows, columns], x)], [([len(places) // 4, 4], places), ([len(kept) // 3, 3], kept)]

    from model_writer import attribute, num
    flag = lambda name, n: attribute(name, 2, num(3, n))
    write(folder, [node("NonZero", ["x"], ["found"]), node("Transpose", ["found"], ["pairs"]), node("Cast", ["pairs"], ["f"], flag("to", 1)),
                   node("Reshape", ["f", "four"], ["y"]), node("Gather", ["x", "first"], ["row"]), node("Greater", ["row", "zero"], ["is"]),
                   node("Compress", ["x", "is"], ["kept"], flag("axis", 1)), node("Reshape", ["kept", "three"], ["z"])],
          [value("x", ["rows", "columns"])], [value("y", ["a", 4]), value("z", ["b", 3])],
          [int64s("four", -1, 4), int64s("three", -1, 3), tensor("first", [], struct.pack("<q", 0), dtype=7), floats("zero", [], [0])],
          [data_set(*x) for x in ((1, 1, 2, 3, -4), (3, 1, 0, 2, 0, 5, 6, 0, 7, 8), (2, 0, -1, 0, 0, 0, 3), (3, 0, 4, 0, 4, 0, 0))])


def chosen(folder):
    """The first three of what is above 0 where the sum is, nothing where it is not; its length, and all of it doubled."""
    def data_set(*x):
        taken = [each for each in x if each > 0] if sum(x) > 0 else []
        return [([len(x)], x)], [([min(3, len(taken))], taken[:3]), ([], [len(taken)]), ([len(taken)], [2 * each for each in taken])]

    from model_writer import attribute, msg, num
    some = graph([node("Greater", ["x", "zero"], ["above"]), node("Compress", ["x", "above"], ["some"], attribute("axis", 2, num(3, 0)))],
                 [], [value("some", ["s"])])
    none = graph([node("Identity", ["empty"], ["none"])], [], [value("none", [0])])
    write(folder, [node("ReduceSum", ["x"], ["sum"], attribute("keepdims", 2, num(3, 0))), node("Greater", ["sum", "zero"], ["is"]),
                   node("If", ["is"], ["taken"], attribute("then_branch", 5, msg(6, some)), attribute("else_branch", 5, msg(6, none))),
                   node("Slice", ["taken", "first", "third"], ["few"]), node("Shape", ["taken"], ["shape"]), node("Squeeze", ["shape"], ["length"]),
                   node("Cast", ["length"], ["count"], attribute("to", 2, num(3, 1))), node("Add", ["taken", "taken"], ["twice"])],
          [value("x", ["n"])], [value("few", ["f"]), value("count", []), value("twice", ["t"])],
          [floats("zero", [], [0]), floats("empty", [0], []), int64s("first", 0), int64s("third", 3)],
          [data_set(*x) for x in ((1, -2, 3, 0, 4, 5), (-1,), (2,), (-9, 1, 2, 3, 4, 5, 6))])


def grown(folder):
    """The sum of x, and one more in every step, joined to x, until it is above 10 or five steps were taken; with twice each of it."""
    def data_set(*x):
        made = []
        while True:
            made.append(sum(x) + len(made))
            if made[-1] >= 10 or len(made) == 5:
                break
        return [([len(x)], x)], [([len(x) + len(made)], [*x, *made]), ([len(made)], [2 * each for each in made])]

    from model_writer import attribute, msg, num
    body = graph([node("Cast", ["i"], ["f"], attribute("to", 2, num(3, 1))), node("Add", ["sum", "f"], ["v"]), node("Unsqueeze", ["v", "first"], ["row"]),
                  node("Concat", ["out", "row"], ["longer"], attribute("axis", 2, num(3, 0))), node("Add", ["v", "v"], ["twice"]),
                  node("Add", ["two", "k"], ["next"]), node("Greater", ["nine", "next"], ["more"]), node("Less", ["v", "ten"], ["small"]),
                  node("And", ["small", "more"], ["on"])],
                 [value("i", [], 7), value("go", [], 9), value("out", ["o"]), value("k", [], 7)],
                 [value("on", [], 9), value("longer", ["l"]), value("next", [], 7), value("twice", [])])
    write(folder, [node("ReduceSum", ["x"], ["sum"], attribute("keepdims", 2, num(3, 0))),
                   node("Loop", ["always", "", "x", "none"], ["all", "last", "rows"], attribute("body", 5, msg(6, body)))],
          [value("x", ["n"])], [value("all", ["a"]), value("rows", ["r"])],
          [int64s("first", 0), tensor("always", [], struct.pack("<q", 2**63 - 1), dtype=7), tensor("none", [], struct.pack("<q", 0), dtype=7),
           tensor("two", [], struct.pack("<q", 2), dtype=7), tensor("nine", [], struct.pack("<q", 9), dtype=7), floats("ten", [], [10])],
          [data_set(*x) for x in ((1, 2, 3), (12,), (4, 5), (-3, 1, 1, 0, 2, -4))])


def listed(folder):
    """Rows of x, in front of each other, until one is negative, and how many; those with a sum above 2 in order."""
    def data_set(*x):
        first = next((i + 1 for i, row in enumerate(x) if sum(row) < 0), len(x))
        kept = [row for row in x if sum(row) > 2] + [x[0]]
        flat = lambda rows: [each for row in rows for each in row]
        return [([len(x), 2], flat(x))], [([first, 2], flat(x[:first][::-1])), ([], [first]), ([2, len(kept)], flat(zip(*kept)))]

    from model_writer import attribute, msg, num
    sub = lambda name, body: attribute(name, 5, msg(6, body))
    untyped = lambda name: msg(1, name)
    row = [node("Gather", ["x", "i"], ["row"]), node("ReduceSum", ["row"], ["sum"], attribute("keepdims", 2, num(3, 0)))]
    begin = [value("i", [], 7), value("go", [], 9), untyped("s")]
    until = graph([*row, node("GreaterOrEqual", ["sum", "zero"], ["on"]), node("SequenceInsert", ["s", "row", "front"], ["t"])],
                  begin, [value("on", [], 9), untyped("t")])
    longer, same = graph([node("SequenceInsert", ["s", "row"], ["u"])], [], [untyped("u")]), graph([node("Identity", ["s"], ["v"])], [], [untyped("v")])
    above = graph([*row, node("Greater", ["sum", "two"], ["is"]), node("If", ["is"], ["t"], sub("then_branch", longer), sub("else_branch", same)),
                   node("Identity", ["go"], ["on"])], begin, [value("on", [], 9), untyped("t")])
    write(folder, [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "front"], ["n"]), node("SequenceEmpty", [], ["none"]),
                   node("Loop", ["n", "", "none"], ["some"], sub("body", until)), node("Loop", ["n", "", "none"], ["above"], sub("body", above)),
                   node("ConcatFromSequence", ["some"], ["rows"], attribute("axis", 2, num(3, 0)), attribute("new_axis", 2, num(3, 1))),
                   node("SequenceLength", ["some"], ["length"]), node("Cast", ["length"], ["count"], attribute("to", 2, num(3, 1))),
                   node("Gather", ["x", "front"], ["x0"]), node("SequenceInsert", ["above", "x0"], ["kept"]),
                   node("ConcatFromSequence", ["kept"], ["columns"], attribute("axis", 2, num(3, 1)), attribute("new_axis", 2, num(3, 1)))],
          [value("x", ["n", 2])], [value("rows", ["r", 2]), value("count", []), value("columns", [2, "c"])],
          [tensor("front", [], struct.pack("<q", 0), dtype=7), floats("zero", [], [0]), floats("two", [], [2])],
          [data_set(*x) for x in ([(1, 2), (3, 4), (0, 1), (-3, 1), (5, 5)], [(-1, 0)], [(1, 1)], [(2, 3)] * 6)])


def parted(folder):
    """Of x: both halves, it three times, its larger half, it filled up to rows of 4, and it between zeros under [1, 2, 3]."""
    def data_set(*x):
        n, first, larger = len(x), (len(x) + 1) // 2, len(x) // 2 + 1
        wide = [*x] + [0] * (-n % 4)
        spread = [0] * (2 * n + 1)
        for i, each in enumerate(x):
            for k in range(3):
                spread[2 * i + k] += (k + 1) * each
        order = sorted(range(n), key=lambda i: (-x[i], i))[:larger]
        return [([n], x)], [([first], x[:first]), ([n - first], x[first:]), ([3 * n], x * 3), ([len(order)], [x[i] for i in order]),
                            ([len(wide) // 4], [sum(wide[i:i + 4]) for i in range(0, len(wide), 4)]), ([1, 1, 2 * n + 1], spread)]

    from model_writer import attribute, num
    flag = lambda name, n: attribute(name, 2, num(3, n))
    write(folder, [node("Shape", ["x"], ["n"]), node("Add", ["n", "one"], ["more"]), node("Div", ["more", "two"], ["half"]),
                   node("Sub", ["n", "half"], ["rest"]), node("Concat", ["half", "rest"], ["parts"], flag("axis", 0)),
                   node("Split", ["x", "parts"], ["first", "last"]), node("Tile", ["x", "three"], ["thrice"]),
                   node("Div", ["n", "two"], ["down"]), node("Add", ["down", "one"], ["k"]), node("TopK", ["x", "k"], ["larger", "places"]),
                   node("Mod", ["n", "four"], ["over"]), node("Sub", ["four", "over"], ["lack"]), node("Mod", ["lack", "four"], ["end"]),
                   node("Concat", ["none", "end"], ["pads"], flag("axis", 0)), node("Pad", ["x", "pads"], ["wide"]),
                   node("Reshape", ["wide", "rows"], ["lines"]), node("ReduceSum", ["lines", "one"], ["sums"], flag("keepdims", 0)),
                   node("Reshape", ["x", "image"], ["line"]), node("ConvTranspose", ["line", "w"], ["spread"], ints("strides", [2]))],
          [value("x", ["n"])], [value(name, [f"d{i}"]) for i, name in enumerate(["first", "last", "thrice", "larger", "sums"])]
          + [value("spread", [1, 1, "s"])],
          [int64s("one", 1), int64s("two", 2), int64s("three", 3), int64s("four", 4), int64s("none", 0), int64s("rows", -1, 4),
           int64s("image", 1, 1, -1), floats("w", [1, 1, 3], [1, 2, 3])],
          [data_set(*x) for x in ((1, -2, 3, 0, 4), (7,), (5, 5, 2), (-1, 2, 3, 9, 1, 0, 2, 8))])


def halved(folder):
    """The first two columns of x where its sum is above 0, else x beside itself, in rows whose number varies too; 1 more."""
    def data_set(rows, columns, sign):
        x = [sign * (abs(each) + 1) for each in numbers(rows * columns, rows)]
        image = [x[i * columns:][:columns] for i in range(rows)]
        taken = [row[:2] if sign > 0 else row + row for row in image]
        return [([rows, columns], x)], [([rows, len(taken[0])], [each + 1 for row in taken for each in row])]

    from model_writer import attribute, msg, num
    few = graph([node("Slice", ["x", "first", "second", "last"], ["few"])], [], [value("few", ["r", 2])])
    many = graph([node("Concat", ["x", "x"], ["many"], attribute("axis", 2, num(3, 1)))], [], [value("many", ["r", "m"])])
    write(folder, [node("ReduceSum", ["x"], ["sum"], attribute("keepdims", 2, num(3, 0))), node("Greater", ["sum", "zero"], ["is"]),
                   node("If", ["is"], ["taken"], attribute("then_branch", 5, msg(6, few)), attribute("else_branch", 5, msg(6, many))),
                   node("Add", ["taken", "one"], ["y"])],
          [value("x", ["rows", "columns"])], [value("y", ["rows", "c"])],
          [floats("zero", [], [0]), floats("one", [], [1]), int64s("first", 0), int64s("second", 2), int64s("last", 1)],
          [data_set(*each) for each in ((5, 9, 1), (5, 9, -1), (1, 2, -1), (3, 4, 1))])


def pooled(folder):
    """RoiAlign's value between four pixels of an image of any size, for regions of any number."""
    def data_set(rows, columns, *regions):
        x = numbers(rows * columns, rows)

        def between(row, column):
            value, places = 0, (min(row + 0.5, rows - 1), min(column + 0.5, columns - 1))
            for i, j in itertools.product(range(2), range(2)):
                near = [int(place) + step for place, step in zip(places, (i, j))]
                weight = [1 - abs(place - at) for place, at in zip(places, near)]
                if weight[0] * weight[1] > 0:
                    value += weight[0] * weight[1] * x[near[0] * columns + near[1]]
            return value

        boxes = [each for row, column in regions for each in (column, row, column + 1, row + 1)]
        return [([1, 1, rows, columns], x), ([len(regions), 4], boxes)], [([len(regions), 1, 1, 1], [between(*each) for each in regions])]

    from model_writer import attribute, num
    write(folder, [node("Shape", ["boxes"], ["n"], attribute("end", 2, num(3, 1))), node("ConstantOfShape", ["n"], ["f"]),
                   node("Cast", ["f"], ["image"], attribute("to", 2, num(3, 7))),
                   node("RoiAlign", ["x", "boxes", "image"], ["y"], attribute("sampling_ratio", 2, num(3, 1)))],
          [value("x", [1, 1, "rows", "columns"]), value("boxes", ["regions", 4])], [value("y", ["regions", 1, 1, 1])], [],
          [data_set(9, 5, (8, 4), (0, 0), (3, 4)), data_set(1, 1, (0, 0)), data_set(4, 7, (1, 6), (3, 2))])


CASES = {
    halved: (["rows=1..5", "columns=2..9"], "rows=1..4", "rows = 5 is outside 1..4"),
    pooled: (["rows=1..9", "columns=1..7", "regions=1..3"], "rows=1..8", "rows = 9 is outside 1..8"),
    parted: (["n=1..8"], "n=1..7", "n = 8 is outside 1..7"),
    listed: (["n=1..6"], "n=1..5", "n = 6 is outside 1..5"),
    grown: (["n=1..6"], "n=1..5", "n = 6 is outside 1..5"),
    gathered: (["rows=1..3", "columns=1..4"], "rows=1..2", "rows = 3 is outside 1..2"),
    chosen: (["n=1..7"], "n=1..6", "n = 7 is outside 1..6"),
    resized: (["rows=1..5", "columns=1..9", "tall=4..20"], "rows=1..4", "rows = 5 is outside 1..4"),
    padded: (["rows=1..9"], "rows=1..8", "rows = 9 is outside 1..8"),
    scanned: (["rows=1..9"], "rows=1..8", "rows = 9 is outside 1..8"),
    cut: (["rows=1..9"], "rows=1..8", "rows = 9 is outside 1..8"),
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
